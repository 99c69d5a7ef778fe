/*
 * Headroom for bursts: permits above the limit that are open while the callee's
 * queue is short.
 *
 * A learned limit fits the load of the last seconds; a burst of a few calls more
 * does no harm if it is soon over, and refusing it helps nobody. So some permits
 * above the limit are open at first, and after a calm window, one in which calls in flight
 * stayed below the limit. They are closed when a window that was not calm
 *   - had drops or timeouts,
 *   - or a latency FELT times that of the last calm one: its queue is no longer short,
 *   - or was the LASTING-th in a row: what lasts is no burst.
 * (The bound on windows is OpenSearch's; the latency of the last calm window is a
 * baseline from minutes ago at worst, and only ever closes the allowance.)
 */
#ifndef WEIR_LIB_BURST_H
#define WEIR_LIB_BURST_H

#include <stdbool.h>

#include <weir/limit.h>

#define FELT    1.5
#define LASTING 5

/* The window's owner's. */
struct burst {
	uint32_t permits; /* never changes; 0: no bursts */
	uint32_t run;     /* windows in a row that were not calm */
	double calm_rtt;  /* 0: none yet */
};

/* The permits that are open after this window, of which open were before. */
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
