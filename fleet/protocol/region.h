/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region, inside: the members of a limit in one store, the store below, which are together one
 * member of a limit in another, the store above. region.c has the protocol, region_leader.c the
 * election of the process that carries it out.
 */
#ifndef WEIR_FLEET_REGION_H
#define WEIR_FLEET_REGION_H

#include "fleet/protocol/share.h"

/* What this process is to its region. */
enum leader_phase {
	LEADER_STANDBY,     /* another process leads, or none; it stands at its next refresh */
	LEADER_RESTING,     /* it has resigned: it does not stand before rests_until */
	LEADER_TAKING_OVER, /* it leads; a commit above of the former leader may yet come */
	LEADER_LEADING,     /* it leads, and no such commit can come any more */
	LEADER_PHASES,
};

enum leader_event {
	LEADER_ELECTED,      /* the leader's row was made for it */
	LEADER_SURE,         /* its line above is known: the former leader's commits are over */
	LEADER_REPLACED,     /* a commit below that checks the leader's row was refused */
	LEADER_SESSION_LOST, /* its session below has ended, and with it the leader's row */
	LEADER_RESIGNED,     /* the store above cannot be reached: another process may reach it */
	LEADER_RESTED,       /* rests_until is over */
	LEADER_EVENTS,
};

extern const struct phase_table leader_phases;

struct weir_region {
	struct weir_fleet *fleet; /* above; it has the lock */
	struct weir_share *share; /* above */
	struct weir_store *store; /* below */
	struct weir_store *own_store;
	char prefix[WEIR_SHARE_NAME_MAX + 8], up_key[WEIR_SHARE_NAME_MAX + 8],
		leader_key[WEIR_SHARE_NAME_MAX + 16];
	char sign[32];         /* the value of the leader's row, if it is of this process */
	bool own_weight;       /* the weight above is configured; else it is that of the members */
	weir_dur ttl;          /* of the session below */
	weir_dur learning_min; /* at least, below, where that store has forgotten */

	enum leader_phase phase;
	uint64_t session;      /* below; 0: none */
	uint64_t elected;      /* the commit that made the leader's row, if it leads */
	weir_time rests_until; /* of LEADER_RESTING */

	/* As read below last. */
	struct limit_view view;
	uint64_t known_id, known_session; /* above, as written in the row "up" last; 0: not yet */
	uint64_t made;                    /* the commit that made the leader's row; 0: no row */
	bool is_mine;                     /* the leader's row has the sign of this process */
	bool full;                        /* there was no memory for all of it */
	bool surveyed;                    /* in this refresh */
	bool learning;                    /* the store below may have forgotten members */
	uint64_t tick;                    /* the last commit below while it led */
	weir_time ticked;                 /* when that was acknowledged */
	int failed;                       /* why it was not surveyed */
	bool refused;                     /* the last tick: the store takes no writes */

	/* A commit of the row "up" that was not answered, and may yet come. */
	bool doubtful;
	uint64_t doubtful_version, doubtful_carried;
};

/* A refresh of the fleet above, if this process leads; else it stands. */
int region_refresh(struct weir_region *region);

/*
 * Within that refresh, between reading above and writing there: read what there is below. Returns
 * 0, or -ECANCELED, with the reason in failed.
 */
int region_survey(struct weir_region *region);

/* Read all of the limit below. Returns 0 or a negative errno. */
int region_read(struct weir_region *region);

/* Want and weigh above what the members below do together. */
void region_sum_up(struct weir_region *region);

/* Make the error of the store below the fleet's. Returns error. */
int region_fail(struct weir_region *region, int error);

static inline bool region_leads(const struct weir_region *region)
{
	return region->phase == LEADER_TAKING_OVER || region->phase == LEADER_LEADING;
}

/* This alone changes the phase. */
void leader_move(struct weir_region *region, enum leader_event event);

/* Keep the session below, and stand if this process does not lead. 0, or a negative errno. */
int leader_stand(struct weir_region *region);

/* The check that this process still leads, for commits below. */
struct weir_store_check leader_check(const struct weir_region *region);

/*
 * Write the leader's row below again: a commit that happens only while this process leads, and that
 * each later reading below shows. Returns 0; -ECANCELED: another process leads; or another negative
 * errno.
 */
int leader_tick(struct weir_region *region);

/* Leave the lead to others for a while. */
void leader_resign(struct weir_region *region);

#endif
