/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/base.h - version, visibility, time. Everything else includes it.
 *
 * Conventions of all headers. Functions that can fail return 0 or a negative
 * errno; <errno.h> has the values. Times and durations are in nanoseconds.
 * Zero in a configuration field means the default that its comment names.
 * Strings belong to the caller unless stated otherwise. Strings that the
 * library returns live as long as the library.
 *
 * Cancellation. No function is a cancellation point (pthreads(7)). If a thread is cancelled while
 * it waits, for example in weir_acquire(), it goes on waiting until it is admitted or its deadline
 * passes, and ends at the program's next cancellation point. A callback that runs while the library
 * owns something (the callback of a waiter, an observer, a gauge, a visitor) runs with cancellation
 * disabled. An executor's tasks do not (weir/executor.h). Asynchronous cancellation
 * (PTHREAD_CANCEL_ASYNCHRONOUS) is not supported.
 */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION_HEX                                                                           \
	((WEIR_VERSION_MAJOR << 16) | (WEIR_VERSION_MINOR << 8) | WEIR_VERSION_PATCH)

#if defined(__GNUC__)
#define WEIR_API        __attribute__((visibility("default")))
#define WEIR_MUST_CHECK __attribute__((warn_unused_result))
#else
#define WEIR_API
#define WEIR_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t
	weir_time;         /* nanoseconds on the limiter's clock; only differences are meaningful */
typedef uint64_t weir_dur; /* nanoseconds */

#define WEIR_US UINT64_C(1000)
#define WEIR_MS (1000 * WEIR_US)
#define WEIR_S  (1000 * WEIR_MS)

/* As a deadline: wait without a time limit. */
#define WEIR_FOREVER UINT64_MAX

/* The version of the library at run time, as WEIR_VERSION_HEX. Any thread. */
WEIR_API uint32_t weir_version(void);

/* The time on CLOCK_MONOTONIC, the default clock of every limiter. Any thread. */
WEIR_API weir_time weir_now(void);

#ifdef __cplusplus
}
#endif
#endif
