/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parking on Concurrency Kit's event count. No other file uses it.
 */

#include "lib/base/park.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ck_ec.h>

#include "lib/base/layout.h"

_Static_assert(sizeof(ck_ec32_t) <= sizeof(struct park), "an event count fits");
_Static_assert(LINE % CK_MD_CACHELINE == 0, "a line is a whole number of ck's lines");

static int park_gettime(const struct ck_ec_ops *ops, struct timespec *now)
{
	(void)ops;
	return clock_gettime(CLOCK_MONOTONIC, now);
}

/*
 * Futexes without FUTEX_PRIVATE_FLAG, so they also work between processes. errno is restored,
 * because the caller may be a signal handler.
 */
static void park_wait32(const struct ck_ec_wait_state *state, const uint32_t *word, uint32_t seen,
			const struct timespec *deadline)
{
	int saved = errno;

	(void)state;
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen, deadline, NULL, FUTEX_BITSET_MATCH_ANY);
	errno = saved;
}

static void park_wake32(const struct ck_ec_ops *ops, const uint32_t *word)
{
	int saved = errno;

	(void)ops;
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

static const struct ck_ec_ops park_ops = {
	.gettime = park_gettime,
	.wait32 = park_wait32,
	.wake32 = park_wake32,
	/* ck wakes sleepers at intervals for its single-producer mode, which is not used here:
	 * set the longest interval. */
	.initial_wait_ns = UINT32_MAX,
};

static const struct ck_ec_mode park_mode = {.ops = &park_ops, .single_producer = false};

static struct ck_ec32 *count_of(struct park *park)
{
	return (struct ck_ec32 *)(void *)park->count;
}

void park_init(struct park *park)
{
	memset(park, 0, sizeof(*park));
	ck_ec32_init(count_of(park), 0);
}

uint32_t park_look(const struct park *park)
{
	return ck_ec32_value((const struct ck_ec32 *)(const void *)park->count);
}

/*
 * Concurrency Kit ends no round of waiting before initial_wait_ns (or a second) has passed,
 * whatever the deadline. End the round at the deadline.
 */
static int park_shorten(const struct ck_ec_wait_state *state, struct timespec *round)
{
	const struct timespec *until = state->data;

	if (until != NULL && (until->tv_sec < round->tv_sec ||
			      (until->tv_sec == round->tv_sec && until->tv_nsec < round->tv_nsec)))
		*round = *until;
	return 0;
}

bool park_sleep(struct park *park, uint32_t seen, weir_time deadline)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline / WEIR_S),
		.tv_nsec = (long)(deadline % WEIR_S),
	};
	struct timespec *end = deadline == WEIR_FOREVER ? NULL : &until;

	return ck_ec32_wait_pred(count_of(park), &park_mode, seen, park_shorten, end, end) == 0;
}

void park_wake(struct park *park)
{
	ck_ec32_inc(count_of(park), &park_mode);
}
