/*
 * A refresh of parts: read which members are there, what each owns and asks for; lose, give up,
 * take and ask; and commit it.
 *
 * A part that is given up is lost here before the commit that erases its row, so that no other
 * member begins before this one has ended; a part that is taken is gained after the commit
 * (parts_own.c). Whatever becomes of a commit, the next reading decides: a row with this member's
 * number is its own, except for one that it has given up.
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
 * Rows of each kind in a commit: erased, taken with their wishes, wished, withdrawn, and its own.
 */
#define EACH_MAX 12

_Static_assert(5 * EACH_MAX + 1 <= WEIR_STORE_ROWS_MAX, "a commit has room for all rows");

#define CONFLICTS_MAX 8
#define COMMITS_MAX   (3 * WEIR_WORK_MAX / EACH_MAX)

#define VALUE_SIZE 32

/* The kind of parts, as all members have it, and as the store has it. */
static bool fits(const struct weir_work *p)
{
	return p->kind.count == p->config.count && p->kind.capacity == p->config.capacity &&
	       p->kind.factor == p->config.factor;
}

static void print_kind(uint32_t count, uint64_t capacity, uint64_t factor, char text[96])
{
	if (factor == 0)
		(void)snprintf(text, 96, "%" PRIu32 " parts of work", count);
	else
		(void)snprintf(text, 96, "a capacity of %" PRIu64 " in parts of %" PRIu64, capacity,
			       factor);
}

/* Parts are configured here otherwise than by the members that are there: this one has none. */
static int refuse(struct weir_work *p)
{
	const struct weir_work_config *c = &p->config;
	char here[96], there[96];

	parts_drop(p);
	print_kind(c->count, c->capacity, c->factor, here);
	print_kind(p->kind.count, p->kind.capacity, p->kind.factor, there);
	if (p->joined || p->own_made != 0)
		p->joined = parts_leave(p) != 1;
	return fleet_say(p->fleet, -EEXIST, "%.64s is %s for the members there are, and %s here.",
			 p->name, there, here);
}

/*
 * Every member that comes writes what the parts are, provided that it was not written since it was
 * read. So a member that finds no others, and changes what the parts are, does so before the next
 * one comes, or not at all.
 */
static int join(struct weir_work *p)
{
	const bool is_there = p->own_made != 0, has_kind = p->kind_version != 0;
	char text[RECORD_SIZE], kind[RECORD_SIZE];
	const struct parts_record record = {
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
		{p->kind_key, WEIR_STORE_WRITE_PUT, kind, parts_print(&record, kind)},
		{p->own_key, WEIR_STORE_WRITE_BIND, text, worker_print(p->fleet->label, text)},
	};

	if (!is_there)
		p->refreshes = 0;
	return weir_store_commit(p->fleet->store, p->fleet->session, checks, 2, writes,
				 is_there ? 1 : 2, NULL);
}

/* Whether a row is this member's, and the member has not given it up. */
static bool is_ours(const struct weir_work *p, const struct part *part)
{
	return part->owner == p->id && part->made != part->gone;
}

/* What has happened since the last reading. */
static void notice(struct weir_work *p)
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

/* To be given up with the next commit. */
static void mark(struct part *part)
{
	atomic_store_explicit(&part->leave, part->made, RELAXED);
}

/* Another member asks for a part and is due it, or no longer is. */
static void heed_wishes(struct weir_work *p)
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
			mark(part);
		else
			part_tell_wish(p, i);
	}
}

/* Of capacity: give up what is not wanted any more; how many more are. */
static uint32_t settle_wants(struct weir_work *p)
{
	const uint64_t want = atomic_load_explicit(&p->want, RELAXED);
	const uint64_t target = want > p->config.reserved ? want - p->config.reserved : 0;
	uint64_t have = 0, more;

	for (uint32_t i = 0; i < p->config.count; i++)
		have += is_ours(p, &p->part[i]) ? part_worth(p, i) : 0;
	for (uint32_t i = 0; i < p->config.count; i++) {
		if (!is_ours(p, &p->part[i]) || have < target + part_worth(p, i))
			continue;
		mark(&p->part[i]);
		have -= part_worth(p, i);
	}
	if (have >= target)
		return 0;
	more = (target - have + p->config.factor - 1) / p->config.factor;
	return more < p->config.count ? (uint32_t)more : p->config.count;
}

