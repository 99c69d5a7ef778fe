/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * staff.h - a station of real threads; the simulator's station.h is its model.
 *
 * A worker works by sleeping, so that many workers fit on a few processors. A sleeping thread wakes
 * some microseconds late, and later on a busy machine. To keep this from costing the station
 * capacity, work is planned: a task that waited begins when the previous task should have ended,
 * and ends after its work from there. So a late wake-up delays one answer, and delays do not add
 * up. There may be more threads than workers at a time, so the times at which workers became free
 * are not kept by thread: a thread that begins a task takes the earliest.
 *
 * Plans are made on the station's own clock, which runs at the speed of its workers.
 */
#ifndef STAFF_H
#define STAFF_H

#include "heap.h"
#include "station.h"
#include "tally.h"

#include <pthread.h>
#include <stdbool.h>

#define STAFF_MAX 256 /* threads of a station */

/* A piece of work; embedded in the caller's own structure. */
struct task {
	struct heap_node node; /* must be the first member; by end, of a delay station only */
	double work;           /* nanoseconds at speed 1 */
	weir_dur waited;       /* time in the queue is added to this */

	/* Used by the staff only. */
	weir_time submitted;
	double came; /* the same time on the station's clock */
	struct task *next;
};

struct member;

struct staff {
	/* Called in the member's thread without a lock; the task belongs to the caller again. */
	void (*done)(void *arg, struct task *task, unsigned member);
	void *arg;

	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t tasks; /* a task may be ready to begin */
	pthread_cond_t pace;  /* the time of an end may have changed */
	double clock, speed;  /* the station's clock at as_of, and its speed */
	weir_time as_of;
	unsigned workers, busy;
	double free[STAFF_MAX]; /* clock times at which the free workers became free */
	unsigned free_count;
	double busy_area; /* busy workers times nanoseconds, up to counted */
	weir_time counted;
	bool delay, ending;
	struct task *head, **tail;
	struct heap under_way;
	struct member *members;
	unsigned member_count;
};

/*
 * Start the threads of a station: members of them for a fifo station, or one, which handles all
 * tasks, for a delay station. They inherit the caller's timer slack and scheduling.
 */
void staff_start(struct staff *staff, const struct station_model *model, unsigned members,
		 void (*done)(void *arg, struct task *task, unsigned member), void *arg);

/* Submit a task; now is the current time. From any thread. */
void staff_submit(struct staff *staff, struct task *task, weir_time now);

/* Change the number and speed of workers. Workers in excess finish their tasks first. */
void staff_change(struct staff *staff, unsigned workers, double speed);

/* Busy workers times nanoseconds, up to now. */
double staff_busy_area(struct staff *staff);

/* Wait for all tasks, end the threads, and add their wake-up delays to lateness. */
void staff_end(struct staff *staff, struct tally *lateness);

#endif
