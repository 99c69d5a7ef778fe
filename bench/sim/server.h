/*
 * server.h - what the limiter protects: some workers and an endless queue.
 */
#ifndef SERVER_H
#define SERVER_H

#include "sim.h"

/* Something to be done; embedded in what the caller knows about it. */
struct job {
	weir_dur work; /* of one worker at full speed */
	void *owner;
	struct server *server;
	struct job *next;
	struct event done;
};

struct server {
	struct sim *sim;
	void (*finished)(void *owner); /* of the job, which is the caller's again */
	unsigned workers, busy;
	double slowness; /* work takes this many times as long */
	struct job *head, **tail;
};

void server_init(struct server *server, struct sim *sim, void (*finished)(void *owner));

/* In order of arrival, as workers come free. There is no way to take a job back. */
void server_submit(struct server *server, struct job *job);

/*
 * From now on so many workers, at that speed. What has begun goes on as it was:
 * of workers that are taken away, each finishes its job first.
 */
void server_resize(struct server *server, unsigned workers, double slowness);

#endif
