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
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <weir/work.h>

#include "../handover/trace.h"
#include "../stress/check.h"

#define MEMBERS    5
#define PARTITIONS 16
#define LEASE      (6 * WEIR_S)
#define REFRESH    (2 * WEIR_S)
#define TIMEOUT    (500 * WEIR_MS)
#define TICK       (20 * WEIR_MS)
#define MINUTE     (60 * WEIR_S)
#define FASTEST    9000 /* error of clocks in millionths; leases allow for 10,000 */
#define PARCELS    64
#define ROWS       64 /* of a commit */
#define OPERATOR   MEMBERS

/*
 * Time until every partition has an owner: the rest of a lease, of the store's learning, or of a
 * hand-over, and a refresh to see it; and time until the division is even.
 */
#define OWNED_AGAIN (2 * LEASE + 4 * REFRESH)
#define EVEN_AGAIN  (8 * LEASE)

struct world;

struct member {
	struct weir_store store; /* first */
	struct weir_clock clock;
	struct world *world;
	struct weir_fleet *fleet; /* NULL: not present */
	struct weir_work *work;   /* NULL: closed */
	weir_time offset, next;
	int64_t millionths;
	bool hurried; /* its next step is due at once */
	bool busy;    /* it is in the middle of a request to the store */
	bool dead;    /* it was killed, and is removed when it is not busy */
	bool gone;    /* it is being closed: its answers do not count */
	bool slow;    /* it does not release partitions that another asks for */
	uint32_t weight;
	weir_time stopped; /* end of its stop; 0: not stopped */
	weir_time cut;     /* end of its separation from the store */
	weir_time back;    /* time of its return */
	uint64_t reported_fence[PARTITIONS];
	uint64_t progress[PARTITIONS]; /* of its work, for checkpoints */
	weir_time gained_at[PARTITIONS];
	struct trace_member trace;
};

/* A commit that arrives later. */
struct parcel {
	weir_time due; /* 0: none */
	unsigned sender;
	uint64_t session;
	struct weir_store_check checks[ROWS];
	struct weir_store_write writes[ROWS];
	char keys[2 * ROWS][64];
	char values[ROWS][160];
	size_t check_count, write_count;
};

struct world {
	struct weir_clock clock; /* first: the store's clock */
	weir_time now, tick;
	uint64_t chance;
	struct weir_store *store;
	uint64_t base;    /* added to versions, so that they rise when the store forgets */
	weir_time proven; /* since when it has lost nothing; 0: always */
	weir_time down;   /* end of the store's outage */
	unsigned losses;  /* per thousand requests */
	weir_dur calm;    /* mean time between faults */
	struct member members[MEMBERS];
	struct member rewinder;           /* it only sets checkpoints back */
	weir_time rewound_at[PARTITIONS]; /* when the last request was sent that was acknowledged */
	struct parcel parcels[PARCELS];
	struct trace trace;

	unsigned long checks, gains, forced, late, stops, deaths, cuts, closes, downs, forgotten,
		saved, rewound, released;
};

static uint64_t below(struct world *w, uint64_t most)
{
	return draw(&w->chance) % most;
}

static weir_time store_time(const struct weir_clock *clock)
{
	return ((const struct world *)clock)->now;
}

static weir_time member_time(const struct weir_clock *clock)
{
	const struct member *m = (const struct member *)((const char *)clock -
							 offsetof(struct member, clock));
	const weir_time now = m->world->now;

	return m->offset + now + (weir_time)((int64_t)(now / 1000) * m->millionths / 1000);
}

/* Convert a time of the member's clock, rounded up. */
static weir_time world_time(const struct member *m, weir_time there)
{
	const weir_time now = member_time(&m->clock);

	if (there <= now)
		return m->world->now + 1;
	if (there - now > MINUTE)
		return m->world->now + MINUTE;
	return m->world->now +
	       (weir_time)((double)(there - now) * 1e6 / (1e6 + (double)m->millionths)) + 1;
}

/* Whether the member could work on anything. */
static bool counts(const struct member *m)
{
	return m->fleet != NULL && m->work != NULL && !m->dead && !m->gone;
}

static void fail_two_owners(const struct world *w, uint32_t partition)
{
	fprintf(stderr, "two owners of partition %u at %.3f s:", partition,
		(double)w->now / WEIR_S);
	for (unsigned i = 0; i < MEMBERS; i++)
		if (counts(&w->members[i]) && weir_work_fence(w->members[i].work, partition) != 0)
			fprintf(stderr, " %u by %llu%s%s", i,
				(unsigned long long)weir_work_fence(w->members[i].work, partition),
				w->members[i].stopped != 0 ? ", stopped" : "",
				w->members[i].busy ? ", busy" : "");
	fprintf(stderr, "\n");
	abort();
}

