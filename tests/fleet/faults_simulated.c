/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults_simulated MINUTES SEEDS [FIRST [allocated]]: faults for that time with each seed, in
 * simulated time, as seen by the backend. allocated: the limit has an allocator.
 *
 * Members share a rate, or calls in flight, with the library's own code. Their requests to the
 * store are lost, late, carried out twice, or carried out without an answer; each member has a
 * clock that runs too fast or too slow. Members are stopped, killed and cut off, and come back; the
 * capacity is changed; the store is gone for a while, or forgets everything.
 *
 * The backend counts what is admitted. For a rate, in any second it is no more than
 *
 *	the capacity, one slot of it before and one after,
 *	one slot of the units that have changed hands in that second,
 *	and two units for each member,
 *
 * where the capacity is the highest since a lease ago. A member that continues after a stop counts
 * as if its units had changed hands twice, because for a moment it does not know about the stop.
 * Calls in flight are no more than the capacity, except those that were begun under a larger share.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include <weir/limits.h>
#include <weir/share_of_rate.h>

#include "faulty_net.h"

#define MEMBERS  8
#define CAPACITY 500
#define RESERVED 10
#define SLOT     (100 * WEIR_MS)
#define CALL_MAX (500 * WEIR_MS)

#define SECOND_TICKS  (WEIR_S / TICK)
#define HISTORY_TICKS ((LEASE + LEASE / 50 + 2 * WEIR_S) / TICK)
#define CALM_AGAIN    (15 * LEASE) /* until the final state is reached: throttling ends in steps */
#define CALLS         (2 * CAPACITY)

struct member {
	struct node node; /* first */
	struct weir_share *share;
	struct weir_rate *rate;
	struct weir_limiter *limiter;
	struct weir_share_rate rate_link;
	struct weir_share_limiter limiter_link;
	void (*apply)(void *arg, uint64_t units); /* of the link, like the next two */
	uint64_t (*wanted)(void *arg);
	void *arg;
	uint64_t applied;
	weir_time excused;     /* until then it may have more calls than its share */
	uint64_t units, wants; /* units as last seen; wants per second */
	double backlog;        /* fractions of calls that it still has to send */
	struct {
		struct weir_token token;
		weir_time end; /* 0: none */
	} calls[CALLS];
	unsigned inflight;
};

struct sim {
	struct net net;  /* first */
	bool calls;      /* calls in flight are shared, not a rate */
	bool allocated;  /* the limit has an allocator */
	weir_dur calm;   /* mean time between faults */
	uint64_t demand; /* of a member at most, per second: more than there is, or less */
	struct member members[MEMBERS];

	uint64_t capacity;
	uint64_t capacities[HISTORY_TICKS], admitted[SECOND_TICKS], changes[SECOND_TICKS + 10];
	uint64_t admitted_now, changed_now;
	unsigned long ticks;

	/* Statistics. */
	uint64_t all, most, worst, allowed;
	uint64_t stops, deaths, cuts, downs, losses_of_all, capacity_changes;
};

static void make_rate(struct member *m, struct weir_share_config *share)
{
	struct weir_rate_config config;

	weir_rate_config_init(&config);
	config.quotas[0].units = 0;
	config.slot = SLOT;
	config.clock = &m->node.clock;
	CHECK(weir_rate_create(&config, &m->rate) == 0);
	CHECK(weir_share_of_rate(share, &m->rate_link, m->rate, 0, NULL) == 0);
}

static void make_limiter(struct member *m, struct weir_share_config *share)
{
	const struct weir_fixed_config fixed = {.limit = CAPACITY};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	config.clock = &m->node.clock;
	CHECK(weir_limiter_create(&config, &m->limiter) == 0);
	weir_share_of_limiter(share, &m->limiter_link, m->limiter);
}

static void apply(void *arg, uint64_t units)
{
	struct member *m = arg;

	m->applied = units;
	m->apply(m->arg, units);
}

static uint64_t wanted(void *arg)
{
	const struct member *m = arg;

	return m->wanted(m->arg);
}

