/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limiter in front of a callback of evhttp.
 *
 * All functions run in the loop's thread except granted(), which runs in the thread that releases a
 * permit. granted() puts the waiter on a stack and signals an eventfd; the loop takes the whole
 * stack. Each waiter is pushed at most once, because the limiter notifies it once, so the stack has
 * no ABA problem and needs no version counter. While the loop enters a waiter into the queue,
 * granted() only sets the waiter's state and does not signal, so a request that does not have to
 * wait costs no system call.
 *
 * word     written by                         order    pairs with
 * -------  ---------------------------------  -------  --------------------------------------
 * state    granted: exchange to GRANTED       release  enter, if its CAS fails
 * state    enter: CAS from ENTERING           acquire  granted
 * granted  granted: CAS, the waiter on top    release  run_granted: the waiter's next_granted
 * granted  run_granted: exchange NULL         acquire  granted
 *
 * Only a thread that finds the stack empty signals. If the stack is not empty, the eventfd is being
 * signalled already, and the loop has not taken the stack yet.
 */
#include <weir/libevent.h>

#include <errno.h>
#include <event2/bufferevent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

enum { ENTERING, WAITING, GRANTED };

struct waiter {
	struct weir_evhttp *guard;
	struct evhttp_request *request;
	struct weir_wait wait;
	weir_time deadline;
	atomic_int state;
	struct waiter *next_granted;
	struct waiter *next,
		*prev; /* in the list of waiters; next also in the list of spare ones */
	bool over;     /* it waits no more, and is freed with its stack */
};

struct weir_evhttp {
	struct weir_evhttp_config config;
	struct weir_token current; /* of the request for which the callback runs */

	/* Waiters, oldest first. All wait equally long, so this is the order of deadlines. */
	struct waiter *oldest, *newest;
	struct waiter *spare; /* reused, so that a request that does not wait needs no allocation */
	_Atomic(struct waiter *) granted;
	int wake_fd;
	struct event *wake_event, *timer;
	bool timer_set;
};

static void list(struct weir_evhttp *guard, struct waiter *waiter)
{
	waiter->next = NULL;
	waiter->prev = guard->newest;
	if (guard->newest)
		guard->newest->next = waiter;
	else
		guard->oldest = waiter;
	guard->newest = waiter;
}

static void unlist(struct weir_evhttp *guard, struct waiter *waiter)
{
	if (waiter->prev)
		waiter->prev->next = waiter->next;
	else
		guard->oldest = waiter->next;
	if (waiter->next)
		waiter->next->prev = waiter->prev;
	else
		guard->newest = waiter->prev;
}

static struct waiter *new_waiter(struct weir_evhttp *guard, struct evhttp_request *request)
{
	struct waiter *waiter = guard->spare;

	if (waiter)
		guard->spare = waiter->next;
	else
		waiter = malloc(sizeof(*waiter));
	if (waiter)
		*waiter = (struct waiter){.guard = guard,
					  .request = request,
					  .deadline = deadline_after(guard->config.wait)};
	return waiter;
}

static void put_away(struct weir_evhttp *guard, struct waiter *waiter)
{
	waiter->next = guard->spare;
	guard->spare = waiter;
}

/* Serving and refusing requests. */

static void serve(struct weir_evhttp *guard, struct evhttp_request *request,
		  const struct weir_token *token)
{
	const struct weir_token outer = guard->current; /* if a callback runs the loop */
	unsigned status;

	guard->current = *token;
	guard->config.callback(request, guard->config.callback_arg);
	if (guard->current.state != 0) {
		status = (unsigned)evhttp_request_get_response_code(request);
		weir_release(guard->config.limiter, &guard->current,
			     status != 0 ? outcome_of_status(status) : WEIR_IGNORE);
	}
	guard->current = outer;
}

static void refuse(const struct weir_evhttp *guard, struct evhttp_request *request)
{
	char seconds[16];

	if (guard->config.refuse && evhttp_request_get_connection(request)) {
		guard->config.refuse(request, guard->config.refuse_arg);
		return;
	}
	snprintf(seconds, sizeof(seconds), "%u", guard->config.retry_after);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Retry-After", seconds);
	evhttp_send_reply(request, HTTP_SERVUNAVAIL, NULL, NULL);
}

static bool is_gone(struct evhttp_request *request)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);

	return !connection ||
	       client_is_gone(bufferevent_getfd(evhttp_connection_get_bufferevent(connection)));
}

