/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults_real KIND MINUTES [SEED]: faults for that time, with real processes and a real store: shm,
 * redis, redis-durable or etcd. Checks the same as faults_simulated.c, in real time.
 *
 * Each process has a fleet with its threads, and sends at the rate of its share as much as it gets.
 * Processes are killed, stopped and restarted; the wall clock of one is set. Between processes and
 * server is a proxy that loses answers, truncates them, corrupts them and delays requests. The
 * server is stopped and killed; the capacity is changed.
 *
 * What the backend counts in any second is bounded as in faults_simulated.c, plus what a process
 * has sent although its lease had ended, before one of its threads could stop it: the machine
 * determines how long that takes, so it is counted separately.
 */

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/share_of_rate.h>

#include "../stress/check.h"
#include "proxy.h"
#include "server.h"
#include "wall_clock.h"

#define MEMBERS  6
#define CAPACITY 600
#define RESERVED 10
#define LEASE    (2 * WEIR_S) /* etcd's minimum */
#define SLOT     (100 * WEIR_MS)
#define BUCKET   (10 * WEIR_MS)
#define BUCKETS  1024
#define SECOND   (WEIR_S / BUCKET)
#define HISTORY  (5 * WEIR_S / BUCKET) /* a lease, and what a server may be late */

/* Counts by the backend, and what it cannot see, in buckets of time. */
struct board {
	_Atomic uint64_t admitted[BUCKETS], changed[BUCKETS], late[BUCKETS];
	_Atomic uint64_t all_admitted, all_late;
	_Atomic uint64_t units[MEMBERS], loops[MEMBERS];
};

struct run {
	const char *kind;
	bool remote;
	uint64_t chance, seed;
	struct server server;
	struct proxy proxies[2];
	char direct[128];
	struct wall_clock wall;
	struct weir_store *store;
	pid_t members[MEMBERS];
	/* End of its stop, and time of its return; 0: it runs. */
	weir_time stopped[MEMBERS], back[MEMBERS];
	weir_time calm[2], server_back, clock_back;
	bool server_dead;
	uint64_t capacity, capacities[HISTORY];
	uint64_t most, worst, allowed, worst_late;
	unsigned long seconds, stops, kills, corrupted, server_stops, server_kills, changes, clocks;
};

static struct board *board;

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static void count(_Atomic uint64_t *buckets, uint64_t number)
{
	atomic_fetch_add(&buckets[now() / BUCKET % BUCKETS], number);
}

/* A process with a share. */
struct sender {
	struct weir_share_rate link;
	struct weir_rate *rate;
	struct weir_share *share;
	void (*apply)(void *arg, uint64_t units);
	void *arg;
	unsigned index;
	_Atomic uint64_t units;
};

static void apply(void *arg, uint64_t units)
{
	struct sender *s = arg;
	const uint64_t before = atomic_exchange(&s->units, units);

	if (units > before)
		count(board->changed, units - before);
	s->apply(s->arg, units);
	atomic_store(&board->units[s->index], units);
}

static struct weir_fleet *open_fleet(const char *address)
{
	struct weir_store_config store;
	struct weir_fleet_config config;
	struct weir_fleet *fleet;
	char why[256];

	weir_store_config_init(&store);
	store.timeout = 500 * WEIR_MS;
	weir_fleet_config_init(&config);
	config.store_config = &store;
	config.address = address;
	config.lease = config.learning = LEASE;
	while (weir_fleet_open(&config, &fleet, why, sizeof(why)) != 0)
		sleep_ms(50);
	return fleet;
}

static void join(struct sender *s, struct weir_fleet *fleet)
{
	struct weir_share_config config;
	struct weir_rate_config rate;

	weir_rate_config_init(&rate);
	rate.slot = SLOT;
	CHECK(weir_rate_create(&rate, &s->rate) == 0);
	weir_share_config_init(&config);
	config.name = "limit";
	config.capacity = CAPACITY;
	config.reserved = RESERVED;
	config.members = MEMBERS;
	CHECK(weir_share_of_rate(&config, &s->link, s->rate, 0, NULL) == 0);
	s->apply = config.apply;
	s->arg = config.arg;
	config.apply = apply;
	config.arg = s;
	CHECK(weir_share_join(fleet, &config, &s->share, NULL, 0) == 0);
}

