/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking up a transition.
 */

#include "fleet/protocol/phase.h"

#include "fleet/protocol/share.h"

unsigned phase_after(const struct weir_fleet *f, const struct phase_table *table, unsigned from,
		     unsigned event)
{
	const unsigned to = table->to[from * table->events + event];

	if (f->observer != NULL)
		f->observer(table, from, event, to);
	return to != PHASE_NEVER ? to : from;
}
