/*
 * Dividing parts evenly.
 *
 * All who are there are known, whether they own anything or not: so everybody knows how many he is
 * due. With P parts and N members that is P / N, and one more for P mod N of them, once nobody has
 * less. Parts without an owner come first; they go to the members in order, so that members who see
 * the same choose different ones. What others have too much of is asked for only then.
 */

#include "fleet/work/balance.h"

/* How it stands, by member. */
struct standing {
	const struct balance *b;
	uint32_t least, extra; /* P / N and P mod N */
	uint32_t mine;
	uint32_t below; /* members with less than the least */
};

static uint32_t owned_by(const struct balance *b, uint64_t member)
{
	uint32_t owned = 0;

	for (uint32_t i = 0; i < b->parts; i++)
		owned += b->owners[i] == member;
	return owned;
}

static struct standing standing_of(const struct balance *b)
{
	struct standing s = {
		.b = b,
		.least = b->parts / (uint32_t)b->count,
		.extra = b->parts % (uint32_t)b->count,
		.mine = owned_by(b, b->self),
	};

	for (size_t i = 0; i < b->count; i++)
		s.below += owned_by(b, b->members[i]) < s.least;
	return s;
}

/*
 * What a member who has so many may look for beyond them. One more than the least there is only
 * where a part is free, or another has two more.
 */
static uint32_t lacks(const struct standing *s, uint32_t owned)
{
	uint32_t need = 0;

	if (owned < s->least)
		need = s->least - owned;
	else if (owned == s->least && s->below == 0)
		need = 1;
	return s->b->greedy || need == 0 ? need : 1;
}

/*
 * Where this one's begin, among the parts without an owner: after those of the members before it.
 */
static uint32_t offset_of(const struct standing *s)
{
	uint32_t offset = 0;

	for (size_t i = 0; i < s->b->count && s->b->members[i] != s->b->self; i++)
		offset += lacks(s, owned_by(s->b, s->b->members[i]));
	return offset;
}

static bool is_free(const struct balance *b, uint32_t part)
{
	return b->owners[part] == 0 && b->wishers[part] == 0;
}

/* Those without an owner, from an offset on, and around. */
static void take(const struct balance *b, uint32_t need, uint32_t offset, struct moves *m)
{
	uint32_t free[WEIR_WORK_MAX], count = 0;

	for (uint32_t i = 0; i < b->parts; i++)
		if (is_free(b, i))
			free[count++] = i;
	for (uint32_t i = 0; i < count && i < need; i++)
		m->take[m->takes++] = free[(offset + i) % count];
}

/* Parts of that owner that nobody asks for yet. */
static uint32_t unasked_of(const struct balance *b, uint64_t owner, const struct moves *m)
{
	uint32_t unasked = 0;

	for (uint32_t i = 0; i < b->parts; i++)
		unasked += b->owners[i] == owner && b->wishers[i] == 0;
	for (uint32_t i = 0; i < m->wishes; i++)
		unasked -= b->owners[m->wish[i]] == owner;
	return unasked;
}

/* The member who has the most; 0: nobody has too many, for one who has so many himself. */
static uint64_t richest(const struct standing *s, uint32_t mine, const struct moves *m)
{
	uint32_t most = s->least + (mine < s->least ? 0 : 1);
	uint64_t who = 0;

	for (size_t i = 0; i < s->b->count; i++) {
		const uint64_t member = s->b->members[i];
		const uint32_t unasked = unasked_of(s->b, member, m);

		if (member != s->b->self && unasked > most) {
			most = unasked;
			who = member;
		}
	}
	return who;
}

static bool is_chosen(const struct moves *m, uint32_t part)
{
	for (uint32_t i = 0; i < m->wishes; i++)
		if (m->wish[i] == part)
			return true;
	return false;
}

/* Any of his, by chance. */
static void wish_one(const struct balance *b, uint64_t owner, struct moves *m)
{
	const uint32_t from = (uint32_t)(b->chance % b->parts);

	for (uint32_t i = 0; i < b->parts; i++) {
		const uint32_t part = (from + i) % b->parts;

		if (b->owners[part] == owner && b->wishers[part] == 0 && !is_chosen(m, part)) {
			m->wish[m->wishes++] = part;
			return;
		}
	}
}

/* The most that one of them has in the end. */
static uint32_t most_of(const struct standing *s)
{
	return s->least + (s->extra > 0);
}

/*
 * Parts that it has asked for, and that were given up, come first, as far as it is still due them.
 */
static void take_wishes(const struct standing *s, struct moves *m)
{
	const struct balance *b = s->b;

	for (uint32_t i = 0; i < b->parts; i++) {
		if (b->owners[i] != 0 || b->wishers[i] != b->self)
			continue;
		if (s->mine + m->takes < most_of(s))
			m->take[m->takes++] = i;
		else
			m->withdraw[m->withdrawals++] = i;
	}
}

/*
 * The number of wishes that have not been granted and still stand: those whose owner has too many,
 * while this member, with what it takes, has not.
 */
static uint32_t review(const struct standing *s, struct moves *m)
{
	const struct balance *b = s->b;
	uint32_t standing = 0;

	for (uint32_t i = 0; i < b->parts; i++) {
		if (b->wishers[i] != b->self || b->owners[i] == 0)
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
	for (uint32_t i = 0; i < b->parts; i++)
		if (b->owners[i] == 0)
			return true;
	return false;
}

void balance(const struct balance *b, struct moves *m)
{
	const struct standing s = standing_of(b);
	const uint32_t need = lacks(&s, s.mine);
	uint32_t asked;

	m->takes = m->wishes = m->withdrawals = 0;
	take_wishes(&s, m);
	if (has_free(b) && m->takes == 0)
		take(b, need, offset_of(&s), m);
	asked = review(&s, m);
	while (!has_free(b) && asked < need) {
		const uint64_t owner = richest(&s, s.mine + asked, m);

		if (owner == 0)
			return;
		wish_one(b, owner, m);
		asked++;
	}
}

bool balance_yields(uint32_t parts, size_t members, uint32_t owned)
{
	return members > 0 && owned > parts / (uint32_t)members;
}

void balance_wanted(const struct balance *b, uint32_t more, struct moves *m)
{
	m->takes = m->wishes = m->withdrawals = 0;
	take(b, more, (uint32_t)(b->chance % b->parts), m);
}
