/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Partitions: guaranteed shares, borrowing, caps, names, delays. tests/model/partitions.c compares
 * every decision of calls in random order with a reference model.
 */

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/limiter/limiter.h"

#include "rig.h"

enum { LIVE = 1, BATCH = 2 };

static const struct weir_partition two[] = {
	{.name = "live", .share = 0.9},
	{.name = "batch", .share = 0.1},
};

static const struct weir_call live = {.partition = LIVE}, batch = {.partition = BATCH};

static struct weir_limiter *make(uint32_t limit, const struct weir_partition *partitions,
				 uint32_t count, uint32_t queue)
{
	struct weir_config config = rig_config(limit);

	rig_time = WEIR_S;
	config.partitions = partitions;
	config.partition_count = count;
	config.queue = queue;
	return rig_make(&config);
}

/*
 * Fifty batch calls, then fifty live ones, at a limit of 10: the reference then has 19 in flight
 * (10 + 9). Here the limit is never exceeded, and live has its nine as soon as nine batch calls
 * have ended.
 */
Test(partitions, a_guarantee_never_goes_above_the_limit)
{
	struct weir_limiter *l = make(10, two, 2, 0);
	struct weir_token borrowed[50], token[50];
	uint32_t served = 0;

	cr_assert_eq(rig_fill(l, &batch, borrowed, 50), 10, "batch borrows all of it");
	cr_assert_eq(rig_fill(l, &live, token, 50), 0);
	cr_assert_eq(weir_inflight(l), 10);
	cr_assert_eq(rig_partition(l, LIVE).reserved, 9);
	for (uint32_t i = 0; i < 10; i++) {
		weir_release(l, &borrowed[i], WEIR_IGNORE);
		served += rig_fill(l, &batch, &borrowed[i], 1) == 0;
		cr_assert_leq(weir_inflight(l), 10);
	}
	cr_assert_eq(served, 9, "batch gets no more than its own one back");
	cr_assert_eq(rig_fill(l, &live, token, 50), 9);
	cr_assert_eq(weir_inflight(l), 10);
	cr_assert_eq(rig_partition(l, LIVE).inflight, 9);
	cr_assert_eq(rig_partition(l, BATCH).inflight, 1);
	weir_limiter_destroy(l);
}

/* Within a guarantee the reference does not check the limit, and admits 4 + 1 of 4. */
Test(partitions, a_whole_share_admits_no_more_than_the_limit)
{
	const struct weir_partition whole[] = {{.name = "live", .share = 1}};
	struct weir_limiter *l = make(4, whole, 1, 0);
	struct weir_token unknown, token[5];

	cr_assert_eq(weir_try_acquire(l, &unknown), 0);
	cr_assert_eq(rig_fill(l, &live, token, 5), 3);
	cr_assert_eq(weir_inflight(l), 4);
	weir_release(l, &unknown, WEIR_IGNORE);
	cr_assert_eq(weir_try_acquire(l, &unknown), -EAGAIN, "live is below its share");
	cr_assert_eq(rig_fill(l, &live, &token[3], 1), 1);
	weir_limiter_destroy(l);
}

Test(partitions, reserved_permits_lapse_if_the_partition_does_not_come_back)
{
	struct weir_limiter *l = make(10, two, 2, 0);
	struct weir_token token[10], none;

	cr_assert_eq(rig_fill(l, &batch, token, 10), 10);
	cr_assert_eq(weir_try_acquire_for(l, &live, &none), -EAGAIN);
	weir_release(l, &token[9], WEIR_IGNORE);
	for (int interval = 0; interval < 2; interval++) {
		rig_time += 100 * WEIR_MS;
		cr_assert_eq(weir_try_acquire_for(l, &batch, &none), -EAGAIN);
		rig_time += 1;
		cr_assert_eq(weir_try_acquire_for(l, &batch, &token[9]),
			     interval == 0 ? -EAGAIN : 0);
	}
	cr_assert_eq(rig_partition(l, LIVE).reserved, 0);
	weir_limiter_destroy(l);
}

