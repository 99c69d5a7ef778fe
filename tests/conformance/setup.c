/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * setup.c - translate the reference's parameters to weir's.
 *
 * All values go through weir_limit_parse(), as from a command line, so that the
 * library's own ranges and defaults apply.
 */
#include "setup.h"

#include <weir/limits.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parameter {
	const char *key;  /* in the trace */
	const char *name; /* in weir */
	const char *unit;
};

struct dialect {
	const char *algorithm;
	const char *chances; /* key of the list of random values; NULL: none */
	struct parameter parameters[10];
};

static const struct dialect dialects[] = {
	{.algorithm = "fixed", .parameters = {{"initial_limit", "limit", ""}}},
	{.algorithm = "settable", .parameters = {{"initial_limit", "initial", ""}}},
	{.algorithm = "aimd",
	 .parameters = {{"initial_limit", "initial", ""},
			{"min_limit", "min", ""},
			{"max_limit", "max", ""},
			{"backoff_ratio", "backoff", ""},
			{"timeout_ns", "timeout", "ns"}}},
	{.algorithm = "vegas",
	 .chances = "probe_jitters",
	 .parameters = {{"initial_limit", "initial", ""},
			{"max_concurrency", "max", ""},
			{"smoothing", "smoothing", ""},
			{"alpha", "alpha", ""},
			{"beta", "beta", ""},
			{"threshold", "threshold", ""},
			{"increase", "increase", ""},
			{"decrease", "decrease", ""},
			{"probe_multiplier", "probe", ""}}},
	{.algorithm = "gradient",
	 .chances = "probe_countdowns",
	 .parameters = {{"initial_limit", "initial", ""},
			{"min_limit", "min", ""},
			{"max_concurrency", "max", ""},
			{"smoothing", "smoothing", ""},
			{"queue_size", "queue", ""},
			{"rtt_tolerance", "tolerance", ""},
			{"probe_interval", "probe", ""},
			{"backoff_ratio", "backoff", ""}}},
	{.algorithm = "gradient2",
	 .parameters = {{"initial_limit", "initial", ""},
			{"min_limit", "min", ""},
			{"max_concurrency", "max", ""},
			{"smoothing", "smoothing", ""},
			{"queue_size", "queue", ""},
			{"long_window", "long_window", ""},
			{"rtt_tolerance", "tolerance", ""}}},
};

static const struct dialect *find_dialect(const char *algorithm)
{
	size_t i;

	for (i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
		if (strcmp(dialects[i].algorithm, algorithm) == 0)
			return &dialects[i];
	}
	return NULL;
}

/* Record that weir refuses the configuration. Returns false. */
static bool refused(const struct trace *trace, const char *why, struct verdict *verdict)
{
	const char *class = trace_find(trace, "", "class");

	if (class && strcmp(class, "quirk") == 0)
		return verdict_skip(verdict, "refused: %s", why);
	return verdict_fail(verdict, 0, "refused: %s", why);
}

static bool is_never(const struct parameter *parameter, const char *value)
{
	return strcmp(parameter->key, "probe_interval") == 0 && strcmp(value, "-1") == 0;
}

static bool write_text(const struct dialect *dialect, const struct trace *trace, const char *prefix,
		       char *text, size_t size, struct verdict *verdict)
{
	const struct parameter *p;
	const char *value;
	size_t used = 0;

	for (p = dialect->parameters; p->key; p++) {
		if (!trace_text(trace, prefix, p->key, &value, verdict))
			return false;
		if (is_never(p, value))
			value = "never";
		used += (size_t)snprintf(text + used, size - used, "%s%s=%s%s", used ? "," : "",
					 p->name, value, p->unit);
		if (used >= size)
			return verdict_fail(verdict, 0, "the header's parameters are too long");
	}
	return true;
}

static bool configure(struct setup *setup, const struct trace *trace, const char *text,
		      struct verdict *verdict)
{
	unsigned char complete[sizeof(setup->config)] = {0};
	char why[200] = "";

	if (weir_limit_parse(setup->ops, setup->config, text, why, sizeof(why)) != 0)
		return refused(trace, why, verdict);
	if (weir_limit_complete(setup->ops, setup->config, setup->ops->config_size, complete, why,
				sizeof(why)) != 0)
		return refused(trace, why, verdict);
	memcpy(setup->config, complete, sizeof(complete));
	return true;
}

/*
 * The random number that leads to the drawn value. vegas draws 0.5 + u/2, which can be inverted
 * exactly. gradient draws interval + floor(u * interval): any u within the step gives the value,
 * and the middle of the step is safe from rounding.
 */
static double chance_of(double drawn, double interval)
{
	return interval == 0 ? 2 * (drawn - 0.5) : (drawn - interval + 0.5) / interval;
}

static size_t count_entries(const char *list)
{
	size_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

static bool read_list(struct setup *setup, const char *key, size_t line, const char *list,
		      double interval, struct verdict *verdict)
{
	double drawn;
	char *end;

	setup->chances = calloc(count_entries(list), sizeof(*setup->chances));
	if (!setup->chances)
		return verdict_fail(verdict, 0, "out of memory");
	for (;;) {
		drawn = strtod(list, &end);
		if (end == list || (*end != ',' && *end != '\0') || !isfinite(drawn))
			return verdict_fail(verdict, line, "%s is not a list of numbers", key);
		setup->chances[setup->chance_count++] = chance_of(drawn, interval);
		if (*end == '\0')
			return true;
		list = end + 1;
	}
}

static bool read_chances(struct setup *setup, const struct dialect *dialect,
			 const struct trace *trace, const char *prefix, struct verdict *verdict)
{
	const char *interval = trace_find(trace, prefix, "probe_interval"), *list;
	int64_t n = 0;

	if (!dialect->chances || (interval && strcmp(interval, "-1") == 0))
		return true;
	if (interval && !text_to_int(interval, 1, INT32_MAX, &n))
		return verdict_fail(verdict, trace_key_line(trace, prefix, "probe_interval"),
				    "probe_interval=%s is not a valid interval", interval);
	if (!trace_text(trace, prefix, dialect->chances, &list, verdict))
		return false;
	return read_list(setup, dialect->chances, trace_key_line(trace, prefix, dialect->chances),
			 list, (double)n, verdict);
}

bool setup_read(struct setup *setup, const struct trace *trace, const char *prefix,
		const char *algorithm, struct verdict *verdict)
{
	const struct dialect *dialect = find_dialect(algorithm);
	char text[512];

	*setup = (struct setup){.ops = weir_limit_by_name(algorithm)};
	if (!dialect || !setup->ops)
		return verdict_fail(verdict, trace_key_line(trace, prefix, "algorithm"),
				    "unknown algorithm %s", algorithm);
	return write_text(dialect, trace, prefix, text, sizeof(text), verdict) &&
	       configure(setup, trace, text, verdict) &&
	       read_chances(setup, dialect, trace, prefix, verdict);
}

void setup_free(struct setup *setup)
{
	free(setup->chances);
}

bool setup_limiter(const struct setup *setup, struct weir_config *config, const struct trace *trace,
		   struct verdict *verdict, struct weir_limiter **limiter)
{
	char why[200] = "";

	config->limit = setup->ops;
	config->limit_config = setup->config;
	config->limit_config_size = setup->ops->config_size;
	config->stripes = 1;
	if (weir_config_check(config, why, sizeof(why)) != 0)
		return refused(trace, why, verdict);
	if (weir_limiter_create(config, limiter) != 0)
		return verdict_fail(verdict, 0, "weir_limiter_create() failed");
	return true;
}
