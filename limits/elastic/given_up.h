/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * given_up.h - calls that callers gave up, and that the server may still work on: permits that are
 * held back for them, and pauses.
 *
 * A call that times out frees its permit, but perhaps not its place at the server: many servers go
 * on working for callers that have gone. A limiter that admits another call for each one that
 * times out adds to that work once per timeout, and a server whose throughput falls with the calls
 * in it may never recover. So the permit of a call that timed out is held back until another call
 * ends otherwise, one for one. Where timeouts are rare, a permit is back after one call. When all
 * calls time out, soon nothing is admitted beyond the lowest limit, and when calls are served
 * again, each admits two: as many calls as the limit are in flight after a few latencies.
 *
 * Calls that are no samples end otherwise too: where nine of ten calls are ignored, and some always
 * take longer than callers wait, that is no reason to admit fewer. But a call that ends at once may
 * not have reached the server. So they give permits back by the time that they were in flight: one
 * for each latency of calls that are served. Nor are calls before them lost in a row. Cancelled calls
 * do not count: their callers gave them up as well.
 *
 * Calls that time out after more than e^2 times as long as served calls take have waited for something
 * else. Where a call that was admitted later has been served, the server has not stopped, and they are
 * not lost in a row. Where some calls take very long and no more come, or these have all the permits,
 * they time out one after the other, and would look like a server that has. Their permits are held back
 * all the same: the server may still work on them.
 *
 * Callers cancel calls for reasons of their own, so a cancelled call alone is no loss. But once
 * several times as many calls as usual were cancelled or timed out since one was last served, the
 * server serves none any more. From then on, cancelled calls count as lost, like those that time out,
 * and calls that are no samples give no permits back: they end, but without what the others wait for.
 *
 * A server that drops a call does no work for it, and drops are quick. They count only when as many
 * calls as the limit were lost in a row: then the server takes no call at all.
 *
 * Even one call at a time can keep a server down: it adds work each time it times out. So when the
 * limit has come down to its lowest value, and as many calls as it had were lost in a row, some at
 * least, a call that times out begins a pause, in which no call is admitted: as long as that call
 * took. The next call is a test. If it times out as well, the pause is twice as long, up to a
 * bound. If it is served, the permits come back. While the pause lasts, older calls that time out
 * prolong it. A cancelled call begins none, as it does not say how long the server takes. But if it
 * is the test, the same pause begins anew: the server has one call more to work on, and has shown
 * nothing. Otherwise, where nine of ten calls are cancelled, ten would be admitted for each one that
 * times out.
 */
#ifndef WEIR_LIMITS_GIVEN_UP_H
#define WEIR_LIMITS_GIVEN_UP_H

#include <stdbool.h>

#include <weir/limit.h>

/* All zero at first. */
struct given_up {
	double held;     /* permits, 0 to `most` */
	double row;      /* calls lost since one last ended otherwise */
	double rtt;      /* mean latency of calls that were served, nanoseconds; 0: none yet */
	double unserved; /* calls cancelled or timed out since one was last served */
	double latest;   /* when the latest of the served calls was admitted; 0: none yet */
	double resume;   /* when the last pause ends */
	float usual;     /* mean of unserved, for each call that is served */
	float seen;      /* windows in that mean, up to fifty */
	float timeout;   /* mean time after which calls time out, nanoseconds; 0: none has yet */
	float pause;     /* length of the last pause, nanoseconds; 0: a call was served since */
};

/*
 * Whether the window's calls timed out after more than e^2 times as long as served calls take. While few
 * calls were served, how long these take is not known.
 */
bool given_up_elsewhere(const struct given_up *g, const struct weir_window *w);

/*
 * Take in one window; most: permits that can be held back, the limit less its lowest value; rtt:
 * mean latency of samples, nanoseconds.
 */
void given_up_update(struct given_up *g, const struct weir_window *w, double most, double rtt);

/*
 * Then begin or prolong a pause, if the window's call timed out and nothing else is left to do, or the
 * test was cancelled.
 * row: as many calls must have been lost in a row; longest: bound of the pause, in times that the
 * call took. Returns true for the first pause since a call was served.
 */
bool given_up_pause(struct given_up *g, const struct weir_window *w, double row, double most,
		    double longest, double rtt);

/* How much of a pause is left at that time, nanoseconds. */
double given_up_pause_left(const struct given_up *g, weir_time now);

#endif