/* Called when the wait has brought a permit. */
static void serve_waiter(struct weir_evhttp *guard, struct evhttp_request *request,
			 struct weir_token *token)
{
	if (!is_gone(request)) {
		serve(guard, request, token);
		return;
	}
	weir_release(guard->config.limiter, token, WEIR_CANCELLED);
	evhttp_send_reply(request, HTTP_SERVUNAVAIL, NULL, NULL); /* evhttp frees the request */
}

/* Waiting. */

static void granted(void *arg)
{
	struct waiter *waiter = arg;
	struct weir_evhttp *guard = waiter->guard;
	struct waiter *top;

	if (atomic_exchange_explicit(&waiter->state, GRANTED, memory_order_release) == ENTERING)
		return;
	top = atomic_load_explicit(&guard->granted, memory_order_relaxed);
	do {
		waiter->next_granted = top;
	} while (!atomic_compare_exchange_weak_explicit(
		&guard->granted, &top, waiter, memory_order_release, memory_order_relaxed));
	if (!top)
		(void)eventfd_write(guard->wake_fd, 1);
}

static void set_timer(struct weir_evhttp *guard)
{
	const weir_time now = weir_now();
	struct timeval after;
	weir_dur left;

	if (guard->timer_set || !guard->oldest)
		return;
	left = guard->oldest->deadline > now ? guard->oldest->deadline - now : 0;
	left = left < LOOK_AGAIN ? left : LOOK_AGAIN;
	after = (struct timeval){.tv_sec = (time_t)(left / WEIR_S),
				 .tv_usec = (suseconds_t)(left % WEIR_S / WEIR_US) + 1};
	guard->timer_set = evtimer_add(guard->timer, &after) == 0;
}

/* 0: it has a permit; -EINPROGRESS: it waits; other errors: it is refused. */
static int enter(struct weir_evhttp *guard, struct evhttp_request *request,
		 const struct weir_call *call, struct weir_token *token)
{
	struct waiter *waiter = new_waiter(guard, request);
	int entering = ENTERING, error;

	if (!waiter)
		return weir_try_acquire_for(guard->config.limiter, call, token);
	error = weir_acquire_or_enqueue(guard->config.limiter, call, granted, waiter, &waiter->wait,
					token);
	if (error == -EINPROGRESS &&
	    atomic_compare_exchange_strong_explicit(&waiter->state, &entering, WAITING,
						    memory_order_acquire, memory_order_acquire)) {
		list(guard, waiter);
		set_timer(guard);
		return -EINPROGRESS;
	}
	if (error == -EINPROGRESS)
		error = weir_poll(guard->config.limiter, &waiter->wait, token);
	put_away(guard, waiter);
	return error;
}

/* The waiter waits no more. If it was granted a permit, it is on the stack and freed there. */
static struct evhttp_request *finish(struct weir_evhttp *guard, struct waiter *waiter,
				     bool was_granted)
{
	struct evhttp_request *request = waiter->request;

	unlist(guard, waiter);
	waiter->over = true;
	if (!was_granted)
		put_away(guard, waiter);
	return request;
}

/* 0: the permit has arrived. */
static int look(struct weir_evhttp *guard, struct waiter *waiter)
{
	struct weir_token token;
	int error = weir_poll(guard->config.limiter, &waiter->wait, &token);

	if (error == 0)
		serve_waiter(guard, finish(guard, waiter, true), &token);
	return error;
}

static void give_up(struct weir_evhttp *guard, struct waiter *waiter)
{
	struct weir_token token;

	if (weir_cancel(guard->config.limiter, &waiter->wait, &token) == -EALREADY)
		serve_waiter(guard, finish(guard, waiter, true), &token);
	else
		refuse(guard, finish(guard, waiter, false));
}

/* Reversed, so that waiters are served in the order of their permits. */
static struct waiter *take_granted(struct weir_evhttp *guard)
{
	struct waiter *stack = atomic_exchange_explicit(&guard->granted, NULL,
							memory_order_acquire);
	struct waiter *first = NULL, *next;

	for (; stack; stack = next) {
		next = stack->next_granted;
		stack->next_granted = first;
		first = stack;
	}
	return first;
}

static void run_granted(evutil_socket_t fd, short what, void *arg)
{
	struct weir_evhttp *guard = arg;
	struct waiter *waiter, *next;
	eventfd_t rung;

	(void)what;
	(void)eventfd_read(fd, &rung);
	for (waiter = take_granted(guard); waiter; waiter = next) {
		next = waiter->next_granted;
		if (!waiter->over)
			(void)look(guard, waiter);
		put_away(guard, waiter);
	}
}

