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
