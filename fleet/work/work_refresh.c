/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A refresh of partitions: read which members are present, and what each owns and asks for; lose,
 * release, claim and ask; and commit that.
 *
 * A partition that is released is lost locally before the commit that erases its row, so that no
 * other member begins before this one has ended. A partition that is claimed is gained after the
 * commit (ownership.c). Whatever becomes of a commit, the next reading decides: a row with this
 * member's number is its own, except one that it has released.
 */

#include "fleet/work/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/refresh.h"

#define RELAXED memory_order_relaxed

/*
 * Rows of each kind in a commit: erased, claimed with their wishes, wished, withdrawn; one more is
 * the member's own.
 */
#define EACH_MAX 12

_Static_assert(5 * EACH_MAX + 1 <= WEIR_STORE_ROWS_MAX, "a commit has room for all rows");

#define CONFLICTS_MAX 8
#define COMMITS_MAX   (3 * WEIR_WORK_MAX / EACH_MAX)

#define VALUE_SIZE 32

/* Whether the partitions are configured the same way here and in the store. */
static bool is_same_kind(const struct weir_work *p)
{
	return p->kind.count == p->config.count && p->kind.capacity == p->config.capacity &&
	       p->kind.factor == p->config.factor;
}

static void print_kind(uint32_t count, uint64_t capacity, uint64_t factor, char text[96])
{
	if (factor == 0)
		(void)snprintf(text, 96, "%" PRIu32 " partitions of work", count);
	else
		(void)snprintf(text, 96, "a capacity of %" PRIu64 " in partitions of %" PRIu64,
			       capacity, factor);
}

/*
 * Partitions are configured differently by the members that are present, so this one claims none.
 */
static int refuse(struct weir_work *p)
{
	const struct weir_work_config *c = &p->config;
	char here[96], there[96];

	work_drop(p);
	print_kind(c->count, c->capacity, c->factor, here);
	print_kind(p->kind.count, p->kind.capacity, p->kind.factor, there);
	if (p->joined || p->own_made != 0)
		p->joined = work_leave(p) != 1;
	return fleet_say(p->fleet, -EEXIST, "%.64s is %s for the members present, but %s here.",
			 p->name, there, here);
}

/*
 * Every member that joins writes the configuration of the partitions, provided that it was not
 * written since it was read. So a member that finds no others, and changes the configuration, does
 * so before the next one joins, or not at all.
 */
static int join(struct weir_work *p)
{
	const bool is_there = p->own_made != 0, has_kind = p->kind_version != 0;
	char text[RECORD_SIZE], kind[RECORD_SIZE];
	const struct work_record record = {
		.count = p->config.count,
		.capacity = p->config.capacity,
		.factor = p->config.factor,
		.lease = p->lease / WEIR_MS,
	};
	const struct weir_store_check checks[] = {
		{p->own_key, is_there ? WEIR_STORE_CHECK_MADE : WEIR_STORE_CHECK_ABSENT,
		 p->own_made},
		{p->kind_key, has_kind ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT,
		 p->kind_version},
	};
	const struct weir_store_write writes[] = {
		{p->kind_key, WEIR_STORE_WRITE_PUT, kind, work_print(&record, kind)},
		{p->own_key, WEIR_STORE_WRITE_BIND, text, worker_print(p->fleet->label, text)},
	};

	if (!is_there)
		p->refreshes = 0;
	return weir_store_commit(p->fleet->store, p->fleet->session, checks, 2, writes,
				 is_there ? 1 : 2, NULL);
}

/* Whether a row is this member's, and the member has not released the partition. */
static bool is_ours(const struct weir_work *p, const struct part *part)
{
	return part->owner == p->id && part->made != part->released_fence;
}

/* Apply what has happened since the last reading. */
static void update_ownership(struct weir_work *p)
{
	for (uint32_t i = 0; i < p->config.count; i++) {
		struct part *part = &p->part[i];
		const uint64_t fence = atomic_load_explicit(&part->fence, RELAXED);
		const bool ours = is_ours(p, part);

		if (fence != 0 && (!ours || part->made != fence))
			part_lose(p, i, true);
		if (ours && part->made != fence && !p->learning)
			part_gain(p, i, part->made);
	}
}

static uint32_t owned(const struct weir_work *p)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->config.count; i++)
		count += is_ours(p, &p->part[i]);
	return count;
}

