/*
 * A refresh of parts: read who is there, who owns what and who asks for what; lose, give up, take
 * and ask; and commit it.
 *
 * What is given up is lost here before the commit that erases its row, so that nobody has begun
 * before this one has ended; what is taken is gained after the commit. A commit of which nothing
 * was heard is decided by the next reading: a row with this member's number is its own.
 */

#include "parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "refresh.h"

#define RELAXED memory_order_relaxed

/*
 * Rows of each kind in a commit: erased, taken with their wishes, wished, withdrawn, and its own.
 */
#define EACH_MAX 12

_Static_assert(5 * EACH_MAX + 1 <= WEIR_STORE_ROWS_MAX, "a commit has room for all rows");

#define CONFLICTS_MAX 8
#define COMMITS_MAX   (3 * WEIR_PARTS_MAX / EACH_MAX)

#define KEY_SIZE   (WEIR_SHARE_NAME_MAX + 32)
#define VALUE_SIZE 32

static bool add_member(struct weir_parts *p, uint64_t id)
{
	if (p->count == p->room) {
		const size_t room = p->room > 0 ? 2 * p->room : 16;
		uint64_t *members = realloc(p->members, room * sizeof(*members));

		if (members == NULL)
			return false;
		p->members = members;
		p->room = room;
	}
	p->members[p->count++] = id;
	return true;
}

bool part_read_id(const char *text, size_t size, char after, uint64_t *id)
{
	char copy[20], *end;

	if (size == 0 || size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	errno = 0;
	*id = strtoull(copy, &end, 16);
	return errno == 0 && end != copy && *end == after && *id != 0;
}

/* What is read, and what went wrong with it. */
struct reading {
	struct weir_parts *parts;
	int result;
};

static bool take_part(struct reading *r, const char *number, const struct weir_row *row, bool wish)
{
	struct weir_parts *p = r->parts;
	char *end;
	const unsigned long i = strtoul(number, &end, 10);
	uint64_t id;

	if (*end != '\0' || end == number || !part_read_id(row->value, row->size, '\n', &id)) {
		r->result = -EPROTO;
		return false;
	}
	if (i >= p->config.count)
		return true; /* of members who are configured with more of them */
	if (wish) {
		p->part[i].wisher = id;
		p->part[i].wish_row = true;
	} else {
		p->part[i].owner = id;
		p->part[i].made = row->made;
	}
	return true;
}

static bool take_row(void *arg, const struct weir_row *row)
{
	struct reading *r = arg;
	const char *rest = row->key + strlen(r->parts->name) + 1;
	char label[LABEL_ROOM];
	uint64_t id;

	if (strncmp(rest, "part/", 5) == 0)
		return take_part(r, rest + 5, row, false);
	if (strncmp(rest, "wish/", 5) == 0)
		return take_part(r, rest + 5, row, true);
	if (!part_read_id(rest + 7, strlen(rest + 7), '\0', &id) ||
	    !worker_parse(row->value, row->size, label)) {
		r->result = -EPROTO;
		return false;
	}
	if (id == r->parts->id)
		r->parts->own_made = row->made;
	if (!add_member(r->parts, id))
		r->result = -ENOMEM;
	return r->result == 0;
}

static int by_number(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static bool is_member(const struct weir_parts *p, uint64_t id)
{
	return p->count > 0 && bsearch(&id, p->members, p->count, sizeof(id), by_number) != NULL;
}

static int read_all(struct weir_parts *p)
{
	char prefix[3][KEY_SIZE];
	const char *const prefixes[] = {prefix[0], prefix[1], prefix[2]};
	struct reading reading = {.parts = p};
	struct weir_view view;
	int r;

	(void)snprintf(prefix[0], KEY_SIZE, "%s/worker/", p->name);
	(void)snprintf(prefix[1], KEY_SIZE, "%s/part/", p->name);
	(void)snprintf(prefix[2], KEY_SIZE, "%s/wish/", p->name);
	p->count = 0;
	p->own_made = 0;
	for (uint32_t i = 0; i < p->config.count; i++) {
		struct part *part = &p->part[i];

		part->owner = part->made = part->wisher = 0;
		part->wish_row = false;
	}
	r = session_read(p->fleet, prefixes, 3, take_row, &reading, &view);
	if (r != 0 || reading.result != 0)
		return r != 0 ? r : reading.result;
	p->learning = view.proven < p->fleet->lease;
	if (p->count > 0)
		qsort(p->members, p->count, sizeof(p->members[0]), by_number);
	/* A wish of somebody who is gone is nobody's. */
	for (uint32_t i = 0; i < p->config.count; i++)
		if (!is_member(p, p->part[i].wisher))
			p->part[i].wisher = 0;
	return 0;
}

static int join(struct weir_parts *p)
{
	char text[RECORD_SIZE];
	const struct weir_check absent = {p->own_key, WEIR_CHECK_ABSENT, 0};
	const struct weir_write write = {p->own_key, WEIR_WRITE_BIND, text,
					 worker_print(p->fleet->label, text)};
	int r = weir_store_commit(p->fleet->store, p->fleet->session, &absent, 1, &write, 1, NULL);

	p->refreshes = 0;
	return r;
}

static void gain(struct weir_parts *p, uint32_t i, uint64_t fence)
{
	struct part *part = &p->part[i];

	part->wished = 0;
	part->told = false;
	atomic_store_explicit(&part->leave, 0, RELAXED);
	atomic_store_explicit(&part->fence, fence, RELAXED);
	if (p->config.on_gain != NULL)
		p->config.on_gain(p->config.arg, i, fence);
}

/* What has happened since the last reading. */
static void notice(struct weir_parts *p)
{
	for (uint32_t i = 0; i < p->config.count; i++) {
		struct part *part = &p->part[i];
		const uint64_t fence = atomic_load_explicit(&part->fence, RELAXED);
		const bool mine = part->owner == p->id;

		if (fence != 0 && (!mine || part->made != fence))
			part_lose(p, i, true);
		if (mine && part->made != fence)
			gain(p, i, part->made);
		if (part->wisher != p->id)
			part->wished = 0;
		else if (part->wished == 0)
			part->wished = fleet_now(p->fleet);
	}
}

static uint32_t owned(const struct weir_parts *p)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->config.count; i++)
		count += p->part[i].owner == p->id;
	return count;
}

