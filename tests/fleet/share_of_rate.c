/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a fleet that send at the rate of their shares, in simulated time: each has a rate and
 * a batcher, and all together may send 500 units per second.
 */

#include <weir/share_of_rate.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"

#define MEMBERS  3
#define CAPACITY 500
#define SLOT     (100 * WEIR_MS)
#define LEASE    (6 * WEIR_S)
#define REFRESH  (2 * WEIR_S)
#define JOBS     20000

struct member {
	struct weir_rate *rate;
	struct weir_batcher *batcher;
	struct weir_share_rate link;
	struct weir_fleet *fleet;
	struct weir_share *share;
	struct weir_operation *jobs;
	unsigned given;
	uint64_t sent;
	weir_time next;
};

static weir_time given_time;
static struct weir_store *store;
static struct member members[MEMBERS];
static uint64_t sent; /* by all */

static weir_time read_clock(const struct weir_clock *clock)
{
	(void)clock;
	return given_time;
}

static const struct weir_clock given_clock = {.now = read_clock};

static void process(void *arg, struct weir_batch batch, struct weir_operation *first, size_t count)
{
	struct member *m = arg;

	(void)first;
	m->sent += count;
	sent += count;
	CHECK(weir_batcher_done(m->batcher, batch) == 0);
}

static struct weir_batch_handler watchers[MEMBERS];

/* Enqueue that many jobs. */
static void want(struct member *m, unsigned jobs)
{
	for (unsigned i = 0; i < jobs; i++) {
		struct weir_operation *job = &m->jobs[m->given++];

		CHECK(m->given <= JOBS);
		*job = (struct weir_operation){.watcher = &watchers[m - members],
					       .cost = {{1}},
					       .flags = WEIR_OPERATION_BATCHABLE};
		CHECK(weir_batcher_enqueue(m->batcher, job, 0) == 0);
	}
}

static void enter(struct member *m)
{
	struct weir_batcher_config batcher;
	struct weir_fleet_config fleet;
	struct weir_share_config share;
	struct weir_rate_config rate;
	char why[256];

	memset(m, 0, sizeof(*m));
	weir_rate_config_init(&rate);
	rate.slot = SLOT;
	rate.clock = &given_clock;
	CHECK(weir_rate_create(&rate, &m->rate) == 0);
	weir_batcher_config_init(&batcher);
	batcher.rate = m->rate;
	batcher.buffer = JOBS;
	batcher.by_hand = 1;
	batcher.clock = &given_clock;
	CHECK(weir_batcher_create(&batcher, &m->batcher) == 0);
	watchers[m - members] = (struct weir_batch_handler){.process = process, .arg = m};
	m->jobs = calloc(JOBS, sizeof(*m->jobs));
	CHECK(m->jobs != NULL);

	weir_fleet_config_init(&fleet);
	fleet.store = store;
	fleet.lease = LEASE;
	fleet.refresh = REFRESH;
	fleet.manual = 1;
	fleet.clock = &given_clock;
	fleet.seed = (uint64_t)(m - members) + 1;
	CHECK(weir_fleet_open(&fleet, &m->fleet, why, sizeof(why)) == 0);
	weir_share_config_init(&share);
	share.name = "orders";
	share.capacity = CAPACITY;
	CHECK(weir_share_of_rate(&share, &m->link, m->rate, 1, NULL) == -EINVAL);
	CHECK(weir_share_of_rate(&share, &m->link, m->rate, 0, m->batcher) == 0);
	CHECK(weir_share_join(m->fleet, &share, &m->share, why, sizeof(why)) == 0);
}

static void leave(struct member *m)
{
	weir_share_leave(m->share);
	weir_fleet_close(m->fleet);
	(void)weir_batcher_discard(m->batcher, NULL, NULL);
	CHECK(weir_batcher_destroy(m->batcher) == 0);
	weir_rate_destroy(m->rate);
	free(m->jobs);
	m->rate = NULL;
}

/* Run slot by slot; at no time has more been sent than allowed, except for what a slot is worth. */
static uint64_t run(weir_dur time)
{
	const weir_time began = given_time, end = began + time;
	const uint64_t before = sent;

	for (; given_time < end; given_time += SLOT) {
		for (unsigned i = 0; i < MEMBERS; i++) {
			struct member *m = &members[i];

			if (m->rate == NULL)
				continue;
			if (m->next == 0 || given_time >= m->next)
				m->next = weir_fleet_step(m->fleet);
			(void)weir_batcher_turn(m->batcher);
		}
		CHECK(sent - before <=
		      (given_time - began + 2 * SLOT) * CAPACITY / WEIR_S + MEMBERS);
	}
	return sent - before;
}

static uint64_t units(unsigned member)
{
	return weir_share_units(members[member].share);
}

static void begin(void)
{
	struct weir_store_config config;
	char why[256];

	sent = 0;
	weir_store_config_init(&config);
	config.clock = &given_clock;
	CHECK(weir_store_open(&config, &store, why, sizeof(why)) == 0);
}

static void end(void)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		if (members[i].rate != NULL)
			leave(&members[i]);
	weir_store_close(store);
}

/* Two members with a backlog divide the rate; one without a backlog gets nothing. */
static void backlog(void)
{
	begin();
	for (unsigned i = 0; i < MEMBERS; i++)
		enter(&members[i]);
	want(&members[0], 15000);
	want(&members[1], 15000);
	CHECK(run(10 * WEIR_S) > 0);
	CHECK(units(0) == CAPACITY / 2 && units(1) == CAPACITY / 2 && units(2) == 0);
	CHECK(run(10 * WEIR_S) == 10 * CAPACITY);
	CHECK(members[2].sent == 0);
	end();
}

/* AZ3: a member that has sent all its jobs gives its share back, and another gets all of it. */
static void done(void)
{
	begin();
	enter(&members[0]);
	enter(&members[1]);
	want(&members[0], 100);
	want(&members[1], 15000);
	(void)run(10 * WEIR_S);
	CHECK(members[0].sent == 100 && units(0) == 0);
	CHECK(units(1) == CAPACITY);
	CHECK(run(5 * WEIR_S) == 5 * CAPACITY);
	end();
}

/* Before there is a lease nothing is sent; when it ends its holder stops, and keeps its jobs. */
static void alone(void)
{
	uint64_t before;

	begin();
	enter(&members[0]);
	want(&members[0], 15000);
	for (unsigned i = 0; i < 50; i++, given_time += SLOT)
		(void)weir_batcher_turn(members[0].batcher);
	CHECK(sent == 0);
	(void)run(10 * WEIR_S);
	CHECK(units(0) == CAPACITY);
	weir_share_leave(members[0].share);
	members[0].share = NULL;
	CHECK(weir_rate_set(members[0].rate, 0, &(const struct weir_quota){.units = 0}) == 0);
	before = sent;
	(void)run(5 * WEIR_S);
	CHECK(sent == before && weir_batcher_needs(members[0].batcher).units[0] > 0);
	end();
}

int main(void)
{
	given_time = 1000 * WEIR_S;
	backlog();
	done();
	alone();
	return 0;
}
