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
 * Rows of each kind in a commit: erased with notes that they are to be, claimed with their requests,
 * requested, withdrawn; one more is the member's own.
 */
#define EACH_MAX 12

_Static_assert(6 * EACH_MAX + 1 <= WEIR_STORE_ROWS_MAX, "a commit has room for all rows");

#define CONFLICTS_MAX 8
#define COMMITS_MAX   (3 * WEIR_WORK_MAX / EACH_MAX)

/*
 * A member that has asked for a partition looks for it twenty times in an interval between
 * refreshes, so that it owns the partition soon after its release. It does so for four intervals,
 * in which the owner has read the request, and its hand-over of two intervals has ended.
 */
#define POLLS_EACH 20
#define POLLS_FOR  4

/* Whether the partitions are configured the same way here and in the store. */
static bool is_same_kind(const struct weir_work *w)
{
	return w->kind.count == w->config.count && w->kind.capacity == w->config.capacity &&
	       w->kind.factor == w->config.factor;
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
 * A capacity that was changed for all members is what the store says, whatever this one is configured
 * with (work_resize.c). Returns 0, or -EPROTO.
 */
static int adopt(struct weir_work *w)
{
	const struct work_record *kind = &w->kind;

	if (w->kind_version == 0 || kind->changes == 0 || kind->factor == 0 ||
	    w->config.factor == 0)
		return 0;
	if (kind->count == 0 || kind->count > WEIR_WORK_MAX ||
	    kind->count != work_count(kind->capacity, kind->factor))
		return -EPROTO;
	w->config.count = kind->count;
	w->config.capacity = kind->capacity;
	w->config.factor = kind->factor;
	w->changes = kind->changes;
	work_use(w, kind->count);
	return 0;
}

/*
 * Partitions are configured differently by the members that are present, so this one claims none.
 */
static int refuse(struct weir_work *w)
{
	const struct weir_work_config *c = &w->config;
	char here[96], there[96];

	work_drop(w);
	print_kind(c->count, c->capacity, c->factor, here);
	print_kind(w->kind.count, w->kind.capacity, w->kind.factor, there);
	if (w->joined || w->own_made != 0)
		w->joined = work_leave(w) != 1;
	return fleet_say(w->fleet, -EEXIST, "%.64s is %s for the members present, but %s here.",
			 w->name, there, here);
}

static struct worker_record worker_of(const struct weir_work *w)
{
	struct worker_record record = {.weight = w->config.weight};

	memcpy(record.label, w->fleet->label, sizeof(record.label));
	return record;
}

/*
 * Every member that joins writes the configuration of the partitions, provided that it was not
 * written since it was read. So a member that finds no others, and changes the configuration, does
 * so before the next one joins, or not at all.
 */
static int join(struct weir_work *w)
{
	const bool is_there = w->own_made != 0, has_kind = w->kind_version != 0;
	char text[RECORD_SIZE], kind[RECORD_SIZE];
	const struct work_record record = {
		.count = w->config.count,
		.capacity = w->config.capacity,
		.factor = w->config.factor,
		.lease = w->lease / WEIR_MS,
		.changes = has_kind && is_same_kind(w) ? w->kind.changes : w->changes,
	};
	const struct worker_record worker = worker_of(w);
	const struct weir_store_check checks[] = {
		{w->own_key, is_there ? WEIR_STORE_CHECK_MADE : WEIR_STORE_CHECK_ABSENT,
		 w->own_made},
		{w->kind_key, has_kind ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT,
		 w->kind_version},
	};
	const struct weir_store_write writes[] = {
		{w->kind_key, WEIR_STORE_WRITE_PUT, kind, work_print(&record, kind)},
		{w->own_key, WEIR_STORE_WRITE_BIND, text, worker_print(&worker, text)},
	};

	if (!is_there)
		w->refreshes = 0;
	return weir_store_commit(w->fleet->store, w->fleet->session, checks, 2, writes,
				 is_there ? 1 : 2, NULL);
}

/* Whether the fence of the row is void: its checkpoint was set back, or found the fence void. */
static bool is_void(const struct partition *partition)
{
	return partition->made == partition->rewound ||
	       partition->made == atomic_load_explicit(&partition->refused, RELAXED);
}

/* Whether the row is one by which the member has released the partition. */
static bool is_released(const struct partition *partition)
{
	return partition->made == atomic_load_explicit(&partition->released_fence, RELAXED);
}

/* Whether a row is this member's, and the member has not released the partition. */
static bool is_ours(const struct weir_work *w, const struct partition *partition)
{
	return partition->owner == w->id && !is_released(partition) && !is_void(partition);
}

/* Whether a row is for what the partition is worth now; of plain work, it always is. */
static bool is_fit(const struct weir_work *w, uint32_t i)
{
	const struct partition *partition = &w->partitions[i];

	if (w->config.factor == 0)
		return true;
	return i < w->config.count && partition->from == i * w->config.factor &&
	       partition->worth == partition_worth(w, i);
}

/* Apply what has happened since the last reading. */
static void update_ownership(struct weir_work *w)
{
	for (uint32_t i = 0; i < work_used(w); i++) {
		struct partition *partition = &w->partitions[i];
		const uint64_t fence = atomic_load_explicit(&partition->fence, RELAXED);
		const bool ours = is_ours(w, partition);

		if (fence != 0 && (!ours || partition->made != fence))
			partition_lose(w, i, true);
		if (ours && partition->made != fence && !w->learning && is_fit(w, i))
			partition_gain(w, i, partition->made, partition->worth);
	}
}

static uint32_t owned(const struct weir_work *w)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < work_used(w); i++)
		count += is_ours(w, &w->partitions[i]);
	return count;
}

