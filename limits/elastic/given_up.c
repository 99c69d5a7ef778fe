/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits/common.h"
#include "constants.h"
#include "given_up.h"

/*
 * Calls that are no samples and that their callers waited for, as far as they reached the server. Where
 * many samples are timeouts, calls that are served take less than a sample does.
 */
static double ended_otherwise(const struct given_up *g, const struct weir_window *w, double rtt)
{
	const double kept = w->others > w->cancelled ? w->others - w->cancelled : 0;
	const double each = g->rtt > 0 ? fmin(g->rtt, rtt) : rtt;

	return w->others > 0 ? fmin(kept, w->others_time / each * kept / w->others) : 0;
}

/* When the window's calls were admitted. */
static double admitted_at(const struct weir_window *w)
{
	return (double)w->end - w->rtt;
}

/*
 * Whether no call that was admitted after them has been served, as far as is known: if the latest of
 * these seems to be in the future, its time is that of another clock.
 */
static bool is_later(const struct given_up *g, const struct weir_window *w)
{
	return !(admitted_at(w) < g->latest && g->latest <= (double)w->end);
}

bool given_up_elsewhere(const struct given_up *g, const struct weir_window *w)
{
	return w->timed_out >= w->count && (double)g->seen >= 1 / LASTING &&
	       g->rtt * exp(2 * RISE) < w->rtt;
}

/* Calls were served: how long that takes, and how many were given up before, is usual. */
static void learn_usual(struct given_up *g, const struct weir_window *w, double served)
{
	const double seen = clamp((double)g->seen + 1, 1, 1 / LASTING);
	const double usual = (double)g->usual;

	g->seen = (float)seen;
	g->rtt += (w->rtt - g->rtt) / seen;
	g->usual = (float)clamp(usual + (g->unserved / served - usual) / seen, 0, UINT32_MAX);
	g->unserved = 0;
	if (is_later(g, w))
		g->latest = admitted_at(w);
}

/* A call timed out after that time. */
static void learn_timeout(struct given_up *g, double rtt)
{
	const double timeout = (double)g->timeout;

	g->timeout = (float)(timeout > 0 ? timeout + QUICK * (rtt - timeout) : rtt);
}

void given_up_update(struct given_up *g, const struct weir_window *w, double most, double rtt)
{
	const double served = overloads(w) == 0 ? w->count * each_of(w) : 0;
	const double lost = is_later(g, w) || !given_up_elsewhere(g, w) ? w->timed_out : 0;
	double otherwise = ended_otherwise(g, w, rtt), cancelled = 0;
	bool none;

	g->unserved += w->cancelled + w->timed_out;
	if (served > 0)
		learn_usual(g, w, served);
	if (w->timed_out > 0 && has_latency(w))
		learn_timeout(g, w->rtt);
	none = g->unserved >= FEW * (1 + (double)g->usual);
	if (none)
		cancelled = w->cancelled;
	if (none && (double)g->seen >= FEW) /* what fewer calls show to be usual may be chance */
		otherwise = 0;
	g->row = served > 0 ? 0 : g->row + w->dropped + lost + cancelled - otherwise;
	g->row = fmax(0, g->row);
	g->held += w->timed_out + (g->row > most ? w->dropped : 0) + cancelled - served - otherwise;
	g->held = clamp(g->held, 0, most);
	if (served > 0)
		g->resume = g->pause = 0;
}

bool given_up_pause(struct given_up *g, const struct weir_window *w, double row, double most,
		    double longest, double rtt)
{
	const double took = fmax(w->rtt, rtt), end = (double)w->end;
	const bool begins = !(g->pause > 0);

	if (g->row < row || g->held < most)
		return false;
	if (w->timed_out == 0) {
		if (!begins && w->cancelled > 0 && end >= g->resume)
			g->resume = end + (double)g->pause; /* the test was cancelled */
		return false;
	}
	if (begins)
		g->pause = (float)(fmin(1, longest) * took);
	else if (end - took >= g->resume)
		g->pause = (float)fmin(2 * (double)g->pause, longest * took);
	g->resume = end + (double)g->pause;
	return begins;
}

double given_up_pause_left(const struct given_up *g, weir_time now)
{
	const double left = g->resume - (double)now;

	/* Far more than the whole of it is left if the clock is another one. Its end is rounded. */
	return left > 0 && left < 2 * (double)g->pause ? left : 0;
}
