/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting: the queue, with a parked thread or with an event loop on top.
 */

#include <errno.h>

#include <weir/wait.h>

#include "lib/limiter/limiter.h"

/* The clock is read when needed. */
static const struct moment unknown = {.now = NULL};

/* A thread is notified by waking it. */
static const struct listener thread = {.sleeps = true};

/* Turn the state of a waiter into the result of the call. */
static int answer(struct weir_limiter *l, enum queue_state state, struct moment at,
		  const struct waited *got, const void *place, struct weir_token *token)
{
	const struct permit permit = {.inflight = got->inflight, .cost = got->cost};

	switch (state) {
	case QUEUE_GRANTED:
		if (got->cost == 0)
			limiter_pass(l, time_for(l, at.now), got->part, TOTAL_WOULD_REJECT, token);
		else
			limiter_admit(l, at, got->part, &permit, place, token);
		return 0;
	case QUEUE_WAITING:
		*token = (struct weir_token){.state = TOKEN_EMPTY};
		return -EAGAIN;
	case QUEUE_GONE:
		*token = (struct weir_token){.state = TOKEN_EMPTY};
		limiter_abandon(l, got->part);
		return -ETIMEDOUT;
	case QUEUE_NONE:
		break;
	}
	return -EINVAL; /* and *token is left as it is */
}

/*
 * Sleep in the slot until granted, or until deadline. While permits are reserved for any partition,
 * or the limit pauses, the thread has the watch (lib/wait/grant.c): it sleeps until a reservation
 * may have lapsed, or the pause is over, then drains.
 */
static int park(struct weir_limiter *l, const struct weir_wait *wait, weir_time deadline,
		const void *place, struct weir_token *token)
{
	struct park *parking = queue_park(&l->queueing, wait);
	struct waited got = {.cost = 0};
	enum queue_state state;
	bool watching = false;
	weir_time until, lapse;
	uint32_t seen;

	do {
		if (watching) {
			queue_watch(&l->queueing, wait, false);
			queue_drain(&l->queueing, clock_monotonic());
		}
		/* After this drain, which may have woken the thread itself to take the watch again. */
		seen = park_look(parking);
		state = queue_poll(&l->queueing, wait, &got);
		if (state != QUEUE_WAITING)
			return answer(l, state, unknown, &got, place, token);
		watching = admission_awaits_time(&l->admission);
		until = deadline;
		if (watching) {
			queue_watch(&l->queueing, wait, true);
			lapse = admission_next_drain(&l->admission, clock_monotonic());
			until = lapse < deadline ? lapse : deadline;
		}
		/*
		 * The deadline is also tested here, so that a waiter in a corrupt shared block,
		 * which may be woken constantly, leaves in time.
		 */
	} while ((park_sleep(parking, seen, until) || until != deadline) &&
		 clock_monotonic() < deadline);

	state = queue_leave(&l->queueing, clock_monotonic(), wait, &got);
	return answer(l, state, unknown, &got, place, token);
}

/* Get a permit: 0. Or join the queue: -EINPROGRESS. */
static inline int request_permit(struct weir_limiter *l, const struct weir_call *call,
				 struct moment at, weir_time deadline, struct listener listener,
				 const void *place, struct weir_wait *wait,
				 struct weir_token *token)
{
	struct request request;
	struct permit permit;
	weir_time now;
	bool bypass;
	int r;

	*token = (struct weir_token){.state = TOKEN_EMPTY};
	r = limiter_request(l, call, &request, &bypass);
	if (r != 0)
		return r;
	if (bypass) {
		limiter_pass(l, time_for(l, at.now), request.part, TOTAL_BYPASSED, token);
		return 0;
	}
	if (limiter_reserve(l, &request, at.now, &permit)) {
		limiter_admit(l, at, request.part, &permit, place, token);
		return 0;
	}
	now = time_for(l, at.now);
	if (request.rank > 0)
		return limiter_refuse(l, &request, &now, token);
	/* Tested once: if shadow mode ends now, the queue may have room, and this is no refusal. */
	if (limiter_in_shadow(l)) {
		limiter_let_through(l, &request, now, token);
		return 0;
	}
	if (now >= deadline && l->queueing.config.slots > 0) {
		limiter_abandon(l, request.part);
		return -ETIMEDOUT;
	}
	if (!queue_enter(&l->queueing, now, &request, listener, wait))
		return limiter_refuse(l, &request, &now, token);
	return -EINPROGRESS;
}

static int acquire(struct weir_limiter *l, const struct weir_call *call, weir_time deadline,
		   const void *place, struct weir_token *token)
{
	struct weir_wait wait;
	int r;

	if (l->clock != NULL) {
		*token = (struct weir_token){.state = TOKEN_EMPTY};
		return -EINVAL;
	}
	r = request_permit(l, call, unknown, deadline, thread, place, &wait, token);
	return r == -EINPROGRESS ? park(l, &wait, deadline, place, token) : r;
}

int weir_acquire(struct weir_limiter *l, weir_time deadline, struct weir_token *token)
{
	return acquire(l, NULL, deadline, __builtin_return_address(0), token);
}

int weir_acquire_for(struct weir_limiter *l, const struct weir_call *call, weir_time deadline,
		     struct weir_token *token)
{
	return acquire(l, call, deadline, __builtin_return_address(0), token);
}

