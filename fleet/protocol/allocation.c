/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rule of an allocator.
 *
 * For each member, the store shows the most that it may be using (grant_counted()). An allocator
 * hands out only what is left of the capacity beyond the sum of these. To take units away, it writes
 * a lesser grant with the next number; the former units stay counted until the member's row
 * acknowledges that number, or is gone with its session. So units go to another member only after
 * the store has shown that the former one has given them up, whichever process allocates.
 *
 * Each commit of an allocator checks the row "grants", and writes it. So its commits, and those of
 * former allocators, happen one after the other, each by a reading that had all earlier ones in it.
 * Between a reading and its commit, what is counted for a member only becomes less: only allocators
 * make it more.
 */

#include "fleet/protocol/allocation.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t grant_counted(const struct seen_member *m, const struct grant_record *g, bool learning)
{
	if (g == NULL)
		return learning ? m->record.claim : 0;
	if (m->record.acknowledged < g->number)
		return g->most;
	return m->record.acknowledged == g->number ? least(g->units, m->record.uses) : g->units;
}

/* Whether the member has given up some of a grant: then it uses no more until the next number. */
static bool is_given_up(const struct seen_member *m, const struct grant_record *g)
{
	return g != NULL && m->record.acknowledged == g->number && m->record.uses < g->units;
}

struct grant_record grant_next(const struct seen_member *m, const struct grant_record *g,
			       uint64_t counted, uint64_t units)
{
	const uint64_t number = g == NULL ? 1 : g->number;

	return (struct grant_record){
		.fence = m->made,
		.number = g != NULL && (units < g->units || is_given_up(m, g)) ? number + 1
									       : number,
		.units = units,
		.most = greatest(counted, units),
	};
}

/* A member that an allocator has read. */
struct dealt {
	const struct seen_member *member;
	const struct grant_record *grant; /* or NULL */
	uint64_t counted;
	uint64_t full; /* units that it is to have once others have given them up */
	uint64_t units;
};

/* Units that are shared, at that throttle. */
static uint64_t shared_units(const struct limit_view *v, uint32_t throttle)
{
	__extension__ const unsigned __int128 aside = (unsigned __int128)v->limit.reserved *
						      v->limit.members;
	const uint64_t effective = view_effective(v, throttle);

	return effective > aside ? effective - (uint64_t)aside : 0;
}

static uint64_t wants_of(const struct limit_view *v, const struct seen_member *m)
{
	const uint64_t reserved = view_reserved(v, m);

	return m->record.wants > reserved ? m->record.wants - reserved : 0;
}

static int by_id(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	return a->id < b->id ? -1 : a->id > b->id;
}

/* The claims of all members, in the order of members. Those that are drained want nothing. */
static struct claim *make_claims(const struct limit_view *v, uint64_t shared)
{
	struct claim *claims = calloc(v->count + 1, sizeof(*claims));
	size_t count = 0, drained = v->count;

	if (claims == NULL)
		return NULL;
	for (size_t i = 0; i < v->count; i++) {
		const struct seen_member *m = &v->members[i];
		const bool out = drains_have(&v->drains, m->id, m->record.label);

		claims[out ? --drained : count++] = (struct claim){
			.id = m->id,
			.wants = out ? 0 : wants_of(v, m),
			.weight = m->record.weight,
			.priority = m->record.priority,
		};
	}
	allot(v->limit.allotment, shared, claims, count);
	allot_headroom(v->limit.allotment, shared, claims, count);
	qsort(claims, v->count, sizeof(*claims), by_id);
	return claims;
}

/*
 * A grant with headroom that is near its target stays as it is, so that small changes of demand
 * write nothing.
 */
static uint64_t steady(uint64_t target, uint64_t headroom, uint64_t units)
{
	const uint64_t full = target + headroom;
	const uint64_t apart = full > units ? full - units : units - full;

	return apart <= headroom / 4 ? units : full;
}

