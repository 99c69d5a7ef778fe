/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait without a thread: in the limiter's queue, or for a delayed refusal.
 *
 * A waiting request may get its permit by a release in this worker or in another one. For the
 * first, the library calls granted() at once, in the worker's thread. For the second, a thread
 * sleeps in weir_shm_listen(), one for each zone that has a queue. In both cases granted() puts the
 * request in a list and signals the worker's eventfd, and the event loop takes the request from
 * there. So a permit waits for at most one turn of the loop, without polling. ngx_notify() could
 * signal as well, but it has only one slot for the function to call, and nginx's thread pools use
 * it.
 *
 * The list is the only state that threads share. It is protected by a mutex that is held for a few
 * instructions. When a request leaves early, it first ends its wait in the limiter's queue: from
 * then on granted() does not run for it. Then it leaves the list. So what granted() accesses always
 * exists.
 */
#include "module.h"

#include <ngx_channel.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	LISTEN_MS = 200, /* ms; the longest that an exiting worker waits for its listener */
	HOLD_MS = 100,   /* ms; the default of partition_hold */
};

struct waking {
	pthread_mutex_t lock;
	ngx_queue_t granted; /* of struct guarded; under the lock */
	int wake_fd;         /* eventfd */
	atomic_bool leaving; /* listeners should exit; relaxed, since it orders nothing */
};

static struct guarded *guarded_at(ngx_queue_t *link)
{
	return ngx_queue_data(link, struct guarded, link);
}

/* Any thread of this worker may call it. */
static void granted(void *arg)
{
	struct guarded *guarded = arg;
	struct waking *waking = guarded->zone->waking;
	const uint64_t one = 1;
	bool was_empty;

	pthread_mutex_lock(&waking->lock);
	was_empty = ngx_queue_empty(&waking->granted);
	ngx_queue_insert_tail(&waking->granted, &guarded->link);
	guarded->queued = true;
	pthread_mutex_unlock(&waking->lock);
	if (was_empty)
		(void)!write(waking->wake_fd, &one, sizeof(one));
}

static struct guarded *take_granted(struct waking *waking)
{
	struct guarded *guarded = NULL;

	pthread_mutex_lock(&waking->lock);
	if (!ngx_queue_empty(&waking->granted)) {
		guarded = guarded_at(ngx_queue_head(&waking->granted));
		ngx_queue_remove(&guarded->link);
		guarded->queued = false;
	}
	pthread_mutex_unlock(&waking->lock);
	return guarded;
}

static void leave_list(struct guarded *guarded)
{
	struct waking *waking = guarded->zone->waking;

	pthread_mutex_lock(&waking->lock);
	if (guarded->queued) {
		ngx_queue_remove(&guarded->link);
		guarded->queued = false;
	}
	pthread_mutex_unlock(&waking->lock);
}

static void stop_timer(struct guarded *guarded)
{
	if (guarded->timer.timer_set)
		ngx_del_timer(&guarded->timer);
}

static void end_wait(struct guarded *guarded)
{
	guarded->waiting = false;
	guarded->waited = weir_now() - guarded->asked;
	leave_list(guarded);
}

static void take_up(struct guarded *guarded)
{
	if (!guarded->waiting ||
	    weir_poll(guarded->zone->limiter, &guarded->wait, &guarded->token) != 0)
		return;
	stop_timer(guarded);
	end_wait(guarded);
	request_admitted(guarded, DECISION_WAITED);
	request_resume(guarded);
}

static struct waking *waking_here(void)
{
	struct zones *zones = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_weir_module);

	return zones->waking;
}

/* The eventfd is readable. Clear it before the list is read, so that no signal is missed. */
static void resume_granted(ngx_event_t *event)
{
	struct waking *waking = waking_here();
	struct guarded *guarded;
	uint64_t wakeups;

	(void)event;
	(void)!read(waking->wake_fd, &wakeups, sizeof(wakeups));
	while ((guarded = take_granted(waking)) != NULL)
		take_up(guarded);
}

struct waking *waking_create(ngx_cycle_t *cycle)
{
	struct waking *waking = ngx_pcalloc(cycle->pool, sizeof(*waking));

	if (waking == NULL)
		return NULL;
	pthread_mutex_init(&waking->lock, NULL);
	ngx_queue_init(&waking->granted);
	atomic_init(&waking->leaving, false);
	waking->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (waking->wake_fd < 0 ||
	    ngx_add_channel_event(cycle, waking->wake_fd, NGX_READ_EVENT, resume_granted) != NGX_OK)
		return NULL;
	return waking;
}

static void *listen_for_others(void *arg)
{
	const struct zone *zone = arg;
	int r;

	do {
		r = weir_shm_listen(zone->limiter, weir_now() + LISTEN_MS * WEIR_MS);
	} while ((r == 0 || r == -ETIMEDOUT) &&
		 !atomic_load_explicit(&zone->waking->leaving, memory_order_relaxed));
	return NULL;
}

/* The thread blocks all signals, which belong to the event loop. */
void waking_listen(struct zone *zone, ngx_log_t *log)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	error = pthread_create(&zone->listener, NULL, listen_for_others, zone);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	zone->listens = error == 0;
	if (error != 0)
		ngx_log_error(
			NGX_LOG_ALERT, log, error,
			"weir zone \"%V\": cannot start a thread, so waiting requests may time out",
			&zone->name);
}

