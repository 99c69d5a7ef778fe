/*
 * replay_play.h - a trace before limiters, in virtual time: each learns from every call as it ends,
 * and admits none.
 */
#ifndef REPLAY_PLAY_H
#define REPLAY_PLAY_H

#include "replay_trace.h"

/* One limiter, and what it would have done. */
struct replayed {
	struct weir_limiter *limiter; /* the caller's */
	const char *name;             /* of its column in the series */
	uint32_t limit, least, most;  /* the limit now; and of all time */
	double area;                  /* of the limit, in nanoseconds */
	uint64_t refused;             /* calls that found its limit in flight */
	weir_time first;              /* when the first of them came */
};

/* Lines of TSV, one every so often, with what there was since the last. NULL: none. */
struct replay_series {
	FILE *out;
	weir_dur every;
};

/* Go through the trace; limiter and name of each are given, the rest is set. */
void replay(const struct trace *trace, struct replayed *each, size_t count,
	    const struct replay_series *series);

#endif
