/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that a test starts for itself, on free loopback ports, in a folder of their own. */
#ifndef WEIR_TESTS_FLEET_SERVER_H
#define WEIR_TESTS_FLEET_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

enum server_kind {
	SERVER_REDIS,         /* Debian's configuration: nothing is kept */
	SERVER_REDIS_DURABLE, /* appends to its file, and syncs each write */
	SERVER_REDIS_GUARDED, /* with a password */
	SERVER_SENTINEL,      /* see sentinel_start() */
	SERVER_ETCD,
	SERVER_ETCD_TLS,     /* with certificates for both sides */
	SERVER_ETCD_GUARDED, /* with a user and a password */
};

struct server {
	enum server_kind kind;
	pid_t pid;
	unsigned port, peer_port;
	char folder[64];
};

/* Exits with 77 if the server is not installed. */
void server_start(struct server *server, enum server_kind kind);

/*
 * Start a Sentinel that watches a Redis server as the service "weir", and alone decides that it is
 * gone.
 */
void sentinel_start(struct server *sentinel, const struct server *watched);

/* Start it again on the same port, with what it has kept. */
void server_restart(struct server *server);

void server_kill(struct server *server);
void server_pause(const struct server *server);
void server_resume(const struct server *server);

/* Kill it, and remove its folder. */
void server_end(struct server *server);

/*
 * A free port of the loopback, which no other test gets while this process lives. It is not one
 * that the system assigns to clients.
 */
unsigned free_port(void);

void sleep_ms(unsigned ms);

/* Run a program, discard its output, and wait. Returns the exit code, or -1. */
int run_program(char *const argv[]);

#define ANSWER_ROOM 512

/*
 * Send a request to etcd, as JSON. Returns whether it was answered with 200, and how the answer
 * begins (may be NULL). Or send one to Redis: returns whether it was answered with OK.
 */
bool server_post(const struct server *server, const char *path, const char *body,
		 char answer[ANSWER_ROOM]);
bool server_tell(const struct server *server, const char *command);

#endif
