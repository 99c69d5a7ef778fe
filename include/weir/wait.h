/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/wait.h - wait for a permit without blocking a thread, in event loops.
 *
 *	switch (weir_acquire_or_enqueue(l, NULL, wake_loop, c, &c->wait, &c->token)) {
 *	case 0:
 *		return start(c);		a permit was free
 *	case -EINPROGRESS:
 *		return later(c);		c waits
 *	default:
 *		return reject(c);
 *	}
 *
 *	... wake_loop() has written an eventfd, and the loop comes back to c:
 *	if (weir_poll(l, &c->wait, &c->token) == 0)
 *		return start(c);
 *
 *	... the client went away, or its time is up:
 *	if (weir_cancel(l, &c->wait, &c->token) == -EALREADY)
 *		weir_release(l, &c->token, WEIR_IGNORE);
 *
 * A waiter ends exactly once: by a poll that delivers a permit, or by a cancel.
 * Threads that wait in weir_acquire() wait in the same queue.
 *
 * Thread safety. Any function may be called from any thread, but only one thread at a time may
 * use one waiter. None may be called from a signal handler or an observer.
 *
 * Partitions. Permits that are reserved for a partition become free with time
 * (weir_config.partition_hold), and some call has to notice that: a thread in weir_acquire(), or
 * any call that is refused. A loop that has neither must poll a waiter about once in that time.
 */
#ifndef WEIR_WAIT_H
#define WEIR_WAIT_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A waiting call's place in the queue. All zero: none. */
struct weir_wait {
	uint32_t slot;  /* opaque */
	uint32_t stamp; /* opaque; 0: none */
};

/*
 * Called once, when the permit has been granted, by the thread that made or noticed the room, from
 * within any function of this limiter, including those that enqueue. It should only wake the loop
 * that polls. That loop may poll at once in another thread: weir_poll() and weir_cancel() wait
 * until the callback has returned, and then deliver the permit. So once one of them has ended the
 * waiter, the callback no longer runs, and what arg points to may be freed.
 *
 * The callback may call the limiter, and may poll or cancel its own waiter: it gets the permit, and
 * the waiter ends within the callback. A poll, from a callback, of another waiter whose callback is
 * running returns -EAGAIN. The callback must not cancel another waiter, destroy the limiter, wait
 * in weir_acquire(), or save or load the limiter's state.
 */
typedef void weir_granted_fn(void *arg);

/*
 * Take a permit if one is free, and enter the queue otherwise: what an event loop does for each
 * call. call may be NULL for an ordinary call; a bypass is admitted. granted may be NULL if the
 * caller polls. In shadow mode no call is refused and none waits.
 * Returns 0 when the permit is in *token: *wait is empty, and granted() will not be called; or a
 * negative errno:
 * -EINPROGRESS: the call waits, for weir_poll() or weir_cancel(), and may have been granted already
 * (and have ended, if granted() polls it).
 * -EAGAIN: refused: there is no queue, or it is full, or the call's priority is shed.
 * -EINVAL: as for weir_try_acquire_for().
 */
WEIR_API WEIR_MUST_CHECK int weir_acquire_or_enqueue(struct weir_limiter *limiter,
						     const struct weir_call *call,
						     weir_granted_fn *granted, void *arg,
						     struct weir_wait *wait,
						     struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_acquire_or_enqueue_at(struct weir_limiter *limiter,
							const struct weir_call *call, weir_time now,
							weir_granted_fn *granted, void *arg,
							struct weir_wait *wait,
							struct weir_token *token);

/*
 * Enter the queue, even if a permit is free; a poll finds out. The _at forms take the time from the
 * caller.
 * Returns 0, or a negative errno:
 * -EAGAIN: there is no queue, or it is full, or the call's priority is shed.
 * -EINVAL: as for weir_try_acquire_for(), or the call is a bypass, which never waits (_for forms
 * only).
 */
WEIR_API WEIR_MUST_CHECK int weir_enqueue(struct weir_limiter *limiter, weir_granted_fn *granted,
					  void *arg, struct weir_wait *wait);
WEIR_API WEIR_MUST_CHECK int weir_enqueue_at(struct weir_limiter *limiter, weir_time now,
					     weir_granted_fn *granted, void *arg,
					     struct weir_wait *wait);
WEIR_API WEIR_MUST_CHECK int weir_enqueue_for(struct weir_limiter *limiter,
					      const struct weir_call *call,
					      weir_granted_fn *granted, void *arg,
					      struct weir_wait *wait);
WEIR_API WEIR_MUST_CHECK int weir_enqueue_for_at(struct weir_limiter *limiter,
						 const struct weir_call *call, weir_time now,
						 weir_granted_fn *granted, void *arg,
						 struct weir_wait *wait);

/*
 * Take the permit if it has been granted. Latency is measured from now on.
 * Returns 0 when the permit is in *token, or a negative errno:
 * -EAGAIN: the call is still waiting.
 * -EINVAL: there is no such waiter, or it has ended; *token is unchanged.
 */
WEIR_API WEIR_MUST_CHECK int weir_poll(struct weir_limiter *limiter, struct weir_wait *wait,
				       struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_poll_at(struct weir_limiter *limiter, weir_time now,
					  struct weir_wait *wait, struct weir_token *token);

/*
 * Leave the queue.
 * Returns 0 when the waiter has left, and granted() will not be called; or a negative errno:
 * -EALREADY: the permit was granted first, is in *token and must be released.
 * -EINVAL: there is no such waiter, or it has ended; *token is unchanged.
 */
WEIR_API WEIR_MUST_CHECK int weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
					 struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_cancel_at(struct weir_limiter *limiter, weir_time now,
					    struct weir_wait *wait, struct weir_token *token);

#ifdef __cplusplus
}
#endif
#endif
