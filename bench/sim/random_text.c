/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random_text.c - the names of scenarios that are drawn, and their texts, with a description in
 * words.
 */
#include "scenario_random.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number as random_name() allows it: digits without leading zeros, so each has one name. */
static bool read_number(const char **text, uint32_t *number)
{
	unsigned long long value;
	char *end;

	if (**text < '0' || **text > '9' ||
	    (**text == '0' && (*text)[1] >= '0' && (*text)[1] <= '9'))
		return false;
	errno = 0;
	value = strtoull(*text, &end, 10);
	*text = end;
	*number = (uint32_t)value;
	return errno == 0 && value <= UINT32_MAX;
}

bool random_name(const char *name, uint32_t *seed, uint32_t *number)
{
	if (strncmp(name, RANDOM_PREFIX, strlen(RANDOM_PREFIX)) != 0)
		return false;
	name += strlen(RANDOM_PREFIX);
	if (!read_number(&name, seed) || *name++ != '-' || !read_number(&name, number))
		return false;
	return *name == '\0' && *number > 0;
}

/* A duration, as in "250ms". */
static void put_time(FILE *out, double seconds)
{
	if (seconds >= 1)
		fprintf(out, "%gs", seconds);
	else if (seconds >= 1e-3)
		fprintf(out, "%gms", seconds * 1e3);
	else
		fprintf(out, "%gus", seconds * 1e6);
}

/* A setting that is a duration or a law; none if it is 0. */
static void put_setting(FILE *out, const char *name, const char *law, double seconds)
{
	if (seconds == 0)
		return;
	fprintf(out, " %s = \"%s", name, law);
	put_time(out, seconds);
	fputs("\";", out);
}

/* The same in words. */
static void put_words(FILE *out, const char *before, double seconds)
{
	if (seconds == 0)
		return;
	fputs(before, out);
	put_time(out, seconds);
}

static void describe_server(FILE *out, const struct drawn *d)
{
	fprintf(out, "%u %s%s, %s", d->workers,
		strcmp(d->discipline, "shared") == 0 ? "shared " : "",
		d->workers == 1 ? "worker" : "workers", d->law);
	put_time(out, d->work);
	fputs(d->law_after, out);
	put_words(out, d->kept ? ", kept for " : ", network ", d->network);
	if (d->queue > 0)
		fprintf(out, ", queue %u", d->queue);
	if (d->newest_first)
		fputs(", newest first", out);
	if (d->second_half != 1)
		fputs(", hyper-threads", out);
	if (d->coherency > 0)
		fputs(", collapse", out);
	put_words(out, ", stops ", d->pause_length);
	put_words(out, " every ", d->pause_every);
}

static void describe_arrivals(FILE *out, const struct drawn *d)
{
	static const char *const names[] = {
		[ARRIVALS_POISSON] = "",
		[ARRIVALS_REGULAR] = " regular",
		[ARRIVALS_BATCHES] = " in batches",
		[ARRIVALS_ONOFF] = " on and off",
		[ARRIVALS_SELFSIMILAR] = " self-similar",
		[ARRIVALS_CLOSED] = " closed",
	};

	fprintf(out, "; load%s", names[d->process]);
	for (unsigned i = 0; i < d->count; i++) {
		const struct stretch *one = &d->stretches[i];

		fputs(i == 0 ? " " : ", ", out);
		if (one->workers > 0)
			fprintf(out, "%u left", one->workers);
		else if (one->slower != 1)
			fprintf(out, "work x%g", one->slower);
		else if (one->load[0] != one->load[1])
			fprintf(out, "to %g", one->load[1]);
		else
			fprintf(out, "%g", one->load[0]);
	}
}

static void describe(FILE *out, const struct drawn *d)
{
	describe_server(out, d);
	describe_arrivals(out, d);
	put_words(out, "; deadline ", d->deadline);
	put_words(out, "; timeout ", d->timeout);
	if (d->retries > 0)
		fprintf(out, "; %u %s", d->retries, d->retries == 1 ? "retry" : "retries");
	if (d->outcome != NULL)
		fprintf(out, "; %g %% %s", 100 * d->part, d->outcome);
	put_words(out, " in ", d->after);
	if (d->limiters > 1)
		fprintf(out, "; %u limiters", d->limiters);
	fputc('.', out);
}

static void put_arrivals(FILE *out, const struct drawn *d)
{
	static const char *const names[] = {
		[ARRIVALS_POISSON] = "poisson",         [ARRIVALS_REGULAR] = "regular",
		[ARRIVALS_BATCHES] = "batches",         [ARRIVALS_ONOFF] = "onoff",
		[ARRIVALS_SELFSIMILAR] = "selfsimilar", [ARRIVALS_CLOSED] = "closed",
	};

	fprintf(out, "arrivals = { process = \"%s\";", names[d->process]);
	if (d->process == ARRIVALS_BATCHES)
		fprintf(out, " batch = %g;", d->batch);
	put_setting(out, "on", d->process_law, d->on);
	put_setting(out, "off", d->process_law, d->off);
	if (d->process == ARRIVALS_ONOFF && d->low > 0)
		fprintf(out, " low = %g;", d->low);
	put_setting(out, "think", "exponential ", d->think);
	fputs(" };\n", out);
}

