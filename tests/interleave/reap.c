/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Death in a shared limiter (lib/process, lib/shm/reap.c, lib/wait/recovery.c): the first thread's
 * process may die at any step, and the others give back what it held, take over what it was doing,
 * and never wait for it for ever.
 */

#include <string.h>
#include <time.h>

#include <weir/limits.h>
#include <weir/weir.h>

#include "lib/base/combiner.h"
#include "lib/wait/slots.h"
#include "tests/interleave/explore.h"
#include "tests/interleave/processes.h"

#define VICTIM 0
#define PAUSE  WEIR_MS
#define REAPS  5 /* with pauses between them, these complete an audit */

static const struct weir_settable_config one_permit = {.initial = 1};
static const struct weir_aimd_config two_permits = {
	.initial = 2, .min = 1, .max = 2, .backoff = 0.5};
static const struct weir_partition partitions[] = {
	{.name = "batch", .share = 1, .reject_delay = WEIR_MS}};
static struct weir_limit_ops streams; /* the settable limit, raised by detached calls */
static struct weir_limit_ops pausing; /* aimd, but each window makes it pause */
static struct weir_config queue_of_two, queue_of_one, windows, shares, streaming, pauses;

static struct weir_token kept[PROCESSES]; /* permits held from the beginning */
static struct ghost held[PROCESSES];      /* permits that calls of a process know they hold */
static struct ghost survivor;             /* the process that looks at the end */
static struct ghost members, absent;      /* processes, and those of them that have left or died */
static struct ghost most;                 /* permits that the limiter may ever admit */
static struct ghost granted;              /* callbacks that have run */
static struct ghost reapings;             /* in this run */

static struct weir_limiter *own(void)
{
	return process[explore_self()];
}

static void name_words(const struct weir_limiter *l)
{
	static const char *const leases[] = {"lease 1", "lease 2", "lease 3", "lease 4"};
	static const char *const holdings[] = {"held 1", "held 2", "held 3", "held 4"};
	static const char *const states[] = {"slot 0", "slot 1"};

	for (uint32_t i = 0; i < l->leasing.count; i++) {
		explore_name(&l->leasing.leases[i].identity, leases[i]);
		explore_name(&lease_holdings(&l->leasing, i + 1)->held, holdings[i]);
	}
	for (uint32_t i = 0; i < l->queueing.config.slots; i++)
		explore_name(&l->queueing.slots[i].state, states[i]);
	explore_name(&l->leasing.audit->reaper, "reaper");
	explore_name(&l->admission.gate->word, "gate");
	explore_name(&l->admission.room->learned, "learned");
	explore_name(&l->admission.room->retuning, "retuning");
	explore_name(&l->admission.room->detached, "detached");
	explore_name(&l->queueing.queue->pending, "pending");
	explore_name(&l->queueing.queue->news, "news");
	explore_name(l->queueing.free, "free");
	explore_name(l->queueing.fresh, "fresh");
	explore_name(&l->sampling.sampler->due, "due");
}

static double pause_always(void *state, const struct weir_window *w)
{
	(void)state;
	(void)w;
	return -(double)PAUSE;
}

static void configure(void)
{
	struct weir_config config;

	if (streams.size != 0)
		return;
	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &one_permit;
	config.stripes = 1;
	config.queue = 1;
	queue_of_one = config;
	config.queue = 2;
	queue_of_two = config;
	shares = config;
	shares.partitions = partitions;
	shares.partition_count = 1;
	streams = weir_settable;
	streams.name = "streams";
	streams.flags |= WEIR_LIMIT_DETACHED;
	streaming = config;
	streaming.limit = &streams;
	windows = config;
	windows.limit = &weir_aimd;
	windows.limit_config = &two_permits;
	windows.windowing = WEIR_WINDOW_TIME;
	windows.window_samples = 1;
	windows.window_min = windows.window_max = 1;
	pausing = weir_aimd;
	pausing.name = "pausing";
	pausing.flags |= WEIR_LIMIT_PAUSES;
	pausing.update = pause_always;
	pauses = windows;
	pauses.limit = &pausing;
}

