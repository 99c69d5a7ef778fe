/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settle.c - how soon many members of one limit have what they want, in real time, and what that
 * costs the store. All are in one process, with a connection for each thread, and make the requests
 * of as many processes.
 *
 * The store is used before, until it has learned.
 *
 * join    all join at once; until each has what it wants
 * steady  nothing changes
 * swap    half of the members want less, the others as much more: there is no more than they want
 *         together, so each that grows waits for another one to shrink
 * change  each wants something else at each refresh
 */
#include "commands.h"
#include "meter.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define THREADS  16
#define LEASE    3 /* refreshes, as by default */
#define LOW      5
#define HIGH     15
#define LOOK     (50 * WEIR_MS)
#define PATIENCE 24 /* refreshes, for members that do not settle */
#define MEASURED 4  /* the same */

struct member {
	struct weir_fleet *fleet;
	struct weir_share *share;
	weir_time next, redraw;
	uint64_t wants;
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock; /* of the wants of its members */
	struct weir_store *store;
	struct meter meter;
	struct member *members;
	unsigned count;
	uint64_t chance;
};

static struct settle {
	struct count count;
	unsigned members;
	bool allocated;
	const char *address;
	long pid; /* of the store's server; 0: not known */
	weir_dur refresh;
	_Atomic bool changing, ending;
	struct worker workers[THREADS];
} settle;

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

static void sleep_until(weir_time time)
{
	const struct timespec t = {.tv_sec = (time_t)(time / WEIR_S),
				   .tv_nsec = (long)(time % WEIR_S)};

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static void want(struct member *m, uint64_t wants)
{
	m->wants = wants;
	must_do(weir_share_demand_set(m->share, wants), "want", "");
}

static struct member *next_of(const struct worker *w)
{
	struct member *first = &w->members[0];

	for (unsigned i = 1; i < w->count; i++)
		if (w->members[i].next < first->next)
			first = &w->members[i];
	return first;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (w->count > 0 && !settle.ending) {
		struct member *m = next_of(w);
		const weir_time soon = now() + LOOK;

		if (m->next > soon) {
			sleep_until(soon);
			continue;
		}
		sleep_until(m->next);
		pthread_mutex_lock(&w->lock);
		if (settle.changing && now() >= m->redraw) {
			want(m, LOW + draw(&w->chance) % (HIGH - LOW + 1));
			m->redraw = now() + settle.refresh;
		}
		m->next = weir_fleet_step(m->fleet);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static void enter(struct worker *w, struct member *m, const char *limit)
{
	struct weir_fleet_config fleet;
	struct weir_share_config share;
	char why[256] = "";

	weir_fleet_config_init(&fleet);
	fleet.store = &w->meter.store;
	fleet.manual = 1;
	fleet.refresh = settle.refresh;
	fleet.lease = fleet.learning = LEASE * settle.refresh;
	must_do(weir_fleet_open(&fleet, &m->fleet, why, sizeof(why)), "weir_fleet_open", why);
	weir_share_config_init(&share);
	share.name = limit;
	share.capacity = (uint64_t)(LOW + HIGH) * ((settle.members + 1) / 2);
	share.allocated = settle.allocated;
	must_do(weir_share_join(m->fleet, &share, &m->share, why, sizeof(why)), "join", why);
	m->next = now();
}

static struct weir_store *open_store(void)
{
	struct weir_store_config config;
	struct weir_store *store;
	char why[256] = "";

	weir_store_config_init(&config);
	config.address = strcmp(settle.address, "memory") == 0 ? NULL : settle.address;
	config.timeout = 20 * WEIR_S;
	config.shm_bytes = (size_t)64 << 20;
	config.compact = 60 * WEIR_S;
	must_do(weir_store_open(&config, &store, why, sizeof(why)), settle.address, why);
	return store;
}

static void open_stores(void)
{
	const bool shared = strcmp(settle.address, "memory") == 0;

	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &settle.workers[i];

		w->chance = 88172645463325252u + i;
		w->store = i > 0 && shared ? settle.workers[0].store : open_store();
		w->meter = meter_of(w->store, &settle.count, NULL);
		must_do(-pthread_mutex_init(&w->lock, NULL), "a mutex", "");
	}
}

/* Until the store is known to have forgotten no lease: a member of another limit has a share. */
static void warm_up(void)
{
	struct member m;

	enter(&settle.workers[0], &m, "warm-up");
	want(&m, 1);
	while (weir_share_units(m.share) == 0) {
		sleep_until(m.next);
		m.next = weir_fleet_step(m.fleet);
	}
	weir_fleet_close(m.fleet);
}

static void set_up(void)
{
	unsigned index = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &settle.workers[i];

		w->count = settle.members / THREADS + (i < settle.members % THREADS);
		w->members = must(calloc(w->count + 1, sizeof(*w->members)));
		for (unsigned j = 0; j < w->count; j++) {
			enter(w, &w->members[j], "settle");
			want(&w->members[j], index++ % 2 == 0 ? LOW : HIGH);
		}
	}
	for (unsigned i = 0; i < THREADS; i++)
		must_do(-pthread_create(&settle.workers[i].thread, NULL, work, &settle.workers[i]),
			"a thread", "");
}

static void tear_down(void)
{
	const bool shared = strcmp(settle.address, "memory") == 0;

	settle.ending = true;
	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &settle.workers[i];

		pthread_join(w->thread, NULL);
		for (unsigned j = 0; j < w->count; j++)
			weir_fleet_close(w->members[j].fleet);
		free(w->members);
	}
	for (unsigned i = 0; i < (shared ? 1 : THREADS); i++)
		weir_store_close(settle.workers[i].store);
}