Test(partitions, a_partition_without_a_share_gets_only_what_others_leave)
{
	const struct weir_partition partitions[] = {{.name = "live", .share = 0.5},
						    {.name = "crawler"}};
	const struct weir_call crawler = {.partition = 2};
	struct weir_limiter *l = make(10, partitions, 2, 0);
	struct weir_token token[10], none;

	cr_assert_eq(rig_partition(l, 2).guarantee, 0);
	cr_assert_eq(rig_fill(l, &crawler, token, 10), 10);
	cr_assert_eq(weir_try_acquire_for(l, &live, &none), -EAGAIN);
	rig_empty(l, token, 2);
	cr_assert_eq(rig_fill(l, &live, token, 1), 1, "the first free permit was reserved");
	cr_assert_eq(rig_fill(l, &crawler, &token[1], 2), 1, "the second was not");
	weir_limiter_destroy(l);
}

Test(partitions, a_cap_holds_even_if_there_is_room)
{
	const struct weir_partition partitions[] = {
		{.name = "half", .share = 0.1, .cap = 0.5},
		{.name = "three", .max = 3},
	};
	struct weir_limiter *l = make(10, partitions, 2, 0);
	struct weir_token token[10];

	cr_assert_eq(rig_fill(l, &(struct weir_call){.partition = 1}, token, 10), 5);
	rig_empty(l, token, 5);
	cr_assert_eq(rig_fill(l, &(struct weir_call){.partition = 2}, token, 10), 3);
	rig_empty(l, token, 3);
	cr_assert_eq(weir_limit_set(l, 1), 0);
	cr_assert_eq(rig_partition(l, 1).cap, 1, "at least one");
	weir_limiter_destroy(l);
}

Test(partitions, shares_are_rounded_up_while_the_limit_allows)
{
	const struct weir_partition thirds[] = {{.name = "a", .share = 1.0 / 3},
						{.name = "b", .share = 1.0 / 3},
						{.name = "c", .share = 1.0 / 3}};
	const struct weir_partition noisy[] = {{.name = "a", .share = 0.28},
					       {.name = "b", .share = 0.33},
					       {.name = "c", .share = 0.39}};
	struct weir_limiter *l = make(10, thirds, 3, 0);

	cr_assert_eq(rig_partition(l, 1).guarantee, 4, "not all three can have 4 of 10");
	cr_assert_eq(rig_partition(l, 2).guarantee, 3);
	cr_assert_eq(rig_partition(l, 3).guarantee, 3);
	weir_limiter_destroy(l);
	l = make(25, noisy, 3, 0);
	cr_assert_eq(rig_partition(l, 1).guarantee, 7, "25 * 0.28 is exactly 7");
	weir_limiter_destroy(l);
}

Test(partitions, a_name_has_an_index_and_an_unknown_one_has_zero)
{
	struct weir_limiter *l = make(4, two, 2, 0);
	struct weir_limiter *plain = make(4, NULL, 0, 0);
	struct weir_token token;

	cr_assert_eq(weir_partition_count(l), 3);
	cr_assert_eq(weir_partition_find(l, "live"), LIVE);
	cr_assert_eq(weir_partition_find(l, "batch"), BATCH);
	cr_assert_eq(weir_partition_find(l, "missing"), 0);
	cr_assert_eq(weir_partition_find(l, NULL), 0);
	cr_assert_str_eq(rig_partition(l, 0).name, "unknown");
	cr_assert_eq(weir_try_acquire_for(l, &(struct weir_call){.partition = 3}, &token), -EINVAL);
	cr_assert_eq(token.state, 0);
	cr_assert_eq(weir_partition_count(plain), 0);
	cr_assert_eq(weir_partition_find(plain, "live"), 0);
	cr_assert_eq(weir_try_acquire_for(plain, &live, &token), -EINVAL);
	weir_limiter_destroy(l);
	weir_limiter_destroy(plain);
}

Test(partitions, partition_zero_can_be_configured_by_its_name)
{
	const struct weir_partition partitions[] = {{.name = "live", .share = 0.5},
						    {.name = "unknown", .share = 0.5, .max = 2}};
	struct weir_limiter *l = make(10, partitions, 2, 0);
	struct weir_token token[10];

	cr_assert_eq(weir_partition_count(l), 2);
	cr_assert_eq(rig_partition(l, 0).guarantee, 2);
	cr_assert_eq(rig_fill(l, NULL, token, 10), 2);
	weir_limiter_destroy(l);
}