/* Another asks for a part, and is due it. */
static void heed_wishes(struct weir_parts *p)
{
	uint32_t left = owned(p);

	for (uint32_t i = 0; i < p->config.count; i++) {
		struct part *part = &p->part[i];

		if (part->owner != p->id || part->wisher == 0 || part->wisher == p->id ||
		    !balance_yields(p->config.count, p->count, left))
			continue;
		left--;
		if (p->config.on_wish == NULL) {
			atomic_store_explicit(&part->leave, 1, RELAXED);
		} else if (!part->told) {
			part->told = true;
			p->config.on_wish(p->config.arg, i, part->made);
		}
	}
}

/* Of capacity: give up what is not wanted any more; how many more are. */
static uint32_t settle_wants(struct weir_parts *p)
{
	const uint64_t want = atomic_load_explicit(&p->want, RELAXED);
	const uint64_t target = want > p->config.reserved ? want - p->config.reserved : 0;
	uint64_t have = 0, more;

	for (uint32_t i = 0; i < p->config.count; i++)
		have += p->part[i].owner == p->id ? part_worth(p, i) : 0;
	for (uint32_t i = 0; i < p->config.count; i++) {
		if (p->part[i].owner != p->id || have < target + part_worth(p, i))
			continue;
		atomic_store_explicit(&p->part[i].leave, 1, RELAXED);
		have -= part_worth(p, i);
	}
	if (have >= target)
		return 0;
	more = (target - have + p->config.factor - 1) / p->config.factor;
	return more < p->config.count ? (uint32_t)more : p->config.count;
}

static int decide(struct weir_parts *p, struct moves *moves)
{
	uint64_t *owners = calloc(p->config.count, 2 * sizeof(*owners));
	struct balance b = {
		.parts = p->config.count,
		.owners = owners,
		.wishers = owners + p->config.count,
		.members = p->members,
		.count = p->count,
		.self = p->id,
		.greedy = p->config.strategy == WEIR_PARTS_GREEDY,
		.chance = fleet_draw(p->fleet, 0),
	};

	if (owners == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->config.count; i++) {
		owners[i] = p->part[i].owner;
		owners[p->config.count + i] = p->part[i].wisher;
	}
	if (p->config.strategy == WEIR_PARTS_WANTED)
		balance_wanted(&b, settle_wants(p), moves);
	else
		balance(&b, moves);
	free(owners);
	return 0;
}

/* A commit, as it is put together. */
struct change {
	struct weir_parts *parts;
	struct weir_check checks[WEIR_STORE_ROWS_MAX];
	struct weir_write writes[WEIR_STORE_ROWS_MAX];
	char keys[WEIR_STORE_ROWS_MAX][KEY_SIZE];
	char value[VALUE_SIZE];
	size_t check_count, write_count, key_count;
	uint32_t taken[EACH_MAX], wished[EACH_MAX], withdrawn[EACH_MAX];
	uint32_t takes, wishes, withdrawals, erased;
	bool more; /* than there is room for */
};

static const char *key_for(struct change *c, const char *what, uint32_t part)
{
	char *key = c->keys[c->key_count++];

	part_key(c->parts, what, part, key, KEY_SIZE);
	return key;
}

