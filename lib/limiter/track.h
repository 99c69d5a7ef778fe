/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracking of where tokens were acquired, to find tokens that are never released, or released twice
 * by way of a copy.
 *
 * word     written by                       order    pairs with
 * -------  -------------------------------  -------  -------------------------------
 * serial   add: store, odd (taken)          release  visit: start and place
 * serial   remove: CAS to even (free)       relaxed  nothing: the free map orders it
 * start,   add: store                       release  visit: a reader that sees a later
 * place                                              use's sees that serial moved on
 *
 * A token names its entry and the serial of that use. Of several removals with the same serial, one
 * compare-and-swap succeeds; the others are double releases.
 */
#ifndef WEIR_LIB_TRACK_H
#define WEIR_LIB_TRACK_H

#include <stdbool.h>

#include "lib/base/layout.h"

struct track_entry {
	_Atomic uint64_t start;
	_Atomic uintptr_t place;
	_Atomic uint32_t serial;
};

struct tracking {
	struct track_entry *entries;
	_Atomic uint64_t *free;
	uint32_t count; /* 0: tokens are not tracked */
};

void track_init(const struct tracking *t);

/* Record the token in an entry, if one is free. */
void track_add(const struct tracking *t, struct weir_token *token, const void *place);

/* For a token with an entry. False: this use of the entry has already ended. */
bool track_remove(const struct tracking *t, const struct weir_token *token);

/* A consistent copy of entry i; false if it is free. */
bool track_read(const struct tracking *t, uint32_t i, weir_time *start, const void **place);

#endif
