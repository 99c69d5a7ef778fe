/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * state.c - observe a limit's state through its named numbers.
 *
 * The header's final.* values are exact, so a difference in the last bit is
 * found here even if the limits agreed on every row.
 */
#include "state.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int64_t state_whole(double limit, int64_t before)
{
	if (isnan(limit))
		return before;
	if (limit >= INT32_MAX)
		return INT32_MAX;
	return limit <= INT32_MIN ? INT32_MIN : (int64_t)limit;
}

bool state_number(const char *const *names, const double *values, const char *name, double *value)
{
	size_t i;

	*value = 0;
	for (i = 0; names && i < WEIR_NUMBERS_MAX && names[i]; i++) {
		if (strcmp(names[i], name) == 0) {
			*value = values[i];
			return true;
		}
	}
	return false;
}

double state_chance(const struct setup *setup, const double *values)
{
	double probes;
	size_t next;

	state_number(setup->ops->numbers, values, "probes", &probes);
	next = 1 + (size_t)probes;
	/* The list is complete: a limit that draws more has made more probes, and fails. */
	return next < setup->chance_count ? setup->chances[next] : 0;
}

static bool match_number(const struct setup *setup, const struct trace *trace, const char *key,
			 const char *name, const double *values, struct verdict *verdict)
{
	const char *text = trace_find(trace, "", key);
	double expected, got;

	if (!text)
		return true;
	if (!text_to_double(text, &expected))
		return verdict_fail(verdict, trace_key_line(trace, "", key),
				    "%s=%s is not a number", key, text);
	if (!state_number(setup->ops->numbers, values, name, &got))
		return verdict_fail(verdict, 0, "%s: weir's limit has no number \"%s\"", key, name);
	if (expected == got || (isnan(expected) && isnan(got)))
		return true;
	return verdict_fail(verdict, 0, "after the last row: %s: expected %a, got %a", key,
			    expected, got);
}

static bool match_probes(const struct setup *setup, const double *values, struct verdict *verdict)
{
	double probes;

	if (setup->chance_count == 0)
		return true;
	if (!state_number(setup->ops->numbers, values, "probes", &probes))
		return verdict_fail(verdict, 0, "weir's limit has no number \"probes\"");
	if (probes == (double)(setup->chance_count - 1))
		return true;
	return verdict_fail(verdict, 0, "after the last row: probes: expected %zu, got %.0f",
			    setup->chance_count - 1, probes);
}

bool state_match_final(const struct setup *setup, const struct trace *trace, int64_t limit,
		       const double *values, struct verdict *verdict)
{
	int64_t expected;

	if (!trace_int(trace, "final.limit", &expected, verdict))
		return false;
	if (expected != limit)
		return verdict_fail(verdict, 0,
				    "after the last row: final.limit: expected %" PRId64
				    ", got %" PRId64,
				    expected, limit);
	return match_probes(setup, values, verdict) &&
	       match_number(setup, trace, "final.estimated_limit_hex", "estimate", values,
			    verdict) &&
	       match_number(setup, trace, "final.rtt_noload_ns", "rtt_noload", values, verdict) &&
	       match_number(setup, trace, "final.long_rtt_hex", "rtt_long", values, verdict);
}
