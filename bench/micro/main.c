/*
 * main.c - weir-micro: what an admission and its end cost, in nanoseconds.
 *
 * All subjects take turns, round after round, so that whatever else the machine
 * does meanwhile hits them alike. README.md says how to read the table.
 */
#include "alloc.h"
#include "options.h"
#include "probe.h"
#include "subjects.h"
#include "team.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECTS_MAX 16

/* One subject at one number of threads. */
struct figure {
	const struct subject *subject;
	unsigned threads;
	double *ns; /* a pair; by repetition */
	uint64_t refused;
};

struct table {
	struct figure figures[SUBJECTS_MAX * COUNTS_MAX];
	unsigned count;
};

struct batch {
	const struct subject *subject;
	void *shared;
	struct worker *workers;
	uint64_t pairs;
};

static void *must(void *memory)
{
	if (memory == NULL) {
		perror("weir-micro");
		exit(EXIT_FAILURE);
	}
	return memory;
}

static uint64_t batch_run(void *arg, unsigned member)
{
	struct batch *batch = arg;

	return batch->subject->loop(batch->shared, &batch->workers[member], batch->pairs);
}

static void measure(struct figure *figure, unsigned rep, uint64_t pairs)
{
	const struct subject *subject = figure->subject;
	size_t size = figure->threads * sizeof(struct worker);
	struct batch batch = {
		.subject = subject,
		.shared = subject->make == NULL ? NULL : subject->make(),
		.workers = must(aligned_alloc(LINE, size)),
		.pairs = pairs,
	};
	struct outcome outcome;

	memset(batch.workers, 0, size);
	outcome = team_run(&(struct job){.run = batch_run, .arg = &batch}, figure->threads);
	figure->ns[rep] = outcome.ns / (double)pairs;
	figure->refused += outcome.sum;
	if (subject->unmake != NULL)
		subject->unmake(batch.shared);
	free(batch.workers);
}

static bool is_named(const char *name, unsigned subject)
{
	return name != NULL && strcmp(name, subject_at(subject)->name) == 0;
}

static bool wanted(const struct options *options, unsigned subject)
{
	if (subject == 0 || options->only == NULL || is_named(options->only, subject))
		return true;
	for (unsigned s = 0; subject_at(s) != NULL; s++)
		if (is_named(options->only, s))
			return is_named(subject_at(s)->beside, subject);
	return false;
}

static void table_make(struct table *table, const struct options *options)
{
	for (unsigned i = 0; i < options->count; i++)
		for (unsigned s = 0; subject_at(s) != NULL; s++)
			if (wanted(options, s))
				table->figures[table->count++] = (struct figure){
					.subject = subject_at(s),
					.threads = options->counts[i],
					.ns = must(calloc(options->reps, sizeof(double))),
				};
}

static void table_free(struct table *table)
{
	for (unsigned i = 0; i < table->count; i++)
		free(table->figures[i].ns);
}

static void table_measure(struct table *table, const struct options *options)
{
	for (unsigned i = 0; i < table->count; i++) {
		measure(&table->figures[i], 0, options->pairs / 10 + 1);
		table->figures[i].refused = 0;
	}
	for (unsigned rep = 0; rep < options->reps; rep++)
		for (unsigned i = 0; i < table->count; i++)
			measure(&table->figures[i], rep, options->pairs);
}

static bool several_threads(const struct options *options)
{
	for (unsigned i = 0; i < options->count; i++)
		if (options->counts[i] > 1)
			return true;
	return false;
}

/* Measures between two probes; false if either says that it was in vain. */
static bool measure_between(struct table *table, const struct options *options)
{
	double before = probe();
	double after;

	table_measure(table, options);
	after = probe();
	printf("# two threads do %.2f and %.2f times as much as one, before and after\n", before,
	       after);
	return probe_scales(before) && probe_scales(after);
}

static void measure_probed(struct table *table, const struct options *options)
{
	for (unsigned try = 0; try < options->tries; try++)
		if (measure_between(table, options))
			return;
	puts("# unscaled: figures for two threads and more mean little");
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *sorted, unsigned count)
{
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static double floor_of(const struct table *table, unsigned threads, unsigned reps)
{
	const struct figure *figure = table->figures;

	while (figure->threads != threads)
		figure++;
	return median(figure->ns, reps);
}

static void table_print(struct table *table, unsigned reps)
{
	puts("subject\tthreads\tmedian_ns\tmin_ns\tmax_ns\tratio\trefused");
	for (unsigned i = 0; i < table->count; i++)
		qsort(table->figures[i].ns, reps, sizeof(double), ascending);
	for (unsigned i = 0; i < table->count; i++) {
		const struct figure *f = &table->figures[i];
		double ns = median(f->ns, reps);

		printf("%s\t%u\t%.1f\t%.1f\t%.1f\t%.2f\t%" PRIu64 "\n", f->subject->name,
		       f->threads, ns, f->ns[0], f->ns[reps - 1],
		       ns / floor_of(table, f->threads, reps), f->refused);
	}
}

/* Whether everybody was admitted who should have been, and nobody else. */
static bool table_holds(const struct table *table, const struct options *options)
{
	bool holds = true;

	for (unsigned i = 0; i < table->count; i++) {
		const struct figure *f = &table->figures[i];
		uint64_t all = options->pairs * options->reps * f->threads;

		if (f->refused == (f->subject->refuses ? all : 0))
			continue;
		fprintf(stderr, "weir-micro: %s refused %" PRIu64 " of %" PRIu64 "\n",
			f->subject->name, f->refused, all);
		holds = false;
	}
	return holds;
}

int main(int argc, char **argv)
{
	struct options options;
	struct table table = {.count = 0};
	bool holds;

	options_read(&options, argc, argv);
	if (!alloc_noticed()) {
		fputs("weir-micro: allocations go unnoticed here\n", stderr);
		return EXIT_FAILURE;
	}
	printf("# %u repetitions of %" PRIu64 " pairs a thread, %u processors\n", options.reps,
	       options.pairs, team_processors());
	table_make(&table, &options);
	if (several_threads(&options))
		measure_probed(&table, &options);
	else
		table_measure(&table, &options);
	printf("# allocations %" PRIu64 "\n", alloc_count());
	table_print(&table, options.reps);
	holds = table_holds(&table, &options);
	table_free(&table);
	return holds && alloc_count() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
