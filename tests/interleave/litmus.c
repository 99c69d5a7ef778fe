/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The explorer itself: the classic litmus tests come out as C11 says. For each one the explorer
 * must show every result that C11 allows, and no other. Load buffering (LB) is the exception that
 * memory.h names.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/interleave/explore.h"

#define RELAXED memory_order_relaxed
#define ACQUIRE memory_order_acquire
#define RELEASE memory_order_release
#define SEQ_CST memory_order_seq_cst

static _Atomic uint32_t x, y;
static uint32_t data;
static struct ghost r[4]; /* what the threads read */
static unsigned shown;    /* bit i: the result i was seen */

static void setup(void)
{
	atomic_init(&x, 0);
	atomic_init(&y, 0);
	data = 0;
	memset(r, 0, sizeof(r));
}

static void put(_Atomic uint32_t *word, uint32_t value, memory_order order)
{
	atomic_store_explicit(word, value, order);
}

static void get(unsigned i, _Atomic uint32_t *word, memory_order order)
{
	ghost_add(&r[i], (long)atomic_load_explicit(word, order));
}

/* The result as a number: a bit for each value read. */
static void check_bits(void)
{
	unsigned result = 0;

	for (unsigned i = 0; i < 4; i++)
		result |= (unsigned)(ghost_get(&r[i]) & 1) << i;
	shown |= 1u << result;
}

/* The same of values from 0 to 2: two digits to the base of 3. */
static void check_pair(void)
{
	shown |= 1u << (ghost_get(&r[0]) * 3 + ghost_get(&r[1]));
}

/* Which stores came last. */
static void check_last(void)
{
	shown |= 1u << ((x == 1 ? 1u : 0u) | (y == 1 ? 2u : 0u));
}

/* SB: each thread stores its word, and reads the other's. */
static void sb_0(void)
{
	put(&x, 1, RELAXED);
	get(0, &y, RELAXED);
}

static void sb_1(void)
{
	put(&y, 1, RELAXED);
	get(1, &x, RELAXED);
}

static void sb_sc_0(void)
{
	put(&x, 1, SEQ_CST);
	get(0, &y, SEQ_CST);
}

static void sb_sc_1(void)
{
	put(&y, 1, SEQ_CST);
	get(1, &x, SEQ_CST);
}

static void sb_fence_0(void)
{
	put(&x, 1, RELAXED);
	atomic_thread_fence(SEQ_CST);
	get(0, &y, RELAXED);
}

static void sb_fence_1(void)
{
	put(&y, 1, RELAXED);
	atomic_thread_fence(SEQ_CST);
	get(1, &x, RELAXED);
}

static void sb_fence_weak_0(void)
{
	put(&x, 1, RELEASE);
	atomic_thread_fence(memory_order_acq_rel);
	get(0, &y, ACQUIRE);
}

static void sb_fence_weak_1(void)
{
	put(&y, 1, RELEASE);
	atomic_thread_fence(memory_order_acq_rel);
	get(1, &x, ACQUIRE);
}

/* An addition of zero whose value is not used orders nothing: compilers leave it out. */
static void sb_zero_0(void)
{
	put(&x, 1, RELAXED);
	(void)atomic_fetch_add_explicit(&x, 0, memory_order_acq_rel);
	get(0, &y, RELAXED);
}

static void sb_zero_1(void)
{
	put(&y, 1, RELAXED);
	(void)atomic_fetch_add_explicit(&y, 0, memory_order_acq_rel);
	get(1, &x, RELAXED);
}

/* MP: x is the message, y says that it is there. */
static void mp_0(void)
{
	put(&x, 1, RELAXED);
	put(&y, 1, RELAXED);
}

static void mp_1(void)
{
	get(0, &y, RELAXED);
	get(1, &x, RELAXED);
}

static void mp_ra_0(void)
{
	put(&x, 1, RELAXED);
	put(&y, 1, RELEASE);
}

static void mp_ra_1(void)
{
	get(0, &y, ACQUIRE);
	get(1, &x, RELAXED);
}

static void mp_fence_0(void)
{
	put(&x, 1, RELAXED);
	atomic_thread_fence(RELEASE);
	put(&y, 1, RELAXED);
}

static void mp_fence_1(void)
{
	get(0, &y, RELAXED);
	atomic_thread_fence(ACQUIRE);
	get(1, &x, RELAXED);
}

/* A read-modify-write, even a relaxed one, carries on what the release before it carries. */
static void mp_update_1(void)
{
	(void)atomic_fetch_add_explicit(&y, 2, RELAXED);
}

static void mp_update_2(void)
{
	const uint32_t seen = atomic_load_explicit(&y, ACQUIRE);

	ghost_add(&r[0], seen == 3);
	get(1, &x, RELAXED);
}

/* The same with plain data: no race is reported, as the reader looks at y first. */
static void mp_data_0(void)
{
	data = 1;
	put(&y, 1, RELEASE);
}

static void mp_data_1(void)
{
	if (atomic_load_explicit(&y, ACQUIRE) == 1)
		ghost_add(&r[0], (long)data);
}

static void mp_race_1(void)
{
	if (atomic_load_explicit(&y, RELAXED) == 1)
		ghost_add(&r[0], (long)data);
}

/* LB: each thread reads one word, and stores the other. */
static void lb_0(void)
{
	get(0, &x, RELAXED);
	put(&y, 1, RELAXED);
}

static void lb_1(void)
{
	get(1, &y, RELAXED);
	put(&x, 1, RELAXED);
}

/* IRIW: two threads see two independent stores, perhaps in different orders. */
static void store_x(void)
{
	put(&x, 1, RELEASE);
}

