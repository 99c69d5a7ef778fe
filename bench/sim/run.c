/*
 * run.c - puts source, limiter and server together and counts what passes.
 */
#include "run.h"

#include "series.h"
#include "server.h"
#include "source.h"

#include <stdlib.h>
#include <string.h>

#define FNV_BASIS 0xcbf29ce484222325U
#define FNV_PRIME 0x100000001b3U

#define SERIES_EVERY (100 * WEIR_MS)

struct run {
	const struct run_setup *setup;
	struct run_result *result;
	struct sim sim;
	struct source source;
	struct server server;
	struct rng work;
	struct weir_limiter *limiter;
	const struct weir_limit_ops *ops;

	unsigned phase, rounds_left;
	struct event boundary; /* of phases */
	struct event tick;     /* of the series */
	struct tally tally;    /* since the last of either */
	weir_time accounted;   /* up to when the limit has been added up */

	struct call *spare;
};

/* A call that was admitted. It outlives its token if the client gives up before the server does. */
struct call {
	struct run *run;
	weir_time began;
	struct weir_token token;
	struct job job;
	struct event timeout;
	bool given_up;
	struct call *next;
};

static struct call *call_new(struct run *run)
{
	struct call *call = run->spare;

	if (call == NULL)
		return sim_alloc(sizeof(*call));
	run->spare = call->next;
	return call;
}

static void call_free(struct run *run, struct call *call)
{
	call->next = run->spare;
	run->spare = call;
}

static void calls_free(struct run *run)
{
	while (run->spare != NULL) {
		struct call *call = run->spare;

		run->spare = call->next;
		free(call);
	}
}

static void hash(struct run *run, uint64_t value)
{
	uint64_t *h = &run->result->hash;

	for (int i = 0; i < 8; i++, value >>= 8)
		*h = (*h ^ (value & 0xff)) * FNV_PRIME;
}

/* To be called before anything that may move the limit. */
static void account(struct run *run)
{
	tally_limit(&run->tally, weir_limit(run->limiter), run->sim.now - run->accounted);
	run->accounted = run->sim.now;
}

static void flush(struct run *run)
{
	account(run);
	tally_add(&run->result->phases[run->phase], &run->tally);
	run->tally = (struct tally){.length = 0};
}

static void give_up(void *owner)
{
	struct call *call = owner;
	struct run *run = call->run;

	account(run);
	call->given_up = true;
	weir_release_at(run->limiter, run->sim.now, &call->token, WEIR_DROPPED);
	run->tally.dropped++;
}

static void served(void *owner)
{
	struct call *call = owner;
	struct run *run = call->run;

	if (!call->given_up) {
		weir_dur latency = run->sim.now - call->began;

		account(run);
		sim_cancel(&run->sim, &call->timeout);
		weir_release_at(run->limiter, run->sim.now, &call->token, WEIR_SUCCESS);
		tally_served(&run->tally, latency, latency <= run->setup->scenario->deadline);
	}
	call_free(run, call);
}

static void admitted(struct run *run, const struct weir_token *token, weir_dur work)
{
	weir_dur timeout = run->setup->scenario->timeout;
	struct call *call = call_new(run);

	*call = (struct call){
		.run = run,
		.began = run->sim.now,
		.token = *token,
		.job = {.work = work, .owner = call},
		.timeout = {.fire = give_up, .owner = call},
	};
	if (timeout != 0)
		sim_schedule(&run->sim, &call->timeout, run->sim.now + timeout);
	server_submit(&run->server, &call->job);
	tally_admitted(&run->tally, weir_inflight(run->limiter));
}

static void arrived(void *owner)
{
	struct run *run = owner;
	uint32_t limit = weir_limit(run->limiter);
	struct weir_token token;
	/* Drawn for those turned away too, so that all limiters meet the same calls. */
	weir_dur work = (weir_dur)law_draw(&run->setup->scenario->work, &run->work);
	int error;

	account(run);
	error = weir_try_acquire_at(run->limiter, run->sim.now, &token);
	hash(run, run->sim.now);
	hash(run, ((uint64_t)limit << 1) | (error == 0));
	run->tally.offered++;
	if (error != 0) {
		run->tally.rejected++;
		return;
	}
	if (weir_inflight(run->limiter) > limit)
		run->result->above++;
	admitted(run, &token, work);
}

static void begin_phase(struct run *run, unsigned index)
{
	const struct run_setup *setup = run->setup;
	const struct phase *phase = &setup->scenario->phases[index];

	run->phase = index;
	server_resize(&run->server, phase->workers, phase->slowness);
	source_rate(&run->source, setup->scenario->gaps, phase->rate);
	sim_schedule(&run->sim, &run->boundary, run->sim.now + phase->length);
	if (setup->phase_begins != NULL)
		setup->phase_begins(setup->arg, run->limiter, index);
}

/* What is in flight may still end, but counts no more: nothing flushes it. */
static void scenario_over(struct run *run)
{
	source_rate(&run->source, LAW_CONST, 0);
	sim_cancel(&run->sim, &run->tick);
}

static void phase_over(void *owner)
{
	struct run *run = owner;
	unsigned next = run->phase + 1;

	flush(run);
	if (run->setup->scenario->phases[next].name == NULL) {
		run->rounds_left--;
		next = 0;
	}
	if (run->rounds_left == 0)
		scenario_over(run);
	else
		begin_phase(run, next);
}

static void tick(void *owner)
{
	struct run *run = owner;

	series_line(run->setup->series, run->sim.now, run->setup->scenario->phases[run->phase].name,
		    &run->tally, run->limiter, run->ops);
	flush(run);
	sim_schedule(&run->sim, &run->tick, run->sim.now + SERIES_EVERY);
}

static int limiter_make(struct run *run)
{
	struct weir_config config = *run->setup->limiter;

	config.seed = run->setup->seed;
	config.stripes = 1; /* one thread */
	run->ops = config.limit != NULL ? config.limit : weir_limit_by_name(NULL);
	return weir_limiter_create(&config, &run->limiter);
}

static void start(struct run *run)
{
	const struct run_setup *setup = run->setup;
	struct rng seeds;

	rng_seed(&seeds, setup->seed);
	rng_seed(&run->work, rng_next(&seeds));
	source_init(&run->source, &run->sim, rng_next(&seeds), arrived, run);
	server_init(&run->server, &run->sim, served);
	run->boundary = (struct event){.fire = phase_over, .owner = run};
	run->tick = (struct event){.fire = tick, .owner = run};
	run->rounds_left = setup->scenario->rounds;
	if (setup->series != NULL) {
		series_head(setup->series, run->ops);
		sim_schedule(&run->sim, &run->tick, SERIES_EVERY);
	}
	begin_phase(run, 0);
}

static void finish(struct run *run)
{
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(run->limiter, &snapshot);
	run->result->windows = snapshot.windows;
	run->result->samples = snapshot.succeeded + snapshot.dropped;
	run->result->leaked = snapshot.inflight;
	weir_limiter_destroy(run->limiter);
	calls_free(run);
	sim_free(&run->sim);
}

int run(const struct run_setup *setup, struct run_result *result)
{
	struct run run = {.setup = setup, .result = result};
	int error;

	memset(result, 0, sizeof(*result));
	result->hash = FNV_BASIS;
	error = limiter_make(&run);
	if (error != 0)
		return error;
	start(&run);
	while (sim_step(&run.sim))
		;
	finish(&run);
	return 0;
}
