/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.c - set up the state of a run, take it through the phases, and end it.
 */
#include "alloc_or_abort.h"
#include "series.h"
#include "world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The interval of the CPU gauge, and the weight of its previous value: as in kratos. */
#define CPU_EVERY (500 * WEIR_MS)
#define CPU_PAST  0.95

/* Speed of the server once the scenario is over, so that even a long queue of long calls ends. */
#define HURRY 1e9

/* The slice of the phase that contains the given time, and the time at which it ends. */
static size_t slice_at(const struct run *run, weir_time at, weir_time *ends)
{
	weir_dur each = run->phase_length / SLICES;
	size_t slice = (size_t)((at - run->phase_began) / each);

	*ends = run->phase_began + (slice + 1) * each;
	if (slice < SLICES - 1)
		return slice;
	*ends = UINT64_MAX;
	return SLICES - 1;
}

void account(struct run *run)
{
	struct phase_result *phase = &run->result->phases[run->phase];

	while (!run->over && run->accounted < run->sim.now) {
		weir_time ends;
		size_t slice = slice_at(run, run->accounted, &ends);
		weir_time to = ends < run->sim.now ? ends : run->sim.now;
		double area = (double)run->limit_sum * (double)(to - run->accounted);

		run->tally.limit_area += area;
		phase->slices[slice] += area;
		run->accounted = to;
	}
}

static void look_if_settled(struct run *run, uint32_t limit)
{
	double target = run->setup->targets == NULL ? 0 : run->setup->targets[run->phase];

	if (isinf(run->settled) && fabs(limit - target) <= 0.2 * target)
		run->settled = (double)(run->sim.now - run->phase_began) / (double)WEIR_S;
}

static void sum_limits(struct run *run)
{
	run->limit_sum = 0;
	for (unsigned i = 0; i < run->door_count; i++) {
		run->doors[i].limit = weir_limit(run->doors[i].limiter);
		run->limit_sum += run->doors[i].limit;
	}
}

void limit_moved(struct run *run, struct door *door)
{
	const uint32_t limit = weir_limit(door->limiter);

	if (limit == door->limit)
		return;
	account(run);
	run->limit_sum += (uint64_t)limit - door->limit;
	door->limit = limit;
	if (door->tried)
		look_if_settled(run, limit);
}

static void flush(struct run *run)
{
	account(run);
	account_inflight(run);
	run->tally.length = run->sim.now - run->flushed;
	run->tally.limit_last = run->limit_sum;
	run->flushed = run->sim.now;
	tally_add(&run->result->phases[run->phase].tally, &run->tally);
	run->tally = (struct tally){.length = 0};
}

static uint64_t seed_of(const struct run *run, unsigned what)
{
	return rng_seed_of(run->setup->seed, what);
}

static weir_time virtual_now(const struct weir_clock *clock)
{
	const struct run *run = (const struct run *)(const void *)clock;

	return run->sim.now;
}

static int limiter_make(struct run *run, unsigned index)
{
	struct door *door = &run->doors[index];
	struct weir_config config;

	if (door->tried) {
		config = *run->setup->limiter;
	} else {
		weir_config_init(&config);
		config.limit = door->ops;
		config.limit_config = door->config;
	}
	config.seed = seed_of(run, SEED_LIMITERS + run->limiters_made++);
	config.stripes = 1; /* there is one thread */
	config.clock = &run->clock;
	config.clock_zero = door->clock_ahead;
	config.cpu = &run->processors.gauge;
	return weir_limiter_create(&config, &door->limiter);
}

/* Each machine's clock is ahead by a part of the most, whatever limiters come before it. */
static weir_dur draw_ahead(const struct run *run, weir_dur most)
{
	struct rng rng;

	rng_seed(&rng, seed_of(run, SEED_CLOCKS), run->door_count);
	return (weir_dur)(rng_uniform(&rng) * (double)most);
}

static int door_make(struct run *run, const struct limiter_group *group)
{
	struct door *door = &run->doors[run->door_count];
	char why[200];

	door->opens = group->start;
	door->clock_ahead = draw_ahead(run, group->clocks);
	door->tried = group->limit[0] == '\0';
	if (!door->tried &&
	    weir_limit_from_text(group->limit, &door->ops, door->config, why, sizeof(why)) != 0)
		return -EINVAL;
	return limiter_make(run, run->door_count++);
}

static int doors_make(struct run *run)
{
	const struct scenario *s = run->scenario;
	int error = 0;

	for (unsigned g = 0; g < s->group_count; g++)
		for (unsigned i = 0; i < s->groups[g].count && error == 0; i++)
			error = door_make(run, &s->groups[g]);
	sum_limits(run);
	return error;
}

/* Old limiters stay until the end of the run, to finish their calls. */
static void doors_restart(struct run *run)
{
	account(run);
	for (unsigned i = 0; i < run->door_count; i++) {
		struct weir_limiter *old = run->doors[i].limiter;

		if (limiter_make(run, i) != 0) {
			run->doors[i].limiter = old;
			continue;
		}
		run->retired = realloc_or_abort(run->retired,
						(run->retired_count + 1) * sizeof(run->retired[0]));
		run->retired[run->retired_count++] = old;
	}
	sum_limits(run);
}

