/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancellation. No function of the library is a cancellation point (weir/base.h). A thread that
 * ended in the middle of one would never release what it owns, for example a lock, a window or a
 * drain, while its process lives.
 *
 * Most of the library calls no cancellation point. Where it does, to read /proc or to run one of
 * the program's callbacks, a cancellation request stays pending from cancel_hold() to
 * cancel_release(). The pairs may be nested.
 */
#ifndef WEIR_LIB_CANCEL_H
#define WEIR_LIB_CANCEL_H

#include <pthread.h>

/* Disable cancellation. Returns the state to pass to cancel_release(). */
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