/* faults_real member INDEX FD SEED ADDRESS */
static int be_member(char **argv)
{
	static struct sender s;
	uint64_t chance = 88172645463325252u + strtoul(argv[4], NULL, 10);
	uint64_t want = CAPACITY;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[3]), 0);
	CHECK(board != MAP_FAILED);
	s.index = (unsigned)atoi(argv[2]);
	join(&s, open_fleet(argv[5]));
	for (uint64_t loop = 0;; loop++) {
		/* The demand changes every few seconds. */
		if (loop % 4096 == 0)
			want = draw(&chance) % 8 == 0 ? draw(&chance) % 50
						      : CAPACITY / 2 + draw(&chance) % CAPACITY;
		(void)weir_share_demand_set(s.share, want);
		for (unsigned i = 0; i < want && weir_rate_try(s.rate, 1) == 0; i++) {
			count(board->admitted, 1);
			atomic_fetch_add(&board->all_admitted, 1);
			if (weir_share_units(s.share) >= atomic_load(&s.units))
				continue;
			count(board->late, 1);
			atomic_fetch_add(&board->all_late, 1);
		}
		atomic_fetch_add(&board->loops[s.index], 1);
		sleep_ms(1);
	}
}

static void start_member(struct run *g, unsigned index, int fd)
{
	char number[16], board_fd[16], seed[32], address[128];
	char *argv[] = {"fleet-faults_real", "member", number, board_fd, seed, address, NULL};

	(void)snprintf(number, sizeof(number), "%u", index);
	(void)snprintf(board_fd, sizeof(board_fd), "%d", fd);
	(void)snprintf(seed, sizeof(seed), "%llu",
		       (unsigned long long)(draw(&g->chance) % 1000000));
	(void)snprintf(address, sizeof(address), "%s", g->direct);
	if (g->remote)
		(void)snprintf(address, sizeof(address), "%.5s://127.0.0.1:%u",
			       g->kind[0] == 'e' ? "etcd" : "redis", g->proxies[index % 2].port);
	atomic_store(&board->units[index], 0);
	g->members[index] = fork();
	CHECK(g->members[index] >= 0);
	if (g->members[index] != 0)
		return;
	if (index == MEMBERS - 1)
		wall_clock_follow(&g->wall);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static void kill_member(struct run *g, unsigned index)
{
	kill(g->members[index], SIGKILL);
	CHECK(waitpid(g->members[index], NULL, 0) == g->members[index]);
	wall_clock_killed(g->members[index]);
	g->members[index] = 0;
	g->stopped[index] = 0;
}

/* The old capacity is valid until the server answers. */
static void set_capacity(struct run *g)
{
	const uint64_t capacity = CAPACITY * (20 + draw(&g->chance) % 81) / 100;

	g->changes += weir_fleet_change(g->store, "limit", capacity) == 0;
}

static void disturb_server(struct run *g, weir_time until)
{
	if (!g->remote || g->server_back != 0)
		return;
	g->server_back = until;
	if (draw(&g->chance) % 2 == 0) {
		server_pause(&g->server);
		g->server_stops++;
	} else {
		server_kill(&g->server);
		g->server_dead = true;
		g->capacity = CAPACITY; /* if it forgets, as the limit is created again */
		g->server_kills++;
	}
}

static void disturb_answers(struct run *g, weir_time until)
{
	static const enum proxy_mode modes[] = {PROXY_LOSE, PROXY_TRUNCATE, PROXY_GARBAGE,
						PROXY_SWALLOW, PROXY_DELAY};
	const unsigned i = (unsigned)(draw(&g->chance) % 2);

	if (!g->remote)
		return;
	atomic_store(&g->proxies[i].mode, (int)modes[draw(&g->chance) % 5]);
	g->calm[i] = until;
	g->corrupted++;
}

static void disturb(struct run *g)
{
	static const char *const offsets[] = {"+1h", "-1h", "+400d"};
	const unsigned i = (unsigned)(draw(&g->chance) % MEMBERS);
	const weir_time until = now() + draw(&g->chance) % (2 * LEASE);

	switch (draw(&g->chance) % 9) {
	case 0:
	case 1:
		if (g->members[i] == 0 || g->stopped[i] != 0)
			return;
		kill(g->members[i], SIGSTOP);
		g->stopped[i] = until;
		g->stops++;
		return;
	case 2:
	case 3:
		if (g->members[i] == 0)
			return;
		kill_member(g, i);
		g->back[i] = draw(&g->chance) % 2 == 0 ? 1 : until;
		g->kills++;
		return;
	case 4:
	case 5:
		disturb_answers(g, until);
		return;
	case 6:
		disturb_server(g, until);
		return;
	case 7:
		if (!wall_clock_can(&g->wall))
			return;
		wall_clock_set(&g->wall, offsets[draw(&g->chance) % 3]);
		g->clock_back = now() + WEIR_S;
		g->clocks++;
		return;
	default:
		set_capacity(g);
	}
}

/* End the faults that have lasted long enough. */
static void recover(struct run *g, int fd)
{
	const weir_time t = now();

	for (unsigned i = 0; i < MEMBERS; i++) {
		if (g->stopped[i] != 0 && t >= g->stopped[i]) {
			/* For a moment it does not know that it was stopped. */
			count(board->changed, 2 * atomic_load(&board->units[i]));
			kill(g->members[i], SIGCONT);
			g->stopped[i] = 0;
		}
		if (g->members[i] == 0 && t >= g->back[i])
			start_member(g, i, fd);
	}
	for (unsigned i = 0; i < 2; i++)
		if (g->calm[i] != 0 && t >= g->calm[i]) {
			atomic_store(&g->proxies[i].mode, PROXY_PASS);
			g->calm[i] = 0;
		}
	if (g->clock_back != 0 && t >= g->clock_back) {
		wall_clock_set(&g->wall, "+0");
		g->clock_back = 0;
	}
	if (g->server_back == 0 || t < g->server_back)
		return;
	if (g->server_dead)
		server_restart(&g->server);
	else
		server_resume(&g->server);
	g->server_dead = false;
	g->server_back = 0;
}

static uint64_t sum_of(const _Atomic uint64_t *buckets, weir_time from, uint64_t length)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < length; i++)
		sum += atomic_load(&buckets[(from / BUCKET + i) % BUCKETS]);
	return sum;
}

