/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The election of an allocator, and what it writes.
 *
 * A member that reads that there is no row LIMIT/allocator makes it, bound to its session, by a
 * commit that fails if there is one. So there is one allocator, until its session ends, or it
 * resigns. It keeps nothing that its successor would need: each time, it reads all rows, works out
 * all grants, and writes those that change.
 *
 * Each of its commits checks that its row is still there, made by its own election; that the row
 * "grants" has the version that it has read, or that its last commit wrote; and that the limit is as
 * it was read. A commit that was held up on its way, of this allocator or of a former one, is
 * refused for one of these reasons, or happens before anything else is written.
 *
 * A regular refresh of the members is what a change of demand waits for. So the allocator reads more
 * often than that, ALLOCATIONS times in an interval; but where reading takes long, it spends no more
 * than one part in READING_PART of its time on it.
 */

#include "fleet/protocol/allocator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/allocation.h"
#include "fleet/protocol/reason.h"
#include "fleet/protocol/refresh.h"

#define ALLOCATIONS  5
#define READING_PART 10
#define FAILURES_MAX 3 /* in a row; then another member may do better */
#define REST         2 /* intervals for which a member that has resigned does not stand again */

#define CHECKS    3
#define WRITE_MAX (WEIR_STORE_ROWS_MAX - 1) /* grants in a commit, which also writes "grants" */

struct allocator {
	uint64_t id;      /* of the member, in the session in which it was elected */
	uint64_t elected; /* the commit that made the allocator's row */
	uint64_t version; /* of the row "grants" */
	struct limit_view view;
	bool full;              /* there was no memory for a row */
	weir_time next;         /* when it allocates again */
	weir_time next_regular; /* when the throttle may change again */
	bool failed;            /* the last time, for whatever reason */
	unsigned failures;      /* in a row, of its own */
};

static void key_of(const struct weir_share *s, const char *row, char key[KEY_ROOM])
{
	(void)snprintf(key, KEY_ROOM, "%s/%s", s->name, row);
}

void allocator_free(struct weir_share *s)
{
	if (s->allocator != NULL)
		view_free(&s->allocator->view);
	free(s->allocator);
	s->allocator = NULL;
}

static int begin(struct weir_share *s, uint64_t elected)
{
	s->allocator = calloc(1, sizeof(*s->allocator));
	if (s->allocator == NULL)
		return -ENOMEM;
	s->allocator->id = s->id;
	s->allocator->elected = elected;
	s->elected = elected;
	return 0;
}

void allocator_note(struct weir_share *s)
{
	const struct seen_grants *g = &s->view.grants;

	s->vacant = g->elected == 0;
	s->elected = g->elected != 0 && g->allocator.id == s->id ? g->elected : 0;
}

/* A row of its own number that it did not know of is of a commit that was not answered. */
static int stand(struct weir_share *s)
{
	struct allocator_record record = {.id = s->id};
	char key[KEY_ROOM], text[RECORD_SIZE];
	const struct weir_store_check checks[] = {
		{key, WEIR_STORE_CHECK_ABSENT, 0},
		{s->own_key, WEIR_STORE_CHECK_MADE, s->fence},
	};
	struct weir_store_write write = {key, WEIR_STORE_WRITE_BIND, text, 0};
	uint64_t version;
	int r;

	if (s->elected != 0)
		return begin(s, s->elected);
	if (!s->vacant || fleet_now(s->fleet) < s->rests_until)
		return 0;
	s->vacant = false;
	key_of(s, "allocator", key);
	memcpy(record.label, s->fleet->label, sizeof(record.label));
	write.size = allocator_print(&record, text);
	r = weir_store_commit(s->fleet->store, s->fleet->session, checks, 2, &write, 1, &version);
	if (r == 0)
		return begin(s, version);
	return r == -EAGAIN ? 0 : r == -ESTALE ? r : fleet_fail(s->fleet, r);
}