static void put_client(FILE *out, const struct drawn *d)
{
	fputs("client = {", out);
	put_setting(out, "deadline", "", d->deadline);
	put_setting(out, "timeout", "", d->timeout);
	if (d->retries > 0)
		fprintf(out, " retries = %u; backoff_growth = 2;", d->retries);
	put_setting(out, "backoff", "exponential ", d->backoff);
	if (d->stops_work)
		fputs(" stops_work = true;", out);
	fputs(" };\n", out);
}

static void put_server(FILE *out, const struct drawn *d)
{
	fprintf(out, "server = (\n\t{ name = \"workers\"; discipline = \"%s\"; workers = %u;",
		d->discipline, d->workers);
	fprintf(out, " work = \"%s", d->law);
	put_time(out, d->work);
	fprintf(out, "%s\";", d->law_after);
	if (d->queue > 0)
		fprintf(out, " queue = %u;", d->queue);
	if (d->second_half != 1)
		fprintf(out, " second_half = %g;", d->second_half);
	if (d->coherency > 0)
		fprintf(out, " contention = %g; coherency = %g;", d->contention, d->coherency);
	fputs(d->newest_first ? " newest_first = true;" : "", out);
	fputs(d->kept ? " kept = true;" : "", out);
	put_setting(out, "pause_every", "exponential ", d->pause_every);
	put_setting(out, "pause_length", "", d->pause_length);
	fputs(" }", out);
	if (d->network > 0) {
		fputs(",\n\t{ name = \"network\"; discipline = \"delay\";", out);
		put_setting(out, "work", "uniform ", d->network);
		fputs(" }", out);
	}
	fputs("\n);\n", out);
}

static void put_outcomes(FILE *out, const struct drawn *d)
{
	bool cancelled;

	if (d->outcome == NULL)
		return;
	cancelled = strcmp(d->outcome, "cancelled") == 0;
	fprintf(out, "classes = { %s = %g;", cancelled ? "cancelled" : "failing", d->part);
	put_setting(out, cancelled ? "cancel_after" : "fail_after", "exponential ", d->after);
	if (!cancelled)
		fprintf(out, " fail_as = \"%s\";", d->outcome);
	fputs(" };\n", out);
}

/* The load from that of one phase on; as many clients as make it with the thinking that they do. */
static void put_load(FILE *out, const struct drawn *d, const double *load)
{
	double clients = load[0] * d->capacity * (d->think + d->work + d->network);

	if (d->process == ARRIVALS_CLOSED)
		fprintf(out, " clients = %.0f;", fmin(fmax(ceil(clients), 1), 100000));
	else if (load[0] != load[1])
		fprintf(out, " load = (%g, %g);", load[0], load[1]);
	else
		fprintf(out, " load = %g;", load[0]);
}

static void put_phases(FILE *out, const struct drawn *d)
{
	fputs("phases = (\n\t{ name = \"warm-up\"; warm_up = true;", out);
	put_setting(out, "length", "", d->warm_up);
	put_load(out, d, d->stretches[0].load);
	fputs(" }", out);
	for (unsigned i = 0; i < d->count; i++) {
		const struct stretch *one = &d->stretches[i];

		fprintf(out, ",\n\t{ name = \"%u\";", i + 1);
		put_setting(out, "length", "", one->length);
		put_load(out, d, one->load);
		if (one->workers > 0)
			fprintf(out, " workers = %u;", one->workers);
		if (one->slower != 1)
			fprintf(out, " slower = %g;", one->slower);
		fputs(" }", out);
	}
	fputs("\n);\n", out);
}

char *random_text(uint32_t seed, uint32_t number)
{
	struct drawn d;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		abort();
	random_draw(&d, seed, number);
	fprintf(out, "name = \"%s%u-%u\";\nfamily = \"random\";\nabout = \"", RANDOM_PREFIX, seed,
		number);
	describe(out, &d);
	fputs("\";\n\ncoarse = true;\nsweep = \"", out);
	put_time(out, d.shortest);
	fputs("\";\n", out);
	put_arrivals(out, &d);
	put_client(out, &d);
	put_server(out, &d);
	put_outcomes(out, &d);
	if (d.limiters > 1)
		fprintf(out, "limiters = { count = %u; };\n", d.limiters);
	put_phases(out, &d);
	if (fclose(out) != 0)
		abort();
	return text;
}
