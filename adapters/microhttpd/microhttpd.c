/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limiter in front of the handler of a libmicrohttpd daemon.
 *
 * A waiting request is suspended, and must be resumed exactly once per suspension: a second resume
 * would end the next suspension early. Three threads may try to resume it: the limiter's, with a
 * permit; the guard's, at its deadline; and the one that stops the guard. Each of them may do so
 * before the request is suspended. The word parked decides. The request's own handler sets it to
 * PARKED. The thread that changes it from PARKED to WOKEN resumes the request, and no other thread
 * does. A thread that comes too early finds RUNNING and leaves WOKEN, and then the handler's
 * attempt to park fails.
 *
 * word    written by                       order    pairs with
 * ------  -------------------------------  -------  -----------------------------------------
 * parked  handler: exchange to RUNNING     acquire  wake: the permit, or the guard's stopping
 * parked  handler: CAS RUNNING to PARKED   acq_rel  wake: the suspension; if it fails, as above
 * parked  wake: exchange to WOKEN          acq_rel  handler, both ways
 *
 * All other state that threads share, which is the list of waiting requests and the flag stopping,
 * is protected by the guard's lock. A request that does not wait never takes the lock.
 */
#include <weir/microhttpd.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/wait.h>

#include "complain.h"
#include "deadline.h"
#include "gone.h"
#include "outcome.h"

/*
 * The oldest waiting request polls again after this time: capacity reserved for other partitions
 * may have become free without a release, and no other thread may notice that (weir/wait.h).
 */
#define LOOK_AGAIN (100 * WEIR_MS)

enum stage {
	ASKING,   /* it needs a decision */
	ADMITTED, /* it has one, or needs none */
	REFUSED,
};

enum parked { RUNNING, PARKED, WOKEN };

/* Lives from the first call of the handler until the request is completed. */
struct request {
	void *state; /* the handler's state; first, so that its address is the request's */
	struct weir_token token;
	enum stage stage;

	/* For waiting requests only. */
	struct weir_microhttpd *guard;
	struct weir_call call;
	struct weir_wait wait;
	weir_time deadline;
	struct MHD_Connection *connection;
	atomic_int parked;
	bool queued; /* it is in the limiter's queue */
	bool waited; /* it was suspended */
	bool listed; /* it is in the guard's list; under the guard's lock */
	struct request *next, *prev;
};

struct weir_microhttpd {
	struct weir_microhttpd_config config;
	struct MHD_Response *refusal;
	struct MHD_Response *mistake;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* the list is no longer empty, or stopping is set */
	pthread_t timer;
	bool has_timer;
	bool stopping;
	/* Waiting requests, oldest first: all wait equally long, so in the order of deadlines. */
	struct request *oldest, *newest;
};

/* The list of waiting requests. Called under the lock. */

static void list(struct weir_microhttpd *guard, struct request *request)
{
	request->listed = true;
	request->next = NULL;
	request->prev = guard->newest;
	if (guard->newest)
		guard->newest->next = request;
	else
		guard->oldest = request;
	guard->newest = request;
	if (guard->oldest == request)
		pthread_cond_signal(&guard->changed);
}

static void unlist(struct weir_microhttpd *guard, struct request *request)
{
	if (!request->listed)
		return;
	request->listed = false;
	if (request->prev)
		request->prev->next = request->next;
	else
		guard->oldest = request->next;
	if (request->next)
		request->next->prev = request->prev;
	else
		guard->newest = request->prev;
}

/* The request waits no more. If it never waited, it was not listed, and no lock is needed. */
static void finish_wait(struct weir_microhttpd *guard, struct request *request)
{
	request->queued = false;
	if (!request->waited)
		return;
	pthread_mutex_lock(&guard->lock);
	unlist(guard, request);
	pthread_mutex_unlock(&guard->lock);
}

static void resume(struct request *request)
{
	const struct weir_microhttpd_config *config = &request->guard->config;

	MHD_resume_connection(request->connection);
	if (config->resumed)
		config->resumed(config->resumed_arg);
}

