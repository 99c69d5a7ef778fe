/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancellation. No function of the library is a cancellation point (weir/base.h): a thread
 * cancelled while it waits or sends a request to a store would leave a lock behind. A cancellation
 * request is left pending from cancel_hold() to cancel_release(), which may be nested.
 */
#ifndef WEIR_FLEET_CANCEL_H
#define WEIR_FLEET_CANCEL_H

#include <pthread.h>

/* The result is the argument of cancel_release(). */
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
