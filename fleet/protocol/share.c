/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a share may use at each moment, and what the application wants of it.
 */

#include "fleet/protocol/share.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define RELAXED memory_order_relaxed

weir_time fleet_now(const struct weir_fleet *f)
{
	struct timespec t;

	if (f->clock != NULL)
		return f->clock->now(f->clock);
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

/* S. Vigna's splitmix64, public domain. */
uint64_t fleet_draw(struct weir_fleet *f, uint64_t most)
{
	uint64_t z = f->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return most > 0 ? z % most : z;
}

void share_set_id(struct weir_share *s, uint64_t id)
{
	s->id = id;
	member_key(s->name, "m", id, s->own_key);
	member_key(s->name, "drain", id, s->drain_key);
}

void share_renumber(struct weir_share *s)
{
	share_set_id(s, fleet_draw(s->fleet, 0));
}

bool share_is_leased(const struct weir_share *s)
{
	return s->until != 0 && fleet_now(s->fleet) < s->until;
}

uint64_t share_reserved(const struct weir_share *s)
{
	return s->surplus ? 0 : s->limit.reserved;
}

/* While there are members without a seat, one of them takes the seat of a row that is gone. */
uint64_t share_reserved_unleased(const struct weir_share *s)
{
	return s->crowded ? 0 : share_reserved(s);
}

/* Units that may be used without a lease. */
static uint64_t lost_units(const struct weir_share *s)
{
	const struct limit_record *l = &s->limit;
	const uint64_t reserved = share_reserved_unleased(s);

	if (s->drained)
		return 0;
	if (s->members == 0)
		return reserved; /* it never had a lease */
	switch (s->config.loss) {
	case WEIR_LOSS_HOLD:
		return reserved + s->held;
	case WEIR_LOSS_OPEN:
		return l->capacity;
	case WEIR_LOSS_EVEN:
		return l->capacity / s->members > reserved ? l->capacity / s->members : reserved;
	default:
		return reserved;
	}
}

void share_notify(struct weir_share *s)
{
	const uint64_t units = weir_share_units(s);

	if (s->has_applied && units == s->applied)
		return;
	s->has_applied = true;
	s->applied = units;
	if (s->config.apply != NULL)
		s->config.apply(s->config.arg, units);
}

void share_publish(struct weir_share *s)
{
	/* After the lease, lost stays as share_drop() has set it: held is 0 by then. */
	if (s->until != 0)
		atomic_store_explicit(&s->lost, lost_units(s), RELAXED);
	atomic_store_explicit(&s->leased, !s->drained ? share_reserved(s) + s->held : 0, RELAXED);
	atomic_store_explicit(&s->deadline, s->until, memory_order_release);
	share_report(s);
	pthread_mutex_lock(&s->fleet->notify_lock);
	share_notify(s);
	if (s->until != 0 && s->until < s->fleet->notify_next)
		pthread_cond_signal(&s->fleet->notify_wake);
	pthread_mutex_unlock(&s->fleet->notify_lock);
}

void share_lease(struct weir_share *s)
{
	weir_time until = s->fleet->deadline;

	if (until > s->carried_bound)
		until = s->carried_bound;
	if (until > s->latest)
		until = s->latest;
	s->until = until;
	share_publish(s);
}

void share_hold(struct weir_share *s, uint64_t grant)
{
	s->held = grant;
	share_lease(s);
}

void share_drop(struct weir_share *s)
{
	atomic_store_explicit(&s->lost, lost_units(s), RELAXED);
	s->until = 0;
	s->held = 0;
	share_publish(s);
}

uint64_t weir_share_units(const struct weir_share *s)
{
	const weir_time deadline = atomic_load_explicit(&s->deadline, memory_order_acquire);

	if (deadline != 0 && fleet_now(s->fleet) < deadline)
		return atomic_load_explicit(&s->leased, RELAXED);
	return atomic_load_explicit(&s->lost, RELAXED);
}

uint64_t share_wants(struct weir_share *s)
{
	const uint64_t set = atomic_load_explicit(&s->want, RELAXED);
	uint64_t wants;

	if (s->config.wants == NULL)
		return set != WANT_UNSET ? set : demand_wanted(&s->measured, s->config.period);
	wants = s->config.wants(s->config.arg);
	if (wants > WEIR_SHARE_UNITS_MAX)
		wants = WEIR_SHARE_UNITS_MAX;
	if (s->returned < wants)
		s->returned = wants;
	return s->returned;
}

bool share_is_elastic(const struct weir_share *s)
{
	const bool measured = s->config.wants == NULL &&
			      atomic_load_explicit(&s->want, RELAXED) == WANT_UNSET;

	/* What a region holds is capacity below, of which its members take headroom. */
	if (s->fleet->region != NULL)
		return true;
	return s->config.headroom == WEIR_HEADROOM_MEASURED
		       ? measured
		       : s->config.headroom == WEIR_HEADROOM_ALWAYS;
}

static struct limit_record own_limit(const struct weir_share *s)
{
	return (struct limit_record){
		.capacity = s->config.capacity,
		.allotment = s->config.allotment,
		.reserved = s->config.reserved,
		.members = s->config.members,
	};
}

struct member_record share_record(const struct weir_share *s, uint64_t wants)
{
	struct member_record record = {
		.wants = wants,
		.weight = s->config.weight,
		.priority = s->config.priority,
		.own = own_limit(s),
		.learning = s->fleet->learning / WEIR_MS,
		.allocated = s->limit.allocated,
		.elastic = s->limit.allocated && share_is_elastic(s),
	};

	memcpy(record.label, s->fleet->label, sizeof(record.label));
	return record;
}

int weir_share_demand_set(struct weir_share *s, uint64_t units)
{
	if (units > WEIR_SHARE_UNITS_MAX)
		return -EINVAL;
	atomic_store_explicit(&s->want, units, RELAXED);
	return 0;
}

void weir_share_demand_add(struct weir_share *s, uint64_t units)
{
	atomic_fetch_add_explicit(&s->demand, units, RELAXED);
}

void weir_share_throttled(struct weir_share *s)
{
	atomic_store_explicit(&s->throttled, 1, RELAXED);
}
