/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * series.c - a line has calls a second, latencies in milliseconds, and at the end the values that
 * the limit exports.
 */
#include "series.h"

#define MS 1e-6

static void head(const struct series *series, const struct weir_snapshot *snapshot)
{
	fprintf(series->out,
		"%stime\tphase\toffered\tadmitted\trejected\tgood\tlate\ttimed_out\tlimit\tinflight\t"
		"target\tmean_ms\tp50_ms\tp99_ms",
		series->prefix_head != NULL ? series->prefix_head : "");
	for (size_t i = 0; series->numbers && snapshot->last.names[i] != NULL; i++)
		fprintf(series->out, "\t%s", snapshot->last.names[i]);
	fputc('\n', series->out);
}

void series_line(struct series *series, const struct series_point *point)
{
	const struct tally *t = point->tally;
	const uint64_t counts[] = {t->offered, t->admitted, t->rejected,
				   t->good,    t->late,     t->timed_out};
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(point->limiter, &snapshot);
	series->numbers &= snapshot.last.names != NULL;
	if (!series->headed)
		head(series, &snapshot);
	series->headed = true;
	fprintf(series->out, "%s%.6g\t%s", series->prefix != NULL ? series->prefix : "",
		(double)point->now / (double)WEIR_S, point->phase);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fprintf(series->out, "\t%.5g", tally_per_second(t, counts[i]));
	fprintf(series->out, "\t%ju\t%u\t%ju\t%.4g\t%.4g\t%.4g", (uintmax_t)point->limit,
		point->inflight, (uintmax_t)point->target, MS * tally_latency_mean(t),
		MS * tally_latency_quantile(t, 0.5), MS * tally_latency_quantile(t, 0.99));
	for (size_t i = 0; series->numbers && snapshot.last.names[i] != NULL; i++)
		fprintf(series->out, "\t%g", snapshot.last.numbers[i]);
	fputc('\n', series->out);
}
