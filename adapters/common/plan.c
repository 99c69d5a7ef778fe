/* SPDX-License-Identifier: BSD-2-Clause */
#include "plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { PHASES_MAX = 16 };

struct phase {
	char name[32];
	uint64_t start, end;
	double rate; /* calls a microsecond */
};

struct plan {
	struct phase phases[PHASES_MAX];
	unsigned count;
	unsigned phase; /* the one that goes on */
	double next;    /* microseconds since its start */
	unsigned short chance[3];
};

uint64_t plan_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool read_phase(FILE *file, struct phase *phase)
{
	char line[200], *after_start, *after_seconds, *after_rate;
	double seconds, rate;
	int name = 0;

	if (fgets(line, sizeof(line), file) == NULL ||
	    sscanf(line, "%31s%n", phase->name, &name) != 1)
		return false;
	phase->start = strtoull(line + name, &after_start, 10);
	seconds = strtod(after_start, &after_seconds);
	rate = strtod(after_seconds, &after_rate);
	if (after_start == line + name || after_seconds == after_start ||
	    after_rate == after_seconds)
		return false;
	phase->end = phase->start + (uint64_t)(seconds * 1e6);
	phase->rate = rate / 1e6;
	return rate > 0;
}

/* Exponential gaps: calls that know nothing of each other. */
static double draw_gap(struct plan *plan)
{
	return -log1p(-erand48(plan->chance)) / plan->phases[plan->phase].rate;
}

struct plan *plan_read(const char *path)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	FILE *file = fopen(path, "re");

	if (plan == NULL || file == NULL) {
		perror(path);
		free(plan);
		if (file != NULL)
			fclose(file);
		return NULL;
	}
	while (plan->count < PHASES_MAX && read_phase(file, &plan->phases[plan->count]))
		plan->count++;
	fclose(file);
	if (plan->count == 0) {
		fprintf(stderr, "%s: no phase\n", path);
		free(plan);
		return NULL;
	}
	plan->next = draw_gap(plan);
	return plan;
}

void plan_free(struct plan *plan)
{
	free(plan);
}

bool plan_next(struct plan *plan, struct plan_call *call)
{
	while (plan->phase < plan->count) {
		const struct phase *phase = &plan->phases[plan->phase];

		*call = (struct plan_call){plan->phase, phase->start + (uint64_t)plan->next};
		if (call->at < phase->end) {
			plan->next += draw_gap(plan);
			return true;
		}
		if (++plan->phase < plan->count)
			plan->next = draw_gap(plan);
	}
	return false;
}

void plan_report(const struct plan *plan, const struct plan_call *call, unsigned status,
		 uint64_t latency, FILE *file)
{
	fprintf(file, "%s\t%" PRIu64 "\t%u\t%" PRIu64 "\n", plan->phases[call->phase].name,
		call->at, status, latency);
}
