/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region: the members of a limit in one store, the store below, are together one member of a limit
 * in another, the store above.
 *
 * What the region holds above is written below, in the row "up", and is capacity there, in addition
 * to what the limit below has of its own. One process of the region, its leader, does this; others
 * stand by (region_leader.c). Three rules keep the limit above:
 *
 * A lease below ends before the lease above. This compares no clocks, and assumes nothing of how
 * long a message takes: the leader commits a row below, the tick, and then writes how much of the
 * lease above was left after the tick. A member that has read the store before the tick counts that
 * time from when it sent that reading.
 *
 * The region shrinks below first. The leader writes the lesser capacity below; every commit to the
 * ledger below checks that row, so no later commit grants more. The leader gives back above only
 * what no member below can hold any more, by a reading after that; the rest is the floor.
 *
 * A leader that has been replaced writes nothing more. Below, every commit checks the leader's row.
 * Above, the leader reads the version of the ledger first, and checks its row below by the tick
 * after that. The next leader moves the ledger above before it relies on it. So a commit of the
 * former leader happens before that, or is refused.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/refresh.h"
#include "fleet/protocol/region.h"
#include "fleet/store/store.h"

#define REGION_LEASE (30 * WEIR_S)
#define REFRESHES    6 /* per lease above: what is left of the lease must reach below in time */
#define LEADER_PART  3 /* of a lease above: the session below, so that a dead leader is replaced */

static uint64_t greatest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

int region_fail(struct weir_region *r, int error)
{
	return fleet_fail_of(r->fleet, r->store, error);
}

static bool take(void *arg, const struct weir_store_row *row)
{
	struct weir_region *r = arg;

	if (strcmp(row->key, r->leader_key) == 0) {
		r->made = row->made;
		r->is_mine = row->size == strlen(r->sign) &&
			     memcmp(row->value, r->sign, row->size) == 0;
	}
	r->full = !view_take(&r->view, row->key + strlen(r->prefix), row);
	return !r->full;
}

int region_read(struct weir_region *r)
{
	const char *prefix = r->prefix;
	struct weir_store_view view;
	weir_dur lease = greatest(r->fleet->lease, r->learning_min);
	int error;

	view_clear(&r->view);
	r->made = 0;
	r->full = false;
	error = weir_store_read(r->store, &prefix, 1, take, r, &view);
	if (error != 0)
		return region_fail(r, error);
	if (r->full)
		return fleet_say(r->fleet, -ENOMEM, "Out of memory.");
	view_sort(&r->view);
	if (r->view.up_version != 0 && !r->view.other_version) {
		r->known_id = r->view.up.id;
		r->known_session = r->view.up.session;
	}
	if (r->view.has_limit)
		lease = greatest(lease,
				 greatest(r->view.limit.lease, r->view.limit.learning) * WEIR_MS);
	/* After that time, each member that held units has claimed them, or lost its lease. */
	r->learning = view.proven < lease;
	if (!r->view.has_limit)
		r->view.limit = (struct limit_record){.capacity = 0};
	return 0;
}

/* Units that are reserved below, also for members that are not there yet; 0 without members. */
static uint64_t reserved_below(const struct limit_view *v)
{
	__extension__ const unsigned __int128 aside = (unsigned __int128)v->limit.reserved *
						      v->limit.members;

	if (v->count == 0)
		return 0;
	return aside < WEIR_SHARE_UNITS_MAX ? (uint64_t)aside : WEIR_SHARE_UNITS_MAX;
}

void region_sum_up(struct weir_region *r)
{
	const struct limit_view *v = &r->view;
	struct weir_share *s = r->share;
	uint64_t weight = 0, wants = reserved_below(v);

	for (size_t i = 0; i < v->count; i++) {
		const struct member_record *m = &v->members[i].record;

		weight += m->weight;
		if (!drains_have(&v->drains, v->members[i].id, m->label))
			wants = least(wants + subtract(m->wants, view_reserved(v, &v->members[i])),
				      WEIR_SHARE_UNITS_MAX);
	}
	/*
	 * The own capacity of the limit below is what is reserved above: nothing, if the region has no
	 * seat there.
	 */
	if (!s->surplus)
		wants = subtract(wants, v->limit.capacity);
	if (wants > 0)
		wants = least(wants + share_reserved(s), WEIR_SHARE_UNITS_MAX);
	/* Members that have not come back yet want what they wanted before. */
	if (r->learning) {
		wants = greatest(wants, share_wants(s));
		weight = greatest(weight, s->config.weight);
	}
	atomic_store_explicit(&s->want, wants, memory_order_relaxed);
	if (!r->own_weight)
		s->config.weight = (uint32_t)least(greatest(weight, 1), WEIR_SHARE_WEIGHT_MAX);
}

