/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_trace.h - recorded calls, one per line.
 *
 *	start_ms,rtt_ms,status
 *	1700000000123,17.25,200
 *
 * The first line names the columns, separated by tabs or else commas. Other columns, empty lines
 * and lines that begin with # are ignored:
 *
 *	start, end, rtt	two of them: in seconds, or in the unit of a suffix _s, _ms, _us or _ns;
 *			a start or an end may also be a date: 2026-01-31T10:11:12.345Z
 *	inflight	calls in flight when it began, including itself; without this column
 *			it is computed from the calls of the trace
 *	outcome		success (the default), ignored, dropped, timed_out,
 *			cancelled, failed
 *	status		instead of outcome, HTTP: 429 and 503 are dropped, 504 is timed out, 499 is
 *			cancelled, 502 failed, others from 400 ignored
 *	did_drop	instead of outcome: 1 is dropped, 0 is success
 *
 * Lines may be in any order. The trace is kept in memory, 28 bytes a call, and up to twice that
 * while it is sorted.
 */
#ifndef REPLAY_TRACE_H
#define REPLAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <weir/weir.h>

struct trace_call {
	weir_time start, end; /* nanoseconds since the first call began */
	uint32_t inflight;
	enum weir_outcome outcome;
};

struct trace {
	struct trace_call *calls; /* sorted by end */
	uint32_t *by_start;       /* indices of calls, sorted by start */
	size_t count;             /* at least 1 */
	weir_dur length;          /* the end of the last call */
	bool derived;             /* inflight was not recorded, but computed */
};

/* False, with "NAME:LINE: what is wrong" in why, if the trace is not valid. */
bool trace_read(struct trace *trace, FILE *in, const char *name, char *why, size_t why_size);
void trace_free(struct trace *trace);

#endif