/* Processor time of the server, in seconds; 0 if it is not known. */
static double server_time(void)
{
	unsigned long user, system;
	char path[64], text[512] = "";
	const char *at;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", settle.pid);
	file = settle.pid != 0 ? fopen(path, "r") : NULL;
	if (file == NULL)
		return 0;
	(void)!fgets(text, sizeof(text), file);
	fclose(file);
	at = strrchr(text, ')');
	if (at == NULL || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
				 &user, &system) != 2)
		return 0;
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double own_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* How many members have what they want. Exits if they use more than there is. */
static unsigned settled(void)
{
	uint64_t sum = 0;
	unsigned count = 0;

	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned j = 0; j < settle.workers[i].count; j++) {
			const struct member *m = &settle.workers[i].members[j];
			const uint64_t units = weir_share_units(m->share);

			sum += units;
			count += units == m->wants;
		}
	if (sum > (uint64_t)(LOW + HIGH) * ((settle.members + 1) / 2))
		must_do(-ERANGE, "the shares add up to more than the capacity", "");
	return count;
}

struct begun {
	weir_time at;
	double server, own;
};

static struct begun start(void)
{
	count_clear(&settle.count);
	return (struct begun){now(), server_time(), own_time()};
}

/* refreshes: until all are settled; 0: that was not looked for. */
static void print(const char *phase, const struct begun *b, unsigned count, bool until)
{
	const double seconds = (double)(now() - b->at) / (double)WEIR_S;
	const struct count *c = &settle.count;

	printf("%s\t%u\t", phase, settle.members);
	if (until)
		printf("%.2f\t", seconds * (double)WEIR_S / (double)settle.refresh);
	else
		printf("-\t");
	printf("%u\t%.3f\t%.3f\t%.0f\t%.1f\t%.1f\t%.1f\n", count,
	       (server_time() - b->server) / seconds, (own_time() - b->own) / seconds,
	       (double)(c->keeps + c->reads + c->commits) / seconds, (double)c->commits / seconds,
	       (double)c->sent / 1e3 / seconds, (double)c->got / 1e3 / seconds);
	fflush(stdout);
}

static void wait_settled(const char *phase, const struct begun *b)
{
	unsigned count = settled();

	while (count < settle.members && now() < b->at + PATIENCE * settle.refresh) {
		sleep_until(now() + LOOK);
		count = settled();
	}
	print(phase, b, count, true);
}

static void measure(const char *phase)
{
	const struct begun b = start();

	sleep_until(now() + MEASURED * settle.refresh);
	print(phase, &b, settled(), false);
}

static void swap(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		struct worker *w = &settle.workers[i];

		pthread_mutex_lock(&w->lock);
		for (unsigned j = 0; j < w->count; j++)
			want(&w->members[j], LOW + HIGH - w->members[j].wants);
		pthread_mutex_unlock(&w->lock);
	}
}

static void take_option(const char *name, const char *value)
{
	if (strcmp(name, "--members") == 0)
		settle.members = (unsigned)strtoul(value, NULL, 10);
	else if (strcmp(name, "--store") == 0)
		settle.address = value;
	else if (strcmp(name, "--pid") == 0)
		settle.pid = strtol(value, NULL, 10);
	else if (strcmp(name, "--allocated") == 0)
		settle.allocated = strcmp(value, "0") != 0;
	else if (strcmp(name, "--refresh") == 0)
		settle.refresh = strtoul(value, NULL, 10) * WEIR_S;
	else
		must_do(-EINVAL, name,
			"is not --members, --store, --pid, --allocated or --refresh");
}

int settle_command(int argc, char **argv)
{
	struct begun b;

	settle.allocated = true;
	settle.refresh = 5 * WEIR_S;
	for (int i = 0; i + 1 < argc; i += 2)
		take_option(argv[i], argv[i + 1]);
	if (settle.members < 2 || settle.address == NULL)
		must_do(-EINVAL, "settle", "--members N, from 2 on, and --store are required");
	printf("phase\tmembers\trefreshes\tsettled\tstore_cpu\tmembers_cpu\trequests_s\tcommits_s\t"
	       "sent_kB_s\tgot_kB_s\n");
	open_stores();
	warm_up();
	b = start();
	set_up();
	wait_settled("join", &b);
	measure("steady");
	b = start();
	swap();
	wait_settled("swap", &b);
	settle.changing = true;
	measure("change");
	tear_down();
	return EXIT_SUCCESS;
}
