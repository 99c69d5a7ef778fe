/*
 * Sessions and rows in a block of memory, of one process or of many.
 *
 * The block has two halves, of which one is current. Nothing in the current half ever changes, but
 * for one word: a session's deadline, when it is kept. A commit makes the other half of the
 * current one, with what it changes, and then flips the word that says which is current. So
 * who dies at any instruction leaves either what was or what is to be: nothing is to be repaired,
 * and no sum is kept that could be wrong. It costs a copy of some kilobytes, away from all calls.
 *
 * word      written by                             order    pairs with
 * --------  -------------------------------------  -------  -----------------------------------
 * ready     make: 1, under the file's lock         release  attach: what was made before it
 * current   flip, under the lock                   release  its loads, under the lock too: the
 *                                                           order is for a death between the
 *                                                           half's last word and the flip
 * deadline  keep, under the lock                   relaxed  nothing: one word, whole or not there
 *
 * Of a process that died in the middle nothing has to be ordered but by itself: its stores were
 * made in the order of the program, as far as the release keeps the compiler and the processor to
 * it, and the next owner of the robust lock sees them all.
 */
#ifndef WEIR_FLEET_BLOCK_H
#define WEIR_FLEET_BLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/store.h>

#define BLOCK_BYTES_MIN ((size_t)64 * 1024)

struct block {
	uint64_t magic;
	uint64_t run;    /* of the machine */
	uint64_t clock;  /* whose times these are */
	uint64_t size;   /* of all of it */
	weir_time since; /* when it was made, by that clock */
	_Atomic uint32_t ready;
	_Atomic uint32_t current;
	pthread_mutex_t lock;
};

/* Make an empty one. Nobody else may know of it. 0, or a negative errno of the lock's. */
int block_make(struct block *block, size_t size, uint64_t run, uint64_t clock, weir_time now,
	       uint64_t version, bool shared);

/* Whether it is a block at all, and of this layout. */
bool block_is_ours(const struct block *block, size_t size);

/* All of the following want the lock. Times are of one clock. */

bool block_is_sound(const struct block *block);

uint64_t block_version(const struct block *block);

/* All versions from now on are above that one. */
void block_raise(struct block *block, weir_time now, uint64_t version);

/* A new session. 0, -ENOSPC. */
int block_begin(struct block *block, weir_time now, weir_dur ttl, uint64_t *session);

/* 0, -ESTALE. */
int block_keep(struct block *block, weir_time now, uint64_t session, weir_dur *granted);

int block_end(struct block *block, weir_time now, uint64_t session);

/* As weir_store_commit(). */
int block_commit(struct block *block, weir_time now, uint64_t session,
		 const struct weir_store_check *checks, size_t check_count,
		 const struct weir_store_write *writes, size_t write_count);

/* As weir_store_read(). */
void block_read(const struct block *block, weir_time now, const char *const *prefixes, size_t count,
		weir_store_row_fn *row, void *arg);

#endif
