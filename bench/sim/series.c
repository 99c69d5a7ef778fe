/*
 * series.c - calls a second, latencies in milliseconds, and at the end of the line the numbers
 * that the limit shows.
 */
#include "series.h"

#define MS 1e-6

static void last_window(const struct weir_limiter *limiter, struct weir_snapshot *snapshot)
{
	weir_snapshot_init(snapshot);
	weir_snapshot_take(limiter, snapshot);
}

void series_head(FILE *out, const struct weir_limiter *limiter)
{
	struct weir_snapshot snapshot;

	last_window(limiter, &snapshot);
	fputs("time\tphase\toffered\tadmitted\trejected\tgood\tlate\ttimed_out\tlimit\tinflight\t"
	      "target\tmean_ms\tp50_ms\tp99_ms",
	      out);
	for (size_t i = 0; snapshot.last.names != NULL && snapshot.last.names[i] != NULL; i++)
		fprintf(out, "\t%s", snapshot.last.names[i]);
	fputc('\n', out);
}

void series_line(FILE *out, const struct series_point *point)
{
	const struct tally *t = point->tally;
	const uint64_t counts[] = {t->offered, t->admitted, t->rejected,
				   t->good,    t->late,     t->timed_out};
	struct weir_snapshot snapshot;

	last_window(point->limiter, &snapshot);
	fprintf(out, "%.3f\t%s", (double)point->now / (double)WEIR_S, point->phase);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fprintf(out, "\t%.4g", tally_per_second(t, counts[i]));
	fprintf(out, "\t%u\t%u\t%u\t%.3f\t%.3f\t%.3f", point->limit, point->inflight, point->target,
		MS * tally_latency_mean(t), MS * tally_latency_quantile(t, 0.5),
		MS * tally_latency_quantile(t, 0.99));
	for (size_t i = 0; snapshot.last.names != NULL && snapshot.last.names[i] != NULL; i++)
		fprintf(out, "\t%g", snapshot.last.numbers[i]);
	fputc('\n', out);
}
