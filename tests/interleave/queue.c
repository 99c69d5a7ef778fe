/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue (lib/wait/slots.h, lib/wait/callback.h): calls wait for a permit, are granted one, are
 * notified, and leave, while permits are given back, the limit is raised, and the permit cache is
 * opened. A waiter that is forgotten sleeps for ever, which the explorer reports.
 */

#include <string.h>

#include "lib/wait/slots.h"
#include "tests/interleave/explore.h"

#define SLOTS   2
#define STRIPES 2
#define LIMIT   64 /* of the scenes with a permit cache: see permit_cache.c */

static struct gate gate;
static struct room room;
static struct cache_mode mode;
static struct stripe stripes[STRIPES];
static struct sampling sampling = {.config.stripes = STRIPES, .stripes = stripes};
static struct queue queue;
static struct slot slots[SLOTS];
static struct row row;
static _Atomic uint64_t free_slots, fresh;
static struct callback callbacks[SLOTS];
static struct admission admission;
static struct queueing q;

static struct permit kept;        /* held since before the threads began */
static struct weir_wait waiter;   /* that waited before */
static _Atomic uint64_t rung;     /* a callback has run: as an event loop is told */
static uint32_t data;             /* what a callback uses */
static struct ghost held, passed; /* calls with a permit, or let through without one */
static struct ghost told;         /* callbacks that have run */
static struct ghost refused;      /* releases that were not of a permit held */
static struct ghost ended;        /* a waiter has ended */
static long limit;                /* of held */

static void name_words(void)
{
	explore_name(&gate.word, "gate");
	explore_name(&rung, "rung");
	explore_name(&gate.lent, "lent");
	explore_name(&mode.mode, "mode");
	explore_name(&stripes[0].cached, "stripe 0");
	explore_name(&stripes[1].cached, "stripe 1");
	explore_name(&queue.pending, "pending");
	explore_name(&queue.news, "news");
	explore_name(&queue.open, "open");
	explore_name(&fresh, "fresh");
	explore_name(&free_slots, "free");
	explore_name(&slots[0].state, "state 0");
	explore_name(&slots[1].state, "state 1");
	explore_name(&slots[0].park, "park 0");
	explore_name(&slots[1].park, "park 1");
	explore_name(&callbacks[0].use, "callback 0");
	explore_name(&callbacks[1].use, "callback 1");
}

static void begin(uint32_t permits, uint32_t slot_count)
{
	memset(stripes, 0, sizeof(stripes));
	memset(slots, 0, sizeof(slots));
	q = (struct queueing){
		.config = {.slots = slot_count, .rows = 1, .order = WEIR_FIFO},
		.queue = &queue,
		.slots = slots,
		.rows = &row,
		.free = &free_slots,
		.fresh = &fresh,
		.callbacks = callbacks,
		.admission = &admission,
	};
	admission = (struct admission){
		.gate = &gate,
		.room = &room,
		.limit_max = LIMIT,
		.cache = {.shared = &mode, .gate = &gate, .sampling = &sampling},
	};
	admission.cache.count = permits == LIMIT ? STRIPES : 0;
	cache_init(&admission.cache);
	admission_init(&admission, &(struct admission_config){.count = 0}, permits, 0);
	queue_init(&q);
	for (unsigned i = 0; i < SLOTS; i++)
		callback_init(&callbacks[i]);
	held = passed = told = refused = ended = (struct ghost){0};
	waiter = (struct weir_wait){0};
	data = 0;
	rung = 0;
	limit = permits;
	name_words();
}

static bool reserve(uint32_t cost, struct permit *permit)
{
	const struct request request = {.cost = cost};
	const bool admitted = admission_reserve(&admission, &request, permit) == ADMITTED;

	if (permit->drain)
		queue_drain(&q, 1);
	return admitted;
}

static void give_back(const struct permit *permit)
{
	const struct returned returned = admission_give_back(&admission, 0, permit->cost,
							     permit->home);

	if (!returned.held)
		ghost_add(&refused, 1);
	if (returned.drain)
		queue_drain(&q, 1);
	require(gate_waiters(explore_newest(&gate.word)) <= q.config.slots);
}

