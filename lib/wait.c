/*
 * Waiting: the queue, with a parked thread or with an event loop on top.
 */

#include <errno.h>

#include <weir/wait.h>

#include "lib/internal.h"

static const struct listener nobody = {.granted = NULL};

/* The permit has come, or not: the waiter's end, or its answer for now. */
static int answer(struct weir_limiter *l, enum queue_state state, weir_time now, uint32_t inflight,
		  const void *place, struct weir_token *token)
{
	switch (state) {
	case QUEUE_GRANTED:
		limiter_admit(l, now, inflight, place, token);
		return 0;
	case QUEUE_WAITING:
		*token = (struct weir_token){.state = TOKEN_EMPTY};
		return -EAGAIN;
	case QUEUE_GONE:
		*token = (struct weir_token){.state = TOKEN_EMPTY};
		count(l, TOTAL_TIMED_OUT);
		return -ETIMEDOUT;
	case QUEUE_NONE:
		break;
	}
	return -EINVAL; /* and whatever *token holds is not ours to empty */
}

/* Sleep in the slot until granted, or until deadline. */
static int park(struct weir_limiter *l, const struct weir_wait *wait, weir_time deadline,
		const void *place, struct weir_token *token)
{
	struct park *bed = queue_park(&l->queueing, wait);
	enum queue_state state;
	uint32_t inflight = 0, seen;

	do {
		seen = park_look(bed);
		state = queue_poll(&l->queueing, wait, &inflight);
		if (state != QUEUE_WAITING)
			return answer(l, state, clock_monotonic(), inflight, place, token);
	} while (park_sleep(bed, seen, deadline));

	state = queue_leave(&l->queueing, clock_monotonic(), wait, &inflight);
	return answer(l, state, clock_monotonic(), inflight, place, token);
}

int weir_acquire(struct weir_limiter *l, weir_time deadline, struct weir_token *token)
{
	const void *place = __builtin_return_address(0);
	struct weir_wait wait;
	uint32_t inflight;
	weir_time now;

	*token = (struct weir_token){.state = TOKEN_EMPTY};
	if (l->clock != NULL)
		return -EINVAL;
	now = clock_monotonic();
	if (gate_reserve(l->gate, false, &inflight)) {
		limiter_admit(l, now, inflight, place, token);
		return 0;
	}
	if (now >= deadline && l->queueing.queue->slots > 0) {
		count(l, TOTAL_TIMED_OUT);
		return -ETIMEDOUT;
	}
	if (!queue_enter(&l->queueing, now, nobody, &wait))
		return limiter_refuse(l, token);
	return park(l, &wait, deadline, place, token);
}

int weir_enqueue_at(struct weir_limiter *l, weir_time now, weir_granted_fn *granted, void *arg,
		    struct weir_wait *wait)
{
	struct listener listener = {.granted = granted, .arg = arg};

	*wait = (struct weir_wait){.stamp = 0};
	if (queue_enter(&l->queueing, now, listener, wait))
		return 0;
	count(l, TOTAL_REJECTED);
	return -EAGAIN;
}

int weir_enqueue(struct weir_limiter *l, weir_granted_fn *granted, void *arg,
		 struct weir_wait *wait)
{
	return weir_enqueue_at(l, limiter_now(l), granted, arg, wait);
}

static int poll(struct weir_limiter *l, weir_time now, struct weir_wait *wait, const void *place,
		struct weir_token *token)
{
	uint32_t inflight = 0;
	int r = answer(l, queue_poll(&l->queueing, wait, &inflight), now, inflight, place, token);

	if (r == 0)
		*wait = (struct weir_wait){.stamp = 0};
	return r;
}

int weir_poll_at(struct weir_limiter *l, weir_time now, struct weir_wait *wait,
		 struct weir_token *token)
{
	return poll(l, now, wait, __builtin_return_address(0), token);
}

int weir_poll(struct weir_limiter *l, struct weir_wait *wait, struct weir_token *token)
{
	return poll(l, limiter_now(l), wait, __builtin_return_address(0), token);
}

static int cancel(struct weir_limiter *l, weir_time now, struct weir_wait *wait, const void *place,
		  struct weir_token *token)
{
	uint32_t inflight = 0;
	enum queue_state state = queue_leave(&l->queueing, now, wait, &inflight);
	int r = answer(l, state, now, inflight, place, token);

	*wait = (struct weir_wait){.stamp = 0};
	if (state == QUEUE_GONE)
		return 0;
	return state == QUEUE_GRANTED ? -EALREADY : r;
}

int weir_cancel_at(struct weir_limiter *l, weir_time now, struct weir_wait *wait,
		   struct weir_token *token)
{
	return cancel(l, now, wait, __builtin_return_address(0), token);
}

int weir_cancel(struct weir_limiter *l, struct weir_wait *wait, struct weir_token *token)
{
	return cancel(l, limiter_now(l), wait, __builtin_return_address(0), token);
}
