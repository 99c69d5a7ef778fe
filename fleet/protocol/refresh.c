/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A refresh: keep the session, read all limits, plan, commit.
 *
 * One request reads up to 128 limits of the process, and also keeps the session; one commit writes
 * up to 42 of them (commit.c). A share that shrinks does so before the commit; a share that grows
 * does so once the commit is acknowledged. After a conflict, all of the batch is read again. If a
 * commit is not answered, the share uses the lesser of the old and the new line, until the ledger
 * has another version: what the ledger says then is true. If the store refuses a commit, nothing
 * was given up, and the line is used as it was.
 *
 * The lease of a share is extended only if the ledger was read after the request was sent that kept
 * the session. Otherwise a member that can keep its session, but cannot read, would never see that
 * the capacity was cut.
 */

#include "fleet/protocol/refresh.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fleet/protocol/allocator.h"
#include "fleet/protocol/region.h"
#include "fleet/protocol/templates.h"

#define ATTEMPTS 8

static bool take(void *arg, const struct weir_store_row *row)
{
	struct batch *b = arg;

	for (size_t i = 0; i < b->count; i++) {
		struct weir_share *s = b->shares[i];
		const size_t length = strlen(s->name);

		if (strncmp(row->key, s->name, length) == 0 && row->key[length] == '/' &&
		    !view_take(&s->view, row->key + length + 1, row))
			b->full = true;
	}
	return !b->full;
}

/*
 * A member of an allocated limit reads the same number of rows, however many members there are.
 * Others read all rows of the limit.
 */
#define NARROW_ROWS 9

static size_t rows_of(const struct weir_share *s)
{
	return s->limit.allocated ? NARROW_ROWS : 1;
}

static size_t put_prefixes(struct weir_share *s, char prefix[NARROW_ROWS][KEY_ROOM + 1])
{
	static const char *const common[] = {"cfg", LEARNING_KEY, "grants", "allocator",
					     DRAINED_KEY};
	size_t count = 0;

	s->narrow = s->limit.allocated;
	if (!s->narrow) {
		(void)snprintf(prefix[0], KEY_ROOM + 1, "%s/", s->name);
		return 1;
	}
	for (; count < sizeof(common) / sizeof(common[0]); count++)
		(void)snprintf(prefix[count], KEY_ROOM + 1, "%s/%s=", s->name, common[count]);
	(void)snprintf(prefix[count++], KEY_ROOM + 1, "%s=", s->own_key);
	(void)snprintf(prefix[count++], KEY_ROOM + 1, "%s=", s->drain_key);
	(void)snprintf(prefix[count++], KEY_ROOM + 1, "%s/grant/%016" PRIx64 "=", s->name, s->id);
	if (s->last_id != 0 && s->last_id != s->id)
		(void)snprintf(prefix[count++], KEY_ROOM + 1, "%s=", s->last_key);
	return count;
}

static int read_batch(struct weir_fleet *f, struct batch *b, struct weir_store_view *view)
{
	char prefix[READ_MAX + NARROW_ROWS][KEY_ROOM + 1];
	const char *prefixes[READ_MAX];
	size_t count = 0;
	int r;

	for (size_t i = 0; i < b->count; i++) {
		count += put_prefixes(b->shares[i], prefix + count);
		view_clear(&b->shares[i]->view);
	}
	for (size_t i = 0; i < count; i++)
		prefixes[i] = prefix[i];
	b->asked = fleet_now(f);
	r = session_read(f, prefixes, count, take, b, view);
	if (r != 0)
		return fleet_fail(f, r);
	return b->full ? -ENOMEM : 0;
}

/*
 * Units that are held by a lease of a session that is gone are held on only if the store may have
 * forgotten leases: then it has not granted them to another member yet.
 */
static void settle_claims(struct weir_share *s, weir_time asked, const struct weir_store_view *view)
{
	const weir_dur lease = s->limit.lease * WEIR_MS;
	const weir_dur own = s->limit.learning * WEIR_MS;
	const weir_dur learning = own != 0 ? own : s->fleet->learning;
	const weir_dur longest = lease > learning ? lease : learning;

	s->learning = view->proven < longest;
	s->learned = s->learning ? asked + longest - view->proven : WEIR_FOREVER;
	if (s->phase != SHARE_MEMBER && s->held > 0 && !s->learning)
		share_drop(s);
}

