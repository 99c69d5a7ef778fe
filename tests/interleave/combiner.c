/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The combiner (lib/base/combiner.h): a thread notes what it wants and requests a run; a run begins
 * with a look at what all threads want.
 */

#include <stdatomic.h>
#include <string.h>

#include "lib/base/combiner.h"
#include "tests/interleave/explore.h"

#define RELAXED memory_order_relaxed

static _Atomic uint64_t pending;
static _Atomic uint32_t wanted[SCENE_THREADS]; /* how often each thread wanted a run */
static uint32_t served[SCENE_THREADS];         /* as a run saw it; the runner's */
static _Atomic uint32_t shown[SCENE_THREADS];  /* the same, for others to see */
static struct ghost requests[SCENE_THREADS];   /* that were made, by each thread */
static struct ghost runs[SCENE_THREADS];       /* 1: the thread runs */

static void setup(void)
{
	atomic_init(&pending, 0);
	memset(wanted, 0, sizeof(wanted));
	memset(served, 0, sizeof(served));
	memset(requests, 0, sizeof(requests));
	memset(runs, 0, sizeof(runs));
	memset(shown, 0, sizeof(shown));
	explore_name(&pending, "pending");
	explore_name(&wanted[0], "wanted 0");
	explore_name(&wanted[1], "wanted 1");
	explore_name(&wanted[2], "wanted 2");
	explore_name(&wanted[3], "wanted 3");
}

/* Processes are numbered from 1. */
static uint32_t owner_number(void)
{
	return explore_self() + 1;
}

static void work(void)
{
	ghost_add(&runs[explore_self()], 1);
	for (unsigned i = 0; i < SCENE_THREADS; i++)
		require(i == explore_self() || ghost_get(&runs[i]) == 0 || explore_died(i));
	for (unsigned i = 0; i < SCENE_THREADS; i++) {
		served[i] = atomic_load_explicit(&wanted[i], RELAXED);
		atomic_store_explicit(&shown[i], served[i], RELAXED);
	}
	ghost_add(&runs[explore_self()], -1);
}

/* Note one more, and request a run. True: the caller must do it. */
static bool request(void)
{
	const unsigned self = explore_self();
	const uint32_t before = atomic_load_explicit(&wanted[self], RELAXED);
	bool mine;

	atomic_store_explicit(&wanted[self], before + 1, RELAXED);
	mine = combiner_begin(&pending, owner_number());
	ghost_add(&requests[self], 1);
	return mine;
}

static void run_until_done(void)
{
	do {
		work();
	} while (!combiner_done(&pending));
}

static void ask(void)
{
	if (request())
		run_until_done();
}

static void ask_twice(void)
{
	ask();
	ask();
}

/* Each run is the one after which another thread may take over. */
static void ask_in_turns(void)
{
	uint32_t rounds;

	if (!request())
		return;
	do {
		work();
		rounds = COMBINER_TURN - 1;
	} while (!combiner_over(&pending, owner_number(), &rounds));
}

/* If no run is going on after a request, it was served, and what the run wrote is visible. */
static void ask_and_look(void)
{
	const unsigned self = explore_self();
	uint32_t owner;

	ask();
	if (combiner_pending(&pending, &owner))
		require(owner >= 1 && owner <= 2 && owner != self + 1);
	else
		require(atomic_load_explicit(&shown[self], RELAXED) == 1);
}

/* Afterwards every request was served, and no run is going on. */
static void check_served(void)
{
	require(atomic_load(&pending) == 0);
	for (unsigned i = 0; i < SCENE_THREADS; i++)
		require((long)served[i] >= ghost_get(&requests[i]));
}

/* Take over what the first thread left, as a reaper does for a dead process. */
static void recover_first(void)
{
	explore_await_end(0);
	if (!combiner_recover(&pending, 1, owner_number()))
		return;
	require(explore_died(0));
	require(combiner_owner(atomic_load_explicit(&pending, RELAXED)) == owner_number());
	run_until_done();
}

static const struct scene scenes[] = {
	{
		.name = "combiner.served",
		.claim = "a run that begins after each request serves it, and one thread runs",
		.setup = setup,
		.threads = {ask, ask, ask_twice},
		.check = check_served,
		.preemptions = 3,
	},
	{
		.name = "combiner.four",
		.claim = "requests during a run need not be counted, but each one is seen",
		.setup = setup,
		.threads = {ask, ask, ask, ask},
		.check = check_served,
	},
	{
		.name = "combiner.turns",
		.claim = "a thread that leaves the work to others leaves no request unserved",
		.setup = setup,
		.threads = {ask_in_turns, ask_in_turns, ask_in_turns},
		.check = check_served,
	},
	{
		.name = "combiner.pending",
		.claim = "if no run is going on, what the last one wrote is visible",
		.setup = setup,
		.threads = {ask, ask_and_look},
		.check = check_served,
		.preemptions = 3,
		.stale = 2,
	},
	{
		.name = "combiner.recover",
		.claim =
			"a dead process's run is taken over, with all requests, and no other run is",
		.setup = setup,
		.threads = {ask_twice, ask, recover_first},
		.check = check_served,
		.mortal = 1,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