/* Rows of a reading, with base added to their versions. */
struct reading {
	weir_store_row_fn *row;
	void *arg;
	uint64_t base;
};

static bool read_row(void *arg, const struct weir_store_row *row)
{
	const struct reading *r = arg;
	struct weir_store_row here = *row;

	here.version += r->base;
	here.made += r->base;
	return r->row(r->arg, &here);
}

/* What members own changes with the clock, so it is noted before the rows are. */
static void note_members(struct world *w)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &w->members[i];

		trace_member(&w->trace, w->now, i, &m->trace, counts(m) ? m->work : NULL,
			     m->dead ? "dead" : "closed",
			     m->fleet != NULL ? member_time(&m->clock) : 0);
	}
}

/* cause: what has changed the rows since the last time; fence: that a checkpoint has checked. */
static void note(struct world *w, const char *cause, uint64_t fence)
{
	static const char *const all = "";
	struct reading reading = {trace_row, &w->trace, w->base};

	if (!w->trace.on)
		return;
	note_members(w);
	trace_begin(&w->trace);
	CHECK(weir_store_read(w->store, &all, 1, read_row, &reading, NULL) == 0);
	trace_end(&w->trace, w->now, cause, fence);
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

static void pass(struct world *w, weir_time until);

/* Wait; a process that is stopped meanwhile waits longer by that time. */
static void wait_for(struct member *m, weir_dur time)
{
	pass(m->world, m->world->now + time);
	while (m->stopped != 0 && !m->dead)
		pass(m->world, m->stopped + TICK);
}

enum fate { FINE, LOST, UNHEARD, LATE, TWICE };

static enum fate fate_of(struct member *m)
{
	struct world *w = m->world;
	const uint64_t chance = below(w, 1000);

	if (m->dead || m->cut > w->now || w->down > w->now)
		return LOST;
	if (chance >= w->losses)
		return FINE;
	return (enum fate)(LOST + chance % 4);
}

/* The time of a request or an answer on the way. */
static void travel(struct member *m)
{
	wait_for(m, below(m->world, below(m->world, 8) == 0 ? TIMEOUT / 2 : 20 * WEIR_MS));
}

/* Answer a request, or let it time out. */
static int answer(struct member *m, enum fate fate, int r)
{
	if (m->dead)
		return -EIO;
	if (fate == FINE || fate == TWICE) {
		travel(m);
		note(m->world, "expiry", 0);
		return m->dead ? -EIO : r;
	}
	wait_for(m, TIMEOUT);
	note(m->world, "expiry", 0);
	return -EIO;
}

static bool is_of_this_store(const struct world *w, uint64_t number)
{
	return number > w->base && number - w->base < UINT64_C(1) << 40;
}

static int net_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct member *m = (struct member *)self;
	const enum fate fate = fate_of(m);
	int r = -EIO;

	if (fate != LOST) {
		travel(m);
		r = weir_store_begin(m->world->store, ttl, session, granted);
		*session += m->world->base;
	}
	return answer(m, fate, r);
}

static int net_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct member *m = (struct member *)self;
	const enum fate fate = fate_of(m);
	struct world *w = m->world;
	int r = -EIO;

	if (fate != LOST) {
		travel(m);
		r = is_of_this_store(w, session)
			    ? weir_store_keep(w->store, session - w->base, granted)
			    : -ESTALE;
	}
	return answer(m, fate, r);
}

static int net_end(struct weir_store *self, uint64_t session)
{
	struct member *m = (struct member *)self;
	struct world *w = m->world;

	if (fate_of(m) == LOST || !is_of_this_store(w, session))
		return -EIO;
	return weir_store_end(w->store, session - w->base);
}

/* Commit in the current store, which knows nothing of an earlier one. */
static int pass_on(struct world *w, uint64_t session, const struct weir_store_check *checks,
		   size_t check_count, const struct weir_store_write *writes, size_t write_count,
		   uint64_t *version)
{
	struct weir_store_check here[WEIR_STORE_ROWS_MAX];
	int r;

	if (session != 0 && !is_of_this_store(w, session))
		return -ESTALE;
	for (size_t i = 0; i < check_count; i++) {
		here[i] = checks[i];
		if (here[i].kind == WEIR_STORE_CHECK_ABSENT)
			continue;
		if (!is_of_this_store(w, here[i].version))
			return -EAGAIN;
		here[i].version -= w->base;
	}
	r = weir_store_commit(w->store, session != 0 ? session - w->base : 0, here, check_count,
			      writes, write_count, version);
	if (version != NULL)
		*version += w->base;
	return r;
}

