/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rate (lib/rate/rate.h): units taken and returned without a lock, terms that change meanwhile,
 * and waiters that must not be forgotten.
 *
 * Time adds units only after weeks here: a waiter that is served then was forgotten before.
 */

#include <errno.h>
#include <string.h>

#include <weir/rate.h>

#include "lib/rate/rate.h"
#include "tests/interleave/explore.h"

#define WEEKS (7 * 7 * 24 * 3600 * WEIR_S)

static struct weir_rate *rate;
static weir_time began;
static struct ghost held;   /* units that calls have taken and not returned */
static struct ghost served; /* waiters that were notified */
static struct weir_wait waiter;

/* A rate with that many units in each quota: the next ones come after weeks. */
static void create(unsigned quotas, uint64_t units)
{
	struct weir_rate_config config;

	weir_rate_config_init(&config);
	config.quota_count = quotas;
	config.queue = 2;
	config.slot = WEEKS;
	for (unsigned i = 0; i < quotas; i++)
		config.quotas[i] = (struct weir_quota){.units = units, .period = WEEKS};
	require(weir_rate_create(&config, &rate) == 0);
	began = explore_now();
	held = served = (struct ghost){0};
	waiter = (struct weir_wait){0};
	explore_name(&rate->taken[0], "taken[0]");
	explore_name(&rate->taken[1], "taken[1]");
	explore_name(&rate->waiting, "waiting");
	explore_name(&rate->version, "version");
	explore_name(&rate->lock, "lock");
}

static uint64_t available(unsigned quota)
{
	struct weir_rate_snapshot snapshot;

	weir_rate_snapshot_init(&snapshot);
	weir_rate_snapshot_take(rate, &snapshot);
	return snapshot.quotas[quota].available;
}

/* One unit, which is taken. */
static void setup_taken(void)
{
	create(1, 1);
	require(weir_rate_try(rate, 1) == 0);
	require(weir_rate_try(rate, 1) == -EAGAIN);
}

/* Two quotas of one unit. */
static void setup_pair(void)
{
	create(2, 1);
}

static void setup_second_taken(void)
{
	create(2, 1);
	require(weir_rate_try_for(rate, &(struct weir_cost){{0, 1}}) == 0);
}

/* One unit in each slot, of which many may be saved up; the first is taken. */
static void setup_slots(void)
{
	create(1, 1);
	require(weir_rate_set(rate, 0,
			      &(struct weir_quota){.units = 1, .period = WEEKS, .burst = 9}) == 0);
	require(weir_rate_try(rate, 1) == 0);
}

/* Two units, none taken. */
static void setup_free(void)
{
	create(1, 2);
}

static void wait_for_one(void)
{
	require(weir_rate_take(rate, 1, WEIR_FOREVER) == 0);
	require(explore_now() == began);
	ghost_add(&held, 1);
}

static void return_one(void)
{
	require(weir_rate_settle(rate, 0, 1, 0) == 0);
}

static void granted(void *arg)
{
	(void)arg;
	ghost_add(&served, 1);
	require(weir_rate_poll(rate, &waiter) == 0);
}

static void enqueue(void)
{
	const struct weir_cost cost = {{1}};

	require(weir_rate_enqueue(rate, &cost, granted, NULL, &waiter) == 0);
	(void)weir_rate_serve(rate);
}

/* A waiter that leaves may be served at the same moment: it has the unit, or returns it. */
static void enqueue_and_leave(void)
{
	const struct weir_cost cost = {{1}};
	struct weir_wait wait;
	int status;

	require(weir_rate_enqueue(rate, &cost, NULL, NULL, &wait) == 0);
	(void)weir_rate_serve(rate);
	status = weir_rate_cancel(rate, &wait);
	require(status == 0 || status == -EALREADY);
	if (status == -EALREADY)
		return_one();
}

/* Returns what it takes of the first quota, whether the second has something or not. */
static void take_of_both(void)
{
	if (weir_rate_try_for(rate, &(struct weir_cost){{1, 1}}) != 0)
		return;
	return_one();
	require(weir_rate_settle(rate, 1, 1, 0) == 0);
}

static void take_of_second(void)
{
	(void)!weir_rate_try_for(rate, &(struct weir_cost){{0, 1}});
}

static void try_one(void)
{
	if (weir_rate_try(rate, 1) == 0)
		require(ghost_add(&held, 1) <= 2);
}

static void try_and_return(void)
{
	if (weir_rate_try(rate, 1) != 0)
		return;
	require(ghost_add(&held, 1) <= 2);
	ghost_add(&held, -1);
	return_one();
}

