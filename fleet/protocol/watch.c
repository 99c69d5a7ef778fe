/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watching the store.
 *
 * The thread waits on a watch of the store, and hands on what is reported; it knows no share. The
 * fleet's thread decides what a report means. A change that the last reading has shown, or that the
 * fleet has made itself, means nothing. One of the limit's configuration, or of drained members, lets
 * the share be refreshed. One by which other members may have given units back does so if the share
 * wants more than it has: members that have what they want read nothing because others change.
 *
 * Early refreshes of a fleet are PACE_PART of an interval apart, from PACE_MIN to PACE_MAX, and up to
 * eight times as far while they bring a share that lacks units none. They are spread over some
 * milliseconds for each member of the limit, since all members learn of a change at once.
 *
 * A member of a limit with an allocator watches its own grant, and not the rows of others.
 *
 * What is watched follows from what shares lack, so that a store that sends the values of rows, as
 * etcd does, sends the ledger to members that wait for it only. A watch that is opened begins with
 * an early refresh: changes may have been missed before.
 */

#include "fleet/protocol/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet/protocol/share.h"
#include "fleet/store/store.h"

#define PACE_PART   8
#define PACE_MIN    (50 * WEIR_MS)
#define PACE_MAX    WEIR_S
#define VAIN_MAX    3             /* how often the pace is halved */
#define SPREAD      (2 * WEIR_MS) /* for each member */
#define UNNEEDED    10            /* refreshes, before less is watched */
#define RETRY_MIN   (100 * WEIR_MS)
#define RETRY_SHIFT 5 /* how often it doubles */
#define DENIED      9 /* the same, where the server refuses the client */

void watching_init(struct weir_fleet *f, const struct weir_fleet_config *config)
{
	f->watching.enabled = config->poll_only == 0 && !f->manual;
	pthread_mutex_init(&f->watching.lock, NULL);
	pthread_cond_init(&f->watching.wake, NULL);
}

static void free_aims(struct watched *aims)
{
	if (aims != NULL)
		watched_free(aims);
	free(aims);
}

void watching_free(struct weir_fleet *f)
{
	struct watching *w = &f->watching;

	free_aims(w->next);
	free(w->notices);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
}

/* The thread. */

/* Hand a report on. */
static void hand_on(struct weir_fleet *f, const struct weir_store_change *change)
{
	struct watching *w = &f->watching;

	pthread_mutex_lock(&w->lock);
	if (change == NULL || change->key[0] == '\0')
		notices_any(w->notices);
	else
		notices_add(w->notices, change->key, change->version);
	pthread_mutex_unlock(&w->lock);
	fleet_ring(f);
}

