/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory as C11 describes it: each atomic object has a history of stores in its modification order,
 * and a load may return any of them that coherence and happens-before do not exclude.
 *
 * The model is operational, by views (Kang, Hur, Lahav, Vafeiadis and Dreyer, "A promising
 * semantics for relaxed-memory concurrency", POPL 2017, without promises): a thread's view says how
 * far it has come in the history of each object, a release store carries the view of its thread,
 * and an acquire load adds what it carries to its own. It allows what RC11 allows (Lahav,
 * Vafeiadis, Kang, Hur and Dreyer, PLDI 2017), stores that come into the history before newer ones
 * included. It does not show load buffering, which no compiler or machine produces from code whose
 * loads decide what it stores. Release sequences are those of C++20, which are the shorter ones.
 *
 * Plain accesses are checked for data races by vector clocks. They are part of the views.
 */
#ifndef WEIR_TESTS_INTERLEAVE_MEMORY_H
#define WEIR_TESTS_INTERLEAVE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIBERS    8   /* of the scene, and those that it creates */
#define LOCATIONS 256 /* atomic objects that several threads use */

/* What a thread has seen. */
struct view {
	uint32_t clock[FIBERS];
	uint32_t at[LOCATIONS]; /* least place in each object's history that it may still read */
};

enum rmw { RMW_EXCHANGE, RMW_ADD, RMW_SUB, RMW_AND, RMW_OR, RMW_XOR, RMW_NAND };

/* Before each run. */
void memory_reset(void);

/* A thread begins to run with what the one that creates it has seen; parent < 0: with nothing. */
void memory_begin(unsigned thread, int parent);

/* thread has seen from now on what another saw at its end. */
void memory_join(unsigned thread, unsigned ended);

/* Views that locks carry: what from has seen becomes part of *to, or the other way round. */
void memory_release(unsigned thread, struct view *to);
void memory_acquire(unsigned thread, const struct view *from);

/*
 * What a thread leaves in a lock when it dies: its atomic operations are done, but what it has
 * written otherwise counts as known only as far as it has released it. Its other stores are there
 * in part, in any order that a compiler may choose: they may be overwritten, but not read.
 */
void memory_leave(unsigned thread, struct view *to);

/* The operations of the running thread. order is C11's. */
uint64_t memory_load(void *address, unsigned size, int order, const void *pc);
void memory_store(void *address, unsigned size, uint64_t value, int order, const void *pc);
uint64_t memory_rmw(void *address, unsigned size, enum rmw op, uint64_t operand, int order,
		    const void *pc);
bool memory_cas(void *address, unsigned size, uint64_t *expected, uint64_t desired, int success,
		int failure, bool weak, const void *pc);
void memory_fence(int order, const void *pc);

/* The newest value, acquired: what the kernel sees when a thread goes to sleep. */
uint64_t memory_newest(void *address, unsigned size, const void *pc);

/* A plain access, about to be made. */
void memory_plain(const volatile void *address, size_t size, bool writes, const void *pc);

/* The addresses known to be shared, as text, and such a text made known. */
size_t memory_shared_print(char *text, size_t size);
bool memory_shared_parse(const char *text);

/* Forget what is shared. */
void memory_forget(void);

#endif
