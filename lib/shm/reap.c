/* SPDX-License-Identifier: BSD-2-Clause */
/* Recovering what dead processes held, and auditing for what they lost. reap.h has the ledger. */

#include "lib/shm/reap.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/base/cancel.h"

#define RELAXED memory_order_relaxed

/* The least duration of an audit in ns, and its least number of exact measurements. */
#define AUDIT_MIN (1 * WEIR_S)
#define LOOKS_MIN 3

/* Attempts at an exact measurement. */
#define TRIES 200

/*
 * A process that detaches retries this often, 1 ms apart, as the reaper may be stopped. Then it
 * leaves its lease to a reaping, as a dead process does.
 */
#define DETACH_TRIES 2000

void audit_init(struct audit *audit)
{
	memset(audit, 0, sizeof(*audit));
}

/*
 * Whether no living process reaps. *before is 0, or the identity of a reaper that died in its work.
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

/* Count calls that ended without being released. */
static void count_calls(const struct weir_limiter *l, uint64_t calls)
{
	atomic_fetch_add_explicit(&sampler_stripe(&l->sampling)->total[TOTAL_REAPED], calls,
				  memory_order_release);
}

/* Finish work of a process that others wait for: a window, ranks, settings. Runs no callbacks. */
static void inherit_tasks(struct weir_limiter *l, uint32_t dead, weir_time now)
{
	if (sampler_recover(&l->sampling, dead)) {
		limiter_recover_state(l);
		sampler_open(&l->sampling, now);
	}
	shed_recover(&l->shedding, dead);
	admission_recover(&l->admission, dead);
}

/* Finish or undo everything that the process was doing and that one thread does at a time. */
static void inherit(struct weir_limiter *l, uint32_t dead, weir_time now)
{
	inherit_tasks(l, dead, now);
	queue_recover(&l->queueing, dead, now);
}

/*
 * A process that died may have been about to put a new limit into force, or to give waiters the
 * room that it had made. So do both.
 */
static void retune_and_drain(struct weir_limiter *l, weir_time now)
{
	limiter_retune(l, now, false);
	queue_drain(&l->queueing, now);
}

/*
 * Return permits of a dead process. They are taken out of the lease first: if this process dies in
 * between, they are lost, and an audit finds them.
 */
static uint32_t give_back(struct weir_limiter *l, struct holding *h, uint16_t part)
{
	const uint64_t word = atomic_exchange_explicit(&h->held, 0, memory_order_acq_rel);
	const uint32_t permits = held_permits(word), calls = held_calls(word);
	struct room *room = l->admission.room;

	limiter_end_delays(l, part, atomic_exchange_explicit(&h->delayed, 0, RELAXED));
	if (permits == 0 || permits > WEIR_LIMIT_MAX || calls == 0)
		return 0;
	if (!admission_give_back(&l->admission, part, permits, 0).held)
		return 0;
	/* admission_give_back() took the permits as those of one call. */
	atomic_fetch_sub_explicit(&room->extra_out, calls - 1, memory_order_release);
	count_calls(l, calls);
	return permits;
}

/*
 * Stop raising the limit by what the dead process had detached, before its permits are returned.
 * The lease is cleared last: if this process dies in between, the amount is subtracted twice, which
 * an audit finds.
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

/* Recover all that process number had. Returns the number of permits returned. */
static uint32_t reap_one(struct weir_limiter *l, uint32_t number, weir_time now)
{
	struct holding *holdings = lease_holdings(&l->leasing, number);
	struct lease *lease = &l->leasing.leases[number - 1];
	uint32_t permits = 0;

	queue_reclaim(&l->queueing, number);
	inherit(l, number, now);
	end_detached(l, lease, now);
	for (uint16_t part = 0; part < parts_of(l); part++)
		permits += give_back(l, &holdings[part], part);
	retune_and_drain(l, now);
	add(&l->leasing.audit->reaped, permits);
	atomic_store_explicit(&lease->identity, 0, memory_order_release);
	return permits;
}

/* Processes that seem to be dead: a bit for each number of a lease. */
struct dead_set {
	uint64_t dead[LEASES_MAX / 64];
	uint32_t foreign;
};

