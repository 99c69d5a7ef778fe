/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the linker redirects calls of the library to.
 */
#include "executor_rig.h"

#include <errno.h>
#include <stdlib.h>

atomic_bool no_threads;
weir_dur late;
weir_time started;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg);

struct start {
	void *(*start)(void *);
	void *arg;
};

static void *start_late(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	usleep((useconds_t)(late / WEIR_US));
	started = weir_now();
	return start.start(start.arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	struct start *copy;

	if (no_threads)
		return EAGAIN;
	if (late == 0)
		return __real_pthread_create(thread, attr, start, arg);
	copy = malloc(sizeof(*copy));
	*copy = (struct start){.start = start, .arg = arg};
	return __real_pthread_create(thread, attr, start_late, copy);
}

atomic_bool watch_cancel;
void (*after_cancel)(void *arg);
void *after_cancel_arg;

int __real_weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
		       struct weir_token *token);
int __wrap_weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
		       struct weir_token *token);
int __wrap_weir_cancel(struct weir_limiter *limiter, struct weir_wait *wait,
		       struct weir_token *token)
{
	int r = __real_weir_cancel(limiter, wait, token);

	if (watch_cancel)
		after_cancel(after_cancel_arg);
	return r;
}