/* Release with the next commit. */
static void mark_release(struct partition *partition)
{
	atomic_store_explicit(&partition->leave, partition->made, RELAXED);
}

/* Whether this member has had a partition for as long as it is to have it at least. */
static bool is_held_enough(const struct weir_work *w, const struct partition *partition)
{
	return partition->held_fence != partition->made ||
	       fleet_now(w->fleet) - partition->held_since >= w->config.hold;
}

/* Handle requests of other members: notify, release, or drop requests that no longer count. */
static void answer_requests(struct weir_work *w)
{
	uint32_t left = owned(w);

	for (uint32_t i = 0; i < work_used(w); i++) {
		struct partition *partition = &w->partitions[i];

		if (!is_ours(w, partition))
			continue;
		if (partition->requester == 0 || partition->requester == w->id ||
		    !is_held_enough(w, partition) ||
		    !balance_yields(w->config.count, w->members, w->count, w->id, left)) {
			partition_forget_request(w, i);
			continue;
		}
		left--;
		if (w->config.on_request == NULL)
			mark_release(partition);
		else
			partition_notify_request(w, i);
	}
}

/*
 * After a change of the capacity or the factor: what this member has of the earlier ones is given up
 * at once, as the rows may take several commits.
 */
static void release_unfit(struct weir_work *w)
{
	for (uint32_t i = 0; i < work_used(w); i++) {
		if (!is_ours(w, &w->partitions[i]) || is_fit(w, i))
			continue;
		partition_give_up(w, i, false);
		if (is_ours(w, &w->partitions[i]))
			mark_release(&w->partitions[i]);
	}
}

/* For capacity: mark partitions that are no longer wanted; returns how many more are wanted. */
static uint32_t release_unwanted(struct weir_work *w)
{
	const uint64_t want = atomic_load_explicit(&w->want, RELAXED);
	const uint64_t target = want > w->config.reserved ? want - w->config.reserved : 0;
	uint64_t have = 0, more;

	for (uint32_t i = 0; i < w->config.count; i++)
		if (is_ours(w, &w->partitions[i]) && is_fit(w, i))
			have += partition_worth(w, i);
	for (uint32_t i = 0; i < w->config.count; i++) {
		if (!is_ours(w, &w->partitions[i]) || !is_fit(w, i) ||
		    have < target + partition_worth(w, i))
			continue;
		mark_release(&w->partitions[i]);
		have -= partition_worth(w, i);
	}
	if (have >= target)
		return 0;
	more = (target - have + w->config.factor - 1) / w->config.factor;
	return more < w->config.count ? (uint32_t)more : w->config.count;
}

/*
 * The member that asks for a partition. If it does not claim the partition once it can, its request
 * lapses.
 */
static uint64_t requester_of(const struct weir_work *w, const struct partition *partition)
{
	/* The longest interval between its refreshes. */
	const weir_dur kept = w->fleet->refresh / 10 * 13;

	if (partition->free_since != 0 && fleet_now(w->fleet) - partition->free_since >= kept)
		return 0;
	return partition->requester;
}

/*
 * Of the moves, only those that finish an earlier one: a member that has just released a partition
 * does not take it back before others have seen it, and a slow start stays slow.
 */
static void keep_requested(const struct weir_work *w, struct moves *moves)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < moves->takes; i++)
		if (w->partitions[moves->take[i]].requester == w->id)
			moves->take[kept++] = moves->take[i];
	moves->takes = kept;
	moves->requests = 0;
}

/*
 * What is owned. Units of an earlier capacity or factor belong to their owner until its row is gone,
 * so each partition that has one of them has an owner.
 */
