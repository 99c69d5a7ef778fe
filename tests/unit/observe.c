/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots and observers.
 */

#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "lib/limiter/limiter.h"

struct seen {
	unsigned windows;
	struct weir_report last;
};

static void see(void *arg, const struct weir_report *report)
{
	struct seen *seen = arg;

	seen->windows++;
	seen->last = *report;
}

static void feed(struct weir_limiter *l, unsigned samples)
{
	for (unsigned i = 0; i < samples; i++) {
		weir_time end = WEIR_S + i * 10 * WEIR_MS;

		weir_sample_at(l, end - 5 * WEIR_MS, end, 20,
			       i % 10 == 0 ? WEIR_DROPPED : WEIR_SUCCESS);
	}
}

Test(observe, each_window_runs_the_callback_and_the_snapshot_has_the_last)
{
	struct seen seen = {.windows = 0};
	const struct weir_observer observer = {.window = see, .arg = &seen};
	struct weir_limiter *l;
	struct weir_snapshot s;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_vegas;
	config.observer = &observer;
	cr_assert_eq(weir_limiter_create(&config, &l), 0);
	weir_snapshot_init(&s);
	weir_snapshot_take(l, &s);
	cr_assert(s.windows == 0 && s.last.window.count == 0 && s.last.count == 0);

	feed(l, 500);
	weir_snapshot_take(l, &s);
	cr_assert(seen.windows > 30, "%u", seen.windows);
	cr_assert_eq(s.windows, seen.windows);
	cr_assert_eq(memcmp(&s.last.window, &seen.last.window, sizeof(s.last.window)), 0);
	cr_assert_eq(s.last.limit, weir_limit(l));
	cr_assert_eq(s.last.count, 4);
	cr_assert_str_eq(s.last.names[1], "rtt_noload");
	cr_assert_eq(s.last.numbers[1], 5.0 * WEIR_MS);
	cr_assert(s.last.window.random >= 0 && s.last.window.random < 1);
	weir_limiter_destroy(l);
}

static double answer;

static double answer_init(void *state, const void *config, double random)
{
	(void)state;
	(void)config;
	(void)random;
	return answer;
}

static double answer_update(void *state, const struct weir_window *w)
{
	(void)state;
	return w->cancelled > 0 ? answer : w->limit;
}

/* A limit that each cancelled call sets to the answer. */
static struct weir_limiter *make_answering(uint32_t flags, const struct weir_observer *observer)
{
	static const struct weir_sampling each = {.windowing = WEIR_WINDOW_SAMPLE};
	static struct weir_limit_ops ops = {
		.size = sizeof(ops),
		.name = "answering",
		.init = answer_init,
		.update = answer_update,
		.sampling = &each,
	};
	struct weir_config config;
	struct weir_limiter *l;

	answer = 5;
	ops.flags = flags;
	weir_config_init(&config);
	config.limit = &ops;
	config.observer = observer;
	config.burst = 3;
	cr_assert_eq(weir_limiter_create(&config, &l), 0);
	return l;
}

static void end_at(struct weir_limiter *l, weir_time end, enum weir_outcome outcome)
{
	weir_sample_at(l, end - WEIR_MS, end, 5, outcome);
}

Test(observe, a_window_without_a_sample_is_seen_only_if_it_changes_the_limit)
{
	struct seen seen = {.windows = 0};
	const struct weir_observer observer = {.window = see, .arg = &seen};
	struct weir_limiter *l = make_answering(WEIR_LIMIT_CANCELLED, &observer);

	end_at(l, WEIR_S, WEIR_SUCCESS);
	end_at(l, 2 * WEIR_S, WEIR_CANCELLED);
	end_at(l, 2 * WEIR_S, WEIR_FAILED);
	cr_assert(seen.windows == 1 && seen.last.window.count == 1);
	answer = 4;
	end_at(l, 3 * WEIR_S, WEIR_CANCELLED);
	cr_assert(weir_limit(l) == 4 && seen.windows == 2);
	cr_assert(seen.last.window.count == 0 && seen.last.window.others == 2);
	cr_assert(seen.last.limit == 4 && seen.last.window.limit == 5);
	weir_limiter_destroy(l);
}

Test(observe, a_cancelled_call_is_no_window_for_other_limits)
{
	struct weir_limiter *l = make_answering(0, NULL);

	answer = 4;
	end_at(l, WEIR_S, WEIR_CANCELLED);
	cr_assert_eq(weir_limit(l), 5);
	end_at(l, WEIR_S, WEIR_DROPPED);
	cr_assert_eq(weir_limit(l), 4, "it is part of the next one");
	weir_limiter_destroy(l);
}

/* Bursts end where calls reach the limit window after window, and windows without calls are calm. */
Test(observe, a_window_without_a_sample_does_not_open_bursts)
{
	struct weir_limiter *l = make_answering(WEIR_LIMIT_CANCELLED, NULL);
	uint32_t open;
	struct weir_token token;

	for (unsigned i = 0; i < 20; i++)
		end_at(l, i * WEIR_S, WEIR_DROPPED);
	end_at(l, 30 * WEIR_S, WEIR_CANCELLED);
	for (open = 0; weir_try_acquire(l, &token) == 0;)
		open++;
	cr_assert_eq(open, 5);
	weir_limiter_destroy(l);
}

Test(observe, a_settable_limit_reports_windows_too)
{
	struct weir_limiter *l;
	struct weir_snapshot s;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	cr_assert_eq(weir_limiter_create(&config, &l), 0);
	cr_assert_eq(weir_limit_set(l, 9), 0);
	feed(l, 500);
	weir_snapshot_init(&s);
	weir_snapshot_take(l, &s);
	cr_assert(s.windows > 30);
	cr_assert_eq(s.limit, 9);
	cr_assert_eq(s.last.window.rtt, 5.0 * WEIR_MS);
	weir_limiter_destroy(l);
}

Test(observe, the_shorter_snapshot_of_an_older_program_is_filled)
{
	struct weir_limiter *l;
	struct weir_snapshot s;
	struct weir_config config;

	weir_config_init(&config);
	cr_assert_eq(weir_limiter_create(&config, &l), 0);
	feed(l, 100);
	memset(&s, 0x5a, sizeof(s));
	weir_snapshot_init_sized(&s, offsetof(struct weir_snapshot, windows));
	weir_snapshot_take(l, &s);
	cr_assert_eq(s.succeeded, 90);
	cr_assert_eq(s.windows, UINT64_C(0x5a5a5a5a5a5a5a5a));
	weir_limiter_destroy(l);
}

/* In shared memory, the writer may have died. */
Test(observe, a_report_that_stays_half_written_does_not_stop_a_reader, .timeout = 60)
{
	struct weir_limiter *l;
	struct weir_snapshot s;

	cr_assert_eq(weir_limiter_create(NULL, &l), 0);
	feed(l, 500);
	atomic_fetch_add(&l->published->version, 1);
	weir_snapshot_init(&s);
	weir_snapshot_take(l, &s);
	cr_assert_gt(s.windows, 0);
	cr_assert_leq(s.last.count, WEIR_NUMBERS_MAX);
	weir_limiter_destroy(l);
}
