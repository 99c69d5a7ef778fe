/*
 * replay.h - feed the rows of a trace to weir and compare. Each leaves the
 * verdict as it is if all is as recorded.
 */
#ifndef CONFORM_REPLAY_H
#define CONFORM_REPLAY_H

#include "trace.h"

/* One sample, one update: the limit by itself. */
void replay_limit(const struct trace *trace, const char *algorithm, struct verdict *verdict);

/* Samples gathered in windows of time: a whole limiter. */
void replay_windowed(const struct trace *trace, struct verdict *verdict);

/* Acquire and release, one sample an update: a whole limiter. */
void replay_limiter(const struct trace *trace, struct verdict *verdict);

#endif
