/*
 * holding.h - how many slots are held by others than calls whose latency counts.
 *
 * Streams that nobody declared, long polls, calls that hang: a few hundred of them hide the few
 * calls beside them, whose number in flight then hardly varies. At a mark in time so many are in
 * flight. Each call that ends tells when it began, and so whether it was among them. Those that are
 * still there after some latencies are held.
 */
#ifndef WEIR_LIMITS_HOLDING_H
#define WEIR_LIMITS_HOLDING_H

#include <stdint.h>

#include <weir/limit.h>

#define HOLDING_MARKS 4

/* A moment, and what has become since of those who were in flight. */
struct mark {
	double at;       /* nanoseconds; 0: it is not set */
	double inflight; /* then */
	double ended;    /* of these, as samples, cancelled or failed */
	double seen;     /* samples, until then */
};

/* All zero at first. */
struct holding {
	struct mark mark[HOLDING_MARKS];
	uint32_t oldest;
	double latest;  /* when the last mark was set */
	double seen;    /* samples */
	double latency; /* smoothed */
	double counted; /* smoothed */
	double held;    /* whole; 0: too few to matter */
};

void holding_look(struct holding *h, const struct weir_window *w);

#endif
