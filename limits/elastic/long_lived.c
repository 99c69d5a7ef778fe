/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits/common.h"
#include "constants.h"
#include "long_lived.h"

/*
 * Latencies from a mark to its count: by then nearly all ordinary calls have ended. Where work
 * varies much, one of ten takes ten times the mean.
 */
#define LATENCIES 16

/*
 * By the time of the count, every ordinary call of the mark has ended; the rest is long-lived.
 * Where a sample stands for many calls, few of those in flight are samples, and a count is less
 * certain. Where fewer than half are long-lived, they may be slow calls; a few are hardly in the way.
 */
static void count_at(struct long_lived *l, const struct mark *m)
{
	const double sure = fmin(1, m->inflight / (FEW * (double)l->each));

	l->counted += RECENT * sure * (fmax(0, m->inflight - m->ended) - l->counted);
	l->permits = l->counted > fmax(FEW, m->inflight / 2) ? floor(l->counted) : 0;
}

/*
 * Whether the mark is old enough, and each ordinary call's permit was used again since; or was never
 * set, or is in the future as the clock went back.
 */
static bool is_over(const struct long_lived *l, const struct mark *m, double now)
{
	if (m->at <= 0 || m->at > now)
		return true;
	return now - m->at > LATENCIES * l->latency &&
	       l->seen - m->seen >= fmax(FEW, m->inflight - l->permits);
}

/* The most of the window's others that can have been in flight for so long. */
static double older(const struct weir_window *w, double age)
{
	if (w->others == 0)
		return 0; /* mostly: saves four divisions */
	return age > 0 ? fmin(w->others, floor(w->others_time / age)) : w->others;
}

/*
 * When several samples come in one window, all count as ended if one of them may have been in
 * flight at the mark: it is better to find too few long-lived calls than too many. So windows of
 * time find none. Many streams that end at once are noticed at once, by inflight_now.
 */
void long_lived_update(struct long_lived *l, const struct weir_window *w)
{
	const double now = (double)w->end, calls = w->count * each_of(w);
	const double began = (w->count == 1 ? now : (double)w->start) - w->rtt_max;
	struct mark *oldest = &l->mark[l->oldest % LONG_LIVED_MARKS];

	if (has_latency(w))
		l->latency += (l->latency > 0 ? RECENT : 1) * (w->rtt - l->latency);
	l->counted = fmin(l->counted, w->inflight_now);
	l->permits = fmin(l->permits, w->inflight_now);
	l->each = (float)each_of(w);
	l->seen += calls;
	for (int i = 0; i < LONG_LIVED_MARKS; i++)
		l->mark[i].ended += older(w, now - l->mark[i].at) +
				    (began < l->mark[i].at ? calls : 0);
	if (fabs(now - l->latest) * LONG_LIVED_MARKS < l->latency * LATENCIES ||
	    !is_over(l, oldest, now))
		return;
	if (oldest->at > 0 && oldest->at <= now)
		count_at(l, oldest);
	*oldest = (struct mark){.at = now, .inflight = w->inflight_now, .seen = l->seen};
	l->oldest++;
	l->latest = now;
}
