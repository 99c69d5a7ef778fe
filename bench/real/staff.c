/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * staff.c - threads, a queue and a lock. This models the server, not the limiter, so it may block.
 */
#include "staff.h"

#include "bench/sim/alloc_or_abort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct member {
	struct staff *staff;
	unsigned number;
	pthread_t thread;
	struct tally lateness;
};

static double clock_at(const struct staff *staff, weir_time now)
{
	return staff->clock + staff->speed * (double)(int64_t)(now - staff->as_of);
}

/* The time at which the clock will reach a value, at the current speed, which is not 0. */
static struct timespec time_of(const struct staff *staff, double clock)
{
	double left = fmax(ceil((clock - staff->clock) / staff->speed), 0);
	weir_time at = staff->as_of + (weir_dur)fmin(left, 1e17);

	return (struct timespec){
		.tv_sec = (time_t)(at / WEIR_S),
		.tv_nsec = (long)(at % WEIR_S),
	};
}

/* Wait until the clock reaches a value or its pace changes. Returns whether it has. Locked. */
static bool slept_until(struct member *member, double clock)
{
	struct staff *staff = member->staff;
	double past = clock_at(staff, weir_now()) - clock;
	struct timespec until;

	if (past >= 0) {
		tally_served(&member->lateness,
			     staff->speed > 0 ? (weir_dur)(past / staff->speed) : 0, true);
		return true;
	}
	if (staff->speed > 0) {
		until = time_of(staff, clock);
		pthread_cond_timedwait(&staff->pace, &staff->lock, &until);
	} else {
		pthread_cond_wait(&staff->pace, &staff->lock);
	}
	return false;
}

static void line_add(struct staff *staff, struct task *task)
{
	task->next = NULL;
	*staff->tail = task;
	staff->tail = &task->next;
}

static struct task *line_take(struct staff *staff)
{
	struct task *task = staff->head;

	staff->head = task->next;
	if (staff->head == NULL)
		staff->tail = &staff->head;
	return task;
}

/* Take the worker that has been free the longest. Returns since when. */
static double take_worker(struct staff *staff)
{
	unsigned first = 0;
	double since;

	for (unsigned i = 1; i < staff->free_count; i++)
		if (staff->free[i] < staff->free[first])
			first = i;
	since = staff->free[first];
	staff->free[first] = staff->free[--staff->free_count];
	return since;
}

/* Adjust the list of free workers to workers - busy: new ones are free since the given time. */
static void set_free(struct staff *staff, double since)
{
	unsigned count = staff->workers > staff->busy ? staff->workers - staff->busy : 0;

	while (staff->free_count < count)
		staff->free[staff->free_count++] = since;
	staff->free_count = count;
}

/* Add busy workers up to now to the area. Call before their number changes. */
static weir_time count_busy(struct staff *staff)
{
	weir_time now = weir_now();

	staff->busy_area += staff->busy * (double)(int64_t)(now - staff->counted);
	staff->counted = now;
	return now;
}

/* Call done() without the lock, as it may submit a task to any station. */
static void hand_over(struct member *member, struct task *task)
{
	struct staff *staff = member->staff;

	pthread_mutex_unlock(&staff->lock);
	staff->done(staff->arg, task, member->number);
	pthread_mutex_lock(&staff->lock);
}

static void *work(void *arg)
{
	struct member *member = arg;
	struct staff *staff = member->staff;

	pthread_mutex_lock(&staff->lock);
	while (staff->head != NULL || !staff->ending) {
		struct task *task;
		double end;

		if (staff->head == NULL || staff->free_count == 0) {
			pthread_cond_wait(&staff->tasks, &staff->lock);
			continue;
		}
		task = line_take(staff);
		task->waited += count_busy(staff) - task->submitted;
		staff->busy++;
		end = fmax(task->came, take_worker(staff)) + task->work;
		while (!slept_until(member, end))
			;
		count_busy(staff);
		staff->busy--;
		set_free(staff, end);
		hand_over(member, task);
	}
	/* Other members may wait for a task that has just been taken. */
	pthread_cond_broadcast(&staff->tasks);
	pthread_mutex_unlock(&staff->lock);
	return NULL;
}

