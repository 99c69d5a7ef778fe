/*
 * What all shared structures agree on.
 *
 * State that threads share holds no pointer: positions are indices and offsets,
 * so that it may be mapped at any address. Words that different threads write
 * stand on lines of their own.
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

/* Signal handlers and other processes may use what is lock-free only. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "32-bit atomics are lock-free");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics are lock-free");

/*
 * Work that one at a time does has its owner's process in its word, so that another can go on if
 * that dies: a process's number in a limiter that is shared (lib/process/lease.h), from 1; or PRIVATE.
 */
#define PRIVATE 0

static inline size_t round_up_to_line(size_t size)
{
	return (size + LINE - 1) / LINE * LINE;
}

#endif
