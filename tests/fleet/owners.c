/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owners MINUTES SEEDS [FIRST [trace]]: members that own partitions suffer faults, for that long
 * with each seed, in simulated time. trace: print each change of rows and of what members own, for
 * tests/handover/check.c, which finds out whether it is a step of docs/hand-over.md.
 *
 * Requests to the store are lost, late, carried out twice, or carried out without an answer, and
 * answers take time; each member has a clock that runs too fast or too slow. Members are stopped,
 * killed, cut off and closed, and come back; some do not release partitions that another asks for.
 * The store is gone for a while, or forgets everything. An operator sets checkpoints back. Members have
 * different weights, some keep what they own for a while, and some release what they are not asked for.
 *
 * Ownership can begin only with an event, and between events it can only end. So after each event
 * the test asks weir_work_fence() of every member, running or not, and finds at most one owner of
 * each partition. A checkpoint is never written by a fence from before it was set back. Once the
 * faults are over, every partition must have an owner within a bound, and the division must be even.
 */

#include <errno.h>
#include <string.h>

#include <weir/work.h>

#include "../handover/trace.h"
#include "faulty_net.h"

#define MEMBERS    5
#define PARTITIONS 16

/*
 * Time until every partition has an owner: the rest of a lease, of the store's learning, or of a
 * hand-over, and a refresh to see it; and time until the division is even.
 */
#define OWNED_AGAIN (2 * LEASE + 4 * REFRESH)
#define EVEN_AGAIN  (8 * LEASE)

struct member {
	struct node node;       /* first */
	struct weir_work *work; /* NULL: closed */
	bool hurried;           /* its next step is due at once */
	bool slow;              /* it does not release partitions that another asks for */
	uint32_t weight;
	uint64_t reported_fence[PARTITIONS];
	uint64_t progress[PARTITIONS]; /* of its work, for checkpoints */
	weir_time gained_at[PARTITIONS];
	struct trace_member trace;
};

struct world {
	struct net net; /* first */
	weir_dur calm;  /* mean time between faults */
	struct member members[MEMBERS];
	struct node rewinder;             /* it only sets checkpoints back */
	weir_time rewound_at[PARTITIONS]; /* when the last request was sent that was acknowledged */
	struct trace trace;

	unsigned long checks, gains, forced, stops, deaths, cuts, closes, downs, forgotten, saved,
		rewound, released;
};

static struct world *world_of(const struct member *m)
{
	return (struct world *)m->node.net;
}

/* Whether the member could work on anything. */
static bool counts(const struct member *m)
{
	return m->node.fleet != NULL && m->work != NULL && !m->node.dead && !m->node.leaving;
}

static void fail_two_owners(const struct world *w, uint32_t partition)
{
	fprintf(stderr, "two owners of partition %u at %.3f s:", partition,
		(double)w->net.now / WEIR_S);
	for (unsigned i = 0; i < MEMBERS; i++)
		if (counts(&w->members[i]) && weir_work_fence(w->members[i].work, partition) != 0)
			fprintf(stderr, " %u by %llu%s%s", i,
				(unsigned long long)weir_work_fence(w->members[i].work, partition),
				w->members[i].node.stopped != 0 ? ", stopped" : "",
				w->members[i].node.busy ? ", busy" : "");
	fprintf(stderr, "\n");
	abort();
}

/* What members own changes with the clock, so it is noted before the rows are. */
static void note_members(struct world *w)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &w->members[i];

		trace_member(&w->trace, w->net.now, i, &m->trace, counts(m) ? m->work : NULL,
			     m->node.dead ? "dead" : "closed",
			     m->node.fleet != NULL ? m->node.clock.now(&m->node.clock) : 0);
	}
}

/* cause: what has changed the rows since the last time; fence: that a checkpoint has checked. */
static void note(struct world *w, const char *cause, uint64_t fence)
{
	if (!w->trace.on)
		return;
	note_members(w);
	trace_begin(&w->trace);
	net_look(&w->net, trace_row, &w->trace);
	trace_end(&w->trace, w->net.now, cause, fence);
}

static void changed(struct net *net, const struct node *by, uint64_t fence)
{
	struct world *w = (struct world *)net;
	char cause[24] = "expiry";

	if (by == &w->rewinder)
		(void)snprintf(cause, sizeof(cause), "operator");
	else if (by != NULL)
		(void)snprintf(cause, sizeof(cause), "%td", (const struct member *)by - w->members);
	note(w, cause, fence);
}

