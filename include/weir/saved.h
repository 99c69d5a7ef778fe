/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/saved.h - save what a limiter has learned, and load it after a restart (warm start).
 *
 *	n = weir_limiter_save(limiter, buffer, sizeof(buffer));
 *	... write n bytes to a file, and exit
 *
 *	... start, and read n bytes from the file
 *	r = weir_limiter_load(limiter, buffer, n, weir_saved_age(buffer, n), why, sizeof(why));
 *
 * A limiter that restarts soon continues where it was. After a longer pause it starts at a limit
 * between the saved one and the configured one: the saved limit loses half of its weight with every
 * WEIR_SAVED_HALF_LIFE of age. Limits are interpolated as ratios: at that age, a saved limit of 320
 * and a configured initial limit of 20 give a start at 80.
 *
 * Thread safety. Every function of this header may be called from any thread at any time, also from
 * observers and grant callbacks, but not from signal handlers.
 */
#ifndef WEIR_SAVED_H
#define WEIR_SAVED_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest saved state, in bytes. */
#define WEIR_SAVED_MAX 2560

/* Up to this age the whole state is restored, including its latency baselines. */
#define WEIR_SAVED_FRESH ((weir_dur)60 * WEIR_S)

/* The age at which a saved limit weighs as much as the configured one. */
#define WEIR_SAVED_HALF_LIFE ((weir_dur)3600 * WEIR_S)

/*
 * Write what the limiter has learned to buffer, which may have any alignment. The bytes can be
 * loaded on machines with the same byte order and type sizes.
 *
 * This function and weir_limiter_load() wait while another thread closes a window, which includes
 * the call of its observer. They do not wait for a process that has died.
 *
 * Returns the number of bytes, or a negative errno, with buffer unchanged:
 * -ENOSPC: the state needs more than size bytes.
 * -EAGAIN: the limiter is shared, and another process has been closing windows, or has been stopped
 *   while closing one, for about 20 ms.
 */
WEIR_API WEIR_MUST_CHECK int weir_limiter_save(struct weir_limiter *limiter, void *buffer,
					       size_t size);

/*
 * How long ago a state was saved, by the system's clock. If the state is from the future, the clock
 * has been set since, and the true age is unknown: the difference is taken as the age. Returns
 * UINT64_MAX if buffer holds no saved state.
 */
WEIR_API weir_dur weir_saved_age(const void *buffer, size_t size);

/*
 * Load a saved state of the given age. It takes effect at once, and a raised limit admits waiters.
 *
 * The whole state is restored if it is fresh and comes from a limiter with the same limit
 * algorithm, the same version of it, the same parameters and the same configuration of windows.
 * Otherwise only the limit is used, weighted by age: the algorithm starts afresh with the weighted
 * limit as its parameter "initial". limit_min and limit_max hold in both cases. In the second case
 * the parameters "min" and "max", where the algorithm has them, also bound the saved limit.
 *
 * A settable limit was set by a person or a program and is not an estimate, so the last value set
 * is restored at any age. An algorithm without "initial", such as fixed, cannot use a limit alone,
 * and the state is refused.
 *
 * Any bytes may be passed safely. But a checksum is not a signature: a process that can forge the
 * file can put anything into the state. Protect the file as you protect the program.
 *
 * Load before the first call: what the limiter has learned since it was created is lost.
 *
 * Returns 0, or a negative errno, with one sentence in why (may be NULL), cut at why_size, and the
 * limiter unchanged:
 * -EAGAIN: as for weir_limiter_save().
 * -EINVAL: the bytes are damaged, or are no saved state, or are of another limit algorithm, or they
 *   are not fresh or of other parameters and the algorithm has no "initial".
 */
WEIR_API WEIR_MUST_CHECK int weir_limiter_load(struct weir_limiter *limiter, const void *buffer,
					       size_t size, weir_dur age, char *why,
					       size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
