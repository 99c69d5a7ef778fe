/*
 * A refresh: keep the session, read all limits, plan, commit.
 *
 * One question for all limits of the process, up to 128, which keeps the session too, and a commit
 * for 42. What is to shrink,
 * shrinks before the commit; what is to grow, grows when it has been acknowledged. Where another
 * was quicker, all is read again. Where nothing was heard of a commit, the lesser of both is used
 * until the ledger has moved on: what it says then, is so.
 *
 * A lease counts from before the question was sent that kept it, less a hundredth, for clocks
 * that differ, and 2 ms: so it has ended here before it has for the store. It is longer for a
 * share only once the ledger was read after that: who keeps his session, and cannot read, would
 * never hear that the capacity was cut.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parts.h"

#define READ_MAX WEIR_STORE_ROWS_MAX       /* limits of a reading: a prefix each */
#define AT_ONCE  (WEIR_STORE_ROWS_MAX / 3) /* of a commit: a row each of limit, member and ledger */
#define ATTEMPTS 8

static int fail(struct weir_fleet *f, int r)
{
	weir_store_error(f->store, f->why, sizeof(f->why));
	return r;
}

weir_time fleet_lease_end(weir_time sent, weir_dur granted)
{
	const weir_dur margin = granted / 100 + 2 * WEIR_MS;

	return granted > margin ? sent + granted - margin : sent;
}

/*
 * The rows of this process are gone with the session, or will be in a moment: so it goes on under
 * other numbers. What is held is held to the lease's end.
 */
static void forget_session(struct weir_fleet *f)
{
	f->session = 0;
	for (struct weir_share *s = f->shares; s != NULL; s = s->next) {
		s->fence = 0;
		s->unsettled = false;
		share_rename(s);
	}
	for (struct weir_parts *p = f->parts; p != NULL; p = p->next) {
		parts_drop(p);
		parts_rename(p);
	}
}

/* It is leased for as long as the session is, and what is carried from above. */
static void lease(struct weir_share *s)
{
	const weir_time deadline = s->fleet->deadline;

	s->until = deadline < s->bound ? deadline : s->bound;
	share_publish(s);
}

static void note_kept(struct weir_fleet *f, weir_time sent, weir_dur granted)
{
	f->deadline = fleet_lease_end(sent, granted);
	f->kept = true;
}

static int begin_session(struct weir_fleet *f)
{
	const weir_time sent = fleet_now(f);
	weir_dur granted;
	int r = weir_store_begin(f->store, f->lease, &f->session, &granted);

	if (r != 0) {
		f->session = 0;
		return fail(f, r);
	}
	note_kept(f, sent, granted);
	return 0;
}

static int keep_session(struct weir_fleet *f)
{
	const weir_time sent = fleet_now(f);
	weir_dur granted;
	int r = weir_store_keep(f->store, f->session, &granted);

	if (r == -ESTALE) {
		forget_session(f);
		return begin_session(f);
	}
	if (r != 0)
		return fail(f, r);
	note_kept(f, sent, granted);
	return 0;
}

/* What is read first keeps the session. */
static int ask(struct weir_fleet *f, const char *const *prefixes, size_t count, weir_row_fn *row,
	       void *arg, struct weir_view *view)
{
	const weir_time sent = fleet_now(f);
	weir_dur granted;
	int r;

	if (f->kept)
		return weir_store_read(f->store, prefixes, count, row, arg, view);
	r = weir_store_keep_and_read(f->store, f->session, &granted, prefixes, count, row, arg,
				     view);
	if (r == 0)
		note_kept(f, sent, granted);
	if (r != -ESTALE)
		return r;
	forget_session(f);
	r = begin_session(f);
	return r == 0 ? weir_store_read(f->store, prefixes, count, row, arg, view) : r;
}

/* The shares that are being looked at, and what there is no memory for. */
struct batch {
	struct weir_share *shares[READ_MAX];
	size_t count;
	weir_time asked;
	bool full;
};

static bool take(void *arg, const struct weir_row *row)
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

static int read_batch(struct weir_fleet *f, struct batch *b, struct weir_view *view)
{
	char prefix[READ_MAX][WEIR_SHARE_NAME_MAX + 2];
	const char *prefixes[READ_MAX];
	int r;

	for (size_t i = 0; i < b->count; i++) {
		(void)snprintf(prefix[i], sizeof(prefix[i]), "%s/", b->shares[i]->name);
		prefixes[i] = prefix[i];
		view_clear(&b->shares[i]->view);
	}
	b->asked = fleet_now(f);
	r = ask(f, prefixes, b->count, take, b, view);
	if (r != 0)
		return fail(f, r);
	return b->full ? -ENOMEM : 0;
}