static void lower_to_one(void)
{
	require(weir_rate_set(rate, 0, &(struct weir_quota){.units = 1, .period = WEEKS}) == 0);
}

static void raise_to_two(void)
{
	require(weir_rate_set(rate, 0, &(struct weir_quota){.units = 2, .period = WEEKS}) == 0);
}

/* A waiter that cannot be served, as the second quota has nothing, and leaves. */
static void enqueue_vainly_and_leave(void)
{
	const struct weir_cost cost = {{0, 1}};
	struct weir_wait wait;

	require(weir_rate_enqueue(rate, &cost, NULL, NULL, &wait) == 0);
	require(weir_rate_cancel(rate, &wait) == 0);
}

/*
 * In each of two slots that begin, the quota is set to what it is: its origin moves. Then all that is
 * left is taken.
 */
static void set_in_two_slots(void)
{
	const struct weir_quota quota = {.units = 1, .period = WEEKS, .burst = 9};

	for (int i = 0; i < 2; i++) {
		explore_pass(WEEKS);
		require(weir_rate_set(rate, 0, &quota) == 0);
	}
	while (weir_rate_try(rate, 1) == 0)
		ghost_add(&held, 1);
}

static void try_once(void)
{
	if (weir_rate_try(rate, 1) == 0)
		ghost_add(&held, 1);
}

static void check_two(void)
{
	require(ghost_get(&held) == 2 && available(0) == 0);
}

static void check_one_held(void)
{
	require(ghost_get(&held) == 1 && available(0) == 0);
}

static void check_served(void)
{
	require(explore_now() == began);
	require(ghost_get(&served) == 1 && available(0) == 0);
}

static void check_free(void)
{
	require(available(0) == 1);
}

static void check_nothing_gained(void)
{
	require(ghost_get(&held) + (long)available(0) <= 2);
	require(rate_waiting(rate) == 0);
}

static void check_all(void)
{
	require(ghost_get(&held) + (long)available(0) == 2);
}

static const struct scene scenes[] = {
	{
		.name = "rate.refund",
		.stale = 3, /* the waiter looks at what is left more than once */
		.claim = "a thread that waits is served by a unit that is returned",
		.no_timeouts = true,
		.setup = setup_taken,
		.threads = {wait_for_one, return_one},
		.check = check_one_held,
	},
	{
		.name = "rate.callback",
		.stale = 3,
		.claim = "a waiter without a thread is served by a unit that is returned",
		.no_timeouts = true,
		.setup = setup_taken,
		.threads = {enqueue, return_one},
		.check = check_served,
	},
	{
		.name = "rate.leave",
		.claim = "a waiter that leaves has the unit exactly if it was served first",
		.no_timeouts = true,
		.setup = setup_taken,
		.threads = {enqueue_and_leave, return_one},
		.check = check_free,
	},
	{
		.name = "rate.leave_to_next",
		.claim = "a unit passes from a waiter that leaves to the next one",
		.no_timeouts = true,
		.setup = setup_taken,
		.threads = {enqueue_and_leave, return_one, wait_for_one},
		.check = check_one_held,
	},
	{
		.name = "rate.leave_early",
		.claim = "a waiter is served when one before it leaves that could not be",
		.no_timeouts = true,
		.setup = setup_second_taken,
		.threads = {enqueue_vainly_and_leave, wait_for_one},
		.check = check_one_held,
	},
	{
		.name = "rate.undo",
		.claim = "a waiter is served by what a call returns that got one quota of two",
		.no_timeouts = true,
		.setup = setup_pair,
		.threads = {take_of_both, take_of_second, wait_for_one},
		.check = check_one_held,
	},
	{
		.name = "rate.take",
		.claim = "no unit is taken twice, and none is lost",
		.no_timeouts = true,
		.setup = setup_free,
		.threads = {try_and_return, try_and_return, try_one},
		.check = check_all,
	},
	{
		.name = "rate.terms",
		.claim = "no unit is gained while the quota changes",
		.no_timeouts = true,
		.setup = setup_free,
		.threads = {lower_to_one, try_one, try_one},
		.check = check_nothing_gained,
	},
	{
		.name = "rate.two_terms",
		.claim = "a reader of the terms sees no half of them, however often they change",
		.no_timeouts = true,
		.setup = setup_free,
		.threads = {lower_to_one, raise_to_two, try_one},
		.check = check_nothing_gained,
	},
	{
		.name = "rate.torn_terms",
		.claim = "no unit is gained by terms of which half are old",
		.no_timeouts = true,
		.setup = setup_slots,
		.threads = {set_in_two_slots, try_once},
		.check = check_two,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
