/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocator_model MEMBERS UNITS LEADERS FORGETS GIVES_UP | allocator_model mutants: all that an allocator, its successor,
 * and the members of an allocated limit can do to each other.
 *
 * The model has a store, members, and two processes that may be elected, each of which can be
 * stopped between any two steps, and so also killed. It explores every state that can be reached. In
 * each, what the members are using is no more than the capacity.
 *
 * An allocator is not bound to a way of dividing: it may write any grant that the rule of
 * allocation.c allows, by the functions grant_counted() and grant_next() of the library. Its commits
 * may arrive at any later time, or never, and what is read may be used at any later time.
 *
 * Time is in the model as an order of events: a session ends in the store after the lease has ended
 * for its holder; and a store that has forgotten leases learns until all of them have ended.
 *
 * With mutants, each of the faults below is put into the model, and each must be found.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"
#include "fleet/protocol/allocation.h"

#define MEMBERS_MAX 3
#define LEADERS_MAX 2
#define NUMBER_MAX  2 /* of a grant: then it is not made less again */
#define ALL         9 /* units: no bound */
#define FENCE       1 /* of the row that a member has now */

enum mutant {
	NONE,
	VERSION_UNCHECKED,       /* commits of an allocator do not check the row "grants" */
	ACKNOWLEDGEMENT_IGNORED, /* a lesser grant counts as soon as it is written */
	HELD_FORGOTTEN,          /* a new allocator counts grants as acknowledged */
	FENCE_IGNORED,           /* a member uses a grant that was for an earlier row of its own */
	HANDED_OUT_AT_ONCE,      /* what a decrease frees is granted again by the same reading */
	LEASE_OF_ANSWER,         /* a lease counts from the answer: it ends after the session */
	ACKNOWLEDGED_TOO_EARLY,  /* a member uses less only after it has written that */
	GIVEN_UP_AND_USED,       /* what a member gives up, it uses until it reads again */
	GIVEN_UP_FOR_NOW,        /* what it gives up, it uses again when it reads the same grant */
	NOT_NUMBERED,            /* a lesser grant has the same number */
	NOT_LEARNED,             /* an allocator hands out what a store has forgotten */
	MUTANTS,
};

static const char *const mutant_names[MUTANTS] = {
	[VERSION_UNCHECKED] = "VERSION_UNCHECKED",
	[ACKNOWLEDGEMENT_IGNORED] = "ACKNOWLEDGEMENT_IGNORED",
	[HELD_FORGOTTEN] = "HELD_FORGOTTEN",
	[FENCE_IGNORED] = "FENCE_IGNORED",
	[HANDED_OUT_AT_ONCE] = "HANDED_OUT_AT_ONCE",
	[LEASE_OF_ANSWER] = "LEASE_OF_ANSWER",
	[ACKNOWLEDGED_TOO_EARLY] = "ACKNOWLEDGED_TOO_EARLY",
	[GIVEN_UP_AND_USED] = "GIVEN_UP_AND_USED",
	[GIVEN_UP_FOR_NOW] = "GIVEN_UP_FOR_NOW",
	[NOT_NUMBERED] = "NOT_NUMBERED",
	[NOT_LEARNED] = "NOT_LEARNED",
};

/* A grant; number 0: none. mine: its fence is the row that the member has now. */
struct grant {
	uint8_t mine, number, units, most;
};

struct member {
	/* In the store. */
	uint8_t present, acknowledged, uses, claim;
	struct grant grant;
	/* In its process. */
	uint8_t using;      /* units */
	uint8_t old;        /* by a lease of a store that has forgotten it */
	uint8_t known;      /* the number that it has read last */
	uint8_t keeps;      /* it uses no more of a grant of that number; ALL: it does */
	uint8_t has_answer; /* of a reading */
	struct grant answer;
	uint8_t sent, sent_uses; /* a commit that acknowledges that number, and no more than that */
};

/* A commit of an allocator on its way: one grant. */
struct late {
	uint8_t has, member;
	struct grant next; /* mine: for the row that the member has now */
};

