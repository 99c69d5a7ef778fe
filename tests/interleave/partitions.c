/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Partitions (lib/admission/admission.h): calls take permits from their partition's word and from
 * the gate, borrow, and reserve, while limits and shares are put into force; and waiters of
 * partitions (lib/wait/slots.h, lib/wait/grant.c), some of which are stuck at their own cap.
 *
 * There are two partitions, 0 and 1.
 */

#include <errno.h>
#include <string.h>

#include <weir/weir.h>

#include "lib/limiter/limiter.h"
#include "lib/wait/slots.h"
#include "tests/interleave/explore.h"

#define PARTS 2
#define SLOTS 2
#define MOST  64 /* the highest limit: the least with which two stripes are lent permits */
#define HOLD  1000

#define STRIPES 2

static struct gate gate;
static struct room room;
static struct cache_mode mode;
static struct stripe stripes[STRIPES];
static const struct sampling sampling = {.config.stripes = STRIPES, .stripes = stripes};
static struct part parts[PARTS];
static struct queue queue;
static struct slot slots[SLOTS];
static struct row rows[PARTS];
static _Atomic uint64_t free_slots, fresh;
static struct callback callbacks[SLOTS];
static struct admission admission;
static struct queueing q;

static struct permit kept, kept_too; /* held since before the threads began */
static struct weir_wait waiter;      /* that waited before */
static struct ghost held;            /* permits of the threads' calls */
static struct ghost refused;         /* releases that were not of a permit held */
static struct ghost raised;          /* a level was raised */
static long limit;                   /* of held */

static void name_words(void)
{
	explore_name(&gate.word, "gate");
	explore_name(&gate.lent, "lent");
	explore_name(&mode.mode, "mode");
	explore_name(&stripes[0].cached, "stripe 0");
	explore_name(&stripes[1].cached, "stripe 1");
	explore_name(&room.learned, "learned");
	explore_name(&room.retuning, "retuning");
	explore_name(&parts[0].own.word, "own 0");
	explore_name(&parts[1].own.word, "own 1");
	explore_name(&parts[0].guarantee, "guarantee 0");
	explore_name(&parts[1].guarantee, "guarantee 1");
	explore_name(&parts[0].peak, "peak 0");
	explore_name(&parts[1].peak, "peak 1");
	explore_name(&parts[0].before, "before 0");
	explore_name(&parts[1].before, "before 1");
	explore_name(&parts[0].since, "since 0");
	explore_name(&parts[1].since, "since 1");
	explore_name(&queue.pending, "pending");
	explore_name(&queue.news, "news");
	explore_name(&fresh, "fresh");
	explore_name(&free_slots, "free");
	explore_name(&slots[0].state, "state 0");
	explore_name(&slots[1].state, "state 1");
	explore_name(&slots[0].park, "park 0");
	explore_name(&slots[1].park, "park 1");
}

/* Shares of the limit, and partition 1's cap, in permits of it. */
static void begin(uint32_t permits, uint32_t share_0, uint32_t share_1, uint32_t cap_1)
{
	const struct weir_partition settings[PARTS] = {
		{.share = (double)share_0 / permits, .cap = 1, .max = WEIR_LIMIT_MAX},
		{.share = (double)share_1 / permits,
		 .cap = (double)cap_1 / permits,
		 .max = WEIR_LIMIT_MAX},
	};
	const struct admission_config config = {.partitions = settings, .count = PARTS};

	memset(slots, 0, sizeof(slots));
	memset(stripes, 0, sizeof(stripes));
	q = (struct queueing){
		.config = {.slots = SLOTS, .rows = PARTS, .order = WEIR_FIFO},
		.queue = &queue,
		.slots = slots,
		.rows = rows,
		.free = &free_slots,
		.fresh = &fresh,
		.callbacks = callbacks,
		.admission = &admission,
	};
	admission = (struct admission){
		.gate = &gate,
		.room = &room,
		.parts = parts,
		.count = PARTS,
		.limit_max = MOST,
		.hold = HOLD,
		.cache = {.shared = &mode, .gate = &gate},
	};
	cache_init(&admission.cache);
	admission_init(&admission, &config, permits, 0);
	queue_init(&q);
	held = refused = raised = (struct ghost){0};
	limit = permits;
	name_words();
}

