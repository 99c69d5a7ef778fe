/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.h - the rows of per-sample and windowed traces.
 */
#ifndef CONFORM_SAMPLE_H
#define CONFORM_SAMPLE_H

#include "trace.h"

struct sample {
	int64_t start;
	int64_t rtt;
	int64_t inflight;
	bool dropped;
	int64_t limit; /* recorded after this sample */
};

bool sample_columns(const struct trace *trace, struct verdict *verdict);
bool sample_read(const struct trace *trace, size_t row, struct sample *sample,
		 struct verdict *verdict);

/* The number in flight, as a window or a limiter takes it. */
uint32_t sample_inflight(const struct sample *sample);

#endif