/*
 * No lease is longer than the limit's. A store that can forget also forgets how long leases were.
 * On such a store no lease is longer than learning either, which is the time that all members wait
 * when they find that it has forgotten, whatever their own leases are.
 */
static void bound_lease(struct weir_share *s, weir_time asked, const struct weir_store_view *view)
{
	const weir_dur lease = s->limit.lease * WEIR_MS;
	weir_dur longest = lease != 0 ? lease : s->fleet->lease;

	if (view->proven != WEIR_FOREVER && longest > s->fleet->learning)
		longest = s->fleet->learning;
	s->longest = longest > LEASE_MIN ? longest : LEASE_MIN;
	s->latest = asked + fleet_usable(s->longest);
}

/* Whether the limit is still the one that was made without templates. */
static void note_untemplated(struct weir_share *s)
{
	if (s->untemplated_version == 0)
		s->untemplated_version = s->view.limit_version;
	s->untemplated &= s->view.limit_version == s->untemplated_version;
}

static void note_view(struct weir_share *s, weir_time asked, const struct weir_store_view *view)
{
	if (s->view.has_limit) {
		s->limit = s->view.limit;
		note_untemplated(s);
	}
	s->watch.seen = view->version;
	bound_lease(s, asked, view);
	settle_claims(s, asked, view);
}

/* Remember the first reading of each refresh. */
static void note_reading(struct weir_share *s, weir_time asked, uint64_t version)
{
	memmove(s->readings + 1, s->readings, sizeof(s->readings) - sizeof(s->readings[0]));
	s->readings[0] = (struct past_reading){asked, version};
}

/*
 * Until when what is carried is certain: for the time left, counted from a reading that was sent
 * before the tick, as that reading did not show the tick. Only the clock of this process counts.
 */
static weir_time sure_until(const struct weir_share *s)
{
	const struct up_record *up = &s->view.up;
	const weir_dur left = up->left * WEIR_US;

	for (unsigned i = 0; i < READINGS && s->readings[i].asked != 0; i++)
		if (s->readings[i].version < up->tick) {
			const weir_time end = s->readings[i].asked + left - left / 100;

			return end > s->carried_until ? end : s->carried_until;
		}
	return s->carried_until;
}

/*
 * What is carried counts as long as it is certain. While the store may have forgotten the row "up",
 * the last value counts.
 */
static weir_time weigh_carried(struct weir_share *s)
{
	const weir_time end = s->view.up_version != 0 ? sure_until(s) : s->carried_until;

	if (s->view.up_version == 0 && s->learning)
		s->view.carried = s->carried;
	if (end <= fleet_now(s->fleet))
		s->view.carried = 0;
	return end;
}

static struct planner planner_of(struct weir_share *s)
{
	return (struct planner){
		.id = s->id,
		.record = share_record(s, share_wants(s)),
		.held = share_is_leased(s) ? s->held : 0,
		.floor = s->floor,
		.elastic = share_is_elastic(s),
		.learning = s->learning,
		.unsettled = s->line == LINE_UNSETTLED,
		.unsettled_version = s->unsettled_version,
		.surplus = s->surplus,
		.throttled = !s->fleet->asks &&
			     atomic_load_explicit(&s->throttled, memory_order_relaxed) != 0,
		.throttle_seen = s->fleet->asks ? 0 : s->throttle_seen,
		.last_id = s->last_id,
		.waited = s->waited,
		.given_up = s->given_up,
		.uses = s->uses,
		.refused = s->fleet->refused,
	};
}

/* Hold the same units, by the lease as it is now. */
static void extend(struct weir_share *s)
{
	if (s->phase == SHARE_MEMBER && share_is_leased(s))
		share_lease(s);
}

static void note_drain(struct weir_share *s)
{
	s->drained = s->plan.drained;
	s->last_id = s->id;
	(void)snprintf(s->last_key, sizeof(s->last_key), "%s", s->drain_key);
}

