/* SPDX-License-Identifier: BSD-2-Clause */
/* A rate: admission, and changes of its terms. lib/rate/rate.h has the ledger and the argument. */

#include "lib/rate/rate.h"

#include <errno.h>
#include <string.h>

#include "lib/base/current_cpu.h"

/* The most debt that settling may cause, in units. */
#define DEBT_MAX (UINT64_C(1) << 61)

void rate_count(struct weir_rate *r, enum rate_total which, uint64_t count)
{
	struct tally *tally = &r->tally[current_cpu() & (TALLIES - 1)];

	atomic_fetch_add_explicit(&tally->total[which], count, memory_order_relaxed);
}

void rate_publish(struct weir_rate *r)
{
	const uint64_t version = atomic_load_explicit(&r->version, memory_order_relaxed);
	struct published_terms *place = &r->published[(version + 1) & 1];
	const uint64_t *word = (const uint64_t *)&r->terms;

	for (size_t i = 0; i < TERMS_WORDS; i++)
		atomic_store_explicit(&place->word[i], word[i], memory_order_release);
	atomic_store_explicit(&r->version, version + 1, memory_order_release);
}

/* Read the terms in force: those of the quotas that the rate has. */
static void read_terms(const struct weir_rate *r, struct terms *terms)
{
	const size_t words = ACCRUAL_WORDS + r->quotas * QUOTA_WORDS;
	uint64_t *word = (uint64_t *)terms, version;

	do {
		const struct published_terms *place;

		version = atomic_load_explicit(&r->version, memory_order_acquire);
		place = &r->published[version & 1];
		for (size_t i = 0; i < words; i++)
			word[i] = atomic_load_explicit(&place->word[i], memory_order_acquire);
	} while (UNLIKELY(atomic_load_explicit(&r->version, memory_order_relaxed) != version));
}

static bool take(struct weir_rate *r, unsigned i, const struct quota *q, uint64_t worth,
		 uint64_t units)
{
	uint64_t taken = atomic_load_explicit(&r->taken[i], memory_order_relaxed), after;

	do {
		if (!quota_take(q, worth, taken, units, &after))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&r->taken[i], &taken, after, memory_order_release, memory_order_relaxed));
	return true;
}

/* Whether anything is left, by one look. */
static bool has(const struct weir_rate *r, unsigned i, const struct quota *q, uint64_t worth)
{
	const uint64_t taken = atomic_load_explicit(&r->taken[i], memory_order_relaxed);
	uint64_t after;

	return quota_take(q, worth, taken, 0, &after);
}

static void return_units(struct weir_rate *r, unsigned i, uint64_t units)
{
	atomic_fetch_sub_explicit(&r->taken[i], units, memory_order_release);
}

static bool needs(const struct terms *terms, const struct weir_cost *cost, unsigned i)
{
	return cost->units[i] > 0 && terms->quota[i].limited;
}

enum answer { ADMITTED, NOTHING_LEFT, RETURNED };

/* Return what was taken of the quotas before end. */
static enum answer undo(struct weir_rate *r, const struct terms *terms,
			const struct weir_cost *cost, unsigned end)
{
	enum answer answer = NOTHING_LEFT;

	for (unsigned i = 0; i < end; i++) {
		if (!needs(terms, cost, i))
			continue;
		return_units(r, i, cost->units[i]);
		answer = RETURNED;
	}
	return answer;
}

/* Take units of each quota, or of none: in order, and returned if one fails. */
static enum answer take_all(struct weir_rate *r, const struct terms *terms, uint64_t worth,
			    const struct weir_cost *cost)
{
	for (unsigned i = 1; i < r->quotas; i++)
		if (needs(terms, cost, i) && !has(r, i, &terms->quota[i], worth))
			return NOTHING_LEFT;
	for (unsigned i = 0; i < r->quotas; i++)
		if (needs(terms, cost, i) && !take(r, i, &terms->quota[i], worth, cost->units[i]))
			return undo(r, terms, cost, i);
	return ADMITTED;
}

/*
 * Move the origin to the slot that began last. Only SPAN is counted at once; nothing is added in
 * any time beyond it. The caller holds the lock.
 */
