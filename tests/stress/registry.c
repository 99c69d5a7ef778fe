/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads get and put more keys than there may be limiters.
 *
 *   stress-registry [ROUNDS [THREADS]]
 *
 * ROUNDS is the number of gets in all, including refused ones.
 *
 * The limit of each limiter identifies the key it was made for, so it is detected at once if a
 * limiter is reused for another key while a thread still uses it. Checked meanwhile: a thread that
 * has a key pinned gets the same limiter for it again; a limiter that is no longer pinned, but has
 * a call in flight, is still there when its key is requested again. Checked at the end: nothing is
 * in flight, no pins are left, and all limiters made and refused are counted.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "check.h"

#define KEYS  48
#define MAX   16
#define LIMIT 1000 /* of key 0; one more for each further key */

static struct weir_registry *registry;
static atomic_bool done;

struct worker {
	_Alignas(128) uint64_t seed;
	uint64_t rounds; /* rounds to do */
	uint64_t refused;
};

struct key {
	char name[24];
	uint32_t limit;
};

static struct key key_of(uint64_t number)
{
	struct key key = {.limit = LIMIT + (uint32_t)number};

	snprintf(key.name, sizeof(key.name), "host-%u.example.net", (unsigned)number);
	return key;
}

static struct weir_limiter *get(const struct key *key)
{
	struct weir_limiter *limiter;
	int r = weir_registry_get(registry, key->name, strlen(key->name), &limiter);

	CHECK(r == 0 || r == -ENOSPC);
	CHECK((r == 0) == (limiter != NULL));
	CHECK(r != 0 || weir_limit(limiter) == key->limit);
	return limiter;
}

/* Find the limiter that is pinned. */
static void find(const struct key *key, const struct weir_limiter *expected)
{
	struct weir_limiter *limiter;

	CHECK(weir_registry_find(registry, key->name, strlen(key->name), &limiter) == 0);
	CHECK(limiter == expected);
	weir_registry_put(registry, limiter);
}

static void pause_at_times(struct worker *w)
{
	if (draw(&w->seed) % 32 == 0)
		sched_yield();
}

/* A call, during which the limiter may be put and got again. */
static void call(struct worker *w, const struct key *key, struct weir_limiter *limiter)
{
	struct weir_token token;

	CHECK(weir_try_acquire(limiter, &token) == 0);
	if (draw(&w->seed) % 4 == 0) {
		weir_registry_put(registry, limiter);
		pause_at_times(w);
		CHECK(get(key) == limiter);
	}
	pause_at_times(w);
	CHECK(weir_inflight(limiter) > 0);
	CHECK(weir_limit(limiter) == key->limit);
	weir_release(limiter, &token, WEIR_SUCCESS);
	weir_registry_put(registry, limiter);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; i < w->rounds; i++) {
		/* Some keys are used more often than others. */
		struct key key = key_of(draw(&w->seed) % (1 + draw(&w->seed) % KEYS));
		struct weir_limiter *limiter = get(&key);

		if (limiter == NULL) {
			w->refused++;
			sched_yield();
			continue;
		}
		pause_at_times(w);
		find(&key, limiter);
		call(w, &key, limiter);
	}
	return NULL;
}

static bool visit(void *arg, const void *key, size_t key_len, struct weir_limiter *limiter)
{
	unsigned number;
	char name[24] = "";

	(*(uint64_t *)arg)++;
	CHECK(key_len < sizeof(name));
	memcpy(name, key, key_len);
	number = (unsigned)strtoul(name + strlen("host-"), NULL, 10);
	CHECK(weir_limit(limiter) == LIMIT + number);
	return true;
}

static void *watch(void *arg)
{
	struct weir_registry_stats s;

	weir_registry_stats_init(&s);
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		CHECK(weir_registry_visit(registry, visit, arg) <= MAX);
		weir_registry_stats_take(registry, &s);
		CHECK(s.limiters <= MAX && s.made - s.evicted == s.limiters);
		usleep(100);
	}
	return NULL;
}

static int customize(void *arg, const void *key, size_t key_len, struct weir_config *config)
{
	static const char prefix[] = "host-";
	char number[24] = "";
	uint32_t limit = LIMIT;

	(void)arg;
	CHECK(key_len > strlen(prefix) && key_len < sizeof(number));
	memcpy(number, (const char *)key + strlen(prefix), key_len - strlen(prefix));
	limit += (uint32_t)strtoul(number, NULL, 10);
	config->limit_min = limit;
	config->limit_max = limit;
	return 0;
}

static void make_registry(void)
{
	struct weir_registry_config config;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.stripes = 2;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.customize = customize;
	config.max = MAX;
	CHECK(weir_registry_create(&config, &registry) == 0);
}

static bool nothing_in_flight(void *arg, const void *key, size_t key_len,
			      struct weir_limiter *limiter)
{
	(void)arg;
	(void)key;
	(void)key_len;
	CHECK(weir_inflight(limiter) == 0);
	return true;
}

static void settle_accounts(const struct worker *workers, unsigned threads, uint64_t visited)
{
	struct weir_registry_stats s;
	uint64_t refused = 0;

	for (unsigned i = 0; i < threads; i++)
		refused += workers[i].refused;
	weir_registry_stats_init(&s);
	weir_registry_stats_take(registry, &s);
	CHECK(weir_registry_visit(registry, nothing_in_flight, NULL) == s.limiters);
	CHECK(s.refused == refused);
	CHECK(s.bad_puts == 0);
	CHECK(s.made - s.evicted == s.limiters);
	printf("made %llu, evicted %llu, refused %llu, visited %llu\n", (unsigned long long)s.made,
	       (unsigned long long)s.evicted, (unsigned long long)s.refused,
	       (unsigned long long)visited);
	CHECK(weir_registry_destroy(registry) == 0);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;
	static struct worker workers[THREADS_MAX];
	struct crew crew;
	pthread_t watcher;
	uint64_t visited = 0;

	if (threads < 1 || threads > THREADS_MAX || rounds < threads) {
		fprintf(stderr, "stress-registry: 1 to %d threads, at least one round each\n",
			THREADS_MAX);
		return 2;
	}
	make_registry();
	for (unsigned i = 0; i < threads; i++)
		workers[i] = (struct worker){
			.seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15),
			.rounds = rounds / threads,
		};
	CHECK(pthread_create(&watcher, NULL, watch, &visited) == 0);
	crew_start(&crew, threads, work, (char *)workers, sizeof(workers[0]));
	crew_join(&crew);
	atomic_store_explicit(&done, true, memory_order_relaxed);
	CHECK(pthread_join(watcher, NULL) == 0);
	settle_accounts(workers, threads, visited);
	return 0;
}