/* Resume the request, so that its handler is called again. */
static void wake(void *arg)
{
	struct request *request = arg;

	if (atomic_exchange_explicit(&request->parked, WOKEN, memory_order_acq_rel) == PARKED)
		resume(request);
}

/* The guard's thread: wakes requests at their deadlines. */

static void sleep_until(struct weir_microhttpd *guard, weir_time when)
{
	const struct timespec until = {.tv_sec = (time_t)(when / WEIR_S),
				       .tv_nsec = (long)(when % WEIR_S)};

	pthread_cond_timedwait(&guard->changed, &guard->lock, &until);
}

static void *keep_time(void *arg)
{
	struct weir_microhttpd *guard = arg;
	weir_time now, again = 0;

	pthread_mutex_lock(&guard->lock);
	while (!guard->stopping) {
		if (!guard->oldest) {
			pthread_cond_wait(&guard->changed, &guard->lock);
			again = weir_now() + LOOK_AGAIN;
			continue;
		}
		now = weir_now();
		if (guard->oldest->deadline <= now) {
			struct request *late = guard->oldest;

			unlist(guard, late);
			wake(late);
		} else if (again <= now) {
			wake(guard->oldest);
			again = now + LOOK_AGAIN;
		} else {
			sleep_until(guard, guard->oldest->deadline < again ? guard->oldest->deadline
									   : again);
		}
	}
	pthread_mutex_unlock(&guard->lock);
	return NULL;
}

/* Admission. */

/* The flags of the daemon that decide how requests can wait. */
static int flags_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection,
								       MHD_CONNECTION_INFO_DAEMON);
	const union MHD_DaemonInfo *daemon = info ? MHD_get_daemon_info(info->daemon,
									MHD_DAEMON_INFO_FLAGS)
						  : NULL;

	return daemon ? (int)daemon->flags : 0;
}

/* libmicrohttpd clears the second flag if the loop is not its own. */
static bool can_suspend(int flags)
{
	return flags & MHD_ALLOW_SUSPEND_RESUME & ~MHD_USE_ITC;
}

/* Suspend the request until wake(). False: the guard is being stopped. */
static bool park(struct weir_microhttpd *guard, struct request *request)
{
	int running = RUNNING;
	bool stopping;

	pthread_mutex_lock(&guard->lock);
	stopping = guard->stopping;
	if (!stopping) {
		if (!request->listed)
			list(guard, request);
		request->waited = true;
		MHD_suspend_connection(request->connection);
		if (!atomic_compare_exchange_strong_explicit(&request->parked, &running, PARKED,
							     memory_order_acq_rel,
							     memory_order_acquire))
			resume(request);
	}
	pthread_mutex_unlock(&guard->lock);
	return !stopping;
}

/* Leave the queue and the list. 0: a permit arrived nevertheless. */
static int leave(struct weir_microhttpd *guard, struct request *request)
{
	int error = weir_cancel(guard->config.limiter, &request->wait, &request->token);

	finish_wait(guard, request);
	return error == -EALREADY ? 0 : -EAGAIN;
}

/* 0: it has a permit; -EINPROGRESS: it is suspended; other errors: it is refused. */
static int wait_on(struct weir_microhttpd *guard, struct request *request)
{
	atomic_exchange_explicit(&request->parked, RUNNING, memory_order_acquire);
	if (weir_poll(guard->config.limiter, &request->wait, &request->token) == 0) {
		finish_wait(guard, request);
		return 0;
	}
	if (weir_now() >= request->deadline || !park(guard, request))
		return leave(guard, request);
	return -EINPROGRESS;
}

static int begin_to_wait(struct weir_microhttpd *guard, struct MHD_Connection *connection,
			 struct request *request)
{
	int error;

