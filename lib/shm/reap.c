/*
 * Burying dead processes, and looking for what they lost. reap.h has the ledger.
 */

#include "lib/shm/reap.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/base/cancel.h"

#define RELAXED memory_order_relaxed

/* How long an audit takes at least, and how many exact looks. */
#define AUDIT_MIN (1 * WEIR_S)
#define LOOKS_MIN 3

/* Tries of an exact look. */
#define TRIES 200

/*
 * A process that detaches retries this often, a millisecond apart, as the reaper may be stopped.
 * Then it leaves its lease to a reaping, as a dead process does.
 */
#define PATIENCE 2000

void audit_init(struct audit *audit)
{
	memset(audit, 0, sizeof(*audit));
}

/*
 * Whether no process reaps: 0 in *before, or the identity of a reaper that has died in the middle.
 */
static bool is_free(const struct leasing *l, uint64_t evicted, uint64_t *before)
{
	*before = atomic_load_explicit(&l->audit->reaper, RELAXED);
	return *before == 0 || *before == evicted || lease_fate(*before, l->self) == DEAD;
}

static bool lock(struct leasing *l, uint64_t evicted, uint64_t *before)
{
	return is_free(l, evicted, before) &&
	       atomic_compare_exchange_strong_explicit(&l->audit->reaper, before, l->self,
						       memory_order_acq_rel, RELAXED);
}

static void unlock(struct leasing *l)
{
	atomic_store_explicit(&l->audit->reaper, 0, memory_order_release);
}

static void add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, RELAXED);
}

static uint16_t parts_of(const struct weir_limiter *l)
{
	return l->admission.count > 0 ? (uint16_t)l->admission.count : 1;
}

/* Calls that came to their end with nobody to tell of it. */
static void count_calls(const struct weir_limiter *l, uint64_t calls)
{
	atomic_fetch_add_explicit(&sampler_stripe(&l->sampling)->total[TOTAL_REAPED], calls,
				  memory_order_release);
}

/* Finish work of a process that others wait for: a window, ranks, settings. Runs no callbacks. */
static void inherit_tasks(struct weir_limiter *l, uint32_t dead, weir_time now)
{
	if (sampler_inherit(&l->sampling, dead)) {
		limiter_recover_state(l);
		sampler_open(&l->sampling, now);
	}
	shed_inherit(&l->shedding, dead);
	admission_inherit(&l->admission, dead);
}

/* Repair and finish all that the process was doing and that one thread does at a time. */
static void inherit(struct weir_limiter *l, uint32_t dead, weir_time now)
{
	inherit_tasks(l, dead, now);
	queue_inherit(&l->queueing, dead, now);
}

/*
 * What anybody who has died may have had yet to ask for: that a new limit be put in force, that
 * those who wait get the room that he had made.
 */
static void ask_for_all(struct weir_limiter *l, weir_time now)
{
	limiter_retune(l, now, false);
	queue_drain(&l->queueing, now);
}

/*
 * Permits of the dead go back. Taken out of the lease first: who dies in between loses them, for an
 * audit to find.
 */
static uint32_t give_back(struct weir_limiter *l, struct holding *h, uint16_t part)
{
	const uint64_t word = atomic_exchange_explicit(&h->held, 0, memory_order_acq_rel);
	const uint32_t permits = held_permits(word), calls = held_calls(word);
	struct room *room = l->admission.room;
	bool wake;

	limiter_end_delays(l, part, atomic_exchange_explicit(&h->delayed, 0, RELAXED));
	if (permits == 0 || permits > WEIR_LIMIT_MAX || calls == 0)
		return 0;
	if (!admission_give_back(&l->admission, part, permits, &wake))
		return 0;
	/* That took them for one call's. */
	atomic_fetch_sub_explicit(&room->extra_out, calls - 1, memory_order_release);
	count_calls(l, calls);
	return permits;
}

/*
 * The limit is raised no more by what the dead had detached, before that goes back. Taken out of
 * the lease last: who dies in between leaves it to be taken off twice, which an audit finds.
 */
static void end_detached(struct weir_limiter *l, struct lease *lease, weir_time now)
{
	const uint32_t detached = lease_detached(lease);

	if (detached == 0)
		return;
	admission_end_detached(&l->admission, detached);
	atomic_store_explicit(&lease->detached, 0, memory_order_release);
	limiter_retune(l, now, false);
}