struct leader {
	uint8_t elected;  /* it believes so */
	uint8_t has_view; /* it has read all rows */
	uint8_t renewed;  /* it has read all rows since it was elected, at least once before */
	uint8_t learning; /* by that reading */
	uint8_t counted[MEMBERS_MAX];
	struct grant grants[MEMBERS_MAX];
	uint8_t present[MEMBERS_MAX];
	uint8_t acknowledged[MEMBERS_MAX], uses[MEMBERS_MAX];
	struct late commit;
};

struct state {
	uint8_t allocator; /* 1 and the leader's index; 0: no row */
	uint8_t learning, forgotten;
	struct member members[MEMBERS_MAX];
	struct leader leaders[LEADERS_MAX];
	struct late late; /* a commit that was given up, and may yet come */
};

static unsigned members = 2, capacity = 1, leaders = 2;
static enum mutant mutant;
static bool violated, forgets, gives_up = true;

/* All states that were found, in the order in which they were; and a table of their indices. */
static struct state *states;
static uint32_t *table;
static size_t count, room, table_size;

static size_t place_of(const struct state *s)
{
	const unsigned char *bytes = (const unsigned char *)s;
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < sizeof(*s); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	hash ^= hash >> 29;
	for (size_t at = hash & (table_size - 1);; at = (at + 1) & (table_size - 1))
		if (table[at] == 0 || memcmp(&states[table[at] - 1], s, sizeof(*s)) == 0)
			return at;
}

static void enlarge(void)
{
	if (count == room) {
		room = room > 0 ? 2 * room : 1024;
		states = realloc(states, room * sizeof(*states));
		CHECK(states != NULL);
	}
	if (2 * count < table_size)
		return;
	table_size = table_size > 0 ? 4 * table_size : 4096;
	free(table);
	table = calloc(table_size, sizeof(*table));
	CHECK(table != NULL);
	for (size_t i = 0; i < count; i++)
		table[place_of(&states[i])] = (uint32_t)(i + 1);
}

static void reach(const struct state *s)
{
	unsigned sum = 0;
	size_t at;

	for (unsigned i = 0; i < members; i++)
		sum += s->members[i].using;
	violated |= sum > capacity;
	enlarge();
	at = place_of(s);
	if (table[at] != 0)
		return;
	states[count++] = *s;
	table[at] = (uint32_t)count;
}

static struct seen_member seen_of(const struct member *m)
{
	return (struct seen_member){
		.made = FENCE,
		.record = {.acknowledged = m->acknowledged, .uses = m->uses, .claim = m->claim},
	};
}

static struct grant_record record_of(const struct grant *g)
{
	return (struct grant_record){
		.fence = FENCE, .number = g->number, .units = g->units, .most = g->most};
}

static bool counts(const struct grant *g)
{
	return g->number > 0 && g->mine;
}

static uint8_t counted(const struct state *s, const struct leader *l, const struct member *m)
{
	const struct grant_record g = record_of(&m->grant);
	const struct seen_member seen = seen_of(m);

	if (!m->present)
		return 0;
	if (counts(&m->grant) &&
	    (mutant == ACKNOWLEDGEMENT_IGNORED || (mutant == HELD_FORGOTTEN && !l->renewed)))
		return m->grant.units;
	return (uint8_t)grant_counted(&seen, counts(&m->grant) ? &g : NULL, s->learning);
}

static struct grant next_of(const struct leader *l, unsigned member, unsigned units)
{
	const struct grant_record g = record_of(&l->grants[member]);
	const struct seen_member seen = {
		.made = FENCE,
		.record = {.acknowledged = l->acknowledged[member], .uses = l->uses[member]},
	};
	const bool has = counts(&l->grants[member]);
	const struct grant_record next = grant_next(&seen, has ? &g : NULL, l->counted[member],
						    units);

	return (struct grant){
		.mine = 1,
		.number = mutant == NOT_NUMBERED ? 1 : (uint8_t)next.number,
		.units = (uint8_t)next.units,
		.most = (uint8_t)next.most,
	};
}

/*
 * Whatever was based on the row "grants" before would be refused from now on: so it is left out, and
 * its process reads again.
 */
static void outdate(struct state *s)
{
	if (mutant == VERSION_UNCHECKED)
		return;
	s->late = (struct late){0};
	for (unsigned i = 0; i < leaders; i++)
		s->leaders[i] = (struct leader){.elected = s->leaders[i].elected, .renewed = 1};
}