/* Release with the next commit. */
static void mark_release(struct part *part)
{
	atomic_store_explicit(&part->leave, part->made, RELAXED);
}

/* Handle wishes of other members: notify, release, or drop wishes that no longer count. */
static void answer_wishes(struct weir_work *p)
{
	uint32_t left = owned(p);

	for (uint32_t i = 0; i < p->config.count; i++) {
		struct part *part = &p->part[i];

		if (!is_ours(p, part))
			continue;
		if (part->wisher == 0 || part->wisher == p->id ||
		    !balance_yields(p->config.count, p->count, left)) {
			part_forget_wish(p, i);
			continue;
		}
		left--;
		if (p->config.on_wish == NULL)
			mark_release(part);
		else
			part_notify_wish(p, i);
	}
}

/* For capacity: mark partitions that are no longer wanted; returns how many more are wanted. */
static uint32_t release_unwanted(struct weir_work *p)
{
	const uint64_t want = atomic_load_explicit(&p->want, RELAXED);
	const uint64_t target = want > p->config.reserved ? want - p->config.reserved : 0;
	uint64_t have = 0, more;

	for (uint32_t i = 0; i < p->config.count; i++)
		have += is_ours(p, &p->part[i]) ? part_worth(p, i) : 0;
	for (uint32_t i = 0; i < p->config.count; i++) {
		if (!is_ours(p, &p->part[i]) || have < target + part_worth(p, i))
			continue;
		mark_release(&p->part[i]);
		have -= part_worth(p, i);
	}
	if (have >= target)
		return 0;
	more = (target - have + p->config.factor - 1) / p->config.factor;
	return more < p->config.count ? (uint32_t)more : p->config.count;
}

/*
 * The member that asks for a partition. If it does not claim the partition once it can, its wish
 * lapses.
 */
static uint64_t wisher_of(const struct weir_work *p, const struct part *part)
{
	/* The longest interval between its refreshes. */
	const weir_dur kept = p->fleet->refresh / 10 * 13;

	if (part->free_since != 0 && fleet_now(p->fleet) - part->free_since >= kept)
		return 0;
	return part->wisher;
}

static int decide(struct weir_work *p, struct moves *moves)
{
	uint64_t *owners = calloc(p->config.count, 2 * sizeof(*owners));
	struct balance b = {
		.parts = p->config.count,
		.owners = owners,
		.wishers = owners + p->config.count,
		.members = p->members,
		.count = p->count,
		.self = p->id,
		.greedy = p->config.strategy == WEIR_WORK_GREEDY,
		.chance = fleet_draw(p->fleet, 0),
	};

	if (owners == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->config.count; i++) {
		owners[i] = p->part[i].owner;
		owners[p->config.count + i] = wisher_of(p, &p->part[i]);
	}
	if (p->config.strategy == WEIR_WORK_WANTED)
		balance_wanted(&b, release_unwanted(p), moves);
	else
		balance(&b, moves);
	free(owners);
	return 0;
}

/* A commit under construction. */
struct change {
	struct weir_work *work;
	struct weir_store_check checks[WEIR_STORE_ROWS_MAX];
	struct weir_store_write writes[WEIR_STORE_ROWS_MAX];
	char keys[WEIR_STORE_ROWS_MAX][PART_KEY_SIZE];
	char value[VALUE_SIZE];
	size_t check_count, write_count, key_count;
	uint32_t taken[EACH_MAX];
	uint32_t takes, wishes, withdrawals, erased;
	bool more; /* there are more rows than fit */
};

static const char *key_for(struct change *c, const char *what, uint32_t part)
{
	char *key = c->keys[c->key_count++];

	part_key(c->work, what, part, key, PART_KEY_SIZE);
	return key;
}

static void put_row(struct change *c, const char *key)
{
	c->checks[c->check_count++] = (struct weir_store_check){key, WEIR_STORE_CHECK_ABSENT, 0};
	c->writes[c->write_count++] = (struct weir_store_write){key, WEIR_STORE_WRITE_BIND,
								c->value, strlen(c->value)};
}

/* made: the commit that created the row; 0: not checked. */
static void erase_row(struct change *c, const char *key, uint64_t made)
{
	if (made != 0)
		c->checks[c->check_count++] = (struct weir_store_check){key, WEIR_STORE_CHECK_MADE,
									made};
	c->writes[c->write_count++] = (struct weir_store_write){key, WEIR_STORE_WRITE_ERASE, NULL,
								0};
}

