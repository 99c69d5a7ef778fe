/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * During a call of a client library SIGPIPE is blocked, because libraries write to sockets without
 * protection. One that the call raised is discarded, unless one was pending before.
 */
#ifndef WEIR_FLEET_QUIET_H
#define WEIR_FLEET_QUIET_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

struct quiet {
	sigset_t before;
	bool pending;
};

static inline struct quiet quiet_begin(void)
{
	struct quiet quiet;
	sigset_t pipe, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	quiet.pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &quiet.before);
	return quiet;
}

static inline void quiet_end(const struct quiet *quiet)
{
	const struct timespec at_once = {.tv_nsec = 0};
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	while (!quiet->pending && sigtimedwait(&pipe, NULL, &at_once) == SIGPIPE)
		;
	pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

#endif
