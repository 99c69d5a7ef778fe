/*
 * server.c - first in, first out.
 */
#include "server.h"

static void start_waiting(struct server *server)
{
	while (server->busy < server->workers && server->head != NULL) {
		struct job *job = server->head;
		double took = (double)job->work * server->slowness;

		server->head = job->next;
		if (server->head == NULL)
			server->tail = &server->head;
		server->busy++;
		sim_schedule(server->sim, &job->done, server->sim->now + (weir_dur)took);
	}
}

static void job_done(void *owner)
{
	struct job *job = owner;
	struct server *server = job->server;

	server->busy--;
	start_waiting(server);
	server->finished(job->owner);
}

void server_init(struct server *server, struct sim *sim, void (*finished)(void *owner))
{
	*server = (struct server){
		.sim = sim,
		.finished = finished,
		.slowness = 1,
		.tail = &server->head,
	};
}

void server_submit(struct server *server, struct job *job)
{
	job->server = server;
	job->next = NULL;
	job->done = (struct event){.fire = job_done, .owner = job};
	*server->tail = job;
	server->tail = &job->next;
	start_waiting(server);
}

void server_resize(struct server *server, unsigned workers, double slowness)
{
	server->workers = workers;
	server->slowness = slowness;
	start_waiting(server);
}
