/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parallel.c - threads take the next piece of work until none is left; the calling thread is one of
 * them.
 */
#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256

struct crew {
	const struct parallel *job;
	atomic_size_t next, done;
	bool shows;
	time_t began;
};

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static void show(struct crew *crew, size_t done)
{
	const struct parallel *job = crew->job;
	double passed = difftime(time(NULL), crew->began);

	fprintf(stderr, "\r%s: %zu of %zu, %.0f s", job->title, done, job->count, passed);
	if (done > 0)
		fprintf(stderr, ", about %.0f s left",
			passed * (double)(job->count - done) / (double)done);
	fputs("\033[K", stderr);
}

/* Only the calling thread shows progress, so there is one line of it. */
static void take(struct crew *crew, bool shows)
{
	size_t index;

	while ((index = atomic_fetch_add(&crew->next, 1)) < crew->job->count) {
		crew->job->work(crew->job->arg, index);
		atomic_fetch_add(&crew->done, 1);
		if (shows)
			show(crew, atomic_load(&crew->done));
	}
}

static void *help(void *arg)
{
	take(arg, false);
	return NULL;
}

void parallel_run(const struct parallel *job)
{
	struct crew crew = {
		.job = job,
		.shows = job->title != NULL && isatty(STDERR_FILENO),
		.began = time(NULL),
	};
	unsigned threads = job->threads != 0 ? job->threads : processors(), started = 0;
	pthread_t helpers[THREADS_MAX];

	while (started + 1 < threads && started < THREADS_MAX && started + 1 < job->count &&
	       pthread_create(&helpers[started], NULL, help, &crew) == 0)
		started++;
	if (crew.shows && job->count > 0)
		show(&crew, 0);
	take(&crew, crew.shows);
	while (started > 0)
		pthread_join(helpers[--started], NULL);
	if (crew.shows)
		fputs("\r\033[K", stderr);
}
