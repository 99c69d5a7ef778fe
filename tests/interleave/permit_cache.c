/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate (lib/admission/gate.h), and the permit cache on it (lib/admission/permit_cache.h):
 * permits are taken and given back, and lent to stripes, taken up, called back and given back,
 * while the limit is set and the cache is opened and closed.
 *
 * The limit of 64 is the least with which two stripes are lent permits. Below half of it, permits
 * stay idle with the stripes. Permits that other calls hold all the time bring the few that the
 * threads need near a bound; none of these others ends.
 */

#include <string.h>

#include "lib/admission/admission.h"
#include "tests/interleave/explore.h"

#define STRIPES 2
#define LIMIT   64
#define LOWER   16
#define IDLE    2 /* permits that are idle in each stripe at first */

static struct gate gate;
static struct room room;
static struct cache_mode mode;
static struct stripe stripes[STRIPES];
static struct sampling sampling = {.config.stripes = STRIPES, .stripes = stripes};
static struct admission admission;
static uint32_t others;              /* permits that the other calls hold */
static struct permit kept, kept_too; /* held since before the threads began */
static uint32_t data;                /* of the calls that hold a permit, if only one can */
static struct ghost closed;          /* the cache was closed */
static struct ghost held;            /* permits of the threads' calls */
static struct ghost refused;         /* releases that were not of a permit held */

static void begin(uint32_t limit)
{
	memset(stripes, 0, sizeof(stripes));
	admission = (struct admission){
		.gate = &gate,
		.room = &room,
		.limit_max = LIMIT,
		.cache = {.shared = &mode, .gate = &gate, .sampling = &sampling, .count = STRIPES},
	};
	cache_init(&admission.cache);
	admission_init(&admission, &(struct admission_config){.count = 0}, limit, 0);
	others = data = 0;
	closed = held = refused = (struct ghost){0};
	explore_name(&gate.word, "gate");
	explore_name(&gate.lent, "lent");
	explore_name(&room.learned, "learned");
	explore_name(&room.retuning, "retuning");
	explore_name(&mode.mode, "mode");
	explore_name(&mode.quota, "quota");
	explore_name(&mode.far, "far");
	explore_name(&stripes[0].cached, "stripe 0");
	explore_name(&stripes[1].cached, "stripe 1");
}

static bool reserve(uint32_t cost, struct permit *permit)
{
	const struct request request = {.cost = cost};

	return admission_reserve(&admission, &request, permit) == ADMITTED;
}

static bool give_back(const struct permit *permit)
{
	return admission_give_back(&admission, 0, permit->cost, permit->home).held;
}

static void open_cache(void)
{
	cache_note_window(&admission.cache, 0, LIMIT);
	admission_retune(&admission);
}

static void close_cache(void)
{
	(void)cache_close(&admission.cache);
}

/* Leave that many idle permits with the stripe of that CPU. */
static void lend(unsigned cpu, uint32_t count)
{
	struct permit permits[IDLE];

	explore_cpu(cpu);
	for (uint32_t i = 0; i < count; i++)
		require(reserve(1, &permits[i]) && permits[i].home == cpu + 1);
	for (uint32_t i = 0; i < count; i++)
		require(give_back(&permits[i]));
	explore_cpu(0);
}

static void hold_others(uint32_t count)
{
	struct permit permit;

	others = count;
	require(count == 0 || reserve(count, &permit));
}

static void setup_open(uint32_t count)
{
	begin(LIMIT);
	open_cache();
	hold_others(count);
	require(cache_is(cache_mode(&admission.cache), CACHE_OPEN));
}

/* Begin a call. What it takes must be within the limit. */
static bool enter(uint32_t cost, struct permit *permit)
{
	if (!reserve(cost, permit))
		return false;
	require(permit->cost >= 1 && permit->cost <= cost);
	require(ghost_add(&held, permit->cost) + others <= LIMIT);
	return true;
}

