/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fleet and its shares report about themselves.
 *
 * The report is copied when it changes: at the end of a refresh, and when a lease begins or ends.
 * The lock for that is held only for copying, so a caller never waits for the store or for a thread
 * that waits for the store. What depends on the clock is computed in the caller's thread.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fleet/protocol/mismatch.h"
#include "fleet/protocol/refresh.h"

static enum weir_share_state state_of(const struct weir_share *s)
{
	if (s->drained)
		return WEIR_SHARE_DRAINED;
	if (!s->fleet->reachable)
		return WEIR_SHARE_HOLDING;
	if (s->fleet->refused)
		return WEIR_SHARE_FROZEN;
	if (s->learning)
		return WEIR_SHARE_LEARNING;
	return s->surplus ? WEIR_SHARE_SURPLUS : WEIR_SHARE_LEASED;
}

static enum weir_share_state state_without_lease(const struct weir_share *s)
{
	if (s->drained)
		return WEIR_SHARE_DRAINED;
	return s->members == 0 ? WEIR_SHARE_LOCAL : WEIR_SHARE_LOST;
}

void share_report(struct weir_share *s)
{
	struct share_report now = {
		.info =
			{
				.state = state_of(s),
				.wants = s->wants_written,
				.capacity = s->limit.capacity + s->carried,
				.effective = s->effective,
				.fence = s->fence,
				.members = s->members,
				.deadline = s->until,
				.conflicts = s->conflicts,
				.refreshes = s->refreshes,
			},
		.without_lease = state_without_lease(s),
		.seats = s->limit.members,
		.lease = s->limit.lease * WEIR_MS,
		.longest = s->longest,
		.untemplated = s->untemplated,
	};

	const struct member_record own = share_record(s, 0);

	mismatch_print(&own.own, &s->limit, now.info.mismatch);
	memcpy(now.key, s->own_key, sizeof(now.key));
	pthread_mutex_lock(&s->fleet->report_lock);
	s->report = now;
	pthread_mutex_unlock(&s->fleet->report_lock);
}

static bool is_leased(const struct weir_share *s, const struct share_report *report)
{
	return report->info.deadline != 0 && fleet_now(s->fleet) < report->info.deadline;
}

void fleet_report(struct weir_fleet *f, weir_time began, bool failed)
{
	const weir_time now = fleet_now(f);
	struct weir_store_caps caps;

	weir_store_caps_take(f->store, &caps);
	pthread_mutex_lock(&f->report_lock);
	f->report.up = f->reachable;
	f->report.writable = !f->refused;
	f->report.durable = caps.durable != 0;
	f->report.refreshes++;
	f->report.failures += failed;
	f->report.took = now - began;
	if (!failed)
		f->report.succeeded = now;
	pthread_mutex_unlock(&f->report_lock);
}

void fleet_count_session(struct weir_fleet *f)
{
	pthread_mutex_lock(&f->report_lock);
	f->report.sessions++;
	pthread_mutex_unlock(&f->report_lock);
}

const char *weir_share_state_name(enum weir_share_state state)
{
	static const char *const names[] = {
		[WEIR_SHARE_LOCAL] = "local",     [WEIR_SHARE_LEASED] = "leased",
		[WEIR_SHARE_HOLDING] = "holding", [WEIR_SHARE_LEARNING] = "learning",
		[WEIR_SHARE_LOST] = "lost",       [WEIR_SHARE_DRAINED] = "drained",
		[WEIR_SHARE_FROZEN] = "frozen",   [WEIR_SHARE_SURPLUS] = "surplus",
	};

	return (unsigned)state <= WEIR_SHARE_SURPLUS ? names[state] : NULL;
}

/* Explain why the lease is not the one that this process is configured with. */
static void compare_leases(const struct share_report *report, weir_dur own, char *text, size_t size)
{
	const double seconds = (double)own / (double)WEIR_S;

	if (report->lease != own / WEIR_MS * WEIR_MS)
		(void)snprintf(text, size,
			       "The limit has leases of %g s, and this process of %g s: the "
			       "shorter one counts.",
			       (double)report->lease / (double)WEIR_S, seconds);
	else if (report->longest < own)
		(void)snprintf(text, size,
			       "The store can forget: the lease is %g s, not %g s, so that it ends "
			       "within the learning time.",
			       (double)report->longest / (double)WEIR_S, seconds);
}

