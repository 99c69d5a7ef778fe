/* SPDX-License-Identifier: BSD-2-Clause */
#include "world.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define NO_MEMBER WORLD_MEMBERS_MAX

/* Longer than any test lasts: for sessions of a store with its own clock. */
#define FOR_LONG (3600 * WEIR_S)

static struct test_store in_memory = {.kind = "memory", .timed = true};
static struct test_store *chosen;

void world_use(struct test_store *test_store)
{
	chosen = test_store;
}

static weir_time tell_time(const struct weir_clock *clock)
{
	return ((const struct world *)clock)->now;
}

static struct actor *actor_of(struct weir_store *store)
{
	return (struct actor *)store;
}

static bool is_away(const struct actor *a)
{
	return a->world->down || a->manner == UNREACHABLE;
}

/* A store that is full still accepts writes that only free space. */
static bool is_refused(const struct actor *a, const struct weir_store_write *writes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (writes[i].kind != WEIR_STORE_WRITE_ERASE)
			return a->world->full;
	return false;
}

/* End the sessions whose time is over. */
static void expire(struct world *w)
{
	for (unsigned i = 0; i < w->session_count;) {
		if (w->sessions[i].end > w->now) {
			i++;
			continue;
		}
		CHECK(weir_store_end(w->store, w->sessions[i].id) == 0);
		w->sessions[i] = w->sessions[--w->session_count];
	}
}

static int act_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct world *w = actor_of(self)->world;
	int r;

	if (is_away(actor_of(self)))
		return -EIO;
	if (w->full)
		return -ENOSPC;
	expire(w);
	r = weir_store_begin(w->store, w->test_store->timed ? ttl : FOR_LONG, session, granted);
	if (r != 0 || w->test_store->timed)
		return r;
	CHECK(w->session_count < WORLD_SESSIONS_MAX);
	w->sessions[w->session_count++] = (struct session){*session, ttl, w->now + ttl};
	*granted = ttl;
	return 0;
}

static int act_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct world *w = actor_of(self)->world;
	int r;

	if (is_away(actor_of(self)))
		return -EIO;
	actor_of(self)->keeps++;
	expire(w);
	r = weir_store_keep(w->store, session, granted);
	for (unsigned i = 0; i < w->session_count && r == 0; i++) {
		if (w->sessions[i].id != session)
			continue;
		*granted = w->sessions[i].ttl;
		w->sessions[i].end = w->now + *granted;
	}
	return r;
}

static int act_end(struct weir_store *self, uint64_t session)
{
	struct world *w = actor_of(self)->world;

	if (is_away(actor_of(self)))
		return -EIO;
	for (unsigned i = 0; i < w->session_count; i++)
		if (w->sessions[i].id == session)
			w->sessions[i--] = w->sessions[--w->session_count];
	return weir_store_end(w->store, session);
}

static int act_commit(struct weir_store *self, uint64_t session,
		      const struct weir_store_check *checks, size_t check_count,
		      const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	struct actor *a = actor_of(self);
	int r;

	if (is_away(a))
		return -EIO;
	if (is_refused(a, writes, write_count))
		return -ENOSPC;
	if (a->manner == TOO_LATE)
		return -EAGAIN;
	if (a->manner == DELAYS) {
		late_commit_free(a->world->late);
		a->world->late = late_commit_new(session, checks, check_count, writes, write_count);
		return -EIO;
	}
	if (a->manner == OVERTAKEN && a->world->late != NULL)
		(void)world_deliver(a->world);
	expire(a->world);
	r = weir_store_commit(a->world->store, session, checks, check_count, writes, write_count,
			      version);
	a->world->commits += r == 0;
	return a->manner == LOSES ? -EIO : r;
}

int world_deliver(struct world *w)
{
	struct late_commit *commit = w->late;

	CHECK(commit != NULL);
	w->late = NULL;
	expire(w);
	return late_commit_arrive(commit, w->store);
}

static int act_read(struct weir_store *self, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	const struct actor *a = actor_of(self);
	int r;

	if (is_away(a) || a->manner == BLIND)
		return -EIO;
	expire(a->world);
	r = weir_store_read(a->world->store, prefixes, count, row, arg, view);
	view->proven = a->world->proven == WEIR_FOREVER ? WEIR_FOREVER
							: a->world->now - a->world->proven;
	return r;
}

static void act_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(actor_of(self)->world->store, caps);
}

static void act_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "A simulated failure.");
}