static int do_commit(struct world *w, unsigned sender, uint64_t session,
		     const struct weir_store_check *checks, size_t check_count,
		     const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	char cause[16];
	int r;

	note(w, "expiry", 0);
	r = pass_on(w, session, checks, check_count, writes, write_count, version);
	if (sender == OPERATOR)
		(void)snprintf(cause, sizeof(cause), "operator");
	else
		(void)snprintf(cause, sizeof(cause), "%u", sender);
	note(w, cause, check_count > 0 ? checks[0].version : 0);
	return r;
}

static void send_later(struct world *w, unsigned sender, uint64_t session,
		       const struct weir_store_check *checks, size_t check_count,
		       const struct weir_store_write *writes, size_t write_count)
{
	struct parcel *p = NULL;

	CHECK(check_count <= ROWS && write_count <= ROWS);
	for (unsigned i = 0; i < PARCELS && p == NULL; i++)
		p = w->parcels[i].due == 0 ? &w->parcels[i] : NULL;
	if (p == NULL)
		return; /* no free slot: the commit is lost */
	p->due = w->now + 1 + below(w, below(w, 2) == 0 ? TIMEOUT * 2 : 2 * LEASE);
	p->sender = sender;
	p->session = session;
	p->check_count = check_count;
	p->write_count = write_count;
	for (size_t i = 0; i < check_count; i++) {
		p->checks[i] = checks[i];
		p->checks[i].key = strcpy(p->keys[i], checks[i].key);
	}
	for (size_t i = 0; i < write_count; i++) {
		CHECK(writes[i].size <= sizeof(p->values[i]));
		p->writes[i] = writes[i];
		p->writes[i].key = strcpy(p->keys[ROWS + i], writes[i].key);
		if (writes[i].value != NULL)
			p->writes[i].value = memcpy(p->values[i], writes[i].value, writes[i].size);
	}
	w->late++;
}

static int net_commit(struct weir_store *self, uint64_t session,
		      const struct weir_store_check *checks, size_t check_count,
		      const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	struct member *m = (struct member *)self;
	struct world *w = m->world;
	const unsigned sender = m != &w->rewinder ? (unsigned)(m - w->members) : OPERATOR;
	const enum fate fate = fate_of(m);
	int r = -EIO;

	note(w, "expiry", 0);
	if (fate == LATE || fate == TWICE)
		send_later(w, sender, session, checks, check_count, writes, write_count);
	if (fate != LOST && fate != LATE) {
		travel(m);
		r = do_commit(w, sender, session, checks, check_count, writes, write_count,
			      version);
	}
	return answer(m, fate, r);
}

static int net_read(struct weir_store *self, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct member *m = (struct member *)self;
	struct world *w = m->world;
	const enum fate fate = fate_of(m);
	struct reading reading = {row, arg, w->base};
	int r = -EIO;

	if (fate == FINE || fate == TWICE) {
		travel(m);
		reading.base = w->base;
		r = weir_store_read(w->store, prefixes, count, read_row, &reading, view);
		view->version += w->base;
		view->proven = w->proven == 0 ? WEIR_FOREVER : w->now - w->proven;
	}
	return answer(m, fate, r);
}

static void net_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(((struct member *)self)->world->store, caps);
}

static void net_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "It failed, as it was reported_fence to.");
}

static const struct weir_store_ops net = {
	.size = sizeof(net),
	.name = "faults",
	.begin = net_begin,
	.keep = net_keep,
	.end = net_end,
	.commit = net_commit,
	.read = net_read,
	.caps = net_caps,
	.error = net_error,
};

static void open_store(struct world *w)
{
	struct weir_store_config config;

	weir_store_config_init(&config);
	config.clock = &w->clock;
	config.shm_bytes = 1 << 18;
	CHECK(weir_store_open(&config, &w->store, NULL, 0) == 0);
}

static void gained(void *arg, uint32_t partition, uint64_t fence)
{
	struct member *m = arg;

	CHECK(m->reported_fence[partition] == 0 && fence != 0);
	m->reported_fence[partition] = fence;
	m->progress[partition] = 0;
	m->gained_at[partition] = m->world->now;
	m->world->gains++;
	look(m->world);
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
	rewound_at = m->world->rewound_at[partition];
	r = weir_work_checkpoint(m->work, partition, fence, m->progress[partition], "", 0);
	CHECK(r != 0 || gained_at >= rewound_at);
	m->world->saved += r == 0;
	if (m->dead)
		return;
	CHECK(r == 0 || r == -EIO || r == -ESTALE || r == -ERANGE);
	if (r == -ERANGE)
		m->progress[partition] = 0;
	CHECK(r != -ESTALE || weir_work_fence(m->work, partition) != fence);
	look(m->world);
}