/*
 * Whether a row of this member is to be erased: it has released the partition, or is to do so now.
 */
static bool is_to_erase(const struct weir_work *p, const struct part *part)
{
	if (part->owner != p->id)
		return false;
	return part->made == part->released_fence ||
	       atomic_load_explicit(&part->leave, RELAXED) == part->made;
}

static void add_erasures(struct change *c, uint32_t room)
{
	struct weir_work *p = c->work;

	for (uint32_t i = 0; i < p->config.count; i++) {
		const struct part *part = &p->part[i];

		if (!is_to_erase(p, part))
			continue;
		if (c->erased == room) {
			c->more = true;
			return;
		}
		part_give_up(p, i, false);
		c->erased++;
		erase_row(c, key_for(c, "part", i), part->made);
	}
}

static void add_moves(struct change *c, uint32_t room, const struct moves *m)
{
	const struct weir_work *p = c->work;

	for (uint32_t i = 0; i < m->takes && c->takes < room; i++) {
		put_row(c, key_for(c, "part", m->take[i]));
		if (p->part[m->take[i]].wish_made != 0)
			erase_row(c, key_for(c, "wish", m->take[i]), 0);
		c->taken[c->takes++] = m->take[i];
	}
	for (uint32_t i = 0; i < m->wishes && c->wishes < room; i++) {
		put_row(c, key_for(c, "wish", m->wish[i]));
		c->wishes++;
	}
	for (uint32_t i = 0; i < m->withdrawals && c->withdrawals < room; i++) {
		erase_row(c, key_for(c, "wish", m->withdraw[i]), p->part[m->withdraw[i]].wish_made);
		c->withdrawals++;
	}
	c->more |= m->takes > c->takes || m->wishes > c->wishes || m->withdrawals > c->withdrawals;
}

/* Commit one batch of moves. Returns 1 if there are more, 0, or an error of the store. */
static int commit_moves(struct weir_work *p, uint32_t room)
{
	struct change c = {.work = p};
	struct moves moves = {.takes = 0};
	uint64_t version;
	int r = 0;

	answer_wishes(p);
	if (p->refreshes > 0 && !p->learning)
		r = decide(p, &moves);
	if (r != 0)
		return r;
	(void)snprintf(c.value, sizeof(c.value), "%016" PRIx64 "\n", p->id);
	c.checks[c.check_count++] = (struct weir_store_check){p->own_key, WEIR_STORE_CHECK_MADE,
							      p->own_made};
	add_erasures(&c, room);
	add_moves(&c, room, &moves);
	if (c.write_count == 0)
		return 0;
	r = weir_store_commit(p->fleet->store, p->fleet->session, c.checks, c.check_count, c.writes,
			      c.write_count, &version);
	if (r != 0)
		return r;
	for (uint32_t i = 0; i < c.takes; i++)
		part_gain(p, c.taken[i], version);
	return c.more;
}

/* Returns 1 if it must be repeated, 0 if all is done, or an error of the store. */
static int refresh_once(struct weir_work *p, uint32_t room)
{
	int r = work_read(p, true);

	/* While the rows are invalid, no member can claim anything, so the lease goes on. */
	if (r == -EPROTO && p->joined)
		work_keep(p);
	if (r != 0)
		return r;
	if (p->kind_version != 0 && !is_same_kind(p) && p->count + p->rows > 0)
		return refuse(p);
	if (p->own_made == 0 || p->kind_version == 0 || !is_same_kind(p)) {
		r = join(p);
		return r == 0 ? 1 : r;
	}
	p->joined = true;
	work_keep(p);
	update_ownership(p);
	return commit_moves(p, room);
}

int work_refresh(struct weir_work *p)
{
	unsigned conflicts = 0;
	int r = 1;

	for (unsigned i = 0; i < COMMITS_MAX && r == 1; i++) {
		/* After a conflict, commit one row of each kind at a time. */
		r = refresh_once(p, conflicts > 0 ? 1 : EACH_MAX);
		if (r == -EAGAIN && ++conflicts < CONFLICTS_MAX)
			r = 1;
	}
	if (r == 0 || r == 1 || r == -EAGAIN)
		p->refreshes++;
	return r == 1 || r == -EAGAIN ? 0 : r;
}
