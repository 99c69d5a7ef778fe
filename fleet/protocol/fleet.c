/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening a fleet, its threads, and closing it.
 *
 * One thread talks to the store, and may wait a long time for it. A second thread only notifies the
 * application of leases that end meanwhile.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "fleet/cancel.h"
#include "fleet/protocol/allocator.h"
#include "fleet/protocol/share.h"
#include "fleet/store/store.h"

/* Refreshes per lease, at least: a lease must outlast a refresh that is late or lost. */
#define REFRESHES_MIN 2

/* A regular refresh that is due within that part of an interval comes in place of one asked for. */
#define SOON_PART 3

void weir_fleet_config_init_sized(struct weir_fleet_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static void count_demand(struct weir_fleet *f, weir_time now)
{
	uint64_t ticks;

	if (now < f->next_tick)
		return;
	ticks = (now - f->next_tick) / DEMAND_TICK + 1;
	f->next_tick += ticks * DEMAND_TICK;
	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		demand_count(&s->measured, atomic_load_explicit(&s->demand, memory_order_relaxed),
			     ticks);
}

static void end_leases(struct weir_fleet *f, weir_time now)
{
	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->until != 0 && now >= s->until) {
			share_drop(s);
			share_note(s);
		}
	f->refresh_now |= participants_lapse(f);
}

weir_dur fleet_interval(const struct weir_fleet *f)
{
	weir_dur pace = f->refresh;

	for (const struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->longest < f->lease && s->longest / 3 < pace)
			pace = s->longest / 3;
	for (const struct participant *p = f->participants; p != NULL; p = p->next)
		if (p->longest < f->lease && p->longest / 3 < pace)
			pace = p->longest / 3;
	return pace;
}

weir_dur fleet_jitter(struct weir_fleet *f, weir_dur time)
{
	return time / 10 * 8 + fleet_draw(f, time / 2 + 1);
}

/*
 * The next regular refresh is after an interval, or a quarter of that after an error; but once old
 * leases must have ended, members that have waited for that do not wait longer.
 */
static weir_time after_refresh(struct weir_fleet *f, weir_time began, bool failed)
{
	const weir_dur pace = fleet_interval(f);
	weir_time next = began + fleet_jitter(f, failed ? pace / 4 : pace);

	for (const struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->learning && s->learned >= began && s->learned < next)
			next = s->learned + fleet_draw(f, pace / ASKS_MAX + 1);
	return next;
}

static int refresh(struct weir_fleet *f)
{
	const weir_time began = fleet_now(f);
	int r = fleet_refresh(f);

	fleet_report(f, began, r != 0);
	f->refresh_now = false;
	f->next_refresh = after_refresh(f, began, r != 0 && !f->refused);
	watching_refreshed(f, r != 0);
	if (r != 0)
		allocators_postpone(f, f->next_refresh);
	end_leases(f, fleet_now(f));
	return r;
}

static bool is_asked(struct weir_fleet *f, weir_time now)
{
	const weir_dur pace = fleet_interval(f);
	bool asked = false;

	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		asked |= share_asks(s, now, pace);
	return asked;
}

/*
 * A refresh between two regular ones. These come when they would have come without it; but if the
 * next one would come soon, it comes now.
 */
static void ask(struct weir_fleet *f)
{
	const weir_time regular = f->next_refresh;

	if (regular < fleet_now(f) + fleet_interval(f) / SOON_PART) {
		(void)refresh(f);
		return;
	}
	f->asks = true;
	if (refresh(f) == 0 || f->next_refresh > regular)
		f->next_refresh = regular;
	f->asks = false;
}

/* Each tick, or each second while nothing is wanted. */
static weir_time next_look(const struct weir_fleet *f)
{
	bool busy = false;

	for (const struct weir_share *s = f->shares; s != NULL; s = s->next)
		busy |= share_is_busy(s);
	return busy ? f->next_tick : f->next_tick + WEIR_S - DEMAND_TICK;
}

static weir_time next_event(struct weir_fleet *f)
{
	const weir_time look = next_look(f);
	weir_time next = f->next_refresh < look ? f->next_refresh : look;
	const weir_time over = participants_next(f), allocates = allocators_next(f);

	if (allocates < next)
		next = allocates;

	for (const struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->until != 0 && s->until < next)
			next = s->until;
	if (watching_next(f) < next)
		next = watching_next(f);
	return over < next ? over : next;
}