/* As limiter_reserve(), but for the refused call's reservation. */
static enum decision decide(uint16_t part, uint32_t cost, struct permit *permit)
{
	const struct request request = {.part = part, .cost = cost};
	const enum decision decision = admission_reserve(&admission, &request, permit);

	if (permit->drain)
		queue_drain(&q, 1);
	return decision;
}

static bool reserve(uint16_t part, uint32_t cost, struct permit *permit)
{
	return decide(part, cost, permit) == ADMITTED;
}

static void give_back(uint16_t part, const struct permit *permit)
{
	const struct returned returned = admission_give_back(&admission, part, permit->cost,
							     permit->home);

	if (!returned.held)
		ghost_add(&refused, 1);
	if (returned.drain)
		queue_drain(&q, 1);
}

static void hold(const struct permit *permit)
{
	require(permit->cost > 0);
	require(ghost_add(&held, permit->cost) <= limit);
}

static void release(uint16_t part, const struct permit *permit)
{
	ghost_add(&held, -(long)permit->cost);
	give_back(part, permit);
}

static void keep(uint16_t part, struct permit *permit)
{
	require(reserve(part, 1, permit));
	hold(permit);
}

static void call(uint16_t part, uint32_t cost)
{
	struct permit permit;

	if (!reserve(part, cost, &permit))
		return;
	hold(&permit);
	release(part, &permit);
}

static bool enter(uint16_t part, struct weir_wait *wait)
{
	const struct request request = {.part = part, .cost = 1};

	return queue_enter(&q, 1, &request, (struct listener){.sleeps = true}, wait);
}

static void use_waited(const struct waited *got)
{
	const struct permit permit = {.inflight = got->inflight, .cost = got->cost};

	hold(&permit);
	release(got->part, &permit);
}

/* Wait for a permit for as long as that takes; no reservation needs to be watched. */
static void acquire(uint16_t part)
{
	enum queue_state state;
	struct permit permit;
	struct weir_wait wait;
	struct waited got;
	uint32_t seen;

	if (reserve(part, 1, &permit)) {
		hold(&permit);
		release(part, &permit);
		return;
	}
	require(enter(part, &wait));
	do {
		seen = park_look(queue_park(&q, &wait));
		state = queue_poll(&q, &wait, &got);
	} while (state == QUEUE_WAITING && park_sleep(queue_park(&q, &wait), seen, UINT64_MAX));
	require(state == QUEUE_GRANTED && got.part == part);
	use_waited(&got);
}

static void leave(const struct weir_wait *wait)
{
	struct waited got;
	const enum queue_state state = queue_leave(&q, 1, wait, &got);

	require(state == QUEUE_GONE || state == QUEUE_GRANTED);
	if (state == QUEUE_GRANTED)
		use_waited(&got);
}

/* Put what is stored into force, as limiter_retune() does. */
static void retune(void)
{
	admission_retune(&admission);
	queue_drain(&q, 1);
}

/* In the end no permit is in flight, in no partition either, and no call waits. */
static void check_done(void)
{
	require(ghost_get(&refused) == 0);
	require(gate_taken(gate_read(&gate)) == 0 && gate_waiters(gate_read(&gate)) == 0);
	for (unsigned i = 0; i < PARTS; i++) {
		const uint64_t own = gate_read(&parts[i].own);

		require(gate_taken(own) == 0 && gate_waiters(own) == 0);
		require(rows[i].length == 0 && rows[i].head == NIL && rows[i].tail == NIL);
	}
	require(queue_is_empty(&q) && queue.pending == 0);
}

/* partitions.limit: calls that ask for more than the limit, which falls. */

static void setup_limit(void)
{
	begin(3, 1, 1, 3);
}

static void call_0_for_one(void)
{
	call(0, 1);
}

static void call_1_for_four(void)
{
	call(1, 4);
}

static void lower(void)
{
	atomic_store_explicit(&room.learned, 2, memory_order_relaxed);
	retune();
}

/* partitions.copy: the same permit is given back twice. */

static void setup_copy(void)
{
	begin(1, 1, 0, 1);
	keep(0, &kept);
	limit = 2; /* a copy's release lets one call more in */
}

static void release_kept_0(void)
{
	release(0, &kept);
}

static void release_copy(void)
{
	give_back(0, &kept);
}

static void call_1(void)
{
	call(1, 1);
}

static void check_copy(void)
{
	require(ghost_get(&refused) == 1);
	ghost_add(&refused, -1);
	check_done();
}