/* All that is left of number. The permits that went back. */
static uint32_t bury(struct weir_limiter *l, uint32_t number, weir_time now)
{
	struct holding *holdings = lease_holdings(&l->leasing, number);
	struct lease *lease = &l->leasing.leases[number - 1];
	uint32_t permits = 0;

	queue_bury(&l->queueing, number);
	inherit(l, number, now);
	end_detached(l, lease, now);
	for (uint16_t part = 0; part < parts_of(l); part++)
		permits += give_back(l, &holdings[part], part);
	ask_for_all(l, now);
	add(&l->leasing.audit->reaped, permits);
	atomic_store_explicit(&lease->identity, 0, memory_order_release);
	return permits;
}

/* The processes that seem to be dead, by the numbers of their leases: a bit each. */
struct roll {
	uint64_t dead[LEASES_MAX / 64];
	uint32_t foreign;
};

static uint64_t identity_of(const struct leasing *l, uint32_t number)
{
	return atomic_load_explicit(&l->leases[number - 1].identity, RELAXED);
}

/* The kernel is asked about each, which takes time, so this is done without the lock. */
static void call_roll(const struct leasing *l, struct roll *roll)
{
	*roll = (struct roll){.foreign = 0};
	for (uint32_t number = 1; number <= l->count; number++) {
		const uint64_t identity = identity_of(l, number);
		const enum fate fate = identity != 0 ? lease_fate(identity, l->self) : ALIVE;

		roll->foreign += fate == FOREIGN;
		if (fate == DEAD)
			roll->dead[(number - 1) / 64] |= UINT64_C(1) << (number - 1) % 64;
	}
}

/* Another may have reaped meanwhile, and a living process may have the lease: so ask again. */
static bool is_dead(const struct leasing *l, const struct roll *roll, uint32_t number,
		    uint64_t evicted)
{
	const uint64_t identity = identity_of(l, number);
	const bool seemed = (roll->dead[(number - 1) / 64] >> (number - 1) % 64 & 1) != 0;

	if (identity == 0)
		return false;
	return identity == evicted || (seemed && lease_fate(identity, l->self) == DEAD);
}

static void bury_dead(struct weir_limiter *l, weir_time now, const struct roll *roll,
		      uint64_t evicted, struct weir_shm_reaped *reaped)
{
	struct audit *audit = l->leasing.audit;

	for (uint32_t number = 1; number <= l->leasing.count; number++) {
		if (!is_dead(&l->leasing, roll, number, evicted))
			continue;
		audit->due = DUE_AUDIT;
		audit->recount = 1;
		reaped->processes++;
		reaped->permits += bury(l, number, now);
		add(&audit->deaths, 1);
	}
}

static uint64_t mix(uint64_t sum, const _Atomic uint64_t *word)
{
	return (sum ^ atomic_load_explicit(word, memory_order_acquire)) * UINT64_C(0x100000001b3);
}

/* Changes with each change of a lease or a slot. */
static uint64_t digest(const struct weir_limiter *l)
{
	uint64_t sum = queue_digest(&l->queueing);

	for (uint32_t number = 1; number <= l->leasing.count; number++) {
		const struct lease *lease = &l->leasing.leases[number - 1];
		const struct holding *holdings = lease_holdings(&l->leasing, number);

		sum = mix(sum, &lease->identity);
		if (atomic_load_explicit(&lease->identity, RELAXED) == 0)
			continue;
		sum = mix(sum, &lease->detached);
		for (uint32_t part = 0; part < parts_of(l); part++)
			sum = mix(sum, &holdings[part].held);
	}
	return sum;
}

static uint32_t held_of(const struct weir_limiter *l, uint16_t part)
{
	uint32_t sum = queue_granted(&l->queueing, part);

	for (uint32_t number = 1; number <= l->leasing.count; number++)
		sum += held_permits(atomic_load_explicit(
			&lease_holdings(&l->leasing, number)[part].held, RELAXED));
	return sum;
}

/*
 * Also below zero: permits were taken for lost, but belonged to a call that came back for them.
 * Nothing is admitted until that is put right.
 */