static void fill_owners(const struct weir_work *w, uint64_t *owners)
{
	for (uint32_t i = 0; i < work_used(w); i++) {
		const struct partition *partition = &w->partitions[i];
		uint64_t first, last;

		if (partition->owner == 0)
			continue;
		if (i < w->config.count)
			owners[i] = partition->owner;
		if (is_fit(w, i))
			continue;
		first = partition->from / w->config.factor;
		last = (partition->from + partition->worth - 1) / w->config.factor;
		for (uint64_t at = first; at <= last && at < w->config.count; at++)
			owners[at] = partition->owner;
	}
}

static int decide(struct weir_work *w, struct moves *moves)
{
	uint64_t *owners = calloc(w->config.count, 2 * sizeof(*owners));
	struct balance b = {
		.partitions = w->config.count,
		.owners = owners,
		.requesters = owners + w->config.count,
		.members = w->members,
		.count = w->count,
		.self = w->id,
		.greedy = w->config.strategy == WEIR_WORK_GREEDY,
		.chance = fleet_draw(w->fleet, 0),
	};

	if (owners == NULL)
		return -ENOMEM;
	fill_owners(w, owners);
	for (uint32_t i = 0; i < w->config.count; i++)
		owners[w->config.count + i] = requester_of(w, &w->partitions[i]);
	if (w->config.strategy == WEIR_WORK_WANTED)
		balance_wanted(&b, release_unwanted(w), moves);
	else
		balance(&b, moves);
	if (w->participant.hurried)
		keep_requested(w, moves);
	free(owners);
	return 0;
}

/* A commit under construction. */
struct change {
	struct weir_work *work;
	struct weir_store_check checks[WEIR_STORE_ROWS_MAX];
	struct weir_store_write writes[WEIR_STORE_ROWS_MAX];
	char keys[WEIR_STORE_ROWS_MAX][PARTITION_KEY_SIZE];
	char values[2 * EACH_MAX][OWNER_SIZE];
	size_t check_count, write_count, key_count, value_count;
	uint32_t taken[EACH_MAX];
	uint32_t takes, requests, withdrawals, erased;
	bool more; /* there are more rows than fit, or partitions to be claimed anew */
};

static const char *key_for(struct change *c, const char *what, uint32_t partition)
{
	char *key = c->keys[c->key_count++];

	partition_key(c->work, what, partition, key, PARTITION_KEY_SIZE);
	return key;
}

