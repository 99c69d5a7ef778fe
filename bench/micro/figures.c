/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * figures.c - all subjects take turns, round after round, so that other load on the machine affects
 * them alike.
 */
#include "figures.h"

#include "rig.h"
#include "team.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct batch {
	const struct subject *subject;
	void *shared;
	struct worker *workers;
	uint64_t times;
};

static uint64_t batch_run(void *arg, unsigned member)
{
	struct batch *batch = arg;
	struct worker *worker = &batch->workers[member];

	worker->number = member;
	return batch->subject->loop(batch->shared, worker, batch->times);
}

/* Nanoseconds per iteration: as timed by the loops themselves, or else from the common start. */
static double time_of_one(const struct batch *batch, unsigned threads, struct outcome outcome)
{
	const double times = (double)batch->times;
	double own = 0;

	for (unsigned i = 0; i < threads; i++)
		own += batch->workers[i].ns / threads;
	return (own != 0 ? own : outcome.ns) / times;
}

static void measure(struct figure *figure, unsigned rep, uint64_t times)
{
	const struct subject *subject = figure->subject;
	size_t size = figure->threads * sizeof(struct worker);
	struct batch batch = {
		.subject = subject,
		.shared = subject->make == NULL ? NULL : subject->make(subject, figure->threads),
		.workers = must(aligned_alloc(LINE, size)),
		.times = times,
	};
	const struct job job = {
		.run = batch_run,
		.arg = &batch,
		.allocates = (subject->flags & ALLOCATES) != 0,
	};
	struct outcome outcome;

	memset(batch.workers, 0, size);
	outcome = team_run(&job, figure->threads);
	figure->ns[rep] = time_of_one(&batch, figure->threads, outcome);
	figure->done += times * figure->threads;
	figure->refused += outcome.sum;
	if (subject->unmake != NULL)
		subject->unmake(batch.shared);
	free(batch.workers);
}

static void add(struct figures *figures, const struct subject *subject, unsigned threads,
		const struct options *options)
{
	const uint64_t slow = subject->slow > 0 ? subject->slow : 1;
	size_t size = (figures->count + 1) * sizeof(*figures->all);

	figures->all = must(realloc(figures->all, size));
	figures->all[figures->count++] = (struct figure){
		.subject = subject,
		.threads = threads,
		.times = (options->pairs + slow - 1) / slow,
		.ns = must(calloc(options->reps, sizeof(double))),
	};
}

struct figures figures_make(const struct subjects *subjects, const struct options *options)
{
	struct figures figures = {.count = 0};

	for (unsigned i = 0; i < options->count; i++)
		for (unsigned s = 0; s < subjects->count; s++) {
			const struct subject *subject = &subjects->all[s];

			if (s > 0 && !subject_matches(subject, options->only))
				continue;
			if (subject_fits(subject, options->counts[i]))
				add(&figures, subject, options->counts[i], options);
		}
	return figures;
}

void figures_free(struct figures *figures)
{
	for (unsigned i = 0; i < figures->count; i++)
		free(figures->all[i].ns);
	free(figures->all);
}

static void progress(unsigned rep, const struct options *options, const struct figure *figure)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[Kround %u of %u, threads %u, %s", rep + 1, options->reps,
			figure->threads, figure->subject->name);
}

static void progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

void figures_warm_up(struct figures *figures)
{
	for (unsigned i = 0; i < figures->count; i++)
		measure(&figures->all[i], 0, figures->all[i].times / 10 + 1);
}

void figures_round(struct figures *figures, unsigned rep, const struct options *options)
{
	for (unsigned i = 0; i < figures->count; i++) {
		progress(rep, options, &figures->all[i]);
		measure(&figures->all[i], rep, figures->all[i].times);
	}
	progress_end();
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Interpolate between the two nearest values. */
static double quantile(const double *sorted, unsigned count, double part)
{
	double place = part * (count - 1);
	unsigned below = (unsigned)place, above = below + 1 < count ? below + 1 : below;

	return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

/* The floor is the first subject for each number of threads. */
static double floor_of(const struct figures *figures, unsigned threads, unsigned reps)
{
	const struct figure *figure = figures->all;

	while (figure->threads != threads)
		figure++;
	return quantile(figure->ns, reps, 0.5);
}

void figures_print(struct figures *figures, const struct options *options)
{
	const unsigned reps = options->reps;

	puts("group\tsubject\tthreads\tmedian_ns\tq1_ns\tq3_ns\tmin_ns\tmax_ns\tratio\trefused");
	for (unsigned i = 0; i < figures->count; i++)
		qsort(figures->all[i].ns, reps, sizeof(double), ascending);
	for (unsigned i = 0; i < figures->count; i++) {
		const struct figure *f = &figures->all[i];
		double median = quantile(f->ns, reps, 0.5);

		printf("%s\t%s\t%u\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%" PRIu64 "\n",
		       f->subject->group, f->subject->name, f->threads, median,
		       quantile(f->ns, reps, 0.25), quantile(f->ns, reps, 0.75), f->ns[0],
		       f->ns[reps - 1], median / floor_of(figures, f->threads, reps), f->refused);
	}
}

bool figures_hold(const struct figures *figures)
{
	bool hold = true;

	for (unsigned i = 0; i < figures->count; i++) {
		const struct figure *f = &figures->all[i];

		if (f->refused == ((f->subject->flags & REFUSES) != 0 ? f->done : 0))
			continue;
		fprintf(stderr, "weir-micro: %s refused %" PRIu64 " of %" PRIu64 "\n",
			f->subject->name, f->refused, f->done);
		hold = false;
	}
	return hold;
}
