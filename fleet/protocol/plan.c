/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rule of the ledger.
 *
 * A member reads which members there are, what each wants, and what each holds. All members compute
 * the same target for each of them. A member takes its target, but never more than the units that no
 * other member holds. At most one of several concurrent commits happens, so all members together
 * never hold more than there is. A line of the ledger counts as long as its member's row is the one
 * that the line names. When that row goes with its session, the units of the line are free: by the
 * store's clock, and no other.
 */

#include "fleet/protocol/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/allocation.h"

void view_clear(struct limit_view *v)
{
	v->has_limit = false;
	v->limit_version = 0;
	v->learning_version = 0;
	v->count = 0;
	v->ledger_version = 0;
	v->up_version = 0;
	v->carried = 0;
	v->other_version = false;
	ledger_clear(&v->ledger);
	drains_clear(&v->drains);
	v->grants.elected = v->grants.version = v->grants.count = 0;
	v->grants.all = (struct grants_record){.throttle = THROTTLE_NONE, .epoch = 1};
}

void view_free(struct limit_view *v)
{
	free(v->members);
	ledger_free(&v->ledger);
	drains_free(&v->drains);
	free(v->grants.at);
}

static bool add_member(struct limit_view *v, const struct seen_member *member)
{
	if (v->count == v->room) {
		const size_t room = v->room > 0 ? 2 * v->room : 16;
		struct seen_member *members = realloc(v->members, room * sizeof(*members));

		if (members == NULL)
			return false;
		v->members = members;
		v->room = room;
	}
	v->members[v->count++] = *member;
	return true;
}

/* Parse the number of a member in a key. */
static bool is_id(const char *name, uint64_t *id)
{
	char *end;

	errno = 0;
	*id = strtoull(name, &end, 16);
	return errno == 0 && *end == '\0' && end != name;
}

static bool take_member(struct limit_view *v, const char *name, const struct weir_store_row *row)
{
	struct seen_member member = {.made = row->made, .version = row->version};

	if (!is_id(name, &member.id) || !member_parse(row->value, row->size, &member.record)) {
		v->other_version = true;
		return true;
	}
	return add_member(v, &member);
}

static bool take_drain(struct limit_view *v, const char *name, const struct weir_store_row *row)
{
	struct drain drain = {.version = row->version};

	if (is_id(name, &drain.id))
		return drains_add(&v->drains, &drain);
	v->other_version = true;
	return true;
}

/* Rows come in any order. What another program has written since is without learning. */
static void match_learning(struct limit_view *v)
{
	const bool counts = v->has_limit && v->learning_version == v->limit_version;

	v->limit.learning = counts ? v->learning : 0;
}

static bool take_grant(struct limit_view *v, const char *name, const struct weir_store_row *row)
{
	struct seen_grants *g = &v->grants;
	struct seen_grant grant;

	if (!is_id(name, &grant.id) || !grant_parse(row->value, row->size, &grant.record)) {
		v->other_version = true;
		return true;
	}
	if (g->count == g->room) {
		const size_t room = g->room > 0 ? 2 * g->room : 1;
		struct seen_grant *at = realloc(g->at, room * sizeof(*at));

		if (at == NULL)
			return false;
		g->at = at;
		g->room = room;
	}
	g->at[g->count++] = grant;
	return true;
}