static void move_origin(struct weir_rate *r, weir_time now)
{
	uint64_t slots = accrual_slots(&r->terms.accrual, now);
	const uint64_t worth = accrual_worth(&r->terms.accrual, slots);

	for (unsigned i = 0; i < r->quotas; i++)
		quota_move(&r->terms.quota[i], worth);
	for (; slots > 0; slots = accrual_slots(&r->terms.accrual, now))
		accrual_move(&r->terms.accrual, slots);
}

static bool is_far(const struct accrual *p, weir_time now)
{
	return (int64_t)(now - p->origin) > (int64_t)RENEWAL;
}

void rate_renew(struct weir_rate *r, weir_time now)
{
	if (LIKELY(!is_far(&r->terms.accrual, now)))
		return;
	move_origin(r, now);
	rate_publish(r);
}

/* One call of many is enough: if the lock is taken, leave it to another. */
static void try_to_renew(struct weir_rate *r, weir_time now)
{
	if (pthread_mutex_trylock(&r->lock) != 0)
		return;
	rate_renew(r, now);
	pthread_mutex_unlock(&r->lock);
}

/* Admit by the units added by that time. */
static enum answer admit(struct weir_rate *r, weir_time now, const struct weir_cost *cost)
{
	struct terms terms;
	enum answer answer;

	read_terms(r, &terms);
	answer = take_all(r, &terms,
			  accrual_worth(&terms.accrual, accrual_slots(&terms.accrual, now)), cost);
	if (answer != ADMITTED)
		return answer;
	rate_count(r, RATE_ADMITTED, 1);
	for (unsigned i = 0; i < r->quotas; i++)
		if (cost->units[i] > 0)
			rate_count(r, (enum rate_total)(RATE_TAKEN + i), cost->units[i]);
	if (UNLIKELY(is_far(&terms.accrual, now)))
		try_to_renew(r, now);
	return ADMITTED;
}

/*
 * Whether nothing was left of a quota that the call needs. If something was left at the time that
 * is read here, the call is worth another try.
 */
static bool is_used_up(struct weir_rate *r, const struct weir_cost *cost, weir_time *now)
{
	uint64_t taken[WEIR_QUOTAS_MAX] = {0}, worth, after;
	struct terms terms;

	for (unsigned i = 0; i < r->quotas; i++)
		taken[i] = atomic_load_explicit(&r->taken[i], memory_order_acquire);
	*now = rate_now(r);
	read_terms(r, &terms);
	if (UNLIKELY(is_far(&terms.accrual, *now)))
		try_to_renew(r, *now);
	worth = accrual_worth(&terms.accrual, accrual_slots(&terms.accrual, *now));
	for (unsigned i = 0; i < r->quotas; i++)
		if (needs(&terms, cost, i) &&
		    !quota_take(&terms.quota[i], worth, taken[i], 0, &after))
			return true;
	return false;
}

bool rate_admit(struct weir_rate *r, weir_time now, const struct weir_cost *cost)
{
	do {
		if (admit(r, now, cost) == ADMITTED)
			return true;
	} while (!is_used_up(r, cost, &now));
	return false;
}

bool rate_is_cost(const struct weir_rate *r, const struct weir_cost *cost)
{
	for (unsigned i = 0; i < WEIR_QUOTAS_MAX; i++)
		if (cost->units[i] > (i < r->quotas ? WEIR_UNITS_MAX : 0))
			return false;
	return true;
}

/* Units were returned: give them to waiters. */
static void serve_returned(struct weir_rate *r)
{
	const uint64_t before = atomic_fetch_add_explicit(&r->waiting, RETURN,
							  memory_order_acq_rel);

	if (LIKELY((uint32_t)before == 0))
		return;
	pthread_mutex_lock(&r->lock);
	line_serve(r, rate_now(r), true);
}

bool rate_try(struct weir_rate *r, weir_time now, const struct weir_cost *cost)
{
	while (rate_waiting(r) == 0) {
		const enum answer answer = admit(r, now, cost);

		if (LIKELY(answer == ADMITTED))
			return true;
		if (answer == RETURNED)
			serve_returned(r);
		if (is_used_up(r, cost, &now))
			return false;
	}
	return false;
}