/* The heap's keys are the ends of tasks on the clock, in whole nanoseconds. */
static void *look_after(void *arg)
{
	struct member *member = arg;
	struct staff *staff = member->staff;
	struct heap_node *first;

	pthread_mutex_lock(&staff->lock);
	while ((first = heap_first(&staff->under_way)) != NULL || !staff->ending) {
		if (first == NULL) {
			pthread_cond_wait(&staff->pace, &staff->lock);
		} else if (slept_until(member, (double)first->key)) {
			heap_remove(&staff->under_way, first);
			hand_over(member, (struct task *)first);
		}
	}
	pthread_mutex_unlock(&staff->lock);
	return NULL;
}

static void make_conditions(struct staff *staff)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&staff->tasks, NULL);
	pthread_cond_init(&staff->pace, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&staff->lock, NULL);
}

void staff_start(struct staff *staff, const struct station_model *model, unsigned members,
		 void (*done)(void *arg, struct task *task, unsigned member), void *arg)
{
	*staff = (struct staff){
		.done = done,
		.arg = arg,
		.speed = model->speed,
		.as_of = weir_now(),
		.counted = weir_now(),
		.workers = model->workers,
		.members = alloc_or_abort(members * sizeof(struct member)),
		.member_count = members,
		.delay = model->discipline == STATION_DELAY,
	};
	staff->tail = &staff->head;
	if (!staff->delay)
		set_free(staff, 0);
	make_conditions(staff);
	for (unsigned i = 0; i < members; i++) {
		struct member *member = &staff->members[i];
		int error;

		member->staff = staff;
		member->number = i;
		error = pthread_create(&member->thread, NULL, staff->delay ? look_after : work,
				       member);
		if (error != 0) {
			fprintf(stderr, "Cannot create a thread for a worker: %s\n",
				strerror(error));
			abort();
		}
	}
}

void staff_submit(struct staff *staff, struct task *task, weir_time now)
{
	pthread_mutex_lock(&staff->lock);
	task->submitted = now;
	task->came = clock_at(staff, now);
	if (staff->delay) {
		heap_add(&staff->under_way, &task->node,
			 (uint64_t)fmax(ceil(task->came + task->work), 0));
		if (heap_first(&staff->under_way) == &task->node)
			pthread_cond_signal(&staff->pace);
	} else {
		line_add(staff, task);
		pthread_cond_signal(&staff->tasks);
	}
	pthread_mutex_unlock(&staff->lock);
}

void staff_change(struct staff *staff, unsigned workers, double speed)
{
	weir_time now;

	pthread_mutex_lock(&staff->lock);
	now = weir_now();
	staff->clock = clock_at(staff, now);
	staff->as_of = now;
	staff->speed = speed;
	staff->workers = workers;
	set_free(staff, staff->clock);
	pthread_cond_broadcast(&staff->tasks);
	pthread_cond_broadcast(&staff->pace);
	pthread_mutex_unlock(&staff->lock);
}

double staff_busy_area(struct staff *staff)
{
	double area;

	pthread_mutex_lock(&staff->lock);
	count_busy(staff);
	area = staff->busy_area;
	pthread_mutex_unlock(&staff->lock);
	return area;
}

void staff_end(struct staff *staff, struct tally *lateness)
{
	pthread_mutex_lock(&staff->lock);
	staff->ending = true;
	pthread_cond_broadcast(&staff->tasks);
	pthread_cond_broadcast(&staff->pace);
	pthread_mutex_unlock(&staff->lock);
	for (unsigned i = 0; i < staff->member_count; i++) {
		pthread_join(staff->members[i].thread, NULL);
		tally_add(lateness, &staff->members[i].lateness);
	}
	heap_free(&staff->under_way);
	pthread_cond_destroy(&staff->tasks);
	pthread_cond_destroy(&staff->pace);
	pthread_mutex_destroy(&staff->lock);
	free(staff->members);
}