/* Wait, unless there is something to do. Times get longer, and differ from thread to thread. */
static void pause_after(struct watching *w, unsigned failures, int r)
{
	const unsigned most = r == -EACCES ? DENIED : RETRY_SHIFT;
	const unsigned doubled = failures < most ? failures : most;
	struct timespec until;
	weir_time end;

	clock_gettime(CLOCK_MONOTONIC, &until);
	end = (weir_time)until.tv_sec * WEIR_S + (weir_time)until.tv_nsec;
	end += (RETRY_MIN << doubled) + (weir_time)until.tv_nsec % (RETRY_MIN << doubled);
	until = (struct timespec){.tv_sec = (time_t)(end / WEIR_S),
				  .tv_nsec = (long)(end % WEIR_S)};
	pthread_mutex_lock(&w->lock);
	while (!w->ends &&
	       pthread_cond_clockwait(&w->wake, &w->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&w->lock);
}

/* What to watch from now on; NULL: the thread is to end. */
static struct watched *next_aims(struct watching *w, struct watched *aims)
{
	pthread_mutex_lock(&w->lock);
	while (!w->ends && w->next == NULL && aims == NULL)
		pthread_cond_wait(&w->wake, &w->lock);
	if (w->next != NULL || w->ends) {
		free_aims(aims);
		aims = w->next;
		w->next = NULL;
	}
	if (w->ends) {
		free_aims(aims);
		aims = NULL;
	}
	pthread_mutex_unlock(&w->lock);
	return aims;
}

/* Whether the thread is to go on with the watch that it has. Publishes it, to be woken. */
static bool keeps(struct watching *w, struct weir_store_watch *watch)
{
	bool keeps;

	pthread_mutex_lock(&w->lock);
	keeps = !w->ends && w->next == NULL;
	w->watch = keeps ? watch : NULL;
	pthread_mutex_unlock(&w->lock);
	return keeps;
}

static void listen(struct weir_fleet *f, struct weir_store_watch *watch)
{
	struct watching *w = &f->watching;
	struct weir_store_change change;
	unsigned failures = 0;

	while (keeps(w, watch)) {
		const int r = weir_store_watch_wait(watch, WEIR_FOREVER, &change);

		if (r == 0) {
			failures = 0;
			hand_on(f, &change);
		} else if (r != -ECANCELED && r != -ETIMEDOUT) {
			pause_after(w, failures++, r);
		}
	}
}

static void *run(void *arg)
{
	struct weir_fleet *f = arg;
	struct watching *w = &f->watching;
	struct watched *aims = NULL;
	unsigned failures = 0;
	int r = 0;

	while (r != -ENOTSUP && (aims = next_aims(w, aims)) != NULL) {
		struct weir_store_watch *watch;

		r = weir_store_watch_open(f->store, (const char *const *)aims->prefixes,
					  aims->count, &watch, NULL, 0);
		if (r == 0) {
			failures = 0;
			hand_on(f, NULL);
			listen(f, watch);
			weir_store_watch_close(watch);
		} else if (r != -ENOTSUP) {
			pause_after(w, failures++, r);
		}
	}
	free_aims(aims);
	return NULL;
}

/* A region's fleet above is refreshed by its leader's rules alone. */
int watching_start(struct weir_fleet *f)
{
	struct watching *w = &f->watching;
	int r;

	w->enabled &= f->region == NULL;
	if (!w->enabled)
		return 0;
	w->notices = calloc(1, sizeof(*w->notices));
	if (w->notices == NULL)
		return -ENOMEM;
	r = fleet_thread(f, &w->thread, run);
	w->runs = r == 0;
	return r;
}

void watching_stop(struct weir_fleet *f)
{
	struct watching *w = &f->watching;

	if (!w->runs)
		return;
	pthread_mutex_lock(&w->lock);
	w->ends = true;
	pthread_cond_signal(&w->wake);
	if (w->watch != NULL)
		weir_store_watch_wake(w->watch);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->runs = false;
}

/* What is watched. */

static bool wants_more(struct weir_share *s)
{
	return share_wants(s) > weir_share_units(s);
}

static uint8_t aim_of(struct weir_share *s)
{
	uint8_t aim = AIM_LIMIT;

	if (s->limit.allocated)
		return AIM_LIMIT | AIM_GRANT;
	if (s->phase == SHARE_MEMBER && !s->drained && wants_more(s))
		aim |= AIM_UNITS | (s->lacks ? AIM_LINES : 0);
	return aim;
}

/* Whether the share is to be watched in another way. */
static bool aim_share(struct weir_share *s)
{
	const uint8_t aim = aim_of(s);
	const bool more = (aim & ~s->watch.aim) != 0 ||
			  ((aim & AIM_GRANT) != 0 && s->watch.id != s->id);

	s->watch.unneeded = aim == s->watch.aim ? 0 : s->watch.unneeded + 1;
	if (!more && s->watch.unneeded < UNNEEDED)
		return false;
	s->watch.aim = more && (aim & AIM_GRANT) == 0 ? aim | s->watch.aim : aim;
	s->watch.id = s->id;
	s->watch.unneeded = 0;
	return true;
}

static size_t prefixes_of(const struct weir_share *s, char (*texts)[KEY_ROOM])
{
	size_t count = 0;

	(void)snprintf(texts[count++], KEY_ROOM, "%s/cfg", s->name);
	(void)snprintf(texts[count++], KEY_ROOM, "%s/drain", s->name);
	if ((s->watch.aim & AIM_UNITS) != 0)
		(void)snprintf(texts[count++], KEY_ROOM, "%s/m/", s->name);
	if ((s->watch.aim & AIM_LINES) != 0)
		(void)snprintf(texts[count++], KEY_ROOM, "%s/led", s->name);
	if ((s->watch.aim & AIM_GRANT) != 0)
		member_key(s->name, "grant", s->watch.id, texts[count++]);
	return count;
}

#define PREFIXES_MAX ((size_t)4) /* of a share */
_Static_assert(PREFIXES_MAX *WEIR_FLEET_SHARES_MAX <= WEIR_STORE_WATCH_MAX, "all can be watched");

/* NULL: no memory. */
static struct watched *aims_of(const struct weir_fleet *f)
{
	char(*texts)[KEY_ROOM] = calloc(PREFIXES_MAX * f->count, sizeof(*texts));
	const char **prefixes = calloc(PREFIXES_MAX * f->count, sizeof(*prefixes));
	struct watched *aims = calloc(1, sizeof(*aims));
	size_t count = 0;
	bool good = texts != NULL && prefixes != NULL && aims != NULL;

	for (const struct weir_share *s = f->shares; s != NULL && good; s = s->next)
		count += prefixes_of(s, texts + count);
	for (size_t i = 0; i < count; i++)
		prefixes[i] = texts[i];
	good = good && watched_set(aims, prefixes, count);
	free(prefixes);
	free(texts);
	if (good)
		return aims;
	free(aims);
	return NULL;
}

/* Without memory it goes on as it is, and the next refresh tries again. */
void watching_aim(struct weir_fleet *f)
{
	struct watching *w = &f->watching;
	bool other = w->shares != f->count;
	struct watched *aims;

	if (!w->runs || f->count == 0)
		return;
	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		other |= aim_share(s);
	aims = other ? aims_of(f) : NULL;
	if (aims == NULL) {
		w->shares = other ? 0 : w->shares;
		return;
	}
	w->shares = f->count;
	pthread_mutex_lock(&w->lock);
	free_aims(w->next);
	w->next = aims;
	pthread_cond_signal(&w->wake);
	if (w->watch != NULL)
		weir_store_watch_wake(w->watch);
	pthread_mutex_unlock(&w->lock);
}

/* What reports mean. */

void watching_own(struct weir_fleet *f, uint64_t version)
{
	f->watching.own[f->watching.own_count++ % OWN_COMMITS] = version;
}

static bool is_own(const struct watching *w, uint64_t version)
{
	for (unsigned i = 0; i < OWN_COMMITS; i++)
		if (w->own[i] == version)
			return true;
	return false;
}

/* rest: the key, without the limit's name. */
static void take_row(struct weir_share *s, const char *rest)
{
	if (strcmp(rest, "cfg") == 0 || strncmp(rest, "drain", strlen("drain")) == 0 ||
	    strncmp(rest, "grant/", strlen("grant/")) == 0)
		s->watch.changed = true;
	else
		s->watch.freed = true;
}

static void take_notice(struct weir_fleet *f, const struct notice *n)
{
	const bool any = n->key[0] == '\0';

	if (!any && is_own(&f->watching, n->version))
		return;
	for (struct weir_share *s = f->shares; s != NULL; s = s->next) {
		const size_t length = strlen(s->name);

		if (any)
			s->watch.changed = true;
		else if (n->version > s->watch.seen && strncmp(n->key, s->name, length) == 0 &&
			 n->key[length] == '/')
			take_row(s, n->key + length + 1);
	}
}

static weir_dur pace_of(weir_dur interval)
{
	const weir_dur pace = interval / PACE_PART;

	return pace < PACE_MIN ? PACE_MIN : pace > PACE_MAX ? PACE_MAX : pace;
}

static void set_due(struct weir_share *s, weir_time now, weir_dur interval)
{
	const struct weir_fleet *f = s->fleet;
	const weir_dur pace = pace_of(interval);
	const weir_dur spread = s->members < pace / SPREAD ? s->members * SPREAD : pace;
	const weir_dur apart = s->watch.changed ? pace : pace << s->watch.vain;
	weir_time at = now;

	if (f->watching.earlier != 0 && f->watching.earlier + apart > at)
		at = f->watching.earlier + apart;
	s->watch.due = at + fleet_draw(s->fleet, spread + 1);
}

static bool needs_refresh(struct weir_share *s)
{
	return s->watch.changed || (s->watch.freed && !s->drained && wants_more(s));
}

void watching_take(struct weir_fleet *f, weir_time now, weir_dur interval)
{
	struct watching *w = &f->watching;
	struct notice n;
	bool more = w->runs;

	while (more) {
		pthread_mutex_lock(&w->lock);
		more = notices_take(w->notices, &n);
		pthread_mutex_unlock(&w->lock);
		if (more)
			take_notice(f, &n);
	}
	for (struct weir_share *s = f->shares; s != NULL && w->runs; s = s->next) {
		if (s->watch.freed && !needs_refresh(s))
			s->watch.freed = false;
		if (s->watch.due == 0 && needs_refresh(s))
			set_due(s, now, interval);
	}
}

bool watching_asks(struct weir_fleet *f, weir_time now)
{
	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->watch.due != 0 && now >= s->watch.due)
			return true;
	return false;
}