int weir_rate_try_for(struct weir_rate *r, const struct weir_cost *cost)
{
	if (UNLIKELY(!rate_is_cost(r, cost)))
		return -EINVAL;
	/* Fetch the contended line while the clock is being read. */
	__builtin_prefetch(&r->taken, 1);
	if (LIKELY(rate_try(r, rate_now(r), cost)))
		return 0;
	rate_count(r, RATE_REFUSED, 1);
	return -EAGAIN;
}

int weir_rate_try(struct weir_rate *r, uint64_t units)
{
	const struct weir_cost cost = {.units = {units}};

	return weir_rate_try_for(r, &cost);
}

weir_time rate_turn(struct weir_rate *r, const struct weir_cost *cost)
{
	const struct terms *terms = &r->terms;
	weir_time turn = terms->accrual.origin;

	for (unsigned i = 0; i < r->quotas; i++) {
		uint64_t worth;
		weir_time time;

		if (!needs(terms, cost, i))
			continue;
		worth = quota_worth_for(&terms->quota[i],
					atomic_load_explicit(&r->taken[i], memory_order_relaxed));
		time = accrual_time_of(&terms->accrual, worth);
		if (time == WEIR_FOREVER)
			return WEIR_FOREVER;
		turn = (int64_t)(time - turn) > 0 ? time : turn;
	}
	return turn;
}

/* Let the units left beyond keep lapse. The caller holds the lock, and the origin is now. */
static void lapse(struct weir_rate *r, unsigned i, uint64_t keep)
{
	const struct quota *q = &r->terms.quota[i];
	uint64_t taken = atomic_load_explicit(&r->taken[i], memory_order_relaxed);

	while ((int64_t)(quota_due(q, 0) - keep - taken) > 0 &&
	       !atomic_compare_exchange_weak_explicit(&r->taken[i], &taken, quota_due(q, 0) - keep,
						      memory_order_release, memory_order_relaxed))
		;
}

/*
 * Whether a slot has begun since the origin: then other threads may have counted it by the previous
 * terms. The caller holds the lock and has published.
 */
static bool is_late(const struct weir_rate *r, weir_time *now)
{
	*now = rate_now(r);
	return accrual_slots(&r->terms.accrual, *now) > 0;
}

/* Change a quota from that time on. The caller holds the lock. */
static void change_quota(struct weir_rate *r, weir_time now, unsigned i,
			 const struct weir_quota *value)
{
	struct quota *q = &r->terms.quota[i];

	move_origin(r, now);
	if (q->limited)
		lapse(r, i, q->depth); /* a greater depth does not bring them back */
	*q = quota_with(q, value, r->slot);
	rate_publish(r);
}

int weir_rate_set(struct weir_rate *r, unsigned quota, const struct weir_quota *value)
{
	weir_time now = rate_now(r);
	struct quota *q;
	struct terms before;

	if (quota >= r->quotas || rate_check_quota(value, quota, NULL, 0) != 0 ||
	    (value->period != 0 ? value->period : WEIR_S) < r->slot)
		return -EINVAL;
	pthread_mutex_lock(&r->lock);
	q = &r->terms.quota[quota];
	before = r->terms;
	change_quota(r, now, quota, value);
	if (quota_is_slower(q, &before.quota[quota]) && is_late(r, &now)) {
		r->terms = before;
		change_quota(r, now, quota, value);
	}
	r->value[quota] = *value;
	if (q->limited)
		lapse(r, quota, q->depth);
	line_serve(r, now, true);
	return 0;
}

/* Change the pace from that time on. The caller holds the lock. */
static void change_pace(struct weir_rate *r, weir_time now, weir_dur retry_after, bool lower)
{
	move_origin(r, now);
	accrual_throttle(&r->terms.accrual, now, retry_after, lower);
	rate_publish(r);
}

/*
 * Whether throttling lowers the pace. A thread that read the clock later may already have lowered
 * it.
 */
static bool lowers(const struct weir_rate *r, weir_time now)
{
	return r->terms.accrual.percent == FULL_PACE ||
	       (int64_t)(now - r->lowered) >= (int64_t)r->recovery;
}

void weir_rate_throttled(struct weir_rate *r, weir_dur retry_after)
{
	weir_time now = rate_now(r);
	struct terms before;
	bool lower;

	rate_count(r, RATE_THROTTLED, 1);
	pthread_mutex_lock(&r->lock);
	move_origin(r, now);
	lower = lowers(r, now);
	if (lower)
		r->lowered = now;
	before = r->terms;
	change_pace(r, now, retry_after, lower);
	if (is_late(r, &now)) {
		r->terms = before;
		change_pace(r, now, retry_after, lower);
	}
	for (unsigned i = 0; i < r->quotas; i++)
		if (r->terms.quota[i].limited)
			lapse(r, i, 0);
	pthread_mutex_unlock(&r->lock);
}