static void leave(const struct permit *permit)
{
	ghost_add(&held, -(long)permit->cost);
	if (!give_back(permit))
		ghost_add(&refused, 1);
}

static void call(void)
{
	struct permit permit;

	if (enter(1, &permit))
		leave(&permit);
}

/* One call after the other, on different CPUs. */
static void call_twice(void)
{
	explore_cpu(0);
	call();
	explore_cpu(1);
	call();
}

/* In the end all permits are back, at the gate or idle. */
static void check_returned(void)
{
	const struct held now = cache_held(&admission.cache);

	require(ghost_get(&refused) == 0);
	require(now.least == others && now.most == others);
	(void)cache_close(&admission.cache);
	require(gate_taken(gate_read(&gate)) == others);
	require(!gate_lends(&gate));
}

/* gate.limit: the limit falls to zero and rises again. */

static void setup_gate_limit(void)
{
	begin(3);
}

/* Reserve at the gate alone: its last step is the admission, so the limit is that of this step. */
static void reserve_at_gate(uint32_t want)
{
	uint32_t inflight = 0, cost = gate_reserve(&gate, want, 0, false, &inflight);
	uint32_t limit = gate_limit(explore_newest(&gate.word));

	require(cost > 0 || inflight == 0);
	if (cost == 0)
		return;
	require(cost <= want && inflight >= cost && inflight <= limit);
	require(ghost_add(&held, cost) <= limit);
	ghost_add(&held, -(long)cost);
	require(gate_held(gate_subtract(&gate, cost), cost));
}

static void reserve_three(void)
{
	reserve_at_gate(3);
}

static void reserve_one(void)
{
	reserve_at_gate(1);
}

static void lower_and_raise(void)
{
	require(gate_set_limit(&gate, 0, UINT32_MAX));
	require(gate_set_limit(&gate, 2, UINT32_MAX));
}

static void check_gate_limit(void)
{
	require(gate_taken(gate_read(&gate)) == 0 && gate_limit(gate_read(&gate)) == 2);
}

/* gate.data: with a limit of one, each call sees what the one before it wrote. */

static void setup_gate_data(void)
{
	begin(1);
}

static void call_with_data(void)
{
	struct permit permit;

	if (!enter(1, &permit))
		return;
	data++;
	leave(&permit);
}

/* gate.copy: one permit is given back twice, while another call looks for room. */

static void setup_gate_copy(void)
{
	begin(1);
	require(reserve(1, &kept));
}

static void release_kept(void)
{
	if (!give_back(&kept))
		ghost_add(&refused, 1);
}

static void check_gate_copy(void)
{
	require(ghost_get(&refused) == 1);
	require(gate_taken(gate_read(&gate)) == 0);
}

/* cache.idle: permits are idle, and a call needs more than what is free without them. */

#define OTHERS 20
#define MOST   (LIMIT - OTHERS) /* what is left for the threads */

static void setup_idle(void)
{
	setup_open(OTHERS);
	lend(0, IDLE);
	lend(1, IDLE);
}

static void must_call(void)
{
	struct permit permit;

	require(enter(1, &permit));
	leave(&permit);
}

static void must_call_for_all_but_two(void)
{
	struct permit permit;

	require(enter(MOST - 2, &permit));
	leave(&permit);
}

/* cache.closed: the same when another thread has called back what is idle. */

static bool is_closed(void)
{
	return ghost_get(&closed) != 0;
}

static void close_and_tell(void)
{
	close_cache();
	ghost_add(&closed, 1);
}

static void must_call_when_closed(void)
{
	struct permit permit;

	explore_await(is_closed);
	require(enter(MOST, &permit));
	leave(&permit);
}

/* cache.open: the cache is opened while a call needs what is left. */

static void setup_shut(void)
{
	begin(LIMIT);
	hold_others(LIMIT / 4); /* as many as the cache is opened with */
}

static void must_call_for_the_rest(void)
{
	struct permit permit;

	require(enter(LIMIT - LIMIT / 4 - 1, &permit));
	leave(&permit);
}