Test(partitions, waiters_of_one_partition_do_not_block_another)
{
	const struct weir_partition partitions[] = {{.name = "live", .share = 0.5},
						    {.name = "batch", .share = 0.2, .cap = 0.2}};
	struct weir_limiter *l = make(10, partitions, 2, 20);
	struct weir_token token[10];
	struct weir_wait wait[5];

	cr_assert_eq(rig_fill(l, &batch, token, 10), 2, "its cap");
	for (int i = 0; i < 5; i++)
		cr_assert_eq(weir_enqueue_for(l, &batch, NULL, NULL, &wait[i]), 0);
	cr_assert_eq(weir_waiting(l), 5);
	cr_assert_eq(rig_fill(l, &live, &token[2], 8), 8, "there is room, and they cannot use it");
	rig_empty(l, token, 1);
	cr_assert_eq(weir_poll(l, &wait[0], &token[0]), 0);
	cr_assert_eq(weir_poll(l, &wait[1], &token[1]), -EAGAIN);
	weir_limiter_destroy(l);
}

Test(partitions, waiters_below_their_share_are_served_first)
{
	struct weir_limiter *l = make(10, two, 2, 20);
	struct weir_wait first, second;
	struct weir_token token[10], granted;

	cr_assert_eq(rig_fill(l, &batch, token, 10), 10);
	cr_assert_eq(weir_enqueue_for(l, &batch, NULL, NULL, &first), 0);
	rig_time++;
	cr_assert_eq(weir_enqueue_for(l, &live, NULL, NULL, &second), 0);
	rig_empty(l, token, 1);
	cr_assert_eq(weir_poll(l, &first, &granted), -EAGAIN);
	cr_assert_eq(weir_poll(l, &second, &granted), 0);
	cr_assert_eq(granted.partition, LIVE);
	weir_limiter_destroy(l);
}

struct sleeper {
	struct weir_limiter *limiter;
	int result;
};

static void *sleep_for_batch(void *arg)
{
	struct sleeper *sleeper = arg;
	struct weir_token token;

	sleeper->result = weir_acquire_for(sleeper->limiter, &batch, WEIR_FOREVER, &token);
	weir_release(sleeper->limiter, &token, WEIR_IGNORE);
	return NULL;
}

/*
 * The permit is reserved for live, which does not come back, and nothing else happens: the sleeping
 * thread has to find out by itself.
 */
Test(partitions, a_sleeping_thread_gets_permits_that_were_reserved_in_vain)
{
	const struct weir_partition whole[] = {{.name = "live", .share = 1}, {.name = "batch"}};
	struct weir_config config = rig_config(1);
	struct sleeper sleeper;
	struct weir_token token, none;
	pthread_t thread;

	config.clock = NULL;
	config.partitions = whole;
	config.partition_count = 2;
	config.partition_hold = WEIR_MS;
	config.queue = 4;
	sleeper.limiter = rig_make(&config);
	cr_assert_eq(weir_try_acquire_for(sleeper.limiter, &batch, &token), 0);
	cr_assert_eq(pthread_create(&thread, NULL, sleep_for_batch, &sleeper), 0);
	while (weir_waiting(sleeper.limiter) == 0)
		sched_yield();
	cr_assert_eq(weir_try_acquire_for(sleeper.limiter, &live, &none), -EAGAIN);
	weir_release(sleeper.limiter, &token, WEIR_IGNORE);
	pthread_join(thread, NULL);
	cr_assert_eq(sleeper.result, 0);
	weir_limiter_destroy(sleeper.limiter);
}

/*
 * Wait until a waiting thread has gone to sleep, which the sign of its event count shows (as in
 * Concurrency Kit): before that it sees by itself what is reserved.
 */
static void until_asleep(const struct weir_limiter *l, uint32_t slots)
{
	for (uint32_t i = 0;; i = (i + 1) % slots) {
		const void *count = l->queueing.slots[i].park.count;

		if (__atomic_load_n((const int32_t *)count, __ATOMIC_RELAXED) < 0)
			return;
		sched_yield();
	}
}

