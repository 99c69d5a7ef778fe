/*
 * Whether a limiter is of no use to any call.
 */
#ifndef WEIR_LIB_IDLE_H
#define WEIR_LIB_IDLE_H

#include <stdbool.h>

#include <weir/limiter.h>

/*
 * Whether no call is in flight, was let through and has not ended, or has a place in the queue,
 * including a granted one whose permit it has yet to collect. Exact while no thread is in a
 * function of the limiter.
 */
bool limiter_is_idle(const struct weir_limiter *l);

#endif
