/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * station.c - jobs in service are in a heap by their end, the others in a queue.
 */
#include "station.h"

#include <math.h>
#include <string.h>

/* Nanoseconds: longer than any scenario. */
#define NEVER 1e18

/* The bits of doubles that are not negative sort as the numbers do. */
static uint64_t key_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

static unsigned busy_workers(const struct station *station)
{
	unsigned workers = station->model.workers;

	return station->service.count < workers ? (unsigned)station->service.count : workers;
}

/* The speed of each job in service. */
static double rate_of(const struct station *station)
{
	const struct station_model *m = &station->model;
	double n = (double)station->service.count;
	double rate = m->speed;

	if (station->paused || n == 0)
		return 0;
	if (m->discipline == STATION_SHARED)
		rate *= station_worth(m, busy_workers(station)) / n;
	else if (m->discipline == STATION_FIFO && m->second_half != 1)
		rate *= station_worth(m, busy_workers(station)) / busy_workers(station);
	return rate / station_hindrance(m, n);
}

static void advance(struct station *station)
{
	double passed = (double)(station->sim->now - station->as_of);

	station->busy_area += busy_workers(station) * passed;
	station->clock += station->rate * passed;
	station->as_of = station->sim->now;
}

/* Call whenever the jobs in service, or their speed, have changed. */
static void look_ahead(struct station *station)
{
	const struct job *first;
	double left;

	station->rate = rate_of(station);
	if (station->rate <= 0) {
		sim_cancel(station->sim, &station->next_end);
		return;
	}
	first = (const struct job *)heap_first(&station->service);
	left = ceil((first->ends - station->clock) / station->rate);
	if (left > NEVER)
		sim_cancel(station->sim, &station->next_end);
	else
		sim_schedule(station->sim, &station->next_end,
			     station->sim->now + (left > 0 ? (weir_dur)left : 0));
}

static void queue_add(struct station *station, struct job *job)
{
	job->next = NULL;
	job->before = station->tail;
	if (station->tail != NULL)
		station->tail->next = job;
	else
		station->head = job;
	station->tail = job;
	station->waiting++;
}

static void queue_remove(struct station *station, struct job *job)
{
	if (job->before != NULL)
		job->before->next = job->next;
	else
		station->head = job->next;
	if (job->next != NULL)
		job->next->before = job->before;
	else
		station->tail = job->before;
	station->waiting--;
}

static bool has_room(const struct station *station)
{
	return station->model.discipline != STATION_FIFO ||
	       station->service.count + station->kept < station->model.workers;
}

static void start(struct station *station, struct job *job)
{
	job->ends = station->clock + job->work;
	heap_add(&station->service, &job->node, key_of(job->ends));
	if (station->ops->started != NULL)
		station->ops->started(job->owner, station->sim->now - job->came);
}

static void start_waiting(struct station *station)
{
	while (station->head != NULL && has_room(station)) {
		struct job *job = station->model.newest_first ? station->tail : station->head;

		queue_remove(station, job);
		start(station, job);
	}
}

/* Ends one job: jobs that end together have one event each, at the same time. */
static void job_ends(void *owner)
{
	struct station *station = owner;
	struct job *job = (struct job *)heap_first(&station->service);

	advance(station);
	heap_remove(&station->service, &job->node);
	station->kept += station->ops->keeps;
	start_waiting(station);
	look_ahead(station);
	station->ops->finished(job->owner);
}

void station_init(struct station *station, struct sim *sim, const struct station_ops *ops,
		  const struct station_model *model)
{
	*station = (struct station){
		.sim = sim,
		.ops = ops,
		.model = *model,
		.as_of = sim->now,
		.next_end = {.fire = job_ends, .owner = station},
	};
}

void station_free(struct station *station)
{
	heap_free(&station->service);
}

bool station_submit(struct station *station, struct job *job)
{
	bool room = has_room(station);
	unsigned queue = station->model.queue;

	if (!room && queue > 0 && station->waiting >= queue)
		return false;
	job->came = station->sim->now;
	job->node.place = 0;
	if (!room) {
		queue_add(station, job);
		return true;
	}
	advance(station);
	start(station, job);
	look_ahead(station);
	return true;
}

void station_withdraw(struct station *station, struct job *job)
{
	if (job->node.place == 0) {
		queue_remove(station, job);
		return;
	}
	advance(station);
	heap_remove(&station->service, &job->node);
	start_waiting(station);
	look_ahead(station);
}

void station_let_go(struct station *station)
{
	advance(station);
	station->kept--;
	start_waiting(station);
	look_ahead(station);
}

void station_change(struct station *station, const struct station_model *model)
{
	advance(station);
	station->model = *model;
	start_waiting(station);
	look_ahead(station);
}

void station_pause(struct station *station, bool paused)
{
	advance(station);
	station->paused = paused;
	look_ahead(station);
}

double station_busy_area(struct station *station)
{
	advance(station);
	return station->busy_area;
}