static void begin(const struct weir_config *config, long processes, long permits)
{
	configure();
	processes_begin(config, (uint32_t)processes);
	memset(kept, 0, sizeof(kept));
	memset(held, 0, sizeof(held));
	granted = absent = reapings = (struct ghost){0};
	members.value = processes;
	survivor.value = 2;
	most.value = permits;
	name_words(process[0]);
}

static void hold(unsigned number)
{
	require(weir_try_acquire(process[number], &kept[number]) == 0);
	held[number].value = 1;
}

static void setup(void)
{
	begin(&queue_of_two, 3, 1);
}

static void setup_victim_holds(void)
{
	begin(&queue_of_two, 3, 1);
	hold(VICTIM);
}

static void setup_reaper_holds(void)
{
	begin(&queue_of_two, 3, 1);
	hold(2);
}

/* There is room for one waiter. */
static void setup_one_slot(void)
{
	begin(&queue_of_one, 3, 1);
	hold(2);
}

/* A fourth process has died with a permit. */
static void setup_one_died(void)
{
	begin(&queue_of_two, 4, 1);
	hold(3);
	held[3].value = 0;
	processes_died(3);
	absent.value = 1;
}

/* The same, but its permit was granted to it while it waited. */
static void setup_granted_died(void)
{
	struct weir_wait wait;

	begin(&queue_of_two, 4, 1);
	hold(2);
	require(weir_enqueue(process[3], NULL, NULL, &wait) == 0);
	weir_release(process[2], &kept[2], WEIR_IGNORE);
	held[2].value = 0;
	processes_died(3);
	absent.value = 1;
}

/* The third process has yet to take a lease, and none is free. */
static void setup_full(void)
{
	begin(&queue_of_two, 4, 1);
	process[2]->leasing.count = 2;
	atomic_init(&process[2]->leasing.leases[2].identity, 0);
	survivor.value = 1;
	absent.value = 1;
	hold(VICTIM);
}

static void setup_settable(void)
{
	begin(&queue_of_two, 3, 3);
}

static void setup_streams(void)
{
	begin(&streaming, 3, 2);
	hold(VICTIM);
}

static void setup_shares(void)
{
	begin(&shares, 3, 1);
}

static void setup_windows(void)
{
	begin(&windows, 3, 2);
	hold(0);
	hold(1);
}

static void setup_pauses(void)
{
	begin(&pauses, 3, 2);
	hold(VICTIM);
}

/* Permits that the living hold are not given to others. */
static void enter(void)
{
	long all = ghost_add(&held[explore_self()], 1);

	for (unsigned i = 0; i < PROCESSES; i++)
		if (i != explore_self() && !explore_died(i))
			all += ghost_get(&held[i]);
	require(all <= ghost_get(&most));
}

static void leave(struct weir_token *token)
{
	ghost_add(&held[explore_self()], -1);
	weir_release(own(), token, WEIR_IGNORE);
}

static void call(void)
{
	struct weir_token token;

	if (weir_try_acquire(own(), &token) != 0)
		return;
	enter();
	leave(&token);
}

/* An audit has begun, and ends with its next measurement. */
static bool audit_ends(void)
{
	return ghost_get(&reapings) >= 3;
}

static void call_late(void)
{
	explore_await(audit_ends);
	call();
}

/* A call that is admitted sooner or later. */
static void wait_and_call(void)
{
	struct weir_token token;

	require(weir_acquire(own(), WEIR_FOREVER, &token) == 0);
	enter();
	leave(&token);
}

/* The queue may be full. */
static void wait_if_there_is_room(void)
{
	struct weir_token token;

	if (weir_acquire(own(), WEIR_FOREVER, &token) != 0)
		return;
	enter();
	leave(&token);
}

static void release_kept(void)
{
	leave(&kept[explore_self()]);
}

static void wait_and_leave(void)
{
	struct weir_wait wait;
	struct weir_token token;

	if (weir_enqueue(own(), NULL, NULL, &wait) != 0 || weir_cancel(own(), &wait, &token) == 0)
		return;
	enter();
	leave(&token);
}