/*
 * Check the second that ended a while ago: a process that was stopped between sending and counting
 * has counted by then, or counts in a later second, which is when the backend sees it.
 */
static void check_second(struct run *g, weir_time end, uint64_t capacity)
{
	const weir_time from = end - WEIR_S;
	const uint64_t second = sum_of(board->admitted, from, SECOND);
	const uint64_t late = sum_of(board->late, from - SLOT, SECOND + SLOT / BUCKET);
	const uint64_t changed = sum_of(board->changed, from - 2 * SLOT,
					SECOND + 3 * SLOT / BUCKET);
	const uint64_t allowed = capacity + (2 * capacity + changed) * SLOT / WEIR_S + 2 * MEMBERS +
				 late;

	g->seconds++;
	g->most = second > g->most ? second : g->most;
	g->worst_late = late > g->worst_late ? late : g->worst_late;
	if (second > capacity && second - capacity > g->worst) {
		g->worst = second - capacity;
		g->allowed = allowed - capacity;
	}
	if (second <= allowed)
		return;
	fprintf(stderr, "%s: %llu in a second, and not more than %llu: %llu late, %llu changed\n",
		g->kind, (unsigned long long)second, (unsigned long long)allowed,
		(unsigned long long)late, (unsigned long long)changed);
	abort();
}

/* The highest recent capacity. */
static uint64_t note_capacity(struct run *g, unsigned long tick)
{
	struct weir_fleet_limit limit;
	uint64_t most = 0;

	weir_fleet_limit_init(&limit);
	if (tick % 10 == 0 && g->server_back == 0 &&
	    weir_fleet_inspect(g->store, "limit", &limit, NULL, NULL) == 0)
		g->capacity = limit.capacity;
	g->capacities[tick % HISTORY] = g->capacity;
	for (unsigned i = 0; i < HISTORY; i++)
		most = g->capacities[i] > most ? g->capacities[i] : most;
	return most;
}

static void run_faults(struct run *g, int fd, weir_dur time)
{
	const weir_time end = now() + time;
	weir_time checked = now() / BUCKET * BUCKET + BUCKET, next = now() + WEIR_S;

	for (unsigned long tick = 0; now() < end;) {
		sleep_ms(10);
		recover(g, fd);
		if (now() >= next) {
			disturb(g);
			next = now() + draw(&g->chance) % (2 * WEIR_S);
		}
		for (; checked + 3 * BUCKET < now(); checked += BUCKET) {
			const uint64_t later = (checked / BUCKET + BUCKETS / 2) % BUCKETS;

			check_second(g, checked, note_capacity(g, tick++));
			atomic_store(&board->admitted[later], 0);
			atomic_store(&board->changed[later], 0);
			atomic_store(&board->late[later], 0);
		}
	}
}

