/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads acquire permits in every way, while the limit changes.
 *
 *   stress-limiter [PAIRS [THREADS]]
 *
 * PAIRS is the number of pairs of acquire and release, without refused attempts.
 *
 * Checked meanwhile: no admission above the limit at that moment; no waiter forgotten (one with a
 * far deadline never times out); what one holder of a permit wrote before its release is visible to
 * the next. Where calls are detached on top of the limit, it is exceeded by no more than all
 * threads hold. Checked at the end: nothing is in flight, no call waits, every attempt is counted
 * once, and nothing is left on top of the limit.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <weir/weir.h>

#include "check.h"

#define FAR (300 * WEIR_S)

static struct weir_limiter *limiter;

/*
 * The bound in force: epoch << 32 | limit. While the limit is being changed, the bound is the
 * higher of the two, and each change has a new epoch. An admission during which this word did not
 * change was within the bound.
 */
static _Atomic uint64_t bound;
static atomic_bool done;

/* Pairs of all rounds. */
static uint64_t pairs;

/* Plain, written by holders only: with a limit of one, each holder sees the last one's value. */
static uint64_t alone;
static bool exclusive;

/* Most permits that are detached on top of the limit. */
static uint32_t detached_most;
static struct weir_limit_ops on_top;

struct worker {
	_Alignas(128) uint64_t seed;
	uint64_t pairs; /* to do */
	uint64_t attempts, admitted, refused, timed_out;
	atomic_bool notified; /* set by the callback */
};

static void notify(void *arg)
{
	struct worker *w = arg;

	atomic_store_explicit(&w->notified, true, memory_order_release);
}

/* Wait as an event loop does. */
static int by_polling(struct worker *w, struct weir_token *token, bool impatient)
{
	struct weir_wait wait;
	int r;

	atomic_store_explicit(&w->notified, false, memory_order_relaxed);
	r = weir_enqueue(limiter, draw(&w->seed) % 2 != 0 ? notify : NULL, w, &wait);
	if (r != 0)
		return r;
	for (unsigned i = 0; (r = weir_poll(limiter, &wait, token)) == -EAGAIN; i++) {
		if (impatient && i > 3) {
			r = weir_cancel(limiter, &wait, token);
			CHECK(r == 0 || r == -EALREADY);
			return r == 0 ? -ETIMEDOUT : 0;
		}
		sched_yield();
	}
	CHECK(r == 0);
	CHECK(weir_poll(limiter, &wait, token) == -EINVAL && token->state != 0);
	return 0;
}

static int attempt(struct worker *w, struct weir_token *token)
{
	uint64_t way = draw(&w->seed) % 64;
	int r;

	if (way < 40)
		return weir_try_acquire(limiter, token);
	if (way < 56) {
		r = weir_acquire(limiter, weir_now() + FAR, token);
		CHECK(r != -ETIMEDOUT);
		return r;
	}
	if (way < 60)
		return weir_acquire(limiter, weir_now() + draw(&w->seed) % (20 * WEIR_US), token);
	return by_polling(w, token, way < 62);
}

static void hold(struct worker *w, struct weir_token *token)
{
	static const enum weir_outcome outcomes[] = {WEIR_SUCCESS, WEIR_SUCCESS, WEIR_IGNORE,
						     WEIR_DROPPED};
	struct weir_token copy = *token;

	if (exclusive)
		alone++;
	if (draw(&w->seed) % 16 == 0)
		sched_yield();
	if (detached_most > 0 && draw(&w->seed) % 4 == 0)
		CHECK(weir_detach(limiter, token) == 0);
	weir_release(limiter, token, outcomes[draw(&w->seed) % 4]);
	CHECK(token->state == 0 && copy.state != 0);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct weir_token token;

	for (; w->admitted < w->pairs; w->attempts++) {
		uint64_t before = atomic_load_explicit(&bound, memory_order_acquire);
		int r = attempt(w, &token);

		if (r == 0) {
			if (atomic_load_explicit(&bound, memory_order_acquire) == before)
				CHECK(token.inflight <= (uint32_t)before + detached_most);
			hold(w, &token);
			w->admitted++;
			continue;
		}
		CHECK(r == -EAGAIN || r == -ETIMEDOUT);
		w->refused += r == -EAGAIN;
		w->timed_out += r == -ETIMEDOUT;
		sched_yield(); /* otherwise refused threads keep the holder from running */
	}
	return NULL;
}

static void *move_limit(void *arg)
{
	uint32_t top = *(uint32_t *)arg, limit = top;
	uint64_t seed = 99, epoch = 0;

	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		uint32_t next = 1 + (uint32_t)(draw(&seed) % top);
		uint32_t greater = next > limit ? next : limit;

		atomic_store_explicit(&bound, ++epoch << 32 | greater, memory_order_release);
		CHECK(weir_limit_set(limiter, next) == 0);
		atomic_store_explicit(&bound, ++epoch << 32 | next, memory_order_release);
		limit = next;
		usleep(50);
	}
	return NULL;
}