static void count_grant(void *arg)
{
	(void)arg;
	ghost_add(&granted, 1);
}

/* Wait for a permit that another process grants. */
static void enqueue_and_listen(void)
{
	struct weir_wait wait;
	struct weir_token token;

	require(weir_enqueue(own(), count_grant, NULL, &wait) == 0);
	while (weir_poll(own(), &wait, &token) != 0)
		(void)weir_shm_listen(own(), WEIR_FOREVER);
	enter();
	leave(&token);
}

static void set_two(void)
{
	require(weir_limit_set(own(), 2) == 0);
}

static void set_three(void)
{
	require(weir_limit_set(own(), 3) == 0);
	require(gate_limit(gate_read(own()->admission.gate)) >= 2);
}

static void set_shares(void)
{
	require(weir_partitions_set(own(), partitions, 1, NULL, 0) == 0);
}

/* A call of the partition with the share. */
static void call_in_partition(void)
{
	const struct weir_call batch = {.partition = 1, .cost = 1};
	struct weir_token token;

	require(weir_acquire_for(own(), &batch, WEIR_FOREVER, &token) == 0);
	enter();
	leave(&token);
}

/* A refusal of the partition is delayed. */
static void delay_refusal(void)
{
	require(weir_delay_begin(own(), 1) == WEIR_MS);
	weir_delay_end(own(), 1);
}

/* A permit that is detached makes room for another call. */
static void detach_kept(void)
{
	require(weir_detach(own(), &kept[VICTIM]) == 0);
	release_kept();
}

/* A sample that closes a window, and lowers the limit. */
static void drop_kept(void)
{
	explore_pass(WEIR_MS);
	ghost_add(&held[explore_self()], -1);
	weir_release(own(), &kept[explore_self()], WEIR_DROPPED);
}

/* A pause begins, and a call ends it later. */
static void pause_and_call(void)
{
	explore_pass(1);
	ghost_add(&held[explore_self()], -1);
	weir_release(own(), &kept[explore_self()], WEIR_SUCCESS);
	explore_pass(PAUSE);
	call();
}

static void save(void)
{
	char saved[4096];

	require(weir_limiter_save(own(), saved, sizeof(saved)) > 0);
}

/* Return the lease with what a detached call holds. */
static void detach_and_leave_limiter(void)
{
	require(weir_detach(own(), &kept[VICTIM]) == 0);
	ghost_add(&held[explore_self()], -1);
	weir_shm_detach(own());
	ghost_add(&absent, 1);
}

/* Return the lease with the permit that it holds. */
static void leave_limiter(void)
{
	ghost_add(&held[explore_self()], -1);
	weir_shm_detach(own());
	ghost_add(&absent, 1);
}

static void reap_often(void)
{
	const struct timespec pause = {.tv_nsec = 400000000};
	struct weir_shm_reaped reaped;

	for (int i = 0; i < REAPS; i++) {
		(void)weir_shm_reap(own(), &reaped);
		ghost_add(&reapings, 1);
		nanosleep(&pause, NULL);
	}
}

static void reap_after_victim(void)
{
	explore_await_end(VICTIM);
	reap_often();
}

/* A reaping as soon as another one has recovered the fourth process, or during that. */
static void reap_once(void)
{
	struct weir_shm_reaped reaped;

	(void)weir_shm_reap(own(), &reaped);
}

/* Take the lease of a process that died, if it has been returned: nothing of it is left. */
static void join(void)
{
	struct weir_limiter *l = own();

	if (!lease_join(&l->leasing))
		return;
	ghost_add(&absent, -1);
	require(l->leasing.number == 1);
	require(atomic_load_explicit(&l->leasing.mine->held, memory_order_relaxed) == 0);
	require(lease_detached(lease_own(&l->leasing)) == 0);
}

/* Another call may be admitted afterwards if no permit is held. */
static void reap_and_call(void)
{
	reap_after_victim();
	call();
}