static void store_y(void)
{
	put(&y, 1, RELEASE);
}

static void iriw_2(void)
{
	get(0, &x, ACQUIRE);
	get(1, &y, ACQUIRE);
}

static void iriw_3(void)
{
	get(2, &y, ACQUIRE);
	get(3, &x, ACQUIRE);
}

static void store_x_sc(void)
{
	put(&x, 1, SEQ_CST);
}

static void store_y_sc(void)
{
	put(&y, 1, SEQ_CST);
}

static void iriw_sc_2(void)
{
	get(0, &x, SEQ_CST);
	get(1, &y, SEQ_CST);
}

static void iriw_sc_3(void)
{
	get(2, &y, SEQ_CST);
	get(3, &x, SEQ_CST);
}

/* CoRR: two reads of one word do not go back in its history. */
static void corr_0(void)
{
	put(&x, 1, RELAXED);
	put(&x, 2, RELAXED);
}

static void corr_1(void)
{
	get(0, &x, RELAXED);
	get(1, &x, RELAXED);
}

/* 2+2W: each thread stores both words; the first store of each may come last. */
static void ww_0(void)
{
	put(&x, 1, RELAXED);
	put(&y, 2, RELAXED);
}

static void ww_1(void)
{
	put(&y, 1, RELAXED);
	put(&x, 2, RELAXED);
}

static void ww_sc_0(void)
{
	put(&x, 1, SEQ_CST);
	put(&y, 2, SEQ_CST);
}

static void ww_sc_1(void)
{
	put(&y, 1, SEQ_CST);
	put(&x, 2, SEQ_CST);
}

/* Two additions are never lost. */
static void add(void)
{
	(void)atomic_fetch_add_explicit(&x, 1, RELAXED);
}

static void check_sum(void)
{
	shown |= 1u << x;
}

/* An addition that is a load and a store is lost. */
static void add_in_two(void)
{
	put(&x, atomic_load_explicit(&x, RELAXED) + 1, RELAXED);
}

#define ALL(n) ((1u << (n)) - 1)

#define TEST(title, says, results, last, ...)                                                      \
	{                                                                                          \
		.scene = {.name = title,                                                           \
			  .claim = says,                                                           \
			  .setup = setup,                                                          \
			  .threads = {__VA_ARGS__},                                                \
			  .check = last,                                                           \
			  .preemptions = 4,                                                        \
			  .stale = 4},                                                             \
		.allowed = results,                                                                \
	}

static const struct {
	struct scene scene;
	unsigned allowed; /* results, as bits; none: it must be reported as a failure */
} tests[] = {
	TEST("SB", "both may read 0", ALL(4), check_bits, sb_0, sb_1),
	TEST("SB.seq_cst", "not both read 0", ALL(4) & ~1u, check_bits, sb_sc_0, sb_sc_1),
	TEST("SB.fence", "not both read 0", ALL(4) & ~1u, check_bits, sb_fence_0, sb_fence_1),
	TEST("SB.acq_rel", "both may read 0", ALL(4), check_bits, sb_fence_weak_0, sb_fence_weak_1),
	TEST("SB.zero", "both may read 0", ALL(4), check_bits, sb_zero_0, sb_zero_1),
	TEST("MP", "the message may be missing", ALL(4), check_bits, mp_0, mp_1),
	TEST("MP.acquire", "the message is there", ALL(4) & ~(1u << 1), check_bits, mp_ra_0,
	     mp_ra_1),
	TEST("MP.fence", "the message is there", ALL(4) & ~(1u << 1), check_bits, mp_fence_0,
	     mp_fence_1),
	TEST("MP.update", "the message is there", ALL(4) & ~(1u << 1), check_bits, mp_ra_0,
	     mp_update_1, mp_update_2),
	TEST("MP.data", "the data are there", ALL(2), check_bits, mp_data_0, mp_data_1),
	TEST("MP.race", "the race is reported", 0, check_bits, mp_data_0, mp_race_1),
	TEST("LB", "not both read 1 (C11 allows it; see memory.h)", ALL(4) & ~(1u << 3), check_bits,
	     lb_0, lb_1),
	TEST("IRIW", "the readers may differ", ALL(16), check_bits, store_x, store_y, iriw_2,
	     iriw_3),
	TEST("IRIW.seq_cst", "the readers agree", ALL(16) & ~(1u << 5), check_bits, store_x_sc,
	     store_y_sc, iriw_sc_2, iriw_sc_3),
	TEST("CoRR", "reads do not go back", ALL(9) & ~(1u << 3 | 1u << 6 | 1u << 7), check_pair,
	     corr_0, corr_1),
	TEST("2+2W", "both first stores may be last", ALL(4), check_last, ww_0, ww_1),
	TEST("2+2W.seq_cst", "one first store is not last", ALL(4) & ~(1u << 3), check_last,
	     ww_sc_0, ww_sc_1),
	TEST("RMW", "no addition is lost", 1u << 2, check_sum, add, add),
	TEST("RMW.split", "an addition may be lost", 1u << 1 | 1u << 2, check_sum, add_in_two,
	     add_in_two),
};

int main(int argc, char **argv)
{
	int status = 0;

	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		const struct scene *scene = &tests[i].scene;
		bool failed;

		shown = 0;
		failed = explore(argc, argv, scene, 1) != 0;
		if (failed == (tests[i].allowed == 0) && (failed || shown == tests[i].allowed))
			continue;
		printf("%s: FAILED: results %#x, not %#x\n", scene->name, shown, tests[i].allowed);
		status = 1;
	}
	return status;
}