static uint64_t identity_of(const struct leasing *l, uint32_t number)
{
	return atomic_load_explicit(&l->leases[number - 1].identity, RELAXED);
}

/* Asking the kernel about each process takes time, so this is done without the lock. */
static void find_dead(const struct leasing *l, struct dead_set *set)
{
	*set = (struct dead_set){.foreign = 0};
	for (uint32_t number = 1; number <= l->count; number++) {
		const uint64_t identity = identity_of(l, number);
		const enum fate fate = identity != 0 ? lease_fate(identity, l->self) : ALIVE;

		set->foreign += fate == FOREIGN;
		if (fate == DEAD)
			set->dead[(number - 1) / 64] |= UINT64_C(1) << (number - 1) % 64;
	}
}

/* Checked again: another reaper may have been here, and a living process may have the lease now. */
static bool is_dead(const struct leasing *l, const struct dead_set *set, uint32_t number,
		    uint64_t evicted)
{
	const uint64_t identity = identity_of(l, number);
	const bool seemed = (set->dead[(number - 1) / 64] >> (number - 1) % 64 & 1) != 0;

	if (identity == 0)
		return false;
	return identity == evicted || (seemed && lease_fate(identity, l->self) == DEAD);
}

static void reap_all(struct weir_limiter *l, weir_time now, const struct dead_set *set,
		     uint64_t evicted, struct weir_shm_reaped *reaped)
{
	struct audit *audit = l->leasing.audit;

	for (uint32_t number = 1; number <= l->leasing.count; number++) {
		if (!is_dead(&l->leasing, set, number, evicted))
			continue;
		audit->due = DUE_AUDIT;
		audit->recount = 1;
		reaped->processes++;
		reaped->permits += reap_one(l, number, now);
		add(&audit->deaths, 1);
	}
}

static uint64_t mix(uint64_t sum, const _Atomic uint64_t *word)
{
	return (sum ^ atomic_load_explicit(word, memory_order_acquire)) * UINT64_C(0x100000001b3);
}

/* Changes whenever a lease or a slot changes. */
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
 * Can be negative: permits were taken as lost, but belonged to a call that continued. No call is
 * admitted until that is corrected.
 */
static int64_t missing(struct gate *gate, uint32_t held)
{
	return (int64_t)(int32_t)gate_taken(gate_read_acquire(gate)) - held;
}

/* Result of a measurement. */
struct finding {
	int64_t lost[WEIR_PARTITIONS_MAX + 2]; /* in flight, not held: of the gate, of partitions */
	int64_t uncounted;                     /* detached permits that do not raise the limit */
};

static int64_t uncounted(const struct weir_limiter *l)
{
	int64_t detached = 0;

	for (uint32_t number = 1; number <= l->leasing.count; number++)
		detached += lease_detached(&l->leasing.leases[number - 1]);
	return detached - atomic_load_explicit(&l->admission.room->detached, memory_order_acquire);
}

/* False: something was changing. */
static bool measure(const struct weir_limiter *l, struct finding *finding)
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

static bool measure_exactly(const struct weir_limiter *l, struct finding *finding)
{
	for (int i = 0; i < TRIES; i++)
		if (measure(l, finding))
			return true;
	return false;
}

static struct gate *gate_of(const struct weir_limiter *l, uint32_t i)
{
	return i == 0 ? l->admission.gate : &l->admission.parts[i - 1].own;
}

/*
 * Fewer permits in flight than are held, or a limit raised by more than is detached, are those of a
 * call that was taken as lost.
 */
static void correct(struct weir_limiter *l, const struct finding *finding, weir_time now)
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

/* Raise the limit by the detached permits that all measurements found missing. */
static void count_detached(struct weir_limiter *l, weir_time now)
{
	struct audit *audit = l->leasing.audit;

	if (audit->uncounted == 0)
		return;
	audit->due = DUE_AUDIT;
	audit->returned = 1;
	admission_detach(&l->admission, audit->uncounted);
	limiter_retune(l, now, false);
}