static void release_and_reap(void)
{
	release_kept();
	reap_after_victim();
}

static void check_queue(const struct queueing *q)
{
	for (uint32_t i = 0; i < q->config.slots; i++)
		require(word_state(slot_read(&q->slots[i])) == FREE);
	require((uint32_t)__builtin_popcountll(atomic_load(q->free)) == q->config.slots);
	require(slot_at(q, &q->rows[0].head) == NIL && q->rows[0].length == 0);
	require(combiner_requests(atomic_load(&q->queue->pending)) == 0);
}

static void check_admission(const struct admission *a)
{
	require(gate_taken(gate_read(a->gate)) == 0);
	require(gate_waiters(gate_read(a->gate)) == 0);
	require(gate_limit(gate_read(a->gate)) == admission_raised(a));
	for (uint32_t i = 0; i < a->count; i++) {
		require(gate_taken(gate_read(&a->parts[i].own)) == 0);
		require(gate_waiters(gate_read(&a->parts[i].own)) == 0);
		require(atomic_load(&a->parts[i].delayed) == 0);
	}
	require(admission_detached(a) == 0);
	require(atomic_load(&a->room->setting) == 0);
	require(atomic_load(&a->room->delayed) == 0);
	require(combiner_requests(atomic_load(&a->room->retuning)) == 0);
}

static void check_leases(const struct leasing *l, unsigned living)
{
	unsigned taken = 0;

	for (uint32_t number = 1; number <= l->count; number++) {
		taken += atomic_load(&l->leases[number - 1].identity) != 0;
		require(held_permits(atomic_load(&lease_holdings(l, number)->held)) == 0);
		require(held_calls(atomic_load(&lease_holdings(l, number)->held)) == 0);
		require(lease_detached(&l->leases[number - 1]) == 0);
	}
	require(taken == living);
	require(atomic_load(&l->audit->reaper) == 0);
}

/* After a reaping, nothing is left of the dead, and the limiter admits as many as ever. */
static void check_clean(void)
{
	struct weir_limiter *l = process[ghost_get(&survivor)];
	const long gone = ghost_get(&absent) + explore_died(VICTIM);
	struct weir_shm_reaped reaped;
	struct weir_token token;

	for (int i = 0; i < 2 * REAPS; i++) {
		require(weir_shm_reap_at(l, weir_now(), &reaped) == 0);
		explore_pass(400 * WEIR_MS);
	}
	check_admission(&l->admission);
	check_leases(&l->leasing, (unsigned)(ghost_get(&members) - gone));
	check_queue(&l->queueing);
	require((atomic_load(&l->sampling.sampler->due) & DUE_BUSY) == 0);
	require(atomic_load(&l->runtime->torn) == 0);
	require(atomic_load(&l->leasing.audit->overdrawn) == 0);
	require(sampler_total(&l->sampling, TOTAL_DOUBLE_RELEASED) == 0);
	require(weir_try_acquire(l, &token) == 0);
	weir_release(l, &token, WEIR_IGNORE);
}

/* Whatever the pause has come to, a call ends it. */
static void check_resumed(void)
{
	struct weir_limiter *l = process[ghost_get(&survivor)];
	struct weir_token token;

	explore_pass(PAUSE);
	require(weir_try_acquire(l, &token) == 0);
	weir_release(l, &token, WEIR_IGNORE);
	require(weir_limit(l) > 0);
	check_clean();
}

/*
 * Recovering and auditing take hundreds of steps, so most scenes have one preemption, besides the
 * death, and no stale reads. The scenes for what depends on the order of stores have some.
 */