/* Whether any waiting thread has the watch. */
static bool watched(const struct weir_limiter *l, uint32_t slots)
{
	for (uint32_t i = 0; i < slots; i++)
		if (atomic_load(&l->queueing.slots[i].watches) != 0)
			return true;
	return false;
}

/*
 * The sleeping thread has the watch over the permits reserved for live. live comes back in time, so
 * the thread gives the watch up; then live goes for good. In any order of events, the thread is
 * served.
 */
Test(partitions, a_thread_that_gave_up_the_watch_takes_it_again, .timeout = 60)
{
	const struct weir_partition halves[] = {{.name = "live", .share = 0.5}, {.name = "batch"}};
	struct weir_config config = rig_config(2);
	struct sleeper sleeper;
	struct weir_token keeper, other;
	pthread_t thread;

	config.clock = NULL;
	config.partitions = halves;
	config.partition_count = 2;
	config.partition_hold = 20 * WEIR_MS;
	config.queue = 4;
	sleeper.limiter = rig_make(&config);
	cr_assert_eq(weir_try_acquire_for(sleeper.limiter, &live, &keeper), 0);
	cr_assert_eq(weir_try_acquire_for(sleeper.limiter, &batch, &other), 0);
	cr_assert_eq(pthread_create(&thread, NULL, sleep_for_batch, &sleeper), 0);
	until_asleep(sleeper.limiter, 4);
	weir_release(sleeper.limiter, &keeper, WEIR_IGNORE);
	while (!watched(sleeper.limiter, 4) && weir_waiting(sleeper.limiter) > 0)
		sched_yield();
	if (weir_try_acquire_for(sleeper.limiter, &live, &keeper) == 0) {
		while (watched(sleeper.limiter, 4) && weir_waiting(sleeper.limiter) > 0)
			sched_yield();
		weir_release(sleeper.limiter, &keeper, WEIR_IGNORE);
	}
	pthread_join(thread, NULL);
	cr_assert_eq(sleeper.result, 0);
	weir_limiter_destroy(sleeper.limiter);
}

static void notify(void *arg)
{
	atomic_store((atomic_bool *)arg, true);
}

/*
 * The next waiter belongs to the partition that has borrowed less, and to an event loop, which
 * nothing wakes when the reservation lapses. The thread behind it has the watch for both.
 */
Test(partitions, a_sleeping_thread_has_the_watch_for_an_event_loop, .timeout = 60)
{
	const struct weir_partition three[] = {
		{.name = "live", .share = 0.5}, {.name = "batch"}, {.name = "report"}};
	const struct weir_call report = {.partition = 3};
	struct weir_config config = rig_config(4);
	struct sleeper sleeper;
	struct weir_token held[2], borrowed[2], granted;
	struct weir_wait wait;
	atomic_bool notified = false;
	pthread_t thread;

	config.clock = NULL;
	config.partitions = three;
	config.partition_count = 3;
	config.partition_hold = WEIR_MS;
	config.queue = 4;
	sleeper.limiter = rig_make(&config);
	cr_assert_eq(rig_fill(sleeper.limiter, &live, held, 2), 2);
	cr_assert_eq(rig_fill(sleeper.limiter, &batch, borrowed, 2), 2);
	cr_assert_eq(weir_enqueue_for(sleeper.limiter, &report, notify, &notified, &wait), 0);
	cr_assert_eq(pthread_create(&thread, NULL, sleep_for_batch, &sleeper), 0);
	until_asleep(sleeper.limiter, 4);
	rig_empty(sleeper.limiter, held, 2);
	pthread_join(thread, NULL);
	cr_assert_eq(sleeper.result, 0);
	cr_assert(atomic_load(&notified), "although it never polled");
	cr_assert_eq(weir_poll(sleeper.limiter, &wait, &granted), 0);
	weir_limiter_destroy(sleeper.limiter);
}

