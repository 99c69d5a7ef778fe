/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dividing partitions evenly, by weight.
 *
 * Each member knows all members, whether they own anything or not, and so computes the same targets
 * for each: with P partitions, and W for the weights of all members together, a member of weight w
 * owns P w / W, rounded down; or rounded up, once no member has fewer than it is to have at least.
 * As the sum of all targets is at most P rounded down, and at least P rounded up, there is always a
 * distribution that has all of them, and no member that has too few or too many can be stuck.
 * Partitions without an owner are claimed first; members claim from different offsets,
 * in the order of their numbers, so that members with the same view choose different ones.
 * Partitions are requested from members with too many only when all have an owner.
 */

#include "fleet/work/balance.h"

#include <stdlib.h>

/* How many a member owns in the end. */
struct due {
	uint32_t least, most;
};

/* The distribution among members. */
struct tally {
	const struct balance *b;
	uint64_t weight; /* of all together */
	struct due due;  /* of this one */
	uint32_t mine;
	uint32_t below; /* members that own fewer than is due to them at least */
};

static uint64_t weight_of_all(const struct balance_member *members, size_t count)
{
	uint64_t weight = 0;

	for (size_t i = 0; i < count; i++)
		weight += members[i].weight;
	return weight;
}

/* weight is at most that of all, so nothing overflows. */
static struct due due_of(uint32_t partitions, uint32_t weight, uint64_t all)
{
	const uint64_t product = (uint64_t)partitions * weight;

	return (struct due){
		.least = (uint32_t)(product / all),
		.most = (uint32_t)(product / all + (product % all > 0)),
	};
}

static int by_id(const void *left, const void *right)
{
	const uint64_t a = ((const struct balance_member *)left)->id;
	const uint64_t b = ((const struct balance_member *)right)->id;

	return a < b ? -1 : a > b;
}

void balance_sort(struct balance_member *members, size_t count)
{
	if (count > 0)
		qsort(members, count, sizeof(members[0]), by_id);
}

const struct balance_member *balance_find(const struct balance_member *members, size_t count,
					  uint64_t id)
{
	const struct balance_member key = {.id = id};

	return count > 0 ? bsearch(&key, members, count, sizeof(key), by_id) : NULL;
}

/* What an owner is to have. One that is not there counts as if it had the smallest weight. */
static struct due due_of_owner(const struct tally *s, uint64_t id)
{
	const struct balance_member *m = balance_find(s->b->members, s->b->count, id);

	return due_of(s->b->partitions, m != NULL ? m->weight : 1, s->weight);
}

static uint32_t owned_by(const struct balance *b, uint64_t member)
{
	uint32_t owned = 0;

	for (uint32_t i = 0; i < b->partitions; i++)
		owned += b->owners[i] == member;
	return owned;
}

static struct tally tally_of(const struct balance *b)
{
	struct tally s = {
		.b = b,
		.weight = weight_of_all(b->members, b->count),
		.mine = owned_by(b, b->self),
	};

	s.due = due_of_owner(&s, b->self);
	for (size_t i = 0; i < b->count; i++)
		s.below += owned_by(b, b->members[i].id) <
			   due_of(b->partitions, b->members[i].weight, s.weight).least;
	return s;
}

/*
 * How many more partitions a member with that many may claim. One above least is available only if
 * a partition is free, or another member has more than most.
 */
static uint32_t deficit(const struct tally *s, uint32_t owned, struct due due)
{
	uint32_t need = 0;

	if (owned < due.least)
		need = due.least - owned;
	else if (owned < due.most && s->below == 0)
		need = 1;
	return s->b->greedy || need == 0 ? need : 1;
}

/* Where this member begins among the free partitions: after the share of the members before it. */
static uint32_t offset_of(const struct tally *s)
{
	const struct balance *b = s->b;
	uint32_t offset = 0;

	for (size_t i = 0; i < b->count && b->members[i].id != b->self; i++)
		offset += deficit(s, owned_by(b, b->members[i].id),
				  due_of(b->partitions, b->members[i].weight, s->weight));
	return offset;
}

static bool is_free(const struct balance *b, uint32_t partition)
{
	return b->owners[partition] == 0 && b->requesters[partition] == 0;
}

/* Claim free partitions, beginning at an offset, and wrapping around. */
static void take(const struct balance *b, uint32_t need, uint32_t offset, struct moves *m)
{
	uint32_t free[WEIR_WORK_MAX], count = 0;

	for (uint32_t i = 0; i < b->partitions; i++)
		if (is_free(b, i))
			free[count++] = i;
	for (uint32_t i = 0; i < count && i < need; i++)
		m->take[m->takes++] = free[(offset + i) % count];
}