/* A grant for a row that is gone: it is used by no member, but for one mutant. */
static void end_grant(struct grant *g)
{
	if (mutant == FENCE_IGNORED)
		g->mine = 0;
	else
		*g = (struct grant){0};
}

/* The row of a member is gone: what was written for it is for no row. */
static void end_row(struct state *s, unsigned index)
{
	struct member *m = &s->members[index];

	end_grant(&m->grant);
	end_grant(&m->answer);
	m->sent = m->sent_uses = 0;
	for (unsigned i = 0; i < leaders; i++) {
		struct leader *l = &s->leaders[i];

		l->grants[index] = (struct grant){0};
		l->present[index] = l->acknowledged[index] = l->uses[index] = 0;
		if (l->commit.member == index)
			end_grant(&l->commit.next);
	}
	if (s->late.member == index)
		end_grant(&s->late.next);
}

static void join(struct state s, unsigned i)
{
	struct member *m = &s.members[i];

	if (m->present || (m->using > 0 && m->old == 0))
		return;
	m->present = 1;
	m->acknowledged = m->known = 0;
	m->uses = m->keeps = ALL;
	m->claim = m->old;
	reach(&s);
}

/* A reading shows its grant at one instant, and is used at any later one. */
static void read_own(struct state s, unsigned i)
{
	struct member *m = &s.members[i];

	if (!m->present || m->has_answer)
		return;
	m->has_answer = 1;
	m->answer = m->grant;
	m->answer.most = 0;
	reach(&s);
}

static void use_answer(struct state s, unsigned i)
{
	struct member *m = &s.members[i];
	const struct grant g = m->answer;

	if (!m->has_answer)
		return;
	m->has_answer = 0;
	m->answer = (struct grant){0};
	if (g.number > 0 && (g.mine || mutant == FENCE_IGNORED)) {
		if (mutant != ACKNOWLEDGED_TOO_EARLY || g.units > m->using ||
		    g.number <= m->acknowledged)
			m->using = g.units;
		if (g.number != m->known)
			m->keeps = ALL;
		if (m->using > m->keeps && mutant != GIVEN_UP_FOR_NOW)
			m->using = m->keeps;
		m->known = g.number;
		m->old = 0;
	} else if (m->old == 0) {
		m->using = 0;
	}
	reach(&s);
}

static void lose_answer(struct state s, unsigned i)
{
	if (!s.members[i].has_answer)
		return;
	s.members[i].has_answer = 0;
	s.members[i].answer = (struct grant){0};
	reach(&s);
}

/* It uses less of its grant, and says so later; until there is another number it uses no more. */
static void give_up(struct state s, unsigned i)
{
	struct member *m = &s.members[i];

	if (!gives_up || !m->present || m->known == 0 || m->using == 0 || m->old > 0)
		return;
	m->keeps = m->using - 1;
	if (mutant != GIVEN_UP_AND_USED)
		m->using = m->keeps;
	reach(&s);
}

static void acknowledge(struct state s, unsigned i)
{
	struct member *m = &s.members[i];

	if (!m->present || m->sent != 0 || m->known < m->acknowledged ||
	    (m->known == m->acknowledged && m->keeps == m->uses) || m->known == 0)
		return;
	m->sent = m->known;
	m->sent_uses = m->keeps;
	reach(&s);
}

/* The commit arrives, or never does. */
static void deliver_own(struct state s, unsigned i)
{
	struct member *m = &s.members[i];

	if (m->sent == 0)
		return;
	m->acknowledged = m->sent;
	m->uses = m->sent_uses;
	m->sent = m->sent_uses = 0;
	reach(&s);
}

static void lose_own(struct state s, unsigned i)
{
	if (s.members[i].sent == 0)
		return;
	s.members[i].sent = s.members[i].sent_uses = 0;
	reach(&s);
}

/* The lease ends for its holder, and what it has read is of no use any more. */
static void end_lease(struct state s, unsigned i)
{
	struct member *m = &s.members[i];

	m->using = m->old = 0;
	m->has_answer = 0;
	m->answer = (struct grant){0};
	reach(&s);
}

