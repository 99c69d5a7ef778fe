/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads use a limiter that lends permits to CPUs, while its limit changes between far and near,
 * calls come in waves, and threads move from CPU to CPU.
 *
 *   stress-permit_cache [PAIRS [THREADS]]
 *
 * PAIRS is the number of pairs of acquire and release, without refused attempts.
 *
 * Checked meanwhile: never more permits are held than the highest limit, and none is admitted above
 * the limit at that moment; no waiter is forgotten (one with a far deadline never times out);
 * totals never decrease, nor exceed what has happened; with one call always held, the limiter never
 * seems idle. Checked at the end of each of many rounds, when all threads stand still, some of them
 * holding permits: exactly what the limit leaves beside them is available, although permits are
 * idle. Checked at the end: nothing is in flight, no call waits, and every attempt is counted once.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <weir/weir.h>

#include "check.h"

#define ROUNDS 20

/* Time to the deadline of waiters that must not be forgotten. */
#define PATIENCE (300 * WEIR_S)

/* Limits: one that is far with two stripes, and one below what the threads hold. */
#define FAR  512
#define NEAR 8

/* Most permits that a thread holds: in a wave, all threads together reach the limit. */
#define HAND 128
#define CALM 4
#define KEPT 2 /* permits held from round to round */

static struct weir_limiter *limiter;

/* As in limiter.c: epoch << 32 | the highest limit that may be in force. */
static _Atomic uint64_t bound;

/* Permits held for certain: counted from after the admission until before the release. */
static atomic_uint held;

static _Atomic uint64_t begun; /* attempts */
static atomic_uint wave;       /* most permits that each thread holds now */
static atomic_bool done;

struct worker {
	_Alignas(128) uint64_t seed;
	uint64_t pairs; /* pairs to do in a round */
	uint64_t admitted, refused, timed_out;
	uint64_t lent; /* admitted with a lent permit; if there were none, nothing was tested */
	struct weir_token hand[HAND];
	unsigned holds;
};

static void move(uint64_t random)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(random % (unsigned long)online, &set);
	(void)sched_setaffinity(0, sizeof(set), &set); /* may be forbidden */
}

static int attempt(struct worker *w, struct weir_token *token)
{
	const struct weir_call call = {.cost = 1 + (uint32_t)(draw(&w->seed) % 3)};
	uint64_t way = draw(&w->seed) % 64;
	int r;

	if (way < 56)
		return weir_try_acquire(limiter, token);
	if (way < 58)
		return weir_try_acquire_for(limiter, &call, token);
	if (way < 60 || w->holds > 0) /* only a thread without permits may wait long */
		return weir_acquire(limiter, weir_now() + draw(&w->seed) % (20 * WEIR_US), token);
	r = weir_acquire(limiter, weir_now() + PATIENCE, token);
	CHECK(r != -ETIMEDOUT);
	return r;
}

static void give_back(struct worker *w)
{
	static const enum weir_outcome outcomes[] = {WEIR_SUCCESS, WEIR_SUCCESS, WEIR_IGNORE,
						     WEIR_DROPPED};
	unsigned i = (unsigned)(draw(&w->seed) % w->holds);

	atomic_fetch_sub(&held, w->hand[i].cost);
	weir_release(limiter, &w->hand[i], outcomes[draw(&w->seed) % 4]);
	w->hand[i] = w->hand[--w->holds];
}

static void take(struct worker *w)
{
	struct weir_token *token = &w->hand[w->holds];
	uint64_t before = atomic_load(&bound);
	int r;

	atomic_fetch_add(&begun, 1);
	r = attempt(w, token);
	if (r == 0) {
		if (atomic_load(&bound) == before)
			CHECK(token->inflight <= (uint32_t)before);
		CHECK(atomic_fetch_add(&held, token->cost) + token->cost <= FAR);
		w->holds++;
		w->admitted++;
		w->lent += token->home != 0;
		return;
	}
	CHECK(r == -EAGAIN || r == -ETIMEDOUT);
	w->refused += r == -EAGAIN;
	w->timed_out += r == -ETIMEDOUT;
	sched_yield(); /* otherwise refused threads keep the holder from running */
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t until = w->admitted + w->pairs;

	while (w->admitted < until) {
		unsigned most = atomic_load_explicit(&wave, memory_order_relaxed);

		if (draw(&w->seed) % 2048 == 0)
			move(draw(&w->seed));
		if (w->holds < most && draw(&w->seed) % 4 != 0)
			take(w);
		else if (w->holds > 0)
			give_back(w);
	}
	while (w->holds > KEPT)
		give_back(w);
	return NULL;
}

