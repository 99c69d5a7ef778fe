/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat.c - weir stat: the figures of shared limiters, once or repeatedly.
 */
#include "stat.h"

#include "command.h"
#include "repeat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum format {
	TABLE,
	JSON,
	OPENMETRICS,
};

struct wanted {
	struct limiters limiters;
	struct repeat repeat;
	enum format format;
	bool partitions, members;
};

static void check(const struct wanted *wanted, struct argp_state *state)
{
	if (wanted->format == OPENMETRICS && wanted->repeat.interval > 0)
		argp_error(state, "--openmetrics cannot be used with --interval or --count");
	if (wanted->format != TABLE && (wanted->partitions || wanted->members))
		argp_error(state, "--partitions and --members apply to the table only");
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case 'j':
		wanted->format = JSON;
		return 0;
	case 'o':
		wanted->format = OPENMETRICS;
		return 0;
	case 'p':
		wanted->partitions = true;
		return 0;
	case 'm':
		wanted->members = true;
		return 0;
	case 'u':
	case ARGP_KEY_ARG:
		return choice_option(&wanted->limiters.choice, key, arg, state);
	case ARGP_KEY_END:
		repeat_option(&wanted->repeat, key, arg, state);
		check(wanted, state);
		return 0;
	default:
		return repeat_option(&wanted->repeat, key, arg, state);
	}
}

static void complain(void *arg, const char *name, const char *why)
{
	(void)arg;
	name_complain(name, why);
}

/* Rates if there are two readings, otherwise totals. */
static struct rates figures(const struct watched *w, bool rates)
{
	const struct weir_snapshot *s = &w->now.s;

	if (rates)
		return w->rates;
	return (struct rates){
		.admitted = (double)s->admitted,
		.rejected = (double)(s->rejected + s->abandoned),
		.dropped = (double)(s->dropped + s->timed_out),
	};
}

static struct rates part_figures(const struct watched *w, const struct part_reading *part,
				 bool rates)
{
	if (rates)
		return reading_part_rates(watched_before(w), &w->now, part);
	return (struct rates){
		.admitted = (double)part->s.admitted,
		.rejected = (double)(part->s.rejected + part->s.abandoned),
		.dropped = (double)part->s.dropped,
	};
}

static void print_header(bool rates)
{
	printf("%-20s %6s %8s %7s %9s %10s %9s %8s %5s\n", "NAME", "LIMIT", "INFLIGHT", "WAITING",
	       "RTT_MS", rates ? "ADMIT/S" : "ADMITTED", rates ? "REJECT/S" : "REJECTED",
	       rates ? "DROP/S" : "DROPPED", "PROCS");
}

static void print_rates(const struct rates *r)
{
	printf(" %10.0f %9.0f %8.0f", r->admitted, r->rejected, r->dropped);
}

static void print_parts(const struct watched *w, bool rates)
{
	for (size_t i = 0; i < w->now.part_count; i++) {
		const struct part_reading *part = &w->now.parts[i];
		const struct rates r = part_figures(w, part, rates);
		char shown[SHOWN_ROOM];

		printf("  %-18s %6" PRIu32 " %8" PRIu32 " %7" PRIu32 " %9s",
		       name_shown(part->name, shown, sizeof(shown)),
		       reading_part_most(&w->now, part), part->s.inflight, part->s.waiting, "-");
		print_rates(&r);
		printf(" %5s\n", "-");
	}
}

static const char *life_of(const struct weir_shm_member *member)
{
	switch (member->life) {
	case WEIR_SHM_DEAD:
		return "dead";
	case WEIR_SHM_FOREIGN:
		return "foreign";
	case WEIR_SHM_ALIVE:
		break;
	}
	return "alive";
}

static void print_members(const struct watched *w)
{
	for (size_t i = 0; i < w->now.member_count; i++) {
		const struct weir_shm_member *m = &w->now.members[i];

		printf("  #%-5" PRIu32 " pid %-7" PRId32 " %-8s %6" PRIu32 " calls %6" PRIu32
		       " permits %6" PRIu32 " detached\n",
		       m->number, m->pid, life_of(m), m->calls, m->permits, m->detached);
	}
}

static void print_one(const struct wanted *wanted, const struct watched *w)
{
	const bool rates = wanted->repeat.interval > 0;
	const struct weir_snapshot *s = &w->now.s;
	const struct rates r = figures(w, rates);
	char shown[SHOWN_ROOM];

	printf("%-20s %6" PRIu32 " %8" PRIu32 " %7" PRIu32 " %9.3f",
	       name_shown(w->name, shown, sizeof(shown)), s->limit, s->inflight, s->waiting,
	       s->last.window.rtt / (double)WEIR_MS);
	print_rates(&r);
	printf(" %5" PRIu32 "\n", w->now.info.attached);
	if (wanted->partitions)
		print_parts(w, rates);
	if (wanted->members)
		print_members(w);
}

