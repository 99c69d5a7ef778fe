/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State machines. Each is a table of the phase that an event leads to. Only phase_after() looks the
 * tables up, so they hold every transition there is. They are in share_phase.c (shares and lines)
 * and region_leader.c.
 */
#ifndef WEIR_FLEET_PHASE_H
#define WEIR_FLEET_PHASE_H

struct weir_fleet;

#define PHASE_NEVER 0xff /* the event cannot happen in that phase */

struct phase_table {
	const char *name;
	unsigned phases, events;
	const unsigned char *to; /* [phase][event]: the next phase, or PHASE_NEVER */
};

/* Called for each event, in tests. to is PHASE_NEVER where the table has no transition. */
typedef void phase_observer_fn(const struct phase_table *table, unsigned from, unsigned event,
			       unsigned to);

/* The phase that an event leads to. An event that cannot happen changes nothing. */
unsigned phase_after(const struct weir_fleet *fleet, const struct phase_table *table, unsigned from,
		     unsigned event);

#endif
