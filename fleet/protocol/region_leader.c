/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process of a region leads it: the one for which the row LIMIT/leader below was made. The
 * row is bound to that process's session below, and every commit of the leader checks it.
 *
 *                          elected
 *           +---------+  ---------->  +-------------+   sure    +---------+
 *  open --> | STANDBY |               | TAKING_OVER | --------> | LEADING |
 *           +---------+  <----------  +-------------+           +---------+
 *             ^  ^      replaced,           |                     |  |
 *             |  |      session lost        |                     |  |
 *             |  +--------------------------+---------------------+  |
 *             |                             |                        |
 *      rested |                    resigned |               resigned |
 *             |                             v                        |
 *             |                        +---------+                   |
 *             +----------------------  | RESTING | <-----------------+
 *                                      +---------+
 *
 * STANDBY      It keeps its session below, and makes the row if there is none. It writes nothing
 *              else, and keeps no session above.
 * RESTING      The same, but that it does not make the row.
 * TAKING_OVER  It refreshes above, under the number and with the session of the former leader, but
 *              what is carried stays as it was written below: the ledger above is not known yet.
 * LEADING      The line above is known. What is carried is written below at each refresh.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fleet/protocol/refresh.h"
#include "fleet/protocol/region.h"

#define NEVER PHASE_NEVER

#define REST 2 /* refreshes for which a process that has resigned does not stand again */

static const unsigned char after_leader[LEADER_PHASES][LEADER_EVENTS] = {
	[LEADER_STANDBY] =
		{
			[LEADER_ELECTED] = LEADER_TAKING_OVER,
			[LEADER_SURE] = NEVER,
			[LEADER_REPLACED] = NEVER,
			[LEADER_SESSION_LOST] = LEADER_STANDBY,
			[LEADER_RESIGNED] = NEVER,
			[LEADER_RESTED] = NEVER,
		},
	[LEADER_RESTING] =
		{
			[LEADER_ELECTED] = NEVER,
			[LEADER_SURE] = NEVER,
			[LEADER_REPLACED] = NEVER,
			[LEADER_SESSION_LOST] = LEADER_RESTING,
			[LEADER_RESIGNED] = NEVER,
			[LEADER_RESTED] = LEADER_STANDBY,
		},
	[LEADER_TAKING_OVER] =
		{
			[LEADER_ELECTED] = NEVER,
			[LEADER_SURE] = LEADER_LEADING,
			[LEADER_REPLACED] = LEADER_STANDBY,
			[LEADER_SESSION_LOST] = LEADER_STANDBY,
			[LEADER_RESIGNED] = LEADER_RESTING,
			[LEADER_RESTED] = NEVER,
		},
	[LEADER_LEADING] =
		{
			[LEADER_ELECTED] = NEVER,
			[LEADER_SURE] = NEVER,
			[LEADER_REPLACED] = LEADER_STANDBY,
			[LEADER_SESSION_LOST] = LEADER_STANDBY,
			[LEADER_RESIGNED] = LEADER_RESTING,
			[LEADER_RESTED] = NEVER,
		},
};

const struct phase_table leader_phases = {"leader", LEADER_PHASES, LEADER_EVENTS, after_leader[0]};

void leader_move(struct weir_region *r, enum leader_event event)
{
	r->phase = (enum leader_phase)phase_after(r->fleet, &leader_phases, r->phase, event);
}

/* Each session has its own sign, so that a row of an earlier session is not taken for this one's. */
static int begin_session(struct weir_region *r)
{
	weir_dur granted;
	int error = weir_store_begin(r->store, r->ttl, &r->session, &granted);

	leader_move(r, LEADER_SESSION_LOST);
	(void)snprintf(r->sign, sizeof(r->sign), "weir-leader 1 %" PRIx64 "\n",
		       fleet_draw(r->fleet, 0));
	if (error == 0)
		return 0;
	r->session = 0;
	return region_fail(r, error);
}

static int keep_session(struct weir_region *r)
{
	weir_dur granted;
	int error = r->session != 0 ? weir_store_keep(r->store, r->session, &granted) : -ESTALE;

	if (error == -ESTALE)
		return begin_session(r);
	return error != 0 ? region_fail(r, error) : 0;
}

/*
 * Go on as the region's member above, with the session that is written in the row "up", or that was
 * before the store forgot the row. What the member holds above is known once the ledger there has
 * been moved.
 */
static void take_over(struct weir_region *r, uint64_t elected)
{
	struct weir_share *s = r->share;

	r->elected = elected;
	leader_move(r, LEADER_ELECTED);
	r->doubtful = false;
	share_drop(s);
	s->fence = 0;
	share_move(s, SHARE_ADOPTED);
	line_move(s, LINE_TAKEN_OVER);
	if (r->known_session == 0)
		return;
	r->fleet->session = r->known_session;
	share_set_id(s, r->known_id);
}

/* Lead, if no process does. A row of its own is of a commit that was not answered. */
static int stand(struct weir_region *r)
{
	const struct weir_store_check check = {r->leader_key, WEIR_STORE_CHECK_ABSENT, 0};
	const struct weir_store_write write = {r->leader_key, WEIR_STORE_WRITE_BIND, r->sign,
					       strlen(r->sign)};
	uint64_t version;
	int error = region_read(r);

	if (error != 0)
		return error;
	if (!r->view.other_version)
		region_sum_up(r);
	if (r->made != 0) {
		if (r->is_mine)
			take_over(r, r->made);
		return 0;
	}
	error = weir_store_commit(r->store, r->session, &check, 1, &write, 1, &version);
	if (error == 0)
		take_over(r, version);
	return error == 0 || error == -EAGAIN || error == -ESTALE ? 0 : region_fail(r, error);
}

int leader_stand(struct weir_region *r)
{
	int error = keep_session(r);

	if (error != 0 || region_leads(r))
		return error;
	if (r->phase == LEADER_RESTING) {
		if (fleet_now(r->fleet) < r->rests_until)
			return 0;
		leader_move(r, LEADER_RESTED);
	}
	return stand(r);
}

struct weir_store_check leader_check(const struct weir_region *r)
{
	return (struct weir_store_check){r->leader_key, WEIR_STORE_CHECK_MADE, r->elected};
}

void leader_resign(struct weir_region *r)
{
	const struct weir_store_check check = leader_check(r);
	const struct weir_store_write write = {r->leader_key, WEIR_STORE_WRITE_ERASE, NULL, 0};

	(void)!weir_store_commit(r->store, 0, &check, 1, &write, 1, NULL);
	leader_move(r, LEADER_RESIGNED);
	r->rests_until = fleet_now(r->fleet) + REST * r->fleet->refresh;
}

int leader_tick(struct weir_region *r)
{
	const struct weir_store_check check = leader_check(r);
	const struct weir_store_write write = {r->leader_key, WEIR_STORE_WRITE_BIND, r->sign,
					       strlen(r->sign)};
	int error = weir_store_commit(r->store, r->session, &check, 1, &write, 1, &r->tick);

	r->ticked = fleet_now(r->fleet);
	if (error == 0)
		return 0;
	if (error != -EAGAIN && error != -ESTALE)
		return region_fail(r, error);
	leader_move(r, LEADER_REPLACED);
	return -ECANCELED;
}