/*
 * What was held by a lease of a session that is gone goes on only where the store has forgotten,
 * and so has given it to nobody yet.
 */
static void settle_claims(struct weir_share *s, const struct weir_view *view)
{
	const weir_dur lease = s->limit.lease * WEIR_MS;

	s->learning = view->proven < (lease > s->fleet->lease ? lease : s->fleet->lease);
	if (s->fence == 0 && s->held > 0 && !s->learning)
		share_drop(s);
}

static void note_view(struct weir_share *s, const struct weir_view *view)
{
	if (s->view.has_limit)
		s->limit = s->view.limit;
	settle_claims(s, view);
}

/* The first of each refresh is remembered. */
static void note_look(struct weir_share *s, weir_time asked, uint64_t version)
{
	memmove(s->looks + 1, s->looks, sizeof(s->looks) - sizeof(s->looks[0]));
	s->looks[0] = (struct look){asked, version};
}

/*
 * Until when what is carried is sure. The tick came after what was seen before it, and it is sure
 * for so long from a moment on that was not before the tick: no clock but our own is asked.
 */
static weir_time sure_until(const struct weir_share *s)
{
	const struct up_record *up = &s->view.up;
	const weir_dur left = up->left * WEIR_US;

	for (unsigned i = 0; i < LOOKS && s->looks[i].asked != 0; i++)
		if (s->looks[i].version < up->tick) {
			const weir_time end = s->looks[i].asked + left - left / 100;

			return end > s->above ? end : s->above;
		}
	return s->above;
}

/* What is carried counts as long as it is sure; where the store has forgotten it, as before. */
static weir_time weigh_above(struct weir_share *s)
{
	const weir_time end = s->view.up_version != 0 ? sure_until(s) : s->above;

	if (s->view.up_version == 0 && s->learning)
		s->view.carried = s->carried;
	if (end <= fleet_now(s->fleet))
		s->view.carried = 0;
	return end;
}

static struct planner planner_of(const struct weir_share *s)
{
	return (struct planner){
		.id = s->id,
		.record = {.wants = share_wants(s),
			   .weight = s->config.weight,
			   .priority = s->config.priority},
		.held = share_is_leased(s) ? s->held : 0,
		.floor = s->floor,
		.learning = s->learning,
		.unsettled = s->unsettled,
		.unsettled_version = s->unsettled_version,
		.throttled = atomic_load_explicit(&s->throttled, memory_order_relaxed) != 0,
		.throttle_seen = s->throttle_seen,
		.drained_as = s->drained_as,
	};
}

/* As the ledger has it, which is acknowledged. */
static void hold(struct weir_share *s, uint64_t grant)
{
	s->held = grant;
	lease(s);
}

/* What is held is held on, by the lease as it is now. */
static void extend(struct weir_share *s)
{
	if (s->fence == 0 || !share_is_leased(s))
		return;
	lease(s);
}

static void note_drain(struct weir_share *s)
{
	s->drained_as = s->plan.drained ? s->id : 0;
	(void)snprintf(s->drained_key, sizeof(s->drained_key), "%s", s->drain_key);
}

/* Whoever wrote for it before may do so yet, until the ledger has moved on. */
static void take_over(struct weir_share *s)
{
	if (!s->adopted)
		return;
	s->adopted = false;
	s->unsettled = true;
	s->unsettled_version = s->view.ledger_version;
}

/* All but what is strange. */
static int plan_known(struct weir_share *s)
{
	const weir_time above = weigh_above(s);
	struct planner planner;
	int r;

	take_over(s);
	planner = planner_of(s);
	r = plan_make(&s->view, &planner, &s->plan);
	if (r != 0)
		return r;
	s->above = above;
	s->carried = s->view.carried;
	s->bound = s->carried > 0 ? above : WEIR_FOREVER;
	s->fence = s->plan.fence;
	s->told = planner.record.wants;
	if (s->plan.join)
		return 0;
	note_drain(s);
	s->members = s->plan.members;
	s->effective = s->plan.effective;
	if (s->unsettled && s->view.ledger_version != s->unsettled_version)
		s->unsettled = false;
	/* What is more is to be committed first. */
	if (!s->plan.write || s->plan.grant < s->held || s->plan.drained)
		hold(s, s->plan.grant);
	else
		extend(s);
	s->settled = !s->plan.write && !s->plan.tell;
	return 0;
}

