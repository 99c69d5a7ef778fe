/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call.c - the path of a call: from a source or a client to a limiter, through the stations, and
 * back.
 */
#include "alloc_or_abort.h"
#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 256 /* calls allocated at once */

/* Upper bound of any drawn duration: nanoseconds, about three years. */
#define LONGEST 1e17

struct chunk {
	struct chunk *next;
	struct call calls[CHUNK];
};

static struct call *call_new(struct run *run)
{
	struct call *call;

	if (run->spare == NULL) {
		struct chunk *chunk = alloc_or_abort(sizeof(*chunk));

		chunk->next = run->chunks;
		run->chunks = chunk;
		for (unsigned i = 0; i < CHUNK; i++) {
			chunk->calls[i].next = run->spare;
			run->spare = &chunk->calls[i];
		}
	}
	call = run->spare;
	run->spare = call->next;
	return call;
}

static void call_free(struct call *call)
{
	call->next = call->run->spare;
	call->run->spare = call;
}

void calls_free(struct run *run)
{
	while (run->chunks != NULL) {
		struct chunk *chunk = run->chunks;

		run->chunks = chunk->next;
		free(chunk);
	}
}

static void hash(struct run *run, uint64_t value)
{
	uint64_t h = (run->result->hash ^ value) * UINT64_C(0x9fb21c651e98df25);

	run->result->hash = h ^ (h >> 32);
}

static void inflight_changed(struct run *run, int by)
{
	account_inflight(run);
	run->inflight = (unsigned)((int)run->inflight + by);
}

static void release(struct call *call, enum weir_outcome outcome)
{
	struct run *run = call->run;

	if (call->limiter == NULL)
		return;
	inflight_changed(run, -1);
	weir_release_at(call->limiter, run->sim.now, &call->token, outcome);
	limit_moved(run, &run->doors[call->door]);
}

void client_think(struct client *client)
{
	struct run *run = client->run;
	double pause = law_draw(&run->scenario->arrivals.think, &client->rng);

	client->active = !run->over && (size_t)(client - run->clients) < phase_now(run)->clients;
	if (client->active)
		sim_schedule(&run->sim, &client->thinks,
			     run->sim.now + (weir_dur)fmin(pause, LONGEST));
}

/* The caller is done with the call, served or not. */
static void answered(struct call *call)
{
	if (call->client != NULL)
		client_think(call->client);
	call_free(call);
}

static void attempt(struct call *call);

static void try_again(void *owner)
{
	struct call *call = owner;

	if (call->run->over) {
		answered(call);
		return;
	}
	call->tries++;
	attempt(call);
}

/* The caller got no usable answer: try again if retries are left. */
static void disappointed(struct call *call)
{
	struct run *run = call->run;
	const struct client_model *model = &run->scenario->client;
	double wait;

	if (call->tries < model->retries && !run->over) {
		wait = law_draw(&model->backoff, &call->rng);
		for (unsigned i = 0; i < call->tries; i++)
			wait *= model->backoff_growth;
		call->timer = (struct event){.fire = try_again, .owner = call};
		sim_schedule(&run->sim, &call->timer, run->sim.now + (weir_dur)fmin(wait, LONGEST));
		return;
	}
	answered(call);
}

/* Free the workers that the call has kept. */
static void leave(struct call *call)
{
	for (unsigned i = 0; i < call->run->scenario->station_count; i++)
		if (call->kept[i])
			station_let_go(&call->run->stations[i]);
	memset(call->kept, 0, sizeof(call->kept));
}

/* A station has no room for the call: it sends it back, and the caller knows at once. */
static void sent_back(struct call *call)
{
	struct run *run = call->run;

	leave(call);
	sim_cancel(&run->sim, &call->timer);
	if (call->gone || call->limiter == NULL) {
		call_free(call);
		return;
	}
	release(call, WEIR_DROPPED);
	run->tally.failed++;
	disappointed(call);
}

static void served(struct call *call);

