/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limit that is allocated: what its allocator and its members do next, computed from what they
 * have read: no clock, store or thread.
 */
#ifndef WEIR_FLEET_ALLOCATION_H
#define WEIR_FLEET_ALLOCATION_H

#include "fleet/protocol/plan.h"

/*
 * The most that a member may be using, by what is in the store: its grant, if it has acknowledged
 * the number, and else the most that it had before. Without a grant: what it claims, while the store
 * is learning. grant may be NULL.
 */
uint64_t grant_counted(const struct seen_member *member, const struct grant_record *grant,
		       bool learning);

/*
 * The record that grants a member that many units, where that many are counted for it. grant is the
 * one that it has; or NULL.
 */
struct grant_record grant_next(const struct seen_member *member, const struct grant_record *grant,
			       uint64_t counted, uint64_t units);

/* A row LIMIT/grant/ID to be written, or, with number 0, to be erased. */
struct grant_change {
	uint64_t id;
	struct grant_record record;
};

/* What an allocator writes. */
struct allocation {
	struct grant_change *changes;
	size_t count, room;
	struct grants_record all;
	bool write_all; /* all is not as it is in the store */
};

/* What an allocator knows beside the view. */
struct allocating {
	bool learning; /* the store may have forgotten leases: nothing grows */
	bool regular;  /* once in an interval: the throttle changes too */
};

/*
 * Work out all grants. Sorts the view. What grows takes no more units than are counted for no
 * member, so the changes may be written in any number of commits, of which the last may be missing.
 * Returns 0 or -ENOMEM. The caller frees the changes.
 */
int allocation_make(struct limit_view *view, const struct allocating *how,
		    struct allocation *allocation);
void allocation_free(struct allocation *allocation);

/* As plan_make(), for a member of an allocated limit, which reads no rows of other members. */
void plan_follow(struct limit_view *view, const struct planner *planner, struct plan *plan);

#endif