static void set_limits(struct run *run)
{
	uint32_t limit = run->setup->limits[run->phase];

	account(run);
	for (unsigned i = 0; i < run->door_count; i++)
		if (run->doors[i].tried)
			weir_limit_set(run->doors[i].limiter, limit > 0 ? limit : 1);
	sum_limits(run);
}

static void set_station(struct run *run, unsigned index)
{
	const struct station_model model = scenario_station(run->scenario, phase_now(run), index);

	station_change(&run->stations[index], &model);
}

static void set_clients(struct run *run)
{
	for (unsigned i = 0; i < phase_now(run)->clients; i++)
		if (!run->clients[i].active)
			client_think(&run->clients[i]);
}

static void begin_phase(struct run *run, unsigned index)
{
	const struct run_setup *setup = run->setup;
	const struct scenario *s = run->scenario;
	const struct phase *phase = &s->phases[index];
	weir_dur length = phase->length;

	if (setup->sweep && s->sweep != 0 && length > s->sweep)
		length = s->sweep;
	run->phase = index;
	run->phase_began = run->sim.now;
	run->phase_length = length;
	run->settled = INFINITY;
	run->shares = 0;
	for (unsigned i = 0; i < s->class_count; i++)
		run->shares += phase->mix[i];
	if (phase->restart)
		doors_restart(run);
	if (setup->limits != NULL)
		set_limits(run);
	for (unsigned i = 0; i < s->station_count; i++)
		set_station(run, i);
	if (s->arrivals.process == ARRIVALS_CLOSED)
		set_clients(run);
	else
		source_rate(&run->source, phase->rate[0], phase->rate[1], length);
	source_rate(&run->background, phase->background, phase->background, length);
	for (unsigned i = 0; i < run->door_count; i++)
		if (run->doors[i].tried)
			look_if_settled(run, weir_limit(run->doors[i].limiter));
	sim_schedule(&run->sim, &run->boundary, run->sim.now + length);
	if (setup->phase_begins != NULL)
		setup->phase_begins(setup->arg, run->doors[0].limiter, index);
}

/*
 * Calls in flight still end, at a server without faults; but they are no longer counted, as the
 * tally is not flushed again.
 */
static void scenario_over(struct run *run)
{
	run->over = true;
	source_stop(&run->source);
	source_stop(&run->background);
	sim_cancel(&run->sim, &run->tick);
	for (unsigned i = 0; i < run->scenario->station_count; i++) {
		struct station_model model = scenario_station(run->scenario, NULL, i);

		model.speed = HURRY;
		sim_cancel(&run->sim, &run->pausers[i].event);
		station_pause(&run->stations[i], false);
		station_change(&run->stations[i], &model);
	}
	for (unsigned i = 0; i < run->client_count; i++)
		sim_cancel(&run->sim, &run->clients[i].thinks);
}

/* The sum of the targets; limiters that are not under test count with their current limits. */
static uint64_t target_sum(const struct run *run)
{
	uint64_t sum = 0;

	if (run->setup->targets == NULL)
		return 0;
	for (unsigned i = 0; i < run->door_count; i++)
		sum += run->doors[i].tried ? run->setup->targets[run->phase]
					   : weir_limit(run->doors[i].limiter);
	return sum;
}

static void tick(void *owner)
{
	struct run *run = owner;
	struct series_point point = {
		.now = run->sim.now,
		.phase = phase_now(run)->name,
		.tally = &run->tally,
		.limit = run->limit_sum,
		.inflight = run->inflight,
		.target = target_sum(run),
		.limiter = run->doors[0].limiter,
	};

	run->tally.length = run->sim.now - run->flushed;
	/* Shortly after a phase began the data goes into the next line. */
	if (run->tally.length >= run->setup->series_every / 2) {
		series_line(run->setup->series, &point);
		flush(run);
	}
	sim_schedule(&run->sim, &run->tick, run->sim.now + run->setup->series_every);
}

static void phase_over(void *owner)
{
	struct run *run = owner;
	struct phase_result *result = &run->result->phases[run->phase];
	unsigned next = run->phase + 1;

	/* A line for this instant belongs to the phase that ends. */
	if (run->setup->series != NULL && run->tick.node.key == run->sim.now)
		tick(run);
	flush(run);
	result->settled = fmax(result->settled, run->settled);
	if (next == run->scenario->phase_count) {
		run->rounds_left--;
		next = 0;
	}
	if (run->rounds_left == 0)
		scenario_over(run);
	else
		begin_phase(run, next);
}

static void pause_or_go_on(void *owner)
{
	struct pauser *pauser = owner;
	bool pause = !pauser->station->paused;
	const struct law *law = pause ? &pauser->plan->pause_length : &pauser->plan->pause_every;
	double length = fmin(law_draw(law, &pauser->rng), 1e17);

	station_pause(pauser->station, pause);
	sim_schedule(&pauser->run->sim, &pauser->event,
		     pauser->run->sim.now + 1 + (weir_dur)length);
}

