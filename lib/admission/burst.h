/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headroom for bursts: permits above the limit that are open while the backend's queue is short.
 *
 * A learned limit fits the load of the last seconds. A burst of a few more calls does no harm if it
 * is over soon, and refusing it gains nothing. So some permits above the limit are open at first,
 * and after each calm window, one in which calls in flight stayed below the limit. They are closed
 * when a window that was not calm
 *   - had drops or timeouts,
 *   - or had a latency FELT times that of the last calm one: the queue is no longer short,
 *   - or was the LASTING-th in a row: what lasts is no burst.
 * (The bound on windows is OpenSearch's. The latency of the last calm window is a baseline that is
 * minutes old at worst, and is only used to close the headroom.)
 */
#ifndef WEIR_LIB_BURST_H
#define WEIR_LIB_BURST_H

#include <stdbool.h>

#include <weir/limit.h>

#define FELT    1.5 /* factor of the calm latency */
#define LASTING 5   /* windows */

/* Written by the window's owner only. */
struct burst {
	uint32_t permits; /* weir_config.burst; constant; 0: no bursts */
	uint32_t run;     /* windows in a row that were not calm */
	double calm_rtt;  /* latency of the last calm window, in ns; 0: none yet */
};

/* The number of permits to open after this window; open is the number before. */
static inline uint32_t burst_after(struct burst *b, const struct weir_window *w, uint32_t open)
{
	/* With a limit of one, a window that has a call in it reaches the limit and is calm. */
	if (w->inflight_max < w->limit || w->inflight_max <= 1) {
		b->run = 0;
		b->calm_rtt = w->rtt > 0 ? w->rtt : b->calm_rtt;
		return b->permits;
	}
	b->run++;
	if (w->dropped + w->timed_out > 0 || b->run >= LASTING)
		return 0;
	if (b->calm_rtt > 0 && w->rtt > FELT * b->calm_rtt)
		return 0;
	return open;
}

#endif