/* Of this member; units 0: of no capacity. */
static void put_row(struct change *c, const char *key, uint64_t from, uint64_t units)
{
	const struct owner_record record = {c->work->id, from, units};
	char *value = c->values[c->value_count++];

	c->checks[c->check_count++] = (struct weir_store_check){key, WEIR_STORE_CHECK_ABSENT, 0};
	c->writes[c->write_count++] = (struct weir_store_write){key, WEIR_STORE_WRITE_BIND, value,
								owner_print(&record, value)};
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

/* The note that the checkpoint of a partition was set back, as it was read. */
static void erase_note(struct change *c, const char *key, uint64_t version)
{
	c->checks[c->check_count++] = (struct weir_store_check){key, WEIR_STORE_CHECK_VERSION,
								version};
	c->writes[c->write_count++] = (struct weir_store_write){key, WEIR_STORE_WRITE_ERASE, NULL,
								0};
}

/*
 * Whether a row of this member is to be erased: it has released the partition, or is to do so now.
 */
static bool is_to_erase(const struct weir_work *w, const struct partition *partition)
{
	if (partition->owner != w->id)
		return false;
	return is_released(partition) || is_void(partition) ||
	       atomic_load_explicit(&partition->leave, RELAXED) == partition->made;
}

static void add_erasures(struct change *c, uint32_t room)
{
	struct weir_work *w = c->work;

	for (uint32_t i = 0; i < work_used(w); i++) {
		const struct partition *partition = &w->partitions[i];

		if (!is_to_erase(w, partition))
			continue;
		if (c->erased == room) {
			c->more = true;
			return;
		}
		partition_give_up(w, i, false);
		c->erased++;
		c->more |= is_void(partition) || !is_fit(w, i);
		erase_row(c, key_for(c, "partition", i), partition->made);
		if (partition->rewound != 0)
			erase_note(c, key_for(c, "rewound", i), partition->rewound_version);
	}
}

/* Partitions of a capacity are claimed only as long as it is the one that was read. */
static void check_kind(struct change *c)
{
	const struct weir_work *w = c->work;

	if (w->config.factor != 0)
		c->checks[c->check_count++] = (struct weir_store_check){
			w->kind_key, WEIR_STORE_CHECK_VERSION, w->kind_version};
}

static void add_moves(struct change *c, uint32_t room, const struct moves *m)
{
	const struct weir_work *w = c->work;

	if (m->takes > 0)
		check_kind(c);
	for (uint32_t i = 0; i < m->takes && c->takes < room; i++) {
		put_row(c, key_for(c, "partition", m->take[i]), m->take[i] * w->config.factor,
			w->config.factor != 0 ? partition_worth(w, m->take[i]) : 0);
		if (w->partitions[m->take[i]].request_made != 0)
			erase_row(c, key_for(c, "request", m->take[i]), 0);
		c->taken[c->takes++] = m->take[i];
	}
	for (uint32_t i = 0; i < m->requests && c->requests < room; i++) {
		put_row(c, key_for(c, "request", m->request[i]), 0, 0);
		c->requests++;
	}
	for (uint32_t i = 0; i < m->withdrawals && c->withdrawals < room; i++) {
		erase_row(c, key_for(c, "request", m->withdraw[i]),
			  w->partitions[m->withdraw[i]].request_made);
		c->withdrawals++;
	}
	c->more |= m->takes > c->takes || m->requests > c->requests ||
		   m->withdrawals > c->withdrawals;
}

/* Commit one batch of moves. Returns 1 if there are more, 0, or an error of the store. */
static int commit_moves(struct weir_work *w, uint32_t room)
{
	struct change c = {.work = w};
	struct moves moves = {.takes = 0};
	uint64_t version;
	int r = 0;

	answer_requests(w);
	if (!w->participant.hurried)
		release_unfit(w);
	if (w->refreshes > 0 && !w->learning)
		r = decide(w, &moves);
	if (r != 0)
		return r;
	c.checks[c.check_count++] = (struct weir_store_check){w->own_key, WEIR_STORE_CHECK_MADE,
							      w->own_made};
	add_erasures(&c, room);
	add_moves(&c, room, &moves);
	/* What is given up is, before others can claim it. */
	work_report_units(w);
	if (c.write_count == 0)
		return 0;
	r = weir_store_commit(w->fleet->store, w->fleet->session, c.checks, c.check_count, c.writes,
			      c.write_count, &version);
	if (r != 0)
		return r;
	for (uint32_t i = 0; i < c.takes; i++)
		partition_gain(w, c.taken[i], version, partition_worth(w, c.taken[i]));
	work_report_units(w);
	if (c.requests > 0)
		w->polls = fleet_now(w->fleet) + POLLS_FOR * w->fleet->refresh;
	return c.more;
}

/* Returns 1 if it must be repeated, 0 if all is done, or an error of the store. */
static int refresh_once(struct weir_work *w, uint32_t room)
{
	int r = work_read(w, true);

	/* While the rows are invalid, no member can claim anything, so the lease goes on. */
	if (r == -EPROTO && w->joined)
		work_keep(w);
	if (r == 0)
		r = adopt(w);
	if (r != 0)
		return r;
	if (w->kind_version != 0 && !is_same_kind(w) && w->count + w->rows > 0)
		return refuse(w);
	if (w->own_made == 0 || w->kind_version == 0 || !is_same_kind(w)) {
		r = join(w);
		return r == 0 ? 1 : r;
	}
	w->joined = true;
	work_keep(w);
	update_ownership(w);
	return commit_moves(w, room);
}

static bool awaits(const struct weir_work *w)
{
	for (uint32_t i = 0; i < work_used(w); i++)
		if (w->partitions[i].requester == w->id)
			return true;
	return false;
}

/* When it looks again for what it has asked for, as last read. */
static weir_time next_poll(const struct weir_work *w)
{
	const weir_time now = fleet_now(w->fleet);
	const weir_dur pace = w->fleet->refresh / POLLS_EACH;

	if (now >= w->polls)
		return 0;
	return awaits(w) ? now + pace / 10 * 8 + fleet_draw(w->fleet, pace / 2 + 1) : 0;
}

int work_refresh(struct weir_work *w)
{
	unsigned conflicts = 0;
	int r = 1;

	for (unsigned i = 0; i < COMMITS_MAX && r == 1; i++) {
		/* After a conflict, commit one row of each kind at a time. */
		r = refresh_once(w, conflicts > 0 ? 1 : EACH_MAX);
		if (r == -EAGAIN && ++conflicts < CONFLICTS_MAX)
			r = 1;
	}
	if ((r == 0 || r == 1 || r == -EAGAIN) && !w->participant.hurried)
		w->refreshes++;
	w->contended = r == -EAGAIN;
	w->participant.soon = next_poll(w);
	return r == 1 || r == -EAGAIN ? 0 : r;
}
