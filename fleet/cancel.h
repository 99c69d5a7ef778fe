/*
 * Cancellation. No function of the library is a cancellation point (weir/base.h): a thread that is
 * cancelled in one, as it waits or asks a store, would leave a lock behind. A request is left
 * pending from hold to release; both may be nested.
 */
#ifndef WEIR_FLEET_CANCEL_H
#define WEIR_FLEET_CANCEL_H

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
