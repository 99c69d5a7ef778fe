/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * real.c - take calls through a limiter to stations of threads, and count.
 *
 * The thread that makes the calls runs the timetable: it sleeps until the time of the next event
 * and fires it. So arrivals of all kinds are those of the simulator. If it wakes late, only this
 * event is late.
 *
 * Each worker counts in its own tallies, one for each phase, and so does the thread that makes the
 * calls; they are added up when all threads have ended. An observer follows the limit over time, in
 * the thread that closes a window, under a lock.
 *
 * A call with a timeout is ended by the worker or by the timetable, whichever is first to set
 * answered. The second of them frees it.
 */
#include "real.h"

#include "bench/sim/alloc_or_abort.h"
#include "meter.h"
#include "staff.h"
#include "timetable.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* Time for the threads of the stations to start before the first call. */
#define SETTLING (50 * WEIR_MS)

/* The interval of the gauge of busy workers, and the weight of its previous value. */
#define BUSY_EVERY (500 * WEIR_MS)
#define BUSY_PAST  0.95

/*
 * Sleeping workers do not use a processor, so the gauge measures the workers, as in the simulator.
 * The thread that closes a window reads it. Relaxed order is enough, as it is an average.
 */
struct busy {
	struct weir_gauge gauge; /* must be the first member */
	_Atomic double share;
	double areas[STATIONS_MAX]; /* busy areas at the last update */
	struct event look;
};

struct world {
	const struct run_setup *setup;
	const struct scenario *scenario;
	struct run_result *result;
	struct tally *lateness;
	struct weir_limiter *limiter;
	struct weir_observer observer;
	struct limit_meter meter;
	struct busy busy;

	weir_time epoch; /* start of the timetable */
	struct timetable timetable;

	/* The current phase, for workers; the number of phases: over, nothing counts any more. */
	atomic_uint phase;

	struct tally *brought;              /* by phase: counts of the calling thread */
	struct tally *served[STATIONS_MAX]; /* by member and phase */
	struct staff servers[STATIONS_MAX];
};

struct call {
	struct task task; /* must be the first member */
	struct world *world;
	struct weir_token token;
	weir_time began;
	double work[STATIONS_MAX];
	unsigned stage; /* index of the station */
	struct event timeout;
	atomic_bool answered;
	atomic_uint holders; /* references: the server, and the timetable if there is a timeout */
};

static const char *odd_station(const struct station_plan *plan)
{
	const struct station_model *m = &plan->model;

	if (m->discipline == STATION_SHARED)
		return "Shared workers cannot be run as threads.";
	if (m->workers > STAFF_MAX && m->discipline == STATION_FIFO)
		return "A station has too many workers to make a thread of each.";
	if (m->contention != 0 || m->coherency != 0 || m->second_half != 1)
		return "Sleeping threads do not slow each other down.";
	if (plan->kept || plan->pause_every.mean != 0)
		return "A station has kept workers, or pauses.";
	if (m->queue > 0 || m->newest_first)
		return "A station has a queue that is bounded, or in another order.";
	return NULL;
}

static const char *odd_phase(const struct phase *phase)
{
	if (phase->background != 0)
		return "It has background calls, which bypass the limiter.";
	if (phase->restart || phase->failing > 0)
		return "It has restarts, or calls that fail.";
	return phase->workers > STAFF_MAX
		       ? "A station has too many workers to make a thread of each."
		       : NULL;
}

const char *real_unsupported(const struct scenario *s)
{
	const struct class_model *class = &s->classes[0];
	const char *odd = NULL;

	if (s->arrivals.process == ARRIVALS_CLOSED)
		return "Its arrivals are closed or replayed.";
	if (s->client.retries > 0 || s->client.stops_work)
		return "Its clients retry, or stop the work of calls that they give up.";
	if (s->class_count > 1 || scenario_limiters(s) > 1 || s->groups[0].limit[0] != '\0')
		return "It has several classes of calls, or its own limiters.";
	if (class->cancelled > 0 || class->failing > 0 || class->stream)
		return "It has calls that are cancelled or fail, or streams.";
	for (unsigned i = 0; i < s->station_count && odd == NULL; i++)
		odd = odd_station(&s->stations[i]);
	for (unsigned i = 0; i < s->phase_count && odd == NULL; i++)
		odd = odd_phase(&s->phases[i]);
	return odd;
}

unsigned real_members(const struct scenario *s, unsigned station)
{
	unsigned most = s->stations[station].model.workers;

	if (s->stations[station].model.discipline == STATION_DELAY)
		return 1;
	for (unsigned i = 0; i < s->phase_count; i++)
		if (s->phases[i].station == station && s->phases[i].workers > most)
			most = (unsigned)s->phases[i].workers;
	return most;
}

