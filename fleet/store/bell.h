/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last changes of a block, and a bell that rings after each: for threads of any process that
 * watch it.
 *
 * word   written by                           order    pairs with
 * -----  -----------------------------------  -------  ---------------------------------------------
 * rings  bell_wake()                          relaxed  nothing: a thread that was woken, or finds
 *                                                      another number, takes the lock
 * count  bell_note(), under the block's lock  release  its loads, under the lock too: the order is
 *                                                      for a death within a note
 *
 * A thread reads rings, then what has changed, under the lock, and sleeps only if rings is still the
 * same. Nothing in here is trusted by a process that maps a file: a wrong number of rings wakes a
 * thread or lets it sleep until BELL_SLEEP_MAX has passed, and keys are checked where they are used.
 */
#ifndef WEIR_FLEET_BELL_H
#define WEIR_FLEET_BELL_H

#include <stdatomic.h>

#include "fleet/store/notices.h"

#define BELL_NOTES     64
#define BELL_SLEEP_MAX WEIR_S /* a process may have died between a change and the ring */

struct bell {
	_Atomic uint32_t rings;
	_Atomic uint64_t count; /* of notes ever written; note i is at i % BELL_NOTES */
	struct notice notes[BELL_NOTES];
};

uint32_t bell_look(const struct bell *bell);

/* Sleep until it rings after seen was read, at most until that time of CLOCK_MONOTONIC. */
void bell_sleep(const struct bell *bell, uint32_t seen, weir_time until);

/* Wake all threads that sleep. */
void bell_wake(struct bell *bell);

/* The lock is held in the following. A note without a key says that any row may have changed. */

void bell_note(struct bell *bell, const char *key, uint64_t version);

/* The number of notes; then list those from a number on that are of watched rows. */
uint64_t bell_count(const struct bell *bell);
void bell_list(const struct bell *bell, uint64_t from, const struct watched *watched,
	       struct notices *notices);

#endif