/* Move on to the next station where the call has work. */
static void proceed(struct call *call)
{
	struct run *run = call->run;
	const struct scenario *s = run->scenario;
	const struct phase *phase = phase_now(run);
	const struct class_model *class = &s->classes[call->class];
	double passed, slower = phase->slower[0];

	while (call->stage < s->station_count && class->work[call->stage].mean == 0)
		call->stage++;
	if (call->stage == s->station_count) {
		served(call);
		return;
	}
	if (phase->slower[1] != phase->slower[0]) {
		passed = (double)(run->sim.now - run->phase_began) / (double)run->phase_length;
		slower += (phase->slower[1] - phase->slower[0]) * fmin(passed, 1);
	}
	call->job.work = fmin(law_draw(&class->work[call->stage], &call->rng) * slower, LONGEST);
	call->job.owner = call;
	if (!station_submit(&run->stations[call->stage], &call->job))
		sent_back(call);
}

void call_started(void *owner, weir_dur waited)
{
	struct call *call = owner;

	call->waited += waited;
}

void call_worked_on(void *owner)
{
	struct call *call = owner;

	call->kept[call->stage] = call->run->station_ops[call->stage].keeps;
	call->stage++;
	proceed(call);
}

/* Count a served call. A stream is never late, and its duration is not a latency. */
static void count(const struct call *call)
{
	struct run *run = call->run;
	weir_dur deadline = run->scenario->client.deadline;
	weir_dur latency = run->sim.now - call->began;
	bool stream = run->scenario->classes[call->class].stream;
	bool in_time = stream || deadline == 0 || latency <= deadline;

	if (run->over)
		return;
	if (stream)
		run->tally.good++;
	else
		tally_served(&run->tally, latency, in_time);
	if (in_time) {
		run->result->phases[run->phase].class_good[call->class]++;
		run->result->phases[run->phase].limiter_good[call->door]++;
	}
}

static void served(struct call *call)
{
	leave(call);
	sim_cancel(&call->run->sim, &call->timer);
	if (call->gone || call->limiter == NULL) {
		call_free(call);
		return;
	}
	weir_queued(call->limiter, &call->token, call->waited);
	release(call, call->run->scenario->classes[call->class].served_as);
	count(call);
	answered(call);
}

/* The server does not notice and goes on. The caller continues with a new struct call. */
static struct call *part_from(struct call *call)
{
	struct call *caller = call_new(call->run);

	*caller = (struct call){
		.run = call->run,
		.client = call->client,
		.class = call->class,
		.tries = call->tries,
	};
	rng_seed(&caller->rng, rng_next(&call->rng), 0);
	call->client = NULL;
	call->gone = true;
	return caller;
}

/* The caller stops waiting. Returns the struct call that it continues with. */
static struct call *left_behind(struct call *call)
{
	struct run *run = call->run;

	if (call->outside)
		return call;
	if (!run->scenario->client.stops_work)
		return part_from(call);
	station_withdraw(&run->stations[call->stage], &call->job);
	leave(call);
	return call;
}

static void timed_out(void *owner)
{
	struct call *call = owner;
	struct run *run = call->run;

	release(call, WEIR_TIMED_OUT);
	tally_timed_out(&run->tally, run->sim.now - call->began);
	disappointed(left_behind(call));
}

static void cancelled(void *owner)
{
	struct call *call = owner;

	release(call, WEIR_CANCELLED);
	call->run->tally.cancelled++;
	answered(left_behind(call));
}

static void failed(void *owner)
{
	struct call *call = owner;
	struct run *run = call->run;

	release(call, run->scenario->classes[call->class].fail_as);
	run->tally.failed++;
	disappointed(call);
}

struct ending {
	double after;
	void (*fire)(void *call);
};

static void or_sooner(struct ending *ending, double after, void (*fire)(void *call))
{
	if (after < ending->after)
		*ending = (struct ending){.after = fmin(after, LONGEST), .fire = fire};
}