/* While the store learns, no member gets more than it holds. */
static uint64_t full_of(const struct dealt *d, const struct claim *c, bool learning, bool over)
{
	const bool elastic = d->member->record.elastic;
	const uint64_t units = d->grant != NULL ? d->grant->units : 0;

	if (!learning)
		return elastic ? steady(c->target, c->headroom, units) : c->target;
	if (over)
		return least(d->counted, c->target);
	return elastic ? d->counted : least(d->counted, c->wants);
}

/* The members of the highest priority first, and of these, those that have least. */
static int by_lack(const void *left, const void *right)
{
	const struct dealt *a = left, *b = right;
	const int32_t x = a->member->record.priority, y = b->member->record.priority;

	if (x != y)
		return x > y ? -1 : 1;
	if (a->counted != b->counted)
		return a->counted < b->counted ? -1 : 1;
	return a->member->id < b->member->id ? -1 : a->member->id > b->member->id;
}

/*
 * What is free goes to one member after the other, each of which has all that is due to it then: so
 * each grant is written once, and not once for each part of it that becomes free.
 */
static void deal(struct dealt *dealt, size_t count, enum weir_allotment how, uint64_t left)
{
	qsort(dealt, count, sizeof(*dealt), by_lack);
	for (size_t i = 0; i < count; i++) {
		struct dealt *d = &dealt[i];
		uint64_t more = d->full > d->counted ? d->full - d->counted : 0;

		if (how != WEIR_ALLOT_STATIC && how != WEIR_ALLOT_NONE) {
			more = least(more, left);
			left -= more;
		}
		d->units = d->full > d->counted ? d->counted + more : d->full;
	}
}

static bool add_change(struct allocation *a, uint64_t id, const struct grant_record *record)
{
	if (a->count == a->room) {
		const size_t room = a->room > 0 ? 2 * a->room : 16;
		struct grant_change *changes = realloc(a->changes, room * sizeof(*changes));

		if (changes == NULL)
			return false;
		a->changes = changes;
		a->room = room;
	}
	a->changes[a->count++] = (struct grant_change){id, *record};
	return true;
}

static bool is_news(const struct grant_record *was, const struct grant_record *is)
{
	return was == NULL || was->units != is->units || was->number != is->number ||
	       was->seated != is->seated || was->lacks != is->lacks;
}

/* less: only what takes units away; else the rest. */
static bool add_changes(struct allocation *a, const struct dealt *dealt, size_t count, bool less)
{
	for (size_t i = 0; i < count; i++) {
		const struct dealt *d = &dealt[i];
		struct grant_record next = grant_next(d->member, d->grant, d->counted, d->units);

		next.seated = d->member->seated;
		next.lacks = d->units < d->full;
		if ((d->units < d->counted) == less && is_news(d->grant, &next) &&
		    !add_change(a, d->member->id, &next))
			return false;
	}
	return true;
}

/* Grants of members that are gone. */
static bool add_erasures(struct allocation *a, const struct limit_view *v)
{
	static const struct grant_record none = {.number = 0};

	for (size_t i = 0, j = 0; i < v->grants.count; i++) {
		const uint64_t id = v->grants.at[i].id;

		while (j < v->count && v->members[j].id < id)
			j++;
		if ((j == v->count || v->members[j].id != id) && !add_change(a, id, &none))
			return false;
	}
	return true;
}

static bool is_throttled(const struct limit_view *v)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->members[i].record.throttled == v->grants.all.epoch)
			return true;
	return false;
}

/* Less, if the backend has throttled a member at this level; more, if it has throttled none. */
static uint32_t throttle_after(const struct limit_view *v, bool regular)
{
	const uint32_t now = v->grants.all.throttle, less = now / 10 * 7;

	if (!regular)
		return now;
	if (is_throttled(v))
		return less > THROTTLE_LEAST ? less : THROTTLE_LEAST;
	return now + THROTTLE_STEP < THROTTLE_NONE ? now + THROTTLE_STEP : THROTTLE_NONE;
}