static weir_time step(struct weir_fleet *f)
{
	const weir_time now = fleet_now(f);

	count_demand(f, now);
	end_leases(f, now);
	watching_take(f, now, fleet_interval(f));
	if (f->refresh_now || now >= f->next_refresh) {
		(void)refresh(f);
	} else if (is_asked(f, now)) {
		ask(f);
	} else if (watching_asks(f, now)) {
		watching_early(f, now);
		ask(f);
	} else {
		allocators_hurry(f, now);
	}
	participants_hurry(f, now);
	return next_event(f);
}

weir_time weir_fleet_step(struct weir_fleet *f)
{
	const int cancel = cancel_hold();
	weir_time next;

	fair_lock_take(&f->lock);
	next = step(f);
	fair_lock_release(&f->lock);
	changes_deliver(f);
	cancel_release(cancel);
	return next;
}

int weir_fleet_refresh(struct weir_fleet *f)
{
	const int cancel = cancel_hold();
	int r;

	fair_lock_take(&f->lock);
	count_demand(f, fleet_now(f));
	end_leases(f, fleet_now(f));
	r = refresh(f);
	fair_lock_release(&f->lock);
	changes_deliver(f);
	cancel_release(cancel);
	return r;
}

/* In that time, at most a second from now, by CLOCK_MONOTONIC. */
static struct timespec wait_end(weir_dur time)
{
	struct timespec now;
	weir_time end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = (weir_time)now.tv_sec * WEIR_S + (weir_time)now.tv_nsec;
	end += time < WEIR_S ? time : WEIR_S;
	return (struct timespec){.tv_sec = (time_t)(end / WEIR_S), .tv_nsec = (long)(end % WEIR_S)};
}

