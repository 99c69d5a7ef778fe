/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits_constant.c - fixed and settable: limits that windows do not change.
 */
#include "limits.h"

Test(constant, defaults)
{
	struct weir_fixed_config fixed;
	struct weir_settable_config settable;

	cr_assert_eq(weir_limit_complete(&weir_fixed, NULL, 0, &fixed, NULL, 0), 0);
	cr_assert_eq(fixed.limit, 20);
	cr_assert_eq(weir_limit_complete(&weir_settable, NULL, 0, &settable, NULL, 0), 0);
	cr_assert_eq(settable.initial, 20);
}

Test(constant, fixed_stays)
{
	struct subject s;

	start(&s, &weir_fixed, "limit=7");
	cr_assert_eq(s.limit, 7);
	cr_assert_eq(feed(&s, sample(MS, 100)), 7);
	cr_assert_eq(feed(&s, dropped(1e12, 7)), 7);
	cr_assert_eq(feed(&s, only_dropped(0)), 7);
}

Test(constant, settable_moves_only_when_set)
{
	struct weir_limiter *l = make_limiter(&weir_settable);

	cr_assert_eq(weir_limit(l), 20);
	weir_sample_at(l, 1000, 2000, 20, WEIR_DROPPED);
	cr_assert_eq(weir_limit(l), 20);
	cr_assert_eq(weir_limit_set(l, 3), 0);
	cr_assert_eq(weir_limit(l), 3);
	weir_sample_at(l, 3000, 4000, 3, WEIR_SUCCESS);
	cr_assert_eq(weir_limit(l), 3);
	weir_limiter_destroy(l);
}

Test(constant, settable_accepts_only_valid_limits)
{
	struct weir_limiter *l = make_limiter(&weir_settable);

	cr_assert_eq(weir_limit_set(l, 0), -EINVAL);
	cr_assert_eq(weir_limit_set(l, WEIR_LIMIT_MAX + 1), -EINVAL);
	cr_assert_eq(weir_limit(l), 20);
	cr_assert_eq(weir_limit_set(l, WEIR_LIMIT_MAX), 0);
	cr_assert_eq(weir_limit(l), WEIR_LIMIT_MAX);
	cr_assert_eq(weir_limit_set(l, 1), 0);
	cr_assert_eq(weir_limit(l), 1);
	weir_limiter_destroy(l);
}

Test(constant, fixed_cannot_be_set)
{
	struct weir_limiter *l = make_limiter(&weir_fixed);

	cr_assert_eq(weir_limit_set(l, 5), -ENOTSUP);
	cr_assert_eq(weir_limit(l), 20);
	weir_limiter_destroy(l);
}