weir_time watching_next(const struct weir_fleet *f)
{
	weir_time next = WEIR_FOREVER;

	for (const struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->watch.due != 0 && s->watch.due < next)
			next = s->watch.due;
	return next;
}

void watching_early(struct weir_fleet *f, weir_time now)
{
	f->watching.earlier = now;
	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->watch.freed) {
			const uint64_t units = weir_share_units(s);

			s->watch.vain = units > s->watch.units     ? 0
					: s->watch.vain < VAIN_MAX ? s->watch.vain + 1
								   : VAIN_MAX;
			s->watch.units = units;
		}
}

/* A change that could not be read is read later, and no more often than failed refreshes are tried. */
static void retry(struct weir_share *s, weir_time now, weir_dur interval)
{
	const unsigned failures = s->fleet->watching.failures;
	const weir_dur apart = pace_of(interval)
			       << (failures < RETRY_SHIFT ? failures : RETRY_SHIFT);

	s->watch.due = now + fleet_jitter(s->fleet, apart < interval / 4 ? apart : interval / 4);
}

void watching_refreshed(struct weir_fleet *f, bool failed)
{
	struct watching *w = &f->watching;

	w->failures = failed ? w->failures + 1 : 0;
	for (struct weir_share *s = f->shares; s != NULL; s = s->next) {
		s->watch.changed &= failed;
		s->watch.freed = false;
		s->watch.due = 0;
		if (s->watch.changed)
			retry(s, fleet_now(f), fleet_interval(f));
	}
	watching_aim(f);
}
