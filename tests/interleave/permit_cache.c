/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The permit cache and the gate under it (lib/admission/permit_cache.h): permits are lent to
 * stripes, taken up, called back and given back, while the cache is opened and closed.
 */

#include <string.h>

#include "lib/admission/admission.h"
#include "tests/interleave/explore.h"

#define STRIPES 2
#define LIMIT   64 /* the least with which two stripes are lent permits */
#define OTHERS  62 /* permits that calls hold all the time: two are left */

static struct gate gate;
static struct room room;
static struct cache_mode mode;
static struct stripe stripes[STRIPES];
static struct sampling sampling = {.config.stripes = STRIPES, .stripes = stripes};
static struct admission admission;
static struct ghost held;    /* permits that calls know they hold */
static struct ghost refused; /* calls of thread 2 that were refused */

static void begin(void)
{
	memset(stripes, 0, sizeof(stripes));
	admission = (struct admission){
		.gate = &gate,
		.room = &room,
		.limit_max = LIMIT,
		.cache = {.shared = &mode, .gate = &gate, .sampling = &sampling, .count = STRIPES},
	};
	cache_init(&admission.cache);
	admission_init(&admission, &(struct admission_config){.count = 0}, LIMIT, 0);
	held = refused = (struct ghost){0};
	explore_name(&gate.word, "gate");
	explore_name(&gate.lent, "lent");
	explore_name(&mode.mode, "mode");
	explore_name(&mode.quota, "quota");
	explore_name(&mode.far, "far");
	explore_name(&stripes[0].cached, "stripe 0");
	explore_name(&stripes[1].cached, "stripe 1");
}

/* The cache is open, and two permits are free. */
static void setup_open(void)
{
	uint32_t inflight;

	begin();
	cache_note_window(&admission.cache, 0, LIMIT);
	require(cache_may_open(&admission.cache));
	admission_retune(&admission);
	require(cache_is(cache_mode(&admission.cache), CACHE_OPEN));
	require(gate_reserve(&gate, OTHERS, 0, false, &inflight) == OTHERS);
}

static bool enter(struct permit *permit)
{
	const struct request request = {.cost = 1};

	if (admission_reserve(&admission, &request, permit) != ADMITTED)
		return false;
	require(ghost_add(&held, 1) <= LIMIT - OTHERS);
	return true;
}

static void leave(const struct permit *permit)
{
	ghost_add(&held, -1);
	if (permit->home != 0)
		require(cache_give_back(&admission.cache, permit->home).held);
	else
		require(admission_give_back(&admission, 0, permit->cost).held);
}

static void call(void)
{
	struct permit permit;

	if (enter(&permit))
		leave(&permit);
}

static void call_after_first(void)
{
	struct permit permit;

	explore_await_end(0);
	require(enter(&permit));
	leave(&permit);
}

/* After all threads: the permits are back, at the gate or idle. */
static void check_returned(void)
{
	const struct held now = cache_held(&admission.cache);

	require(now.least == OTHERS && now.most == OTHERS);
	(void)cache_close(&admission.cache);
	require(gate_inflight(gate_read(&gate)) == OTHERS);
	require(!gate_lends(&gate));
}

static const struct scene scenes[] = {
	{
		.name = "cache.limit",
		.claim = "no more than the limit is held, and all permits come back",
		.setup = setup_open,
		.threads = {call, call, call},
		.check = check_returned,
	},
	{
		.name = "cache.idle",
		.claim = "a call that finds room only in another stripe is admitted",
		.setup = setup_open,
		.threads = {call, call_after_first},
		.check = check_returned,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