static int64_t missing(struct gate *gate, uint32_t held)
{
	return (int64_t)(int32_t)gate_taken(gate_read_acquire(gate)) - held;
}

/* What a look shows. */
struct finding {
	int64_t lost[WEIR_PARTITIONS_MAX + 2]; /* in flight, not held: of the gate, of partitions */
	int64_t uncounted;                     /* detached, and the limit not raised by it */
};

static int64_t uncounted(const struct weir_limiter *l)
{
	int64_t detached = 0;

	for (uint32_t number = 1; number <= l->leasing.count; number++)
		detached += lease_detached(&l->leasing.leases[number - 1]);
	return detached - atomic_load_explicit(&l->admission.room->detached, memory_order_acquire);
}

/* False: something was changing. */
static bool look(const struct weir_limiter *l, struct finding *finding)
{
	const uint64_t before = digest(l);
	uint32_t all = 0;

	for (uint16_t part = 0; part < parts_of(l); part++) {
		const uint32_t held = held_of(l, part);

		all += held;
		finding->lost[1 + part] = l->admission.count > 0
						  ? missing(&l->admission.parts[part].own, held)
						  : 0;
	}
	finding->lost[0] = missing(l->admission.gate, all);
	finding->uncounted = uncounted(l);
	return digest(l) == before;
}

static bool look_exactly(const struct weir_limiter *l, struct finding *finding)
{
	for (int i = 0; i < TRIES; i++)
		if (look(l, finding))
			return true;
	return false;
}

static struct gate *gate_of(const struct weir_limiter *l, uint32_t i)
{
	return i == 0 ? l->admission.gate : &l->admission.parts[i - 1].own;
}

/*
 * Fewer in flight than are held, or a limit that is raised by more than is detached: somebody's
 * who was taken for lost.
 */
static void put_right(struct weir_limiter *l, const struct finding *finding, weir_time now)
{
	struct audit *audit = l->leasing.audit;

	for (uint32_t i = 0; i < 1 + l->admission.count; i++) {
		const int64_t lost = finding->lost[i];

		if (lost >= 0)
			continue;
		gate_mend(gate_of(l, i), (uint32_t)-lost);
		add(&audit->overdrawn, i == 0 ? (uint64_t)-lost : 0);
		audit->due = DUE_AUDIT;
	}
	if (finding->uncounted < 0) {
		admission_end_detached(&l->admission, (uint32_t)-finding->uncounted);
		audit->due = DUE_AUDIT;
		limiter_retune(l, now, false);
	}
}

/* Raise the limit by what all looks have shown to be detached. */
static void count_detached(struct weir_limiter *l, weir_time now)
{
	struct audit *audit = l->leasing.audit;

	if (audit->uncounted == 0)
		return;
	audit->due = DUE_AUDIT;
	audit->gave = 1;
	admission_detach(&l->admission, audit->uncounted);
	limiter_retune(l, now, false);
}

/* Give back what all looks have shown. The permits. */
static uint32_t collect(struct weir_limiter *l, weir_time now)
{
	struct audit *audit = l->leasing.audit;
	bool wake = false;

	for (uint32_t i = 0; i < 1 + l->admission.count; i++) {
		const uint32_t lost = audit->lost[i];
		uint64_t before;

		if (lost == 0)
			continue;
		audit->due = DUE_AUDIT;
		audit->gave = 1;
		before = gate_subtract(gate_of(l, i), lost);
		if (!gate_held(before, lost))
			before = gate_mend(gate_of(l, i), lost);
		wake |= gate_waiters(before) != 0;
	}
	if (wake)
		queue_drain(&l->queueing, now);
	add(&audit->found, audit->lost[0]);
	count_calls(l, audit->lost[0]);
	return audit->lost[0];
}

/* Who inherits half of a beginning has looks that have shown too few lost, or begins again. */
static void begin_audit(struct audit *audit, weir_time now)
{
	audit->looks = 0;
	memset(audit->lost, 0xff, sizeof(audit->lost));
	audit->uncounted = UINT32_MAX;
	audit->due = DUE_BEGUN;
	atomic_signal_fence(memory_order_acq_rel);
	audit->since = now != 0 ? now : 1;
}