static const struct weir_store_ops acts = {
	.size = sizeof(acts),
	.name = "test",
	.begin = act_begin,
	.keep = act_keep,
	.end = act_end,
	.commit = act_commit,
	.read = act_read,
	.caps = act_caps,
	.error = act_error,
};

void world_begin(struct world *w, uint64_t capacity, weir_dur lease, weir_dur refresh)
{
	memset(w, 0, sizeof(*w));
	*w = (struct world){
		.clock = {tell_time},
		.now = 1000 * WEIR_S,
		.test_store = chosen != NULL ? chosen : &in_memory,
		.proven = WEIR_FOREVER,
		.lease = lease,
		.refresh = refresh,
		.capacity = capacity,
		.chance = 88172645463325252u,
		.least = UINT64_MAX,
	};
	weir_share_config_init(&w->limit);
	w->limit.name = "limit";
	w->limit.capacity = capacity;
	w->store = test_store_open(w->test_store, &w->clock);
}

void world_forget(struct world *w, weir_time proven)
{
	weir_store_close(w->store);
	w->session_count = 0;
	w->store = test_store_open(w->test_store, &w->clock);
	w->proven = proven;
}

void world_enter(struct world *w, unsigned member, uint64_t wants)
{
	struct actor *a = &w->actors[member];
	struct weir_fleet_config config;
	struct weir_share_config limit = w->limit;
	char why[256];

	CHECK(member < WORLD_MEMBERS_MAX && a->fleet == NULL);
	a->store.ops = &acts;
	a->world = w;
	a->wants = wants;
	if (w->count <= member)
		w->count = member + 1;
	weir_fleet_config_init(&config);
	config.store = &a->store;
	config.lease = w->lease;
	config.refresh = w->refresh;
	config.manual = 1;
	config.clock = &w->clock;
	config.seed = draw(&w->chance);
	config.on_change = w->on_change;
	config.on_change_arg = a;
	config.label = a->label != NULL ? a->label : "member";
	CHECK(weir_fleet_open(&config, &a->fleet, why, sizeof(why)) == 0);
	limit.weight = a->weight;
	CHECK(weir_share_join(a->fleet, &limit, &a->share, why, sizeof(why)) == 0);
	CHECK(w->measured || weir_share_demand_set(a->share, wants) == 0);
	a->next = w->now;
}

void world_kill(struct world *w, unsigned member)
{
	struct actor *a = &w->actors[member];
	const enum manner before = a->manner;

	a->manner = UNREACHABLE;
	weir_fleet_close(a->fleet);
	a->fleet = NULL;
	a->manner = before;
}

void world_want(struct world *w, unsigned member, uint64_t wants)
{
	w->actors[member].wants = wants;
	CHECK(weir_share_demand_set(w->actors[member].share, wants) == 0);
}

uint64_t world_units(const struct world *w, unsigned member)
{
	return weir_share_units(w->actors[member].share);
}

uint64_t world_sum(const struct world *w)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < w->count; i++)
		if (w->actors[i].fleet != NULL)
			sum += world_units(w, i);
	return sum;
}

static void sample(struct world *w)
{
	const uint64_t sum = world_sum(w);

	w->samples++;
	w->over += sum > w->capacity;
	w->sum += sum;
	if (sum > w->most)
		w->most = sum;
	if (sum < w->least)
		w->least = sum;
}

void world_run_without(struct world *w, weir_dur time, unsigned member)
{
	const weir_time end = w->now + time;
	weir_time second = w->now + WEIR_S;

	for (;;) {
		struct actor *first = NULL;

		for (unsigned i = 0; i < w->count; i++)
			if (w->actors[i].fleet != NULL && i != member &&
			    (first == NULL || w->actors[i].next < first->next))
				first = &w->actors[i];
		while (second <= end && (first == NULL || second <= first->next)) {
			w->now = second > w->now ? second : w->now;
			sample(w);
			second += WEIR_S;
		}
		if (first == NULL || first->next > end)
			break;
		if (first->next > w->now)
			w->now = first->next;
		first->next = weir_fleet_step(first->fleet);
		CHECK(first->next > w->now);
	}
	w->now = end;
	expire(w);
}

void world_run(struct world *w, weir_dur time)
{
	world_run_without(w, time, NO_MEMBER);
}

void world_end(struct world *w)
{
	for (unsigned i = 0; i < w->count; i++)
		if (w->actors[i].fleet != NULL)
			weir_fleet_close(w->actors[i].fleet);
	late_commit_free(w->late);
	weir_store_close(w->store);
}
