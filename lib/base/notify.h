/*
 * The callbacks of waiters that a thread is in.
 *
 * While a waiter's callback runs, a poll or a cancel of it waits for the end, so that what the
 * callback uses may go away afterwards. One that is called from the callback itself would wait for
 * itself. So each thread knows which callbacks it is in: several, if one calls what runs another.
 */
#ifndef WEIR_LIB_NOTIFY_H
#define WEIR_LIB_NOTIFY_H

#include <stdbool.h>

#include <weir/wait.h>

/* Run the callback of the waiter that has a place in that use. */
void notify_run(const void *place, uint32_t stamp, weir_granted_fn *granted, void *arg);

/* Whether this thread is in the callback of that waiter; or in any. */
bool notify_here(const void *place, uint32_t stamp);
bool notify_any(void);

#endif