static void hold(const struct permit *permit)
{
	require(permit->cost > 0);
	require(ghost_add(&held, permit->cost) <= limit);
}

static void release(const struct permit *permit)
{
	ghost_add(&held, -(long)permit->cost);
	give_back(permit);
}

static void use(const struct permit *permit)
{
	hold(permit);
	release(permit);
}

/* The call of a waiter that has ended. */
static void use_waited(const struct waited *got)
{
	if (got->cost == 0)
		ghost_add(&passed, 1);
	else
		use(&(struct permit){.inflight = got->inflight, .cost = got->cost});
}

/* Sleep until granted, or until the deadline, as weir_acquire() does. */
static void sleep_in(const struct weir_wait *wait, weir_time deadline)
{
	struct park *parking = queue_park(&q, wait);
	enum queue_state state;
	struct waited got;
	uint32_t seen;

	do {
		seen = park_look(parking);
		state = queue_poll(&q, wait, &got);
	} while (state == QUEUE_WAITING && park_sleep(parking, seen, deadline));
	if (state == QUEUE_WAITING)
		state = queue_leave(&q, 1, wait, &got);
	require(state == QUEUE_GRANTED || (state == QUEUE_GONE && deadline != UINT64_MAX));
	if (state == QUEUE_GRANTED)
		use_waited(&got);
	require(queue_poll(&q, wait, &got) == QUEUE_NONE);
}

/* Enter the queue. False: it is full. */
static bool wait_for(uint32_t cost, weir_time deadline)
{
	const struct request request = {.cost = cost};
	const struct listener thread = {.sleeps = true};
	struct weir_wait wait;

	if (!queue_enter(&q, 1, &request, thread, &wait))
		return false;
	sleep_in(&wait, deadline);
	return true;
}

static void acquire_for(uint32_t cost)
{
	struct permit permit;

	if (reserve(cost, &permit))
		use(&permit);
	else
		require(wait_for(cost, UINT64_MAX));
}

static void acquire(void)
{
	acquire_for(1);
}

static void acquire_in_time(void)
{
	require(wait_for(1, 100));
}

static void acquire_if_not_full(void)
{
	(void)wait_for(1, UINT64_MAX);
}

static void call(void)
{
	struct permit permit;

	if (reserve(1, &permit))
		use(&permit);
}

static void enter_and_leave(void)
{
	const struct request request = {.cost = 1};
	struct weir_wait wait;
	struct waited got;
	enum queue_state state;

	require(queue_enter(&q, 1, &request, (struct listener){.sleeps = false}, &wait));
	state = queue_leave(&q, 1, &wait, &got);
	require(state == QUEUE_GONE || state == QUEUE_GRANTED);
	if (state == QUEUE_GRANTED)
		use_waited(&got);
	require(queue_poll(&q, &wait, &got) == QUEUE_NONE);
}

/* In the end no call waits, and all permits are back. */
static void check_done(void)
{
	require(ghost_get(&refused) == 0);
	require(gate_waiters(gate_read(&gate)) == 0);
	require(queue_is_empty(&q) && free_slots == (UINT64_C(1) << q.config.slots) - 1);
	require(row.length == 0 && row.head == NIL && row.tail == NIL);
	require(queue.pending == 0 && callbacks[0].use == 0 && callbacks[1].use == 0);
	(void)cache_close(&admission.cache);
	require(gate_taken(gate_read(&gate)) == 0 && !gate_lends(&gate));
}

/* The only permit is held. */
static void setup_held(void)
{
	begin(1, SLOTS);
	require(reserve(1, &kept));
	ghost_add(&held, 1);
}

static void setup_held_one_slot(void)
{
	begin(1, 1);
	require(reserve(1, &kept));
	ghost_add(&held, 1);
}

static void release_kept(void)
{
	release(&kept);
}

/* queue.announced: two permits are held by one call, and two calls wait for one each. */

static void setup_two_held(void)
{
	begin(2, SLOTS);
	require(reserve(2, &kept));
	ghost_add(&held, 2);
}

