/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/rate/accrual.h"

/* After throttling, in percent: the factor on the pace, its floor, and each step back up. */
#define LOWERED      70
#define LOWEST       10
#define STEP_PERCENT 5

#define RETRY_MAX (UINT64_C(1) << 60)

uint64_t accrual_slots(const struct accrual *p, weir_time now)
{
	const uint64_t elapsed = now - p->origin;

	if ((int64_t)elapsed < 0)
		return 0;
	return (elapsed < SPAN ? elapsed : SPAN) / p->slot;
}

static uint64_t step_up(uint64_t percent)
{
	return percent + STEP_PERCENT < FULL_PACE ? percent + STEP_PERCENT : FULL_PACE;
}

/* At most about twenty steps. */
uint64_t accrual_worth(const struct accrual *p, uint64_t slots)
{
	uint64_t percent = p->percent, length = p->first, sum = 0;

	if (slots <= p->pause)
		return 0;
	slots -= p->pause;
	while (percent < FULL_PACE && slots > length) {
		sum += length * percent;
		slots -= length;
		length = p->step;
		percent = step_up(percent);
	}
	return (sum + slots * percent) * p->slot;
}

weir_time accrual_time_of(const struct accrual *p, uint64_t worth)
{
	uint64_t percent = p->percent, length = p->first, slots = p->pause;
	uint64_t left = worth / p->slot + (worth % p->slot != 0);

	if (worth == 0)
		return p->origin;
	while (percent < FULL_PACE && (left - 1) / percent >= length) {
		left -= length * percent;
		slots += length;
		length = p->step;
		percent = step_up(percent);
	}
	slots += (left - 1) / percent + 1;
	if (worth == UINT64_MAX)
		return WEIR_FOREVER;
	return p->origin + (slots < SPAN / p->slot ? slots : SPAN / p->slot) * p->slot;
}

void accrual_move(struct accrual *p, uint64_t slots)
{
	const uint64_t paused = slots < p->pause ? slots : p->pause;

	p->origin += slots * p->slot;
	p->pause -= paused;
	slots -= paused;
	while (p->percent < FULL_PACE && slots >= p->first) {
		slots -= p->first;
		p->first = p->step;
		p->percent = step_up(p->percent);
	}
	if (p->percent < FULL_PACE)
		p->first -= slots;
}

void accrual_throttle(struct accrual *p, weir_time now, weir_dur retry_after, bool lower)
{
	const weir_dur wait = retry_after < RETRY_MAX ? retry_after : RETRY_MAX;
	const int64_t since = (int64_t)(now - p->origin);
	const uint64_t until = wait + (since > 0 ? (uint64_t)since : 0);
	const uint64_t pause = until > 0 ? (until - 1) / p->slot : 0;

	if (pause > p->pause)
		p->pause = pause;
	p->first = p->step;
	if (!lower)
		return;
	p->percent = p->percent * LOWERED / 100;
	if (p->percent < LOWEST)
		p->percent = LOWEST;
}

void quota_move(struct quota *q, uint64_t worth)
{
	const wide due = (wide)worth * q->units + q->rest;

	q->base += (uint64_t)(due / q->span);
	q->rest = (uint64_t)(due % q->span);
}

struct quota quota_from(const struct weir_quota *value, uint64_t slot)
{
	const bool limited = (value->flags & WEIR_QUOTA_UNLIMITED) == 0;
	const uint64_t period = value->period != 0 ? value->period : WEIR_S;
	const uint64_t units = limited ? value->units : 0;

	return (struct quota){
		.units = units,
		.span = period * FULL_PACE,
		.depth = units > 0 ? (uint64_t)(((wide)slot * units + period - 1) / period) +
					     value->burst
				   : 0,
		.limited = limited,
	};
}

struct quota quota_with(const struct quota *q, const struct weir_quota *value, uint64_t slot)
{
	struct quota changed = quota_from(value, slot);

	changed.base = q->base;
	changed.rest = (uint64_t)((wide)q->rest * changed.span / q->span);
	return changed;
}

uint64_t quota_left(const struct quota *q, uint64_t worth, uint64_t taken)
{
	const int64_t left = (int64_t)(quota_due(q, worth) - taken);

	if (left <= 0)
		return 0;
	return (uint64_t)left < q->depth ? (uint64_t)left : q->depth;
}

uint64_t quota_debt(const struct quota *q, uint64_t worth, uint64_t taken)
{
	const int64_t left = (int64_t)(quota_due(q, worth) - taken);

	return left < 0 ? (uint64_t)-left : 0;
}

uint64_t quota_worth_for(const struct quota *q, uint64_t taken)
{
	const signed_wide needed = ((signed_wide)(int64_t)(taken - q->base) + 1) *
					   (signed_wide)q->span -
				   q->rest;
	wide worth;

	if (q->units == 0)
		return UINT64_MAX;
	if (needed <= 0)
		return 0;
	worth = ((wide)needed + q->units - 1) / q->units;
	return worth < UINT64_MAX ? (uint64_t)worth : UINT64_MAX - 1;
}