static void requested(void *arg, uint32_t partition, uint64_t fence)
{
	struct member *m = arg;

	CHECK(m->reported_fence[partition] == fence);
	look(m->world);
	if (m->slow)
		return;
	if (below(m->world, 2) == 0)
		save(m, partition, fence);
	if (!m->dead)
		(void)weir_work_release(m->work, partition, fence);
	look(m->world);
}

static void lost(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	struct member *m = arg;

	CHECK(m->reported_fence[partition] == fence);
	CHECK(m->work == NULL || weir_work_fence(m->work, partition) == 0);
	m->reported_fence[partition] = 0;
	m->world->forced += forced;
	note(m->world, "expiry", 0);
}

static void open_partitions(struct member *m)
{
	const uint64_t kind = below(m->world, 4);
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
	config.weight = 1 + (uint32_t)below(m->world, 2);
	config.hold = below(m->world, 4) == 0 ? 3 * LEASE : 0;
	m->weight = config.weight;
	m->slow = kind == 2;
	CHECK(weir_work_open(m->fleet, &config, &m->work, NULL, 0) == 0);
}

static void enter(struct world *w, struct member *m)
{
	struct weir_fleet_config config;

	m->store.ops = &net;
	m->clock.now = member_time;
	m->world = w;
	m->offset = below(w, MINUTE);
	/* Errors of clocks are as large as allowed. */
	m->millionths = ((int64_t)below(w, 3) - 1) * FASTEST;
	m->next = w->now;
	m->dead = m->gone = false;
	m->back = m->stopped = m->cut = 0;
	weir_fleet_config_init(&config);
	config.store = &m->store;
	config.lease = LEASE;
	config.refresh = REFRESH;
	config.manual = 1;
	config.clock = &m->clock;
	config.seed = draw(&w->chance);
	config.label = "member";
	CHECK(weir_fleet_open(&config, &m->fleet, NULL, 0) == 0);
	open_partitions(m);
}

static void leave(struct member *m)
{
	m->busy = m->gone = true;
	weir_fleet_close(m->fleet);
	m->busy = false;
	m->fleet = NULL;
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
	m->busy = true;
	weir_work_close(work);
	m->busy = false;
	for (unsigned i = 0; i < PARTITIONS; i++)
		CHECK(m->reported_fence[i] == 0);
	m->back = w->now + below(w, LEASE);
	w->closes++;
}

static bool runs(const struct member *m)
{
	return m->fleet != NULL && !m->dead && !m->gone && m->stopped == 0;
}

static void forget(struct world *w)
{
	note(w, "expiry", 0);
	weir_store_close(w->store);
	w->base += UINT64_C(1) << 40;
	w->proven = w->now;
	w->forgotten++;
	open_store(w);
	note(w, "lost", 0);
}

static void rewind_one(struct world *w)
{
	const uint32_t partition = (uint32_t)below(w, PARTITIONS);
	const weir_time sent = w->now;
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
	struct member *m = &w->members[below(w, MEMBERS)];
	const weir_time until = w->now + 1 + below(w, below(w, 2) == 0 ? 2 * LEASE : REFRESH);

	switch (below(w, 11)) {
	case 0:
	case 1:
		if (!runs(m))
			return;
		m->stopped = until;
		w->stops++;
		return;
	case 2:
		m->dead = m->fleet != NULL;
		m->back = below(w, 2) == 0 ? w->now + 1 : until;
		w->deaths++;
		return;
	case 3:
	case 4:
		m->cut = until;
		w->cuts++;
		return;
	case 5:
		w->down = until;
		w->downs++;
		return;
	case 6:
		if (below(w, 4) == 0)
			forget(w);
		return;
	case 7:
		if (runs(m) && !m->busy && m->work != NULL)
			close_partitions(w, m);
		return;
	case 8:
		rewind_one(w);
		return;
	default:
		w->losses = (unsigned)below(w, 3) * (unsigned)below(w, 300);
	}
}

static void come_and_go(struct world *w)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &w->members[i];

		if (m->dead && !m->busy && m->fleet != NULL)
			leave(m);
		if (m->fleet == NULL && !m->busy && w->now >= m->back)
			enter(w, m);
		if (runs(m) && !m->busy && m->work == NULL && w->now >= m->back)
			open_partitions(m);
		if (m->stopped != 0 && w->now >= m->stopped) {
			m->stopped = 0;
			m->next = w->now + below(w, TICK);
		}
	}
}