void allocator_resign(struct weir_share *s)
{
	const struct allocator *a = s->allocator;
	char key[KEY_ROOM];
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_ERASE, NULL, 0};

	if (a == NULL)
		return;
	key_of(s, "allocator", key);
	if (a->id == s->id && s->fleet->session != 0)
		(void)!weir_store_commit(
			s->fleet->store, 0,
			&(const struct weir_store_check){key, WEIR_STORE_CHECK_MADE, a->elected}, 1,
			&write, 1, NULL);
	s->rests_until = fleet_now(s->fleet) + REST * fleet_interval(s->fleet);
	s->elected = 0;
	allocator_free(s);
}

static bool take(void *arg, const struct weir_store_row *row)
{
	struct allocator *a = arg;

	a->full = !view_take(&a->view, strchr(row->key, '/') + 1, row);
	return !a->full;
}

static int read_all(struct weir_share *s)
{
	struct allocator *a = s->allocator;
	char prefix[KEY_ROOM];
	const char *const prefixes[] = {prefix};
	struct weir_store_view view;
	int r;

	key_of(s, "", prefix);
	view_clear(&a->view);
	a->full = false;
	r = weir_store_read(s->fleet->store, prefixes, 1, take, a, &view);
	if (r != 0)
		return fleet_fail(s->fleet, r);
	a->view.proven = view.proven;
	if (a->full)
		return -ENOMEM;
	return a->view.other_version
		       ? fleet_say(s->fleet, -EPROTO,
				   "A row of a limit was written by another version of weir.")
		       : 0;
}

/*
 * Write up to WRITE_MAX changes, and what all need to know. While there are more, what was shared
 * before is not changed: not all grants are of another capacity yet. Returns how many, or an error.
 */
static int write_some(struct weir_share *s, const struct allocation *n, size_t from)
{
	struct allocator *a = s->allocator;
	const struct weir_fleet *f = s->fleet;
	const size_t left = n->count - from, count = left < WRITE_MAX ? left : WRITE_MAX;
	char texts[WRITE_MAX + 1][RECORD_SIZE], keys[WRITE_MAX + 1][KEY_ROOM], allocator[KEY_ROOM];
	const struct weir_store_check checks[CHECKS] = {
		{allocator, WEIR_STORE_CHECK_MADE, a->elected},
		{keys[0], a->version != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT,
		 a->version},
		{s->limit_key, WEIR_STORE_CHECK_VERSION, a->view.limit_version},
	};
	struct weir_store_write writes[WRITE_MAX + 1];
	struct grants_record all = n->all;
	int r;

	if (count < left && a->view.grants.version != 0)
		all.shared = a->view.grants.all.shared;

	key_of(s, "allocator", allocator);
	key_of(s, "grants", keys[0]);
	writes[0] = (struct weir_store_write){keys[0], WEIR_STORE_WRITE_PUT, texts[0],
					      grants_print(&all, texts[0])};
	for (size_t i = 1; i <= count; i++) {
		const struct grant_change *c = &n->changes[from + i - 1];

		member_key(s->name, "grant", c->id, keys[i]);
		writes[i] = (struct weir_store_write){keys[i], WEIR_STORE_WRITE_ERASE, NULL, 0};
		if (c->record.number != 0)
			writes[i] = (struct weir_store_write){keys[i], WEIR_STORE_WRITE_PUT,
							      texts[i],
							      grant_print(&c->record, texts[i])};
	}
	r = weir_store_commit(f->store, f->session, checks, CHECKS, writes, count + 1, &a->version);
	return r == 0 ? (int)count : r;
}

/* After a conflict, another reading shows what has happened. */
static int write_all(struct weir_share *s, const struct allocation *n, bool *again)
{
	size_t from = 0;

	if (n->count == 0 && !n->write_all)
		return 0;
	do {
		const int r = write_some(s, n, from);

		if (r == -EAGAIN || r == -ESTALE)
			return r == -EAGAIN ? 0 : r;
		if (r < 0)
			return fleet_fail(s->fleet, r);
		for (int i = 0; i < r; i++)
			*again |= n->changes[from + (size_t)i].id == s->id;
		from += (size_t)r;
	} while (from < n->count);
	return 0;
}

static bool is_learning(const struct weir_share *s)
{
	const struct limit_view *v = &s->allocator->view;
	const weir_dur own = v->limit.learning * WEIR_MS;

	return v->proven < (own != 0 ? own : s->fleet->learning) || view_learning(v) > 0;
}