/* Mostly far and calm, so that windows close there. */
static void *disturb(void *arg)
{
	static uint64_t seed = 7, epoch;
	uint32_t limit = *(uint32_t *)arg;

	while (!atomic_load(&done)) {
		bool near = draw(&seed) % 4 == 0;
		uint32_t next = near ? 1 + (uint32_t)(draw(&seed) % NEAR)
				     : FAR - (uint32_t)(draw(&seed) % 64);

		atomic_store(&bound, ++epoch << 32 | (next > limit ? next : limit));
		CHECK(weir_limit_set(limiter, next) == 0);
		atomic_store(&bound, ++epoch << 32 | next);
		limit = next;
		atomic_store_explicit(&wave, draw(&seed) % 6 == 0 ? HAND : CALM,
				      memory_order_relaxed);
		usleep(near ? 50 : 3000);
	}
	*(uint32_t *)arg = limit;
	return NULL;
}

/* One call is held all the time. */
static void *watch(void *arg)
{
	struct weir_snapshot last, s;

	(void)arg;
	weir_snapshot_init(&last);
	weir_snapshot_init(&s);
	while (!atomic_load(&done)) {
		weir_snapshot_take(limiter, &s);
		CHECK(s.admitted >= last.admitted && s.admitted <= atomic_load(&begun));
		CHECK(s.succeeded >= last.succeeded && s.rejected >= last.rejected);
		CHECK(weir_inflight(limiter) >= 1);
		last = s;
		usleep(20);
	}
	return NULL;
}

/* Take all permits that are available beside those held, down to the last one. */
static void take_the_rest(struct worker *w, uint32_t limit)
{
	static struct weir_token token[FAR + 1];
	uint32_t others = atomic_load(&held), n = 0;

	CHECK(weir_waiting(limiter) == 0 && weir_inflight(limiter) == others);
	while (weir_try_acquire(limiter, &token[n]) == 0)
		CHECK(++n <= FAR);
	CHECK(n == (limit > others ? limit - others : 0));
	atomic_fetch_add(&begun, n + 1);
	w->admitted += n;
	w->refused++;
	while (n > 0)
		weir_release(limiter, &token[--n], WEIR_IGNORE);
	CHECK(weir_inflight(limiter) == others);
}

static void make_limiter(unsigned threads)
{
	struct weir_settable_config settable = {.initial = FAR};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.queue = threads;
	config.window_min = config.window_max = WEIR_MS;
	config.stripes = 2;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	atomic_store(&bound, FAR);
}

static void round_of(struct worker *workers, unsigned threads, uint32_t *limit)
{
	pthread_t disturber, watcher;
	struct crew crew;

	atomic_store(&done, false);
	atomic_store(&wave, CALM);
	CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
	CHECK(pthread_create(&disturber, NULL, disturb, limit) == 0);
	crew_start(&crew, threads, work, (char *)workers, sizeof(workers[0]));
	crew_join(&crew);
	atomic_store(&done, true);
	CHECK(pthread_join(watcher, NULL) == 0);
	CHECK(pthread_join(disturber, NULL) == 0);
	take_the_rest(&workers[0], *limit);
}

static void settle_accounts(struct worker *workers, unsigned threads)
{
	uint64_t admitted = 1, refused = 0, timed_out = 0, lent = 0;
	struct weir_snapshot s;

	for (unsigned i = 0; i < threads; i++) {
		while (workers[i].holds > 0)
			give_back(&workers[i]);
		admitted += workers[i].admitted;
		refused += workers[i].refused;
		timed_out += workers[i].timed_out;
		lent += workers[i].lent;
	}
	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	CHECK(s.inflight == 0 && s.waiting == 0 && weir_inflight(limiter) == 0);
	CHECK(s.admitted == admitted && s.rejected == refused && s.abandoned == timed_out);
	CHECK(s.succeeded + s.ignored + s.dropped == admitted && s.double_released == 0);
	CHECK(atomic_load(&begun) == admitted + refused + timed_out);
	CHECK(lent > 0);
	printf("admitted %llu, of them lent %llu, refused %llu, timed out %llu, windows %llu\n",
	       (unsigned long long)admitted, (unsigned long long)lent, (unsigned long long)refused,
	       (unsigned long long)timed_out, (unsigned long long)s.windows);
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;
	struct weir_token always;
	uint32_t limit = FAR;

	if (threads < 1 || threads > THREADS_MAX || wanted / ROUNDS < threads) {
		fprintf(stderr, "stress-permit_cache: 1 to %d threads, at least %d pairs each\n",
			THREADS_MAX, ROUNDS);
		return 2;
	}
	make_limiter(threads);
	for (unsigned i = 0; i < threads; i++) {
		workers[i].seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		workers[i].pairs = wanted / ROUNDS / threads;
	}
	atomic_fetch_add(&begun, 1);
	CHECK(weir_try_acquire(limiter, &always) == 0);
	atomic_fetch_add(&held, 1);
	for (unsigned i = 0; i < ROUNDS; i++)
		round_of(workers, threads, &limit);
	atomic_fetch_sub(&held, 1);
	weir_release(limiter, &always, WEIR_IGNORE);
	settle_accounts(workers, threads);
	weir_limiter_destroy(limiter);
	return 0;
}