/*
 * Charge units as if they were taken now: to what is left, not to what has lapsed. Stops at
 * DEBT_MAX.
 */
static void charge(struct weir_rate *r, unsigned i, uint64_t units)
{
	const weir_time now = rate_now(
		r); /* before the terms: newer ones may add less by a later time */
	struct terms terms;
	const struct quota *q = &terms.quota[i];
	uint64_t worth, taken, after;

	read_terms(r, &terms);
	if (!q->limited)
		return;
	worth = accrual_worth(&terms.accrual, accrual_slots(&terms.accrual, now));
	taken = atomic_load_explicit(&r->taken[i], memory_order_relaxed);
	do {
		if (quota_debt(q, worth, taken) > DEBT_MAX - units)
			return;
		after = quota_lapsed(q, worth, taken) + units;
	} while (!atomic_compare_exchange_weak_explicit(
		&r->taken[i], &taken, after, memory_order_release, memory_order_relaxed));
}

static void refund(struct weir_rate *r, unsigned i, uint64_t units)
{
	struct terms terms;

	read_terms(r, &terms);
	if (!terms.quota[i].limited)
		return;
	return_units(r, i, units);
	serve_returned(r);
}

int weir_rate_settle(struct weir_rate *r, unsigned quota, uint64_t taken, uint64_t actual)
{
	if (quota >= r->quotas || taken > WEIR_UNITS_MAX || actual > WEIR_UNITS_MAX)
		return -EINVAL;
	if (actual >= taken)
		charge(r, quota, actual - taken);
	else
		refund(r, quota, taken - actual);
	return 0;
}

void weir_rate_snapshot_init_sized(struct weir_rate_snapshot *snapshot, size_t size)
{
	memset(snapshot, 0, size);
	snapshot->size = size;
}

static uint64_t total(const struct weir_rate *r, unsigned which)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < TALLIES; i++)
		sum += atomic_load_explicit(&r->tally[i].total[which], memory_order_relaxed);
	return sum;
}

static struct weir_quota_snapshot show_quota(const struct weir_rate *r, unsigned i, uint64_t worth)
{
	const struct quota *q = &r->terms.quota[i];
	const uint64_t taken = atomic_load_explicit(&r->taken[i], memory_order_relaxed);

	return (struct weir_quota_snapshot){
		.quota = r->value[i],
		.available = quota_left(q, worth, taken),
		.debt = q->limited ? quota_debt(q, worth, taken) : 0,
		.taken = total(r, RATE_TAKEN + i),
	};
}

void weir_rate_snapshot_take(struct weir_rate *r, struct weir_rate_snapshot *snapshot)
{
	static const struct weir_cost one = {.units = {1, 1, 1, 1}};
	const weir_time now = rate_now(r);
	struct weir_rate_snapshot s = {
		.size = snapshot->size,
		.quota_count = r->quotas,
		.admitted = total(r, RATE_ADMITTED),
		.refused = total(r, RATE_REFUSED),
		.abandoned = total(r, RATE_ABANDONED),
		.throttled = total(r, RATE_THROTTLED),
	};
	const struct weir_cost *first;
	struct accrual accrual;
	uint64_t worth;

	pthread_mutex_lock(&r->lock);
	accrual = r->terms.accrual;
	worth = accrual_worth(&accrual, accrual_slots(&accrual, now));
	accrual_move(&accrual, accrual_slots(&accrual, now));
	first = line_first(r);
	s.waiting = rate_waiting(r);
	s.percent = accrual.pause > 0 ? 0 : (uint32_t)accrual.percent;
	s.slot = r->slot;
	s.next = rate_turn(r, first != NULL ? first : &one);
	for (unsigned i = 0; i < r->quotas; i++)
		s.quotas[i] = show_quota(r, i, worth);
	pthread_mutex_unlock(&r->lock);
	memcpy(snapshot, &s, s.size < sizeof(s) ? s.size : sizeof(s));
}