/* After the faults all members run, and use all units. */
static void calm_down(struct run *g, int fd)
{
	unsigned tries = 0;
	uint64_t sum;

	for (unsigned i = 0; i < MEMBERS; i++)
		g->stopped[i] = g->stopped[i] != 0 ? 1 : 0;
	g->calm[0] = g->calm[1] = 1;
	g->server_back = g->server_back != 0 ? 1 : 0;
	for (unsigned i = 0; i < MEMBERS; i++)
		g->back[i] = 1;
	recover(g, fd);
	while (weir_fleet_change(g->store, "limit", CAPACITY) != 0)
		sleep_ms(50);
	do {
		sum = 0;
		for (unsigned i = 0; i < MEMBERS; i++)
			sum += atomic_load(&board->units[i]);
		CHECK(++tries < 60000 / 10);
		sleep_ms(10);
	} while (sum < CAPACITY * 9 / 10);
}

static void open_direct(struct run *g)
{
	struct weir_store_config config;
	unsigned tries = 0;
	char why[256];

	weir_store_config_init(&config);
	config.address = g->direct;
	config.timeout = 500 * WEIR_MS;
	while (weir_store_open(&config, &g->store, why, sizeof(why)) != 0) {
		CHECK(++tries < 100);
		sleep_ms(100);
	}
}

static void set_up(struct run *g)
{
	if (strcmp(g->kind, "shm") == 0) {
		(void)snprintf(g->direct, sizeof(g->direct), "shm:/weir-faults-%d", (int)getpid());
		(void)shm_unlink(g->direct + 4);
	} else {
		server_start(&g->server, g->kind[0] == 'e'               ? SERVER_ETCD
					 : strcmp(g->kind, "redis") == 0 ? SERVER_REDIS
									 : SERVER_REDIS_DURABLE);
		g->remote = true;
		proxy_start(&g->proxies[0], g->server.port);
		proxy_start(&g->proxies[1], g->server.port);
		(void)snprintf(g->direct, sizeof(g->direct), "%s://127.0.0.1:%u",
			       g->kind[0] == 'e' ? "etcd" : "redis", g->server.port);
	}
	open_direct(g);
	wall_clock_begin(&g->wall);
}

static void tear_down(struct run *g)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		if (g->members[i] != 0)
			kill_member(g, i);
	weir_store_close(g->store);
	if (g->remote) {
		proxy_end(&g->proxies[0]);
		proxy_end(&g->proxies[1]);
		server_end(&g->server);
	} else {
		CHECK(shm_unlink(g->direct + 4) == 0);
	}
	wall_clock_end(&g->wall);
}

int main(int argc, char **argv)
{
	static struct run g;
	int fd;

	if (argc == 6 && strcmp(argv[1], "member") == 0)
		return be_member(argv);
	CHECK(argc >= 3);
	g = (struct run){.kind = argv[1], .capacity = CAPACITY};
	g.chance = 88172645463325252u + (argc > 3 ? strtoul(argv[3], NULL, 10) : 1) * 7919;
	fd = memfd_create("board", 0);
	CHECK(fd >= 0 && ftruncate(fd, sizeof(*board)) == 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(board != MAP_FAILED);
	for (unsigned i = 0; i < HISTORY; i++)
		g.capacities[i] = CAPACITY;
	set_up(&g);
	for (unsigned i = 0; i < MEMBERS; i++)
		start_member(&g, i, fd);
	run_faults(&g, fd, (weir_dur)(atof(argv[2]) * 60 * (double)WEIR_S));
	calm_down(&g, fd);
	tear_down(&g);
	printf("%s: %llu admitted, at most %llu in a second, %llu above the capacity where %llu may "
	       "be; %llu after the end of a lease, at most %llu in a second; %lu seconds checked at; "
	       "%lu stops, %lu kills, %lu times answers corrupted, server stopped %lu and killed %lu "
	       "times, %lu capacities, %lu clocks\n",
	       g.kind, (unsigned long long)atomic_load(&board->all_admitted),
	       (unsigned long long)g.most, (unsigned long long)g.worst,
	       (unsigned long long)g.allowed, (unsigned long long)atomic_load(&board->all_late),
	       (unsigned long long)g.worst_late, g.seconds, g.stops, g.kills, g.corrupted,
	       g.server_stops, g.server_kills, g.changes, g.clocks);
	return 0;
}