/* Two unrelated clocks: the limiter's, and that of the _at calls. */
static void set_by_a_clock_at(weir_time clock)
{
	const struct weir_partition halves[] = {{.name = "live", .share = 0.5}, {.name = "batch"}};
	struct weir_limiter *l = make(2, halves, 2, 0);
	struct weir_token token, none;
	weir_time now = 1000 * WEIR_S;

	rig_time = clock;
	cr_assert_eq(weir_limit_set(l, 2), 0);
	cr_assert_eq(weir_try_acquire_for_at(l, &live, now, &token), 0);
	weir_release_at(l, now, &token, WEIR_IGNORE);
	cr_assert_eq(weir_try_acquire_for_at(l, &batch, now, &token), 0);
	for (int i = 0; i < 3; i++) {
		now += 101 * WEIR_MS;
		if (weir_try_acquire_for_at(l, &batch, now, &none) == 0)
			break;
	}
	cr_assert_eq(rig_partition(l, BATCH).inflight, 2, "the clock was at %llu",
		     (unsigned long long)clock);
	weir_limiter_destroy(l);
}

Test(partitions, reserved_permits_lapse_by_any_clock)
{
	set_by_a_clock_at(WEIR_MS);
	set_by_a_clock_at(1000 * WEIR_S);
	set_by_a_clock_at(1000000 * WEIR_S);
}

