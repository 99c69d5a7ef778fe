/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a limiter is in use by any call. */
#ifndef WEIR_LIB_IDLE_H
#define WEIR_LIB_IDLE_H

#include <stdbool.h>

#include <weir/limiter.h>

/*
 * Whether no call is in flight, none that was let through has yet to end, and none has an entry in
 * the queue, including granted entries whose permit has not been collected. Exact while no thread
 * is in a function of the limiter.
 */
bool limiter_is_idle(const struct weir_limiter *l);

#endif
