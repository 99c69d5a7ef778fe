/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_play.h - replay a trace to limiters in virtual time: each learns from every call as it
 * ends, and refuses none.
 */
#ifndef REPLAY_PLAY_H
#define REPLAY_PLAY_H

#include "replay_trace.h"

/* One limiter, and what it would have done. */
struct replayed {
	struct weir_limiter *limiter; /* the caller's */
	const char *name;             /* of its column in the series */
	uint32_t limit, least, most;  /* the limit now, its minimum and maximum so far */
	double area;                  /* limit times nanoseconds */
	uint64_t refused;             /* calls that arrived with the limit in flight */
	weir_time first;              /* arrival of the first of them */
};

/* A time series as TSV: a line each interval, with the counts since the last. */
struct replay_series {
	FILE *out;
	weir_dur every;
};

/* Replay the trace. The caller sets limiter and name of each. series may be NULL. */
void replay(const struct trace *trace, struct replayed *each, size_t count,
	    const struct replay_series *series);

#endif