/* Totals never decrease, and never exceed what has happened. */
static void *watch(void *arg)
{
	struct weir_snapshot last, s;

	(void)arg;
	weir_snapshot_init(&last);
	weir_snapshot_init(&s);
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		weir_snapshot_take(limiter, &s);
		CHECK(s.admitted >= last.admitted && s.rejected >= last.rejected);
		CHECK(s.succeeded >= last.succeeded && s.ignored >= last.ignored);
		CHECK(s.dropped >= last.dropped && s.abandoned >= last.abandoned);
		last = s;
		usleep(20);
	}
	return NULL;
}

static void make_limiter(enum weir_order order, uint32_t limit, uint32_t queue)
{
	struct weir_settable_config settable = {.initial = limit};
	struct weir_config config;

	weir_config_init(&config);
	on_top = weir_settable;
	on_top.flags |= detached_most > 0 ? WEIR_LIMIT_DETACHED : 0;
	config.limit = &on_top;
	config.limit_config = &settable;
	config.order = order;
	config.queue = queue;
	config.queue_stand = WEIR_MS;
	config.window_min = WEIR_MS;
	config.rtt = WEIR_RTT_QUANTILE;
	config.stripes = 2;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	atomic_store_explicit(&bound, limit, memory_order_release);
	atomic_store_explicit(&done, false, memory_order_relaxed);
	exclusive = limit == 1 && detached_most == 0;
	alone = 0;
}

static void settle_accounts(const struct worker *workers, unsigned threads)
{
	struct weir_snapshot s;
	uint64_t attempts = 0, admitted = 0, refused = 0, timed_out = 0;

	for (unsigned i = 0; i < threads; i++) {
		attempts += workers[i].attempts;
		admitted += workers[i].admitted;
		refused += workers[i].refused;
		timed_out += workers[i].timed_out;
	}
	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	CHECK(s.inflight == 0);
	CHECK(s.limit == (uint32_t)atomic_load_explicit(&bound, memory_order_relaxed));
	CHECK(s.waiting == 0);
	CHECK(s.admitted == admitted);
	CHECK(s.rejected == refused);
	CHECK(s.abandoned == timed_out);
	CHECK(s.succeeded + s.ignored + s.dropped == admitted);
	CHECK(s.double_released == 0);
	CHECK(admitted + refused + timed_out == attempts);
	CHECK(!exclusive || alone == admitted);
	pairs += admitted;
	printf("admitted %llu, refused %llu, timed out %llu, windows %llu\n",
	       (unsigned long long)admitted, (unsigned long long)refused,
	       (unsigned long long)timed_out, (unsigned long long)s.windows);
}

static void round_of(const char *name, enum weir_order order, uint32_t limit, bool moving,
		     unsigned threads, uint64_t share)
{
	static struct worker workers[THREADS_MAX];
	struct crew crew;
	pthread_t mover, watcher;

	make_limiter(order, limit, threads / 2 + 1);
	for (unsigned i = 0; i < threads; i++) {
		workers[i] = (struct worker){
			.seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15),
			.pairs = share / threads,
		};
	}
	CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
	if (moving)
		CHECK(pthread_create(&mover, NULL, move_limit, &limit) == 0);
	crew_start(&crew, threads, work, (char *)workers, sizeof(workers[0]));
	crew_join(&crew);
	atomic_store_explicit(&done, true, memory_order_relaxed);
	CHECK(pthread_join(watcher, NULL) == 0);
	if (moving)
		CHECK(pthread_join(mover, NULL) == 0);
	printf("%-8s limit %2u%s, %3u threads: ", name, limit, moving ? " and below" : "", threads);
	settle_accounts(workers, threads);
	weir_limiter_destroy(limiter);
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;
	uint64_t share = wanted / 10;

	if (threads < 1 || threads > THREADS_MAX || share < threads) {
		fprintf(stderr, "stress-limiter: 1 to %d threads, at least 10 pairs each\n",
			THREADS_MAX);
		return 2;
	}
	round_of("fifo", WEIR_FIFO, 1, false, threads, share);
	round_of("fifo", WEIR_FIFO, 4, false, threads, share);
	round_of("fifo", WEIR_FIFO, 8, true, threads, share);
	round_of("lifo", WEIR_LIFO, 1, false, threads, share);
	round_of("lifo", WEIR_LIFO, 4, true, threads, share);
	round_of("adaptive", WEIR_ADAPTIVE, 2, false, threads, share);
	round_of("adaptive", WEIR_ADAPTIVE, 8, true, threads, share);
	round_of("fifo", WEIR_FIFO, 64, true, threads, share);
	detached_most = threads;
	round_of("detached", WEIR_FIFO, 1, false, threads, share);
	round_of("detached", WEIR_FIFO, 8, true, threads, share);
	printf("%llu acquire and release operations\n", (unsigned long long)pairs * 2);
	return 0;
}
