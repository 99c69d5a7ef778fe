/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The callbacks of waiters that a thread is running.
 *
 * While a waiter's callback runs, a poll or a cancel of that waiter waits for its end, so that what
 * the callback uses may be freed afterwards. If the callback itself polls or cancels, it would wait
 * for itself. So each thread records which callbacks it is running: several if one calls a function
 * that runs another.
 */
#ifndef WEIR_LIB_NOTIFY_H
#define WEIR_LIB_NOTIFY_H

#include <stdbool.h>

#include <weir/wait.h>

/* Run a waiter's callback. key and stamp identify the waiter. */
void notify_run(const void *key, uint32_t stamp, weir_granted_fn *granted, void *arg);

/* Whether this thread is running the callback of that waiter; or any callback. */
bool notify_here(const void *key, uint32_t stamp);
bool notify_any(void);

#endif
