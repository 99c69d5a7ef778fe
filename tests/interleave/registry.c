/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry (lib/extra/registry.c): limiters are looked up, pinned, made, and evicted. There is
 * room for one limiter, so the limiters of two keys are in the same memory, one after the other: a
 * caller that is left with an evicted one shows as a data race, too.
 *
 * Concurrency Kit's map is not explored: what it does between two comparisons is one step.
 */

#include <errno.h>
#include <string.h>

#include <weir/registry.h>
#include <weir/weir.h>

#include "tests/interleave/explore.h"

static struct weir_registry *registry;
static struct ghost users[2]; /* of the limiter of each key: threads that have it pinned */

static const char *const keys[] = {"a", "b"};

static void setup(void)
{
	static const struct weir_settable_config one = {.initial = 1};
	struct weir_registry_config config;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_settable;
	limiter.limit_config = &one;
	limiter.queue = 1;
	limiter.stripes = 1;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.max = 1;
	require(weir_registry_create(&config, &registry) == 0);
	users[0] = users[1] = (struct ghost){0};
}

/* The limiter of that key, pinned. NULL: the other one is in use. */
static struct weir_limiter *get(unsigned key)
{
	struct weir_limiter *limiter;
	const int r = weir_registry_get(registry, keys[key], 1, &limiter);

	require(r == 0 || r == -ENOSPC);
	if (r != 0)
		return NULL;
	ghost_add(&users[key], 1);
	require(ghost_get(&users[1 - key]) == 0);
	return limiter;
}

/* The same for a limiter that a call still uses, so that it cannot be evicted. */
static struct weir_limiter *find_used(unsigned key)
{
	struct weir_limiter *limiter;

	require(weir_registry_find(registry, keys[key], 1, &limiter) == 0);
	ghost_add(&users[key], 1);
	require(ghost_get(&users[1 - key]) == 0);
	return limiter;
}

static void put(unsigned key, struct weir_limiter *limiter)
{
	ghost_add(&users[key], -1);
	weir_registry_put(registry, limiter);
}

static void setup_made(void)
{
	struct weir_limiter *limiter;

	setup();
	limiter = get(0);
	put(0, limiter);
}

/* Make a call and end it, with the limiter pinned. */
static void call(unsigned key)
{
	struct weir_limiter *limiter = get(key);
	struct weir_token token;

	if (limiter == NULL)
		return;
	if (weir_try_acquire(limiter, &token) == 0)
		weir_release(limiter, &token, WEIR_IGNORE);
	put(key, limiter);
}

static void call_a(void)
{
	call(0);
}

static void call_b(void)
{
	call(1);
}

/* Use no more of a limiter than that it is there. */
static void look_at_b(void)
{
	struct weir_limiter *limiter = get(1);

	if (limiter != NULL)
		put(1, limiter);
}

/* registry.flight: a call is in flight while its limiter is not pinned. */

static void call_unpinned(void)
{
	struct weir_limiter *limiter = get(0);
	struct weir_token token;

	if (limiter == NULL)
		return;
	require(weir_try_acquire(limiter, &token) == 0);
	put(0, limiter);
	limiter = find_used(0);
	weir_release(limiter, &token, WEIR_IGNORE);
	put(0, limiter);
}

/* registry.shadow: a waiter passes in shadow mode, and is polled and ends unpinned. */

static void setup_shadow(void)
{
	struct weir_limiter *limiter;

	setup();
	limiter = get(0);
	require(weir_limit_cap(limiter, 0) == 0);
	weir_shadow_set(limiter, true);
	put(0, limiter);
}

static void pass_unpinned(void)
{
	struct weir_limiter *limiter = get(0);
	struct weir_token token;
	struct weir_wait wait;

	if (limiter == NULL)
		return;
	if (weir_enqueue(limiter, NULL, NULL, &wait) != 0) {
		put(0, limiter);
		return;
	}
	put(0, limiter);
	limiter = find_used(0);
	require(weir_poll(limiter, &wait, &token) == 0);
	put(0, limiter);
	limiter = find_used(0);
	weir_release(limiter, &token, WEIR_IGNORE);
	put(0, limiter);
}

/* registry.visit: a visitor leaves a call in flight. */

static bool acquire_in_visit(void *arg, const void *key, size_t size, struct weir_limiter *limiter)
{
	struct weir_token *token = arg;

	require(size == 1);
	require(weir_try_acquire(limiter, token) == 0);
	if (*(const char *)key != *keys[0])
		weir_release(limiter, token, WEIR_IGNORE);
	return true;
}

static void visit_and_release(void)
{
	struct weir_token token = {0};
	struct weir_limiter *limiter;

	(void)weir_registry_visit(registry, acquire_in_visit, &token);
	if (token.state == 0)
		return;
	limiter = find_used(0);
	weir_release(limiter, &token, WEIR_IGNORE);
	put(0, limiter);
}

static void check_done(void)
{
	struct weir_registry_stats stats;

	weir_registry_stats_init(&stats);
	weir_registry_stats_take(registry, &stats);
	require(stats.limiters == 1 && stats.bad_puts == 0);
	require(weir_registry_destroy(registry) == 0);
}

static void check_made_once(void)
{
	struct weir_registry_stats stats;

	weir_registry_stats_init(&stats);
	weir_registry_stats_take(registry, &stats);
	require(stats.made == 1 && stats.refused == 0);
	check_done();
}

static const struct scene scenes[] = {
	{
		.name = "registry.same",
		.claim = "two threads that look for the same key get the same limiter",
		.setup = setup,
		.threads = {call_a, call_a},
		.check = check_made_once,
		.preemptions = 3,
	},
	{
		.name = "registry.evict",
		.claim = "no limiter is evicted while a thread has it pinned",
		.setup = setup_made,
		.threads = {call_a, call_b},
		.check = check_done,
		.preemptions = 3,
	},
	{
		.name = "registry.flight",
		.claim = "no limiter is evicted while a call is in flight",
		.setup = setup_made,
		.threads = {call_unpinned, look_at_b},
		.check = check_done,
		.preemptions = 3,
	},
	{
		.name = "registry.visit",
		.claim = "no limiter is evicted under a visitor, or with a call that it began",
		.setup = setup_made,
		.threads = {visit_and_release, look_at_b},
		.check = check_done,
		.preemptions = 3,
	},
	{
		.name = "registry.shadow",
		.claim = "no limiter is evicted while a waiter that passed has not ended",
		.setup = setup_shadow,
		.threads = {pass_unpinned, look_at_b},
		.check = check_done,
		.preemptions = 3,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
