/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits/common.h"
#include "given_up.h"

void given_up_update(struct given_up *g, const struct weir_window *w, double most, double rtt)
{
	const double lost = (double)overloads(w);
	const double served = lost == 0 ? w->count * each_of(w) : 0;
	const double others = fmin(w->others, w->others_time / rtt);

	g->row = served > 0 ? 0 : g->row + lost;
	g->held += w->timed_out + (g->row > most ? w->dropped : 0) - served - others;
	g->held = clamp(g->held, 0, most);
}
