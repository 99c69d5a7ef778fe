/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads use four partitions, while the limit changes every 50 us.
 *
 *   stress-partitions [ADMISSIONS [THREADS]]
 *
 * "live" has half the limit and never needs more. "batch" and "report" have the other half.
 * "crawler" has no share and gets what the others leave, so each of its calls is above its
 * guarantee.
 *
 * Checked meanwhile: no call is admitted above the limit of that moment; no crawler is admitted
 * while a live call waits below its guarantee, unless its admission had already begun; no waiter is
 * forgotten. Checked at the end: nothing is in flight, no call waits, and every attempt is counted
 * once in its partition.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <weir/weir.h>

#include "check.h"

#define FAR       (300 * WEIR_S)
#define LIVE_MOST 8 /* most live calls at once, with one permit each */
#define LIMIT_MIN (2 * LIVE_MOST)
#define LIMIT_MAX 64

enum { UNKNOWN, LIVE, BATCH, REPORT, CRAWLER, PARTS };

static const struct weir_partition partitions[] = {
	{.name = "live", .share = 0.5},
	{.name = "batch", .share = 0.25, .cap = 0.6},
	{.name = "report", .share = 0.25, .max = 10},
	{.name = "crawler"},
};

static struct weir_limiter *limiter;

/* As in limiter.c: epoch << 32 | the highest limit that may be in force. */
static _Atomic uint64_t bound;
static atomic_bool done;

/* Crawlers admitted, and the number of them that may be in the middle of an admission. */
static _Atomic uint64_t crawlers_admitted;
static unsigned crawlers;

struct worker {
	_Alignas(128) uint64_t seed;
	uint16_t part;
	uint64_t wanted; /* admissions to do */
	uint64_t attempts, admitted, rejected, abandoned;
};

/* A live call waits as in an event loop, so that the moment when it begins to wait is known. */
static int live_call(const struct weir_call *call, struct weir_token *token)
{
	struct weir_wait wait;
	uint64_t before;
	int r = weir_enqueue_for(limiter, call, NULL, NULL, &wait);

	if (r != 0)
		return r;
	before = atomic_load_explicit(&crawlers_admitted, memory_order_seq_cst);
	while ((r = weir_poll(limiter, &wait, token)) == -EAGAIN) {
		uint64_t passed = atomic_load_explicit(&crawlers_admitted, memory_order_seq_cst) -
				  before;

		/* The permit may have been granted since the poll; then crawlers may pass. */
		if (weir_poll(limiter, &wait, token) == 0)
			return 0;
		CHECK(passed <= crawlers);
		sched_yield();
	}
	return r;
}

static int attempt(struct worker *w, const struct weir_call *call, struct weir_token *token)
{
	uint64_t way = draw(&w->seed) % 16;

	if (w->part == LIVE)
		return live_call(call, token);
	if (way < 9)
		return weir_try_acquire_for(limiter, call, token);
	if (way < 12)
		return weir_acquire_for(limiter, call, weir_now() + draw(&w->seed) % (20 * WEIR_US),
					token);
	return weir_acquire_for(limiter, call, weir_now() + FAR, token);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct weir_call call = {.partition = w->part};
	struct weir_token token;

	for (; w->admitted < w->wanted; w->attempts++) {
		uint64_t before = atomic_load_explicit(&bound, memory_order_acquire);
		int r;

		call.cost = w->part == LIVE ? 1 : 1 + (uint32_t)(draw(&w->seed) % 4) / 3;
		r = attempt(w, &call, &token);
		if (r == 0) {
			if (w->part == CRAWLER || w->part == UNKNOWN)
				atomic_fetch_add_explicit(&crawlers_admitted, 1,
							  memory_order_seq_cst);
			if (atomic_load_explicit(&bound, memory_order_acquire) == before)
				CHECK(token.inflight <= (uint32_t)before);
			CHECK(token.partition == w->part && token.cost == call.cost);
			w->admitted++;
			if (draw(&w->seed) % 8 == 0)
				sched_yield();
			weir_release(limiter, &token, WEIR_SUCCESS);
			continue;
		}
		CHECK(r == -EAGAIN || r == -ETIMEDOUT);
		w->rejected += r == -EAGAIN;
		w->abandoned += r == -ETIMEDOUT;
		sched_yield();
	}
	return NULL;
}

