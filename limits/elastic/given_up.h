/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * given_up.h - permits of calls that callers gave up, and that the server may still work on.
 *
 * A call that times out frees its permit, but perhaps not its place at the server: many servers go
 * on working for callers that have gone. A limiter that admits another call for each one that
 * times out adds to that work once per timeout, and a server whose throughput falls with the calls
 * in it may never recover. So the permit of a call that timed out is held back until another call
 * ends otherwise, one for one. Where timeouts are rare, a permit is back after one call. When all calls
 * time out, soon nothing is admitted beyond the lowest limit, and when calls are served again, each
 * admits two: as many calls as the limit are in flight after a few latencies.
 *
 * Calls that are no samples end otherwise too: where nine of ten calls are ignored, and some always
 * take longer than callers wait, that is no reason to admit fewer. But a call that ends at once may not
 * have reached the server. So they give permits back by the time that they were in flight: one for each
 * latency of samples.
 *
 * A server that drops a call does no work for it, and drops are quick. They count only when as many
 * calls as the limit were lost in a row: then the server takes no call at all.
 */
#ifndef WEIR_LIMITS_GIVEN_UP_H
#define WEIR_LIMITS_GIVEN_UP_H

#include <weir/limit.h>

/* All zero at first. */
struct given_up {
	double held; /* permits, 0 to `most` */
	double row;  /* calls lost since one was last served */
};

/*
 * Take in one window; most: permits that can be held back, the limit less its lowest value; rtt: mean
 * latency of samples, nanoseconds.
 */
void given_up_update(struct given_up *g, const struct weir_window *w, double most, double rtt);

#endif