static void make_server(struct run *run)
{
	const struct scenario *s = run->scenario;

	for (unsigned i = 0; i < s->station_count; i++) {
		struct pauser *pauser = &run->pausers[i];

		run->station_ops[i] = (struct station_ops){
			.started = call_started,
			.finished = call_worked_on,
			.keeps = s->stations[i].kept,
		};
		station_init(&run->stations[i], &run->sim, &run->station_ops[i],
			     &s->stations[i].model);
		*pauser = (struct pauser){
			.run = run,
			.station = &run->stations[i],
			.plan = &s->stations[i],
			.event = {.fire = pause_or_go_on, .owner = pauser},
		};
		if (s->stations[i].pause_every.mean == 0)
			continue;
		rng_seed(&pauser->rng, seed_of(run, SEED_PAUSES), i);
		sim_schedule(
			&run->sim, &pauser->event,
			(weir_dur)fmin(law_draw(&pauser->plan->pause_every, &pauser->rng), 1e17));
	}
}

static void make_clients(struct run *run)
{
	const struct scenario *s = run->scenario;

	for (unsigned i = 0; i < s->phase_count; i++)
		if (s->phases[i].clients > run->client_count)
			run->client_count = s->phases[i].clients;
	run->clients = alloc_or_abort(run->client_count * sizeof(struct client));
	for (unsigned i = 0; i < run->client_count; i++) {
		struct client *client = &run->clients[i];

		client->run = run;
		client->thinks = (struct event){.fire = call_thought_of, .owner = client};
		rng_seed(&client->rng, seed_of(run, SEED_CLIENTS), i);
	}
}

static double show_busy(const struct weir_gauge *gauge)
{
	return ((const struct processors *)(const void *)gauge)->busy;
}

/* Update the CPU gauge from the station that was busiest since the last update. */
static void look_at_processors(void *owner)
{
	struct run *run = owner;
	struct processors *p = &run->processors;
	double busiest = 0;

	for (unsigned i = 0; i < run->scenario->station_count; i++) {
		double area = station_busy_area(&run->stations[i]);
		double workers = run->stations[i].model.workers;
		double busy = (area - p->areas[i]) / ((double)CPU_EVERY * workers);

		if (run->scenario->stations[i].cpu && workers > 0)
			busiest = fmax(busiest, fmin(busy, 1));
		p->areas[i] = area;
	}
	p->busy = CPU_PAST * p->busy + (1 - CPU_PAST) * busiest;
	if (!run->over)
		sim_schedule(&run->sim, &p->look, run->sim.now + CPU_EVERY);
}

static void start(struct run *run)
{
	static const struct arrivals_model poisson = {.process = ARRIVALS_POISSON};
	const struct run_setup *setup = run->setup;

	run->seed_of_calls = seed_of(run, SEED_CALLS);
	rng_seed(&run->doors_rng, seed_of(run, SEED_DOORS), 0);
	source_init(&run->source, &run->sim, &run->scenario->arrivals, seed_of(run, SEED_SOURCE),
		    call_arrived, run);
	source_init(&run->background, &run->sim, &poisson, seed_of(run, SEED_BACKGROUND),
		    call_arrived_behind, run);
	make_server(run);
	make_clients(run);
	run->boundary = (struct event){.fire = phase_over, .owner = run};
	run->tick = (struct event){.fire = tick, .owner = run};
	run->rounds_left = run->scenario->rounds;
	run->processors.look = (struct event){.fire = look_at_processors, .owner = run};
	sim_schedule(&run->sim, &run->processors.look, CPU_EVERY);
	if (setup->series != NULL)
		sim_schedule(&run->sim, &run->tick, setup->series_every);
	begin_phase(run, 0);
}

static void end_limiter(struct run_result *result, struct weir_limiter *limiter)
{
	struct weir_snapshot snapshot;

	if (limiter == NULL)
		return;
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	result->windows += snapshot.windows;
	result->samples += snapshot.succeeded + snapshot.dropped + snapshot.timed_out;
	result->leaked += snapshot.inflight;
	weir_limiter_destroy(limiter);
}

static void finish(struct run *run)
{
	for (unsigned i = 0; i < run->door_count; i++)
		end_limiter(run->result, run->doors[i].limiter);
	for (size_t i = 0; i < run->retired_count; i++)
		end_limiter(run->result, run->retired[i]);
	for (unsigned i = 0; i < run->scenario->station_count; i++)
		station_free(&run->stations[i]);
	source_free(&run->source);
	source_free(&run->background);
	calls_free(run);
	free(run->retired);
	free(run->clients);
	sim_free(&run->sim);
	free(run);
}

int run(const struct run_setup *setup, struct run_result *result)
{
	struct run *run = alloc_or_abort(sizeof(*run));
	int error;

	memset(result, 0, sizeof(*result));
	run->clock.now = virtual_now;
	run->processors.gauge.read = show_busy;
	run->setup = setup;
	run->scenario = setup->scenario;
	run->result = result;
	error = doors_make(run);
	if (error == 0) {
		start(run);
		while (sim_step(&run->sim))
			;
	}
	finish(run);
	return error;
}