static int plan_share(struct weir_share *s)
{
	int r = s->fleet->region != NULL ? region_survey(s->fleet->region) : 0;

	if (r != 0)
		return r;
	if (!s->view.strange)
		return plan_known(s);
	extend(s);
	s->fleet->strange = true;
	s->settled = true;
	return 0;
}

/* A commit as it is put together, with the texts of its rows. */
struct writing {
	struct weir_check checks[3 * AT_ONCE];
	struct weir_write writes[3 * AT_ONCE];
	char texts[2 * AT_ONCE][RECORD_SIZE];
	char *ledgers[AT_ONCE];
	size_t check_count, write_count, text_count, ledger_count;
	struct weir_share *shares[AT_ONCE];
	size_t count;
};

static void check_row(struct writing *w, const char *key, enum weir_check_kind kind,
		      uint64_t version)
{
	if (version == 0)
		kind = WEIR_CHECK_ABSENT;
	w->checks[w->check_count++] = (struct weir_check){key, kind, version};
}

static void write_row(struct writing *w, const char *key, enum weir_write_kind kind,
		      const char *text, size_t size)
{
	w->writes[w->write_count++] = (struct weir_write){key, kind, text, size};
}

static void write_limit(struct writing *w, const struct weir_share *s)
{
	char *text = w->texts[w->text_count++];

	check_row(w, s->limit_key, WEIR_CHECK_ABSENT, 0);
	write_row(w, s->limit_key, WEIR_WRITE_PUT, text, limit_print(&s->limit, text));
}

static void write_member(struct writing *w, const struct weir_share *s)
{
	const struct member_record record = {
		.wants = s->told,
		.weight = s->config.weight,
		.priority = s->config.priority,
	};
	char *text = w->texts[w->text_count++];

	write_row(w, s->own_key, WEIR_WRITE_BIND, text, member_print(&record, text));
}

/* Whoever comes back under another number is drained as before. */
static void move_drain(struct writing *w, const struct weir_share *s)
{
	if (s->drained_as == s->id)
		return;
	write_row(w, s->drain_key, WEIR_WRITE_PUT, DRAIN_TEXT, strlen(DRAIN_TEXT));
	write_row(w, s->drained_key, WEIR_WRITE_ERASE, NULL, 0);
}

static int write_ledger(struct writing *w, const struct weir_share *s)
{
	size_t size;
	char *text = ledger_print(&s->plan.ledger, &size);

	if (text == NULL)
		return -ENOMEM;
	w->ledgers[w->ledger_count++] = text;
	check_row(w, s->ledger_key, WEIR_CHECK_VERSION, s->view.ledger_version);
	/* What is carried must be what was reckoned with. */
	if (s->view.up_version != 0)
		check_row(w, s->up_key, WEIR_CHECK_VERSION, s->view.up_version);
	write_row(w, s->ledger_key, WEIR_WRITE_PUT, text, size);
	return 0;
}

/* Its own row is checked whatever is written: whoever has lost it has nothing to say. */
static int write_share(struct writing *w, struct weir_share *s)
{
	w->shares[w->count++] = s;
	check_row(w, s->own_key, WEIR_CHECK_MADE, s->fence);
	if (s->plan.join) {
		if (!s->view.has_limit)
			write_limit(w, s);
		else if (s->plan.drained)
			move_drain(w, s);
		write_member(w, s);
		return 0;
	}
	if (s->plan.tell)
		write_member(w, s);
	return s->plan.write ? write_ledger(w, s) : 0;
}

static void end_writing(struct writing *w)
{
	for (size_t i = 0; i < w->ledger_count; i++)
		free(w->ledgers[i]);
}

/* It happened. Who has joined plans again, with a row of its own. */
static void acknowledge(struct weir_share *s)
{
	if (s->plan.join)
		return;
	if (s->plan.write) {
		s->unsettled = false;
		hold(s, s->plan.grant);
	}
	s->settled = true;
}

/* It may have happened, or happen yet: use what is right in both cases. */
static void doubt(struct weir_share *s)
{
	if (s->plan.join || !s->plan.write || s->unsettled)
		return;
	s->unsettled = true;
	s->unsettled_version = s->view.ledger_version;
}

static void conclude(struct weir_fleet *f, struct writing *w, int r)
{
	if (r == -ESTALE)
		forget_session(f);
	for (size_t i = 0; i < w->count; i++) {
		if (r == 0)
			acknowledge(w->shares[i]);
		else if (r == -EAGAIN)
			w->shares[i]->conflicts++;
		else if (r == -EIO)
			doubt(w->shares[i]);
	}
}