static void sum_up(const struct limit_view *v, bool regular, struct allocation *a)
{
	const struct grants_record *was = &v->grants.all;
	const uint32_t throttle = throttle_after(v, regular);

	a->all = (struct grants_record){
		.throttle = throttle,
		.epoch = was->epoch + (throttle != was->throttle || (regular && is_throttled(v))),
		.members = (uint32_t)v->count,
		.crowded = view_is_crowded(v),
		.shared = shared_units(v, throttle),
	};
	if (a->all.epoch == 0)
		a->all.epoch = 1;
	a->write_all = v->grants.version == 0 || a->all.epoch != was->epoch ||
		       a->all.members != was->members || a->all.crowded != was->crowded ||
		       a->all.shared != was->shared;
}

static uint64_t count_all(const struct limit_view *v, bool learning, struct dealt *dealt)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->count; i++) {
		struct dealt *d = &dealt[i];

		*d = (struct dealt){.member = &v->members[i]};
		d->grant = view_grant_record(v, d->member);
		d->counted = grant_counted(d->member, d->grant, learning);
		sum = sum < UINT64_MAX - d->counted ? sum + d->counted : UINT64_MAX;
	}
	return sum;
}

int allocation_make(struct limit_view *v, const struct allocating *how, struct allocation *a)
{
	struct dealt *dealt = calloc(v->count + 1, sizeof(*dealt));
	struct claim *claims;
	uint64_t sum;
	bool good;

	*a = (struct allocation){.count = 0};
	view_sort(v);
	sum_up(v, how->regular, a);
	claims = make_claims(v, a->all.shared);
	good = dealt != NULL && claims != NULL;
	if (good) {
		sum = count_all(v, how->learning, dealt);
		for (size_t i = 0; i < v->count; i++)
			dealt[i].full = full_of(&dealt[i], &claims[i], how->learning,
						sum > a->all.shared);
		deal(dealt, v->count, v->limit.allotment,
		     a->all.shared > sum ? a->all.shared - sum : 0);
		good = add_changes(a, dealt, v->count, true) &&
		       add_changes(a, dealt, v->count, false) && add_erasures(a, v);
	}
	free(claims);
	free(dealt);
	if (good)
		return 0;
	allocation_free(a);
	return -ENOMEM;
}

void allocation_free(struct allocation *a)
{
	free(a->changes);
	*a = (struct allocation){.count = 0};
}

/* How often a small change of demand is written: at each of that many regular refreshes. */
#define PATIENCE 4

/* A change of demand is written at once if it is more than an eighth, and else after a while. */
static bool is_other_demand(uint64_t wants, uint64_t written, const struct planner *p)
{
	const uint64_t apart = wants > written ? wants - written : written - wants;

	return apart > written / 8 || (apart > 0 && (wants == 0 || p->waited >= PATIENCE));
}

static bool is_other_member(const struct member_record *a, const struct member_record *b)
{
	return a->weight != b->weight || a->priority != b->priority || a->elastic != b->elastic ||
	       !a->allocated || record_differs(a, b);
}

/*
 * What a member gives up by itself, when it wants less than it may use: then others need not wait
 * for an allocator to take it away, and for this member to acknowledge that. What is headroom is
 * left to the allocator.
 */
static void give_up(const struct limit_view *v, const struct planner *p,
		    const struct grant_record *g, struct plan *plan)
{
	const uint64_t reserved = plan->surplus ? 0 : v->limit.reserved;
	const uint64_t wants = plan->record.wants > reserved ? plan->record.wants - reserved : 0;

	if (p->learning || p->refused || plan->record.elastic || !plan->write_member ||
	    wants >= plan->grant || p->floor > 0)
		return;
	plan->record.acknowledged = plan->given_up = g->number;
	plan->record.uses = plan->uses = wants;
	plan->grant = plan->due = plan->frozen = wants;
}

/* The epoch in which the backend has throttled this member, as its row is to have it. */
static uint32_t throttled_in(const struct limit_view *v, const struct planner *p, uint32_t written)
{
	return p->throttled ? v->grants.all.epoch : written;
}

