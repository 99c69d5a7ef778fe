#include "long_lived.h"

#include "limits/common.h"

/* A count is made so many latencies after its mark, and samples: at least, and for each call in
 * flight beside those held. So calls of a black hole, where no samples come, are not counted. */
#define LATENCIES 4
#define SEEN      16
#define SEEN_EACH 2

/* Weights of a new count, and of a new latency. */
#define COUNT_NEW   0.3
#define LATENCY_NEW 0.05

/* Parts of what is in flight: from so much on it counts that it is held, until so much, and slots
 * at least. So calls that are merely slow do not. */
#define FROM  0.6
#define UNTIL 0.4
#define LEAST 8

/* Who was in flight at the mark and is a call like others has ended by now. */
static void count_at(struct holding *h, const struct mark *m)
{
	const double part = h->held > 0 ? UNTIL : FROM;

	h->counted += COUNT_NEW * (fmax(0, m->inflight - m->ended) - h->counted);
	h->held = h->counted > fmax(LEAST, part * m->inflight) ? floor(h->counted) : 0;
}

/* The mark has been set long enough, or never; or the clock went back. */
static bool is_over(const struct holding *h, const struct mark *m, double now)
{
	if (m->at <= 0 || m->at > now)
		return true;
	return now - m->at > LATENCIES * h->latency &&
	       h->seen - m->seen >= fmax(SEEN, SEEN_EACH * (m->inflight - h->held));
}

/*
 * Samples that come together count as ended if one of them may have been in flight at the mark:
 * it is better to find too few slots held than too many. So windows of time find none. Streams
 * that end all at once are missed at once.
 */
void holding_look(struct holding *h, const struct weir_window *w)
{
	const double now = (double)w->end;
	const double began = (w->count == 1 ? now : (double)w->start) - w->rtt_max;
	const double others = (double)w->cancelled + w->failed;
	struct mark *oldest = &h->mark[h->oldest % HOLDING_MARKS];

	if (has_latency(w))
		h->latency += (h->latency > 0 ? LATENCY_NEW : 1) * (w->rtt - h->latency);
	h->counted = fmin(h->counted, w->inflight_now);
	h->held = fmin(h->held, w->inflight_now);
	h->seen += w->count;
	for (int i = 0; i < HOLDING_MARKS; i++)
		h->mark[i].ended += others + (began < h->mark[i].at ? w->count : 0);
	if (fabs(now - h->latest) * HOLDING_MARKS < h->latency * LATENCIES ||
	    !is_over(h, oldest, now))
		return;
	if (oldest->at > 0 && oldest->at <= now)
		count_at(h, oldest);
	*oldest = (struct mark){.at = now, .inflight = w->inflight_now, .seen = h->seen};
	h->oldest++;
	h->latest = now;
}
