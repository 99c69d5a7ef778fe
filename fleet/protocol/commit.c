/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a refresh writes, for many limits in one commit, and what follows from the store's answer.
 */

#include "fleet/protocol/refresh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/templates.h"

#define AT_ONCE (WEIR_STORE_ROWS_MAX / 3) /* shares in a commit: limit, member, ledger each */
#define CHECKS  (3 * AT_ONCE + 1)         /* and that of the templates */

_Static_assert(CHECKS < WEIR_STORE_ROWS_MAX, "a commit may have that many");

/* A commit under construction, with the texts of its rows. */
struct writing {
	const struct batch *batch;
	struct weir_store_check checks[CHECKS];
	struct weir_store_write writes[3 * AT_ONCE];
	char texts[3 * AT_ONCE][RECORD_SIZE];
	char *ledgers[AT_ONCE];
	size_t check_count, write_count, text_count, ledger_count;
	struct weir_share *shares[AT_ONCE];
	size_t count;
	bool checks_templates;
};

static void check_row(struct writing *w, const char *key, enum weir_store_check_kind kind,
		      uint64_t version)
{
	if (version == 0)
		kind = WEIR_STORE_CHECK_ABSENT;
	w->checks[w->check_count++] = (struct weir_store_check){key, kind, version};
}

static void write_row(struct writing *w, const char *key, enum weir_store_write_kind kind,
		      const char *text, size_t size)
{
	w->writes[w->write_count++] = (struct weir_store_write){key, kind, text, size};
}

/* The choice of a template holds only for the templates that were read. */
static void check_templates(struct writing *w)
{
	if (w->checks_templates || !w->batch->templates_read)
		return;
	w->checks_templates = true;
	check_row(w, TEMPLATES_KEY, WEIR_STORE_CHECK_VERSION, w->batch->templates_version);
}

static void write_limit(struct writing *w, const struct weir_share *s)
{
	char *text = w->texts[w->text_count++];

	check_templates(w);
	check_row(w, s->limit_key, WEIR_STORE_CHECK_ABSENT, 0);
	write_row(w, s->limit_key, WEIR_STORE_WRITE_PUT, text, limit_print(&s->made, text));
	if (s->made.learning == 0)
		return;
	text = w->texts[w->text_count++];
	write_row(w, s->learning_key, WEIR_STORE_WRITE_PUT, text,
		  learning_print(s->made.learning, text));
}

static void write_member(struct writing *w, const struct weir_share *s)
{
	char *text = w->texts[w->text_count++];

	write_row(w, s->own_key, WEIR_STORE_WRITE_BIND, text, member_print(&s->plan.record, text));
}

/* A member that comes back under another number stays drained: its drain row moves. */
static void move_drain(struct writing *w, const struct weir_share *s)
{
	const uint64_t version = drains_version(&s->view.drains, s->last_id);

	if (s->last_id == s->id || version == 0)
		return;
	check_row(w, s->drain_key, WEIR_STORE_CHECK_ABSENT, 0);
	check_row(w, s->last_key, WEIR_STORE_CHECK_VERSION, version);
	write_row(w, s->drain_key, WEIR_STORE_WRITE_PUT, DRAIN_TEXT, strlen(DRAIN_TEXT));
	write_row(w, s->last_key, WEIR_STORE_WRITE_ERASE, NULL, 0);
}

static int write_ledger(struct writing *w, const struct weir_share *s)
{
	size_t size;
	char *text = ledger_print(&s->plan.ledger, &size);

	if (text == NULL)
		return -ENOMEM;
	w->ledgers[w->ledger_count++] = text;
	check_row(w, s->ledger_key, WEIR_STORE_CHECK_VERSION, s->view.ledger_version);
	/* The plan holds only for what is carried now. */
	if (s->view.up_version != 0)
		check_row(w, s->up_key, WEIR_STORE_CHECK_VERSION, s->view.up_version);
	write_row(w, s->ledger_key, WEIR_STORE_WRITE_PUT, text, size);
	return 0;
}