/* Partitions of that owner that no member asks for yet. */
static uint32_t count_unwished(const struct balance *b, uint64_t owner, const struct moves *m)
{
	uint32_t unasked = 0;

	for (uint32_t i = 0; i < b->partitions; i++)
		unasked += b->owners[i] == owner && b->requesters[i] == 0;
	for (uint32_t i = 0; i < m->requests; i++)
		unasked -= b->owners[m->request[i]] == owner;
	return unasked;
}

/*
 * How many an owner with that many has too many, compared with a member that has mine. One that has
 * more than most has to give one up in any case, and so comes before those that have more than
 * least.
 */
static uint32_t surplus(const struct tally *s, struct due due, uint32_t owned, uint32_t mine)
{
	if (owned > due.most)
		return owned - due.most + 1;
	return mine < s->due.least && owned > due.least ? 1 : 0;
}

/* The member that has the most too many; 0: none has. */
static uint64_t largest_owner(const struct tally *s, uint32_t mine, const struct moves *m)
{
	const struct balance *b = s->b;
	uint32_t most = 0;
	uint64_t owner = 0;

	for (size_t i = 0; i < b->count; i++) {
		const uint64_t member = b->members[i].id;
		const struct due due = due_of(b->partitions, b->members[i].weight, s->weight);
		const uint32_t many = surplus(s, due, count_unwished(b, member, m), mine);

		if (member != b->self && many > most) {
			most = many;
			owner = member;
		}
	}
	return owner;
}

static bool is_chosen(const struct moves *m, uint32_t partition)
{
	for (uint32_t i = 0; i < m->requests; i++)
		if (m->request[i] == partition)
			return true;
	return false;
}

/* Ask for one of the owner's partitions, chosen at random. */
static void add_request(const struct balance *b, uint64_t owner, struct moves *m)
{
	const uint32_t from = (uint32_t)(b->chance % b->partitions);

	for (uint32_t i = 0; i < b->partitions; i++) {
		const uint32_t partition = (from + i) % b->partitions;

		if (b->owners[partition] == owner && b->requesters[partition] == 0 &&
		    !is_chosen(m, partition)) {
			m->request[m->requests++] = partition;
			return;
		}
	}
}

/*
 * Partitions that this member has asked for, and that were released, are claimed first, as far as
 * it is still entitled to them.
 */
static void take_requests(const struct tally *s, struct moves *m)
{
	const struct balance *b = s->b;

	for (uint32_t i = 0; i < b->partitions; i++) {
		if (b->owners[i] != 0 || b->requesters[i] != b->self)
			continue;
		if (s->mine + m->takes < s->due.most)
			m->take[m->takes++] = i;
		else
			m->withdraw[m->withdrawals++] = i;
	}
}

/*
 * The number of requests that are not granted yet and still stand: those whose owner has too many,
 * while this member, including what it claims, has not.
 */
static uint32_t review(const struct tally *s, struct moves *m)
{
	const struct balance *b = s->b;
	uint32_t standing = 0;

	for (uint32_t i = 0; i < b->partitions; i++) {
		if (b->requesters[i] != b->self || b->owners[i] == 0)
			continue;
		if (b->owners[i] == b->self ||
		    owned_by(b, b->owners[i]) <= due_of_owner(s, b->owners[i]).least ||
		    s->mine + m->takes + standing >= s->due.most)
			m->withdraw[m->withdrawals++] = i;
		else
			standing++;
	}
	return standing;
}

static bool has_free(const struct balance *b)
{
	for (uint32_t i = 0; i < b->partitions; i++)
		if (b->owners[i] == 0)
			return true;
	return false;
}

void balance(const struct balance *b, struct moves *m)
{
	const struct tally s = tally_of(b);
	const uint32_t need = deficit(&s, s.mine, s.due);
	uint32_t asked;

	m->takes = m->requests = m->withdrawals = 0;
	take_requests(&s, m);
	if (has_free(b) && m->takes == 0)
		take(b, need, offset_of(&s), m);
	asked = review(&s, m);
	while (!has_free(b) && asked < need) {
		const uint64_t owner = largest_owner(&s, s.mine + asked, m);

		if (owner == 0)
			return;
		add_request(b, owner, m);
		asked++;
	}
}

bool balance_yields(uint32_t partitions, const struct balance_member *members, size_t count,
		    uint64_t self, uint32_t owned)
{
	const struct balance_member *m = balance_find(members, count, self);

	return m != NULL &&
	       owned > due_of(partitions, m->weight, weight_of_all(members, count)).least;
}

void balance_wanted(const struct balance *b, uint32_t more, struct moves *m)
{
	m->takes = m->requests = m->withdrawals = 0;
	take(b, more, (uint32_t)(b->chance % b->partitions), m);
}