	request->guard = guard;
	request->connection = connection;
	request->deadline = deadline_after(guard->config.wait);
	error = weir_acquire_or_enqueue(guard->config.limiter, &request->call, wake, request,
					&request->wait, &request->token);
	if (error != -EINPROGRESS)
		return error;
	request->queued = true;
	return wait_on(guard, request);
}

/* Whether the client of a request that has waited is gone, so that no answer is needed. */
static bool is_gone(const struct weir_microhttpd *guard, struct request *request)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (!info || !client_is_gone(info->connect_fd))
		return false;
	weir_release(guard->config.limiter, &request->token, WEIR_CANCELLED);
	return true;
}

static int acquire(struct weir_microhttpd *guard, struct MHD_Connection *connection,
		   struct request *request)
{
	struct weir_limiter *limiter = guard->config.limiter;
	const weir_dur wait = guard->config.wait;
	int flags, error;

	if (request->queued) {
		error = wait_on(guard, request);
		return error == 0 && is_gone(guard, request) ? -EPIPE : error;
	}
	flags = wait > 0 ? flags_of(connection) : 0;
	if (flags & MHD_USE_THREAD_PER_CONNECTION)
		return weir_acquire_for(limiter, &request->call, deadline_after(wait),
					&request->token);
	if (!can_suspend(flags) || (request->call.flags & WEIR_CALL_BYPASS))
		return weir_try_acquire_for(limiter, &request->call, &request->token);
	return begin_to_wait(guard, connection, request);
}

static enum MHD_Result refuse(struct weir_microhttpd *guard, struct MHD_Connection *connection,
			      struct request *request, int error)
{
	request->stage = REFUSED;
	if (error == -EPIPE)
		return MHD_NO;
	if (error == -EINVAL)
		return MHD_queue_response(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
					  guard->mistake);
	return MHD_queue_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, guard->refusal);
}

static struct request *begin(const struct weir_microhttpd_config *config,
			     struct MHD_Connection *connection, const char *url, const char *method)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	if (config->classify &&
	    !config->classify(config->classify_arg, connection, url, method, &request->call))
		request->stage = ADMITTED;
	return request;
}

enum MHD_Result weir_microhttpd_handle(void *arg, struct MHD_Connection *connection,
				       const char *url, const char *method, const char *version,
				       const char *body, size_t *body_size, void **state)
{
	struct weir_microhttpd *guard = arg;
	struct request *request = *state;
	int error;

	if (!request) {
		*state = request = begin(&guard->config, connection, url, method);
		if (!request)
			return MHD_NO;
	}
	if (request->stage == ASKING) {
		error = acquire(guard, connection, request);
		if (error == -EINPROGRESS)
			return MHD_YES;
		if (error != 0)
			return refuse(guard, connection, request, error);
		request->stage = ADMITTED;
	}
	if (request->stage == REFUSED) {
		*body_size = 0;
		return MHD_YES;
	}
	return guard->config.handler(guard->config.handler_arg, connection, url, method, version,
				     body, body_size, &request->state);
}

/* Release. */

static enum weir_outcome outcome_of(struct MHD_Connection *connection,
				    enum MHD_RequestTerminationCode end)
{
	const union MHD_ConnectionInfo *info;

	switch (end) {
	case MHD_REQUEST_TERMINATED_COMPLETED_OK:
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_HTTP_STATUS);
		return info ? outcome_of_status(info->http_status) : WEIR_IGNORE;
	case MHD_REQUEST_TERMINATED_CLIENT_ABORT:
	case MHD_REQUEST_TERMINATED_READ_ERROR:
	case MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN:
		return WEIR_CANCELLED;
	case MHD_REQUEST_TERMINATED_WITH_ERROR:
	case MHD_REQUEST_TERMINATED_TIMEOUT_REACHED:
		break;
	}
	return WEIR_IGNORE;
}

void weir_microhttpd_completed(void *arg, struct MHD_Connection *connection, void **state,
			       enum MHD_RequestTerminationCode end)
{
	struct weir_microhttpd *guard = arg;
	const struct weir_microhttpd_config *config = &guard->config;
	struct request *request = *state;