bool view_take(struct limit_view *v, const char *rest, const struct weir_store_row *row)
{
	int r;

	if (strncmp(rest, "grant/", 6) == 0)
		return take_grant(v, rest + 6, row);
	if (strcmp(rest, "grants") == 0) {
		v->grants.version = row->version;
		v->other_version |= !grants_parse(row->value, row->size, &v->grants.all);
	}
	if (strcmp(rest, "allocator") == 0) {
		v->grants.elected = row->made;
		v->other_version |= !allocator_parse(row->value, row->size, &v->grants.allocator);
	}
	if (strncmp(rest, "m/", 2) == 0)
		return take_member(v, rest + 2, row);
	if (strncmp(rest, "drain/", 6) == 0)
		return take_drain(v, rest + 6, row);
	if (strcmp(rest, DRAINED_KEY) == 0) {
		r = drains_parse(&v->drains, row);
		v->other_version |= r == -EPROTO;
		return r != -ENOMEM;
	}
	if (strcmp(rest, "led") == 0) {
		v->ledger_version = row->version;
		r = ledger_parse(row->value, row->size, &v->ledger);
		v->other_version |= r == -EPROTO;
		return r != -ENOMEM;
	}
	if (strcmp(rest, "cfg") == 0) {
		v->limit_version = row->version;
		v->has_limit = limit_parse(row->value, row->size, &v->limit);
		v->other_version |= !v->has_limit;
		match_learning(v);
	}
	if (strcmp(rest, LEARNING_KEY) == 0) {
		v->learning_version = row->version;
		v->other_version |= !learning_parse(row->value, row->size, &v->learning);
		match_learning(v);
	}
	if (strcmp(rest, "up") == 0) {
		v->up_version = row->version;
		v->other_version |= !up_parse(row->value, row->size, &v->up);
		v->carried = v->up.carried;
	}
	return true;
}

static int by_id(const void *left, const void *right)
{
	const struct seen_member *a = left, *b = right;

	return a->id < b->id ? -1 : a->id > b->id;
}

static int by_age(const void *left, const void *right)
{
	const struct seen_member *a = left, *b = right;

	if (a->made != b->made)
		return a->made < b->made ? -1 : 1;
	return by_id(left, right);
}

static int by_grant_id(const void *left, const void *right)
{
	const struct seen_grant *a = left, *b = right;

	return a->id < b->id ? -1 : a->id > b->id;
}

bool view_is_crowded(const struct limit_view *v)
{
	return v->has_limit && v->limit.reserved > 0 && v->count > v->limit.members;
}

/*
 * Seats go to the members whose rows are oldest. So a later member never takes the seat of an
 * earlier one, and gets a seat only once the row of a seated member is gone.
 */
void view_sort(struct limit_view *v)
{
	const size_t seats = view_is_crowded(v) ? v->limit.members : v->count;

	if (v->grants.count > 1)
		qsort(v->grants.at, v->grants.count, sizeof(v->grants.at[0]), by_grant_id);
	if (v->count == 0)
		return;
	if (seats < v->count)
		qsort(v->members, v->count, sizeof(v->members[0]), by_age);
	for (size_t i = 0; i < v->count; i++)
		v->members[i].seated = i < seats;
	qsort(v->members, v->count, sizeof(v->members[0]), by_id);
}

uint64_t view_reserved(const struct limit_view *v, const struct seen_member *member)
{
	return member->seated ? v->limit.reserved : 0;
}

const struct grant_record *view_grant_record(const struct limit_view *v,
					     const struct seen_member *member)
{
	const struct seen_grant key = {.id = member->id};
	const struct seen_grant *g = v->grants.count > 0
					     ? bsearch(&key, v->grants.at, v->grants.count,
						       sizeof(key), by_grant_id)
					     : NULL;

	return g != NULL && g->record.fence == member->made ? &g->record : NULL;
}

bool view_tabulate(struct limit_view *v)
{
	if (!v->limit.allocated)
		return true;
	ledger_clear(&v->ledger);
	v->ledger.throttle = v->grants.all.throttle;
	for (size_t i = 0; i < v->grants.count; i++) {
		const struct seen_grant *g = &v->grants.at[i];

		if (!ledger_add(&v->ledger, &(const struct ledger_line){g->id, g->record.fence,
									g->record.units}))
			return false;
	}
	return true;
}

uint64_t view_grant(const struct limit_view *v, const struct seen_member *member)
{
	for (size_t i = 0; i < v->ledger.count; i++)
		if (v->ledger.lines[i].id == member->id && v->ledger.lines[i].fence == member->made)
			return v->ledger.lines[i].grant;
	return 0;
}

uint64_t view_effective(const struct limit_view *v, uint32_t throttle)
{
	__extension__ const unsigned __int128 full = v->limit.capacity + v->carried;

	return (uint64_t)(full * throttle / THROTTLE_NONE);
}

/* Whether the member of a line is still there, with the row that the line names. */
static bool line_counts(const struct limit_view *v, const struct ledger_line *line)
{
	const struct seen_member key = {.id = line->id};
	const struct seen_member *member = v->count > 0 ? bsearch(&key, v->members, v->count,
								  sizeof(key), by_id)
							: NULL;

	return member != NULL && member->made == line->fence;
}