/* The session ends in the store: after its lease. That of a store before may last longer. */
static void end_session(struct state s, unsigned i)
{
	struct member *m = &s.members[i];

	if (!m->present || ((m->using > m->old || m->has_answer) && mutant != LEASE_OF_ANSWER))
		return;
	m->present = 0;
	m->acknowledged = m->claim = m->known = m->uses = m->keeps = 0;
	end_row(&s, i);
	reach(&s);
}

static void elect(struct state s, unsigned i)
{
	struct leader *l = &s.leaders[i];

	if (s.allocator != 0)
		return;
	s.allocator = (uint8_t)(i + 1);
	*l = (struct leader){.elected = 1, .commit = l->commit};
	reach(&s);
}

/* Its session ends in the store, whatever it knows of that. */
static void depose(struct state s)
{
	if (s.allocator == 0)
		return;
	s.allocator = 0;
	reach(&s);
}

static void read_all(struct state s, unsigned i)
{
	struct leader *l = &s.leaders[i];

	if (!l->elected || s.allocator != i + 1 || l->commit.has)
		return;
	for (unsigned j = 0; j < members; j++) {
		const struct member *m = &s.members[j];

		l->counted[j] = counted(&s, l, m);
		l->grants[j] = counts(&m->grant) ? m->grant : (struct grant){0};
		l->present[j] = m->present;
		l->acknowledged[j] = m->acknowledged;
		l->uses[j] = m->uses;
	}
	l->has_view = 1;
	l->learning = s.learning;
	reach(&s);
}

static unsigned sum_of(const struct leader *l)
{
	unsigned sum = 0;

	for (unsigned j = 0; j < members; j++)
		sum += l->counted[j];
	return sum;
}

/* Write any grant that the rule allows. */
static void write_grant(const struct state *before, unsigned i, unsigned j, unsigned units)
{
	struct state s = *before;
	struct leader *l = &s.leaders[i];
	const unsigned has = l->counted[j], sum = sum_of(l),
		       left = capacity > sum ? capacity - sum : 0;

	if (!l->elected || !l->has_view || l->commit.has || !l->present[j])
		return;
	if (units > has + (l->learning && mutant != NOT_LEARNED ? 0 : left))
		return;
	if (counts(&l->grants[j]) && l->grants[j].units == units)
		return;
	if (counts(&l->grants[j]) && units < l->grants[j].units &&
	    l->grants[j].number == NUMBER_MAX)
		return;
	if (next_of(l, j, units).number > NUMBER_MAX)
		return;
	l->commit = (struct late){1, (uint8_t)j, next_of(l, j, units)};
	reach(&s);
}

/* A commit arrives. Any that would be refused for its version is gone by now (outdate()). */
static void arrive(struct state *s, const struct late *c)
{
	const struct late commit = *c;

	if (commit.next.number > 0)
		s->members[commit.member].grant = commit.next;
	outdate(s);
}

static void answer_commit(struct state s, unsigned i)
{
	struct leader l = s.leaders[i];
	const struct late c = l.commit;

	if (!c.has)
		return;
	l.commit = (struct late){0};
	if (s.allocator != i + 1 && mutant != VERSION_UNCHECKED) {
		l = (struct leader){0}; /* the allocator's row is gone: refused */
	} else {
		arrive(&s, &c);
		l.grants[c.member] = c.next;
		if (c.next.units > l.counted[c.member] || mutant == HANDED_OUT_AT_ONCE)
			l.counted[c.member] = c.next.units;
	}
	s.leaders[i] = l;
	reach(&s);
}

/* There is no answer: the commit may come later, and the next step is another reading. */
static void abandon(struct state s, unsigned i)
{
	struct leader *l = &s.leaders[i];

	if (!l->commit.has || s.late.has)
		return;
	s.late = l->commit;
	*l = (struct leader){.elected = l->elected, .renewed = 1};
	reach(&s);
}

static void arrive_late(struct state s)
{
	const struct late c = s.late;

	if (!c.has)
		return;
	s.late = (struct late){0};
	arrive(&s, &c);
	reach(&s);
}

static void lose_late(struct state s)
{
	if (!s.late.has)
		return;
	s.late = (struct late){0};
	reach(&s);
}