/* What is due stays so, if this process dies, until all that was lost is back. */
static uint32_t end_audit(struct weir_limiter *l, weir_time now)
{
	struct audit *audit = l->leasing.audit;
	uint32_t found;

	audit->since = 0;
	count_detached(l, now);
	found = collect(l, now);
	if (audit->due == DUE_BEGUN)
		audit->due = DUE_NONE;
	return found;
}

/* The lower of what was found so far and what is found now. */
static uint32_t lower(uint32_t so_far, int64_t now)
{
	if (now <= 0)
		return 0;
	return (uint64_t)now < so_far ? (uint32_t)now : so_far;
}

static uint32_t go_on_with_audit(struct weir_limiter *l, weir_time now)
{
	struct audit *audit = l->leasing.audit;
	struct finding finding = {.uncounted = 0};

	if (audit->since == 0 && audit->due != DUE_NONE)
		begin_audit(audit, now);
	if ((audit->since == 0 && audit->gave == 0) || !look_exactly(l, &finding))
		return 0;
	put_right(l, &finding, now);
	if (audit->since == 0)
		return 0;
	for (uint32_t i = 0; i < 1 + l->admission.count; i++)
		audit->lost[i] = lower(audit->lost[i], finding.lost[i]);
	audit->uncounted = lower(audit->uncounted, finding.uncounted);
	audit->looks++;
	if (audit->looks < LOOKS_MIN || now - audit->since < AUDIT_MIN)
		return 0;
	return end_audit(l, now);
}

/* Become the reaper, and go on with the work of one that has died. */
static bool begin(struct weir_limiter *l, uint64_t evicted, weir_time now)
{
	uint64_t before;

	if (!lock(&l->leasing, evicted, &before))
		return false;
	if (before == 0)
		return true;
	inherit(l, REAPER, now);
	ask_for_all(l, now);
	l->leasing.audit->recount = 1;
	return true;
}

int reap(struct weir_limiter *l, weir_time now, uint32_t number, struct weir_shm_reaped *reaped)
{
	uint64_t evicted = number != 0 ? identity_of(&l->leasing, number) : 0, before;
	struct roll roll;

	*reaped = (struct weir_shm_reaped){.processes = 0};
	if (!is_free(&l->leasing, evicted, &before))
		return -EAGAIN;
	call_roll(&l->leasing, &roll);
	if (!begin(l, evicted, now))
		return -EAGAIN;
	reaped->foreign = roll.foreign;
	bury_dead(l, now, &roll, evicted, reaped);
	if (l->leasing.audit->recount != 0 && queue_recount(&l->queueing, now))
		l->leasing.audit->recount = 0;
	reaped->found = go_on_with_audit(l, now);
	unlock(&l->leasing);
	return 0;
}

/*
 * The process that has that number; 0: none. Only a reaper has the number of those without a lease.
 */
static uint64_t owner_of(const struct leasing *l, uint32_t number)
{
	if (number == REAPER)
		return atomic_load_explicit(&l->audit->reaper, RELAXED);
	return number >= 1 && number <= l->count ? identity_of(l, number) : 0;
}

/*
 * With the reaper's word, as only a reaper frees a lease: so what carries the dead process's number
 * belongs to it. If a reaper has died, its word is put back, as it left more work than is done
 * here.
 */
bool reap_stand_in(struct weir_limiter *l, uint32_t number, weir_time now)
{
	const uint64_t dead = owner_of(&l->leasing, number);
	uint64_t before;

	if (dead == 0 || lease_fate(dead, l->leasing.self) != DEAD ||
	    !lock(&l->leasing, 0, &before))
		return false;
	if (number == REAPER ? before == dead : identity_of(&l->leasing, number) == dead)
		inherit_tasks(l, number, now);
	atomic_store_explicit(&l->leasing.audit->reaper, before, memory_order_release);
	return true;
}

void reap_own(struct weir_limiter *l, weir_time now)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const int cancel = cancel_hold();
	bool mine = begin(l, 0, now);

	for (int i = 0; !mine && i < PATIENCE; i++) {
		nanosleep(&pause, NULL);
		mine = begin(l, 0, now);
	}
	if (mine) {
		(void)bury(l, l->leasing.number, now);
		unlock(&l->leasing);
	}
	cancel_release(cancel);
}
