/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions and rows in a block of memory, used by one process or by many.
 *
 * The block has two halves, of which one is current. Nothing in the current half ever changes,
 * except one word: a session's deadline, when it is renewed. A commit copies the current half to
 * the other one with its changes applied, and then flips the word that says which is current. So a
 * process that dies at any instruction leaves either the old state or the new one: nothing needs
 * repair, and there is no count that could be wrong. The price is a copy of some kilobytes, which
 * no call of the program waits for.
 *
 * word      written by                             order    pairs with
 * --------  -------------------------------------  -------  -----------------------------------
 * ready     make: 1, under the file's lock         release  attach: what was made before it
 * current   flip, under the lock                   release  its loads, under the lock too: the
 *                                                           order is for a death between the
 *                                                           half's last word and the flip
 * deadline  keep, under the lock                   relaxed  nothing: one word, whole or not there
 *
 * A process that died in the middle needs no other ordering than its own: its stores were made in
 * program order, as far as the release constrains the compiler and the processor, and the next
 * owner of the robust lock sees them all.
 */
#ifndef WEIR_FLEET_BLOCK_H
#define WEIR_FLEET_BLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fleet/store/bell.h"

#define BLOCK_BYTES_MIN ((size_t)64 * 1024)

struct block {
	uint64_t magic;
	uint64_t run;    /* signature of the boot */
	uint64_t clock;  /* signature of the time namespace */
	uint64_t size;   /* of the whole block, in bytes */
	weir_time since; /* when it was made, by that clock */
	_Atomic uint32_t ready;
	_Atomic uint32_t current;
	pthread_mutex_t lock;
	struct bell bell;
};

/*
 * Make an empty block, which no other thread may know yet. Returns 0, or a negative errno of the
 * lock's.
 */
int block_make(struct block *block, size_t size, uint64_t run, uint64_t clock, weir_time now,
	       uint64_t version, bool shared);

/* Whether it is a block at all, ready or not, and of this layout. */
bool block_is_ours(const struct block *block, size_t size);

/* All of the following require the lock. Times are of one clock. */

bool block_is_sound(const struct block *block);

uint64_t block_version(const struct block *block);

/* Make all versions from now on exceed that one. */
void block_raise(struct block *block, weir_time now, uint64_t version);

/* Begin a session. Returns 0, or -ENOSPC. */
int block_begin(struct block *block, weir_time now, weir_dur ttl, uint64_t *session);

/* Renew a session. Returns 0, or -ESTALE. */
int block_keep(struct block *block, weir_time now, uint64_t session, weir_dur *granted);

int block_end(struct block *block, weir_time now, uint64_t session);

/* Visit the keys of the rows that are bound to a session. */
void block_bound(const struct block *block, uint64_t session,
		 void (*visit)(void *arg, const char *key), void *arg);

/* The same as weir_store_commit(). */
int block_commit(struct block *block, weir_time now, uint64_t session,
		 const struct weir_store_check *checks, size_t check_count,
		 const struct weir_store_write *writes, size_t write_count);

/* The same as weir_store_read(). */
void block_read(const struct block *block, weir_time now, const char *const *prefixes, size_t count,
		weir_store_row_fn *row, void *arg);

#endif
