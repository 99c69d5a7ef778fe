/*
 * source.c - arrivals that do not care how the earlier ones fared: an open loop,
 * the hard case for a limiter.
 */
#include "source.h"

static void schedule_next(struct source *source)
{
	double gap = law_draw(&source->gap, &source->rng);

	sim_schedule(source->sim, &source->next, source->sim->now + (weir_dur)gap);
}

static void arrival(void *owner)
{
	struct source *source = owner;

	schedule_next(source);
	source->arrive(source->arg);
}

void source_init(struct source *source, struct sim *sim, uint64_t seed, void (*arrive)(void *arg),
		 void *arg)
{
	*source = (struct source){
		.sim = sim,
		.next = {.fire = arrival, .owner = source},
		.arrive = arrive,
		.arg = arg,
	};
	rng_seed(&source->rng, seed);
}

void source_rate(struct source *source, enum law_kind gaps, double per_second)
{
	if (per_second <= 0) {
		sim_cancel(source->sim, &source->next);
		return;
	}
	source->gap = (struct law){.kind = gaps, .mean = (double)WEIR_S / per_second};
	schedule_next(source);
}
