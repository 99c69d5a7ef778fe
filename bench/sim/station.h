/*
 * station.h - a place where calls are worked on: part of the server.
 *
 * Every job in service goes on at the same speed, which depends on how many there are. A
 * station's own clock counts the work that each of them has had done; a job ends when that clock
 * shows what it showed at its start, and its work. So however often the speed changes - workers
 * that share, contention, a pause - only the next end has to be reckoned anew.
 */
#ifndef STATION_H
#define STATION_H

#include "heap.h"
#include "sim.h"

enum discipline {
	STATION_FIFO,   /* each worker has one job; the others wait in line */
	STATION_SHARED, /* all jobs are worked on at once, by workers that share themselves out */
	STATION_DELAY,  /* takes its time whatever there is: a worker for everybody */
};

/* What a station is like; it may change while jobs are there. */
struct station_model {
	enum discipline discipline;
	unsigned workers;
	double speed; /* of each worker: 1; 0: nothing goes on */

	/*
	 * Gunther's Universal Scalability Law: with n jobs in service each goes on at 1 / (1 +
	 * contention (n - 1) + coherency n (n - 1)) of the speed. Both 0: they do not mind.
	 */
	double contention, coherency;

	/* The second half of the workers adds only this part of the first: hyper-threads. 1: all */
	double second_half;
};

/* Of all busy workers together, in whole ones: the second half is worth less. */
static inline double station_worth(const struct station_model *model, unsigned busy)
{
	unsigned first = (model->workers + 1) / 2;

	return busy <= first ? busy : first + model->second_half * (busy - first);
}

/* How many times as long each of n jobs takes, as they hinder each other. */
static inline double station_hindrance(const struct station_model *model, double n)
{
	return 1 + model->contention * (n - 1) + model->coherency * n * (n - 1);
}

/* Something to be done; embedded in what the caller knows about it. */
struct job {
	struct heap_node node; /* in service, by end */
	double work;           /* in nanoseconds of one worker at speed 1 */
	void *owner;

	/* The station's own. */
	double ends; /* on the station's clock */
	weir_time came;
	struct job *next, *before; /* in line */
};

/* What the station tells of a job. */
struct station_ops {
	void (*started)(void *owner, weir_dur waited); /* NULL: nobody wants to know */
	void (*finished)(void *owner);                 /* the job is the caller's again */
	bool keeps; /* a job that has finished keeps its worker, until station_let_go() */
};

struct station {
	struct sim *sim;
	const struct station_ops *ops;
	struct station_model model;
	bool paused;

	double clock;     /* work that each job in service has had done */
	weir_time as_of;  /* when the clock showed that */
	double rate;      /* of the clock, a nanosecond */
	double busy_area; /* workers that were busy, times nanoseconds, up to as_of */
	struct heap service;
	unsigned kept;           /* workers of jobs that have finished and keep them */
	struct job *head, *tail; /* in line */
	struct event next_end;
};

void station_init(struct station *station, struct sim *sim, const struct station_ops *ops,
		  const struct station_model *model);
void station_free(struct station *station);

void station_submit(struct station *station, struct job *job);

/* Take a job away that has not finished. */
void station_withdraw(struct station *station, struct job *job);

/* A worker that was kept comes free. */
void station_let_go(struct station *station);

/*
 * From now on it is like that. Of workers that are taken away, each finishes its job first.
 */
void station_change(struct station *station, const struct station_model *model);

/* Stop everything, or go on. */
void station_pause(struct station *station, bool paused);

/* Workers that have been busy, times nanoseconds, up to now. */
double station_busy_area(struct station *station);

#endif
