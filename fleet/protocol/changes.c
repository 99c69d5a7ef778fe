/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of the states of shares.
 *
 * A change, of the state or of whether the configuration differs, is noted at the end of each
 * refresh, and when a lease ends. What a share is in the middle of a refresh is not a state: it
 * may have dropped its units, and be about to get them back. The callback is called later, without
 * a lock, so that it may use the fleet: by a thread that does nothing else or, in a manual fleet,
 * by the caller, at the end of its step.
 */

#include "fleet/protocol/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/share.h"

/* A change, with copies of its texts: the share may be gone when the callback is called. */
struct change {
	struct change *next;
	struct weir_share_change public;
	char name[WEIR_SHARE_NAME_MAX + 1];
	char reason[sizeof(((struct weir_share_info *)NULL)->reason)];
};

void changes_init(struct weir_fleet *f, const struct weir_fleet_config *config)
{
	f->changes.call = config->on_change;
	f->changes.arg = config->on_change_arg;
	f->changes.end = &f->changes.first;
	pthread_cond_init(&f->changes.wake, NULL);
}

/* Take the first one. report_lock is held. */
static struct change *take(struct changes *changes)
{
	struct change *c = changes->first;

	changes->first = c->next;
	if (changes->first == NULL)
		changes->end = &changes->first;
	changes->count--;
	return c;
}

void changes_free(struct weir_fleet *f)
{
	while (f->changes.first != NULL)
		free(take(&f->changes));
	pthread_cond_destroy(&f->changes.wake);
}

/* Without memory, or with too many in the list, the change is only counted. report_lock is held. */
static void append(struct changes *changes, const struct weir_share *s,
		   const struct weir_share_info *info)
{
	struct change *c = changes->count < CHANGES_WAITING_MAX ? malloc(sizeof(*c)) : NULL;

	if (c == NULL) {
		changes->missed++;
		return;
	}
	memcpy(c->name, s->name, sizeof(c->name));
	memcpy(c->reason, info->reason, sizeof(c->reason));
	c->next = NULL;
	c->public = (struct weir_share_change){
		.name = c->name,
		.from = s->noted,
		.to = info->state,
		.units = info->units,
		.time = fleet_now(s->fleet),
		.missed = changes->missed,
		.reason = c->reason,
	};
	changes->missed = 0;
	*changes->end = c;
	changes->end = &c->next;
	changes->count++;
	pthread_cond_signal(&changes->wake);
}

void share_note(struct weir_share *s)
{
	struct weir_fleet *f = s->fleet;
	struct weir_share_info info;

	pthread_mutex_lock(&f->report_lock);
	share_info(s, &info);
	if (info.state != s->noted || (info.mismatch[0] != '\0') != s->mismatch_noted) {
		if (f->changes.call != NULL)
			append(&f->changes, s, &info);
		s->changes += info.state != s->noted;
		s->noted = info.state;
		s->mismatch_noted = info.mismatch[0] != '\0';
	}
	pthread_mutex_unlock(&f->report_lock);
}

/* Call the callback for all in the list, one at a time. report_lock is held, except meanwhile. */
static void deliver(struct weir_fleet *f)
{
	struct changes *changes = &f->changes;

	while (changes->first != NULL && !changes->ends) {
		struct change *c = take(changes);

		pthread_mutex_unlock(&f->report_lock);
		changes->call(changes->arg, &c->public);
		free(c);
		pthread_mutex_lock(&f->report_lock);
	}
}

/* A step within the callback, or in another thread, leaves the rest to the first one. */
void changes_deliver(struct weir_fleet *f)
{
	if (!f->manual || f->changes.call == NULL)
		return;
	pthread_mutex_lock(&f->report_lock);
	if (!f->changes.busy) {
		f->changes.busy = true;
		deliver(f);
		f->changes.busy = false;
	}
	pthread_mutex_unlock(&f->report_lock);
}

static void *run(void *arg)
{
	struct weir_fleet *f = arg;

	pthread_mutex_lock(&f->report_lock);
	while (!f->changes.ends) {
		deliver(f);
		if (!f->changes.ends)
			pthread_cond_wait(&f->changes.wake, &f->report_lock);
	}
	pthread_mutex_unlock(&f->report_lock);
	return NULL;
}

int changes_start(struct weir_fleet *f)
{
	int r = 0;

	if (f->changes.call != NULL)
		r = fleet_thread(f, &f->changes.thread, run);
	f->changes.runs = f->changes.call != NULL && r == 0;
	return r;
}

void changes_stop(struct weir_fleet *f)
{
	if (!f->changes.runs)
		return;
	pthread_mutex_lock(&f->report_lock);
	f->changes.ends = true;
	pthread_cond_signal(&f->changes.wake);
	pthread_mutex_unlock(&f->report_lock);
	pthread_join(f->changes.thread, NULL);
	f->changes.runs = false;
}
