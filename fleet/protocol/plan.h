/*
 * What a member does next, from what it has read of a limit: no clock, no store, no thread.
 */
#ifndef WEIR_FLEET_PLAN_H
#define WEIR_FLEET_PLAN_H

#include "fleet/protocol/drain.h"
#include "fleet/protocol/ledger.h"

/* A member's row, as read. */
struct seen_member {
	uint64_t id, made, version;
	bool seated; /* it has what is reserved; set by view_sort() */
	struct member_record record;
};

/* A limit, as read at one instant. */
struct limit_view {
	bool has_limit;
	struct limit_record limit;
	uint64_t limit_version;
	struct seen_member *members;
	size_t count, room;
	uint64_t ledger_version; /* 0: there is none */
	uint64_t up_version;     /* 0: it is no region's */
	struct up_record up;
	uint64_t carried; /* of that, what counts */
	struct ledger ledger;
	struct drains drains;
	bool strange; /* something of it is of no version that is known here */
};

void view_clear(struct limit_view *view);
void view_free(struct limit_view *view);

/* Take a row up, whose key goes on like this after that of the limit. False: no memory. */
bool view_take(struct limit_view *view, const char *rest, const struct weir_store_row *row);

/*
 * Put members in the order of their numbers. If there are more than the limit allows for, those
 * that came last are not seated.
 */
void view_sort(struct limit_view *view);

/* Whether there are more members than something is reserved for. */
bool view_is_crowded(const struct limit_view *view);

/* What a member has of what is reserved. The view must be sorted. */
uint64_t view_reserved(const struct limit_view *view, const struct seen_member *member);

/* NULL: it is not there. */
const struct seen_member *view_member(const struct limit_view *view, uint64_t id);

/* What the ledger grants a member; 0 where its line is of another lease, or there is none. */
uint64_t view_grant(const struct limit_view *view, const struct seen_member *member);

/* What the ledger grants to all who are there. Of a view that is sorted. */
uint64_t view_granted(const struct limit_view *view);

/* The capacity, with what is carried, as far as throttling leaves it. */
uint64_t view_effective(const struct limit_view *view, uint32_t throttle);

/* Who plans. */
struct planner {
	uint64_t id;
	struct member_record record; /* as it is to be */
	uint64_t held;               /* used now, by a lease that has not ended */
	uint64_t floor;              /* of its line, what it cannot give back yet */
	bool learning;               /* the store has forgotten: what is held is claimed, no more */
	bool unsettled; /* a commit that checked this version of the ledger may yet come */
	uint64_t unsettled_version;
	bool surplus;           /* it was not seated when it looked last */
	bool throttled;         /* the service has complained since */
	uint32_t throttle_seen; /* in the ledger, at the last refresh; 0: none yet */
	uint64_t last_id;       /* the number under which it was there last; 0: it never was */
};

struct plan {
	bool join;        /* there is no row of its own: make it, and plan again */
	bool drained;     /* it is to hold nothing; with join: as it was under its last number */
	bool tell;        /* its row does not say what is wanted */
	bool write;       /* the ledger below */
	bool surplus;     /* it has nothing of what is reserved: a member too many */
	bool crowded;     /* there is at least one such member */
	uint64_t fence;   /* of its own row; 0: there is none */
	uint64_t version; /* of the same, as it was written last */
	uint64_t mine;    /* its line in the ledger as it is now */
	uint64_t grant;   /* to be used: at once if it is less, after the commit if more */
	uint64_t due;     /* the same, if there were no floor */
	uint64_t keep;    /* to be used where nothing can be written */
	uint64_t shared;  /* capacity that is shared out */
	uint64_t effective;
	uint32_t members;
	struct ledger ledger;
};

/* 0; -ENOMEM. Sorts the view. plan->ledger is emptied before, and the caller's to free. */
int plan_make(struct limit_view *view, const struct planner *planner, struct plan *plan);

#endif
