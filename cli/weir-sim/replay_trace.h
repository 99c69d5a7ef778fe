/*
 * replay_trace.h - calls that somebody recorded, one a line.
 *
 *	start_ms,rtt_ms,status
 *	1700000000123,17.25,200
 *
 * The first line names columns, with tabs between, or else commas. Others than these are passed by,
 * and so are empty lines and those that begin with #:
 *
 *	start, end, rtt	two of them: seconds, or by _s, _ms, _us and _ns at the end of the name;
 *			a start or an end may be a date too, as 2026-01-31T10:11:12.345Z
 *	inflight	calls in flight when it began, itself included; if there is no such
 *			column it is what the calls of the trace come to
 *	outcome		success (if there is no such column), ignored, dropped, timed_out,
 *			cancelled, failed
 *	status		in its place, of HTTP: 429 and 503 are dropped, 504 is timed out, 499 is
 *			cancelled, 502 has failed, all else from 400 is ignored
 *	did_drop	in its place: 1 is dropped, 0 is success
 *
 * Lines may be in any order. All of it is in memory, in 28 bytes a call, and up to twice that
 * while they are sorted.
 */
#ifndef REPLAY_TRACE_H
#define REPLAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <weir/weir.h>

struct trace_call {
	weir_time start, end; /* the first of all begins at 0 */
	uint32_t inflight;
	enum weir_outcome outcome;
};

struct trace {
	struct trace_call *calls; /* by their ends */
	uint32_t *by_start;       /* indices of calls, by their starts */
	size_t count;             /* not 0 */
	weir_dur length;          /* the last ends then */
	bool derived;             /* what is in flight was not recorded */
};

/* False, and "NAME:LINE: what is wrong" in why. */
bool trace_read(struct trace *trace, FILE *in, const char *name, char *why, size_t why_size);
void trace_free(struct trace *trace);

#endif
