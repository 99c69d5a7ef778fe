/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Participants of a fleet's refreshes beside its shares.
 */

#include "fleet/protocol/participant.h"

#include <errno.h>

#include "fleet/protocol/refresh.h"

void participant_join(struct weir_fleet *f, struct participant *p)
{
	pthread_mutex_lock(&f->owning);
	pthread_mutex_lock(&f->report_lock);
	p->next = f->participants;
	f->participants = p;
	pthread_mutex_unlock(&f->report_lock);
	pthread_mutex_unlock(&f->owning);
	f->participant_count++;
	f->refresh_now = true;
	fleet_ring(f);
}

void participant_leave(struct weir_fleet *f, struct participant *p)
{
	struct participant **at;

	pthread_mutex_lock(&f->owning);
	for (at = &f->participants; *at != p; at = &(*at)->next)
		;
	pthread_mutex_lock(&f->report_lock);
	*at = p->next;
	pthread_mutex_unlock(&f->report_lock);
	pthread_mutex_unlock(&f->owning);
	f->participant_count--;
	if (f->session == 0 || p->ops->leave(p) == 1) {
		p->ops->free(p);
	} else {
		p->next = f->participants_left;
		f->participants_left = p;
	}
}

/* Whatever hurries it from here on takes another refresh. */
static int refresh_one(struct weir_fleet *f, struct participant *p)
{
	int r;

	atomic_store_explicit(&p->hurry, false, memory_order_relaxed);
	p->soon = 0;
	r = p->ops->refresh(p);
	p->reached = true;
	p->result = r;
	if (r == -ESTALE)
		session_forget(f);
	else if (r != 0 && r != -EEXIST)
		(void)fleet_fail(f, r);
	return r;
}

void participants_begin(struct weir_fleet *f)
{
	for (struct participant *p = f->participants; p != NULL; p = p->next)
		p->reached = false;
}

void participants_end(struct weir_fleet *f, int result)
{
	for (struct participant *p = f->participants; p != NULL; p = p->next)
		p->ops->note(p, p->reached ? p->result : result);
}

int participants_refresh(struct weir_fleet *f)
{
	int r = 0, first = 0;

	for (struct participant *p = f->participants; p != NULL && refresh_goes_on(r);
	     p = p->next) {
		r = refresh_one(f, p);
		if (first == 0 || !refresh_goes_on(r))
			first = r;
	}
	return first;
}

static bool is_hurried(const struct participant *p, weir_time now)
{
	return atomic_load_explicit(&p->hurry, memory_order_relaxed) ||
	       (p->soon != 0 && now >= p->soon);
}

/*
 * Without a session, or after an error, it is left to the next refresh of all. A session that has
 * ended is no failure yet.
 */
void participants_hurry(struct weir_fleet *f, weir_time now)
{
	int r = 0;

	for (struct participant *p = f->participants; p != NULL; p = p->next) {
		if (!is_hurried(p, now))
			continue;
		p->soon = 0;
		if (f->session == 0 || !refresh_goes_on(r))
			continue;
		p->hurried = true;
		r = refresh_one(f, p);
		p->hurried = false;
		if (r != -ESTALE)
			p->ops->note(p, r);
	}
	f->refresh_now |= r == -ESTALE;
}

int participants_erase_left(struct weir_fleet *f)
{
	struct participant **at = &f->participants_left;

	while (*at != NULL) {
		struct participant *p = *at;
		const int r = p->ops->leave(p);

		if (r == -EIO || r == -ESTALE)
			return r;
		if (r == 1) {
			*at = p->next;
			p->ops->free(p);
		} else {
			at = &p->next;
		}
	}
	return 0;
}

void participants_forget_left(struct weir_fleet *f)
{
	while (f->participants_left != NULL) {
		struct participant *p = f->participants_left;

		f->participants_left = p->next;
		p->ops->free(p);
	}
}

bool participants_lapse(struct weir_fleet *f)
{
	bool erase_due = false;

	pthread_mutex_lock(&f->owning);
	for (struct participant *p = f->participants; p != NULL; p = p->next) {
		p->ops->lapse(p);
		erase_due |= p->erase_due;
		p->erase_due = false;
	}
	pthread_mutex_unlock(&f->owning);
	return erase_due;
}

/* owning is held. */
static weir_time next_of_all(const struct weir_fleet *f)
{
	weir_time first = WEIR_FOREVER;

	for (const struct participant *p = f->participants; p != NULL; p = p->next) {
		const weir_time next = p->ops->next(p);

		if (next < first)
			first = next;
	}
	return first;
}

weir_time participants_next(struct weir_fleet *f)
{
	weir_time next;

	pthread_mutex_lock(&f->owning);
	next = next_of_all(f);
	pthread_mutex_unlock(&f->owning);
	for (const struct participant *p = f->participants; p != NULL; p = p->next)
		if (p->soon != 0 && p->soon < next)
			next = p->soon;
	return next;
}

void participants_lose_session(struct weir_fleet *f)
{
	for (struct participant *p = f->participants; p != NULL; p = p->next) {
		p->ops->drop(p);
		p->ops->renew(p);
	}
	participants_forget_left(f);
}

void participants_free(struct weir_fleet *f)
{
	while (f->participants != NULL) {
		struct participant *p = f->participants;

		f->participants = p->next;
		p->ops->drop(p);
		p->ops->free(p);
	}
	participants_forget_left(f);
}

static void *watch(void *arg)
{
	struct weir_fleet *f = arg;

	pthread_mutex_lock(&f->owning);
	while (f->watches) {
		for (struct participant *p = f->participants; p != NULL; p = p->next)
			p->ops->lapse(p);
		f->watch_next = next_of_all(f);
		(void)fleet_wait(f, f->watch_next, &f->sooner_over, &f->owning);
	}
	pthread_mutex_unlock(&f->owning);
	return NULL;
}

int participants_watch(struct weir_fleet *f)
{
	int r;

	if (f->manual || f->watches)
		return 0;
	f->watches = true;
	r = fleet_thread(f, &f->watcher, watch);
	if (r != 0)
		f->watches = false;
	return r;
}

void participants_unwatch(struct weir_fleet *f)
{
	if (!f->watches)
		return;
	pthread_mutex_lock(&f->owning);
	f->watches = false;
	pthread_cond_signal(&f->sooner_over);
	pthread_mutex_unlock(&f->owning);
	pthread_join(f->watcher, NULL);
}
