/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.h - feed the rows of a trace to weir and compare. Each function leaves the
 * verdict unchanged if all results are as recorded.
 */
#ifndef CONFORM_REPLAY_H
#define CONFORM_REPLAY_H

#include "trace.h"

/* A per-sample trace: one update a sample, of the limit alone. */
void replay_limit(const struct trace *trace, const char *algorithm, struct verdict *verdict);

/* A windowed trace: a whole limiter gathers samples in windows of time. */
void replay_windowed(const struct trace *trace, struct verdict *verdict);

/* A limiter trace: acquire and release on a whole limiter, one update a sample. */
void replay_limiter(const struct trace *trace, struct verdict *verdict);

#endif
