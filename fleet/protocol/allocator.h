/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The allocator of a limit that is allocated: the member for which the row LIMIT/allocator was made.
 * It reads all rows of the limit, and writes the grants of all members (allocation.h).
 */
#ifndef WEIR_FLEET_ALLOCATOR_H
#define WEIR_FLEET_ALLOCATOR_H

#include "fleet/protocol/share.h"

/* The fleet's lock is held in all functions. */

/* Note what a reading has shown of the allocator's row. */
void allocator_note(struct weir_share *share);

/*
 * Within a refresh, once the shares have been refreshed: stand where there is no allocator, and
 * allocate where this process is one and it is time. *again is set if a grant of its own has
 * changed. Returns 0, or the first error.
 */
int allocators_run(struct weir_fleet *fleet, bool *again);

/* Between refreshes: allocate where it is time. */
void allocators_hurry(struct weir_fleet *fleet, weir_time now);

/* After a refresh that failed: not before that time. */
void allocators_postpone(struct weir_fleet *fleet, weir_time time);

/* When it is time next; WEIR_FOREVER: never. */
weir_time allocators_next(const struct weir_fleet *fleet);

/* The share is left: let another member be elected at once. */
void allocator_resign(struct weir_share *share);

void allocator_free(struct weir_share *share);

#endif
