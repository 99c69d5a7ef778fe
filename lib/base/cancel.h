/*
 * Cancellation. No function of the library is a cancellation point (weir/base.h): a thread that
 * ended in the middle of one would leave behind what it owns, a lock, a window, a drain, for as
 * long as its process lives.
 *
 * Most of the library calls no cancellation point. Where it does, to read /proc or to run a
 * callback of the program, a request is left pending from hold to release. Both may be nested.
 */
#ifndef WEIR_LIB_CANCEL_H
#define WEIR_LIB_CANCEL_H

#include <pthread.h>

/* Its result is for cancel_release(). */
static inline int cancel_hold(void)
{
	int before;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_release(int before)
{
	(void)pthread_setcancelstate(before, NULL);
}

#endif