/* A commit of the former leader may yet come, until the ledger has another version. */
static void settle_adopted(struct weir_share *s)
{
	if (s->line != LINE_ADOPTED)
		return;
	line_move(s, LINE_FIRST_READ);
	s->unsettled_version = s->view.ledger_version;
}

/*
 * Use that many units of its line from now on. The line can be used without a commit, unless a
 * commit may yet come that makes it less. Units that are held but not in the ledger, because the
 * store has forgotten them, are not held for longer than before: once the other members have
 * learned, they reckon that these units are free.
 */
static void use_line(struct weir_share *s, uint64_t units)
{
	const struct plan *p = &s->plan;

	if (s->held > p->mine && s->held > units)
		s->held = units;
	if (s->held > p->mine)
		share_publish(s);
	else if (s->held < units && p->mine > 0 && s->line != LINE_UNSETTLED)
		share_hold(s, units < p->mine ? units : p->mine);
	else if (s->held > units)
		share_hold(s, units);
	else
		extend(s);
}

/* Use less at once, and more only once it is committed. */
static void use_plan(struct weir_share *s)
{
	const struct plan *p = &s->plan;

	if (p->grant <= p->mine && (!p->write_ledger || p->drained))
		share_hold(s, p->grant);
	else
		use_line(s, p->grant);
}

/*
 * A grant can be used without a commit. Units of a store that has forgotten them are not held for
 * longer than before, until they are granted again.
 */
static void use_grant(struct weir_share *s)
{
	if (s->plan.granted || s->plan.drained || !s->learning)
		share_hold(s, s->plan.grant);
	else if (s->held > 0)
		share_publish(s);
}

/*
 * The store has refused a write. Until it takes one, lines stay as they are and are used as they
 * are: units that were given up meanwhile could be used by no member. One share of a batch probes
 * whether the store takes writes again.
 */
static void freeze(struct weir_share *s, struct batch *b)
{
	s->step = b->probed ? STEP_SETTLED : STEP_PROBE;
	b->probed = true;
	if (s->limit.allocated)
		use_grant(s);
	else
		use_line(s, s->plan.frozen);
}

/*
 * Plan; and if units are lent, plan again, so that they are not given back. The application is told
 * what is due first: from then on it lends no more than that.
 */
static int make_plan(struct weir_share *s, struct planner *planner)
{
	struct plan *p = &s->plan;
	uint64_t reserved, lent;
	int r = plan_make(&s->view, planner, p);

	if (r != 0 || p->join || s->config.lent == NULL || s->fleet->region != NULL)
		return r;
	reserved = p->surplus || p->drained ? 0 : s->limit.reserved;
	lent = s->config.lent(s->config.arg, p->due + reserved);
	if (lent <= reserved)
		return 0;
	planner->floor = lent - reserved;
	return plan_make(&s->view, planner, p);
}

/* Plan for a limit whose rows are all of a known version. */
static int plan_known(struct weir_share *s, struct batch *b)
{
	const weir_time until = weigh_carried(s);
	struct planner planner;
	int r;

	settle_adopted(s);
	planner = planner_of(s);
	r = make_plan(s, &planner);
	if (r != 0)
		return r;
	s->carried_until = until;
	s->carried = s->view.carried;
	s->carried_bound = s->carried > 0 ? until : WEIR_FOREVER;
	s->fence = s->plan.fence;
	share_move(s, s->fence != 0 ? SHARE_ROW_READ : SHARE_ROW_MISSING);
	s->wants_written = s->plan.record.wants;
	if (s->step == STEP_PROBE || s->step == STEP_READ)
		s->step = STEP_OPEN;
	if (s->plan.join)
		return 0;
	s->planned = true;
	note_drain(s);
	s->members = s->plan.members;
	s->effective = s->plan.effective;
	s->surplus = s->plan.surplus;
	s->crowded = s->plan.crowded;
	s->lacks = s->plan.lacks;
	s->given_up = s->plan.given_up;
	s->uses = s->plan.uses;
	s->awaits = s->limit.allocated && !s->plan.granted && !s->plan.drained;
	allocator_note(s);
	if (s->line == LINE_UNSETTLED && s->view.ledger_version != s->unsettled_version)
		line_move(s, LINE_MOVED);
	if (s->fleet->refused) {
		freeze(s, b);
		return 0;
	}
	if (s->limit.allocated)
		use_grant(s);
	else
		use_plan(s);
	s->step = s->plan.write_ledger || s->plan.write_member ? STEP_OPEN : STEP_SETTLED;
	return 0;
}

