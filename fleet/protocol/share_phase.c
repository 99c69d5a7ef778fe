/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The phases of a share.
 *
 * A share begins OUTSIDE, with its line KNOWN. Events that leave a phase as it is are in the tables
 * only. The lease is a time (until), not a phase: it goes on to its end also when the row is lost.
 *
 * The share's row, LIMIT/m/ID:
 *
 *                  join sent,
 *                  adopted                     row read
 *   +---------+  --------------->  +----------+  --------------->  +--------+
 *   | OUTSIDE |                    | ENTERING |                    | MEMBER |
 *   +---------+  <---------------  +----------+  <---------------  +--------+
 *        ^         session lost         |          row missing,      |    |
 *        |                              |          adopted           |    |
 *        |                              +-------------+--------------+    |
 *        |                                            | left              |
 *        |                                            v                   |
 *        |                                       +---------+              |
 *        |                                       | LEAVING |              |
 *        |                                       +---------+              |
 *        |                                            | row erased        |
 *        |                                            v                   |
 *        |                                        +--------+              |
 *        |                                        | ERASED |              |
 *        |                                        +--------+              |
 *        +-------------------------- session lost ------------------------+
 *
 * OUTSIDE   Nothing is to be erased. A refresh makes the row, and the limit if there is none.
 * ENTERING  The commit was acknowledged or not answered, or the row has vanished: only a reading
 *           shows the row, so nothing is written to the ledger. A share that leaves has a row to
 *           erase.
 * MEMBER    The share has a fence, and commits to the ledger, each of which checks it. Its lease is
 *           extended with the session's.
 * LEAVING   No callback is called any more. Each refresh erases the row before it reads.
 * ERASED    The same, if the row was never read: the commit that makes it may come late, until the
 *           lease has passed since the share was left. A row that was read cannot come again, so the
 *           share is freed.
 *
 * A share is freed from OUTSIDE when it is left; from LEAVING and ERASED also when the session ends.
 *
 * The share's line in the ledger:
 *
 *                 unanswered
 *   +-------+  --------------->  +-----------+
 *   | KNOWN |                    | UNSETTLED |
 *   +-------+  <---------------  +-----------+
 *       |        acknowledged,       |   ^
 *       |        moved,        taken |   | first
 *       |        session lost   over |   | read
 *       |                            v   |
 *       |        taken over      +---------+
 *       +--------------------->  | ADOPTED |
 *                                +---------+
 *
 * KNOWN      The line may be used up to what it grants, without a commit.
 * UNSETTLED  The lesser of the line and of what was to be written is used. Each refresh writes the
 *            ledger, until its version is another than the one that the commit in doubt checks:
 *            that commit has happened then, or is refused.
 * ADOPTED    Another process wrote this line until now, and it is not known what it wrote last. The
 *            first reading makes it UNSETTLED, by the version that is read.
 */

#include "fleet/protocol/share.h"

#define NEVER PHASE_NEVER

static const unsigned char after_share[SHARE_PHASES][SHARE_EVENTS] = {
	[SHARE_OUTSIDE] =
		{
			[SHARE_JOIN_SENT] = SHARE_ENTERING,
			[SHARE_ROW_READ] = NEVER,
			[SHARE_ROW_MISSING] = SHARE_OUTSIDE,
			[SHARE_SESSION_LOST] = SHARE_OUTSIDE,
			[SHARE_ADOPTED] = SHARE_ENTERING,
			[SHARE_LEFT] = NEVER,
			[SHARE_ROW_ERASED] = NEVER,
		},
	[SHARE_ENTERING] =
		{
			[SHARE_JOIN_SENT] = SHARE_ENTERING,
			[SHARE_ROW_READ] = SHARE_MEMBER,
			[SHARE_ROW_MISSING] = SHARE_ENTERING,
			[SHARE_SESSION_LOST] = SHARE_OUTSIDE,
			[SHARE_ADOPTED] = SHARE_ENTERING,
			[SHARE_LEFT] = SHARE_LEAVING,
			[SHARE_ROW_ERASED] = NEVER,
		},
	[SHARE_MEMBER] =
		{
			[SHARE_JOIN_SENT] = SHARE_MEMBER, /* the limit's row was missing */
			[SHARE_ROW_READ] = SHARE_MEMBER,
			[SHARE_ROW_MISSING] = SHARE_ENTERING,
			[SHARE_SESSION_LOST] = SHARE_OUTSIDE,
			[SHARE_ADOPTED] = SHARE_ENTERING,
			[SHARE_LEFT] = SHARE_LEAVING,
			[SHARE_ROW_ERASED] = NEVER,
		},
	[SHARE_LEAVING] =
		{
			[SHARE_JOIN_SENT] = NEVER,
			[SHARE_ROW_READ] = NEVER,
			[SHARE_ROW_MISSING] = NEVER,
			[SHARE_SESSION_LOST] = NEVER,
			[SHARE_ADOPTED] = NEVER,
			[SHARE_LEFT] = NEVER,
			[SHARE_ROW_ERASED] = SHARE_ERASED,
		},
	[SHARE_ERASED] =
		{
			[SHARE_JOIN_SENT] = NEVER,
			[SHARE_ROW_READ] = NEVER,
			[SHARE_ROW_MISSING] = NEVER,
			[SHARE_SESSION_LOST] = NEVER,
			[SHARE_ADOPTED] = NEVER,
			[SHARE_LEFT] = NEVER,
			[SHARE_ROW_ERASED] = SHARE_ERASED,
		},
};

static const unsigned char after_line[LINE_PHASES][LINE_EVENTS] = {
	[LINE_KNOWN] =
		{
			[LINE_UNANSWERED] = LINE_UNSETTLED,
			[LINE_ACKNOWLEDGED] = LINE_KNOWN,
			[LINE_MOVED] = NEVER,
			[LINE_SESSION_LOST] = LINE_KNOWN,
			[LINE_TAKEN_OVER] = LINE_ADOPTED,
			[LINE_FIRST_READ] = NEVER,
		},
	[LINE_UNSETTLED] =
		{
			[LINE_UNANSWERED] =
				LINE_UNSETTLED, /* by the first version that was checked */
			[LINE_ACKNOWLEDGED] = LINE_KNOWN,
			[LINE_MOVED] = LINE_KNOWN,
			[LINE_SESSION_LOST] = LINE_KNOWN,
			[LINE_TAKEN_OVER] = LINE_ADOPTED,
			[LINE_FIRST_READ] = NEVER,
		},
	[LINE_ADOPTED] =
		{
			[LINE_UNANSWERED] = NEVER,
			[LINE_ACKNOWLEDGED] = NEVER,
			[LINE_MOVED] = NEVER,
			[LINE_SESSION_LOST] = LINE_ADOPTED,
			[LINE_TAKEN_OVER] = LINE_ADOPTED,
			[LINE_FIRST_READ] = LINE_UNSETTLED,
		},
};

const struct phase_table share_phases = {"share", SHARE_PHASES, SHARE_EVENTS, after_share[0]};
const struct phase_table line_phases = {"line", LINE_PHASES, LINE_EVENTS, after_line[0]};

void share_move(struct weir_share *s, enum share_event event)
{
	s->phase = (enum share_phase)phase_after(s->fleet, &share_phases, s->phase, event);
}

void line_move(struct weir_share *s, enum line_event event)
{
	s->line = (enum line_phase)phase_after(s->fleet, &line_phases, s->line, event);
}
