/*
 * weir/saved.h - remember over a restart what a limiter has learned.
 *
 *	n = weir_limiter_save(limiter, buffer, sizeof(buffer));
 *	... write n bytes to a file, and end
 *
 *	... begin, and read n bytes from the file
 *	r = weir_limiter_load(limiter, buffer, n, weir_saved_age(buffer, n), why, sizeof(why));
 *
 * A limiter that comes back soon goes on where it was. After longer it begins at a limit
 * between the remembered one and the configured one: the past is trusted half as
 * much for every WEIR_SAVED_HALF_LIFE of age. Limits are ratios, so the way between the two
 * is: at that age a limit of 320 that is configured to begin at 20 begins at 80.
 *
 * Thread safety. Every function here may be called from any thread at any time, by
 * observers and grant callbacks too, but not by signal handlers.
 */
#ifndef WEIR_SAVED_H
#define WEIR_SAVED_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that no memory exceeds. */
#define WEIR_SAVED_MAX 2560

/* Up to this age the state is taken up whole, baselines and all. */
#define WEIR_SAVED_FRESH ((weir_dur)60 * WEIR_S)

/* The age at which a remembered limit counts as much as the configured one. */
#define WEIR_SAVED_HALF_LIFE ((weir_dur)3600 * WEIR_S)

/*
 * Write what the limiter has learned to buffer, which may have any alignment. Returns the number of
 * bytes; or, with buffer left as it is, -ENOSPC: they are more than size; or -EAGAIN: see below.
 * The bytes are for machines of the same byte order and type sizes.
 *
 * This function and weir_limiter_load() wait while another thread closes a window, which includes
 * its observer's callback. Where the limiter is shared, they return -EAGAIN and change nothing if
 * another process has been closing windows, or has been stopped while closing one, for about 20 ms.
 * They do not wait for a process that has died.
 */
WEIR_API WEIR_MUST_CHECK int weir_limiter_save(struct weir_limiter *limiter, void *buffer,
					       size_t size);

/*
 * How long ago, by the system's clock, a memory was saved; UINT64_MAX if this is no
 * memory. If it was saved in the future the clock has been set, and nobody knows: the
 * difference is taken for the age.
 */
WEIR_API weir_dur weir_saved_age(const void *buffer, size_t size);

/*
 * Take up what an earlier limiter had learned, by a memory of that age, at once; a raised
 * limit admits who waits.
 *
 * It is taken up whole if it is fresh and of a limiter with the same limit algorithm, its
 * version, its parameters, and the same configuration of windows. Else the limit is all that is
 * taken up, weighed by age: the algorithm begins anew, its parameter "initial" being the weighed
 * limit. Either way limit_min and limit_max hold, and in the second case the parameters
 * "min" and "max", of algorithms that have them, bound the remembered limit.
 *
 * A settable limit is a decision and no estimate: the value last set is taken up at
 * any age. An algorithm without "initial", as is fixed, can do nothing with a limit alone: that
 * is refused.
 *
 * 0; or a negative errno, with one sentence in why (may be NULL), cut at why_size, and the limiter
 * as before. -EAGAIN: as weir_limiter_save(); -EINVAL: the bytes are damaged, or were never a
 * memory; the memory is of another limit algorithm; or it is not fresh, or of other parameters, and
 * there is no "initial". Any bytes may be passed safely, but a checksum is no signature: a process
 * that can forge it may put anything into the state. Protect the file as you protect the program.
 *
 * Load before the first call: what the limiter has learned since is lost.
 */
WEIR_API WEIR_MUST_CHECK int weir_limiter_load(struct weir_limiter *limiter, const void *buffer,
					       size_t size, weir_dur age, char *why,
					       size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
