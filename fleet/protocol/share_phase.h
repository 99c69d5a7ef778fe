/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The phases of a share and of its line in the ledger. share_phase.c has the pictures and the
 * tables.
 */
#ifndef WEIR_FLEET_SHARE_PHASE_H
#define WEIR_FLEET_SHARE_PHASE_H

#include "fleet/protocol/phase.h"

struct weir_share;

/* What is known of the share's own row, LIMIT/m/ID. */
enum share_phase {
	SHARE_OUTSIDE,  /* no row of this number was written in this session */
	SHARE_ENTERING, /* the row may be there: a commit that makes it was sent */
	SHARE_MEMBER,   /* the row was read; fence is the commit that made it */
	SHARE_LEAVING,  /* the application has left: the row is to be erased */
	SHARE_ERASED,   /* the same, and it was erased at least once since then */
	SHARE_PHASES,
};

enum share_event {
	SHARE_JOIN_SENT,    /* a commit that makes the row happened, or was not answered */
	SHARE_ROW_READ,     /* a reading has shown the row */
	SHARE_ROW_MISSING,  /* a reading has not shown the row */
	SHARE_SESSION_LOST, /* the session has ended: the row is gone, or will be in a moment */
	SHARE_ADOPTED,      /* of a region: the share goes on as its former leader's */
	SHARE_LEFT,         /* weir_share_leave() */
	SHARE_ROW_ERASED,   /* a commit that erases the row was acknowledged */
	SHARE_EVENTS,
};

/* What is known of the share's line in the ledger. */
enum line_phase {
	LINE_KNOWN,     /* it is as read: no other commit of this member can come */
	LINE_UNSETTLED, /* a commit that was not answered may yet come */
	LINE_ADOPTED,   /* of a region: a commit of the former leader may yet come */
	LINE_PHASES,
};

enum line_event {
	LINE_UNANSWERED,   /* a commit that writes the ledger was not answered */
	LINE_ACKNOWLEDGED, /* a commit that writes the ledger was acknowledged */
	LINE_MOVED,        /* the ledger is of another version than the commit in doubt checks */
	LINE_SESSION_LOST, /* the session has ended, and with it the row that the commit checks */
	LINE_TAKEN_OVER,   /* of a region: the share goes on as its former leader's */
	LINE_FIRST_READ,   /* of a region: the ledger was read for the first time since then */
	LINE_EVENTS,
};

/* How far a refresh has come with a share. Each refresh begins anew. */
enum share_step {
	STEP_OPEN,    /* nothing is planned yet, or something is to be written */
	STEP_PROBE,   /* its own row alone is to be written: whether the store takes writes */
	STEP_READ,    /* it is to be read again, with the rows of all members */
	STEP_SETTLED, /* nothing is left to be written */
};

extern const struct phase_table share_phases, line_phases;

/* These alone change the phases. */
void share_move(struct weir_share *share, enum share_event event);
void line_move(struct weir_share *share, enum line_event event);

#endif