/* The member that asks for a part; if it does not take the part once it can, its wish is void. */
static uint64_t wisher_of(const struct weir_work *p, const struct part *part)
{
	const weir_dur kept = p->fleet->refresh / 10 * 13; /* it looks within that */

	if (part->spare != 0 && fleet_now(p->fleet) - part->spare >= kept)
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
		balance_wanted(&b, settle_wants(p), moves);
	else
		balance(&b, moves);
	free(owners);
	return 0;
}

/* A commit, as it is put together. */
struct change {
	struct weir_work *parts;
	struct weir_store_check checks[WEIR_STORE_ROWS_MAX];
	struct weir_store_write writes[WEIR_STORE_ROWS_MAX];
	char keys[WEIR_STORE_ROWS_MAX][PART_KEY_SIZE];
	char value[VALUE_SIZE];
	size_t check_count, write_count, key_count;
	uint32_t taken[EACH_MAX];
	uint32_t takes, wishes, withdrawals, erased;
	bool more; /* than there is room for */
};

static const char *key_for(struct change *c, const char *what, uint32_t part)
{
	char *key = c->keys[c->key_count++];

	part_key(c->parts, what, part, key, PART_KEY_SIZE);
	return key;
}

static void put_row(struct change *c, const char *key)
{
	c->checks[c->check_count++] = (struct weir_store_check){key, WEIR_STORE_CHECK_ABSENT, 0};
	c->writes[c->write_count++] = (struct weir_store_write){key, WEIR_STORE_WRITE_BIND,
								c->value, strlen(c->value)};
}

/* made: the commit that made it; 0: any. */
static void erase_row(struct change *c, const char *key, uint64_t made)
{
	if (made != 0)
		c->checks[c->check_count++] = (struct weir_store_check){key, WEIR_STORE_CHECK_MADE,
									made};
	c->writes[c->write_count++] = (struct weir_store_write){key, WEIR_STORE_WRITE_ERASE, NULL,
								0};
}

/* A row of its own that is to go: of a part that it has given up, or is to give up now. */
static bool is_to_go(const struct weir_work *p, const struct part *part)
{
	if (part->owner != p->id)
		return false;
	return part->made == part->gone ||
	       atomic_load_explicit(&part->leave, RELAXED) == part->made;
}

static void add_erasures(struct change *c, uint32_t room)
{
	struct weir_work *p = c->parts;

	for (uint32_t i = 0; i < p->config.count; i++) {
		const struct part *part = &p->part[i];

		if (!is_to_go(p, part))
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
	const struct weir_work *p = c->parts;

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

/* One commit of what is to be done. 1: there is more; 0; or as the store has it. */
static int act(struct weir_work *p, uint32_t room)
{
	struct change c = {.parts = p};
	struct moves moves = {.takes = 0};
	uint64_t version;
	int r = 0;

	heed_wishes(p);
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

/* 1: do it again; 0: all is done; or as the store has it. */
static int round_of(struct weir_work *p, uint32_t room)
{
	int r = parts_read(p, true);

	/* Of nonsense nobody takes anything. */
	if (r == -EPROTO && p->joined)
		parts_keep(p);
	if (r != 0)
		return r;
	if (p->kind_version != 0 && !fits(p) && p->count + p->rows > 0)
		return refuse(p);
	if (p->own_made == 0 || p->kind_version == 0 || !fits(p)) {
		r = join(p);
		return r == 0 ? 1 : r;
	}
	p->joined = true;
	parts_keep(p);
	notice(p);
	return act(p, room);
}

int parts_refresh(struct weir_work *p)
{
	unsigned conflicts = 0;
	int r = 1;

	for (unsigned i = 0; i < COMMITS_MAX && r == 1; i++) {
		/* Who was in another's way goes on in small steps. */
		r = round_of(p, conflicts > 0 ? 1 : EACH_MAX);
		if (r == -EAGAIN && ++conflicts < CONFLICTS_MAX)
			r = 1;
	}
	if (r == 0 || r == 1 || r == -EAGAIN)
		p->refreshes++;
	return r == 1 || r == -EAGAIN ? 0 : r;
}