static void enter(struct sim *s, struct member *m)
{
	struct weir_share_config share;
	char why[256];

	node_open(&s->net, &m->node, (int64_t)below(&s->net, 2 * FASTEST) - FASTEST);
	weir_share_config_init(&share);
	share.name = "limit";
	share.capacity = CAPACITY;
	share.reserved = RESERVED;
	share.members = MEMBERS;
	share.allocated = s->allocated;
	if (s->calls)
		make_limiter(m, &share);
	else
		make_rate(m, &share);
	m->apply = share.apply;
	m->arg = share.arg;
	m->wanted = share.wants;
	share.apply = apply;
	share.wants = m->wanted != NULL ? wanted : NULL;
	share.arg = m;
	m->applied = 0;
	CHECK(weir_share_join(m->node.fleet, &share, &m->share, why, sizeof(why)) == 0);
}

/* Remove a member; its calls in flight end with it. */
static void leave(struct member *m)
{
	node_close(&m->node);
	m->share = NULL;
	for (unsigned i = 0; i < CALLS; i++) {
		if (m->calls[i].end != 0)
			weir_release(m->limiter, &m->calls[i].token, WEIR_IGNORE);
		m->calls[i].end = 0;
	}
	m->inflight = 0;
	weir_rate_destroy(m->rate);
	if (m->limiter != NULL)
		weir_limiter_destroy(m->limiter);
	m->rate = NULL;
	m->limiter = NULL;
	m->units = 0;
	m->backlog = 0;
	m->excused = 0;
}

/* Request what the member wants to send; what is refused is dropped. */
static void send_at_rate(struct sim *s, struct member *m)
{
	m->backlog += (double)m->wants * TICK / WEIR_S;
	weir_share_demand_add(m->share, (uint64_t)m->backlog);
	while (m->backlog >= 1 && weir_rate_try(m->rate, 1) == 0) {
		m->backlog -= 1;
		s->admitted_now++;
	}
	m->backlog -= floor(m->backlog);
}

static void end_calls(const struct sim *s, struct member *m)
{
	for (unsigned i = 0; i < CALLS; i++) {
		if (m->calls[i].end == 0 || m->calls[i].end > s->net.now)
			continue;
		weir_release(m->limiter, &m->calls[i].token, WEIR_SUCCESS);
		m->calls[i].end = 0;
		m->inflight--;
	}
}

static void begin_calls(struct sim *s, struct member *m)
{
	unsigned tries = (unsigned)(m->wants * TICK / WEIR_S);

	for (unsigned i = 0; i < CALLS && tries > 0; i++) {
		if (m->calls[i].end != 0)
			continue;
		tries--;
		if (weir_try_acquire(m->limiter, &m->calls[i].token) != 0)
			return;
		m->calls[i].end = s->net.now + 1 + below(&s->net, CALL_MAX);
		m->inflight++;
		s->admitted_now++;
	}
}

/* Record the units that have changed hands since the last call. */
static void note_units(struct sim *s, struct member *m)
{
	const uint64_t units = weir_share_units(m->share);

	if (units > m->units)
		s->changed_now += units - m->units;
	if (units < m->units || units < m->applied)
		m->excused = s->net.now + CALL_MAX + 2 * TICK;
	/* A fleet with threads reports this itself while one of them waits for the store. */
	if (units < m->applied)
		apply(m, units);
	m->units = units;
}

static void send(struct sim *s)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &s->members[i];

		if (!node_runs(&m->node))
			continue;
		note_units(s, m);
		if (s->calls) {
			end_calls(s, m);
			begin_calls(s, m);
		} else {
			send_at_rate(s, m);
		}
	}
}

/* Continue a member: its other threads may run before the one that renews the lease. */
static void resume(struct sim *s, struct member *m)
{
	node_resume(&m->node);
	s->changed_now += 2 * m->units;
	m->excused = s->net.now + CALL_MAX + 3 * TICK;
}

static void set_capacity(struct sim *s)
{
	const uint64_t capacity = CAPACITY * (20 + below(&s->net, 81)) / 100;

	if (weir_fleet_change(s->net.store, "limit", capacity) == 0)
		s->capacity_changes++;
}

