/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random gets, puts and calls on a registry. Each result is compared with a simple reference model:
 * a list of keys, and a clock hand that goes round it.
 */

#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

#include "random.h"

#define SEEDS 60
#define STEPS 6000
#define KEYS  14
#define MAX   5
#define CALLS 4 /* most calls in flight in one limiter */

/* A key, as the test uses it. */
struct user {
	struct weir_limiter *limiter; /* the last result of a get */
	struct weir_token calls[CALLS];
	uint32_t inflight;
	uint32_t pins;
};

/* An entry of the reference model. */
struct place {
	bool used; /* since the hand last passed */
	int key;   /* -1: none */
	uint64_t admitted;
};

struct rig {
	uint64_t seed, random;
	struct weir_registry *registry;
	struct user users[KEYS];
	struct place places[MAX];
	uint32_t hand;
	uint64_t made, evicted, refused, bad_puts;
};

static struct place *twin_find(struct rig *rig, int key)
{
	for (uint32_t i = 0; i < MAX; i++)
		if (rig->places[i].key == key)
			return &rig->places[i];
	return NULL;
}

static struct place *twin_make_room(struct rig *rig)
{
	for (uint32_t step = 0; step < 2 * MAX; step++) {
		struct place *p = &rig->places[rig->hand];

		rig->hand = (rig->hand + 1) % MAX;
		if (p->key < 0)
			return p;
		if (rig->users[p->key].pins > 0)
			continue;
		if (p->used && step < MAX) {
			p->used = false;
			continue;
		}
		p->used = false;
		if (rig->users[p->key].inflight > 0)
			continue;
		rig->evicted++;
		return p;
	}
	return NULL;
}

/* The expected result of a get: an entry, or NULL. */
static struct place *twin_get(struct rig *rig, int key)
{
	struct place *p = twin_find(rig, key);

	if (p == NULL) {
		p = twin_make_room(rig);
		if (p == NULL) {
			rig->refused++;
			return NULL;
		}
		*p = (struct place){.key = key};
		rig->made++;
	}
	p->used = true;
	rig->users[key].pins++;
	return p;
}

/* A name with a length that depends on the key. */
static size_t name_of(int key, char name[KEYS])
{
	memset(name, 'a' + key % 3, (size_t)key);
	return (size_t)key;
}

static void get(struct rig *rig, int key)
{
	struct user *user = &rig->users[key];
	struct place *expected = twin_get(rig, key);
	struct weir_limiter *limiter;
	char name[KEYS];
	int r = weir_registry_get(rig->registry, name, name_of(key, name), &limiter);

	cr_assert_eq(r, expected != NULL ? 0 : -ENOSPC, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(limiter == NULL, expected == NULL);
	if (expected == NULL)
		return;
	if (user->pins > 1 || user->inflight > 0)
		cr_assert_eq(limiter, user->limiter, "seed %lu", (unsigned long)rig->seed);
	user->limiter = limiter;
}

static void put(struct rig *rig, int key)
{
	struct user *user = &rig->users[key];

	if (user->limiter == NULL)
		return;
	/* A put without a pin is an error, unless another key now has the same memory. */
	if (user->pins > 0) {
		user->pins--;
	} else {
		for (uint32_t i = 0; i < KEYS; i++)
			if (rig->users[i].pins > 0 && rig->users[i].limiter == user->limiter)
				return;
		rig->bad_puts++;
	}
	weir_registry_put(rig->registry, user->limiter);
}

static void find(struct rig *rig, int key)
{
	struct place *expected = twin_find(rig, key);
	struct weir_limiter *limiter;
	char name[KEYS];
	int r = weir_registry_find(rig->registry, name, name_of(key, name), &limiter);

	cr_assert_eq(r, expected != NULL ? 0 : -ENOENT, "seed %lu", (unsigned long)rig->seed);
	if (expected == NULL)
		return;
	expected->used = true;
	rig->users[key].limiter = limiter;
	rig->users[key].pins++;
}

static void begin_call(struct rig *rig, int key)
{
	struct user *user = &rig->users[key];

	if (user->pins == 0 || user->inflight == CALLS)
		return;
	cr_assert_eq(weir_try_acquire_at(user->limiter, 1, &user->calls[user->inflight++]), 0);
	twin_find(rig, key)->admitted++;
}

static void end_call(struct rig *rig, int key)
{
	struct user *user = &rig->users[key];

	if (user->pins == 0 || user->inflight == 0)
		return;
	weir_release_at(user->limiter, 2, &user->calls[--user->inflight], WEIR_SUCCESS);
}

static bool compare_one(void *arg, const void *key, size_t key_len, struct weir_limiter *limiter)
{
	struct rig *rig = arg;
	struct place *p = twin_find(rig, (int)key_len);
	struct weir_snapshot s;
	char name[KEYS];

	cr_assert_not_null(p, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(name_of(p->key, name), key_len);
	cr_assert_arr_eq(key, name, key_len);
	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	cr_assert_eq(s.admitted, p->admitted, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.inflight, rig->users[p->key].inflight);
	return true;
}

static void compare(struct rig *rig)
{
	struct weir_registry_stats s;
	uint32_t limiters = 0;

	for (uint32_t i = 0; i < MAX; i++)
		limiters += rig->places[i].key >= 0;
	weir_registry_stats_init(&s);
	weir_registry_stats_take(rig->registry, &s);
	cr_assert_eq(s.limiters, limiters, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.made, rig->made, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.evicted, rig->evicted, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.refused, rig->refused, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(s.bad_puts, rig->bad_puts, "seed %lu", (unsigned long)rig->seed);
	cr_assert_eq(weir_registry_visit(rig->registry, compare_one, rig), limiters);
}

static void step(struct rig *rig)
{
	int key = (int)below(&rig->random, KEYS);

	switch (below(&rig->random, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		get(rig, key);
		break;
	case 4:
		find(rig, key);
		break;
	case 5:
	case 6:
		begin_call(rig, key);
		break;
	case 7:
	case 8:
	case 9:
		end_call(rig, key);
		break;
	default:
		put(rig, key);
		break;
	}
	compare(rig);
}

static void let_go(struct rig *rig)
{
	for (int key = 0; key < KEYS; key++)
		while (rig->users[key].pins > 0)
			put(rig, key);
}

Test(registry, matches_the_reference_model)
{
	uint64_t refused = 0, evicted = 0, bad_puts = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		static struct rig rig;
		struct weir_registry_config config;

		rig = (struct rig){.seed = seed, .random = seed};
		for (uint32_t i = 0; i < MAX; i++)
			rig.places[i].key = -1;
		weir_registry_config_init(&config);
		config.max = MAX;
		cr_assert_eq(weir_registry_create(&config, &rig.registry), 0);
		for (uint32_t i = 0; i < STEPS; i++)
			step(&rig);
		let_go(&rig);
		cr_assert_eq(weir_registry_destroy(rig.registry), 0);
		refused += rig.refused;
		evicted += rig.evicted;
		bad_puts += rig.bad_puts;
	}
	cr_assert(refused > 1000 && evicted > 1000 && bad_puts > 1000, "%lu, %lu, %lu",
		  (unsigned long)refused, (unsigned long)evicted, (unsigned long)bad_puts);
}