static void sleep_until(struct world *world, weir_time at)
{
	const struct timespec until = {
		.tv_sec = (time_t)(at / WEIR_S),
		.tv_nsec = (long)(at % WEIR_S),
	};
	weir_time now = weir_now();

	if (now >= at)
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
		;
	now = weir_now();
	tally_served(world->lateness, now - at, true);
}

static unsigned phase_now(const struct world *world)
{
	return atomic_load_explicit(&world->phase, memory_order_relaxed);
}

static double read_busy(const struct weir_gauge *gauge)
{
	const struct busy *busy = (const struct busy *)(const void *)gauge;

	return atomic_load_explicit(&busy->share, memory_order_relaxed);
}

/* Update the gauge from the processor station that was busiest since the last update. */
static void look_how_busy(void *owner)
{
	struct world *world = owner;
	struct busy *busy = &world->busy;
	double share = atomic_load_explicit(&busy->share, memory_order_relaxed), busiest = 0;

	for (unsigned i = 0; i < world->scenario->station_count; i++) {
		struct staff *staff = &world->servers[i];
		double area = staff_busy_area(staff);

		if (world->scenario->stations[i].cpu && staff->workers > 0)
			busiest = fmax(busiest, (area - busy->areas[i]) /
							((double)BUSY_EVERY * staff->workers));
		busy->areas[i] = area;
	}
	share = BUSY_PAST * share + (1 - BUSY_PAST) * fmin(busiest, 1);
	atomic_store_explicit(&busy->share, share, memory_order_relaxed);
	if (phase_now(world) < world->scenario->phase_count)
		sim_schedule(&world->timetable.sim, &busy->look,
			     world->timetable.sim.now + BUSY_EVERY);
}

static int make_limiter(struct world *world)
{
	struct weir_config config = *world->setup->limiter;

	world->observer = (struct weir_observer){.window = meter_window, .arg = &world->meter};
	config.seed = rng_seed_of(world->setup->seed, SEED_LIMITERS);
	config.observer = &world->observer;
	config.cpu = &world->busy.gauge;
	return weir_limiter_create(&config, &world->limiter);
}

static void let_go(struct call *call)
{
	if (atomic_fetch_sub_explicit(&call->holders, 1, memory_order_acq_rel) == 1)
		free(call);
}

/* Whether the calling thread is the first to answer the call. */
static bool answer(struct call *call)
{
	return !atomic_exchange_explicit(&call->answered, true, memory_order_acq_rel);
}

static void serve(struct call *call, struct tally *tally)
{
	struct world *world = call->world;
	weir_dur deadline = world->scenario->client.deadline;
	weir_dur latency;

	if (answer(call)) {
		latency = weir_now() - call->began;
		weir_queued(world->limiter, &call->token, call->task.waited);
		weir_release(world->limiter, &call->token, WEIR_SUCCESS);
		tally_served(tally, latency, deadline == 0 || latency <= deadline);
	}
	let_go(call);
}

static void given_up(void *owner)
{
	struct call *call = owner;
	struct world *world = call->world;

	if (answer(call)) {
		weir_release(world->limiter, &call->token, WEIR_TIMED_OUT);
		tally_timed_out(&world->brought[phase_now(world)], weir_now() - call->began);
	}
	let_go(call);
}

static void worked_on(void *arg, struct task *task, unsigned member)
{
	struct world *world = arg;
	const struct scenario *s = world->scenario;
	struct call *call = (struct call *)task;
	unsigned station = call->stage++;

	if (call->stage < s->station_count) {
		task->work = call->work[call->stage];
		staff_submit(&world->servers[call->stage], task, weir_now());
		return;
	}
	serve(call, &world->served[station][member * (s->phase_count + 1) + phase_now(world)]);
}

static void begin(struct world *world, const struct weir_token *token)
{
	weir_dur timeout = world->scenario->client.timeout;
	struct call *call = alloc_or_abort(sizeof(*call));

	call->world = world;
	call->token = *token;
	call->began = token->start;
	timetable_draw(&world->timetable, call->work);
	atomic_init(&call->answered, false);
	atomic_init(&call->holders, timeout > 0 ? 2 : 1);
	if (timeout > 0) {
		call->timeout = (struct event){.fire = given_up, .owner = call};
		sim_schedule(&world->timetable.sim, &call->timeout,
			     call->began - world->epoch + timeout);
	}
	call->task.work = call->work[0];
	staff_submit(&world->servers[0], &call->task, call->began);
}

static void call_arrived(void *owner)
{
	struct world *world = owner;
	struct tally *tally = &world->brought[phase_now(world)];
	struct weir_token token;

	tally->offered++;
	if (weir_try_acquire(world->limiter, &token) != 0) {
		tally->rejected++;
		return;
	}
	tally_admitted(tally, token.inflight);
	begin(world, &token);
}

static void set_staff(struct world *world, unsigned station, const struct phase *phase)
{
	const struct station_model model = scenario_station(world->scenario, phase, station);

	staff_change(&world->servers[station], model.workers, model.speed);
}

