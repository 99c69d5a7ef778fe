/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry (lib/extra/registry.c): limiters are pinned, looked up and evicted while others
 * create theirs. It has room for one limiter, so each new key evicts the one before.
 */

#include <errno.h>
#include <string.h>

#include <weir/limits.h>
#include <weir/registry.h>

#include "tests/interleave/explore.h"

static struct weir_registry *registry;
static struct ghost in_use[2]; /* calls and pins of the limiter of each key */

static const char *const keys[] = {"a", "b"};

static void setup_for(uint32_t limiters)
{
	struct weir_config limiter;
	struct weir_registry_config config;

	weir_config_init(&limiter);
	limiter.limit = weir_limit_by_name("fixed");
	limiter.stripes = 1;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.max = limiters;
	require(weir_registry_create(&config, &registry) == 0);
	memset(in_use, 0, sizeof(in_use));
}

static void setup(void)
{
	setup_for(1);
}

static void setup_two(void)
{
	setup_for(2);
}

/* Pin a key's limiter, if there is room for it. Both keys share the only slot. */
static struct weir_limiter *pin(unsigned key)
{
	struct weir_limiter *limiter;
	const int status = weir_registry_get(registry, keys[key], 1, &limiter);

	require(status == 0 || status == -ENOSPC);
	if (status != 0)
		return NULL;
	ghost_add(&in_use[key], 1);
	require(ghost_get(&in_use[1 - key]) == 0);
	return limiter;
}

static void unpin(unsigned key, struct weir_limiter *limiter)
{
	ghost_add(&in_use[key], -1);
	weir_registry_put(registry, limiter);
}

static void use(unsigned key)
{
	struct weir_limiter *limiter = pin(key);

	if (limiter == NULL)
		return;
	explore_step();
	unpin(key, limiter);
}

static void use_a(void)
{
	use(0);
}

static void use_b(void)
{
	use(1);
}

/* A call outlasts the pin of its limiter: it is not evicted, and its key leads back to it. */
static void call_a(void)
{
	struct weir_limiter *limiter = pin(0), *again;
	struct weir_token token;

	if (limiter == NULL)
		return;
	require(weir_try_acquire(limiter, &token) == 0);
	weir_registry_put(registry, limiter);
	require(weir_registry_get(registry, keys[0], 1, &again) == 0 && again == limiter);
	weir_release(limiter, &token, WEIR_SUCCESS);
	unpin(0, limiter);
}

/* A call that begins during a visit, which leaves no trace of use. */
static bool begin_call(void *arg, const void *key, size_t key_len, struct weir_limiter *limiter)
{
	if (*(const char *)key != *keys[0])
		return true;
	require(key_len == 1 && weir_try_acquire(limiter, arg) == 0);
	ghost_add(&in_use[0], 1);
	return false;
}

static void visit(void)
{
	struct weir_token token = {0};
	struct weir_limiter *limiter;

	(void)weir_registry_visit(registry, begin_call, &token);
	if (ghost_get(&in_use[0]) == 0)
		return;
	require(weir_registry_get(registry, keys[0], 1, &limiter) == 0);
	weir_release(limiter, &token, WEIR_SUCCESS);
	unpin(0, limiter);
}

static void setup_made(void)
{
	struct weir_limiter *limiter;

	setup();
	require(weir_registry_get(registry, keys[0], 1, &limiter) == 0);
	weir_registry_put(registry, limiter);
}

static void check(void)
{
	struct weir_registry_stats stats;

	weir_registry_stats_init(&stats);
	weir_registry_stats_take(registry, &stats);
	require(stats.limiters <= 1 && stats.bad_puts == 0);
	require(weir_registry_destroy(registry) == 0);
}

static void check_same(void)
{
	struct weir_registry_stats stats;

	weir_registry_stats_init(&stats);
	weir_registry_stats_take(registry, &stats);
	require(stats.made == 1);
	check();
}

static const struct scene scenes[] = {
	{
		.name = "registry.pin",
		.claim = "a limiter that a thread has pinned is not evicted",
		.setup = setup,
		.threads = {use_a, use_b, use_a},
		.check = check,
	},
	{
		.name = "registry.call",
		.claim = "a limiter with a call in flight is not evicted, and is found by its key",
		.setup = setup,
		.threads = {call_a, use_b},
		.check = check,
	},
	{
		.name = "registry.visit",
		.claim = "a limiter in which a visitor began a call is not evicted",
		.setup = setup_made,
		.threads = {visit, use_b},
		.check = check,
	},
	{
		.name = "registry.publish",
		.claim = "a thread that finds a new limiter sees all of it",
		.setup = setup,
		.threads = {call_a, call_a},
		.check = check,
	},
	{
		.name = "registry.same",
		.claim = "two threads that ask for a new key get one limiter",
		.setup = setup_two,
		.threads = {use_a, use_a},
		.check = check_same,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