static void look(struct world *w)
{
	note(w, "expiry", 0);
	for (uint32_t partition = 0; partition < PARTITIONS; partition++) {
		unsigned owners = 0;

		for (unsigned i = 0; i < MEMBERS; i++)
			owners += counts(&w->members[i]) &&
				  weir_work_fence(w->members[i].work, partition) != 0;
		if (owners > 1)
			fail_two_owners(w, partition);
	}
	w->checks++;
}

static void gained(void *arg, uint32_t partition, uint64_t fence)
{
	struct member *m = arg;

	CHECK(m->reported_fence[partition] == 0 && fence != 0);
	m->reported_fence[partition] = fence;
	m->progress[partition] = 0;
	m->gained_at[partition] = m->node.net->now;
	world_of(m)->gains++;
	look(world_of(m));
}

/*
 * Write a checkpoint of what it owns, or has owned a moment ago, and never below one that it knows to
 * be written. None is written by a fence from before the checkpoint was set back.
 */
static void save(struct member *m, uint32_t partition, uint64_t fence)
{
	const weir_time gained_at = m->gained_at[partition];
	weir_time rewound_at;
	uint64_t done = 0;
	char value[WEIR_CHECKPOINT_SIZE_MAX];
	size_t size = sizeof(value);
	int r;

	if (m->progress[partition] == 0) {
		r = weir_work_load(m->work, partition, &done, value, &size);
		if (r != 0 && r != -ENOENT)
			return;
	}
	if (m->progress[partition] < done)
		m->progress[partition] = done;
	m->progress[partition]++;
	rewound_at = world_of(m)->rewound_at[partition];
	r = weir_work_checkpoint(m->work, partition, fence, m->progress[partition], "", 0);
	CHECK(r != 0 || gained_at >= rewound_at);
	world_of(m)->saved += r == 0;
	if (m->node.dead)
		return;
	CHECK(r == 0 || r == -EIO || r == -ESTALE || r == -ERANGE);
	if (r == -ERANGE)
		m->progress[partition] = 0;
	CHECK(r != -ESTALE || weir_work_fence(m->work, partition) != fence);
	look(world_of(m));
}

static void requested(void *arg, uint32_t partition, uint64_t fence)
{
	struct member *m = arg;

	CHECK(m->reported_fence[partition] == fence);
	look(world_of(m));
	if (m->slow)
		return;
	if (below(m->node.net, 2) == 0)
		save(m, partition, fence);
	if (!m->node.dead)
		(void)weir_work_release(m->work, partition, fence);
	look(world_of(m));
}

static void lost(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	struct member *m = arg;

	CHECK(m->reported_fence[partition] == fence);
	CHECK(m->work == NULL || weir_work_fence(m->work, partition) == 0);
	m->reported_fence[partition] = 0;
	world_of(m)->forced += forced;
	note(world_of(m), "expiry", 0);
}

static void open_partitions(struct member *m)
{
	const uint64_t kind = below(m->node.net, 4);
	struct weir_work_config config;

	weir_work_config_init(&config);
	config.name = "work";
	config.count = PARTITIONS;
	config.strategy = kind == 0 ? WEIR_WORK_BALANCED : WEIR_WORK_GREEDY;
	config.on_gain = gained;
	config.on_request = kind != 1 ? requested : NULL;
	config.on_lost = lost;
	config.arg = m;
	/* Some own more than others, and some keep what they own for a while. */
	config.weight = 1 + (uint32_t)below(m->node.net, 2);
	config.hold = below(m->node.net, 4) == 0 ? 3 * LEASE : 0;
	m->weight = config.weight;
	m->slow = kind == 2;
	CHECK(weir_work_open(m->node.fleet, &config, &m->work, NULL, 0) == 0);
}

/* Errors of clocks are as large as allowed. */
static void enter(struct world *w, struct member *m)
{
	node_open(&w->net, &m->node, ((int64_t)below(&w->net, 3) - 1) * FASTEST);
	open_partitions(m);
}

static void leave(struct member *m)
{
	node_close(&m->node);
	m->work = NULL;
	memset(m->reported_fence, 0, sizeof(m->reported_fence));
}