/* partitions.reserve: after it was refused once, a partition gets what it is guaranteed. */

static void setup_reserve(void)
{
	begin(2, 1, 1, 2);
	keep(1, &kept);
	keep(1, &kept_too); /* borrowed */
}

static bool is_raised(void)
{
	return ghost_get(&raised) > 0;
}

static void claim_guarantee(void)
{
	const struct request request = {.part = 0, .cost = 1};
	struct permit permit;

	require(decide(0, 1, &permit) == REFUSED_DEFICIT);
	(void)admission_raise_level(&admission, &request, 1);
	ghost_add(&raised, 1);
	explore_await_end(1);
	explore_await_end(2);
	require(reserve(0, 1, &permit));
	hold(&permit);
	release(0, &permit);
}

static void release_when_raised(void)
{
	explore_await(is_raised);
	release(1, &kept_too);
}

static void borrow_when_raised(void)
{
	struct permit permit;

	explore_await(is_raised);
	if (decide(1, 1, &permit) == REFUSED_RESERVED)
		(void)admission_lapse(&admission, 1 + HOLD);
	require(permit.cost == 0);
}

static void check_kept_1(void)
{
	release(1, &kept);
	check_done();
}

/* partitions.roll: an interval is over, in which partition 0 had a permit. */

static void setup_used(void)
{
	begin(2, 1, 1, 2);
	parts[0].since = parts[1].since = 1;
	keep(0, &kept);
	release(0, &kept);
	require(admission_reserved_for(&parts[0]) == 1);
}

static void lapse(void)
{
	(void)admission_lapse(&admission, 2 + HOLD);
}

static void check_rolled(void)
{
	require(parts[0].peak == 0 && admission_reserved_for(&parts[0]) == 1);
	check_done();
}

/* partitions.retune: a limit and a share are put into force by two threads. */

static void setup_retune(void)
{
	begin(8, 2, 2, 4);
}

static void set_limit(void)
{
	atomic_store_explicit(&room.learned, 4, memory_order_relaxed);
	retune();
}

static void set_share(void)
{
	set_double(&parts[1].share, 0.5);
	retune();
}

static void check_retune(void)
{
	require(gate_limit(gate_read(&gate)) == 4);
	require(parts[0].guarantee == 1 && parts[1].guarantee == 2);
	require(gate_limit(gate_read(&parts[1].own)) == 2);
	require(room.retuning == 0);
	check_done();
}

/* partitions.stuck: partition 1 is at its cap, and a waiter of it comes. */

static void setup_at_cap(void)
{
	begin(2, 0, 0, 1);
	keep(1, &kept);
}

static void release_kept_1(void)
{
	release(1, &kept);
}

static void acquire_1(void)
{
	acquire(1);
}

static void acquire_0(void)
{
	acquire(0);
}

/* partitions.stuck.room: waiters that are stuck keep no call of the other partition out. */

static void setup_stuck(void)
{
	setup_at_cap();
	require(enter(1, &waiter));
	require(rows[1].stuck == 1);
}

static void enter_and_leave_1(void)
{
	struct weir_wait wait;

	require(enter(1, &wait));
	leave(&wait);
}

static void leave_1(void)
{
	leave(&waiter);
}

static void must_call_0(void)
{
	struct permit permit;

	explore_await_end(0);
	explore_await_end(1);
	require(reserve(0, 1, &permit));
	hold(&permit);
	release(0, &permit);
}

/* partitions.cap: the cap is raised, and no permit is given back. */

static void raise_cap(void)
{
	set_double(&parts[1].cap, 1);
	retune();
}

/*
 * partitions.lent: stripes have idle permits, and partition 0 is guaranteed all of the limit but
 * what partition 1 holds. The permits that the stripes have came there by calls of partition 1.
 */

#define GUARANTEED_1 4

static void lend_1(unsigned cpu)
{
	struct permit permits[2];

	explore_cpu(cpu);
	for (unsigned i = 0; i < 2; i++)
		require(reserve(1, 1, &permits[i]) && permits[i].home == cpu + 1);
	for (unsigned i = 0; i < 2; i++)
		give_back(1, &permits[i]);
	explore_cpu(0);
}

static void begin_lent(uint32_t cap_1)
{
	begin(MOST, MOST - GUARANTEED_1, GUARANTEED_1, cap_1);
	admission.cache.sampling = &sampling;
	admission.cache.count = STRIPES;
	cache_note_window(&admission.cache, 0, MOST);
	admission_retune(&admission);
	require(cache_is(cache_mode(&admission.cache), CACHE_OPEN));
}

