/*
 * staff.h - a station of real threads, which the simulator's station.h is the model of.
 *
 * A worker works by sleeping, so that many of them fit a few processors. No sleep ends when it
 * should: a thread wakes some microseconds late, and on a busy machine more. So that this costs
 * the station no capacity, work is planned: a task that waited begins when the one before it should
 * have ended, and ends so much later as it has work. Late wake-ups are then late answers,
 * each by itself, and do not add up. There may be more threads than workers at the moment, so when
 * a worker came free is not known by thread: whoever begins a task takes the earliest.
 *
 * Plans are made on the station's own clock, which goes at the speed of its workers.
 */
#ifndef STAFF_H
#define STAFF_H

#include "heap.h"
#include "station.h"
#include "tally.h"

#include <pthread.h>
#include <stdbool.h>

#define STAFF_MAX 256 /* threads of a station */

/* Something to be done; embedded in what the caller knows about it. */
struct task {
	struct heap_node node; /* the first; under way, by end: of a delay station only */
	double work;           /* nanoseconds at speed 1 */
	weir_dur waited;       /* in line, added to what is there */

	/* The staff's own. */
	weir_time submitted;
	double came; /* the same on its clock */
	struct task *next;
};

struct member;

struct staff {
	/* In the member's thread, without a lock: the task is the caller's again. */
	void (*done)(void *arg, struct task *task, unsigned member);
	void *arg;

	pthread_mutex_t lock; /* of all below */
	pthread_cond_t tasks; /* there may be something to begin */
	pthread_cond_t pace;  /* an end may be nearer, or farther away */
	double clock, speed;  /* of the clock: what it showed at as_of, and how fast it goes */
	weir_time as_of;
	unsigned workers, busy;
	double free[STAFF_MAX]; /* what it showed when a worker came free, of those who are */
	unsigned free_count;
	double busy_area; /* workers that were busy, times nanoseconds, up to counted */
	weir_time counted;
	bool delay, ending;
	struct task *head, **tail;
	struct heap under_way;
	struct member *members;
	unsigned member_count;
};

/*
 * A station of these threads: workers if it is a fifo station; a single one, which looks after all
 * tasks at once, if it is a delay. They inherit the caller's timer slack and scheduling.
 */
void staff_start(struct staff *staff, const struct station_model *model, unsigned members,
		 void (*done)(void *arg, struct task *task, unsigned member), void *arg);

/* Have it done. now is the present time. Any thread. */
void staff_submit(struct staff *staff, struct task *task, weir_time now);

/* From now on so many work, and so fast; of those that are too many, each finishes its task. */
void staff_change(struct staff *staff, unsigned workers, double speed);

/* Workers that have been busy, times nanoseconds, up to now. */
double staff_busy_area(struct staff *staff);

/* Have all tasks finished, end the threads, and add up how late they woke. */
void staff_end(struct staff *staff, struct tally *lateness);

#endif