static int commit(struct weir_fleet *f, struct writing *w)
{
	int r = weir_store_commit(f->store, f->session, w->checks, w->check_count, w->writes,
				  w->write_count, NULL);

	conclude(f, w, r);
	return r == 0 || r == -EAGAIN ? 0 : fail(f, r);
}

/*
 * All that is to be written of a batch, many at once; later each by itself, as they hinder each
 * other.
 */
static int commit_batch(struct weir_fleet *f, struct batch *b, bool together)
{
	const size_t most = together ? AT_ONCE : 1;
	size_t i = 0;
	int r = 0;

	while (i < b->count && r == 0) {
		struct writing w = {.count = 0};

		do {
			if (!b->shares[i]->settled)
				r = write_share(&w, b->shares[i]);
			i++;
		} while (r == 0 && i < b->count && w.count < most);
		if (r == 0 && w.count > 0)
			r = commit(f, &w);
		end_writing(&w);
	}
	return r;
}

static bool is_settled(const struct batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (!b->shares[i]->settled)
			return false;
	return true;
}

/*
 * Who was in each other's way is not again at the same moment. In simulated time there is none to
 * wait.
 */
static void step_aside(struct weir_fleet *f, unsigned attempt)
{
	const struct timespec t = {.tv_nsec = (long)fleet_draw(f, (2 * WEIR_MS) << attempt)};

	if (!f->manual)
		nanosleep(&t, NULL);
}

static int refresh_batch(struct weir_fleet *f, struct batch *b)
{
	struct weir_view view;
	int r;

	for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
		r = read_batch(f, b, &view);
		for (size_t i = 0; i < b->count && r == 0; i++) {
			note_view(b->shares[i], &view);
			r = plan_share(b->shares[i]);
			if (r == 0 && attempt == 0)
				note_look(b->shares[i], b->asked, view.version);
		}
		if (r == 0)
			r = commit_batch(f, b, attempt == 0);
		if (r != 0)
			return r;
		if (is_settled(b))
			return 0;
		step_aside(f, attempt);
	}
	/* What there is stays as it is until the next time. */
	return 0;
}

/* What was complained of is in the ledger by now, or will be. */
static void end_refresh(struct weir_share *s, int r)
{
	s->refreshes++;
	if (r != 0 || !s->settled)
		return;
	s->throttle_seen = s->plan.ledger.throttle;
	atomic_store_explicit(&s->throttled, 0, memory_order_relaxed);
}

/*
 * Without a store, or a session, there is no use in going on; what one limit has, others need not.
 */
static bool goes_on(int r)
{
	return r != -EIO && r != -ESTALE && r != -ECANCELED;
}

static int refresh_shares(struct weir_fleet *f)
{
	struct weir_share *next = f->shares;
	int r = 0, first = 0;

	while (next != NULL && goes_on(r)) {
		struct batch b = {.count = 0};

		for (; next != NULL && b.count < READ_MAX; next = next->next) {
			next->settled = false;
			b.shares[b.count++] = next;
		}
		r = refresh_batch(f, &b);
		for (size_t i = 0; i < b.count; i++)
			end_refresh(b.shares[i], r);
		if (first == 0 || !goes_on(r))
			first = r;
	}
	return first;
}

static int refresh_parts(struct weir_fleet *f)
{
	int r = 0, first = 0;

	for (struct weir_parts *p = f->parts; p != NULL && goes_on(r); p = p->next) {
		r = parts_refresh(p);
		if (r == -ESTALE)
			forget_session(f);
		else if (r != 0)
			(void)fail(f, r);
		if (first == 0 || !goes_on(r))
			first = r;
	}
	return first;
}

int fleet_refresh_own(struct weir_fleet *f)
{
	int r = 0, parts = 0;

	f->kept = false;
	if (f->session == 0) {
		forget_session(f);
		r = begin_session(f);
	} else if (f->shares == NULL) {
		r = keep_session(f);
	}
	if (r == 0)
		r = refresh_shares(f);
	if (f->session != 0 && goes_on(r))
		parts = refresh_parts(f);
	return r != 0 ? r : parts;
}

static int refresh_all(struct weir_fleet *f)
{
	return f->region != NULL ? region_refresh(f->region) : fleet_refresh_own(f);
}

int fleet_refresh(struct weir_fleet *f)
{
	int r;

	f->strange = false;
	r = refresh_all(f);
	/* It ended between keeping and committing: begin anew, once. */
	if (r == -ESTALE)
		r = refresh_all(f);
	f->reachable = r != -EIO;
	if (r == 0)
		(void)snprintf(f->why, sizeof(f->why), "%s",
			       f->strange ? "A limit in the store is of another version." : "");
	return r == 0 && f->strange ? -EPROTO : r;
}
