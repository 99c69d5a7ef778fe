/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dividing partitions evenly.
 *
 * Each member knows all members, whether they own anything or not, and so computes the same target
 * for each: with P partitions and N members P / N, and one more for P mod N of them, once no member
 * has fewer. Partitions without an owner are claimed first; members claim from different offsets,
 * in the order of their numbers, so that members with the same view choose different ones.
 * Partitions are requested from members with too many only when all have an owner.
 */

#include "fleet/work/balance.h"

/* The distribution among members. */
struct tally {
	const struct balance *b;
	uint32_t least, extra; /* P / N and P mod N */
	uint32_t mine;
	uint32_t below; /* members that own fewer than least */
};

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
		.least = b->partitions / (uint32_t)b->count,
		.extra = b->partitions % (uint32_t)b->count,
		.mine = owned_by(b, b->self),
	};

	for (size_t i = 0; i < b->count; i++)
		s.below += owned_by(b, b->members[i]) < s.least;
	return s;
}

/*
 * How many more partitions a member with that many may claim. One above least is available only if
 * a partition is free, or another member has two more.
 */
static uint32_t deficit(const struct tally *s, uint32_t owned)
{
	uint32_t need = 0;

	if (owned < s->least)
		need = s->least - owned;
	else if (owned == s->least && s->below == 0)
		need = 1;
	return s->b->greedy || need == 0 ? need : 1;
}

/* Where this member begins among the free partitions: after the share of the members before it. */
static uint32_t offset_of(const struct tally *s)
{
	uint32_t offset = 0;

	for (size_t i = 0; i < s->b->count && s->b->members[i] != s->b->self; i++)
		offset += deficit(s, owned_by(s->b, s->b->members[i]));
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
 * The member that owns the most partitions; 0: no member has too many, compared with a member that
 * has mine.
 */
static uint64_t largest_owner(const struct tally *s, uint32_t mine, const struct moves *m)
{
	uint32_t most = s->least + (mine < s->least ? 0 : 1);
	uint64_t owner = 0;

	for (size_t i = 0; i < s->b->count; i++) {
		const uint64_t member = s->b->members[i];
		const uint32_t unasked = count_unwished(s->b, member, m);

		if (member != s->b->self && unasked > most) {
			most = unasked;
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

/* The most that any member owns in the end. */
static uint32_t most_of(const struct tally *s)
{
	return s->least + (s->extra > 0);
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
		if (s->mine + m->takes < most_of(s))
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
		if (b->owners[i] == b->self || owned_by(b, b->owners[i]) <= s->least ||
		    s->mine + m->takes + standing >= most_of(s))
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
	const uint32_t need = deficit(&s, s.mine);
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

bool balance_yields(uint32_t partitions, size_t members, uint32_t owned)
{
	return members > 0 && owned > partitions / (uint32_t)members;
}

void balance_wanted(const struct balance *b, uint32_t more, struct moves *m)
{
	m->takes = m->requests = m->withdrawals = 0;
	take(b, more, (uint32_t)(b->chance % b->partitions), m);
}