	if (!request)
		return;
	*state = NULL;
	if (request->queued)
		(void)leave(guard, request); /* releases a permit that arrived */
	else if (request->stage == ADMITTED && config->completed)
		config->completed(config->completed_arg, connection, &request->state, end);
	if (request->token.state != 0)
		weir_release(config->limiter, &request->token, outcome_of(connection, end));
	free(request);
}

struct weir_token *weir_microhttpd_token(void **state)
{
	return &((struct request *)(void *)state)->token;
}

/* Creation and destruction of a guard. */

void weir_microhttpd_config_init_sized(struct weir_microhttpd_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

int weir_microhttpd_config_check(const struct weir_microhttpd_config *config, char *why,
				 size_t why_size)
{
	if (why != NULL && why_size > 0)
		why[0] = '\0';
	if (config->size != sizeof(*config))
		return complain(why, why_size,
				"size is unknown: call weir_microhttpd_config_init() first.");
	if (!config->limiter)
		return complain(why, why_size, "limiter is required.");
	if (!config->handler)
		return complain(why, why_size, "handler is required.");
	return check_wait(config->limiter, config->wait, why, why_size);
}

static struct MHD_Response *text_response(const char *text)
{
	return MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
}

/* Created once, so that a refusal is cheap. */
static struct MHD_Response *make_refusal(unsigned retry_after)
{
	struct MHD_Response *refusal = text_response("busy: retry later\n");
	char seconds[16];

	snprintf(seconds, sizeof(seconds), "%u", retry_after ? retry_after : 1);
	if (!refusal ||
	    MHD_add_response_header(refusal, MHD_HTTP_HEADER_RETRY_AFTER, seconds) == MHD_YES)
		return refusal;
	MHD_destroy_response(refusal);
	return NULL;
}

static void init_lock(struct weir_microhttpd *guard)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&guard->lock, NULL);
	pthread_cond_init(&guard->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static int start(struct weir_microhttpd *guard)
{
	guard->mistake = text_response("invalid configuration of limits\n");
	guard->refusal = guard->config.refusal;
	if (!guard->refusal)
		guard->refusal = make_refusal(guard->config.retry_after);
	if (!guard->refusal || !guard->mistake)
		return -ENOMEM;
	if (guard->config.wait > 0) {
		if (pthread_create(&guard->timer, NULL, keep_time, guard) != 0)
			return -EAGAIN;
		guard->has_timer = true;
	}
	return 0;
}

int weir_microhttpd_create(const struct weir_microhttpd_config *config,
			   struct weir_microhttpd **made)
{
	struct weir_microhttpd *guard;
	int error = weir_microhttpd_config_check(config, NULL, 0);

	*made = NULL;
	if (error != 0)
		return error;
	guard = calloc(1, sizeof(*guard));
	if (!guard)
		return -ENOMEM;
	guard->config = *config;
	init_lock(guard);
	error = start(guard);
	if (error != 0) {
		weir_microhttpd_destroy(guard);
		return error;
	}
	*made = guard;
	return 0;
}

void weir_microhttpd_stop(struct weir_microhttpd *guard)
{
	pthread_mutex_lock(&guard->lock);
	guard->stopping = true;
	while (guard->oldest) {
		struct request *request = guard->oldest;

		unlist(guard, request);
		wake(request);
	}
	pthread_cond_signal(&guard->changed);
	pthread_mutex_unlock(&guard->lock);
}

void weir_microhttpd_destroy(struct weir_microhttpd *guard)
{
	if (!guard)
		return;
	weir_microhttpd_stop(guard);
	if (guard->has_timer)
		pthread_join(guard->timer, NULL);
	if (guard->refusal && guard->refusal != guard->config.refusal)
		MHD_destroy_response(guard->refusal);
	if (guard->mistake)
		MHD_destroy_response(guard->mistake);
	pthread_cond_destroy(&guard->changed);
	pthread_mutex_destroy(&guard->lock);
	free(guard);
}
