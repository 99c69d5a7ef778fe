/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads release copies of tokens that have been released before, all at the same time.
 *
 *   stress-snapshot_copies [COPIES [THREADS]]
 *
 * Three rounds. With nothing in flight, every copy is detected. Beside holders, with and without
 * partitions, a copy may give back what another call holds, whose own release is then counted as a
 * second one. But as many releases are counted as second ones as there were copies, and no permit
 * is lost.
 *
 * Checked at the end of each round: nothing is in flight, no call waits, the limit is as set and
 * all its permits are available, every call is counted once and every copy as released twice.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include <weir/weir.h>

#include "check.h"

#define LIMIT 6

static struct weir_limiter *limiter;
static uint16_t partition; /* of all calls in a round */

/* Copies to release, of costs from 1. */
static struct weir_token released[3];

struct worker {
	_Alignas(128) uint64_t wanted;
	uint64_t admitted; /* by holders */
	unsigned costs;    /* highest cost of a copy */
};

static void *release_copies(void *arg)
{
	const struct worker *w = arg;

	for (uint64_t i = 0; i < w->wanted; i++) {
		struct weir_token copy = released[i % w->costs];

		weir_release(limiter, &copy, WEIR_SUCCESS);
		CHECK(copy.state == 0);
	}
	return NULL;
}

static void *hold(void *arg)
{
	const struct weir_call call = {.partition = partition};
	struct worker *w = arg;
	struct weir_token token;

	for (uint64_t i = 0; i < w->wanted; i++) {
		int r = weir_try_acquire_for(limiter, &call, &token);

		CHECK(r == 0 || r == -EAGAIN);
		if (r != 0) {
			sched_yield();
			continue;
		}
		w->admitted++;
		weir_release(limiter, &token, WEIR_SUCCESS);
	}
	return NULL;
}

static void make_limiter(void)
{
	const struct weir_partition partitions[] = {{.name = "a", .share = 0.5}};
	struct weir_settable_config settable = {.initial = LIMIT};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.partitions = partitions;
	config.partition_count = partition;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	for (uint32_t i = 0; i < 3; i++) {
		const struct weir_call call = {.partition = partition, .cost = i + 1};
		struct weir_token token;

		CHECK(weir_try_acquire_for(limiter, &call, &token) == 0);
		released[i] = token;
		weir_release(limiter, &token, WEIR_SUCCESS);
	}
}

/* Whatever has happened, the limiter is as good as new. */
static void check_whole(uint64_t admitted, uint64_t copies)
{
	const struct weir_call call = {.partition = partition};
	struct weir_token token[LIMIT], none;
	struct weir_partition_snapshot p;
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	CHECK(s.inflight == 0 && s.waiting == 0 && s.limit == LIMIT);
	CHECK(s.double_released == copies);
	CHECK(s.admitted == admitted && s.succeeded == admitted);
	weir_partition_snapshot_init(&p);
	if (partition > 0)
		CHECK(weir_partition_snapshot_take(limiter, partition, &p) == 0);
	CHECK(p.inflight == 0 && p.waiting == 0);
	for (unsigned i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire_for(limiter, &call, &token[i]) == 0 &&
		      token[i].inflight == i + 1);
	CHECK(weir_try_acquire_for(limiter, &call, &none) == -EAGAIN);
	for (unsigned i = 0; i < LIMIT; i++)
		weir_release(limiter, &token[i], WEIR_SUCCESS);
	CHECK(weir_inflight(limiter) == 0);
}

/* holders of the threads hold permits, the others release copies. */
static void round_of(const char *name, unsigned threads, unsigned holders, uint64_t share)
{
	static struct worker workers[THREADS_MAX];
	uint64_t admitted = 3;
	struct crew holding, copying;

	make_limiter();
	for (unsigned i = 0; i < threads; i++)
		workers[i] = (struct worker){.wanted = share, .costs = holders > 0 ? 1 : 3};
	crew_start(&holding, holders, hold, (char *)workers, sizeof(workers[0]));
	crew_start(&copying, threads - holders, release_copies, (char *)&workers[holders],
		   sizeof(workers[0]));
	crew_join(&holding);
	crew_join(&copying);
	for (unsigned i = 0; i < holders; i++)
		admitted += workers[i].admitted;
	check_whole(admitted, (threads - holders) * share);
	printf("%-14s %3u threads: admitted %llu, copies %llu\n", name, threads,
	       (unsigned long long)admitted, (unsigned long long)((threads - holders) * share));
	weir_limiter_destroy(limiter);
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;

	if (threads < 2 || threads > THREADS_MAX || wanted < threads) {
		fprintf(stderr, "stress-snapshot_copies: 2 to %d threads, at least one copy each\n",
			THREADS_MAX);
		return 2;
	}
	round_of("nothing held", threads, 0, wanted / threads);
	round_of("beside holders", threads, threads / 2, wanted / threads);
	partition = 1;
	round_of("in a partition", threads, threads / 2, wanted / threads);
	return 0;
}