/* queue.raise: the limit is raised, and no permit is given back. */

static void raise_limit(void)
{
	atomic_store_explicit(&room.learned, 2, memory_order_relaxed);
	admission_retune(&admission);
	if (admission_waiting(&admission) > 0)
		queue_drain(&q, 1);
}

static void setup_raise(void)
{
	setup_held();
	limit = 2;
}

static void check_raised(void)
{
	release(&kept);
	check_done();
}

/*
 * queue.copy: the same permit is given back twice, so that for a moment fewer than none are in
 * flight. The copy's release lets one call more in, as weir/limiter.h says.
 */

static void setup_copy(void)
{
	setup_held();
	limit = 2;
}

static void release_copy(void)
{
	give_back(&kept);
}

static void check_copy(void)
{
	require(ghost_get(&refused) == 1);
	ghost_add(&refused, -1);
	check_done();
}

/* queue.shadow: in shadow mode no call waits. */

static void begin_shadow(void)
{
	atomic_store_explicit(&queue.open, 1, memory_order_relaxed);
	queue_drain(&q, 1);
}

static void check_shadow(void)
{
	require(ghost_get(&passed) == 2);
	release(&kept);
	check_done();
}

/* queue.empty: a waiter that was granted its permit has yet to take it. */

static void setup_waiter(void)
{
	const struct request request = {.cost = 1};

	setup_held();
	require(queue_enter(&q, 1, &request, (struct listener){.sleeps = false}, &waiter));
}

static void see_waiter(void)
{
	require(!queue_is_empty(&q));
}

static void check_waiter(void)
{
	struct waited got;

	require(queue_poll(&q, &waiter, &got) == QUEUE_GRANTED);
	use_waited(&got);
	check_done();
}

/* queue.callback: when it has been told, the waiter takes its permit. */

static void tell(void *arg)
{
	require(arg == &data);
	data++;
	ghost_add(&told, 1);
	(void)atomic_fetch_or_explicit(&rung, 1, memory_order_release);
}

static bool is_told(void)
{
	return explore_newest(&rung) != 0;
}

static void enqueue(weir_granted_fn *granted, struct weir_wait *wait)
{
	const struct request request = {.cost = 1};
	const struct listener listener = {.granted = granted, .arg = &data};

	require(queue_enter(&q, 1, &request, listener, wait));
}

static void be_told(void)
{
	struct weir_wait wait;
	struct waited got;

	enqueue(tell, &wait);
	explore_await(is_told);
	require(atomic_exchange_explicit(&rung, 0, memory_order_acquire) == 1);
	require(queue_poll(&q, &wait, &got) == QUEUE_GRANTED);
	data = 0; /* the callback is over */
	use_waited(&got);
	require(queue_poll(&q, &wait, &got) == QUEUE_NONE);
}

/* queue.callback.leave: after the waiter has left, its callback does not run. */

static void tell_before_end(void *arg)
{
	require(ghost_get(&ended) == 0);
	tell(arg);
}

static void enqueue_and_leave(void)
{
	struct weir_wait wait;
	struct waited got;
	enum queue_state state;

	enqueue(tell_before_end, &wait);
	state = queue_leave(&q, 1, &wait, &got);
	ghost_add(&ended, 1);
	data = 0; /* the callback is over, or will never run */
	require(state == QUEUE_GONE || state == QUEUE_GRANTED);
	require(state != QUEUE_GONE || ghost_get(&told) == 0);
	if (state == QUEUE_GRANTED)
		use_waited(&got);
}

/* queue.callback.poll: the callback takes the permit itself, unless its waiter does. */

static const struct weir_wait first = {.slot = 0, .stamp = 1};

static void take_in_callback(void *arg)
{
	struct waited got;

	require(arg == &data);
	if (queue_poll(&q, &first, &got) != QUEUE_GRANTED)
		return;
	ghost_add(&told, 1);
	use_waited(&got);
}

static void setup_waiter_with_callback(void)
{
	setup_held();
	enqueue(take_in_callback, &waiter);
}