/* A reason that the state has by itself replaces the fleet's last error. */
static void give_reason(const struct share_report *report, weir_dur lease,
			struct weir_share_info *info)
{
	const size_t size = sizeof(info->reason);

	if (info->state == WEIR_SHARE_DRAINED)
		(void)snprintf(info->reason, size, "An operator has drained this member.");
	else if (info->state == WEIR_SHARE_LEARNING)
		(void)snprintf(info->reason, size,
			       "The store may have forgotten leases: those end first.");
	else if (info->state == WEIR_SHARE_SURPLUS)
		(void)snprintf(
			info->reason, size,
			"There are %u members, and units are reserved for %u: this one joined "
			"later, and gets only what is shared.",
			(unsigned)info->members, (unsigned)report->seats);
	else if (info->reason[0] != '\0')
		return;
	else if (info->state == WEIR_SHARE_LOST)
		(void)snprintf(info->reason, size,
			       "The lease has ended, and no request has renewed it since.");
	else if (info->mismatch[0] != '\0')
		(void)snprintf(info->reason, size, "%s", info->mismatch);
	else if (report->untemplated)
		(void)snprintf(info->reason, size,
			       "The templates could not be read when this limit was made: they are "
			       "damaged, of another format version, or not accessible.");
	else if (info->state != WEIR_SHARE_LOCAL)
		compare_leases(report, lease, info->reason, size);
}

void share_info(const struct weir_share *s, struct weir_share_info *info)
{
	*info = s->report.info;
	info->units = weir_share_units(s);
	if (!is_leased(s, &s->report))
		info->state = s->report.without_lease;
	(void)snprintf(info->reason, sizeof(info->reason), "%s", s->fleet->why);
	give_reason(&s->report, s->fleet->lease, info);
}

void weir_share_info_take(struct weir_share *s, struct weir_share_info *info)
{
	const size_t size = info->size;
	struct weir_share_info full;

	pthread_mutex_lock(&s->fleet->report_lock);
	share_info(s, &full);
	pthread_mutex_unlock(&s->fleet->report_lock);
	full.size = size;
	memcpy(info, &full, size < sizeof(full) ? size : sizeof(full));
}

int weir_share_fence(struct weir_share *s, struct weir_store_check *check,
		     char key[WEIR_SHARE_KEY_SIZE])
{
	struct share_report report;

	pthread_mutex_lock(&s->fleet->report_lock);
	report = s->report;
	pthread_mutex_unlock(&s->fleet->report_lock);
	if (report.info.fence == 0 || !is_leased(s, &report))
		return -ESTALE;
	memcpy(key, report.key, sizeof(report.key));
	*check = (struct weir_store_check){key, WEIR_STORE_CHECK_MADE, report.info.fence};
	return 0;
}

int fleet_say(struct weir_fleet *f, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&f->report_lock);
	(void)vsnprintf(f->why, sizeof(f->why), format, args);
	pthread_mutex_unlock(&f->report_lock);
	va_end(args);
	return r;
}

int fleet_fail_of(struct weir_fleet *f, struct weir_store *store, int r)
{
	char why[sizeof(f->why)];

	weir_store_error(store, why, sizeof(why));
	return fleet_say(f, r, "%s", why);
}

int fleet_fail(struct weir_fleet *f, int r)
{
	f->refused |= r == -ENOSPC || r == -EACCES;
	return fleet_fail_of(f, f->store, r);
}

void weir_fleet_error(struct weir_fleet *f, char *text, size_t size)
{
	if (size == 0)
		return;
	pthread_mutex_lock(&f->report_lock);
	(void)snprintf(text, size, "%s", f->why);
	pthread_mutex_unlock(&f->report_lock);
}
