/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking at once: a share whose demand has outgrown its units is refreshed before its time.
 *
 * The fleet's thread looks at what was counted ten times a second, so the application's threads do
 * nothing for it. While nothing is counted, it looks once a second. A share asks at most ASKS_MAX
 * times in the interval between two refreshes, and half as often each time that this has brought it
 * nothing. So a share that grows step by step gets there quickly, and an overload that lasts costs
 * the store next to nothing.
 */

#include "fleet/protocol/share.h"

/* How often the time between asks doubles. */
#define DOUBLED_MAX     5 /* then regular refreshes come sooner */
#define DOUBLED_LACKING 2 /* others give back what they hold within a refresh of theirs */

/* After that many tenths of an interval an allocator has answered: it reads after two of them. */
#define LOOK  5
#define LOOKS 2 /* it may have been late */

/* Whether a refresh could bring it more. */
static bool may_grow(const struct weir_share *s)
{
	const struct weir_fleet *f = s->fleet;

	/* A region knows what its members want only once it has read that. */
	return f->region == NULL && f->reachable && !f->refused && s->phase == SHARE_MEMBER &&
	       !s->learning && !s->drained;
}

/* A share with headroom asks before calls are refused; another one asks for what it lacks. */
static bool is_outgrown(const struct weir_share *s, uint64_t wants, uint64_t units)
{
	return s->awaits || wants > (share_is_elastic(s) ? units - units / 4 : units);
}

/* Whether the other members do not know of it yet, or hold what is due to it. */
static bool has_news(const struct weir_share *s, uint64_t wants)
{
	return s->lacks || s->looks > 0 || wants > s->wants_written + s->wants_written / 8;
}

/*
 * Whether it wants so much less than its row has that others should not wait for its next refresh.
 * Where there is no allocator, each of them would have to read that first.
 */
static bool is_shrunk(const struct weir_share *s, uint64_t wants)
{
	return s->limit.allocated && !share_is_elastic(s) &&
	       wants < s->wants_written - s->wants_written / 4;
}

/*
 * A member of an allocated limit that has written a greater demand is granted more a little later,
 * when the allocator has read it. If the member does not watch its grant, it looks for it.
 */
void share_await(struct weir_share *s)
{
	const struct weir_fleet *f = s->fleet;

	if (!s->limit.allocated || !s->plan.write_member || f->watching.runs ||
	    s->plan.record.wants <= weir_share_units(s))
		return;
	s->looks = LOOKS;
	s->next_ask = fleet_now(f) + fleet_jitter(s->fleet, fleet_interval(f) / ASKS_MAX * LOOK);
}

/* Until it may ask again. */
static weir_dur pause_after(struct weir_share *s, weir_dur interval)
{
	const unsigned most = s->lacks ? DOUBLED_LACKING : DOUBLED_MAX;
	const unsigned doubled = s->asked < most ? s->asked : most;

	s->asked++;
	if (s->looks > 0 && --s->looks > 0)
		return fleet_jitter(s->fleet, interval / ASKS_MAX * LOOK);
	return fleet_jitter(s->fleet, (interval / ASKS_MAX) << doubled);
}

bool share_asks(struct weir_share *s, weir_time now, weir_dur interval)
{
	const uint64_t units = weir_share_units(s);
	uint64_t wants;

	if (now < s->next_ask || !may_grow(s))
		return false;
	wants = share_wants(s);
	if (s->config.wants != NULL)
		s->next_ask = now + fleet_jitter(s->fleet, interval / ASKS_MAX);
	if (units > s->units_at_last || !is_outgrown(s, wants, units))
		s->asked = 0;
	s->units_at_last = units;
	if (!is_outgrown(s, wants, units))
		s->looks = 0;
	if ((!is_outgrown(s, wants, units) || !has_news(s, wants)) && !is_shrunk(s, wants))
		return false;
	s->next_ask = now + pause_after(s, interval);
	return true;
}

bool share_is_busy(const struct weir_share *s)
{
	if (s->awaits || s->looks > 0)
		return true;
	if (s->config.wants != NULL)
		return s->returned > 0 || s->wants_written > 0;
	return demand_last(&s->measured) > 0;
}
