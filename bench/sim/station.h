/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * station.h - a part of the server at which calls are worked on.
 *
 * All jobs in service progress at the same speed, which depends on their number. The station's own
 * clock counts the work done on each of them; a job ends when that clock has advanced by the job's
 * work. So however often the speed changes (shared workers, contention, a pause), only the next end
 * has to be recomputed.
 */
#ifndef STATION_H
#define STATION_H

#include "heap.h"
#include "sim.h"

enum discipline {
	STATION_FIFO,   /* each worker has one job; the others wait in a queue */
	STATION_SHARED, /* processor sharing: all jobs progress at once */
	STATION_DELAY,  /* no queueing: a worker for each job */
};

/* The properties of a station; they may change while it has jobs. */
struct station_model {
	enum discipline discipline;
	unsigned workers;
	double speed; /* of each worker; normally 1; 0: stopped */

	/*
	 * Gunther's Universal Scalability Law: with n jobs in service each progresses at
	 * 1 / (1 + contention (n - 1) + coherency n (n - 1)) of the speed. Both 0: no slowdown.
	 */
	double contention, coherency;

	/* What a worker of the second half adds, relative to the first: hyper-threads. 1: all */
	double second_half;

	unsigned queue;    /* of fifo: jobs that may wait; 0: any number */
	bool newest_first; /* of fifo: the last one to come is the next */
};

/* The busy workers expressed as whole ones: the second half is worth less. */
static inline double station_worth(const struct station_model *model, unsigned busy)
{
	unsigned first = (model->workers + 1) / 2;

	return busy <= first ? busy : first + model->second_half * (busy - first);
}

/* The factor by which each of n jobs is slowed by the others. */
static inline double station_hindrance(const struct station_model *model, double n)
{
	return 1 + model->contention * (n - 1) + model->coherency * n * (n - 1);
}

/* A piece of work; embedded in the caller's own structure. */
struct job {
	struct heap_node node; /* in service, by end */
	double work;           /* in nanoseconds of one worker at speed 1 */
	void *owner;

	/* Used by the station only. */
	double ends; /* on the station's clock */
	weir_time came;
	struct job *next, *before; /* in the queue */
};

/* Callbacks of a station about its jobs. */
struct station_ops {
	void (*started)(void *owner, weir_dur waited); /* optional */
	void (*finished)(void *owner);                 /* the job belongs to the caller again */
	bool keeps; /* a finished job keeps its worker until station_let_go() */
};

struct station {
	struct sim *sim;
	const struct station_ops *ops;
	struct station_model model;
	bool paused;

	double clock;     /* nanoseconds of work done on a job in service since the start */
	weir_time as_of;  /* the time for which clock holds */
	double rate;      /* of the clock, per nanosecond of time */
	double busy_area; /* busy workers times nanoseconds, up to as_of */
	struct heap service;
	unsigned kept;           /* workers kept by jobs that have finished */
	struct job *head, *tail; /* of the queue */
	unsigned waiting;
	struct event next_end;
};

void station_init(struct station *station, struct sim *sim, const struct station_ops *ops,
		  const struct station_model *model);
void station_free(struct station *station);

/* A job comes. False if the queue is full: the station does not take it. */
bool station_submit(struct station *station, struct job *job);

/* Remove a job that has not finished. */
void station_withdraw(struct station *station, struct job *job);

/* Free a worker that a finished job has kept. */
void station_let_go(struct station *station);

/* Change the properties from now on. A worker that is removed finishes its job first. */
void station_change(struct station *station, const struct station_model *model);

/* Stop all work, or resume it. */
void station_pause(struct station *station, bool paused);

/* Busy workers times nanoseconds, up to now. */
double station_busy_area(struct station *station);

#endif