static void keep_time(evutil_socket_t fd, short what, void *arg)
{
	struct weir_evhttp *guard = arg;

	(void)fd, (void)what;
	guard->timer_set = false;
	while (guard->oldest && guard->oldest->deadline <= weir_now())
		give_up(guard, guard->oldest);
	while (guard->oldest && look(guard, guard->oldest) == 0)
		;
	set_timer(guard);
}

void weir_evhttp_handle(struct evhttp_request *request, void *arg)
{
	struct weir_evhttp *guard = arg;
	const struct weir_evhttp_config *config = &guard->config;
	struct weir_token token = {.state = 0};
	struct weir_call call = {.cost = 1};
	int error = 0;

	if (config->classify && !config->classify(request, config->classify_arg, &call)) {
		serve(guard, request, &token);
		return;
	}
	if (config->wait > 0 && !(call.flags & WEIR_CALL_BYPASS))
		error = enter(guard, request, &call, &token);
	else
		error = weir_try_acquire_for(config->limiter, &call, &token);
	if (error == 0)
		serve(guard, request, &token);
	else if (error == -EINVAL)
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
	else if (error != -EINPROGRESS)
		refuse(guard, request);
}

struct weir_token weir_evhttp_take(struct weir_evhttp *guard)
{
	const struct weir_token token = guard->current;

	guard->current = (struct weir_token){.state = 0};
	return token;
}

/* Creation and destruction of a guard. */

void weir_evhttp_config_init_sized(struct weir_evhttp_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

int weir_evhttp_config_check(const struct weir_evhttp_config *config, char *why, size_t why_size)
{
	if (why != NULL && why_size > 0)
		why[0] = '\0';
	if (config->size != sizeof(*config))
		return complain(why, why_size,
				"size is unknown: call weir_evhttp_config_init() first.");
	if (!config->limiter)
		return complain(why, why_size, "limiter is required.");
	if (!config->base)
		return complain(why, why_size, "base is required.");
	if (!config->callback)
		return complain(why, why_size, "callback is required.");
	return check_wait(config->limiter, config->wait, why, why_size);
}

static int start(struct weir_evhttp *guard)
{
	guard->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (guard->wake_fd < 0)
		return -errno;
	guard->wake_event = event_new(guard->config.base, guard->wake_fd, EV_READ | EV_PERSIST,
				      run_granted, guard);
	guard->timer = evtimer_new(guard->config.base, keep_time, guard);
	if (!guard->wake_event || !guard->timer || event_add(guard->wake_event, NULL) != 0)
		return -ENOMEM;
	return 0;
}

int weir_evhttp_create(const struct weir_evhttp_config *config, struct weir_evhttp **made)
{
	struct weir_evhttp *guard;
	int error = weir_evhttp_config_check(config, NULL, 0);

	*made = NULL;
	if (error != 0)
		return error;
	guard = calloc(1, sizeof(*guard));
	if (!guard)
		return -ENOMEM;
	guard->config = *config;
	guard->config.retry_after = config->retry_after ? config->retry_after : 1;
	error = start(guard);
	if (error != 0) {
		weir_evhttp_destroy(guard);
		return error;
	}
	*made = guard;
	return 0;
}

static void dismiss(struct weir_evhttp *guard, struct waiter *waiter)
{
	struct weir_token token;
	bool was_granted = weir_cancel(guard->config.limiter, &waiter->wait, &token) == -EALREADY;

	if (was_granted)
		weir_release(guard->config.limiter, &token, WEIR_CANCELLED);
	refuse(guard, finish(guard, waiter, was_granted));
}

void weir_evhttp_destroy(struct weir_evhttp *guard)
{
	struct waiter *waiter;

	if (!guard)
		return;
	while (guard->oldest)
		dismiss(guard, guard->oldest);
	if (guard->wake_event)
		run_granted(guard->wake_fd, EV_READ, guard);
	while ((waiter = guard->spare)) {
		guard->spare = waiter->next;
		free(waiter);
	}
	if (guard->wake_event)
		event_free(guard->wake_event);
	if (guard->timer)
		event_free(guard->timer);
	if (guard->wake_fd >= 0)
		close(guard->wake_fd);
	free(guard);
}