static const struct scene scenes[] = {
	{
		.name = "reap.call",
		.claim = "a permit of a dead process is given back once, wherever it died",
		.setup = setup,
		.threads = {call, call, reap_and_call},
		.check = check_clean,
		.mortal = 1u << VICTIM,
	},
	{
		.name = "reap.late",
		.claim = "a permit on its way during one measurement of an audit is not lost",
		.setup = setup,
		.threads = {call, call_late, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
	},
	{
		.name = "reap.release",
		.claim = "a call that waits for the permit of a dead process gets it",
		.setup = setup_victim_holds,
		.threads = {release_kept, wait_and_call, reap_and_call},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
	},
	{
		.name = "reap.waiter",
		.claim = "the slot of a dead waiter is freed, and others are served",
		.setup = setup_reaper_holds,
		.threads = {wait_and_call, wait_and_call, release_and_reap},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.leave",
		.claim = "a process that dies while it leaves the queue leaves nothing behind",
		.setup = setup_reaper_holds,
		.threads = {wait_and_leave, call, release_and_reap},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.slot",
		.claim = "the only slot of the queue can be used again after its waiter died",
		.setup = setup_one_slot,
		.threads = {wait_if_there_is_room, wait_and_leave, release_and_reap},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.promised",
		.claim = "a permit granted to a waiter that died before it knew is given back",
		.setup = setup_reaper_holds,
		.threads = {enqueue_and_listen, call, release_and_reap},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.rung",
		.claim = "a waiter learns of its permit although the process that granted it died",
		.setup = setup_victim_holds,
		.threads = {release_kept, enqueue_and_listen, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.two",
		.claim =
			"two processes that reap the same dead one do not both give back its permits",
		.setup = setup_victim_holds,
		.threads = {release_kept, reap_after_victim, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.reaper",
		.claim = "a reaper that dies is reaped, and so is the process that it was reaping",
		.setup = setup_one_died,
		.threads = {reap_once, wait_and_call, reap_and_call},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.join",
		.claim = "a lease is taken again only when nothing of the dead process is left",
		.setup = setup_full,
		.threads = {release_kept, reap_after_victim, join},
		.check = check_clean,
		.mortal = 1u << VICTIM,
	},
	{
		.name = "reap.rejoin",
		.claim = "a reaper leaves the process alone that has taken a dead one's lease",
		.setup = setup_full,
		.threads = {release_kept, reap_after_victim, join, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.granted",
		.claim = "a permit of a dead waiter is given back once, though a reaper dies too",
		.setup = setup_granted_died,
		.threads = {reap_once, call, reap_and_call},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.detach",
		.claim = "a limit is raised by detached permits of the living alone",
		.setup = setup_streams,
		.threads = {detach_kept, wait_and_call, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.leave_limiter",
		.claim = "a process that dies while it returns its lease is reaped",
		.setup = setup_victim_holds,
		.threads = {leave_limiter, wait_and_call, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.leave_detached",
		.claim = "a lease is returned with what its detached calls hold",
		.setup = setup_streams,
		.threads = {detach_and_leave_limiter, wait_and_call, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.limit_set",
		.claim =
			"a process that sets the limit does not wait for a dead one that was setting it",
		.setup = setup_settable,
		.threads = {set_two, set_three},
		.check = check_clean,
		.mortal = 1u << VICTIM,
	},
	{
		.name = "reap.shares_set",
		.claim = "a process that sets partitions does not wait for a dead one",
		.setup = setup_shares,
		.threads = {set_shares, set_shares},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
	},
	{
		.name = "reap.partition",
		.claim = "a permit of a dead process is given back to its partition too",
		.setup = setup_shares,
		.threads = {call_in_partition, call_in_partition, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.delays",
		.claim = "refusals that a dead process was delaying are not counted for ever",
		.setup = setup_shares,
		.threads = {delay_refusal, delay_refusal, reap_after_victim},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.no_stale = true,
	},
	{
		.name = "reap.window",
		.claim = "a window that a dead process owned is taken over by those who need it",
		.setup = setup_windows,
		.threads = {drop_kept, drop_kept, save},
		.check = check_clean,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "reap.pause",
		.claim = "calls are admitted after a pause that a dead process began or was ending",
		.setup = setup_pauses,
		.threads = {pause_and_call, wait_and_call, reap_after_victim},
		.check = check_resumed,
		.mortal = 1u << VICTIM,
		.preemptions = 1,
		.no_stale = true,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
