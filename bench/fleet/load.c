/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.c - the load that members of a limit put on a store, in real time. Each refreshes every 5 s,
 * the default, or at the given interval: first with demands that change each time, which causes the
 * most writes, then with steady demands. All are in one process, with a connection for each thread.
 */
#include "commands.h"
#include "meter.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS   16
#define REFRESH   5 /* seconds */
#define LEASE     6 /* refreshes, as by default */
#define WANTS_MAX 20
#define WARM_UP   1.5           /* refreshes: every member has refreshed once */
#define COMPACT   (60 * WEIR_S) /* history of etcd */
#define CALM_MAX  20            /* most warm-ups until there are no more writes */

struct member {
	struct weir_fleet *fleet;
	struct weir_share *share;
	weir_time due;
};

struct worker {
	pthread_t thread;
	struct weir_store *store;
	struct meter meter;
	struct member *members;
	unsigned count;
	uint64_t chance;
	/* Results. */
	uint64_t refreshes, failures;
	weir_dur took;
};

static struct load {
	struct count count;
	unsigned members;
	weir_dur refresh;
	char name[32]; /* of the limit; a limit left in the store has the same number of members */
	bool changing;
	weir_time end;
	struct worker workers[THREADS];
} load;

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

static weir_dur pause_of(struct worker *w)
{
	return load.refresh / 10 * 8 + draw(&w->chance) % (load.refresh / 2);
}