static int plan_share(struct weir_share *s, struct batch *b)
{
	int r = s->fleet->region != NULL ? region_survey(s->fleet->region) : 0;

	if (r != 0)
		return r;
	if (s->narrow && s->view.has_limit && !s->view.limit.allocated) {
		s->step = STEP_READ;
		return 0;
	}
	if (s->limit.allocated && s->fleet->region != NULL)
		return fleet_say(s->fleet, -ENOTSUP,
				 "A region cannot be a member of a limit that is allocated.");
	if (!s->view.other_version)
		return plan_known(s, b);
	extend(s);
	s->fleet->other_version = true;
	s->step = STEP_SETTLED;
	return 0;
}

static bool makes_limit(const struct weir_share *s)
{
	return s->step != STEP_SETTLED && s->plan.join && !s->view.has_limit;
}

/*
 * A limit is made by a template, or as it was read or configured here. A time to learn comes only
 * with a template: if the store has forgotten the limit, it has forgotten how long leases were before.
 */
static void choose(struct weir_share *s, const struct templates *templates, bool readable)
{
	const struct template_record *record = templates_match(templates, s->name);

	s->made = record != NULL ? record->limit : s->limit;
	if (record == NULL)
		s->made.learning = 0;
	s->untemplated = !readable;
	s->untemplated_version = 0;
}

/*
 * Read the templates if a limit is missing, which is rare. Where they are damaged, or this process
 * may not read them, members need not wait for that to be mended.
 */
static int choose_settings(struct weir_fleet *f, struct batch *b)
{
	struct templates templates = {.count = 0};
	bool any = false;
	int r = 0;

	for (size_t i = 0; i < b->count; i++)
		any |= makes_limit(b->shares[i]);
	if (any)
		r = templates_read(f->store, &templates);
	b->templates_read = r != -EACCES;
	b->templates_version = templates.version;
	if (r == 0 || r == -EPROTO || r == -EACCES) {
		for (size_t i = 0; i < b->count; i++)
			if (makes_limit(b->shares[i]))
				choose(b->shares[i], &templates, r == 0);
		r = 0;
	}
	templates_free(&templates);
	return r == 0 || r == -ENOMEM ? r : fleet_fail(f, r);
}

static bool is_settled(const struct batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->shares[i]->step != STEP_SETTLED)
			return false;
	return true;
}

/*
 * Back off randomly, so that colliding members do not retry in step. A manual fleet does not wait:
 * its time may be simulated.
 */
static void back_off(struct weir_fleet *f, unsigned attempt)
{
	const struct timespec t = {.tv_nsec = (long)fleet_draw(f, (2 * WEIR_MS) << attempt)};

	if (!f->manual)
		nanosleep(&t, NULL);
}

static int refresh_batch(struct weir_fleet *f, struct batch *b)
{
	struct weir_store_view view;
	int r;

	for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
		r = read_batch(f, b, &view);
		b->probed = false;
		for (size_t i = 0; i < b->count && r == 0; i++) {
			note_view(b->shares[i], b->asked, &view);
			r = plan_share(b->shares[i], b);
			if (r == 0 && attempt == 0)
				note_reading(b->shares[i], b->asked, view.version);
		}
		if (r == 0)
			r = choose_settings(f, b);
		/* In one commit, a conflict of one share stops all: retry one share a commit. */
		if (r == 0)
			r = batch_commit(f, b, attempt == 0);
		if (r != 0)
			return r;
		if (is_settled(b))
			return 0;
		back_off(f, attempt);
	}
	/* Too many conflicts: go on at the next refresh. */
	return 0;
}

/*
 * Units that were to be given up are still its own if the commit did not happen. If the commit was
 * not answered, they may be another member's by now.
 */
