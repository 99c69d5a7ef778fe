/* SPDX-License-Identifier: BSD-2-Clause */
/* A function in a thread that was cancelled before it called it. */
#ifndef WEIR_TESTS_STRESS_CANCELLED_H
#define WEIR_TESTS_STRESS_CANCELLED_H

#include <pthread.h>
#include <stdbool.h>

#include "check.h"

struct cancelled_call {
	void (*act)(void);
	bool returned;
};

static inline void *cancelled_thread(void *arg)
{
	struct cancelled_call *call = arg;

	CHECK(pthread_cancel(pthread_self()) == 0);
	call->act();
	call->returned = true;
	pthread_testcancel();
	return NULL;
}

/* The function returns, and the thread ends after it. */
static inline void cancelled_in(void (*act)(void))
{
	struct cancelled_call call = {.act = act};
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, cancelled_thread, &call) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(call.returned && result == PTHREAD_CANCELED);
}

#endif