/* Units that members may hold below, by what is written there, or may be written yet. */
static uint64_t handed_out(struct weir_region *r)
{
	const struct limit_view *v = &r->view;
	uint64_t carried = v->up_version != 0 ? v->up.carried : 0;

	if (r->doubtful && v->up_version == r->doubtful_version)
		carried = greatest(carried, r->doubtful_carried);
	else
		r->doubtful = false;
	return greatest(v->limit.capacity + carried, reserved_below(v) + view_granted(v));
}

int region_survey(struct weir_region *r)
{
	struct weir_share *s = r->share;

	r->surveyed = false;
	r->failed = leader_tick(r);
	if (r->failed == 0)
		r->failed = region_read(r);
	if (r->failed == 0 && r->view.other_version)
		r->failed = fleet_say(r->fleet, -EPROTO,
				      "The limit below was written by another version of weir.");
	if (r->failed == 0 && r->view.limit.allocated)
		r->failed = fleet_say(r->fleet, -ENOTSUP,
				      "The limit below is allocated: regions cannot carry for it.");
	r->refused = r->failed == -ENOSPC || r->failed == -EACCES;
	if (r->failed != 0)
		return -ECANCELED;
	r->surveyed = true;
	region_sum_up(r);
	s->floor = r->learning ? UINT64_MAX : subtract(handed_out(r), share_reserved(s));
	return 0;
}

/* Units of capacity for the limit below, beyond its own. */
static uint64_t carried_now(const struct weir_region *r)
{
	const struct weir_share *s = r->share;
	const uint64_t reserved = !s->drained ? share_reserved(s) : 0;
	uint64_t units = subtract(reserved + s->held, r->view.limit.capacity);

	if (s->step == STEP_SETTLED)
		return least(units, subtract(reserved + s->plan.due, r->view.limit.capacity));
	return r->view.up_version != 0 ? least(units, r->view.up.carried) : 0;
}

static int publish(struct weir_region *r)
{
	const struct weir_share *s = r->share;
	const struct up_record record = {
		.carried = carried_now(r),
		.tick = r->tick,
		.left = subtract(s->until, r->ticked) / WEIR_US,
		.id = s->id,
		.session = r->fleet->session,
	};
	const struct weir_store_check checks[] = {
		leader_check(r),
		{r->up_key,
		 r->view.up_version != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT,
		 r->view.up_version},
	};
	char text[RECORD_SIZE];
	const struct weir_store_write write = {r->up_key, WEIR_STORE_WRITE_PUT, text,
					       up_print(&record, text)};
	int error = weir_store_commit(r->store, 0, checks, 2, &write, 1, NULL);

	if (error == -EIO) {
		r->doubtful_carried = greatest(record.carried,
					       r->doubtful ? r->doubtful_carried : 0);
		r->doubtful_version = r->view.up_version;
		r->doubtful = true;
	}
	return error == 0 || error == -EAGAIN ? 0 : region_fail(r, error);
}

static int lead(struct weir_region *r)
{
	struct weir_fleet *f = r->fleet;
	struct weir_share *s = r->share;
	int error;

	r->surveyed = false;
	/* Do not extend the lease above if nothing can be granted below. */
	error = r->refused ? leader_tick(r) : 0;
	if (error != 0)
		return error == -ECANCELED ? 0 : error;
	error = fleet_refresh_own(f);
	if (error == -ESTALE)
		error = fleet_refresh_own(f);
	if (error == -ECANCELED)
		return r->failed == -ECANCELED ? 0 : r->failed;
	if (error != 0 && (!f->refused || !s->planned)) {
		if (s->until < fleet_now(f) + least(f->lease, s->longest) / 2)
			leader_resign(r);
		return error;
	}
	if (r->phase == LEADER_TAKING_OVER && s->step == STEP_SETTLED && s->line == LINE_KNOWN)
		leader_move(r, LEADER_SURE);
	/*
	 * Without a limit below, its own capacity is unknown. If the store above refuses writes, the
	 * region's lease goes on, and so does what is carried.
	 */
	if (r->phase == LEADER_LEADING && r->surveyed && r->view.has_limit &&
	    !s->view.other_version) {
		const int published = publish(r);

		return error != 0 ? error : published;
	}
	return error;
}

