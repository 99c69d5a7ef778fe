/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout rules of all shared structures.
 *
 * State that threads share holds no pointers, only indices and offsets, so that it may be mapped at
 * any address. Words that different threads write are on separate cache lines.
 */
#ifndef WEIR_LIB_LAYOUT_H
#define WEIR_LIB_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/limiter.h>

#define LINE WEIR_ALIGN

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Signal handlers and other processes can only use atomics that are lock-free. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "32-bit atomics are lock-free");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics are lock-free");

/*
 * The owner of work that one thread at a time does: the number of its process in a shared limiter
 * (lib/process/lease.h), from 1, so that another process can continue it after a death; or PRIVATE.
 */
#define PRIVATE 0

static inline size_t round_up_to_line(size_t size)
{
	return (size + LINE - 1) / LINE * LINE;
}

#endif