/* Return the permits that all measurements found lost. Returns their number. */
static uint32_t collect(struct weir_limiter *l, weir_time now)
{
	struct audit *audit = l->leasing.audit;
	bool drain = false;

	for (uint32_t i = 0; i < 1 + l->admission.count; i++) {
		const uint32_t lost = audit->lost[i];
		uint64_t before;

		if (lost == 0)
			continue;
		audit->due = DUE_AUDIT;
		audit->returned = 1;
		before = gate_subtract(gate_of(l, i), lost);
		if (!gate_held(before, lost))
			before = gate_mend(gate_of(l, i), lost);
		drain |= gate_waiters(before) != 0;
	}
	if (drain)
		queue_drain(&l->queueing, now);
	add(&audit->found, audit->lost[0]);
	count_calls(l, audit->lost[0]);
	return audit->lost[0];
}

/* If this process dies halfway, the next reaper has minima that are too low, or begins again. */
static void begin_audit(struct audit *audit, weir_time now)
{
	audit->looks = 0;
	memset(audit->lost, 0xff, sizeof(audit->lost));
	audit->uncounted = UINT32_MAX;
	audit->due = DUE_BEGUN;
	atomic_signal_fence(memory_order_acq_rel);
	audit->since = now != 0 ? now : 1;
}

/* If this process dies, due stays set until all lost permits have been returned. */
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

/* The lower of two numbers of lost permits, the lowest so far and the latest. */
static uint32_t lower(uint32_t so_far, int64_t now)
{
	if (now <= 0)
		return 0;
	return (uint64_t)now < so_far ? (uint32_t)now : so_far;
}

static uint32_t continue_audit(struct weir_limiter *l, weir_time now)
{
	struct audit *audit = l->leasing.audit;
	struct finding finding = {.uncounted = 0};

	if (audit->since == 0 && audit->due != DUE_NONE)
		begin_audit(audit, now);
	if ((audit->since == 0 && audit->returned == 0) || !measure_exactly(l, &finding))
		return 0;
	correct(l, &finding, now);
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

/* Become the reaper, and continue the work of one that died. */
static bool begin(struct weir_limiter *l, uint64_t evicted, weir_time now)
{
	uint64_t before;

	if (!lock(&l->leasing, evicted, &before))
		return false;
	if (before == 0)
		return true;
	inherit(l, REAPER, now);
	retune_and_drain(l, now);
	l->leasing.audit->recount = 1;
	return true;
}

int reap(struct weir_limiter *l, weir_time now, uint32_t number, struct weir_shm_reaped *reaped)
{
	uint64_t evicted = number != 0 ? identity_of(&l->leasing, number) : 0, before;
	struct dead_set set;

	*reaped = (struct weir_shm_reaped){.processes = 0};
	if (!is_free(&l->leasing, evicted, &before))
		return -EAGAIN;
	find_dead(&l->leasing, &set);
	if (!begin(l, evicted, now))
		return -EAGAIN;
	reaped->foreign = set.foreign;
	reap_all(l, now, &set, evicted, reaped);
	if (l->leasing.audit->recount != 0 && queue_recount(&l->queueing, now))
		l->leasing.audit->recount = 0;
	reaped->found = continue_audit(l, now);
	unlock(&l->leasing);
	return 0;
}

/*
 * The identity of the process with that number; 0: none. Only a reaper uses the number REAPER, of
 * processes without a lease.
 */
static uint64_t owner_of(const struct leasing *l, uint32_t number)
{
	if (number == REAPER)
		return atomic_load_explicit(&l->audit->reaper, RELAXED);
	return number >= 1 && number <= l->count ? identity_of(l, number) : 0;
}

/*
 * This takes the reaper's word, as only a reaper frees a lease: so while it is held, what carries
 * the dead process's number belongs to it. If a reaper has died, its identity is put back, as it
 * left more work than is done here.
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

	for (int i = 0; !mine && i < DETACH_TRIES; i++) {
		nanosleep(&pause, NULL);
		mine = begin(l, 0, now);
	}
	if (mine) {
		(void)reap_one(l, l->leasing.number, now);
		unlock(&l->leasing);
	}
	cancel_release(cancel);
}
