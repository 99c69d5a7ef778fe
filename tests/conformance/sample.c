/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.c - read a sample from its row.
 */
#include "sample.h"

bool sample_columns(const struct trace *trace, struct verdict *verdict)
{
	return trace_has_columns(trace, "i,start_ns,rtt_ns,inflight,did_drop,limit_after", verdict);
}

bool sample_read(const struct trace *trace, size_t row, struct sample *sample,
		 struct verdict *verdict)
{
	char *fields[6];
	int64_t dropped;

	if (!trace_fields(trace, row, fields, 6, verdict))
		return false;
	if (!text_to_int(fields[1], INT64_MIN, INT64_MAX, &sample->start) ||
	    !text_to_int(fields[2], INT64_MIN, INT64_MAX, &sample->rtt) ||
	    !text_to_int(fields[3], INT32_MIN, INT32_MAX, &sample->inflight) ||
	    !text_to_int(fields[4], 0, 1, &dropped) ||
	    !text_to_int(fields[5], INT32_MIN, INT32_MAX, &sample->limit))
		return verdict_fail(verdict, trace_line(trace, row),
				    "the row has a field that is not a valid number in its column");
	sample->dropped = dropped == 1;
	return true;
}

uint32_t sample_inflight(const struct sample *sample)
{
	return sample->inflight > 0 ? (uint32_t)sample->inflight : 0;
}