void waking_stop(struct zone *zone)
{
	if (!zone->listens)
		return;
	atomic_store_explicit(&zone->waking->leaving, true, memory_order_relaxed);
	pthread_join(zone->listener, NULL);
	zone->listens = false;
}

/* From now on only a disconnect of the client, the timer or a permit continues the request. */
static ngx_int_t suspend(struct guarded *guarded, ngx_msec_t time, ngx_event_handler_pt handler)
{
	ngx_http_request_t *r = guarded->request;
	ngx_event_t *read = r->connection->read;

	if (read->ready) {
		ngx_post_event(read, &ngx_posted_events);
	} else if (ngx_handle_read_event(read, 0) != NGX_OK) {
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	}
	r->read_event_handler = ngx_http_test_reading;
	r->write_event_handler = ngx_http_request_empty_handler;
	guarded->timer = (ngx_event_t){
		.handler = handler,
		.data = &no_connection,
		.log = r->connection->log,
	};
	ngx_add_timer(&guarded->timer, time);
	return NGX_AGAIN;
}

static struct guarded *guarded_of(ngx_event_t *timer)
{
	return (struct guarded *)((u_char *)timer - offsetof(struct guarded, timer));
}

/*
 * The time until the next check: its deadline. Capacity that is reserved for partitions becomes
 * free by time alone, without a release, and only a poll notices that.
 */
static ngx_msec_t next_look(const struct guarded *guarded)
{
	const struct weir_config *config = &guarded->zone->config;
	const ngx_msec_t left = guarded->deadline - ngx_current_msec;
	ngx_msec_t hold = HOLD_MS;

	if (config->partition_hold != 0)
		hold = (ngx_msec_t)(config->partition_hold / WEIR_MS);
	return config->partition_count > 0 && hold < left ? hold : left;
}

static void look(ngx_event_t *timer)
{
	struct guarded *guarded = guarded_of(timer);
	struct weir_limiter *limiter = guarded->zone->limiter;
	int r;

	if ((ngx_msec_int_t)(guarded->deadline - ngx_current_msec) > 0) {
		r = weir_poll(limiter, &guarded->wait, &guarded->token);
		if (r != 0) {
			ngx_add_timer(timer, next_look(guarded));
			return;
		}
	} else {
		r = weir_cancel(limiter, &guarded->wait, &guarded->token);
	}
	end_wait(guarded);
	if (r == 0 && guarded->token.state == 0)
		request_refused(guarded, DECISION_EXPIRED);
	else
		request_admitted(guarded, DECISION_WAITED);
	request_resume(guarded);
}

/* Acquire a permit, or join the queue for one. Returns what the phase handler returns. */
ngx_int_t waiting_begin(struct guarded *guarded, const struct weir_call *call)
{
	int r;

	guarded->asked = weir_now();
	r = weir_acquire_or_enqueue_at(guarded->zone->limiter, call, guarded->asked, granted,
				       guarded, &guarded->wait, &guarded->token);
	if (r == 0) {
		request_admitted(guarded, DECISION_PASSED);
		return guarded->status;
	}
	if (r != -EINPROGRESS) {
		if (waiting_delay(guarded))
			return NGX_AGAIN;
		request_refused(guarded, DECISION_REJECTED);
		return guarded->status;
	}
	guarded->waiting = true;
	guarded->decision = DECISION_WAITING;
	guarded->deadline = ngx_current_msec + guarded->location->wait;
	return suspend(guarded, next_look(guarded), look);
}

static void end_delay(struct guarded *guarded)
{
	guarded->delaying = false;
	weir_delay_end(guarded->zone->limiter, guarded->partition);
}

static void refuse_late(ngx_event_t *timer)
{
	struct guarded *guarded = guarded_of(timer);

	end_delay(guarded);
	request_refused(guarded, DECISION_REJECTED);
	request_resume(guarded);
}

/* Delay the refusal if the partition is configured so. True: it will be sent later. */
bool waiting_delay(struct guarded *guarded)
{
	struct weir_limiter *limiter = guarded->zone->limiter;
	const weir_dur delay = weir_delay_begin(limiter, guarded->partition);

	if (delay == 0)
		return false;
	guarded->delaying = true;
	guarded->decision = DECISION_REJECTED;
	if (suspend(guarded, (ngx_msec_t)(delay / WEIR_MS), refuse_late) == NGX_AGAIN)
		return true;
	end_delay(guarded);
	return false;
}

/* The request ends while it waits. */
void waiting_end(struct guarded *guarded)
{
	struct weir_limiter *limiter = guarded->zone->limiter;

	stop_timer(guarded);
	if (limiter == NULL)
		return;
	if (guarded->delaying)
		end_delay(guarded);
	if (!guarded->waiting)
		return;
	guarded->waiting = false;
	if (weir_cancel(limiter, &guarded->wait, &guarded->token) == -EALREADY)
		weir_release(limiter, &guarded->token, WEIR_CANCELLED);
	leave_list(guarded);
}