/* Cause one random fault. */
static void disturb(struct sim *s)
{
	struct member *m = &s->members[below(&s->net, MEMBERS)];
	const weir_time until = s->net.now + 1 + below(&s->net, 2 * LEASE);

	switch (below(&s->net, 12)) {
	case 0:
	case 1:
		if (!node_runs(&m->node))
			return;
		m->node.stopped = until;
		s->stops++;
		return;
	case 2:
	case 3:
		m->node.dead = m->node.fleet != NULL;
		m->node.back = below(&s->net, 2) == 0 ? s->net.now + 1 : until;
		s->deaths++;
		return;
	case 4:
	case 5:
		m->node.cut = until;
		s->cuts++;
		return;
	case 6:
		s->net.down = until;
		s->downs++;
		return;
	case 7:
		if (below(&s->net, 4) != 0)
			return;
		net_forget(&s->net);
		s->losses_of_all++;
		return;
	case 8:
		set_capacity(s);
		return;
	case 9:
		s->net.losses = (unsigned)below(&s->net, 3) * (unsigned)below(&s->net, 300);
		return;
	case 10:
		if (node_runs(&m->node))
			weir_share_throttled(m->share);
		return;
	default:
		m->wants = below(&s->net, 4) == 0 ? 0 : below(&s->net, s->demand);
	}
}

/* Remove dead members, and start new ones, unless they are in the middle of a call. */
static void remove_and_start(struct sim *s)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct member *m = &s->members[i];

		if (m->node.dead && !m->node.busy && m->node.fleet != NULL)
			leave(m);
		if (m->node.fleet == NULL && !m->node.busy && s->net.now >= m->node.back)
			enter(s, m);
		if (m->node.stopped != 0 && s->net.now >= m->node.stopped)
			resume(s, m);
	}
}

static uint64_t sum_of(const uint64_t *numbers, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += numbers[i];
	return sum;
}

static uint64_t most_of(const uint64_t *numbers, size_t count)
{
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = numbers[i] > most ? numbers[i] : most;
	return most;
}

static void check_at_most(const struct sim *s, const char *what, uint64_t seen, uint64_t allowed)
{
	if (seen <= allowed)
		return;
	fprintf(stderr, "%s: %llu, and not more than %llu, at %.2f s\n", what,
		(unsigned long long)seen, (unsigned long long)allowed, (double)s->net.now / WEIR_S);
	for (unsigned i = 0; i < MEMBERS; i++) {
		const struct member *m = &s->members[i];

		if (m->node.fleet != NULL)
			fprintf(stderr, "  %u: %llu units, %u calls%s%s%s\n", i,
				(unsigned long long)m->units, m->inflight,
				m->node.dead ? ", dead" : "",
				m->node.stopped != 0 ? ", stopped" : "",
				m->node.cut > s->net.now ? ", cut off" : "");
	}
	abort();
}

/* The highest capacity that may still be in use. */
static uint64_t note_capacity(struct sim *s)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	if (weir_fleet_inspect(s->net.store, "limit", &limit, NULL, NULL) == 0)
		s->capacity = limit.capacity;
	s->capacities[s->ticks % HISTORY_TICKS] = s->capacity;
	return most_of(s->capacities, HISTORY_TICKS);
}

static void check_rate(struct sim *s, uint64_t capacity)
{
	const size_t slots = sizeof(s->changes) / sizeof(s->changes[0]);
	uint64_t second, allowed;

	s->admitted[s->ticks % SECOND_TICKS] = s->admitted_now;
	s->changes[s->ticks % slots] = s->changed_now;
	second = sum_of(s->admitted, SECOND_TICKS);
	allowed = capacity + (2 * capacity + sum_of(s->changes, slots)) * SLOT / WEIR_S;
	allowed += allowed * FASTEST / 1000000 + 2 * MEMBERS;
	check_at_most(s, "admitted in a second", second, allowed);
	if (second > s->most)
		s->most = second;
	if (second > capacity && second - capacity > s->worst) {
		s->worst = second - capacity;
		s->allowed = allowed - capacity;
	}
}

static void check_calls(struct sim *s, uint64_t capacity)
{
	uint64_t inflight = 0, carried = 0;

	for (unsigned i = 0; i < MEMBERS; i++) {
		const struct member *m = &s->members[i];
		const uint64_t units = m->node.dead || m->share == NULL || m->node.leaving
					       ? 0
					       : weir_share_units(m->share);

		inflight += m->inflight;
		if (m->inflight <= units)
			continue;
		carried += m->inflight - units;
		if (node_runs(&m->node) && s->net.now > m->excused)
			check_at_most(s, "calls of a member", m->inflight, units);
	}
	check_at_most(s, "calls in flight", inflight, capacity + carried);
	if (inflight > s->most)
		s->most = inflight;
	if (inflight > capacity && inflight - capacity > s->worst) {
		s->worst = inflight - capacity;
		s->allowed = carried;
	}
}