static void phase_begins(void *arg, unsigned index)
{
	struct world *world = arg;
	const uint32_t *limits = world->setup->limits;

	atomic_store_explicit(&world->phase, index, memory_order_relaxed);
	if (limits != NULL && weir_limit_set(world->limiter, limits[index]) == 0)
		meter_set(&world->meter, weir_limit(world->limiter));
	for (unsigned i = 0; i < world->scenario->station_count; i++)
		set_staff(world, i, &world->scenario->phases[index]);
}

static void phase_ends(void *arg, unsigned index)
{
	struct world *world = arg;
	struct tally *tally = &world->brought[index];

	tally->limit_area += meter_take(&world->meter);
	tally->limit_last = weir_limit(world->limiter);
	tally->length += timetable_phase_length(&world->timetable);
}

/* Calls in flight still end, at a server without faults, but no longer count. */
static void scenario_over(void *arg)
{
	struct world *world = arg;

	atomic_store_explicit(&world->phase, world->scenario->phase_count, memory_order_relaxed);
	for (unsigned i = 0; i < world->scenario->station_count; i++)
		set_staff(world, i, NULL);
}

static void make_server(struct world *world)
{
	const struct scenario *s = world->scenario;

	for (unsigned i = 0; i < s->station_count; i++) {
		unsigned members = real_members(s, i);

		world->served[i] = alloc_or_abort(sizeof(struct tally) * members *
						  (s->phase_count + 1));
		staff_start(&world->servers[i], &s->stations[i].model, members, worked_on, world);
	}
}

static void bring(struct world *world)
{
	struct sim *sim = &world->timetable.sim;
	const struct event *next;

	world->epoch = weir_now() + SETTLING;
	meter_begin(&world->meter, weir_limit(world->limiter), world->epoch);
	sim_schedule(sim, &world->busy.look, BUSY_EVERY);
	timetable_begin(&world->timetable);
	while ((next = (const struct event *)heap_first(&sim->events)) != NULL) {
		sleep_until(world, world->epoch + next->node.key);
		sim_step(sim);
	}
}

/* End stations in the order of calls, so that no call gets to a station that has ended. */
static void end_server(struct world *world)
{
	const struct scenario *s = world->scenario;

	for (unsigned i = 0; i < s->station_count; i++) {
		struct staff *staff = &world->servers[i];
		unsigned members = staff->member_count;

		staff_end(staff, world->lateness);
		for (unsigned m = 0; m < members; m++)
			for (unsigned p = 0; p < s->phase_count; p++)
				tally_add(&world->result->phases[p].tally,
					  &world->served[i][m * (s->phase_count + 1) + p]);
		free(world->served[i]);
	}
	for (unsigned p = 0; p < s->phase_count; p++) {
		struct phase_result *phase = &world->result->phases[p];

		tally_add(&phase->tally, &world->brought[p]);
		phase->class_good[0] = phase->tally.good;
		phase->limiter_good[0] = phase->tally.good;
		if (phase->tally.inflight_max > world->meter.highest)
			world->result->above = 1;
	}
}

static void end_limiter(struct world *world)
{
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(world->limiter, &snapshot);
	world->result->windows = snapshot.windows;
	world->result->samples = snapshot.succeeded + snapshot.dropped + snapshot.timed_out;
	world->result->leaked = snapshot.inflight;
	weir_limiter_destroy(world->limiter);
}

static void play(struct world *world)
{
	const struct scenario *s = world->scenario;

	world->brought = alloc_or_abort((s->phase_count + 1) * sizeof(struct tally));
	world->timetable = (struct timetable){
		.scenario = s,
		.seed = world->setup->seed,
		.arrived = call_arrived,
		.phase_begins = phase_begins,
		.phase_ends = phase_ends,
		.over = scenario_over,
		.arg = world,
	};
	make_server(world);
	bring(world);
	end_server(world);
	meter_end(&world->meter);
	timetable_free(&world->timetable);
	free(world->brought);
}

int real_run(const struct run_setup *setup, struct run_result *result, struct tally *lateness)
{
	struct world *world = alloc_or_abort(sizeof(*world));
	int error;

	memset(result, 0, sizeof(*result));
	memset(lateness, 0, sizeof(*lateness));
	*world = (struct world){
		.setup = setup,
		.scenario = setup->scenario,
		.result = result,
		.lateness = lateness,
		.busy = {.gauge = {.read = read_busy},
			 .look = {.fire = look_how_busy, .owner = world}},
	};
	error = make_limiter(world);
	if (error == 0) {
		/* The default timer slack of 50 us lets the kernel wake threads late, together. */
		prctl(PR_SET_TIMERSLACK, 1UL);
		play(world);
		end_limiter(world);
	}
	free(world);
	return error;
}
