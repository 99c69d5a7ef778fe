/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir-conform - replay recorded traces against weir's limits.
 *
 * A trace records the input of a reference implementation and its results,
 * sample by sample. weir must give exactly the same results.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "replay.h"

struct filter {
	const char *class; /* NULL: all */
	const char *only;  /* names with commas between them; NULL: all */
	bool verbose;
};

struct tally {
	size_t counts[3]; /* by enum verdict_kind */
};

static const char usage[] =
	"usage: weir-conform [--class normal|quirk|all] [--only NAME,...] [--verbose] DIR...\n"
	"\n"
	"Replay the traces of each directory and of its limiter/ folder.\n"
	"\n"
	"  --class CLASS   normal (default): traces that must match; quirk: defects of the\n"
	"                  reference, most of which must not match; all: both\n"
	"  --only NAME,... only these algorithms: fixed, settable, aimd, vegas, gradient,\n"
	"                  gradient2, windowed; for limiter traces: simple, partitioned\n"
	"  --verbose       also list the traces that pass\n"
	"\n"
	"Exit status: 0 if no trace failed, 1 if one did, 2 if there was nothing to replay.\n";

static bool listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (strncmp(list, name, length) == 0 && (list[length] == ',' || !list[length]))
			return true;
	}
	return false;
}

static bool wanted_name(const struct filter *filter, const char *name)
{
	return !filter->only || (name && listed(filter->only, name));
}

static bool wanted_class(const struct filter *filter, const char *class)
{
	/* Limiter traces have no class; they count as normal. */
	return !filter->class || strcmp(filter->class, class ? class : "normal") == 0;
}

static bool wanted(const struct filter *filter, const struct trace *trace)
{
	if (!wanted_class(filter, trace_find(trace, "", "class")))
		return false;
	return wanted_name(filter, trace_find(trace, "", "algorithm")) ||
	       wanted_name(filter, trace_find(trace, "delegate.", "algorithm")) ||
	       wanted_name(filter, trace_find(trace, "", "limiter"));
}

static void replay(const struct trace *trace, struct verdict *verdict)
{
	const char *format, *algorithm;

	if (!trace_text(trace, "", "format", &format, verdict))
		return;
	if (strcmp(format, "limiter-1") == 0) {
		replay_limiter(trace, verdict);
		return;
	}
	if (strcmp(format, "1") != 0) {
		verdict_fail(verdict, trace_key_line(trace, "", "format"), "unknown format %s",
			     format);
		return;
	}
	if (!trace_text(trace, "", "algorithm", &algorithm, verdict))
		return;
	if (strcmp(algorithm, "windowed") == 0)
		replay_windowed(trace, verdict);
	else
		replay_limit(trace, algorithm, verdict);
}

static void run_file(const char *path, const struct filter *filter, struct tally *tally)
{
	struct verdict verdict = {.kind = VERDICT_PASSED};
	struct trace trace;
	bool readable = trace_read(&trace, path, &verdict);

	if (!readable || wanted(filter, &trace)) {
		if (readable)
			replay(&trace, &verdict);
		verdict_print(&verdict, path, filter->verbose);
		tally->counts[verdict.kind]++;
	}
	trace_free(&trace);
}

static bool run_directory(const char *directory, const struct filter *filter, struct tally *tally)
{
	struct files files = {0};
	int error = files_add(&files, directory);
	size_t i;

	for (i = 0; i < files.count; i++)
		run_file(files.paths[i], filter, tally);
	if (error != 0)
		fprintf(stderr, "weir-conform: %s: %s\n", directory, strerror(-error));
	else if (files.count == 0)
		fprintf(stderr, "weir-conform: %s: contains no trace\n", directory);
	files_free(&files);
	return error == 0 && files.count != 0;
}

static bool parse_class(const char *text, struct filter *filter)
{
	if (strcmp(text, "normal") != 0 && strcmp(text, "quirk") != 0 && strcmp(text, "all") != 0)
		return false;
	filter->class = strcmp(text, "all") == 0 ? NULL : text;
	return true;
}

static void parse(int argc, char **argv, struct filter *filter)
{
	static const struct option options[] = {
		{"class", required_argument, NULL, 'c'},
		{"only", required_argument, NULL, 'o'},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool good = true;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			good = good && parse_class(optarg, filter);
			break;
		case 'o':
			filter->only = optarg;
			break;
		case 'v':
			filter->verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			good = false;
		}
	}
	if (good && optind < argc)
		return;
	fputs(usage, stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	struct filter filter = {.class = "normal"};
	struct tally tally = {{0}};
	size_t passed, failed, skipped;
	bool found = true;
	int i;

	parse(argc, argv, &filter);
	for (i = optind; i < argc; i++)
		found = run_directory(argv[i], &filter, &tally) && found;
	passed = tally.counts[VERDICT_PASSED];
	failed = tally.counts[VERDICT_FAILED];
	skipped = tally.counts[VERDICT_SKIPPED];
	if (found && passed + failed + skipped == 0) {
		fprintf(stderr, "weir-conform: no trace has this class and name\n");
		found = false;
	}
	printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
	if (!found)
		return 2;
	return failed != 0;
}
