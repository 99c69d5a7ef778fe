/* SPDX-License-Identifier: BSD-2-Clause */
/* The combiner: which thread does the work, and that any number of requests is harmless. */

#include "rig.h"

#include "lib/base/combiner.h"

#define OWNER 7

static _Atomic uint64_t pending;

static uint64_t word(void)
{
	return atomic_load_explicit(&pending, memory_order_relaxed);
}

static bool is_pending(void)
{
	uint32_t owner;

	return combiner_pending(&pending, &owner);
}

static void begin(uint32_t owner)
{
	atomic_store_explicit(&pending, 0, memory_order_relaxed);
	cr_assert(combiner_begin(&pending, owner));
}

Test(combiner, one_thread_works_and_one_more_run_serves_all_requests_made_meanwhile)
{
	begin(OWNER);
	cr_assert(is_pending());
	for (int i = 0; i < 5; i++)
		cr_assert_not(combiner_begin(&pending, OWNER + 1));
	cr_assert_not(combiner_done(&pending));
	cr_assert(is_pending());
	cr_assert(combiner_done(&pending));
	cr_assert_not(is_pending());
	cr_assert(combiner_begin(&pending, OWNER + 1));
	cr_assert_eq(combiner_owner(word()), OWNER + 1);
}

/* A compiler may remove an addition of 0, for example, and with it the ordering it is for. */
Test(combiner, each_request_changes_the_word)
{
	uint64_t before;

	begin(OWNER);
	for (int i = 0; i < 10; i++) {
		before = word();
		cr_assert_not(combiner_begin(&pending, OWNER + 1));
		cr_assert_neq(word(), before);
		cr_assert_eq(combiner_owner(word()), OWNER);
	}
}

/* Whatever another process has stored in the word. */
Test(combiner, requests_do_not_carry_into_the_owner)
{
	static const uint32_t asked[] = {1, 2, 3, 4, UINT32_MAX / 2, UINT32_MAX - 1, UINT32_MAX};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		atomic_store_explicit(&pending, (uint64_t)OWNER << 32 | asked[i],
				      memory_order_relaxed);
		for (int k = 0; k < 3; k++) {
			cr_assert_not(combiner_begin(&pending, OWNER + 1));
			cr_assert_eq(combiner_owner(word()), OWNER);
			cr_assert_neq(combiner_requests(word()), 0);
		}
		cr_assert_not(combiner_done(&pending));
		cr_assert_eq(combiner_owner(word()), OWNER);
		cr_assert(combiner_done(&pending));
	}
}

Test(combiner, recovery_serves_all_requests_with_one_run)
{
	begin(OWNER);
	cr_assert_not(combiner_begin(&pending, OWNER + 1));
	cr_assert_not(combiner_begin(&pending, OWNER + 1));
	cr_assert_not(combiner_recover(&pending, OWNER + 1, OWNER + 2));
	cr_assert(combiner_recover(&pending, OWNER, OWNER + 2));
	cr_assert_eq(combiner_owner(word()), OWNER + 2);
	cr_assert(combiner_done(&pending));
	cr_assert_not(combiner_recover(&pending, OWNER + 2, OWNER));
}