static void setup_lent(void)
{
	begin_lent(MOST);
	lend_1(0);
	lend_1(1);
	require(reserve(1, GUARANTEED_1, &kept));
	hold(&kept);
	atomic_store_explicit(&parts[0].peak, MOST - GUARANTEED_1, memory_order_relaxed);
	require(admission_reserved_for(&parts[0]) == MOST - GUARANTEED_1);
	require(cache_is(cache_mode(&admission.cache), CACHE_OPEN));
}

static void borrow_nothing(void)
{
	struct permit permit;

	require(decide(1, 1, &permit) == REFUSED_RESERVED && permit.cost == 0);
}

static void borrow_nothing_elsewhere(void)
{
	explore_cpu(1);
	borrow_nothing();
}

static void open_again(void)
{
	admission_retune(&admission);
}

static void check_lent_done(void)
{
	(void)cache_close(&admission.cache);
	require(gate.lent == 0);
	check_done();
}

static void check_lent(void)
{
	release(1, &kept);
	check_lent_done();
}

/* partitions.lent.stuck: partition 1 is at its cap by permits that are lent. */

static void setup_lent_at_cap(void)
{
	begin_lent(1);
	keep(1, &kept);
	require(kept.home == 1);
}

/* partitions.lent.copy: the same lent permit is given back twice, while another is out. */

static void setup_lent_copy(void)
{
	begin_lent(MOST);
	keep(1, &kept);
	explore_cpu(1);
	keep(1, &kept_too);
	explore_cpu(0);
	require(kept.home == 1 && kept_too.home == 2);
}

static void release_copy_1(void)
{
	give_back(1, &kept);
}

static void check_lent_copy(void)
{
	require(ghost_get(&refused) == 1);
	ghost_add(&refused, -1);
	release(1, &kept_too);
	check_lent_done();
}

/*
 * partitions.watch: the only permit is reserved for a partition that does not call again, and two
 * threads wait for it. One of them, which may have the watch, gives up.
 */

static _Alignas(128) unsigned char memory[1 << 16];
static struct weir_limiter *limiter;

static struct weir_token token_kept;

static const struct weir_call call_a = {.partition = 1, .cost = 1};

static void make_limiter(void)
{
	static const struct weir_settable_config one = {.initial = 1};
	const struct weir_partition guaranteed = {.name = "a", .share = 1, .cap = 1};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &one;
	config.queue = SLOTS;
	config.stripes = 1;
	config.window_min = config.window_max = 1000000000;
	config.partitions = &guaranteed;
	config.partition_count = 1;
	config.partition_hold = HOLD;
	require(weir_limiter_size(&config) > 0 && weir_limiter_size(&config) <= sizeof(memory));
	require(weir_limiter_init(memory, sizeof(memory), &config, &limiter) == 0);
}

static void setup_watch(void)
{
	struct weir_token token;

	make_limiter();
	/* Used twice: in between, another call that is refused begins the interval. */
	for (unsigned i = 0; i < 2; i++) {
		require(weir_try_acquire_for(limiter, &call_a, &token) == 0);
		weir_release(limiter, &token, WEIR_IGNORE);
		if (i == 0 && weir_try_acquire(limiter, &token) == 0)
			weir_release(limiter, &token, WEIR_IGNORE);
	}
	require(limiter->admission.parts[1].since != 0);
	require(admission_has_reserved(&limiter->admission));
}

static void acquire_until(weir_time deadline)
{
	struct weir_token token;
	const int r = weir_acquire(limiter, deadline, &token);

	require(r == 0 || (r == -ETIMEDOUT && deadline != WEIR_FOREVER));
	if (r == 0)
		weir_release(limiter, &token, WEIR_IGNORE);
}

static void acquire_for_a_while(void)
{
	acquire_until(HOLD / 2);
}

static void acquire_at_last(void)
{
	acquire_until(WEIR_FOREVER);
}

/* partitions.watch.late: the permit is reserved while a thread waits that found it in use. */

static void setup_watch_late(void)
{
	make_limiter();
	require(weir_try_acquire(limiter, &token_kept) == 0);
	require(!admission_has_reserved(&limiter->admission));
}

