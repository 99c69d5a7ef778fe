/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * others.h - what calls that are no samples say about the latency of all.
 *
 * Ignored, cancelled and failed calls hold permits as others do, and wait in the same queue. Where
 * they take longer than samples, the same wait is less of their latency. A mean of ln R over all
 * calls moves with the wait by the mean of 1 / R; so a slope of samples is scaled by the mean of
 * 1 / R over all calls, relative to that over samples. Where they take less time, that may be as
 * they never reached the queue, and nothing is scaled. Where they take longer, fewer calls end in the
 * time that a sample takes than are in flight.
 *
 * A server may go on with a call that its caller has cancelled. The call's permit is free then, but
 * its place at the server is not. Where callers cancel long before the server would have answered, the
 * server may have many times as many calls as are in flight.
 */
#ifndef WEIR_LIMITS_OTHERS_H
#define WEIR_LIMITS_OTHERS_H

#include <weir/limit.h>

/* All zero at first. */
struct others {
	double rtt;      /* mean latency of samples, nanoseconds */
	float number;    /* others for each call that is a sample */
	float time;      /* that these were in flight, nanoseconds */
	float seen;      /* windows with samples so far, up to fifty */
	float cancelled; /* others that were cancelled, for each sample */
	/* since the last sample: others, the time that they were in flight, those cancelled */
	float since, time_since, cancelled_since;
};

void others_update(struct others *o, const struct weir_window *w);

/* How far all calls follow the slope of ln R that samples show: above 0, to 1. */
double others_part(const struct others *o);

/*
 * ln of the calls that a server may be working on, over those in flight, if it goes on with cancelled
 * ones and samples take rtt nanoseconds. 0 where callers cancel about as late as calls are served.
 */
double others_abandoned(const struct others *o, double rtt);

/* Of all calls, how many were cancelled: a fraction, from 0 to below 1. */
double others_cancelled(const struct others *o);

/* Of the calls in flight, how many end in the mean latency of a sample: a fraction, above 0, to 1. */
double others_ending(const struct others *o);

#endif