/* Check the exact units of all members, including stopped ones. */
static void check_units(struct sim *s, uint64_t capacity)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		if (s->members[i].node.fleet != NULL && !s->members[i].node.leaving &&
		    !s->members[i].node.dead)
			sum += weir_share_units(s->members[i].share);
	check_at_most(s, "units of all", sum, capacity);
}

static void tick(struct net *net)
{
	struct sim *s = (struct sim *)net;
	uint64_t capacity;

	s->admitted_now = s->changed_now = 0;
	remove_and_start(s);
	if (s->calm != WEIR_FOREVER && below(&s->net, s->calm / TICK) == 0)
		disturb(s);
	send(s);
	capacity = note_capacity(s);
	check_units(s, capacity);
	if (s->calls)
		check_calls(s, capacity);
	else
		check_rate(s, capacity);
	s->all += s->admitted_now;
	s->ticks++;
}

static weir_time step(struct node *node)
{
	return weir_fleet_step(node->fleet);
}

/* After the faults, members that want units use all of them again. */
static void calm_down(struct sim *s)
{
	uint64_t sum = 0;

	s->calm = WEIR_FOREVER;
	s->net.losses = 0;
	s->net.down = 0;
	net_clear(&s->net);
	/* The store may have forgotten the limit itself. */
	while (weir_fleet_change(s->net.store, "limit", CAPACITY) == -ENOENT)
		net_pass(&s->net, s->net.now + WEIR_S);
	for (unsigned i = 0; i < MEMBERS; i++) {
		s->members[i].node.cut = 0;
		s->members[i].wants = 2 * CAPACITY;
	}
	net_pass(&s->net, s->net.now + CALM_AGAIN);
	for (unsigned i = 0; i < MEMBERS; i++)
		sum += weir_share_units(s->members[i].share);
	if (sum != CAPACITY)
		fprintf(stderr, "%llu units after the faults\n", (unsigned long long)sum);
	CHECK(sum == CAPACITY);
}

static void play(unsigned minutes, uint64_t seed, bool allocated)
{
	static const struct net_user user = {.tick = tick, .step = step};
	static struct sim s;

	s = (struct sim){
		.calls = seed % 2 == 0,
		.allocated = allocated,
		.capacity = CAPACITY,
		.calm = WEIR_S << seed / 2 % 4,
		.demand = seed / 4 % 2 == 0 ? 2 * CAPACITY : CAPACITY / 4,
	};
	net_begin(&s.net, &user, seed);
	for (unsigned i = 0; i < MEMBERS; i++) {
		s.members[i].wants = s.demand / 4;
		s.net.nodes[s.net.node_count++] = &s.members[i].node;
		enter(&s, &s.members[i]);
	}
	net_pass(&s.net, s.net.now + minutes * MINUTE);
	calm_down(&s);
	printf("seed %u, %s: %llu admitted, at most %llu at once, %llu above the capacity where %llu "
	       "may be; %llu commits, %llu requests unanswered, %llu late; %llu stops, %llu deaths, "
	       "%llu cut off, store gone %llu and forgot %llu times, %llu capacities\n",
	       (unsigned)seed, s.calls ? "calls in flight" : "a rate", (unsigned long long)s.all,
	       (unsigned long long)s.most, (unsigned long long)s.worst,
	       (unsigned long long)s.allowed, (unsigned long long)s.net.commits,
	       (unsigned long long)s.net.unanswered, (unsigned long long)s.net.late_count,
	       (unsigned long long)s.stops, (unsigned long long)s.deaths,
	       (unsigned long long)s.cuts, (unsigned long long)s.downs,
	       (unsigned long long)s.losses_of_all, (unsigned long long)s.capacity_changes);
	fflush(stdout);
	for (unsigned i = 0; i < MEMBERS; i++) {
		s.members[i].node.dead = true;
		if (s.members[i].node.fleet != NULL)
			leave(&s.members[i]);
	}
	net_end(&s.net);
}

int main(int argc, char **argv)
{
	const unsigned minutes = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	const unsigned seeds = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	const uint64_t first = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	const bool allocated = argc > 4 && strcmp(argv[4], "allocated") == 0;

	CHECK(minutes > 0 && seeds > 0);
	for (uint64_t seed = first; seed < first + seeds; seed++)
		play(minutes, seed, allocated);
	return 0;
}