static int divide(struct weir_share *s, weir_time now, bool *again)
{
	struct allocator *a = s->allocator;
	struct allocating how = {.learning = is_learning(s), .regular = now >= a->next_regular};
	struct allocation n;
	int r;

	if (a->next_regular == 0)
		how.regular = false;
	if (now >= a->next_regular)
		a->next_regular = now + fleet_interval(s->fleet);
	r = allocation_make(&a->view, &how, &n);
	if (r != 0)
		return r;
	a->version = a->view.grants.version;
	r = write_all(s, &n, again);
	allocation_free(&n);
	return r;
}

/* When it allocates again, after a reading that took that long. */
static weir_time after(const struct weir_share *s, weir_dur reading)
{
	const weir_dur interval = fleet_interval(s->fleet), rest = reading * READING_PART;
	const weir_dur least = interval / ALLOCATIONS;

	return fleet_now(s->fleet) + (rest < least ? least : rest < interval ? rest : interval);
}

static int allocate(struct weir_share *s, bool *again)
{
	struct allocator *a = s->allocator;
	const weir_time began = fleet_now(s->fleet);
	int r = read_all(s);
	const weir_dur reading = fleet_now(s->fleet) - began;

	if (r == 0 && a->view.grants.elected != a->elected) {
		allocator_free(s);
		return 0;
	}
	if (r == 0 && a->view.has_limit && a->view.limit.allocated)
		r = divide(s, began, again);
	a->next = after(s, reading);
	a->failed = r != 0;
	a->failures = r == 0 || !refresh_goes_on(r) || s->fleet->refused ? 0 : a->failures + 1;
	if (a->failures == FAILURES_MAX)
		allocator_resign(s);
	return r;
}

/* Whether it may stand and allocate. */
static bool takes_part(const struct weir_share *s)
{
	return s->limit.allocated && s->phase == SHARE_MEMBER && !s->fleet->refused &&
	       s->fleet->session != 0 && s->fleet->region == NULL;
}

/* Whether it is elected, by what its last reading has shown. */
static bool is_allocating(const struct weir_share *s)
{
	const struct allocator *a = s->allocator;

	return a != NULL && takes_part(s) && a->id == s->id && a->elected == s->elected;
}

/* What it has written of its own is news to it alone; and what has failed is tried again. */
static bool is_due(const struct weir_share *s)
{
	const struct allocator *a = s->allocator;

	return s->plan.write_member || a->failed || fleet_now(s->fleet) >= a->next;
}

static int run(struct weir_share *s, bool *again)
{
	int r = 0;

	if (!takes_part(s))
		return 0;
	if (!is_allocating(s))
		allocator_free(s);
	if (s->allocator == NULL)
		r = stand(s);
	if (r == 0 && s->allocator != NULL && is_due(s))
		r = allocate(s, again);
	return r;
}

int allocators_run(struct weir_fleet *f, bool *again)
{
	int r = 0, first = 0;

	for (struct weir_share *s = f->shares; s != NULL && refresh_goes_on(r); s = s->next) {
		r = run(s, again);
		if (first == 0 || !refresh_goes_on(r))
			first = r;
	}
	return first;
}

void allocators_hurry(struct weir_fleet *f, weir_time now)
{
	bool again = false;
	int r = 0;

	for (struct weir_share *s = f->shares; s != NULL && refresh_goes_on(r); s = s->next)
		if (is_allocating(s) && now >= s->allocator->next)
			r = allocate(s, &again);
	f->refresh_now |= again || r == -ESTALE;
}

void allocators_postpone(struct weir_fleet *f, weir_time time)
{
	for (struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (s->allocator != NULL && s->allocator->next < time)
			s->allocator->next = time;
}

weir_time allocators_next(const struct weir_fleet *f)
{
	weir_time next = WEIR_FOREVER;

	for (const struct weir_share *s = f->shares; s != NULL; s = s->next)
		if (is_allocating(s) && s->allocator->next < next)
			next = s->allocator->next;
	return next;
}
