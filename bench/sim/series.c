/*
 * series.c - counts as they are, latencies in milliseconds, and at the end of the
 * line the numbers that the limit shows.
 */
#include "series.h"

#define MS 1e-6

static size_t number_count(const struct weir_limit_ops *ops)
{
	size_t count = 0;

	while (ops->numbers != NULL && ops->numbers[count] != NULL)
		count++;
	return count;
}

void series_head(FILE *out, const struct weir_limit_ops *ops)
{
	fputs("time\tphase\toffered\tadmitted\trejected\tgood\tlate\tdropped\tlimit\tinflight\t"
	      "mean_ms\tp50_ms\tp99_ms",
	      out);
	for (size_t i = 0; i < number_count(ops); i++)
		fprintf(out, "\t%s", ops->numbers[i]);
	fputc('\n', out);
}

void series_line(FILE *out, weir_time now, const char *phase, const struct tally *tally,
		 const struct weir_limiter *limiter, const struct weir_limit_ops *ops)
{
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	fprintf(out, "%.1f\t%s\t%ju\t%ju\t%ju\t%ju\t%ju\t%ju\t%u\t%u\t%.3f\t%.3f\t%.3f",
		(double)now / (double)WEIR_S, phase, (uintmax_t)tally->offered,
		(uintmax_t)tally->admitted, (uintmax_t)tally->rejected, (uintmax_t)tally->good,
		(uintmax_t)tally->late, (uintmax_t)tally->dropped, snapshot.limit,
		snapshot.inflight, MS * tally_latency_mean(tally),
		MS * tally_latency_quantile(tally, 0.5), MS * tally_latency_quantile(tally, 0.99));
	for (size_t i = 0; i < number_count(ops); i++)
		fprintf(out, "\t%g", snapshot.last.numbers[i]);
	fputc('\n', out);
}