static void tick(struct world *w)
{
	w->tick += TICK;
	come_and_go(w);
	if (w->calm != WEIR_FOREVER && below(w, w->calm / TICK) == 0)
		disturb(w);
	look(w);
}

static struct member *next_member(struct world *w)
{
	struct member *first = NULL;

	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &w->members[i];

		if (runs(m) && !m->busy && (first == NULL || m->next < first->next))
			first = m;
	}
	return first;
}

static struct parcel *next_parcel(struct world *w)
{
	struct parcel *first = NULL;

	for (unsigned i = 0; i < PARCELS; i++)
		if (w->parcels[i].due != 0 && (first == NULL || w->parcels[i].due < first->due))
			first = &w->parcels[i];
	return first;
}

static void deliver(struct world *w, struct parcel *p)
{
	p->due = 0;
	if (w->down <= w->now)
		(void)do_commit(w, p->sender, p->session, p->checks, p->check_count, p->writes,
				p->write_count, NULL);
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
	const uint32_t partition = (uint32_t)below(w, PARTITIONS);
	const uint64_t fence = counts(m) ? weir_work_fence(m->work, partition) : 0;

	if (fence == 0)
		return;
	if (below(w, 4) == 0)
		save(m, partition, fence);
	else if (below(w, 12) == 0 && w->calm != WEIR_FOREVER)
		release(w, m, partition, fence);
}

static void step(struct world *w, struct member *m)
{
	weir_time next;

	m->busy = true;
	note(w, "expiry", 0);
	next = weir_fleet_step(m->fleet);
	look(w);
	work_a_while(w, m);
	m->busy = false;
	m->next = m->hurried ? w->now + 1 : world_time(m, next);
	m->hurried = false;
	look(w);
}

/* Let time pass; members that wait for the store are in the middle of a call. */
static void pass(struct world *w, weir_time until)
{
	for (;;) {
		struct member *m = next_member(w);
		struct parcel *p = next_parcel(w);
		weir_time next = w->tick;

		next = m != NULL && m->next < next ? m->next : next;
		next = p != NULL && p->due < next ? p->due : next;
		if (next > until)
			break;
		w->now = next > w->now ? next : w->now;
		if (p != NULL && p->due <= w->now)
			deliver(w, p);
		else if (w->tick <= w->now)
			tick(w);
		else
			step(w, m);
	}
	w->now = until > w->now ? until : w->now;
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
	const weir_time end = w->now + OWNED_AGAIN;
	bool seen[PARTITIONS] = {false};
	unsigned count = 0;

	pass(w, end - 2 * REFRESH);
	while (w->now < end) {
		pass(w, w->now + TICK);
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
	w->losses = 0;
	w->down = 0;
	for (unsigned i = 0; i < MEMBERS; i++)
		w->members[i].cut = 0;
	/* Members that are stopped or absent come back: only then their faults are over. */
	pass(w, w->now + 2 * LEASE);
	await_owners(w);
	pass(w, w->now + EVEN_AGAIN);
	for (unsigned i = 0; i < MEMBERS; i++)
		check_due(w, &w->members[i]);
	CHECK(owned(w) == PARTITIONS);
}

static void play(unsigned minutes, uint64_t seed, bool trace)
{
	static struct world w;

	w = (struct world){
		.clock = {store_time},
		.now = 1000 * WEIR_S,
		.tick = 1000 * WEIR_S,
		.chance = 88172645463325252u + seed * 7919,
		.calm = WEIR_S << seed % 4,
		.trace = {.on = trace},
	};
	w.rewinder = (struct member){.store = {&net}, .world = &w};
	open_store(&w);
	for (unsigned i = 0; i < MEMBERS; i++)
		enter(&w, &w.members[i]);
	pass(&w, w.now + minutes * MINUTE);
	calm_down(&w);
	for (unsigned i = 0; i < MEMBERS; i++)
		w.members[i].dead = true;
	note_members(&w);
	printf("seed %u: %lu checks, one owner at most; %lu gains, %lu ended by force; %lu "
	       "checkpoints, %lu set back; %lu released; %lu late; %lu stops, %lu deaths, %lu cut "
	       "off, %lu closed, store gone %lu and forgetful %lu times\n",
	       (unsigned)seed, w.checks, w.gains, w.forced, w.saved, w.rewound, w.released, w.late,
	       w.stops, w.deaths, w.cuts, w.closes, w.downs, w.forgotten);
	fflush(stdout);
	w.trace.on = false;
	for (unsigned i = 0; i < MEMBERS; i++)
		if (w.members[i].fleet != NULL)
			leave(&w.members[i]);
	weir_store_close(w.store);
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