/*
 * Its partitions are closed; the fleet goes on, and they are opened again when the member comes
 * back.
 */
static void close_partitions(struct world *w, struct member *m)
{
	struct weir_work *work = m->work;

	m->work = NULL;
	note(w, "expiry", 0);
	m->node.busy = true;
	weir_work_close(work);
	m->node.busy = false;
	for (unsigned i = 0; i < PARTITIONS; i++)
		CHECK(m->reported_fence[i] == 0);
	m->node.back = w->net.now + below(&w->net, LEASE);
	w->closes++;
}

static void forget(struct world *w)
{
	note(w, "expiry", 0);
	net_forget(&w->net);
	w->forgotten++;
	note(w, "lost", 0);
}

static void rewind_one(struct world *w)
{
	const uint32_t partition = (uint32_t)below(&w->net, PARTITIONS);
	const weir_time sent = w->net.now;
	int r;

	if (w->rewinder.busy)
		return;
	w->rewinder.busy = true;
	r = weir_work_restart(&w->rewinder.store, "work", partition, "operator");
	w->rewinder.busy = false;
	if (r != 1)
		return;
	w->rewound_at[partition] = sent;
	w->rewound++;
}

/* Cause one random fault. */
static void disturb(struct world *w)
{
	struct member *m = &w->members[below(&w->net, MEMBERS)];
	const weir_time until = w->net.now + 1 +
				below(&w->net, below(&w->net, 2) == 0 ? 2 * LEASE : REFRESH);

	switch (below(&w->net, 11)) {
	case 0:
	case 1:
		if (!node_runs(&m->node))
			return;
		m->node.stopped = until;
		w->stops++;
		return;
	case 2:
		m->node.dead = m->node.fleet != NULL;
		m->node.back = below(&w->net, 2) == 0 ? w->net.now + 1 : until;
		w->deaths++;
		return;
	case 3:
	case 4:
		m->node.cut = until;
		w->cuts++;
		return;
	case 5:
		w->net.down = until;
		w->downs++;
		return;
	case 6:
		if (below(&w->net, 4) == 0)
			forget(w);
		return;
	case 7:
		if (node_runs(&m->node) && !m->node.busy && m->work != NULL)
			close_partitions(w, m);
		return;
	case 8:
		rewind_one(w);
		return;
	default:
		w->net.losses = (unsigned)below(&w->net, 3) * (unsigned)below(&w->net, 300);
	}
}

static void come_and_go(struct world *w)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &w->members[i];

		if (m->node.dead && !m->node.busy && m->node.fleet != NULL)
			leave(m);
		if (m->node.fleet == NULL && !m->node.busy && w->net.now >= m->node.back)
			enter(w, m);
		if (node_runs(&m->node) && !m->node.busy && m->work == NULL &&
		    w->net.now >= m->node.back)
			open_partitions(m);
		if (m->node.stopped != 0 && w->net.now >= m->node.stopped)
			node_resume(&m->node);
	}
}

static void tick(struct net *net)
{
	struct world *w = (struct world *)net;

	come_and_go(w);
	if (w->calm != WEIR_FOREVER && below(&w->net, w->calm / TICK) == 0)
		disturb(w);
	look(w);
}

/* Of its own accord; its thread is woken for that. */
static void release(struct world *w, struct member *m, uint32_t partition, uint64_t fence)
{
	if (weir_work_release(m->work, partition, fence) != 0)
		return;
	m->hurried = true;
	w->released++;
}

/* One step in four ends with a checkpoint, and one in sixteen with a release. */
static void work_a_while(struct world *w, struct member *m)
{
	const uint32_t partition = (uint32_t)below(&w->net, PARTITIONS);
	const uint64_t fence = counts(m) ? weir_work_fence(m->work, partition) : 0;

	if (fence == 0)
		return;
	if (below(&w->net, 4) == 0)
		save(m, partition, fence);
	else if (below(&w->net, 12) == 0 && w->calm != WEIR_FOREVER)
		release(w, m, partition, fence);
}

static weir_time step(struct node *node)
{
	struct member *m = (struct member *)node;
	struct world *w = world_of(m);
	weir_time next;

	note(w, "expiry", 0);
	next = weir_fleet_step(m->node.fleet);
	look(w);
	work_a_while(w, m);
	look(w);
	if (m->hurried)
		next = 0;
	m->hurried = false;
	return next;
}

