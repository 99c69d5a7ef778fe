/*
 * weir/wait.h - waiting for a permit without a thread, for event loops.
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
 * A waiter ends exactly once: by a poll that brings a permit, or by a cancel.
 * Threads that wait in weir_acquire() stand in the same queue.
 *
 * Any function may be called from any thread, but one waiter by one thread at
 * a time; none of them from a signal handler or an observer.
 *
 * Partitions. Room that is kept for one lapses by time (weir_config.partition_hold), and
 * then somebody has to look: a thread in weir_acquire() does, or any call that is refused. A loop
 * without either polls a waiter about as often.
 */
#ifndef WEIR_WAIT_H
#define WEIR_WAIT_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place in the queue. All zero: none. */
struct weir_wait {
	uint32_t slot;  /* opaque */
	uint32_t stamp; /* opaque; 0: none */
};

/*
 * Called once, when the permit is there, by the thread that made room or noticed it, from within
 * any function of this limiter, including those that enqueue. It should do no more than wake the
 * loop that polls. That loop may poll at once, in another thread: weir_poll() and weir_cancel()
 * wait until the callback has returned, and then deliver the permit. So once one of them has ended
 * the waiter, the callback no longer runs, and what arg points to may be freed.
 *
 * The callback may call the limiter, and poll or cancel its own waiter: the permit is there, and
 * the waiter ends inside. From here, a poll of another waiter whose callback is running returns
 * -EAGAIN. The callback must not cancel another waiter, destroy the limiter, wait in
 * weir_acquire(), or save or load a memory.
 */
typedef void weir_granted_fn(void *arg);

/*
 * Take a permit if there is one, and a place in the queue otherwise: what an event loop does for
 * each call. 0: the permit is in *token, *wait is none, and granted() will not be called;
 * -EINPROGRESS: the call waits, for weir_poll() or weir_cancel(), and may have been granted already
 * (and have ended, if granted() polls it); -EAGAIN: it is refused: the queue is full, or there is
 * none, or the call's priority is being shed; -EINVAL: as weir_try_acquire_for(). In shadow mode no
 * call is refused, and none waits. call may be NULL: an ordinary one; a bypass gets through.
 * granted may be NULL for a caller that polls.
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
 * Stand in the queue, whether there is a permit or not; a poll finds out. 0; -EAGAIN: the queue
 * is full, or there is none, or the call's priority is being shed; -EINVAL: as
 * weir_try_acquire_for(), or the call is a bypass, which waits for nothing, in the forms with
 * a call. The _at forms take the time, as everywhere.
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
 * Take the permit if it has come. 0: it is in *token, and the latency is measured from now;
 * -EAGAIN: still waiting; -EINVAL: this is no waiter (any more), and *token is left as it is.
 */
WEIR_API WEIR_MUST_CHECK int weir_poll(struct weir_limiter *limiter, struct weir_wait *wait,
				       struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_poll_at(struct weir_limiter *limiter, weir_time now,
					  struct weir_wait *wait, struct weir_token *token);

/*
 * Leave the queue. 0: gone, and granted() will not be called; -EALREADY: the permit came
 * first, it is in *token and must be released; -EINVAL: this is no waiter (any more), and
 * *token is left as it is.
 */
WEIR_API WEIR_MUST_CHECK int weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
					 struct weir_token *token);
WEIR_API WEIR_MUST_CHECK int weir_cancel_at(struct weir_limiter *limiter, weir_time now,
					    struct weir_wait *wait, struct weir_token *token);

#ifdef __cplusplus
}
#endif
#endif
