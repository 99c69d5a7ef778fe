/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.c - a stream of calls with gaps of mean 1, random or even, measured in the integral of the
 * rate over time. So a ramp is exact, and when the rate changes, by a switch or a new stretch, the
 * rest of the current gap passes at the new rate.
 */
#include "source.h"

#include "alloc_or_abort.h"

#include <math.h>
#include <stdlib.h>

/* On-off sources that add up to a self-similar stream; their on times have infinite variance. */
#define SELFSIMILAR_SOURCES 16
#define SELFSIMILAR_ALPHA   1.4

/* Nanoseconds: longer than any scenario. */
#define NEVER 1e18

struct source_switch {
	struct source *source;
	struct event event;
	bool on;
};

/* The current rate as a fraction of the rate of the stretch. */
static double part_of(const struct source *source)
{
	const struct arrivals_model *m = source->model;
	double on;

	switch (m->process) {
	case ARRIVALS_BATCHES:
		return 1 / m->batch;
	case ARRIVALS_ONOFF:
		return source->on > 0 ? 1 : m->low;
	case ARRIVALS_SELFSIMILAR:
		on = m->on.mean / (m->on.mean + m->off.mean);
		return source->on / (SELFSIMILAR_SOURCES * on);
	default:
		return 1;
	}
}

/* The rate in calls per nanosecond, and its growth per nanosecond. */
static double rate_at(const struct source *source, weir_time at, double *growth)
{
	double length = (double)(source->ends - source->begins);
	double passed = (double)(at - source->begins), part = part_of(source) * 1e-9;

	*growth = 0;
	if (source->from == source->to || length <= 0)
		return source->from * part;
	*growth = (source->to - source->from) / length * part;
	return fmax(source->from * part + *growth * passed, 0);
}

/* Call before anything that the rate depends on changes. */
static void advance(struct source *source)
{
	double passed = (double)(source->sim->now - source->as_of), growth;
	double rate = rate_at(source, source->as_of, &growth);

	source->left = fmax(source->left - (rate + growth * passed / 2) * passed, 0);
	source->as_of = source->sim->now;
}

/* The next call arrives when the integral of the rate from now on reaches left. */
static void look_ahead(struct source *source)
{
	double growth, rate = rate_at(source, source->sim->now, &growth);
	double square = rate * rate + 2 * growth * source->left;
	double wait = source->left == 0 ? 0 : 2 * source->left / (rate + sqrt(square));

	/* If the rate ends before that, this is infinite, or not a number. */
	if (wait <= NEVER)
		sim_schedule(source->sim, &source->next, source->sim->now + (weir_dur)wait);
	else
		sim_cancel(source->sim, &source->next);
}

/* Adds to left: what is cut off by whole nanoseconds carries over. */
static void add_gap(struct source *source)
{
	const struct law gap = {
		.kind = source->model->process == ARRIVALS_REGULAR ? LAW_CONSTANT : LAW_EXPONENTIAL,
		.mean = 1,
	};

	source->left += law_draw(&gap, &source->rng);
}

static void schedule_replay(struct source *source)
{
	const struct arrivals_model *m = source->model;

	while (source->replayed < m->count && m->times[source->replayed] < source->sim->now)
		source->replayed++;
	if (source->replayed < m->count)
		sim_schedule(source->sim, &source->next, m->times[source->replayed++]);
}

static void arrival(void *owner)
{
	struct source *source = owner;
	const struct arrivals_model *m = source->model;

	if (m->process == ARRIVALS_REPLAY) {
		schedule_replay(source);
		source->arrive(source->arg);
		return;
	}
	advance(source);
	add_gap(source);
	look_ahead(source);
	do
		source->arrive(source->arg);
	while (m->process == ARRIVALS_BATCHES && rng_uniform(&source->rng) > 1 / m->batch);
}

static void switch_later(struct source_switch *one)
{
	struct source *source = one->source;
	struct law law = one->on ? source->model->on : source->model->off;

	if (source->model->process == ARRIVALS_SELFSIMILAR) {
		law.kind = LAW_PARETO;
		law.shape = SELFSIMILAR_ALPHA;
	}
	sim_schedule(source->sim, &one->event,
		     source->sim->now + 1 + (weir_dur)fmin(law_draw(&law, &source->rng), 1e17));
}

static void flip(void *owner)
{
	struct source_switch *one = owner;
	struct source *source = one->source;

	advance(source);
	one->on = !one->on;
	source->on += one->on ? 1u : -1u;
	switch_later(one);
	look_ahead(source);
}

void source_init(struct source *source, struct sim *sim, const struct arrivals_model *model,
		 uint64_t seed, void (*arrive)(void *arg), void *arg)
{
	*source = (struct source){
		.sim = sim,
		.model = model,
		.arrive = arrive,
		.arg = arg,
		.as_of = sim->now,
		.next = {.fire = arrival, .owner = source},
	};
	rng_seed(&source->rng, seed, 0);
	add_gap(source);
	if (model->process == ARRIVALS_ONOFF)
		source->switch_count = 1;
	else if (model->process == ARRIVALS_SELFSIMILAR)
		source->switch_count = SELFSIMILAR_SOURCES;
	source->switches = alloc_or_abort(source->switch_count * sizeof(struct source_switch));
	for (unsigned i = 0; i < source->switch_count; i++) {
		struct source_switch *one = &source->switches[i];

		*one = (struct source_switch){
			.source = source,
			.event = {.fire = flip, .owner = one},
			.on = rng_uniform(&source->rng) * (model->on.mean + model->off.mean) <
			      model->on.mean,
		};
		source->on += one->on;
		switch_later(one);
	}
}

void source_free(struct source *source)
{
	free(source->switches);
}

void source_rate(struct source *source, double from, double to, weir_dur length)
{
	if (source->model->process != ARRIVALS_REPLAY)
		advance(source);
	source->from = from;
	source->to = to;
	source->begins = source->sim->now;
	source->ends = source->begins + length;
	if (source->model->process != ARRIVALS_REPLAY)
		look_ahead(source);
	else if (source->next.node.place == 0)
		schedule_replay(source);
}

void source_stop(struct source *source)
{
	sim_cancel(source->sim, &source->next);
	for (unsigned i = 0; i < source->switch_count; i++)
		sim_cancel(source->sim, &source->switches[i].event);
}
