/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.c - what can be computed about a scenario without running it.
 */
#include "scenario.h"

#include <math.h>
#include <stdlib.h>

/* Jobs that slow each other down have an optimal number; the search for it ends here. */
#define JOBS_MAX 100000

static double share_of(const struct scenario *s, const struct phase *phase, unsigned class)
{
	return phase != NULL ? phase->mix[class] : s->classes[class].share;
}

/* Mean work of a call at a station, in nanoseconds. */
static double work_at(const struct scenario *s, const struct phase *phase, unsigned station)
{
	double work = 0, shares = 0;

	for (unsigned c = 0; c < s->class_count; c++) {
		shares += share_of(s, phase, c);
		work += share_of(s, phase, c) * s->classes[c].work[station].mean;
	}
	return shares > 0 ? work / shares : 0;
}

struct station_model scenario_station(const struct scenario *s, const struct phase *phase,
				      unsigned station)
{
	struct station_model model = s->stations[station].model;

	if (phase == NULL || phase->station != station)
		return model;
	if (phase->workers >= 0)
		model.workers = (unsigned)phase->workers;
	if (phase->speed >= 0)
		model.speed = phase->speed;
	return model;
}

/* The work done per nanosecond with n jobs in service. */
static double pace(const struct station_model *m, double n)
{
	unsigned busy = n < m->workers ? (unsigned)n : m->workers;

	return m->speed * station_worth(m, busy) / station_hindrance(m, n);
}

static double best_pace(const struct station_model *m)
{
	double best = 0;

	if (m->contention == 0 && m->coherency == 0)
		return pace(m, m->workers);
	for (double n = 1; n <= JOBS_MAX && n <= m->workers; n++)
		best = fmax(best, pace(m, n));
	return best;
}

/* As work_at(); a kept worker is also occupied while its call is at the later stations. */
static double work_kept(const struct scenario *s, const struct phase *phase, unsigned station)
{
	double work = work_at(s, phase, station);

	for (unsigned i = station + 1; s->stations[station].kept && i < s->station_count; i++)
		work += work_at(s, phase, i);
	return work;
}

double scenario_capacity(const struct scenario *s, const struct phase *phase)
{
	double slower = phase == NULL ? 1 : fmax(phase->slower[0], phase->slower[1]);
	double capacity = INFINITY;

	for (unsigned i = 0; i < s->station_count; i++) {
		struct station_model model = scenario_station(s, phase, i);
		double work = work_kept(s, phase, i) * slower;

		if (model.discipline == STATION_DELAY || work == 0)
			continue;
		capacity = fmin(capacity, best_pace(&model) / work * 1e9);
	}
	return capacity;
}

double scenario_load(const struct scenario *s, const struct phase *phase)
{
	const struct arrivals_model *arrivals = &s->arrivals;
	double rate = fmax(phase->rate[0], phase->rate[1]);

	if (arrivals->process == ARRIVALS_CLOSED || arrivals->process == ARRIVALS_REPLAY)
		return NAN;
	if (arrivals->process == ARRIVALS_SELFSIMILAR)
		rate *= 1 + arrivals->off.mean / arrivals->on.mean; /* with all sources on */
	return (rate + phase->background) / scenario_capacity(s, phase);
}

bool scenario_counts(const struct scenario *s, unsigned phase)
{
	const struct phase *p = &s->phases[phase];

	return !p->warm_up && p->failing < 1 && scenario_capacity(s, p) > 0;
}

unsigned scenario_limiters(const struct scenario *s)
{
	unsigned count = 0;

	for (unsigned i = 0; i < s->group_count; i++)
		count += s->groups[i].count;
	return count;
}

void scenario_free(struct scenario *s)
{
	free(s->arrivals.times);
	s->arrivals.times = NULL;
}