/*
 * Every write checks the member's own row, so a member that has lost its row writes nothing. If the
 * row itself is written, its version is checked too, so that an older value does not come back.
 */
static int write_share(struct writing *w, struct weir_share *s)
{
	w->shares[w->count++] = s;
	if (s->plan.join || s->plan.write_member)
		check_row(w, s->own_key, WEIR_STORE_CHECK_VERSION, s->plan.version);
	else
		check_row(w, s->own_key, WEIR_STORE_CHECK_MADE, s->fence);
	if (s->plan.join) {
		if (!s->view.has_limit)
			write_limit(w, s);
		else if (s->plan.drained)
			move_drain(w, s);
		write_member(w, s);
		return 0;
	}
	if (s->plan.write_member || s->step == STEP_PROBE)
		write_member(w, s);
	return s->plan.write_ledger && s->step != STEP_PROBE ? write_ledger(w, s) : 0;
}

static void end_writing(struct writing *w)
{
	for (size_t i = 0; i < w->ledger_count; i++)
		free(w->ledgers[i]);
}

/* The commit happened. A share that has joined or probed plans again. */
static void acknowledge(struct weir_share *s)
{
	if (s->plan.join || s->step == STEP_PROBE)
		return;
	if (s->plan.write_ledger) {
		line_move(s, LINE_ACKNOWLEDGED);
		share_hold(s, s->plan.grant);
	}
	s->step = STEP_SETTLED;
}

/* The commit may have happened, or happen yet: use what is right in both cases. */
static void mark_unsettled(struct weir_share *s)
{
	if (s->plan.join || s->step == STEP_PROBE || !s->plan.write_ledger)
		return;
	if (s->line == LINE_KNOWN)
		s->unsettled_version = s->view.ledger_version;
	line_move(s, LINE_UNANSWERED);
}

/* The row by which units were to be given up was not written: they are still its own. */
static void take_back(struct weir_share *s)
{
	const struct plan *p = &s->plan;

	if (!s->limit.allocated || p->join ||
	    (p->given_up == p->was_given_up && p->uses == p->used))
		return;
	s->given_up = p->was_given_up;
	s->uses = p->used;
	share_hold(s, p->mine);
}

static void conclude(struct weir_fleet *f, struct writing *w, int r)
{
	if (r == -ESTALE)
		session_forget(f);
	if (r == 0)
		f->refused = false;
	for (size_t i = 0; i < w->count; i++) {
		if (w->shares[i]->plan.join && (r == 0 || r == -EIO))
			share_move(w->shares[i], SHARE_JOIN_SENT);
		if (r == 0)
			acknowledge(w->shares[i]);
		else if (r == -EIO)
			mark_unsettled(w->shares[i]);
		else if (r == -EAGAIN || r == -ENOSPC || r == -EACCES)
			take_back(w->shares[i]);
		w->shares[i]->conflicts += r == -EAGAIN;
	}
}

static int commit(struct weir_fleet *f, struct writing *w)
{
	uint64_t version;
	int r = weir_store_commit(f->store, f->session, w->checks, w->check_count, w->writes,
				  w->write_count, &version);

	if (r == 0)
		watching_own(f, version);
	conclude(f, w, r);
	return r == 0 || r == -EAGAIN ? 0 : fleet_fail(f, r);
}

int batch_commit(struct weir_fleet *f, struct batch *b, bool together)
{
	const size_t most = together ? AT_ONCE : 1;
	size_t i = 0;
	int r = 0;

	while (i < b->count && r == 0) {
		struct writing w = {.batch = b};

		do {
			if (b->shares[i]->step != STEP_SETTLED && b->shares[i]->step != STEP_READ)
				r = write_share(&w, b->shares[i]);
			i++;
		} while (r == 0 && i < b->count && w.count < most);
		if (r == 0 && w.count > 0)
			r = commit(f, &w);
		end_writing(&w);
	}
	return r;
}