/* Schedule what ends the call if the server does not. A stream has no timeout. */
static void set_timer(struct call *call)
{
	struct run *run = call->run;
	const struct class_model *class = &run->scenario->classes[call->class];
	const struct phase *phase = phase_now(run);
	double failing = phase->failing >= 0 ? phase->failing : class->failing;
	weir_dur timeout = run->scenario->client.timeout;
	struct ending ending = {.after = INFINITY};

	call->outside = failing > 0 && rng_uniform(&call->rng) < failing;
	if (call->outside)
		or_sooner(&ending, law_draw(&class->fail_after, &call->rng), failed);
	if (timeout != 0 && !class->stream)
		or_sooner(&ending, (double)timeout, timed_out);
	if (class->cancelled > 0 && rng_uniform(&call->rng) < class->cancelled)
		or_sooner(&ending, law_draw(&class->cancel_after, &call->rng), cancelled);
	call->timer = (struct event){.fire = ending.fire, .owner = call};
	if (ending.fire != NULL)
		sim_schedule(&run->sim, &call->timer, run->sim.now + (weir_dur)ending.after);
}

static void begin(struct call *call)
{
	struct run *run = call->run;

	call->began = run->sim.now;
	call->waited = 0;
	call->stage = 0;
	call->gone = false;
	call->outside = false;
	if (call->limiter != NULL) {
		if (run->scenario->classes[call->class].stream)
			weir_detach(call->limiter, &call->token);
		set_timer(call);
	}
	if (!call->outside)
		proceed(call);
}

/* A door chosen at random among those that are open. */
static unsigned choose_door(struct run *run)
{
	unsigned open = 0, chosen;

	if (run->door_count == 1)
		return 0;
	for (unsigned i = 0; i < run->door_count; i++)
		open += run->doors[i].opens <= run->sim.now;
	chosen = (unsigned)(rng_uniform(&run->doors_rng) * open);
	for (unsigned i = 0; i < run->door_count; i++)
		if (run->doors[i].opens <= run->sim.now && chosen-- == 0)
			return i;
	return 0;
}

static bool admitted(struct run *run, struct door *door, struct weir_token *token)
{
	int error = weir_try_acquire_at(door->limiter, run->sim.now, token);
	uint32_t limit = weir_limit(door->limiter); /* not before: a call may end a pause */

	limit_moved(run, door);
	hash(run, run->sim.now);
	hash(run, ((uint64_t)limit << 1) | (error == 0));
	run->tally.offered++;
	if (error != 0) {
		run->tally.rejected++;
		return false;
	}
	run->result->above += token->inflight > limit;
	inflight_changed(run, 1);
	tally_admitted(&run->tally, run->inflight);
	return true;
}

static void attempt(struct call *call)
{
	struct run *run = call->run;

	call->door = choose_door(run);
	call->limiter = run->doors[call->door].limiter;
	if (admitted(run, &run->doors[call->door], &call->token))
		begin(call);
	else
		disappointed(call);
}

static unsigned draw_class(const struct run *run, struct rng *rng)
{
	double left;
	unsigned class = 0;

	if (run->scenario->class_count == 1)
		return 0;
	left = rng_uniform(rng) * run->shares;
	while (class + 1 < run->scenario->class_count && left >= phase_now(run)->mix[class])
		left -= phase_now(run)->mix[class ++];
	return class;
}

static struct call *call_make(struct run *run, struct client *client)
{
	struct call *call = call_new(run);

	*call = (struct call){.run = run, .client = client};
	rng_seed(&call->rng, run->seed_of_calls, run->arrivals);
	call->class = draw_class(run, &call->rng);
	return call;
}

/* A call that is refused without a retry gets no struct call: it is often the most common case. */
void call_arrived(void *owner)
{
	struct run *run = owner;
	unsigned door;
	struct weir_token token;
	struct call *call;

	run->arrivals++;
	if (run->scenario->client.retries > 0) {
		attempt(call_make(run, NULL));
		return;
	}
	door = choose_door(run);
	if (!admitted(run, &run->doors[door], &token))
		return;
	call = call_make(run, NULL);
	call->door = door;
	call->limiter = run->doors[door].limiter;
	call->token = token;
	begin(call);
}

void call_arrived_behind(void *owner)
{
	struct run *run = owner;

	run->arrivals++;
	begin(call_make(run, NULL));
}

void call_thought_of(void *owner)
{
	struct client *client = owner;
	struct run *run = client->run;

	client->active = (size_t)(client - run->clients) < phase_now(run)->clients;
	if (!client->active)
		return;
	run->arrivals++;
	attempt(call_make(run, client));
}