static void claim_and_release(void)
{
	struct weir_token token;

	if (weir_try_acquire_for(limiter, &call_a, &token) == 0)
		weir_release(limiter, &token, WEIR_IGNORE);
	weir_release(limiter, &token_kept, WEIR_IGNORE);
}

static void check_watch(void)
{
	require(weir_inflight(limiter) == 0 && queue_is_empty(&limiter->queueing));
	require(gate_waiters(gate_read(limiter->admission.gate)) == 0);
}

static const struct scene scenes[] = {
	{
		.name = "partitions.limit",
		.claim = "no more than the limit is held, and each partition's word agrees",
		.setup = setup_limit,
		.threads = {call_0_for_one, call_1_for_four, lower},
		.check = check_done,
		.no_stale = true, /* the next scene has them */
	},
	{
		.name = "partitions.costly",
		.claim = "a call takes as many permits of its partition as of the gate",
		.setup = setup_limit,
		.threads = {call_1_for_four, lower},
		.check = check_done,
		.preemptions = 3,
	},
	{
		.name = "partitions.copy",
		.claim = "of two releases of one permit, one is refused and changes nothing",
		.setup = setup_copy,
		.threads = {release_kept_0, release_copy, call_1},
		.check = check_copy,
	},
	{
		.name = "partitions.reserve",
		.claim = "after it was refused once, a partition gets what it is guaranteed",
		.setup = setup_reserve,
		.threads = {claim_guarantee, release_when_raised, borrow_when_raised},
		.check = check_kept_1,
		.no_stale = true, /* the level is only a number, and may be seen late */
		.preemptions = 3,
	},
	{
		.name = "partitions.roll",
		.claim = "what was used in one interval is reserved for the next",
		.setup = setup_used,
		.threads = {lapse, lapse},
		.check = check_rolled,
		.preemptions = 3,
	},
	{
		.name = "partitions.retune",
		.claim = "what is in force in the end was computed from all that was set",
		.setup = setup_retune,
		.threads = {set_limit, set_share},
		.check = check_retune,
		.preemptions = 3,
	},
	{
		.name = "partitions.stuck",
		.claim = "a waiter is served though its partition is at its cap at first",
		.setup = setup_at_cap,
		.threads = {release_kept_1, acquire_1},
		.check = check_done,
		.preemptions = 3,
	},
	{
		.name = "partitions.stuck.two",
		.claim = "the same beside a waiter of the other partition",
		.setup = setup_at_cap,
		.threads = {release_kept_1, acquire_1, acquire_0},
		.check = check_done,
		.no_stale = true, /* two waiters make runs long */
	},
	{
		.name = "partitions.stuck.room",
		.claim = "waiters that are stuck do not stay announced at the gate",
		.setup = setup_stuck,
		.threads = {enter_and_leave_1, leave_1, must_call_0},
		.check = check_kept_1,
	},
	{
		.name = "partitions.cap",
		.claim = "a waiter is served when its partition's cap is raised",
		.setup = setup_at_cap,
		.threads = {raise_cap, acquire_1},
		.check = check_kept_1,
	},
	{
		.name = "partitions.lent",
		.claim = "what is reserved is not borrowed by taking up idle permits",
		.setup = setup_lent,
		.threads = {borrow_nothing, borrow_nothing_elsewhere, open_again},
		.check = check_lent,
		.no_stale = true, /* scenes of the permit cache have them */
	},
	{
		.name = "partitions.lent.stuck",
		.claim = "the release of a lent permit serves a waiter of its partition",
		.setup = setup_lent_at_cap,
		.threads = {acquire_1, release_kept_1, open_again},
		.check = check_lent_done,
		.no_stale = true,
	},
	{
		.name = "partitions.lent.copy",
		.claim = "of two releases of one lent permit, one is refused and changes nothing",
		.setup = setup_lent_copy,
		.threads = {release_kept_1, release_copy_1},
		.check = check_lent_copy,
	},
	{
		.name = "partitions.watch",
		.claim = "a waiter gets what was reserved, though another that watched gives up",
		.setup = setup_watch,
		.threads = {acquire_for_a_while, acquire_at_last},
		.check = check_watch,
		.no_stale = true, /* calls of the whole limiter make runs long */
	},
	{
		.name = "partitions.watch.late",
		.claim = "a waiter that sleeps takes the watch when it becomes necessary",
		.setup = setup_watch_late,
		.threads = {claim_and_release, acquire_at_last},
		.check = check_watch,
		.no_stale = true,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
