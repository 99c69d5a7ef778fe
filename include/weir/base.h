/*
 * weir/base.h - version, visibility, time. Everything else includes it.
 *
 * Conventions of all headers. Functions that can fail return 0 or a negative
 * errno: include <errno.h> for the values. Times and durations are nanoseconds.
 * Zero in a configuration means the default that the field's comment names.
 * Strings are the caller's unless said otherwise; strings the library returns
 * live as long as the library.
 *
 * Cancellation. No function is a cancellation point (pthreads(7)). A thread that is cancelled while
 * it waits, in weir_acquire() say, goes on waiting until it has what it waits for or its deadline
 * comes, and ends at the next cancellation point of the program. A callback that runs while the
 * library owns something (that of a waiter, an observer, a gauge, a visitor) runs with cancellation
 * disabled; an executor's tasks do not (weir/executor.h). Asynchronous cancellation
 * (PTHREAD_CANCEL_ASYNCHRONOUS) is not supported in any function.
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

typedef uint64_t weir_time; /* nanoseconds on the limiter's clock; only differences mean anything */
typedef uint64_t weir_dur;  /* nanoseconds */

#define WEIR_US UINT64_C(1000)
#define WEIR_MS (1000 * WEIR_US)
#define WEIR_S  (1000 * WEIR_MS)

/* As a deadline: wait for as long as it takes. */
#define WEIR_FOREVER UINT64_MAX

/* The version linked against, as WEIR_VERSION_HEX. Any thread. */
WEIR_API uint32_t weir_version(void);

/* Now, on CLOCK_MONOTONIC: the clock of every limiter that was not given another. Any thread. */
WEIR_API weir_time weir_now(void);

#ifdef __cplusplus
}
#endif
#endif