int region_refresh(struct weir_region *r)
{
	int error = leader_stand(r);

	return error == 0 && region_leads(r) ? lead(r) : error;
}

void weir_region_config_init_sized(struct weir_region_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static int check_region(const struct weir_region_config *c, char *why)
{
	if (c->size != sizeof(*c))
		return store_say(-EINVAL, why,
				 "The configuration has the size of another version.");
	if (c->above == NULL || c->below == NULL || c->limit == NULL)
		return store_say(-EINVAL, why, "above, below and limit must be set.");
	if (c->name != NULL && !fleet_is_name(c->name))
		return store_say(-EINVAL, why, "name is not 1 to %d letters, digits and -_.:@.",
				 WEIR_SHARE_NAME_MAX);
	if (c->above->size != sizeof(*c->above) || c->below->size != sizeof(*c->below))
		return store_say(-EINVAL, why,
				 "The configuration has the size of another version.");
	if (c->below->store != NULL &&
	    (c->below->address != NULL || c->below->store_config != NULL))
		return store_say(-EINVAL, why, "Both a store and an address are given.");
	return 0;
}

static int open_above(struct weir_region *r, const struct weir_region_config *c, char *why)
{
	struct weir_fleet_config above = *c->above;
	struct weir_share_config limit = *c->limit;
	int error;

	if (above.lease == 0)
		above.lease = REGION_LEASE;
	if (above.refresh == 0)
		above.refresh = above.lease / REFRESHES;
	error = fleet_prepare(&above, &r->fleet, why);
	if (error != 0)
		return error;
	limit.wants = NULL;
	error = weir_share_join(r->fleet, &limit, &r->share, why, WHY_SIZE);
	if (error != 0)
		return error;
	atomic_store_explicit(&r->share->want, 0, memory_order_relaxed);
	r->own_weight = limit.weight != 0;
	return 0;
}

static int open_below(struct weir_region *r, const struct weir_region_config *c, char *why)
{
	const char *name = c->name != NULL ? c->name : r->share->name;
	struct weir_store_caps caps;
	int error = fleet_open_store(c->below, &r->store, &r->own_store, why);

	if (error != 0)
		return error;
	weir_store_caps_take(r->store, &caps);
	r->ttl = c->below->lease != 0 ? c->below->lease
				      : greatest(r->fleet->lease / LEADER_PART, caps.ttl_min);
	r->learning_min = c->below->learning != 0 ? c->below->learning : LEARNING_DEFAULT;
	if (r->ttl < caps.ttl_min || r->ttl < r->fleet->refresh || r->ttl > r->fleet->lease)
		return store_say(-EINVAL, why,
				 "The lease below is not from a refresh to the lease above, or too "
				 "short for the store.");
	(void)snprintf(r->prefix, sizeof(r->prefix), "%s/", name);
	(void)snprintf(r->up_key, sizeof(r->up_key), "%s/up", name);
	(void)snprintf(r->leader_key, sizeof(r->leader_key), "%s/leader", name);
	return 0;
}

static int open_region(const struct weir_region_config *c, struct weir_region **region, char *why)
{
	struct weir_region *r;
	int error = check_region(c, why);

	if (error != 0)
		return error;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	error = open_above(r, c, why);
	if (error == 0)
		error = open_below(r, c, why);
	if (error == 0) {
		r->fleet->region = r;
		error = fleet_start(r->fleet, why);
	}
	if (error == 0)
		*region = r;
	else
		weir_region_close(r);
	return error;
}

int weir_region_open(const struct weir_region_config *config, struct weir_region **region,
		     char *why, size_t why_size)
{
	char text[WHY_SIZE] = "";
	int error;

	*region = NULL;
	error = open_region(config, region, text);
	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return error;
}

/* The session above stays: what it holds is the region's, and the next leader goes on with it. */
void weir_region_close(struct weir_region *r)
{
	if (r == NULL)
		return;
	if (r->fleet != NULL) {
		fleet_stop(r->fleet);
		r->fleet->session = 0;
		weir_fleet_close(r->fleet);
	}
	if (r->session != 0)
		(void)weir_store_end(r->store, r->session);
	weir_store_close(r->own_store);
	view_free(&r->view);
	free(r);
}

struct weir_fleet *weir_region_fleet(struct weir_region *r)
{
	return r->fleet;
}

struct weir_share *weir_region_share(struct weir_region *r)
{
	return r->share;
}
