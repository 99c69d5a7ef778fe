/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a rate: a line of seats, under the rate's lock.
 *
 * Units become available with time, not by a release, so some thread must wake up for them. The
 * first thread in the line watches: it sleeps until the first waiter of the line can be served, and
 * then serves every waiter whose turn has come. The other threads sleep until they are served or
 * become the watcher. Event loops call weir_rate_serve() themselves.
 *
 * A callback runs without the lock, so that it may call the rate. Until it has returned, its waiter
 * is NOTIFYING, and polls and cancels wait for its end. But a poll or cancel from within the
 * callback itself takes the units that the callback announced, and a poll from any other callback
 * does not wait (lib/base/notify.h).
 *
 * The limiter's queue, lib/wait/queue.c, has no such lock: it hands permits over at each release,
 * between processes, and in several orders. Here the slots bound how often turns come, so a lock is
 * good enough, and simpler.
 */

#include <errno.h>
#include <sched.h>

#include "lib/base/cancel.h"
#include "lib/rate/rate.h"
#include "lib/base/notify.h"

#define NIL UINT32_MAX

void line_init(struct weir_rate *r)
{
	r->line = (struct line){.head = NIL, .tail = NIL, .free = r->seats > 0 ? 0 : NIL};
	for (uint32_t i = 0; i < r->seats; i++) {
		park_init(&r->seat[i].park);
		r->seat[i].next = i + 1 < r->seats ? i + 1 : NIL;
	}
}

const struct weir_cost *line_first(const struct weir_rate *r)
{
	return r->line.head != NIL ? &r->seat[r->line.head].cost : NULL;
}

/* Put a seat at the end of the line, and announce it. */
static void append(struct weir_rate *r, uint32_t i)
{
	struct seat *seat = &r->seat[i];

	seat->state = SEAT_WAITING;
	seat->next = NIL;
	seat->prev = r->line.tail;
	if (r->line.tail == NIL)
		r->line.head = i;
	else
		r->seat[r->line.tail].next = i;
	r->line.tail = i;
	atomic_fetch_add_explicit(&r->waiting, 1, memory_order_acq_rel);
}

static void take_out(struct weir_rate *r, uint32_t i)
{
	struct seat *seat = &r->seat[i];

	if (seat->prev == NIL)
		r->line.head = seat->next;
	else
		r->seat[seat->prev].next = seat->next;
	if (seat->next == NIL)
		r->line.tail = seat->prev;
	else
		r->seat[seat->next].prev = seat->prev;
	atomic_fetch_sub_explicit(&r->waiting, 1, memory_order_relaxed);
}

static void free_seat(struct weir_rate *r, uint32_t i)
{
	r->seat[i].state = SEAT_FREE;
	r->seat[i].next = r->line.free;
	r->line.free = i;
}

/* Take a seat at the end of the line; NIL: all are taken. */
static uint32_t join_line(struct weir_rate *r, const struct weir_cost *cost,
			  weir_granted_fn *granted, void *arg, bool sleeps)
{
	const uint32_t i = r->line.free;
	struct seat *seat;

	if (i == NIL)
		return NIL;
	seat = &r->seat[i];
	r->line.free = seat->next;
	seat->cost = *cost;
	seat->granted = granted;
	seat->arg = arg;
	seat->sleeps = sleeps;
	seat->watches = false;
	seat->stamp++;
	seat->stamp += seat->stamp == 0; /* 0 means no waiter */
	append(r, i);
	return i;
}

/*
 * Take those whose turn it is out of the line. Those to notify are chained from the returned seat.
 */
static uint32_t serve(struct weir_rate *r, weir_time now)
{
	uint32_t notified = NIL, *end = &notified, i;

	rate_renew(r, now);
	while ((i = r->line.head) != NIL && rate_admit(r, now, &r->seat[i].cost)) {
		struct seat *seat = &r->seat[i];

		take_out(r, i);
		seat->state = seat->granted != NULL ? SEAT_NOTIFYING : SEAT_GRANTED;
		if (seat->sleeps)
			park_wake(&seat->park);
		if (seat->granted == NULL)
			continue;
		seat->next = NIL;
		*end = i;
		end = &seat->next;
	}
	return notified;
}

/* The first thread in the line; NIL: there is none. */
static uint32_t first_sleeper(const struct weir_rate *r)
{
	uint32_t i = r->line.head;

	while (i != NIL && !r->seat[i].sleeps)
		i = r->seat[i].next;
	return i;
}

static void set_watch(struct weir_rate *r, bool wake)
{
	const uint32_t i = first_sleeper(r);

	if (i != NIL && (wake || !r->seat[i].watches))
		park_wake(&r->seat[i].park);
}

/*
 * Called without the lock. A callback may end its waiter, and another waiter may then use the seat.
 */
static void notify_waiters(struct weir_rate *r, uint32_t i)
{
	while (i != NIL) {
		struct seat *seat = &r->seat[i];
		const uint32_t next = seat->next, stamp = seat->stamp;

		notify_run(seat, stamp, seat->granted, seat->arg);
		pthread_mutex_lock(&r->lock);
		if (seat->stamp == stamp && seat->state == SEAT_NOTIFYING)
			seat->state = SEAT_GRANTED;
		pthread_mutex_unlock(&r->lock);
		i = next;
	}
}

void line_serve(struct weir_rate *r, weir_time now, bool wake)
{
	const uint32_t notified = serve(r, now);
	bool sooner;
	int cancel;

	set_watch(r, wake);
	sooner = wake && r->sooner != NULL && r->line.head != NIL;
	pthread_mutex_unlock(&r->lock);
	if (notified == NIL && !sooner)
		return;
	cancel = cancel_hold();
	notify_waiters(r, notified);
	if (sooner)
		r->sooner(r->sooner_arg);
	cancel_release(cancel);
}