/* It reads anew, or goes on after that, at any time. */
static void drop_view(struct state s, unsigned i)
{
	struct leader *l = &s.leaders[i];

	if (!l->has_view || l->commit.has)
		return;
	*l = (struct leader){.elected = l->elected, .renewed = 1};
	reach(&s);
}

/*
 * The store forgets everything, once; what is on its way to it is refused. What was read may still
 * be used, with a lease of that store.
 */
static void forget(struct state s, bool use_answers)
{
	struct state before;

	if (s.forgotten || !forgets)
		return;
	before = s;
	s.forgotten = s.learning = 1;
	s.allocator = 0;
	outdate(&s);
	for (unsigned i = 0; i < members; i++) {
		struct member *m = &s.members[i];

		end_row(&s, i);
		if (use_answers && m->has_answer && m->answer.number > 0 &&
		    before.members[i].answer.mine)
			m->using = m->answer.units;
		*m = (struct member){.using = m->using, .old = m->using};
	}
	for (unsigned i = 0; i < leaders; i++)
		s.leaders[i] = (struct leader){0};
	s.late = (struct late){0};
	reach(&s);
}

/* All leases of the store before have ended. */
static void learn(struct state s)
{
	if (!s.learning)
		return;
	for (unsigned i = 0; i < members; i++)
		if (s.members[i].old > 0)
			return;
	s.learning = 0;
	reach(&s);
}

static void explore_member(const struct state *s, unsigned i)
{
	join(*s, i);
	read_own(*s, i);
	use_answer(*s, i);
	lose_answer(*s, i);
	give_up(*s, i);
	acknowledge(*s, i);
	deliver_own(*s, i);
	lose_own(*s, i);
	end_lease(*s, i);
	end_session(*s, i);
}

static void explore_leader(const struct state *s, unsigned i)
{
	elect(*s, i);
	read_all(*s, i);
	drop_view(*s, i);
	for (unsigned j = 0; j < members; j++)
		for (unsigned units = 0; units <= capacity; units++)
			write_grant(s, i, j, units);
	answer_commit(*s, i);
	abandon(*s, i);
}

/* Returns whether more than the capacity was ever used. */
static bool explore(size_t most)
{
	const struct state first = {0};

	count = 0;
	if (table != NULL)
		memset(table, 0, table_size * sizeof(*table));
	violated = false;
	reach(&first);
	for (size_t at = 0; at < count && !violated && count < most; at++) {
		const struct state s = states[at];

		for (unsigned i = 0; i < members; i++)
			explore_member(&s, i);
		for (unsigned i = 0; i < leaders; i++)
			explore_leader(&s, i);
		depose(s);
		arrive_late(s);
		lose_late(s);
		forget(s, false);
		forget(s, true);
		learn(s);
	}
	CHECK(violated || count < most);
	return violated;
}

#define STATES_MAX ((size_t)32 << 20)

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "mutants") == 0) {
		for (mutant = NONE + 1; mutant < MUTANTS; mutant++) {
			forgets = mutant >= NOT_LEARNED;
			leaders = forgets ? 1 : LEADERS_MAX;
			if (!explore(STATES_MAX)) {
				fprintf(stderr, "%s was not found\n", mutant_names[mutant]);
				return EXIT_FAILURE;
			}
			printf("%-24s found after %zu states\n", mutant_names[mutant], count);
			fflush(stdout);
		}
		return EXIT_SUCCESS;
	}
	CHECK(argc == 6);
	members = (unsigned)atoi(argv[1]);
	capacity = (unsigned)atoi(argv[2]);
	leaders = (unsigned)atoi(argv[3]);
	forgets = atoi(argv[4]) != 0;
	gives_up = atoi(argv[5]) != 0;
	CHECK(members >= 1 && members <= MEMBERS_MAX && capacity >= 1);
	CHECK(leaders >= 1 && leaders <= LEADERS_MAX);
	CHECK(!explore(STATES_MAX));
	printf("%u members, %u units, %u leaders%s%s: %zu states, never above\n", members, capacity,
	       leaders, forgets ? ", the store forgets" : "", gives_up ? ", members give up" : "",
	       count);
	free(states);
	free(table);
	return EXIT_SUCCESS;
}
