/*
 * The paths of a call: admission, release, and what a release may set off.
 *
 *   try_acquire   gate: reserve; clock
 *   release       clock; gate: give back; sampler: record; then, seldom,
 *                 queue: drain, if somebody waits
 *                 window: close, let the limit think, publish, if it is due
 *
 * The permit goes back first: what a release does after that, its own thread pays for
 * and nobody else waits for.
 *
 * The words of this file's own, beside those of gate, sampler, queue and track:
 * published, whose ledger is in internal.h; brain, which is the window's owner's.
 */

#include <errno.h>
#include <math.h>

#include "lib/internal.h"

/* S. Vigna's splitmix64, public domain: one step, as a number in [0, 1). */
static double splitmix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

double limiter_random(const struct weir_limiter *l)
{
	return l->random != NULL ? l->random->next(l->random) : splitmix(&l->brain->random);
}

uint32_t limiter_bound(const struct weir_limiter *l, double limit)
{
	if (!(limit > l->limit_min))
		return l->limit_min;
	return limit < l->limit_max ? (uint32_t)limit : l->limit_max;
}

int limiter_refuse(const struct weir_limiter *l, struct weir_token *token)
{
	*token = (struct weir_token){.state = TOKEN_EMPTY};
	count(l, TOTAL_REJECTED);
	return -EAGAIN;
}

int weir_try_acquire(struct weir_limiter *l, struct weir_token *token)
{
	uint32_t inflight;

	if (!gate_reserve(l->gate, false, &inflight))
		return limiter_refuse(l, token);
	limiter_admit(l, limiter_now(l), inflight, __builtin_return_address(0), token);
	return 0;
}

int weir_try_acquire_at(struct weir_limiter *l, weir_time now, struct weir_token *token)
{
	uint32_t inflight;

	if (!gate_reserve(l->gate, false, &inflight))
		return limiter_refuse(l, token);
	limiter_admit(l, now, inflight, __builtin_return_address(0), token);
	return 0;
}

/* Put a new limit in force; a raised one is news for those who wait. */
static void set_limit(struct weir_limiter *l, weir_time now, uint32_t limit)
{
	uint64_t before = gate_set_limit(l->gate, limit);

	if (limit > gate_limit(before) && gate_waiters(before) != 0)
		queue_drain(&l->queueing, now);
}

/* Let the limit look at a window that this thread owns. */
static void learn(struct weir_limiter *l, weir_time now, struct weir_window *w)
{
	const struct weir_limit_ops *ops = l->ops;
	struct weir_report report;
	double limit;

	w->limit = gate_limit(gate_read(l->gate));
	w->random = limiter_random(l);
	report = (struct weir_report){.window = *w, .limit = w->limit, .names = ops->numbers};

	if ((ops->flags & WEIR_LIMIT_SETTABLE) == 0) {
		limit = ops->update(l->brain->state, w);
		if (!isnan(limit))
			report.limit = limiter_bound(l, limit);
		if (report.limit != w->limit)
			set_limit(l, now, report.limit);
	}
	if (ops->observe != NULL) {
		ops->observe(l->brain->state, report.numbers);
		while (ops->numbers[report.count] != NULL && report.count < WEIR_NUMBERS_MAX)
			report.count++;
	}
	publish(l->published, &report);
	if (l->observer.window != NULL)
		l->observer.window(l->observer.arg, &report);
}

static void record(struct weir_limiter *l, struct stripe *stripe, weir_time start, weir_time now,
		   uint32_t inflight, bool dropped)
{
	int64_t rtt = (int64_t)(now - start); /* a clock that went back measured nothing */
	struct weir_window w;

	if (!sampler_record(&l->sampling, stripe, rtt > 0 ? (uint64_t)rtt : 0, inflight, dropped))
		return;
	if (LIKELY(!sampler_close(&l->sampling, now, &w)))
		return;
	learn(l, now, &w);
	sampler_open(&l->sampling, now);
}

static void finish(struct weir_limiter *l, weir_time start, weir_time now, uint32_t inflight,
		   enum weir_outcome outcome)
{
	struct stripe *stripe = sampler_stripe(&l->sampling);

	if (outcome == WEIR_SUCCESS || outcome == WEIR_DROPPED)
		record(l, stripe, start, now, inflight, outcome == WEIR_DROPPED);
	else
		stripe_count(stripe, TOTAL_IGNORED);
}

/* False: the token was released before, and so it stays. */
static bool give_back(const struct weir_limiter *l, struct weir_token *token, uint64_t *before)
{
	bool held = token->state == TOKEN_HELD;

	token->state = TOKEN_EMPTY;
	return held && (token->track == 0 || track_remove(&l->tracking, token)) &&
	       gate_give_back(l->gate, before);
}

static inline void release(struct weir_limiter *l, weir_time now, struct weir_token *token,
			   enum weir_outcome outcome)
{
	/* Taken now: whom the drain calls back may be about to end what holds the token. */
	const weir_time start = token->start;
	const uint32_t inflight = token->inflight;
	uint64_t before;

	if (UNLIKELY(!give_back(l, token, &before))) {
		count(l, TOTAL_DOUBLE_RELEASED);
		return;
	}
	if (UNLIKELY(gate_waiters(before) != 0))
		queue_drain(&l->queueing, now);
	finish(l, start, now, inflight, outcome);
}

void weir_release_at(struct weir_limiter *l, weir_time now, struct weir_token *token,
		     enum weir_outcome outcome)
{
	release(l, now, token, outcome);
}

void weir_release(struct weir_limiter *l, struct weir_token *token, enum weir_outcome outcome)
{
	gate_expect(l->gate);
	release(l, limiter_now(l), token, outcome);
}

void weir_sample_at(struct weir_limiter *l, weir_time start, weir_time end, uint32_t inflight,
		    enum weir_outcome outcome)
{
	finish(l, start, end, inflight, outcome);
}

int weir_limit_set(struct weir_limiter *l, uint32_t value)
{
	if ((l->ops->flags & WEIR_LIMIT_SETTABLE) == 0)
		return -ENOTSUP;
	if (value == 0 || value > WEIR_LIMIT_MAX)
		return -EINVAL;
	set_limit(l, limiter_now(l), limiter_bound(l, value));
	return 0;
}

uint32_t weir_limit(const struct weir_limiter *l)
{
	return gate_limit(gate_read(l->gate));
}

uint32_t weir_inflight(const struct weir_limiter *l)
{
	return gate_inflight(gate_read(l->gate));
}

uint32_t weir_waiting(const struct weir_limiter *l)
{
	return gate_waiters(gate_read(l->gate));
}