static void *move_limit(void *arg)
{
	uint32_t limit = LIMIT_MAX;
	uint64_t seed = 99, epoch = 0;

	(void)arg;
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		uint32_t next = LIMIT_MIN + (uint32_t)(draw(&seed) % (LIMIT_MAX - LIMIT_MIN + 1));
		uint32_t greater = next > limit ? next : limit;

		atomic_store_explicit(&bound, ++epoch << 32 | greater, memory_order_release);
		CHECK(weir_limit_set(limiter, next) == 0);
		atomic_store_explicit(&bound, ++epoch << 32 | next, memory_order_release);
		limit = next;
		usleep(50);
	}
	return NULL;
}

static void settle_accounts(const struct worker *workers, unsigned threads)
{
	for (unsigned part = 0; part < PARTS; part++) {
		struct weir_partition_snapshot s;
		uint64_t admitted = 0, rejected = 0, abandoned = 0;

		for (unsigned i = 0; i < threads; i++)
			if (workers[i].part == part) {
				admitted += workers[i].admitted;
				rejected += workers[i].rejected;
				abandoned += workers[i].abandoned;
			}
		weir_partition_snapshot_init(&s);
		CHECK(weir_partition_snapshot_take(limiter, part, &s) == 0);
		CHECK(s.inflight == 0 && s.waiting == 0);
		CHECK(s.admitted == admitted && s.succeeded == admitted);
		CHECK(s.rejected == rejected && s.abandoned == abandoned);
		printf("%-8s admitted %8llu, rejected %9llu, abandoned %7llu\n", s.name,
		       (unsigned long long)admitted, (unsigned long long)rejected,
		       (unsigned long long)abandoned);
	}
	CHECK(weir_inflight(limiter) == 0 && weir_waiting(limiter) == 0);
}

static void make_limiter(unsigned threads)
{
	struct weir_settable_config settable = {.initial = LIMIT_MAX};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.partitions = partitions;
	config.partition_count = PARTS - 1;
	config.partition_hold = WEIR_MS;
	config.queue = threads / 2 + LIVE_MOST;
	config.window_min = WEIR_MS;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	for (uint16_t i = 1; i < PARTS; i++)
		CHECK(weir_partition_find(limiter, partitions[i - 1].name) == i);
	atomic_store_explicit(&bound, LIMIT_MAX, memory_order_release);
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 64;
	static struct worker workers[THREADS_MAX];
	struct crew crew;
	pthread_t mover;

	if (threads < 4 || threads > THREADS_MAX || wanted < threads) {
		fprintf(stderr, "stress-partitions: 4 to %d threads, at least one admission each\n",
			THREADS_MAX);
		return 2;
	}
	make_limiter(threads);
	for (unsigned i = 0; i < threads; i++) {
		uint16_t part = (uint16_t)(1 + i % 4);

		if (part == LIVE && i / 4 >= LIVE_MOST)
			part = UNKNOWN;
		crawlers += part == CRAWLER || part == UNKNOWN;
		workers[i] = (struct worker){
			.seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15),
			.part = part,
			.wanted = wanted / threads,
		};
	}
	CHECK(pthread_create(&mover, NULL, move_limit, NULL) == 0);
	crew_start(&crew, threads, work, (char *)workers, sizeof(workers[0]));
	crew_join(&crew);
	atomic_store_explicit(&done, true, memory_order_relaxed);
	CHECK(pthread_join(mover, NULL) == 0);
	settle_accounts(workers, threads);
	weir_limiter_destroy(limiter);
	return 0;
}