static void put_row(struct change *c, const char *key)
{
	c->checks[c->check_count++] = (struct weir_check){key, WEIR_CHECK_ABSENT, 0};
	c->writes[c->write_count++] = (struct weir_write){key, WEIR_WRITE_BIND, c->value,
							  strlen(c->value)};
}

static void erase_row(struct change *c, const char *key)
{
	c->writes[c->write_count++] = (struct weir_write){key, WEIR_WRITE_ERASE, NULL, 0};
}

/* A part of its own that is to be given up; or another's, who was asked long enough ago. */
static bool is_to_go(const struct weir_parts *p, const struct part *part)
{
	if (part->owner == 0)
		return false;
	if (part->owner == p->id)
		return atomic_load_explicit(&part->leave, RELAXED) != 0;
	return part->wished != 0 && fleet_now(p->fleet) - part->wished >= p->config.handover;
}

static void add_erasures(struct change *c, uint32_t room, const struct moves *m)
{
	struct weir_parts *p = c->parts;

	for (uint32_t i = 0; i < p->config.count; i++) {
		struct part *part = &p->part[i];
		bool withdrawn = false;

		for (uint32_t j = 0; j < m->withdrawals; j++)
			withdrawn |= m->withdraw[j] == i;
		if (withdrawn || !is_to_go(p, part))
			continue;
		if (c->erased == room) {
			c->more = true;
			return;
		}
		if (part->owner == p->id)
			part_lose(p, i, false);
		c->erased++;
		c->checks[c->check_count] = (struct weir_check){key_for(c, "part", i),
								WEIR_CHECK_MADE, part->made};
		erase_row(c, c->checks[c->check_count++].key);
	}
}

static void add_moves(struct change *c, uint32_t room, const struct moves *m)
{
	const struct weir_parts *p = c->parts;

	for (uint32_t i = 0; i < m->takes && c->takes < room; i++) {
		put_row(c, key_for(c, "part", m->take[i]));
		if (p->part[m->take[i]].wish_row)
			erase_row(c, key_for(c, "wish", m->take[i]));
		c->taken[c->takes++] = m->take[i];
	}
	for (uint32_t i = 0; i < m->wishes && c->wishes < room; i++) {
		put_row(c, key_for(c, "wish", m->wish[i]));
		c->wished[c->wishes++] = m->wish[i];
	}
	for (uint32_t i = 0; i < m->withdrawals && c->withdrawals < room; i++) {
		erase_row(c, key_for(c, "wish", m->withdraw[i]));
		c->withdrawn[c->withdrawals++] = m->withdraw[i];
	}
	c->more |= m->takes > c->takes || m->wishes > c->wishes || m->withdrawals > c->withdrawals;
}

static void conclude(const struct change *c, uint64_t version)
{
	struct weir_parts *p = c->parts;

	for (uint32_t i = 0; i < c->takes; i++)
		gain(p, c->taken[i], version);
	for (uint32_t i = 0; i < c->wishes; i++)
		p->part[c->wished[i]].wished = fleet_now(p->fleet);
	for (uint32_t i = 0; i < c->withdrawals; i++)
		p->part[c->withdrawn[i]].wished = 0;
}

/* One commit of what is to be done. 1: there is more; 0; or as the store has it. */
static int act(struct weir_parts *p, uint32_t room)
{
	struct change c = {.parts = p};
	struct moves moves = {.takes = 0};
	uint64_t version;
	int r = 0;

	heed_wishes(p);
	/* What seems to be free, may be owned by a lease that the store has forgotten. */
	if (p->refreshes > 0 && !p->learning)
		r = decide(p, &moves);
	if (r != 0)
		return r;
	(void)snprintf(c.value, sizeof(c.value), "%016" PRIx64 "\n", p->id);
	c.checks[c.check_count++] = (struct weir_check){p->own_key, WEIR_CHECK_MADE, p->own_made};
	add_erasures(&c, room, &moves);
	add_moves(&c, room, &moves);
	if (c.write_count == 0)
		return 0;
	r = weir_store_commit(p->fleet->store, p->fleet->session, c.checks, c.check_count, c.writes,
			      c.write_count, &version);
	if (r != 0)
		return r;
	conclude(&c, version);
	/* What another was asked for in vain is without an owner now: take it. */
	return c.more || c.erased > 0;
}

/* 1: do it again; 0: all is done; or as the store has it. */
static int round_of(struct weir_parts *p, uint32_t room)
{
	int r = read_all(p);

	/* Of nonsense nobody takes anything. */
	if (r == -EPROTO && p->joined)
		parts_keep(p);
	if (r != 0)
		return r;
	if (p->own_made == 0) {
		r = join(p);
		return r == 0 ? 1 : r;
	}
	p->joined = true;
	parts_keep(p);
	notice(p);
	return act(p, room);
}

int parts_refresh(struct weir_parts *p)
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