/* cache.reopen: the cache is closed by the call that needs what is left, and opened again. */

static void setup_open_idle(void)
{
	setup_open(LIMIT / 4);
	lend(0, IDLE);
}

/* cache.sweep: the stripe is used again while a thread that swept it has yet to go on. */

static void setup_lent(void)
{
	setup_open(0);
	lend(0, IDLE);
}

static void close_open_and_call(void)
{
	struct permit permits[IDLE];

	close_cache();
	open_cache();
	explore_cpu(0);
	for (unsigned i = 0; i < IDLE; i++)
		require(enter(1, &permits[i]));
	require(gate_taken(explore_newest(&gate.word)) >= IDLE);
	for (unsigned i = 0; i < IDLE; i++)
		leave(&permits[i]);
}

/* cache.limit: two calls take all that is left, so each excludes all others. */

static void call_for_all(void)
{
	struct permit permit;

	if (!enter(MOST, &permit))
		return;
	data++;
	leave(&permit);
}

/* cache.take: the stripe may have one permit only, so its holders exclude each other. */

static void setup_one_lent(void)
{
	setup_open(0);
	lend(0, 1);
	atomic_store(&mode.quota, 1);
}

static void call_with_lent(void)
{
	struct permit permit;

	explore_cpu(0);
	if (!enter(1, &permit))
		return;
	if (permit.home == 1)
		data++;
	leave(&permit);
}

/* cache.lower: the limit falls to one more than the others hold. */

static bool is_lower(void)
{
	return gate_limit(explore_newest(&gate.word)) == LOWER;
}

static void setup_lower(void)
{
	setup_open(LOWER - 1);
	lend(0, 1);
	lend(1, 1);
}

static void setup_lower_shut(void)
{
	begin(LIMIT);
	hold_others(LOWER - 1);
}

static void lower(void)
{
	atomic_store_explicit(&room.learned, LOWER, memory_order_relaxed);
	admission_retune(&admission);
}

/* Two calls at once on two CPUs, when the lower limit is in force. */
static void call_when_lower(void)
{
	struct permit permits[STRIPES];
	bool entered[STRIPES];

	explore_await(is_lower);
	for (unsigned i = 0; i < STRIPES; i++) {
		explore_cpu(i);
		entered[i] = enter(1, &permits[i]);
	}
	require(!entered[0] || !entered[1]);
	for (unsigned i = 0; i < STRIPES; i++)
		if (entered[i])
			leave(&permits[i]);
}

static void call_until_lower(void)
{
	call_twice();
	call_when_lower();
}

static void check_lower(void)
{
	check_returned();
	require(is_lower());
}

/* cache.give_back: a permit of the gate's is given back while one is lent and another comes back. */

static void setup_give_back(void)
{
	setup_open(0);
	require(reserve(1, &kept_too) && kept_too.home == 1);
	close_cache();
	require(reserve(1, &kept) && kept.home == 0);
}

static void open_and_call(void)
{
	open_cache();
	call();
}

static void release_kept_too(void)
{
	if (!give_back(&kept_too))
		ghost_add(&refused, 1);
}

/*
 * cache.copy: the same permit is given back twice, while one is lent and taken up. If the copy's
 * release closes the cache first, that permit is the gate's own, and the copy may end it.
 */

static void setup_copy(void)
{
	setup_give_back();
	require(give_back(&kept_too));
	open_cache();
	lend(1, 1);
}

static void enter_and_stay(void)
{
	explore_cpu(1);
	require(enter(1, &kept_too));
}

static void check_copy(void)
{
	if (kept_too.home != 0)
		require(gate_taken(gate_read(&gate)) == 1);
	release_kept_too();
	require(ghost_get(&refused) == 1);
	close_cache();
	require(gate_taken(gate_read(&gate)) == 0 && !gate_lends(&gate));
}

/* cache.held: one permit is held all the time, and others are idle. */