Test(partitions, shares_change_at_run_time)
{
	struct weir_limiter *l = make(10, two, 2, 0);
	struct weir_partition change[] = {{.name = "batch", .share = 0.5},
					  {.name = "live", .share = 0.5}};
	char why[100];

	cr_assert_eq(weir_partitions_set(l, change, 2, why, sizeof(why)), 0);
	cr_assert_eq(rig_partition(l, LIVE).guarantee, 5);
	cr_assert_eq(rig_partition(l, BATCH).guarantee, 5);
	change[0].share = 0.2;
	cr_assert_eq(weir_partitions_set(l, change, 1, why, sizeof(why)), 0);
	cr_assert_eq(rig_partition(l, LIVE).guarantee, 5, "left out, so unchanged");
	cr_assert_eq(rig_partition(l, BATCH).guarantee, 2);
	change[0].cap = 0.25;
	change[0].max = 7;
	change[0].reject_delay = 3;
	cr_assert_eq(weir_partitions_set(l, change, 1, why, sizeof(why)), 0);

	struct weir_partition_snapshot s = rig_partition(l, BATCH);

	cr_assert(s.share == 0.2 && s.cap_share == 0.25 && s.max == 7);
	cr_assert_eq(s.delay, 3);
	change[0] = (struct weir_partition){.name = "batch", .share = 0.2};
	cr_assert_eq(weir_partitions_set(l, change, 1, why, sizeof(why)), 0);
	change[0].share = 0.6;
	cr_assert_eq(weir_partitions_set(l, change, 1, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "The shares add up to 1.1, more than 1.");
	cr_assert_eq(rig_partition(l, BATCH).guarantee, 2);
	change[0].name = "missing";
	cr_assert_eq(weir_partitions_set(l, change, 1, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "There is no partition named missing.");
	cr_assert_eq(weir_partitions_set(l, NULL, 1, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "count is 1, but there are no partitions.");
	cr_assert_eq(weir_partitions_set(l, NULL, 0, why, sizeof(why)), 0, "nothing changes");
	change[0].name = "";
	cr_assert_eq(weir_partitions_set(l, change, 1, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "Partition 1 has no name.");
	cr_assert_eq(weir_limit_set(l, 100), 0);
	cr_assert_eq(rig_partition(l, BATCH).guarantee, 20);
	weir_limiter_destroy(l);
}

Test(partitions, a_limiter_without_partitions_gets_none)
{
	const struct weir_partition half = {.name = "half", .share = 0.5};
	const struct weir_config config = rig_config(10);
	struct weir_limiter *l = rig_make(&config);
	char why[100];

	cr_assert_eq(weir_partitions_set(l, &half, 1, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "The limiter was made without partitions.");
	cr_assert_eq(weir_delay_begin(l, 0), 0);
	weir_limiter_destroy(l);
}

Test(partitions, refusals_are_delayed_up_to_a_maximum)
{
	const struct weir_partition slow[] = {{.name = "live", .share = 0.5},
					      {.name = "batch", .reject_delay = 5 * WEIR_MS}};
	struct weir_config config = rig_config(10);
	struct weir_limiter *l;

	config.partitions = slow;
	config.partition_count = 2;
	config.delayed_max = 2;
	l = rig_make(&config);
	cr_assert_eq(weir_delay_begin(l, LIVE), 0);
	cr_assert_eq(weir_delay_begin(l, BATCH), 5 * WEIR_MS);
	cr_assert_eq(weir_delay_begin(l, BATCH), 5 * WEIR_MS);
	cr_assert_eq(weir_delay_begin(l, BATCH), 0);
	cr_assert_eq(rig_partition(l, BATCH).delayed, 2);
	weir_delay_end(l, BATCH);
	cr_assert_eq(weir_delay_begin(l, BATCH), 5 * WEIR_MS);
	cr_assert_eq(weir_delay_begin(l, 77), 0);
	weir_limiter_destroy(l);
}

Test(partitions, ending_a_delay_that_never_began_is_ignored)
{
	const struct weir_partition slow[] = {{.name = "live", .reject_delay = 5 * WEIR_MS},
					      {.name = "batch", .reject_delay = 5 * WEIR_MS}};
	struct weir_config config = rig_config(10);
	struct weir_limiter *l;

	config.partitions = slow;
	config.partition_count = 2;
	config.delayed_max = 2;
	l = rig_make(&config);
	weir_delay_end(l, LIVE);
	cr_assert_eq(rig_partition(l, LIVE).delayed, 0);
	cr_assert_eq(weir_delay_begin(l, LIVE), 5 * WEIR_MS);
	cr_assert_eq(weir_delay_begin(l, LIVE), 5 * WEIR_MS);
	weir_delay_end(l, BATCH);
	cr_assert_eq(weir_delay_begin(l, LIVE), 0, "both still last");
	cr_assert(rig_partition(l, LIVE).delayed == 2 && rig_partition(l, BATCH).delayed == 0);
	weir_limiter_destroy(l);
}

Test(partitions, each_partition_has_its_own_counters)
{
	struct weir_limiter *l = make(4, two, 2, 4);
	struct weir_token token[4], none;
	struct weir_wait wait;

	cr_assert_eq(rig_fill(l, &live, token, 5), 4);
	cr_assert_eq(weir_enqueue_for(l, &live, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_cancel(l, &wait, &none), 0);
	rig_time += WEIR_MS;
	weir_release(l, &token[0], WEIR_SUCCESS);
	weir_release(l, &token[1], WEIR_DROPPED);
	weir_release(l, &token[2], WEIR_TIMED_OUT);
	weir_release(l, &token[3], WEIR_CANCELLED);

	struct weir_partition_snapshot s = rig_partition(l, LIVE);

	cr_assert(s.admitted == 4 && s.rejected == 1 && s.abandoned == 1);
	cr_assert(s.succeeded == 1 && s.dropped == 2 && s.other == 1);
	s = rig_partition(l, BATCH);
	cr_assert(s.admitted == 0 && s.rejected == 0 && s.succeeded == 0);
	cr_assert(s.share == two[1].share && s.cap_share == 1 && s.max == WEIR_LIMIT_MAX);
	weir_partition_snapshot_init(&s);
	cr_assert_eq(weir_partition_snapshot_take(l, 3, &s), -EINVAL);
	weir_limiter_destroy(l);
}

struct refuser {
	struct weir_limiter *limiter;
	uint64_t refused;
	atomic_bool done;
};

static void *be_refused(void *arg)
{
	static const struct weir_call five = {.partition = BATCH, .cost = 5};
	struct refuser *refuser = arg;
	struct weir_token none;

	while (!atomic_load(&refuser->done))
		refuser->refused += weir_try_acquire_for(refuser->limiter, &five, &none) == -EAGAIN;
	return NULL;
}

/* Not even while a call has taken its partition's permits and is about to give them back. */
Test(partitions, refusals_never_show_as_admissions)
{
	static const struct weir_call ten = {.partition = LIVE, .cost = 10};
	struct refuser refuser = {.limiter = make(10, two, 2, 0)};
	struct weir_token token, none;
	pthread_t thread;

	cr_assert_eq(weir_try_acquire_for(refuser.limiter, &ten, &token), 0);
	cr_assert_eq(weir_try_acquire_for(refuser.limiter, &batch, &none), -EAGAIN);
	cr_assert_eq(pthread_create(&thread, NULL, be_refused, &refuser), 0);
	for (int i = 0; i < 100000; i++)
		cr_assert_eq(rig_partition(refuser.limiter, BATCH).admitted, 0);
	atomic_store(&refuser.done, true);
	pthread_join(thread, NULL);

	struct weir_partition_snapshot s = rig_partition(refuser.limiter, BATCH);

	cr_assert(s.admitted == 0 && s.inflight == 0 && s.rejected == refuser.refused + 1);
	weir_limiter_destroy(refuser.limiter);
}

Test(partitions, a_bypass_belongs_to_its_partition)
{
	const struct weir_call bypass = {.partition = BATCH, .flags = WEIR_CALL_BYPASS};
	struct weir_limiter *l = make(4, two, 2, 0);
	struct weir_token token;

	cr_assert_eq(weir_try_acquire_for(l, &bypass, &token), 0);
	cr_assert(token.partition == BATCH && token.cost == 0);
	weir_release(l, &token, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}

static void refused(const struct weir_partition *partitions, uint32_t count, const char *sentence)
{
	struct weir_config config = rig_config(10);
	char why[160] = "";

	config.partitions = partitions;
	config.partition_count = count;
	cr_assert_eq(weir_config_check(&config, why, sizeof(why)), -EINVAL, "%s", sentence);
	cr_assert_str_eq(why, sentence);
}

Test(partitions, an_invalid_configuration_is_rejected_with_a_sentence)
{
	char name[WEIR_PARTITION_NAME_MAX + 2];

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
#define REFUSED(sentence, ...)                                                                     \
	do {                                                                                       \
		const struct weir_partition p[] = {__VA_ARGS__};                                   \
		refused(p, sizeof(p) / sizeof(p[0]), sentence);                                    \
	} while (0)

	REFUSED("Partition 1 has no name.", {.share = 0.5});
	REFUSED("Partition 1 has no name.", {.name = ""});
	REFUSED("The name of partition 1 is longer than 63 bytes.", {.name = name});
	REFUSED("There are two partitions named a.", {.name = "a"}, {.name = "a"});
	REFUSED("The share of a is -0.1, not from 0 to 1.", {.name = "a", .share = -0.1});
	REFUSED("The share of a is nan, not from 0 to 1.", {.name = "a", .share = NAN});
	REFUSED("The share of a is 1.1, not from 0 to 1.", {.name = "a", .share = 1.1});
	REFUSED("The cap of a is -0.5, not above 0 and up to 1.", {.name = "a", .cap = -0.5});
	REFUSED("The shares add up to 1.2, more than 1.", {.name = "a", .share = 0.6},
		{.name = "b", .share = 0.6});
	REFUSED("The cap of a is 1.5, not above 0 and up to 1.", {.name = "a", .cap = 1.5});
	REFUSED("The cap of a is below its share.", {.name = "a", .share = 0.5, .cap = 0.4});
	REFUSED("The max of a is 8388608, above 8388607.", {.name = "a", .max = 1u << 23});
	REFUSED("The reject_delay of a is longer than an hour.",
		{.name = "a", .reject_delay = 3601 * WEIR_S});
	refused(NULL, 2, "partition_count is 2, but there are no partitions.");
	refused(two, 65, "partition_count is 65, above 64.");
}

/* All ways to split 100 % into three whole percentages; the reference refuses six of them. */
Test(partitions, decimal_shares_add_up)
{
	for (int a = 1; a < 99; a++)
		for (int b = 1; a + b < 100; b++) {
			const struct weir_partition p[] = {
				{.name = "a", .share = a / 100.0},
				{.name = "b", .share = b / 100.0},
				{.name = "c", .share = (100 - a - b) / 100.0},
			};
			struct weir_config config = rig_config(10);

			config.partitions = p;
			config.partition_count = 3;
			cr_assert_eq(weir_config_check(&config, NULL, 0), 0, "%d %d", a, b);
		}
}
