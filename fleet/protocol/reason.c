/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why nothing is granted.
 *
 * This does not compute what each member is due: it says what stands in the way of having any. So
 * it holds for each way of dividing a capacity.
 */

#include "fleet/protocol/reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/protocol/share.h"

#define UNLESS_REFUSED "at its next refresh, unless the store refuses writes."

weir_dur view_learning(const struct limit_view *v)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < v->count; i++)
		if (v->members[i].record.learning > longest)
			longest = v->members[i].record.learning;
	if (v->limit.learning != 0)
		longest = v->limit.learning;
	longest = longest != 0 ? longest * WEIR_MS : LEARNING_DEFAULT;
	if (longest < v->limit.lease * WEIR_MS)
		longest = v->limit.lease * WEIR_MS;
	return longest > v->proven ? longest - v->proven : 0;
}

/* What a member wants beyond what is reserved for it, unless it is drained. */
static uint64_t open_wants(const struct limit_view *v, const struct seen_member *m)
{
	const uint64_t reserved = view_reserved(v, m);

	if (drains_have(&v->drains, m->id, m->record.label))
		return 0;
	return m->record.wants > reserved ? m->record.wants - reserved : 0;
}

/* Units that are shared: the capacity as it is now, less what is set aside for all members. */
static uint64_t shared_units(const struct limit_view *v)
{
	__extension__ const unsigned __int128 aside = (unsigned __int128)v->limit.reserved *
						      v->limit.members;
	const uint64_t effective = view_effective(v, v->ledger.throttle);

	return effective > aside ? effective - (uint64_t)aside : 0;
}

/* What stands in the way of all members alike. Returns false if nothing does. */
static bool is_common(const struct limit_view *v, char text[REASON_SIZE])
{
	const weir_dur learning = view_learning(v);

	text[0] = '\0';
	if (v->limit.capacity + v->carried == 0)
		(void)snprintf(text, REASON_SIZE, "The capacity is 0.");
	else if (shared_units(v) == 0 && v->ledger.throttle < THROTTLE_NONE)
		(void)snprintf(text, REASON_SIZE,
			       "The backend throttles, and what is left is reserved.");
	else if (shared_units(v) == 0)
		(void)snprintf(text, REASON_SIZE, "All of the capacity is reserved.");
	else if (learning > 0)
		(void)snprintf(text, REASON_SIZE,
			       "The store may have forgotten leases: they end first, within "
			       "%.1f s.",
			       (double)learning / (double)WEIR_S);
	else if (v->limit.allocated && v->grants.elected == 0)
		(void)snprintf(text, REASON_SIZE,
			       "It has no allocator: the next member that refreshes is elected.");
	return text[0] != '\0';
}

static int by_id(const void *id, const void *member)
{
	const uint64_t a = *(const uint64_t *)id, b = ((const struct seen_member *)member)->id;

	return a < b ? -1 : a > b;
}

/* The member whose line counts, or NULL. */
static const struct seen_member *holder_of(const struct limit_view *v,
					   const struct ledger_line *line)
{
	const struct seen_member *m = bsearch(&line->id, v->members, v->count, sizeof(*m), by_id);

	return m != NULL && m->made == line->fence ? m : NULL;
}

/* Units that members of that priority and above hold. */
static uint64_t held_above(const struct limit_view *v, int32_t priority)
{
	uint64_t held = 0;

	for (size_t i = 0; i < v->ledger.count; i++) {
		const struct seen_member *m = holder_of(v, &v->ledger.lines[i]);

		if (m != NULL && m->record.priority >= priority)
			held += v->ledger.lines[i].grant;
	}
	return held;
}

/* Members of that priority and above that want some of what is shared. */
static uint64_t wanting_above(const struct limit_view *v, int32_t priority)
{
	uint64_t wanting = 0;

	for (size_t i = 0; i < v->count; i++)
		wanting += v->members[i].record.priority >= priority &&
			   open_wants(v, &v->members[i]) > 0;
	return wanting;
}

/* Why a member that wants some has none, where there is something to share. */
static void weigh_others(const struct limit_view *v, const struct seen_member *m,
			 char text[REASON_SIZE])
{
	const uint64_t shared = shared_units(v), held = view_granted(v);
	const int32_t priority = m->record.priority;
	const uint64_t wanting = wanting_above(v, priority);

	if (v->limit.allotment == WEIR_ALLOT_STATIC || v->limit.allotment == WEIR_ALLOT_NONE)
		(void)snprintf(text, REASON_SIZE, "It takes its part " UNLESS_REFUSED);
	else if (priority < INT32_MAX && held_above(v, priority + 1) >= shared)
		(void)snprintf(text, REASON_SIZE,
			       "Members of higher priority hold all %" PRIu64 " units.", shared);
	else if (held_above(v, priority) > 0 && wanting > shared)
		(void)snprintf(text, REASON_SIZE,
			       "%" PRIu64 " members want some of it, and there are fewer units, "
			       "%" PRIu64 ".",
			       wanting, shared);
	else if (held >= shared)
		(void)snprintf(text, REASON_SIZE,
			       "Other members hold all %" PRIu64 " units until they refresh.",
			       shared);
	else
		(void)snprintf(text, REASON_SIZE,
			       "%" PRIu64 " units are free: it takes its part " UNLESS_REFUSED,
			       shared - held);
}

void reason_of_member(const struct limit_view *v, const struct seen_member *m,
		      char text[REASON_SIZE])
{
	text[0] = '\0';
	if (view_grant(v, m) > 0)
		return;
	if (drains_have(&v->drains, m->id, m->record.label))
		(void)snprintf(text, REASON_SIZE, "An operator has drained it.");
	else if (m->record.wants == 0)
		(void)snprintf(text, REASON_SIZE, "It wants nothing.");
	else if (open_wants(v, m) == 0)
		(void)snprintf(text, REASON_SIZE, "It wants no more than is reserved for it.");
	else if (!is_common(v, text))
		weigh_others(v, m, text);
}

/* Sums over all members. */
struct sums {
	uint64_t wants, open;
	unsigned drained;
};

static struct sums sums_of(const struct limit_view *v)
{
	struct sums sums = {.wants = 0};

	for (size_t i = 0; i < v->count; i++) {
		const bool drained = drains_have(&v->drains, v->members[i].id,
						 v->members[i].record.label);

		sums.wants += drained ? 0 : v->members[i].record.wants;
		sums.open += open_wants(v, &v->members[i]);
		sums.drained += drained;
	}
	return sums;
}

void reason_of_limit(const struct limit_view *v, char text[REASON_SIZE])
{
	const struct sums sums = sums_of(v);

	text[0] = '\0';
	if (view_granted(v) > 0)
		return;
	if (v->count == 0)
		(void)snprintf(text, REASON_SIZE, "It has no members.");
	else if (sums.drained == v->count)
		(void)snprintf(text, REASON_SIZE, "All members are drained.");
	else if (sums.wants == 0)
		(void)snprintf(text, REASON_SIZE, "No member wants anything.");
	else if (sums.open == 0)
		(void)snprintf(text, REASON_SIZE, "No member wants more than is reserved for it.");
	else if (!is_common(v, text))
		(void)snprintf(text, REASON_SIZE,
			       "No member has taken its part yet: each does " UNLESS_REFUSED);
}