static void setup_held(void)
{
	setup_idle();
	require(reserve(1, &kept) && kept.home == 1);
}

static void look_at_held(void)
{
	const struct held now = cache_held(&admission.cache);

	require(now.least <= OTHERS + 2 && now.most >= OTHERS + 1);
}

static void check_held(void)
{
	leave(&kept);
	ghost_add(&held, 1);
	check_returned();
}

static const struct scene scenes[] = {
	{
		.name = "gate.limit",
		.claim = "no call is admitted above the limit of that moment, and none at zero",
		.setup = setup_gate_limit,
		.threads = {reserve_three, reserve_one, lower_and_raise},
		.check = check_gate_limit,
		.preemptions = 3,
	},
	{
		.name = "gate.data",
		.claim = "what the last holder of a permit wrote is visible to the next",
		.setup = setup_gate_data,
		.threads = {call_with_data, call_with_data, call_with_data},
		.check = check_returned,
	},
	{
		.name = "gate.copy",
		.claim = "of two releases of one permit, one is refused and changes nothing",
		.setup = setup_gate_copy,
		.threads = {release_kept, release_kept, call},
		.check = check_gate_copy,
		.preemptions = 3,
	},
	{
		.name = "cache.idle",
		.claim = "no call is refused because permits are idle",
		.setup = setup_idle,
		.threads = {must_call, must_call, must_call_for_all_but_two},
		.check = check_returned,
	},
	{
		.name = "cache.closed",
		.claim = "a call that sees the cache shut sees what was given back before",
		.setup = setup_idle,
		.threads = {close_and_tell, must_call_when_closed},
		.check = check_returned,
		.stale = 2, /* a costly call reads the gate twice */
	},
	{
		.name = "cache.open",
		.claim = "no call is refused because the cache is opened meanwhile",
		.setup = setup_shut,
		.threads = {open_cache, call_twice, must_call_for_the_rest},
		.check = check_returned,
	},
	{
		.name = "cache.reopen",
		.claim = "the same when it was closed before",
		.setup = setup_open_idle,
		.threads = {open_cache, call_twice, must_call_for_the_rest},
		.check = check_returned,
	},
	{
		.name = "cache.sweep",
		.claim = "a permit that was swept is not taken up",
		.setup = setup_lent,
		.threads = {close_cache, close_open_and_call},
		.check = check_returned,
		.preemptions = 3,
	},
	{
		.name = "cache.limit",
		.claim = "no more than the limit is held, and each holder sees what the last wrote",
		.setup = setup_idle,
		.threads = {call_with_data, call_for_all, call_for_all},
		.check = check_returned,
	},
	{
		.name = "cache.take",
		.claim = "what the last holder of a lent permit wrote is visible to the next",
		.setup = setup_one_lent,
		.threads = {call_with_lent, call_with_lent, call_with_lent},
		.check = check_returned,
	},
	{
		.name = "cache.lower",
		.claim = "a lower limit holds at once, though permits are idle",
		.setup = setup_lower,
		.threads = {lower, call_when_lower, call},
		.check = check_lower,
	},
	{
		.name = "cache.lower.open",
		.claim = "a lower limit holds at once, though the cache is opened meanwhile",
		.setup = setup_lower_shut,
		.threads = {lower, call_until_lower, open_cache},
		.check = check_lower,
	},
	{
		.name = "cache.give_back",
		.claim = "no release of a permit that is held is refused",
		.setup = setup_give_back,
		.threads = {release_kept, open_and_call, release_kept_too},
		.check = check_returned,
	},
	{
		.name = "cache.copy",
		.claim = "the release of a token's copy does not give back what is lent",
		.setup = setup_copy,
		.threads = {release_kept, release_kept, enter_and_stay},
		.check = check_copy,
	},
	{
		.name = "cache.held",
		.claim = "a count includes each permit held all the time, and none that is idle",
		.setup = setup_held,
		.threads = {look_at_held, call, close_cache},
		.check = check_held,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
