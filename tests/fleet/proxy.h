/*
 * Something between a client and a server that does not bring every answer.
 */
#ifndef WEIR_TESTS_FLEET_PROXY_H
#define WEIR_TESTS_FLEET_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

enum proxy_mode {
	PROXY_PASS,
	PROXY_LOSE,     /* the question goes through; in place of the answer, the connection ends */
	PROXY_TRUNCATE, /* half of an answer, and then the end */
	PROXY_GARBAGE,  /* something else in place of the answer */
	PROXY_SWALLOW,  /* the question goes through, and there is never an answer */
	PROXY_DELAY, /* the question waits until the mode is another one; then its client is gone */
	PROXY_HOLD,  /* an answer waits until the mode is another one */
};

struct proxy {
	unsigned port;
	_Atomic unsigned to; /* the port of the server: connections from now on */
	int fd;
	_Atomic int mode;
	_Atomic unsigned questions; /* that went through */
	pthread_t thread;
};

void proxy_start(struct proxy *proxy, unsigned to);
void proxy_end(struct proxy *proxy);

#endif