static void print_table(const struct wanted *wanted)
{
	if (wanted->limiters.count > 0 || wanted->limiters.choice.count == 0)
		print_header(wanted->repeat.interval > 0);
	for (size_t i = 0; i < wanted->limiters.count; i++)
		print_one(wanted, &wanted->limiters.at[i]);
}

static int write_piece(void *arg, const char *piece, size_t size)
{
	return fwrite(piece, 1, size, arg) == size ? 0 : -EIO;
}

/* Collect all of it first, since a character may be split between two pieces. */
static bool write_metrics(const struct weir_metrics *metrics)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	bool good;

	if (memory == NULL)
		return false;
	good = weir_metrics_write(metrics, WEIR_OPENMETRICS, write_piece, memory) == 0;
	good = fclose(memory) == 0 && good;
	if (good)
		labels_print(stdout, text, size);
	free(text);
	return good;
}

struct addition {
	struct weir_metrics *metrics;
	const char *name;
};

/* A name that is not UTF-8 is escaped. */
static int add_metrics(void *arg, const struct weir_limiter *limiter)
{
	const struct addition *addition = arg;
	struct weir_label label = {.name = "name", .value = addition->name};
	char shown[SHOWN_ROOM];
	int error = weir_metrics_add(addition->metrics, limiter, &label, 1);

	if (error != -EILSEQ)
		return error;
	label.value = name_shown(addition->name, shown, sizeof(shown));
	return weir_metrics_add(addition->metrics, limiter, &label, 1);
}

/* The library's metrics text. */
static int print_metrics(const struct wanted *wanted)
{
	struct weir_metrics *metrics;
	struct names names;
	char why[512];
	int status = EXIT_SUCCESS;

	if (weir_metrics_create(&metrics) != 0) {
		name_complain("", "Out of memory.");
		return EXIT_FAILURE;
	}
	if (names_find(&names, &wanted->limiters.choice, why, sizeof(why)) != 0) {
		name_complain("", why);
		status = EXIT_FAILURE;
	}
	for (size_t i = 0; i < names.count; i++) {
		struct addition addition = {.metrics = metrics, .name = names.at[i].text};
		int error = reading_use(&names.at[i], add_metrics, &addition, why, sizeof(why));

		if (error == 0 || (error == -ENOENT && wanted->limiters.choice.count == 0))
			continue;
		name_complain(addition.name, why);
		status = wanted->limiters.choice.count > 0 ? EXIT_FAILURE : status;
	}
	left_out_print(&names.left_out);
	names_free(&names);
	if (!write_metrics(metrics)) {
		name_complain("", "Out of memory.");
		status = EXIT_FAILURE;
	}
	weir_metrics_destroy(metrics);
	return status;
}

static bool print(const struct wanted *wanted)
{
	bool good = true;

	if (wanted->format == JSON)
		good = stat_json(stdout, &wanted->limiters, wanted->repeat.interval > 0);
	else
		print_table(wanted);
	if (!good)
		name_complain("", "Out of memory.");
	return good && fflush(stdout) == 0;
}

static int print_again_and_again(struct wanted *wanted)
{
	struct repeat *repeat = &wanted->repeat;
	int status = limiters_look(&wanted->limiters, complain, NULL);

	left_out_print(&wanted->limiters.left_out);
	/* Rates need a first reading. */
	if (repeat->interval > 0) {
		repeat_again(repeat);
		repeat->done = 0;
		status = limiters_look(&wanted->limiters, complain, NULL);
	}
	while (print(wanted)) {
		if (!repeat_again(repeat))
			return status;
		status |= limiters_look(&wanted->limiters, complain, NULL);
	}
	return EXIT_FAILURE;
}

int command_stat(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0,
		 "Print everything as JSON; with --interval one object per line", 0},
		{"openmetrics", 'o', NULL, 0, "Print OpenMetrics text, for Prometheus", 0},
		{"partitions", 'p', NULL, 0,
		 "Show each limiter's partitions; their LIMIT is their cap", 0},
		{"members", 'm', NULL, 0, "Show each limiter's processes, and what they hold", 0},
		CHOICE_OPTIONS,
		REPEAT_OPTIONS,
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "[NAME...]",
		.doc = "Print the figures of the named shared limiters, or of all that belong to you "
		       "or root.\n\n"
		       "Totals count from the creation of the limiter. With --interval, rates in "
		       "calls per second are shown instead. Rejected includes calls that waited in "
		       "vain; dropped includes timeouts.",
	};
	struct wanted wanted = {.format = TABLE};
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	if (wanted.format == OPENMETRICS)
		return print_metrics(&wanted);
	status = print_again_and_again(&wanted);
	limiters_free(&wanted.limiters);
	return status;
}