static void poll_first(void)
{
	struct waited got;

	if (queue_poll(&q, &first, &got) != QUEUE_GRANTED)
		return;
	ghost_add(&told, 1);
	use_waited(&got);
}

static void check_told_once(void)
{
	require(ghost_get(&told) == 1);
	check_done();
}

/* queue.callback.both: two callbacks poll the other's waiter, and neither waits for the other. */

static const struct weir_wait second = {.slot = 1, .stamp = 1};

static void poll_and_use(const struct weir_wait *wait)
{
	struct waited got;

	if (queue_poll(&q, wait, &got) == QUEUE_GRANTED)
		use_waited(&got);
}

static void poll_second(void *arg)
{
	(void)arg;
	poll_and_use(&second);
}

static void poll_first_too(void *arg)
{
	(void)arg;
	poll_and_use(&first);
}

static void setup_both(void)
{
	begin(2, SLOTS);
	require(reserve(2, &kept));
	ghost_add(&held, 2);
	enqueue(poll_second, &waiter);
}

static void enter_granted(void)
{
	const struct request request = {.cost = 1};
	const struct listener listener = {.granted = poll_first_too};
	struct permit permit;
	struct weir_wait wait;

	release(&(struct permit){.cost = 1});
	if (!reserve(1, &permit))
		return; /* the first waiter has it */
	require(queue_enter_granted(&q, &request, &permit, listener, &wait));
	require(wait.slot == second.slot && wait.stamp == second.stamp);
}

static void release_one(void)
{
	release(&(struct permit){.cost = 1});
}

/* queue.callback.own: a callback that runs before its waiter has returned takes the permit. */

static void poll_own(void *arg)
{
	struct waited got;

	(void)arg;
	require(queue_poll(&q, &waiter, &got) == QUEUE_GRANTED);
	ghost_add(&told, 1);
	use_waited(&got);
}

static void enter_with_permit(void)
{
	const struct request request = {.cost = 1};
	const struct listener listener = {.granted = poll_own};
	struct permit permit;

	if (!reserve(1, &permit))
		return;
	require(queue_enter_granted(&q, &request, &permit, listener, &waiter));
	require(ghost_get(&told) == 1);
}

static void setup_one_free(void)
{
	begin(1, SLOTS);
}

static void check_both(void)
{
	poll_and_use(&first);
	poll_and_use(&second);
	check_done();
}

/* With the permit cache: a call needs all permits that others do not hold all the time. */

#define OTHERS (LIMIT / 4) /* as many as the cache is opened with */

static void setup_shut(void)
{
	begin(LIMIT, SLOTS);
	require(reserve(OTHERS, &kept));
	ghost_add(&held, OTHERS);
}

static void open_cache(void)
{
	cache_note_window(&admission.cache, 0, LIMIT);
	admission_retune(&admission);
	if (admission_waiting(&admission) > 0)
		queue_drain(&q, 1);
}

/* One permit is idle in each stripe. */
static void setup_idle(void)
{
	struct permit permit;

	setup_shut();
	open_cache();
	for (unsigned cpu = 0; cpu < STRIPES; cpu++) {
		explore_cpu(cpu);
		require(reserve(1, &permit) && permit.home == cpu + 1);
		give_back(&permit);
	}
}

static void close_cache(void)
{
	if (cache_close(&admission.cache))
		queue_drain(&q, 1);
}

static void call_twice(void)
{
	explore_cpu(0);
	call();
	explore_cpu(1);
	call();
}

static void acquire_rest(void)
{
	acquire_for(LIMIT - OTHERS);
}

static void check_cache(void)
{
	release(&kept);
	check_done();
}

/*
 * Two waiters make runs long. There the loads return the newest values, so that the scenes end in
 * seconds; those of one waiter have the stale reads.
 */