weir_time weir_rate_serve(struct weir_rate *r)
{
	weir_time next = WEIR_FOREVER;

	pthread_mutex_lock(&r->lock);
	line_serve(r, rate_now(r), false);
	/* A waiter that was notified may be in the line again. */
	pthread_mutex_lock(&r->lock);
	if (r->line.head != NIL)
		next = rate_turn(r, line_first(r));
	pthread_mutex_unlock(&r->lock);
	return next;
}

/* Called with the lock, which it releases. Other waiters may now be served sooner. */
static void leave(struct weir_rate *r, uint32_t i, weir_time now)
{
	take_out(r, i);
	free_seat(r, i);
	rate_count(r, RATE_ABANDONED, 1);
	line_serve(r, now, true);
}

/*
 * Sleep once: until served, or until there is something to do. Called with the lock, and returns
 * with it.
 */
static void sleep_once(struct weir_rate *r, struct seat *seat, weir_time deadline)
{
	const uint32_t seen = park_look(&seat->park);
	weir_time until = deadline;

	seat->watches = &r->seat[first_sleeper(r)] == seat;
	if (seat->watches) {
		const weir_time turn = rate_turn(r, line_first(r));

		until = turn < deadline ? turn : deadline;
	}
	pthread_mutex_unlock(&r->lock);
	(void)park_sleep(&seat->park, seen, until);
	pthread_mutex_lock(&r->lock);
}

/* Called with the lock, which it releases. */
static int sleep_in(struct weir_rate *r, uint32_t i, weir_time deadline)
{
	struct seat *seat = &r->seat[i];
	weir_time now = clock_monotonic();

	while (seat->state == SEAT_WAITING) {
		line_serve(r, now, false);
		pthread_mutex_lock(&r->lock);
		if (seat->state != SEAT_WAITING)
			break;
		if (now >= deadline) {
			leave(r, i, now);
			return -ETIMEDOUT;
		}
		sleep_once(r, seat, deadline);
		now = clock_monotonic();
	}
	free_seat(r, i);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

int weir_rate_take_for(struct weir_rate *r, const struct weir_cost *cost, weir_time deadline)
{
	uint32_t i;

	if (!rate_is_cost(r, cost) || r->clock != NULL)
		return -EINVAL;
	if (LIKELY(rate_try(r, clock_monotonic(), cost)))
		return 0;
	if (r->seats > 0 && clock_monotonic() >= deadline) {
		rate_count(r, RATE_ABANDONED, 1);
		return -ETIMEDOUT;
	}
	pthread_mutex_lock(&r->lock);
	i = join_line(r, cost, NULL, NULL, true);
	if (i == NIL) {
		pthread_mutex_unlock(&r->lock);
		rate_count(r, RATE_REFUSED, 1);
		return -EAGAIN;
	}
	return sleep_in(r, i, deadline);
}

int weir_rate_take(struct weir_rate *r, uint64_t units, weir_time deadline)
{
	const struct weir_cost cost = {.units = {units}};

	return weir_rate_take_for(r, &cost, deadline);
}

int weir_rate_enqueue(struct weir_rate *r, const struct weir_cost *cost, weir_granted_fn *granted,
		      void *arg, struct weir_wait *wait)
{
	uint32_t i;

	*wait = (struct weir_wait){.stamp = 0};
	if (!rate_is_cost(r, cost))
		return -EINVAL;
	pthread_mutex_lock(&r->lock);
	i = join_line(r, cost, granted, arg, false);
	if (i == NIL) {
		pthread_mutex_unlock(&r->lock);
		rate_count(r, RATE_REFUSED, 1);
		return -EAGAIN;
	}
	*wait = (struct weir_wait){.slot = i, .stamp = r->seat[i].stamp};
	line_serve(r, rate_now(r), false);
	return 0;
}

/*
 * The waiter's state, after its callback, if another thread runs it, has returned. With the lock.
 */
static enum seat_state settled(struct weir_rate *r, const struct weir_wait *wait, bool leaves)
{
	const struct seat *seat;

	if (wait->stamp == 0 || wait->slot >= r->seats)
		return SEAT_FREE;
	seat = &r->seat[wait->slot];
	while (seat->stamp == wait->stamp && seat->state == SEAT_NOTIFYING) {
		if (notify_here(seat, wait->stamp))
			return SEAT_GRANTED;
		if (!leaves && notify_any())
			return SEAT_NOTIFYING;
		pthread_mutex_unlock(&r->lock);
		sched_yield();
		pthread_mutex_lock(&r->lock);
	}
	return seat->stamp == wait->stamp && !seat->sleeps ? seat->state : SEAT_FREE;
}

int weir_rate_poll(struct weir_rate *r, struct weir_wait *wait)
{
	enum seat_state state;

	pthread_mutex_lock(&r->lock);
	state = settled(r, wait, false);
	if (state == SEAT_GRANTED) {
		free_seat(r, wait->slot);
		*wait = (struct weir_wait){.stamp = 0};
	}
	pthread_mutex_unlock(&r->lock);
	if (state == SEAT_FREE)
		return -EINVAL;
	return state == SEAT_GRANTED ? 0 : -EAGAIN;
}

int weir_rate_cancel(struct weir_rate *r, struct weir_wait *wait)
{
	const weir_time now = rate_now(r);
	const struct weir_wait it = *wait;
	int status = -EINVAL;

	*wait = (struct weir_wait){.stamp = 0};
	pthread_mutex_lock(&r->lock);
	switch (settled(r, &it, true)) {
	case SEAT_WAITING:
		leave(r, it.slot, now);
		return 0;
	case SEAT_GRANTED:
		free_seat(r, it.slot);
		status = -EALREADY;
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&r->lock);
	return status;
}
