/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What gcc and clang call in code that is compiled with -fsanitize=thread: one function for each
 * size of each operation. They are the compilers' own interface, so what the explorer sees is what
 * the compiler left of the source.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/interleave/memory.h"
#include "tests/interleave/schedule.h"
#include "tests/interleave/system.h"

#define PC __builtin_return_address(0)

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);
void __tsan_read_range(void *address, size_t size);
void __tsan_write_range(void *address, size_t size);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_atomic_thread_fence(int order)
{
	memory_fence(order, PC);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

void __tsan_read_range(void *address, size_t size)
{
	system_access(address, size, false, PC);
}

void __tsan_write_range(void *address, size_t size)
{
	system_access(address, size, true, PC);
}

/*
 * Copies and fills, where the compiler calls the C library without saying so. Scenes may have their
 * own.
 */
void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int value, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int value, size_t size);

__attribute__((weak)) void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	system_access((void *)(uintptr_t)from, size, false, PC);
	system_access(to, size, true, PC);
	return __real_memcpy(to, from, size);
}

__attribute__((weak)) void *__wrap_memmove(void *to, const void *from, size_t size)
{
	system_access((void *)(uintptr_t)from, size, false, PC);
	system_access(to, size, true, PC);
	return __real_memmove(to, from, size);
}

__attribute__((weak)) void *__wrap_memset(void *to, int value, size_t size)
{
	system_access(to, size, true, PC);
	return __real_memset(to, value, size);
}

#define PLAIN(name, size, writes)                                                                  \
	void __tsan_##name(void *address);                                                         \
	void __tsan_##name(void *address)                                                          \
	{                                                                                          \
		system_access(address, size, writes, PC);                                          \
	}

#define PLAIN_SIZE(size)                                                                           \
	PLAIN(read##size, size, false)                                                             \
	PLAIN(write##size, size, true)                                                             \
	PLAIN(unaligned_read##size, size, false)                                                   \
	PLAIN(unaligned_write##size, size, true)                                                   \
	PLAIN(volatile_read##size, size, false)                                                    \
	PLAIN(volatile_write##size, size, true)                                                    \
	PLAIN(read_write##size, size, true)

PLAIN_SIZE(1)
PLAIN_SIZE(2)
PLAIN_SIZE(4)
PLAIN_SIZE(8)
PLAIN_SIZE(16)

#define RMW(bits, name, op)                                                                        \
	uint##bits##_t __tsan_atomic##bits##_##name(void *a, uint##bits##_t v, int order);         \
	uint##bits##_t __tsan_atomic##bits##_##name(void *a, uint##bits##_t v, int order)          \
	{                                                                                          \
		system_touch(a, (bits) / 8, PC);                                                   \
		return (uint##bits##_t)memory_rmw(a, (bits) / 8, op, v, order, PC);                \
	}

#define CAS(bits, name, weak)                                                                      \
	int __tsan_atomic##bits##_compare_exchange_##name(                                         \
		void *a, uint##bits##_t *e, uint##bits##_t v, int success, int failure);           \
	int __tsan_atomic##bits##_compare_exchange_##name(                                         \
		void *a, uint##bits##_t *e, uint##bits##_t v, int success, int failure)            \
	{                                                                                          \
		uint64_t expected = *e;                                                            \
		bool done;                                                                         \
                                                                                                   \
		system_touch(a, (bits) / 8, PC);                                                   \
		done = memory_cas(a, (bits) / 8, &expected, v, success, failure, weak, PC);        \
		if (!done)                                                                         \
			*e = (uint##bits##_t)expected;                                             \
		return done;                                                                       \
	}

#define ATOMIC(bits)                                                                               \
	uint##bits##_t __tsan_atomic##bits##_load(void *a, int order);                             \
	uint##bits##_t __tsan_atomic##bits##_load(void *a, int order)                              \
	{                                                                                          \
		system_touch(a, (bits) / 8, PC);                                                   \
		return (uint##bits##_t)memory_load(a, (bits) / 8, order, PC);                      \
	}                                                                                          \
	void __tsan_atomic##bits##_store(void *a, uint##bits##_t v, int order);                    \
	void __tsan_atomic##bits##_store(void *a, uint##bits##_t v, int order)                     \
	{                                                                                          \
		system_touch(a, (bits) / 8, PC);                                                   \
		memory_store(a, (bits) / 8, v, order, PC);                                         \
	}                                                                                          \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                 \
		void *a, uint##bits##_t e, uint##bits##_t v, int success, int failure);            \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                 \
		void *a, uint##bits##_t e, uint##bits##_t v, int success, int failure)             \
	{                                                                                          \
		uint64_t expected = e;                                                             \
                                                                                                   \
		system_touch(a, (bits) / 8, PC);                                                   \
		(void)memory_cas(a, (bits) / 8, &expected, v, success, failure, false, PC);        \
		return (uint##bits##_t)expected;                                                   \
	}                                                                                          \
	CAS(bits, strong, false)                                                                   \
	CAS(bits, weak, true)                                                                      \
	RMW(bits, exchange, RMW_EXCHANGE)                                                          \
	RMW(bits, fetch_add, RMW_ADD)                                                              \
	RMW(bits, fetch_sub, RMW_SUB)                                                              \
	RMW(bits, fetch_and, RMW_AND)                                                              \
	RMW(bits, fetch_or, RMW_OR)                                                                \
	RMW(bits, fetch_xor, RMW_XOR)                                                              \
	RMW(bits, fetch_nand, RMW_NAND)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