static const struct scene scenes[] = {
	{
		.name = "queue.release",
		.claim = "a waiter is served when a permit is given back",
		.setup = setup_held,
		.threads = {release_kept, acquire},
		.check = check_done,
		.preemptions = 3,
	},
	{
		.name = "queue.two",
		.claim = "two waiters are served, one by the other",
		.setup = setup_held,
		.threads = {release_kept, acquire, acquire},
		.check = check_done,
		.no_stale = true,
	},
	{
		.name = "queue.announced",
		.claim = "no more waiters are announced than there are slots",
		.setup = setup_two_held,
		.threads = {release_kept, acquire, acquire},
		.check = check_done,
		.no_stale = true,
	},
	{
		.name = "queue.newcomer",
		.claim = "a waiter is served, though another call looks for room",
		.setup = setup_held,
		.threads = {release_kept, acquire, call},
		.check = check_done,
	},
	{
		.name = "queue.raise",
		.claim = "a waiter is served when the limit is raised",
		.setup = setup_raise,
		.threads = {raise_limit, acquire},
		.check = check_raised,
		.preemptions = 3,
	},
	{
		.name = "queue.leave",
		.claim = "a waiter that leaves loses no permit, and keeps none from another",
		.setup = setup_held,
		.threads = {release_kept, enter_and_leave, acquire},
		.check = check_done,
		.no_stale = true,
	},
	{
		.name = "queue.time_out",
		.claim = "the same when it leaves because its time is over",
		.setup = setup_held,
		.threads = {release_kept, acquire_in_time, acquire},
		.check = check_done,
		.no_stale = true,
	},
	{
		.name = "queue.full",
		.claim = "a slot is used again without its last waiter noticing",
		.setup = setup_held_one_slot,
		.threads = {release_kept, acquire_if_not_full, acquire_if_not_full},
		.check = check_done,
		.no_stale = true,
	},
	{
		.name = "queue.copy",
		.claim = "a waiter is served though a copy of a token is released",
		.setup = setup_copy,
		.threads = {release_kept, release_copy, acquire},
		.check = check_copy,
	},
	{
		.name = "queue.shadow",
		.claim = "no call waits in shadow mode",
		.setup = setup_held,
		.threads = {begin_shadow, acquire, acquire},
		.check = check_shadow,
		.no_stale = true,
	},
	{
		.name = "queue.empty",
		.claim = "the queue is not empty while a granted permit has not been taken",
		.setup = setup_waiter,
		.threads = {release_kept, enter_and_leave, see_waiter},
		.check = check_waiter,
		.no_stale = true,
	},
	{
		.name = "queue.callback",
		.claim = "a waiter that is told gets its permit, and its callback is over then",
		.setup = setup_held,
		.threads = {release_kept, be_told, call},
		.check = check_done,
	},
	{
		.name = "queue.callback.leave",
		.claim = "after a waiter has left, its callback does not run",
		.setup = setup_held,
		.threads = {release_kept, enqueue_and_leave},
		.check = check_done,
		.preemptions = 3,
	},
	{
		.name = "queue.callback.poll",
		.claim = "a permit is taken once, by the callback or by another thread",
		.setup = setup_waiter_with_callback,
		.threads = {release_kept, poll_first},
		.check = check_told_once,
		.preemptions = 3,
	},
	{
		.name = "queue.callback.both",
		.claim = "callbacks that poll each other's waiter do not wait for each other",
		.setup = setup_both,
		.threads = {release_one, enter_granted},
		.check = check_both,
		.preemptions = 3,
	},
	{
		.name = "queue.callback.own",
		.claim = "a callback that runs at once may take the permit it announces",
		.setup = setup_one_free,
		.threads = {enter_with_permit, call},
		.check = check_done,
	},
	{
		.name = "queue.open",
		.claim = "a waiter is served though the cache is opened and permits are lent",
		.setup = setup_shut,
		.threads = {open_cache, call_twice, acquire_rest},
		.check = check_cache,
	},
	{
		.name = "queue.idle",
		.claim = "a waiter is served though permits are idle and taken up again",
		.setup = setup_idle,
		.threads = {call, call, acquire_rest},
		.check = check_cache,
	},
	{
		.name = "queue.close",
		.claim = "a waiter is served though another thread calls back what is idle",
		.setup = setup_idle,
		.threads = {close_cache, call, acquire_rest},
		.check = check_cache,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