uint64_t view_granted(const struct limit_view *v)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->ledger.count; i++)
		if (line_counts(v, &v->ledger.lines[i]))
			sum += v->ledger.lines[i].grant;
	return sum;
}

const struct seen_member *view_member(const struct limit_view *v, uint64_t id)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->members[i].id == id)
			return &v->members[i];
	return NULL;
}

/* What a member wants beyond what is reserved for it. */
static uint64_t shared_wants(const struct limit_view *v, const struct seen_member *m,
			     uint64_t wants)
{
	const uint64_t reserved = view_reserved(v, m);

	return wants > reserved ? wants - reserved : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The claims of all members that may hold something. Returns how many. */
static size_t claims_of(const struct limit_view *v, const struct planner *p, struct claim *claims)
{
	size_t count = 0;

	for (size_t i = 0; i < v->count; i++) {
		const struct seen_member *m = &v->members[i];
		const struct member_record *record = m->id == p->id ? &p->record : &m->record;

		if (drains_have(&v->drains, m->id, record->label))
			continue;
		claims[count++] = (struct claim){
			.id = m->id,
			.wants = shared_wants(v, m, record->wants),
			.weight = record->weight,
			.priority = record->priority,
		};
	}
	return count;
}

/* The target and the headroom of the planning member, by what it wants now. */
static int target_of(const struct limit_view *v, const struct planner *p, uint64_t shared,
		     uint64_t *target, uint64_t *headroom)
{
	struct claim *claims = calloc(v->count, sizeof(*claims));
	size_t count;

	if (claims == NULL)
		return -ENOMEM;
	count = claims_of(v, p, claims);
	allot(v->limit.allotment, shared, claims, count);
	if (p->elastic)
		allot_headroom(v->limit.allotment, shared, claims, count);
	*target = *headroom = 0;
	for (size_t i = 0; i < count; i++)
		if (claims[i].id == p->id) {
			*target = claims[i].target;
			*headroom = claims[i].headroom;
		}
	free(claims);
	return 0;
}

/*
 * With headroom, a line that is near its target stays as it is, so that small changes of demand
 * write nothing. All members together then hold at most five eighths of what is idle.
 */
static uint64_t steady(uint64_t target, uint64_t headroom, uint64_t mine)
{
	const uint64_t full = target + headroom;
	const uint64_t apart = full > mine ? full - mine : mine - full;

	return apart <= headroom / 4 ? mine : full;
}

/*
 * Once a refresh: less, if the backend has throttled this member and no other member has lowered the
 * capacity meanwhile; more, if it has not throttled this member and no other has changed it.
 */
static uint32_t throttle_after(const struct limit_view *v, const struct planner *p)
{
	const uint32_t now = v->ledger.throttle;
	const uint32_t less = now / 10 * 7;

	if (p->throttle_seen == 0)
		return now;
	if (p->throttled)
		return now < p->throttle_seen ? now : less > THROTTLE_LEAST ? less : THROTTLE_LEAST;
	if (now != p->throttle_seen || now == THROTTLE_NONE)
		return now;
	return now + THROTTLE_STEP < THROTTLE_NONE ? now + THROTTLE_STEP : THROTTLE_NONE;
}

static void set_capacity(const struct limit_view *v, struct plan *plan)
{
	const struct limit_record *l = &v->limit;
	__extension__ const unsigned __int128 aside = (unsigned __int128)l->reserved * l->members;

	plan->effective = view_effective(v, plan->ledger.throttle);
	plan->shared = plan->effective > aside ? plan->effective - (uint64_t)aside : 0;
}

/* Copy the lines of other members that count. Sets the units of this member's line, and of theirs. */
static int copy_lines(const struct limit_view *v, const struct planner *p, struct plan *plan,
		      uint64_t *mine, uint64_t *others)
{
	*mine = *others = 0;
	for (size_t i = 0; i < v->ledger.count; i++) {
		const struct ledger_line *line = &v->ledger.lines[i];

		if (!line_counts(v, line))
			continue;
		if (line->id == p->id) {
			*mine = line->grant;
			continue;
		}
		*others += line->grant;
		if (!ledger_add(&plan->ledger, line))
			return -ENOMEM;
	}
	return 0;
}

bool record_differs(const struct member_record *a, const struct member_record *b)
{
	return strcmp(a->label, b->label) != 0 || a->learning != b->learning ||
	       a->own.capacity != b->own.capacity || a->own.allotment != b->own.allotment ||
	       a->own.reserved != b->own.reserved || a->own.members != b->own.members;
}

static bool differ(const struct member_record *a, const struct member_record *b)
{
	return a->wants != b->wants || a->weight != b->weight || a->priority != b->priority ||
	       a->allocated || record_differs(a, b);
}

/*
 * While nothing can be written, a member uses its line. But if the lines add up to more than there
 * is to share, as the capacity was cut, it uses its target by the wants that are in the store, as
 * all members read those. A drained member uses nothing.
 */
static int plan_frozen(const struct limit_view *v, const struct planner *p,
		       const struct member_record *record, uint64_t others, struct plan *plan)
{
	const enum weir_allotment how = v->limit.allotment;
	const uint64_t sum = how == WEIR_ALLOT_STATIC ? plan->mine : plan->mine + others;
	struct planner written = *p;
	uint64_t target, headroom;
	int r;

	plan->frozen = plan->drained ? least(plan->grant, plan->mine) : plan->mine;
	if (plan->drained || how == WEIR_ALLOT_NONE || sum <= plan->shared)
		return 0;
	written.record = *record;
	r = target_of(v, &written, plan->shared, &target, &headroom);
	if (r == 0)
		plan->frozen = least(greatest(target + headroom, p->floor), plan->mine);
	return r;
}

/* A commit in doubt may still come until the ledger has another version: so change it. */
static bool must_move(const struct limit_view *v, const struct planner *p)
{
	return p->unsettled && v->ledger_version == p->unsettled_version;
}

int plan_make(struct limit_view *v, const struct planner *p, struct plan *plan)
{
	const struct seen_member *own = view_member(v, p->id);
	uint64_t mine, others, target, headroom;
	struct member_record record; /* as it is in the store */
	uint64_t wants;
	struct ledger_line line;
	int r;

	ledger_clear(&plan->ledger);
	*plan = (struct plan){.ledger = plan->ledger, .members = (uint32_t)v->count};
	plan->join = own == NULL || !v->has_limit;
	plan->fence = own != NULL ? own->made : 0;
	plan->version = own != NULL ? own->version : 0;
	plan->drained = drains_have(&v->drains, own != NULL ? p->id : p->last_id, p->record.label);
	if (v->has_limit ? v->limit.allocated : p->record.allocated) {
		plan_follow(v, p, plan);
		return 0;
	}
	plan->record = p->record;
	if (plan->join)
		return 0;
	record = own->record;
	plan->write_member = differ(&record, &p->record);
	view_sort(v);
	own = view_member(v, p->id);
	/* A store that has forgotten has also forgotten which rows were oldest. */
	plan->surplus = !own->seated || (p->learning && p->surplus);
	plan->crowded = view_is_crowded(v);
	wants = shared_wants(v, own, p->record.wants);
	r = copy_lines(v, p, plan, &mine, &others);
	if (r != 0)
		return r;
	plan->ledger.throttle = throttle_after(v, p);
	set_capacity(v, plan);
	r = target_of(v, p, plan->shared, &target, &headroom);
	if (r != 0)
		return r;
	target = steady(target, headroom, mine);
	/* While learning, no member gets more than it holds. */
	if (p->learning && !plan->drained)
		target = p->elastic ? p->held : least(wants, p->held);
	plan->mine = mine;
	plan->due = allot_step(v->limit.allotment, plan->shared, target, others);
	plan->lacks = plan->due < target;
	plan->grant = greatest(plan->due, least(p->floor, mine));
	r = plan_frozen(v, p, &record, others, plan);
	if (r != 0)
		return r;
	plan->write_ledger = plan->grant != mine || plan->ledger.throttle != v->ledger.throttle ||
			     must_move(v, p);
	line = (struct ledger_line){p->id, plan->fence, plan->grant};
	return ledger_add(&plan->ledger, &line) ? 0 : -ENOMEM;
}
