/*
 * source.c - gaps are drawn at the rate of the moment; where that changes by a switch or a new
 * stretch, the gap is drawn anew, which to a Poisson process makes no difference.
 */
#include "source.h"

#include "memory.h"

#include <math.h>
#include <stdlib.h>

/* Sources that make a self-similar stream; their on times have infinite variance. */
#define SELFSIMILAR_SOURCES 16
#define SELFSIMILAR_ALPHA   1.4

struct source_switch {
	struct source *source;
	struct event event;
	bool on;
};

static double ramped(const struct source *source)
{
	double length = (double)(source->ends - source->begins);
	double passed = (double)(source->sim->now - source->begins);

	if (source->from == source->to || length <= 0)
		return source->from;
	/* Never quite nothing, or the next call would never come. */
	return fmax(source->from + (source->to - source->from) * fmin(passed / length, 1),
		    fmax(source->from, source->to) / 1000);
}

/* Calls a second at this moment. */
static double rate_now(const struct source *source)
{
	const struct arrivals_model *m = source->model;
	double rate = ramped(source), on;

	switch (m->process) {
	case ARRIVALS_ONOFF:
		return source->on > 0 ? rate : rate * m->low;
	case ARRIVALS_SELFSIMILAR:
		on = m->on.mean / (m->on.mean + m->off.mean);
		return rate * source->on / (SELFSIMILAR_SOURCES * on);
	default:
		return rate;
	}
}

static void schedule_next(struct source *source)
{
	const struct arrivals_model *m = source->model;
	double rate = rate_now(source) / (m->process == ARRIVALS_BATCHES ? m->batch : 1);
	struct law gap = {
		.kind = m->process == ARRIVALS_REGULAR ? LAW_CONSTANT : LAW_EXPONENTIAL,
		.mean = 1e9 / rate,
	};

	if (rate <= 0) {
		sim_cancel(source->sim, &source->next);
		return;
	}
	sim_schedule(source->sim, &source->next,
		     source->sim->now + (weir_dur)fmin(law_draw(&gap, &source->rng), 1e18));
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
	schedule_next(source);
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

	one->on = !one->on;
	source->on += one->on ? 1u : -1u;
	switch_later(one);
	schedule_next(source);
}

void source_init(struct source *source, struct sim *sim, const struct arrivals_model *model,
		 uint64_t seed, void (*arrive)(void *arg), void *arg)
{
	*source = (struct source){
		.sim = sim,
		.model = model,
		.arrive = arrive,
		.arg = arg,
		.next = {.fire = arrival, .owner = source},
	};
	rng_seed(&source->rng, seed, 0);
	if (model->process == ARRIVALS_ONOFF)
		source->switch_count = 1;
	else if (model->process == ARRIVALS_SELFSIMILAR)
		source->switch_count = SELFSIMILAR_SOURCES;
	source->switches = memory_new(source->switch_count * sizeof(struct source_switch));
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
	source->from = from;
	source->to = to;
	source->begins = source->sim->now;
	source->ends = source->begins + length;
	if (source->model->process != ARRIVALS_REPLAY)
		schedule_next(source);
	else if (source->next.node.place == 0)
		schedule_replay(source);
}

void source_stop(struct source *source)
{
	sim_cancel(source->sim, &source->next);
	for (unsigned i = 0; i < source->switch_count; i++)
		sim_cancel(source->sim, &source->switches[i].event);
}