static void reclaim(struct weir_share *s)
{
	if (s->planned && s->step != STEP_SETTLED && s->line != LINE_UNSETTLED &&
	    s->phase == SHARE_MEMBER && !s->limit.allocated)
		use_line(s, s->plan.frozen);
}

/* Once a share is settled, the ledger has it that the backend has throttled this member. */
static void end_refresh(struct weir_share *s, int r)
{
	s->refreshes++;
	reclaim(s);
	if (r == 0 && s->step == STEP_SETTLED)
		share_await(s);
	if (r != 0 || s->step != STEP_SETTLED || s->fleet->asks)
		return;
	s->returned = 0;
	s->waited = s->plan.waits && !s->plan.write_member ? s->waited + 1 : 0;
	s->throttle_seen = s->plan.ledger.throttle;
	atomic_store_explicit(&s->throttled, 0, memory_order_relaxed);
}

bool refresh_goes_on(int r)
{
	return r != -EIO && r != -ESTALE && r != -ECANCELED;
}

static int refresh_shares(struct weir_fleet *f)
{
	struct weir_share *next = f->shares;
	int r = 0, first = 0;

	while (next != NULL && refresh_goes_on(r)) {
		struct batch b = {.count = 0};

		for (size_t rows = 0; next != NULL && rows + rows_of(next) <= READ_MAX;
		     next = next->next) {
			rows += rows_of(next);
			next->step = STEP_OPEN;
			b.shares[b.count++] = next;
		}
		r = refresh_batch(f, &b);
		for (size_t i = 0; i < b.count; i++)
			end_refresh(b.shares[i], r);
		if (first == 0 || !refresh_goes_on(r))
			first = r;
	}
	return first;
}

/* Once the others are divided, its own grants are read again, where they have changed. */
static int run_allocators(struct weir_fleet *f, int result)
{
	bool again = false;
	int r = allocators_run(f, &again);

	if (r == 0 && again)
		r = refresh_shares(f);
	return result == 0 || !refresh_goes_on(r) ? r : result;
}

/*
 * A refresh that a share has asked for need not keep the session: regular ones do that in time. So
 * it costs the store a reading alone. What it commits checks the session.
 */
static bool is_kept(const struct weir_fleet *f)
{
	return f->asks && f->region == NULL && fleet_now(f) < f->kept + fleet_interval(f);
}

int fleet_refresh_own(struct weir_fleet *f)
{
	int r = 0, left = 0, work = 0, gone = 0;

	f->session_kept = is_kept(f);
	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		s->planned = false;
	if (f->session == 0) {
		session_forget(f);
		r = session_begin(f);
	} else if (f->shares == NULL && f->participants == NULL) {
		r = session_keep(f);
	}
	if (r == 0)
		left = fleet_erase_left(f);
	if (r == 0)
		r = refresh_goes_on(left) ? refresh_shares(f) : left;
	if (f->session != 0 && refresh_goes_on(r))
		r = run_allocators(f, r);
	if (f->session != 0 && refresh_goes_on(r))
		work = participants_refresh(f);
	if (f->session != 0 && refresh_goes_on(r) && refresh_goes_on(work))
		gone = participants_erase_left(f);
	if (r == 0)
		r = left;
	if (r == 0)
		r = work;
	return r != 0 ? r : gone;
}

static int refresh_all(struct weir_fleet *f)
{
	return f->region != NULL ? region_refresh(f->region) : fleet_refresh_own(f);
}

int fleet_refresh(struct weir_fleet *f)
{
	int r;

	f->other_version = false;
	participants_begin(f);
	r = refresh_all(f);
	/* The session ended between keeping it and committing: begin another one, once. */
	if (r == -ESTALE)
		r = refresh_all(f);
	f->reachable = r != -EIO;
	if (r == -ENOMEM)
		(void)fleet_say(f, r, "Out of memory.");
	if (r == 0)
		(void)fleet_say(
			f, r, "%s",
			f->other_version
				? "A limit in the store was written by another version of weir."
				: "");
	for (struct weir_share *s = f->shares; s != NULL; s = s->next) {
		share_report(s);
		share_note(s);
	}
	participants_end(f, r);
	return r == 0 && f->other_version ? -EPROTO : r;
}