static unsigned owned_by(const struct member *m)
{
	return counts(m) ? weir_work_owned(m->work) : 0;
}

static unsigned owned(const struct world *w)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		sum += owned_by(&w->members[i]);
	return sum;
}

/*
 * Every partition has an owner within that time. One may change hands at the very end, as the
 * division need not be even yet: it has an owner in one of the last instants.
 */
static void await_owners(struct world *w)
{
	const weir_time end = w->net.now + OWNED_AGAIN;
	bool seen[PARTITIONS] = {false};
	unsigned count = 0;

	net_pass(&w->net, end - 2 * REFRESH);
	while (w->net.now < end) {
		net_pass(&w->net, w->net.now + TICK);
		for (unsigned m = 0; m < MEMBERS; m++)
			for (uint32_t i = 0; i < PARTITIONS && counts(&w->members[m]); i++)
				seen[i] |= weir_work_fence(w->members[m].work, i) != 0;
	}
	for (uint32_t i = 0; i < PARTITIONS; i++)
		count += seen[i];
	if (count != PARTITIONS)
		fprintf(stderr, "%u partitions of %d have an owner\n", count, PARTITIONS);
	CHECK(count == PARTITIONS);
}

/* A member owns what its weight entitles it to, rounded up or down. */
static void check_due(const struct world *w, const struct member *m)
{
	const uint32_t has = owned_by(m);
	uint32_t weight = 0, least, most;

	for (unsigned i = 0; i < MEMBERS; i++)
		weight += w->members[i].weight;
	least = m->weight * PARTITIONS / weight;
	most = (m->weight * PARTITIONS + weight - 1) / weight;
	if (has < least || has > most)
		fprintf(stderr, "a member of weight %u of %u has %u\n", m->weight, weight, has);
	CHECK(has >= least && has <= most);
}

/* Requests under way still arrive; there are no new faults. */
static void calm_down(struct world *w)
{
	w->calm = WEIR_FOREVER;
	w->net.losses = 0;
	w->net.down = 0;
	for (unsigned i = 0; i < MEMBERS; i++)
		w->members[i].node.cut = 0;
	/* Members that are stopped or absent come back: only then their faults are over. */
	net_pass(&w->net, w->net.now + 2 * LEASE);
	await_owners(w);
	net_pass(&w->net, w->net.now + EVEN_AGAIN);
	for (unsigned i = 0; i < MEMBERS; i++)
		check_due(w, &w->members[i]);
	CHECK(owned(w) == PARTITIONS);
}

static void play(unsigned minutes, uint64_t seed, bool trace)
{
	static const struct net_user user = {.tick = tick, .step = step, .changed = changed};
	static struct world w;

	w = (struct world){.calm = WEIR_S << seed % 4, .trace = {.on = trace}};
	net_begin(&w.net, &user, seed);
	node_connect(&w.net, &w.rewinder);
	for (unsigned i = 0; i < MEMBERS; i++) {
		w.net.nodes[w.net.node_count++] = &w.members[i].node;
		enter(&w, &w.members[i]);
	}
	net_pass(&w.net, w.net.now + minutes * MINUTE);
	calm_down(&w);
	for (unsigned i = 0; i < MEMBERS; i++)
		w.members[i].node.dead = true;
	note_members(&w);
	printf("seed %u: %lu checks, one owner at most; %lu gains, %lu ended by force; %lu "
	       "checkpoints, %lu set back; %lu released; %lu late; %lu stops, %lu deaths, %lu cut "
	       "off, %lu closed, store gone %lu and forgetful %lu times\n",
	       (unsigned)seed, w.checks, w.gains, w.forced, w.saved, w.rewound, w.released,
	       (unsigned long)w.net.late_count, w.stops, w.deaths, w.cuts, w.closes, w.downs,
	       w.forgotten);
	fflush(stdout);
	w.trace.on = false;
	for (unsigned i = 0; i < MEMBERS; i++)
		if (w.members[i].node.fleet != NULL)
			leave(&w.members[i]);
	net_end(&w.net);
}

int main(int argc, char **argv)
{
	const unsigned minutes = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	const unsigned seeds = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	const uint64_t first = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;

	CHECK(minutes > 0 && seeds > 0);
	for (uint64_t seed = first; seed < first + seeds; seed++)
		play(minutes, seed, argc > 4);
	return 0;
}