/*
 * Its row says which number it acknowledges. A member that has read a lesser grant uses no more than
 * that from then on, so its row may say so in any later commit.
 */
static void write_own(const struct limit_view *v, const struct planner *p,
		      const struct member_record *was, const struct grant_record *g,
		      struct plan *plan)
{
	struct member_record *is = &plan->record;
	const uint64_t wants = is->wants;

	is->acknowledged = was->acknowledged;
	is->uses = was->uses;
	is->claim = was->claim;
	is->throttled = throttled_in(v, p, was->throttled);
	plan->waits = wants != was->wants;
	plan->write_member = is_other_demand(wants, was->wants, p) || is_other_member(was, is) ||
			     is->throttled != was->throttled;
	if (g != NULL && g->number > was->acknowledged && p->floor <= g->units) {
		is->acknowledged = g->number;
		is->uses = WEIR_SHARE_UNITS_MAX;
		plan->write_member |= g->units < g->most;
	}
	if (g != NULL && g->number == p->given_up) {
		plan->write_member |= is->uses != p->uses;
		is->uses = p->uses;
	}
}

/*
 * Units of its grant that it may use. Where the capacity was cut since the grants were written, it
 * uses its part of what is left, and does not wait for an allocator: so members that read the cut
 * keep to it together.
 */
static uint64_t usable(const struct limit_view *v, const struct grant_record *g, uint64_t shared)
{
	const enum weir_allotment how = v->limit.allotment;
	const uint64_t then = v->grants.all.shared;

	if (v->grants.version == 0 || shared >= then || how == WEIR_ALLOT_NONE)
		return g->units;
	if (how == WEIR_ALLOT_STATIC)
		return least(g->units, shared);
	__extension__ const unsigned __int128 part = (unsigned __int128)g->units * shared / then;

	return (uint64_t)part;
}

/*
 * Units that cannot be given up yet, as they are lent. A lesser grant is not acknowledged then, so
 * they stay counted for this member.
 */
static uint64_t kept(const struct seen_member *own, const struct grant_record *g, uint64_t floor)
{
	return g != NULL ? least(floor, grant_counted(own, g, false)) : 0;
}

void plan_follow(struct limit_view *v, const struct planner *p, struct plan *plan)
{
	const struct seen_member *own;
	const struct grant_record *g;

	plan->record = p->record;
	plan->members = v->grants.all.members > 0 ? v->grants.all.members : 1;
	plan->crowded = v->grants.all.crowded;
	plan->ledger.throttle = v->grants.all.throttle;
	plan->effective = view_effective(v, v->grants.all.throttle);
	plan->shared = shared_units(v, v->grants.all.throttle);
	if (plan->join) {
		plan->record.claim = p->learning ? p->held : 0;
		plan->record.uses = WEIR_SHARE_UNITS_MAX;
		return;
	}
	view_sort(v);
	own = view_member(v, p->id);
	g = view_grant_record(v, own);
	plan->granted = g != NULL;
	plan->surplus = g != NULL && !g->seated;
	/* A store that has forgotten has also forgotten which rows were oldest. */
	if (p->surplus && (p->learning || g == NULL))
		plan->surplus = true;
	plan->mine = g != NULL ? usable(v, g, plan->shared) : 0;
	if (g != NULL && g->number == p->given_up)
		plan->mine = least(plan->mine, p->uses);
	plan->due = plan->drained ? 0 : plan->mine;
	plan->mine = greatest(plan->mine, kept(own, g, p->floor));
	plan->grant = plan->frozen = greatest(plan->due, kept(own, g, p->floor));
	plan->lacks = !plan->drained && (g == NULL || g->lacks);
	plan->given_up = plan->was_given_up = p->given_up;
	plan->uses = plan->used = p->uses;
	write_own(v, p, &own->record, g, plan);
	if (g != NULL)
		give_up(v, p, g, plan);
}
