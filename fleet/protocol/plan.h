/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a member does next, computed from what it has read of a limit: no clock, store or thread.
 */
#ifndef WEIR_FLEET_PLAN_H
#define WEIR_FLEET_PLAN_H

#include "fleet/protocol/drain.h"
#include "fleet/protocol/ledger.h"

/* Throttling leaves a tenth of the capacity at least; the rest comes back in steps. */
#define THROTTLE_LEAST (THROTTLE_NONE / 10)
#define THROTTLE_STEP  (THROTTLE_NONE / 20)

/* A member's row, as read. */
struct seen_member {
	uint64_t id, made, version;
	bool seated; /* units are reserved for it; set by view_sort() */
	struct member_record record;
};

/* The grant of a member of an allocated limit, as read. */
struct seen_grant {
	uint64_t id;
	struct grant_record record;
};

/* The rows of an allocator, as read. */
struct seen_grants {
	uint64_t elected; /* the commit that made the allocator's row; 0: there is none */
	struct allocator_record allocator;
	uint64_t version; /* of the row "grants"; 0: there is none */
	struct grants_record all;
	struct seen_grant *at;
	size_t count, room;
};

/* A limit, as read at one instant. */
struct limit_view {
	bool has_limit;
	struct limit_record limit;
	uint64_t limit_version;
	uint64_t learning; /* of the row of learning; limit has it if it counts */
	uint64_t learning_version;
	struct seen_member *members;
	size_t count, room;
	uint64_t ledger_version; /* 0: there is none */
	uint64_t up_version;     /* 0: nothing is carried from above */
	struct up_record up;
	uint64_t carried; /* units of up that count */
	struct ledger ledger;
	struct drains drains;
	struct seen_grants grants; /* of an allocated limit */
	bool other_version;        /* a row is of a version that is unknown here */
	weir_dur proven;           /* weir_store_view.proven, where an observer has read it */
};

void view_clear(struct limit_view *view);
void view_free(struct limit_view *view);

/* Add a row. rest is its key after "LIMIT/". Returns false without memory. */
bool view_take(struct limit_view *view, const char *rest, const struct weir_store_row *row);

/*
 * Sort members by their numbers, and seat them: if there are more members than the limit reserves
 * units for, the latest ones get no seat.
 */
void view_sort(struct limit_view *view);

/* Whether there are more members than seats. */
bool view_is_crowded(const struct limit_view *view);

/* Units that are reserved for a member. The view must be sorted. */
uint64_t view_reserved(const struct limit_view *view, const struct seen_member *member);

/* The member of that number, or NULL. */
const struct seen_member *view_member(const struct limit_view *view, uint64_t id);

/*
 * The grant of a member of an allocated limit; NULL: there is none for its row. The view must be
 * sorted, if it has more than one member.
 */
const struct grant_record *view_grant_record(const struct limit_view *view,
					     const struct seen_member *member);

/* Of an allocated limit: fill in the ledger by the grants, for observers. */
bool view_tabulate(struct limit_view *view);

/* Units that the ledger grants a member; 0 if its line has another fence, or there is none. */
uint64_t view_grant(const struct limit_view *view, const struct seen_member *member);

/* Units that the ledger grants to all members that are there. The view must be sorted. */
uint64_t view_granted(const struct limit_view *view);

/* The capacity, with what is carried, less what throttling takes. */
uint64_t view_effective(const struct limit_view *view, uint32_t throttle);

/* The member that plans. */
struct planner {
	uint64_t id;
	struct member_record record; /* as it should be in the store */
	uint64_t held;               /* units used now, by a lease that has not ended */
	uint64_t floor;              /* units of its line that it cannot give back yet */
	bool elastic;                /* it takes headroom beyond what it wants */
	bool learning;               /* the store has forgotten: claim only what is held */
	bool unsettled;              /* LINE_UNSETTLED */
	uint64_t unsettled_version;  /* of the ledger, which the commit in doubt checks */
	bool surplus;                /* at the last refresh, it had no seat */
	bool throttled;              /* the backend has throttled this member since then */
	uint32_t throttle_seen;      /* in the ledger, at the last refresh; 0: there was none */
	uint64_t last_id;            /* under which it was a member last; 0: it never was one */
	uint64_t given_up, uses;     /* it uses no more than that of the grant with that number */
	unsigned waited;             /* refreshes for which its row was to have another demand */
	bool refused;                /* the store refuses writes: nothing is given up */
};

struct plan {
	bool join;         /* its own row, or the limit's, is missing: write it, and plan again */
	bool drained;      /* hold nothing; with join, by the drain row of last_id */
	bool write_member; /* its row differs from what it should be */
	bool write_ledger; /* as in ledger below */
	bool surplus;      /* it has no seat */
	bool crowded;      /* there are more members than seats */
	bool lacks;        /* other members still hold some of what is due to it */
	uint64_t fence;    /* the commit that made its row; 0: there is no row */
	uint64_t version;  /* of its row */
	uint64_t mine;     /* units of its line in the ledger, as read */
	uint64_t grant;    /* units to use: at once if less than mine, after the commit if more */
	uint64_t due;      /* the same, if there were no floor */
	uint64_t frozen;   /* units to use while nothing can be written */
	uint64_t shared;   /* units of the capacity that are not reserved */
	uint64_t effective;
	uint32_t members;
	struct ledger ledger;
	struct member_record record; /* its row, if it is written */
	/* Of an allocated limit. */
	bool granted;                /* there is a grant for it */
	bool waits;                  /* what it wants is not what its row has */
	uint64_t given_up, uses;     /* as in struct planner, from now on */
	uint64_t was_given_up, used; /* and before */
};

/* Whether its row has to be written, for anything but the demand, weight and priority. */
bool record_differs(const struct member_record *a, const struct member_record *b);

/*
 * Plan. Sorts the view, and fills plan->ledger, which the caller frees. Returns 0 or -ENOMEM.
 */
int plan_make(struct limit_view *view, const struct planner *planner, struct plan *plan);

#endif