static void sleep_until(weir_time time)
{
	const struct timespec t = {.tv_sec = (time_t)(time / WEIR_S),
				   .tv_nsec = (long)(time % WEIR_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static struct member *next_of(const struct worker *w)
{
	struct member *first = &w->members[0];

	for (unsigned i = 1; i < w->count; i++)
		if (w->members[i].due < first->due)
			first = &w->members[i];
	return first;
}

static void refresh(struct worker *w, struct member *m)
{
	const weir_time begin = weir_now();

	if (load.changing)
		must_do(weir_share_demand_set(m->share, 1 + draw(&w->chance) % WANTS_MAX), "want",
			"");
	w->failures += weir_fleet_refresh(m->fleet) != 0;
	w->took += weir_now() - begin;
	w->refreshes++;
	m->due = begin + pause_of(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	w->refreshes = w->failures = w->took = 0;
	while (w->count > 0) {
		struct member *m = next_of(w);

		if (m->due >= load.end)
			break;
		sleep_until(m->due);
		refresh(w, m);
	}
	return NULL;
}

static void enter(struct worker *w, struct member *m)
{
	struct weir_fleet_config fleet;
	struct weir_share_config share;
	char why[256] = "";

	weir_fleet_config_init(&fleet);
	fleet.store = &w->meter.store;
	fleet.lease = fleet.learning = LEASE * load.refresh;
	fleet.refresh = load.refresh;
	fleet.manual = 1;
	must_do(weir_fleet_open(&fleet, &m->fleet, why, sizeof(why)), "weir_fleet_open", why);
	weir_share_config_init(&share);
	share.name = load.name;
	share.capacity = (uint64_t)WANTS_MAX * load.members;
	must_do(weir_share_join(m->fleet, &share, &m->share, why, sizeof(why)), "weir_share_join",
		why);
	must_do(weir_share_demand_set(m->share, 1), "weir_share_demand_set", "");
	m->due = weir_now() + draw(&w->chance) % load.refresh;
}

static void open_store(const char *address, struct weir_store **store)
{
	struct weir_store_config config;
	char why[256] = "";

	weir_store_config_init(&config);
	config.address = strcmp(address, "memory") == 0 ? NULL : address;
	config.timeout = 20 * WEIR_S;
	config.shm_bytes = (size_t)64 << 20;
	config.compact = COMPACT;
	must_do(weir_store_open(&config, store, why, sizeof(why)), address, why);
}

/* All threads share a store in memory; of others, each thread opens its own. */
static void set_up(const char *address)
{
	const bool shared = strcmp(address, "memory") == 0;

	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &load.workers[i];

		*w = (struct worker){.chance = 88172645463325252u + i};
		if (i > 0 && shared)
			w->store = load.workers[0].store;
		else
			open_store(address, &w->store);
		w->meter = meter_of(w->store, &load.count, NULL);
		w->count = load.members / THREADS + (i < load.members % THREADS);
		w->members = must(calloc(w->count + 1, sizeof(*w->members)));
		for (unsigned j = 0; j < w->count; j++)
			enter(w, &w->members[j]);
	}
}

static void tear_down(const char *address)
{
	const bool shared = strcmp(address, "memory") == 0;

	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &load.workers[i];

		for (unsigned j = 0; j < w->count; j++)
			weir_fleet_close(w->members[j].fleet);
		free(w->members);
	}
	for (unsigned i = 0; i < THREADS; i++)
		if (i == 0 || !shared)
			weir_store_close(load.workers[i].store);
}

/* Run for some seconds, and print the results if said. */
static void run(const char *store, double seconds, bool said)
{
	const weir_time begin = weir_now();
	uint64_t refreshes = 0, failures = 0;
	weir_dur took = 0;
	double real;

	count_clear(&load.count);
	load.end = begin + (weir_dur)(seconds * (double)WEIR_S);
	for (unsigned i = 0; i < THREADS; i++)
		must_do(pthread_create(&load.workers[i].thread, NULL, work, &load.workers[i]),
			"a thread", "");
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(load.workers[i].thread, NULL);
		refreshes += load.workers[i].refreshes;
		failures += load.workers[i].failures;
		took += load.workers[i].took;
	}
	real = (double)(weir_now() - begin) / (double)WEIR_S;
	if (!said || refreshes == 0)
		return;
	printf("%s\t%s\t%u\t%.0f\t%.2f\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%llu\n", store,
	       load.changing ? "changing" : "steady", load.members,
	       (double)load.refresh / (double)WEIR_S, (double)refreshes / real,
	       (double)load.count.reads / (double)refreshes,
	       (double)(load.count.keeps + load.count.reads + load.count.commits) / real,
	       (double)load.count.commits / real, (double)load.count.sent / 1e3 / real,
	       (double)load.count.got / 1e3 / real,
	       (double)took / (double)refreshes / (double)WEIR_MS, (unsigned long long)failures);
	fflush(stdout);
}

static void check_sum(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	must_do(weir_fleet_inspect(load.workers[0].store, load.name, &limit, NULL, NULL), "look",
		"");
	if (limit.granted > limit.capacity)
		must_do(-ERANGE, "the shares add up to more than the capacity", "");
}

/* Parse MEMBERS[@SECONDS]: the number of members, and their interval of refreshes. */
static void take_members(const char *text)
{
	char *end;
	double seconds = REFRESH;

	load.members = (unsigned)strtoul(text, &end, 10);
	if (*end == '@')
		seconds = strtod(end + 1, &end);
	if (*end != '\0' || load.members == 0 || !(seconds >= 1))
		must_do(-EINVAL, text, "is not MEMBERS or MEMBERS@SECONDS");
	load.refresh = (weir_dur)(seconds * (double)WEIR_S);
	(void)snprintf(load.name, sizeof(load.name), "limit-%u", load.members);
}

/* Run until all members have what they want. */
static void calm_down(const char *store, double warm_up)
{
	load.changing = false;
	for (unsigned i = 0; i < CALM_MAX; i++) {
		run(store, warm_up, false);
		if (atomic_load(&load.count.commits) == 0)
			return;
	}
}

int load_command(int argc, char **argv)
{
	const double seconds = strtod(argv[1], NULL);
	char store[16] = "";

	(void)sscanf(argv[0], "%15[a-z]", store);
	printf("store\twants\tmembers\teach_s\trefreshes_s\tattempts\trequests_s\tcommits_s\tsent_kB_s\t"
	       "got_kB_s\trefresh_ms\tfailures\n");
	for (int i = 2; i < argc; i++) {
		double warm_up;

		take_members(argv[i]);
		warm_up = WARM_UP * (double)load.refresh / (double)WEIR_S;
		if (warm_up > seconds)
			warm_up = seconds;
		set_up(argv[0]);
		load.changing = true;
		run(store, warm_up, false);
		run(store, seconds, true);
		check_sum();
		calm_down(store, warm_up);
		run(store, seconds, true);
		tear_down(argv[0]);
	}
	return EXIT_SUCCESS;
}