bool fleet_wait(struct weir_fleet *f, weir_time next, pthread_cond_t *signal, pthread_mutex_t *lock)
{
	const weir_time now = fleet_now(f);
	struct timespec until;

	if (next <= now)
		return true;
	until = wait_end(next - now);
	return pthread_cond_clockwait(signal, lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT;
}

/* The exchanges order what rings before what the thread then looks at. */
void fleet_ring(struct weir_fleet *f)
{
	if (!atomic_exchange_explicit(&f->rung, true, memory_order_acq_rel))
		sem_post(&f->bell);
}

/* Wait until next, at most a second, or until the bell rings. */
static void wait_for_bell(struct weir_fleet *f, weir_time next)
{
	const weir_time now = fleet_now(f);

	if (next > now) {
		const struct timespec until = wait_end(next - now);

		(void)sem_clockwait(&f->bell, CLOCK_MONOTONIC, &until);
	}
	(void)atomic_exchange_explicit(&f->rung, false, memory_order_acq_rel);
}

static void *run(void *arg)
{
	struct weir_fleet *f = arg;

	fair_lock_take(&f->lock);
	while (!f->ending) {
		weir_time next;

		(void)step(f);
		/* If the store took long to fail, the next refresh is due, and nothing is waited for. */
		fair_lock_yield(&f->lock);
		next = next_event(f);
		if (f->ending || f->refresh_now)
			continue;
		fair_lock_release(&f->lock);
		wait_for_bell(f, next);
		fair_lock_take(&f->lock);
	}
	fair_lock_release(&f->lock);
	return NULL;
}

/* Notify shares whose lease has ended. Returns when the next lease ends. */
static weir_time notify_expired(const struct weir_fleet *f)
{
	const weir_time now = fleet_now(f);
	weir_time next = WEIR_FOREVER;

	for (struct weir_share *s = f->shares; s != NULL; s = s->next) {
		const weir_time deadline = atomic_load_explicit(&s->deadline, memory_order_acquire);

		if (deadline != 0 && now >= deadline) {
			share_notify(s);
			share_note(s);
		} else if (deadline != 0 && deadline < next)
			next = deadline;
	}
	return next;
}

static void *run_notifier(void *arg)
{
	struct weir_fleet *f = arg;

	pthread_mutex_lock(&f->notify_lock);
	while (!f->notifier_ends) {
		f->notify_next = notify_expired(f);
		(void)fleet_wait(f, f->notify_next, &f->notify_wake, &f->notify_lock);
	}
	pthread_mutex_unlock(&f->notify_lock);
	return NULL;
}

int fleet_thread(struct weir_fleet *f, pthread_t *thread, void *(*work)(void *))
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(thread, NULL, work, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static void end_notifier(struct weir_fleet *f)
{
	pthread_mutex_lock(&f->notify_lock);
	f->notifier_ends = true;
	pthread_cond_signal(&f->notify_wake);
	pthread_mutex_unlock(&f->notify_lock);
	pthread_join(f->notifier, NULL);
}

static int start_threads(struct weir_fleet *f)
{
	int r = fleet_thread(f, &f->notifier, run_notifier);

	if (r != 0)
		return r;
	r = changes_start(f);
	if (r == 0)
		r = watching_start(f);
	if (r == 0)
		r = fleet_thread(f, &f->thread, run);
	if (r != 0) {
		watching_stop(f);
		changes_stop(f);
		end_notifier(f);
	}
	return r;
}

int fleet_open_store(const struct weir_fleet_config *config, struct weir_store **store,
		     struct weir_store **own, char *why)
{
	struct weir_store_config how;
	int r;

	*store = config->store;
	*own = NULL;
	if (*store != NULL)
		return 0;
	if (config->store_config != NULL && config->store_config->size != sizeof(how))
		return store_say(-EINVAL, why,
				 "The store's configuration has the size of another version.");
	weir_store_config_init(&how);
	if (config->store_config != NULL)
		how = *config->store_config;
	if (config->address != NULL)
		how.address = config->address;
	how.lazy = 1;
	r = weir_store_open(&how, own, why, WHY_SIZE);
	*store = *own;
	return r;
}

static int set_times(struct weir_fleet *f, const struct weir_fleet_config *config, char *why)
{
	struct weir_store_caps caps;

	weir_store_caps_take(f->store, &caps);
	f->lease = config->lease != 0             ? config->lease
		   : caps.ttl_min > LEASE_DEFAULT ? caps.ttl_min
						  : LEASE_DEFAULT;
	f->refresh = config->refresh != 0 ? config->refresh : f->lease / 3;
	if (f->lease < caps.ttl_min)
		return store_say(-EINVAL, why, "lease is shorter than the store allows, %llu ms.",
				 (unsigned long long)(caps.ttl_min / WEIR_MS));
	f->learning = config->learning != 0 ? config->learning : LEARNING_DEFAULT;
	if (f->learning < LEASE_MIN || f->learning > LEASE_MAX)
		return store_say(-EINVAL, why, "learning is not from 20 ms to an hour.");
	if (f->lease < LEASE_MIN || f->lease > LEASE_MAX)
		return store_say(-EINVAL, why, "lease is not from 20 ms to an hour.");
	if (f->refresh > f->lease / REFRESHES_MIN || f->refresh < WEIR_MS)
		return store_say(-EINVAL, why, "refresh is not from 1 ms to half of the lease.");
	return 0;
}

static int check_config(const struct weir_fleet_config *config, char *why)
{
	if (config->size != sizeof(*config))
		return store_say(-EINVAL, why,
				 "The configuration has the size of another version.");
	if (config->clock != NULL && config->manual == 0)
		return store_say(-EINVAL, why, "A fleet with its own clock must be manual.");
	if (config->store != NULL && (config->address != NULL || config->store_config != NULL))
		return store_say(-EINVAL, why, "Both a store and an address are given.");
	if (config->label != NULL && !is_word(config->label, WEIR_FLEET_LABEL_MAX))
		return store_say(-EINVAL, why, "label is not 1 to %d letters, digits and -_.:@.",
				 WEIR_FLEET_LABEL_MAX);
	return 0;
}

void fleet_label_process(char label[LABEL_ROOM])
{
	char host[256] = "";

	/* A name that is cut may lack its terminator: the last byte of host stays 0. */
	(void)!gethostname(host, sizeof(host) - 1);
	label_of_process(host, (long)getpid(), label);
}

static void set_label(struct weir_fleet *f, const char *label)
{
	if (label != NULL)
		(void)snprintf(f->label, sizeof(f->label), "%s", label);
	else
		fleet_label_process(f->label);
}

static int set_up(struct weir_fleet *f, const struct weir_fleet_config *config, char *why)
{
	int r = fleet_open_store(config, &f->store, &f->own_store, why);

	if (r == 0)
		r = set_times(f, config, why);
	if (r != 0)
		return r;
	f->clock = config->clock;
	f->manual = config->manual != 0;
	set_label(f, config->label);
	f->random = config->seed;
	if (config->seed == 0 && getrandom(&f->random, sizeof(f->random), 0) != sizeof(f->random))
		return store_say(-EIO, why, "getrandom() failed.");
	f->next_refresh = fleet_now(f);
	f->next_tick = f->next_refresh + DEMAND_TICK;
	fair_lock_init(&f->lock);
	sem_init(&f->bell, 0, 0);
	pthread_mutex_init(&f->notify_lock, NULL);
	pthread_cond_init(&f->notify_wake, NULL);
	pthread_mutex_init(&f->report_lock, NULL);
	f->report.writable = true;
	changes_init(f, config);
	watching_init(f, config);
	pthread_mutex_init(&f->owning, NULL);
	pthread_cond_init(&f->sooner_over, NULL);
	return 0;
}

int fleet_prepare(const struct weir_fleet_config *config, struct weir_fleet **fleet, char *why)
{
	struct weir_fleet *f;
	int r = check_config(config, why);

	if (r != 0)
		return r;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	r = set_up(f, config, why);
	if (r != 0) {
		weir_store_close(f->own_store);
		free(f);
		return r;
	}
	*fleet = f;
	return 0;
}

int fleet_start(struct weir_fleet *f, char *why)
{
	const int r = f->manual ? 0 : start_threads(f);

	if (r != 0)
		return store_say(r, why, "A thread cannot be started.");
	f->runs = !f->manual;
	return 0;
}

void fleet_stop(struct weir_fleet *f)
{
	fair_lock_take(&f->lock);
	f->ending = true;
	fleet_ring(f);
	fair_lock_release(&f->lock);
	if (f->runs) {
		pthread_join(f->thread, NULL);
		watching_stop(f);
		end_notifier(f);
		changes_stop(f);
	}
	participants_unwatch(f);
	f->runs = false;
}

static int open_fleet(const struct weir_fleet_config *config, struct weir_fleet **fleet, char *why)
{
	struct weir_fleet *f = NULL;
	int r = fleet_prepare(config, &f, why);

	if (f == NULL)
		return r;
	r = fleet_start(f, why);
	if (r == 0)
		*fleet = f;
	else
		weir_fleet_close(f);
	return r;
}

int weir_fleet_open(const struct weir_fleet_config *config, struct weir_fleet **fleet, char *why,
		    size_t why_size)
{
	struct weir_fleet_config defaults;
	const int cancel = cancel_hold();
	char text[WHY_SIZE] = "";
	int r;

	*fleet = NULL;
	weir_fleet_config_init(&defaults);
	r = open_fleet(config != NULL ? config : &defaults, fleet, text);
	cancel_release(cancel);
	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}

static void close_fleet(struct weir_fleet *f)
{
	fleet_stop(f);
	participants_free(f);
	if (f->session != 0)
		(void)weir_store_end(f->store, f->session);
	fleet_forget_left(f);
	while (f->shares != NULL) {
		struct weir_share *s = f->shares;

		f->shares = s->next;
		share_free(s);
	}
	changes_free(f);
	watching_free(f);
	weir_store_close(f->own_store);
	pthread_cond_destroy(&f->sooner_over);
	pthread_mutex_destroy(&f->owning);
	pthread_mutex_destroy(&f->report_lock);
	pthread_cond_destroy(&f->notify_wake);
	pthread_mutex_destroy(&f->notify_lock);
	sem_destroy(&f->bell);
	fair_lock_destroy(&f->lock);
	free(f);
}

void weir_fleet_close(struct weir_fleet *f)
{
	const int cancel = cancel_hold();

	if (f != NULL)
		close_fleet(f);
	cancel_release(cancel);
}
