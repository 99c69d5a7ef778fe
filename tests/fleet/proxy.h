/* SPDX-License-Identifier: BSD-2-Clause */
/* A proxy between a client and a server that can lose, change and delay answers. */
#ifndef WEIR_TESTS_FLEET_PROXY_H
#define WEIR_TESTS_FLEET_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

enum proxy_mode {
	PROXY_PASS,
	PROXY_LOSE,     /* the request passes; in place of the answer, the connection ends */
	PROXY_TRUNCATE, /* half of an answer, and then the connection ends */
	PROXY_GARBAGE,  /* other bytes in place of the answer */
	PROXY_SWALLOW,  /* the request passes, and there is never an answer */
	PROXY_DELAY,    /* the request waits until the mode changes; then its client is gone */
	PROXY_HOLD,     /* an answer waits until the mode changes */
};

struct proxy {
	unsigned port;
	_Atomic unsigned to; /* the server's port, for new connections */
	int fd;
	_Atomic int mode;
	_Atomic unsigned requests; /* passed; all that a client sends until an answer is one */
	pthread_t thread;
};

void proxy_start(struct proxy *proxy, unsigned to);
void proxy_end(struct proxy *proxy);

#endif