int weir_acquire_or_enqueue_at(struct weir_limiter *l, const struct weir_call *call, weir_time now,
			       weir_granted_fn *granted, void *arg, struct weir_wait *wait,
			       struct weir_token *token)
{
	const struct listener listener = {.granted = granted, .arg = arg};

	*wait = (struct weir_wait){.stamp = 0};
	return request_permit(l, call, (struct moment){&now, true}, WEIR_FOREVER, listener,
			      __builtin_return_address(0), wait, token);
}

int weir_acquire_or_enqueue(struct weir_limiter *l, const struct weir_call *call,
			    weir_granted_fn *granted, void *arg, struct weir_wait *wait,
			    struct weir_token *token)
{
	const struct listener listener = {.granted = granted, .arg = arg};

	*wait = (struct weir_wait){.stamp = 0};
	return request_permit(l, call, unknown, WEIR_FOREVER, listener, __builtin_return_address(0),
			      wait, token);
}

/* A call whose priority is being shed does not wait: it gets its permit at once, or none. */
static bool admit_now(struct weir_limiter *l, const struct request *request, weir_time now,
		      struct listener listener, struct weir_wait *wait)
{
	struct permit permit;

	if (!limiter_reserve(l, request, &now, &permit))
		return false;
	if (queue_enter_granted(&l->queueing, request, &permit, listener, wait))
		return true;
	if (admission_give_back(&l->admission, request->part, permit.cost, 0).drain)
		queue_drain(&l->queueing, now);
	return false;
}

int weir_enqueue_for_at(struct weir_limiter *l, const struct weir_call *call, weir_time now,
			weir_granted_fn *granted, void *arg, struct weir_wait *wait)
{
	struct listener listener = {.granted = granted, .arg = arg};
	struct request request;
	bool bypass;
	int r;

	*wait = (struct weir_wait){.stamp = 0};
	r = limiter_request(l, call, &request, &bypass);
	if (r != 0 || bypass)
		return r != 0 ? r : -EINVAL;
	request.queued = true;
	if (request.rank > 0 && !limiter_in_shadow(l)
		    ? admit_now(l, &request, now, listener, wait)
		    : queue_enter(&l->queueing, now, &request, listener, wait))
		return 0;
	if (request.rank > 0)
		shed_steer(&l->shedding, now);
	limiter_count_refusal(l, &request);
	return -EAGAIN;
}

int weir_enqueue_for(struct weir_limiter *l, const struct weir_call *call, weir_granted_fn *granted,
		     void *arg, struct weir_wait *wait)
{
	return weir_enqueue_for_at(l, call, limiter_now(l), granted, arg, wait);
}

int weir_enqueue_at(struct weir_limiter *l, weir_time now, weir_granted_fn *granted, void *arg,
		    struct weir_wait *wait)
{
	return weir_enqueue_for_at(l, NULL, now, granted, arg, wait);
}

int weir_enqueue(struct weir_limiter *l, weir_granted_fn *granted, void *arg,
		 struct weir_wait *wait)
{
	return weir_enqueue_for_at(l, NULL, limiter_now(l), granted, arg, wait);
}

/*
 * No thread wakes an event loop's waiter when a reservation has lapsed or a pause is over, so its
 * polls drain.
 */
static enum queue_state poll_slot(struct weir_limiter *l, weir_time now,
				  const struct weir_wait *wait, struct waited *got)
{
	enum queue_state state = queue_poll(&l->queueing, wait, got);

	if (state != QUEUE_WAITING || !admission_awaits_time(&l->admission))
		return state;
	queue_drain(&l->queueing, now);
	return queue_poll(&l->queueing, wait, got);
}

static int poll(struct weir_limiter *l, weir_time now, bool given, struct weir_wait *wait,
		const void *place, struct weir_token *token)
{
	struct waited got = {.cost = 0};
	int r;

	/* An observer's handle has no waiters, and must not write into the block. */
	if (UNLIKELY(!l->serves))
		return -EINVAL;
	r = answer(l, poll_slot(l, now, wait, &got), (struct moment){&now, given}, &got, place,
		   token);
	if (r == 0)
		*wait = (struct weir_wait){.stamp = 0};
	return r;
}

int weir_poll_at(struct weir_limiter *l, weir_time now, struct weir_wait *wait,
		 struct weir_token *token)
{
	return poll(l, now, true, wait, __builtin_return_address(0), token);
}

int weir_poll(struct weir_limiter *l, struct weir_wait *wait, struct weir_token *token)
{
	return poll(l, limiter_now(l), false, wait, __builtin_return_address(0), token);
}

static int cancel(struct weir_limiter *l, weir_time now, bool given, struct weir_wait *wait,
		  const void *place, struct weir_token *token)
{
	struct waited got = {.cost = 0};
	enum queue_state state = l->serves ? queue_leave(&l->queueing, now, wait, &got)
					   : QUEUE_NONE;
	int r = answer(l, state, (struct moment){&now, given}, &got, place, token);

	*wait = (struct weir_wait){.stamp = 0};
	if (state == QUEUE_GONE)
		return 0;
	return state == QUEUE_GRANTED ? -EALREADY : r;
}

int weir_cancel_at(struct weir_limiter *l, weir_time now, struct weir_wait *wait,
		   struct weir_token *token)
{
	return cancel(l, now, true, wait, __builtin_return_address(0), token);
}

int weir_cancel(struct weir_limiter *l, struct weir_wait *wait, struct weir_token *token)
{
	return cancel(l, limiter_now(l), false, wait, __builtin_return_address(0), token);
}
