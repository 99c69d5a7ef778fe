/* SPDX-License-Identifier: BSD-2-Clause */
#include "timetable.h"

#include <math.h>

static void begin_phase(struct timetable *t, unsigned index)
{
	const struct phase *phase = &t->scenario->phases[index];

	t->phase = index;
	t->phase_began = t->sim.now;
	t->phase_begins(t->arg, index);
	source_rate(&t->source, phase->rate[0], phase->rate[1], phase->length);
	sim_schedule(&t->sim, &t->boundary, t->sim.now + phase->length);
}

static void phase_over(void *owner)
{
	struct timetable *t = owner;
	unsigned next = t->phase + 1;

	t->phase_ends(t->arg, t->phase);
	if (next == t->scenario->phase_count) {
		t->rounds_left--;
		next = 0;
	}
	if (t->rounds_left > 0) {
		begin_phase(t, next);
		return;
	}
	source_stop(&t->source);
	t->phase = t->scenario->phase_count;
	t->over(t->arg);
}

static void arrived(void *owner)
{
	struct timetable *t = owner;

	t->arrivals++;
	t->arrived(t->arg);
}

void timetable_begin(struct timetable *t)
{
	t->rounds_left = t->scenario->rounds;
	t->boundary = (struct event){.fire = phase_over, .owner = t};
	t->seed_of_calls = rng_seed_of(t->seed, SEED_CALLS);
	source_init(&t->source, &t->sim, &t->scenario->arrivals, rng_seed_of(t->seed, SEED_SOURCE),
		    arrived, t);
	begin_phase(t, 0);
}

void timetable_free(struct timetable *t)
{
	source_free(&t->source);
	sim_free(&t->sim);
}

weir_dur timetable_phase_length(const struct timetable *t)
{
	return t->scenario->phases[t->phase].length;
}

/* The current factor on work. */
static double slower_now(const struct timetable *t)
{
	const struct phase *phase = &t->scenario->phases[t->phase];
	double passed = (double)(t->sim.now - t->phase_began) / (double)phase->length;

	return phase->slower[0] + (phase->slower[1] - phase->slower[0]) * passed;
}

/* Draw all at once, in the order in which the simulator draws. */
void timetable_draw(const struct timetable *t, double *work)
{
	const struct scenario *s = t->scenario;
	double slower = slower_now(t);
	struct rng rng;

	rng_seed(&rng, t->seed_of_calls, t->arrivals);
	for (unsigned i = 0; i < s->station_count; i++)
		work[i] = fmin(law_draw(&s->classes[0].work[i], &rng) * slower, 1e17);
}
