/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry: which key gets which limiter, which limiter is evicted, and which misuse is caught.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <weir/weir.h>

static struct weir_registry *make(const struct weir_registry_config *config)
{
	struct weir_registry *r;

	cr_assert_eq(weir_registry_create(config, &r), 0);
	return r;
}

static struct weir_registry *make_small(uint32_t max)
{
	struct weir_registry_config config;

	weir_registry_config_init(&config);
	config.max = max;
	return make(&config);
}

static int get(struct weir_registry *r, const char *key, struct weir_limiter **l)
{
	return weir_registry_get(r, key, strlen(key), l);
}

static struct weir_limiter *got(struct weir_registry *r, const char *key)
{
	struct weir_limiter *l;

	cr_assert_eq(get(r, key, &l), 0, "%s", key);
	return l;
}

/* Get a limiter once, and put it. */
static void touch(struct weir_registry *r, const char *key)
{
	weir_registry_put(r, got(r, key));
}

static bool is_there(struct weir_registry *r, const char *key)
{
	struct weir_limiter *l;
	int error = weir_registry_find(r, key, strlen(key), &l);

	cr_assert(error == 0 || error == -ENOENT);
	cr_assert_eq(l == NULL, error != 0);
	if (error == 0)
		weir_registry_put(r, l);
	return error == 0;
}

static struct weir_registry_stats stats_of(struct weir_registry *r)
{
	struct weir_registry_stats s;

	weir_registry_stats_init(&s);
	weir_registry_stats_take(r, &s);
	return s;
}

static void end(struct weir_registry *r)
{
	cr_assert_eq(stats_of(r).bad_puts, 0);
	cr_assert_eq(weir_registry_destroy(r), 0);
}

Test(registry, a_key_has_one_limiter_and_another_key_another)
{
	struct weir_registry *r = make(NULL);
	struct weir_limiter *a = got(r, "alpha"), *b = got(r, "beta"), *again = got(r, "alpha");
	struct weir_registry_stats s = stats_of(r);

	cr_assert(a == again && a != b);
	cr_assert(s.limiters == 2 && s.made == 2 && s.evicted == 0 && s.refused == 0);
	weir_registry_put(r, a);
	weir_registry_put(r, a);
	weir_registry_put(r, b);
	end(r);
}

Test(registry, a_key_is_bytes)
{
	static const char zeros[4];
	unsigned char longest[WEIR_KEY_MAX + 1], other[WEIR_KEY_MAX];
	struct weir_registry *r = make(NULL);
	struct weir_limiter *l, *m;

	memset(longest, 0xff, sizeof(longest));
	memcpy(other, longest, sizeof(other));
	other[WEIR_KEY_MAX - 1] = 0;
	for (size_t len = 0; len <= sizeof(zeros); len++) {
		cr_assert_eq(weir_registry_get(r, zeros, len, &l), 0);
		weir_registry_put(r, l);
		cr_assert_eq(stats_of(r).made, len + 1);
	}
	cr_assert_eq(weir_registry_get(r, NULL, 0, &l), 0);
	weir_registry_put(r, l);
	cr_assert_eq(weir_registry_get(r, longest, WEIR_KEY_MAX, &l), 0);
	cr_assert_eq(weir_registry_get(r, other, WEIR_KEY_MAX, &m), 0);
	cr_assert_neq(l, m);
	weir_registry_put(r, l);
	weir_registry_put(r, m);
	cr_assert_eq(stats_of(r).made, 7);
	cr_assert_eq(weir_registry_get(r, longest, WEIR_KEY_MAX + 1, &l), -EINVAL);
	cr_assert_null(l);
	cr_assert_eq(weir_registry_get(r, NULL, 1, &l), -EINVAL);
	cr_assert_eq(weir_registry_find(r, longest, WEIR_KEY_MAX + 1, &l), -EINVAL);
	cr_assert_eq(stats_of(r).refused, 0);
	end(r);
}

Test(registry, keys_of_every_length_differ_by_every_byte)
{
	struct weir_registry *r = make_small(40000);
	unsigned char key[WEIR_KEY_MAX] = {0};
	uint64_t made = 0;
	struct weir_limiter *l;

	for (size_t len = 1; len <= WEIR_KEY_MAX; len++) {
		for (size_t i = 0; i < len; i++) {
			key[i] = 0x80;
			cr_assert_eq(weir_registry_get(r, key, len, &l), 0);
			weir_registry_put(r, l);
			made++;
			cr_assert_eq(weir_registry_find(r, key, len, &l), 0);
			weir_registry_put(r, l);
			key[i] = 0;
		}
	}
	cr_assert_eq(stats_of(r).made, made);
	end(r);
}

Test(registry, find_creates_nothing)
{
	struct weir_registry *r = make(NULL);

	cr_assert_not(is_there(r, "alpha"));
	cr_assert_eq(stats_of(r).made, 0);
	cr_assert_eq(stats_of(r).refused, 0);
	touch(r, "alpha");
	cr_assert(is_there(r, "alpha"));
	cr_assert_not(is_there(r, "alph"));
	end(r);
}

static struct weir_registry *make_from_what_will_be_gone(void)
{
	struct weir_fixed_config fixed = {.limit = 7};
	struct weir_registry_config config;
	struct weir_registry *r;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.limit_config = &fixed;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	r = make(&config);
	memset(&fixed, 0xff, sizeof(fixed));
	memset(&limiter, 0xff, sizeof(limiter));
	memset(&config, 0xff, sizeof(config));
	return r;
}

Test(registry, the_configuration_is_copied)
{
	struct weir_registry *r = make_from_what_will_be_gone();
	struct weir_limiter *l = got(r, "alpha");

	cr_assert_eq(weir_limit(l), 7);
	weir_registry_put(r, l);
	end(r);
}

static uint32_t limit_of(struct weir_registry *r, const char *key)
{
	struct weir_limiter *l = got(r, key);
	uint32_t limit = weir_limit(l);

	weir_registry_put(r, l);
	return limit;
}

Test(registry, a_configuration_of_another_version_is_copied_as_far_as_it_is_known)
{
	struct weir_gradient_config gradient = {.initial = 33, .min = 2, .max = 30};
	struct weir_random random = {.next = NULL};
	struct weir_registry_config config;
	struct weir_config limiter;
	struct weir_registry *r;

	weir_config_init(&limiter);
	limiter.limit = &weir_gradient;
	limiter.limit_config = &gradient;
	limiter.limit_config_size = offsetof(struct weir_gradient_config, max);
	limiter.stripes = 1;
	limiter.random = &random;
	limiter.size = offsetof(struct weir_config, random);
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	r = make(&config);
	cr_assert_eq(limit_of(r, "alpha"), 33);
	end(r);
	/* A newer program's: what is behind the configuration that is known is left. */
	gradient.max = 50;
	limiter.limit_config_size = WEIR_LIMIT_CONFIG_MAX + 1;
	r = make(&config);
	cr_assert_eq(limit_of(r, "alpha"), 33);
	end(r);
}

/*
 * small: a limit of 3. odd: another limit's defaults. five: another limit with its own
 * configuration. big: more memory. bad: an invalid configuration.
 */
static int customize(void *arg, const void *key, size_t key_len, struct weir_config *config)
{
	static const struct weir_settable_config three = {.initial = 3};
	static const struct weir_fixed_config five = {.limit = 5};

	(*(unsigned *)arg)++;
	if (key_len == 3 && memcmp(key, "odd", 3) == 0)
		config->limit = &weir_fixed;
	if (key_len == 4 && memcmp(key, "five", 4) == 0) {
		config->limit = &weir_fixed;
		config->limit_config = &five;
	}
	if (key_len == 3 && memcmp(key, "big", 3) == 0)
		config->queue = 1000;
	if (key_len == 3 && memcmp(key, "bad", 3) == 0)
		config->quantile = 2;
	if (key_len == 5 && memcmp(key, "small", 5) == 0)
		config->limit_config = &three;
	if (key_len == 7 && memcmp(key, "unknown", 7) == 0)
		return -EACCES;
	return key_len == 8 && memcmp(key, "positive", 8) == 0 ? 1 : 0;
}

static struct weir_registry *make_custom(unsigned *calls, size_t limiter_size)
{
	struct weir_settable_config settable = {.initial = 50};
	struct weir_registry_config config;
	struct weir_config limiter;

	weir_config_init(&limiter);
	limiter.limit = &weir_settable;
	limiter.limit_config = &settable;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.customize = customize;
	config.arg = calls;
	config.limiter_size = limiter_size;
	return make(&config);
}

Test(registry, a_key_may_be_configured_individually)
{
	unsigned calls = 0;
	struct weir_registry *r = make_custom(&calls, 0);

	cr_assert_eq(limit_of(r, "usual"), 50);
	cr_assert_eq(limit_of(r, "small"), 3);
	cr_assert_eq(limit_of(r, "odd"), 20, "a limit is not given another one's configuration");
	cr_assert_eq(limit_of(r, "five"), 5);
	cr_assert_eq(limit_of(r, "usual"), 50);
	cr_assert_eq(calls, 4, "once for each limiter");
	end(r);
}

Test(registry, a_key_may_be_refused)
{
	unsigned calls = 0;
	struct weir_registry *r = make_custom(&calls, 0);
	struct weir_limiter *l;

	cr_assert_eq(get(r, "unknown", &l), -EACCES);
	cr_assert_null(l);
	cr_assert_eq(get(r, "positive", &l), -EINVAL);
	cr_assert_eq(get(r, "bad", &l), -EINVAL);
	cr_assert_eq(get(r, "big", &l), -EINVAL, "limiter_size has no room for a queue");
	cr_assert_eq(stats_of(r).refused, 4);
	cr_assert_eq(stats_of(r).limiters, 0);
	end(r);
}

Test(registry, big_limiters_fit_if_limiter_size_allows)
{
	unsigned calls = 0;
	struct weir_registry *r;
	struct weir_config big;
	struct weir_limiter *l;
	struct weir_wait wait;
	struct weir_token token;

	weir_config_init(&big);
	big.queue = 1000;
	r = make_custom(&calls, weir_limiter_size(&big));
	l = got(r, "big");
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_poll(l, &wait, &token), 0);
	weir_release(l, &token, WEIR_SUCCESS);
	weir_registry_put(r, l);
	end(r);
}

Test(registry, a_registry_full_of_pinned_limiters_refuses)
{
	struct weir_registry *r = make_small(2);
	struct weir_limiter *a = got(r, "a"), *b = got(r, "b"), *c;

	cr_assert_eq(get(r, "c", &c), -ENOSPC);
	cr_assert_null(c);
	cr_assert_eq(stats_of(r).refused, 1);
	weir_registry_put(r, a);
	c = got(r, "c");
	cr_assert(!is_there(r, "a") && is_there(r, "b") && is_there(r, "c"));
	cr_assert_eq(get(r, "a", &a), -ENOSPC);
	weir_registry_put(r, b);
	weir_registry_put(r, c);
	cr_assert(stats_of(r).made == 3 && stats_of(r).evicted == 1 && stats_of(r).limiters == 2);
	end(r);
}

Test(registry, a_limiter_with_a_call_in_flight_stays)
{
	struct weir_registry *r = make_small(1);
	struct weir_limiter *a = got(r, "a"), *b;
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(a, &token), 0);
	weir_registry_put(r, a);
	cr_assert_eq(get(r, "b", &b), -ENOSPC);
	cr_assert_eq(got(r, "a"), a);
	weir_release(a, &token, WEIR_SUCCESS);
	weir_registry_put(r, a);
	touch(r, "b");
	cr_assert_not(is_there(r, "a"));
	end(r);
}

Test(registry, a_limiter_with_a_waiting_call_stays)
{
	struct weir_settable_config settable = {.initial = 1};
	struct weir_registry_config config;
	struct weir_config limiter;
	struct weir_registry *r;
	struct weir_limiter *a, *b;
	struct weir_token token;
	struct weir_wait wait;

	weir_config_init(&limiter);
	limiter.limit = &weir_settable;
	limiter.limit_config = &settable;
	limiter.queue = 100;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.max = 1;
	r = make(&config);
	a = got(r, "a");
	cr_assert_eq(weir_try_acquire(a, &token), 0);
	cr_assert_eq(weir_enqueue(a, NULL, NULL, &wait), 0);
	weir_registry_put(r, a);
	cr_assert_eq(get(r, "b", &b), -ENOSPC);
	cr_assert_eq(got(r, "a"), a);
	weir_release(a, &token, WEIR_SUCCESS); /* and now the waiter has it */
	weir_registry_put(r, a);
	cr_assert_eq(get(r, "b", &b), -ENOSPC);
	cr_assert_eq(got(r, "a"), a);
	cr_assert_eq(weir_poll(a, &wait, &token), 0);
	weir_release(a, &token, WEIR_SUCCESS);
	weir_registry_put(r, a);
	touch(r, "b");
	end(r);
}

/* In shadow mode waiters are let through: then none waits, and nothing is in flight. */
Test(registry, a_limiter_with_a_call_let_through_stays)
{
	struct weir_settable_config settable = {.initial = 1};
	struct weir_registry_config config;
	struct weir_config limiter;
	struct weir_registry *r;
	struct weir_limiter *a, *b;
	struct weir_token token;
	struct weir_wait wait;

	weir_config_init(&limiter);
	limiter.limit = &weir_settable;
	limiter.limit_config = &settable;
	limiter.queue = 1;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.max = 1;
	r = make(&config);
	a = got(r, "a");
	cr_assert_eq(weir_try_acquire(a, &token), 0);
	cr_assert_eq(weir_enqueue(a, NULL, NULL, &wait), 0);
	weir_shadow_set(a, true);
	weir_release(a, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(a) + weir_waiting(a), 0);
	weir_registry_put(r, a);
	cr_assert_eq(get(r, "b", &b), -ENOSPC, "it has an entry in the queue");
	cr_assert_eq(got(r, "a"), a);
	cr_assert_eq(weir_poll(a, &wait, &token), 0);
	weir_registry_put(r, a);
	cr_assert_eq(get(r, "b", &b), -ENOSPC, "it has not ended");
	cr_assert_eq(got(r, "a"), a);
	weir_release(a, &token, WEIR_SUCCESS);
	weir_registry_put(r, a);
	touch(r, "b");
	end(r);
}

Test(registry, the_least_recently_used_limiter_is_evicted)
{
	struct weir_registry *r = make_small(4);

	touch(r, "a");
	touch(r, "b");
	touch(r, "c");
	touch(r, "d");
	touch(r, "e"); /* evicts a, the first of all that are marked; the others lose their mark */
	cr_assert_not(is_there(r, "a"));
	touch(r, "b");
	touch(r, "d");
	touch(r, "f");
	cr_assert_not(is_there(r, "c"));
	cr_assert(is_there(r, "b") && is_there(r, "d") && is_there(r, "e") && is_there(r, "f"));
	end(r);
}

Test(registry, an_evicted_limiter_starts_afresh)
{
	struct weir_registry *r = make_small(1);
	struct weir_limiter *a = got(r, "a");
	struct weir_snapshot s;
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(a, &token), 0);
	weir_release(a, &token, WEIR_SUCCESS);
	weir_registry_put(r, a);
	touch(r, "b");
	a = got(r, "a");
	weir_snapshot_init(&s);
	weir_snapshot_take(a, &s);
	cr_assert(s.admitted == 0 && s.inflight == 0);
	weir_registry_put(r, a);
	cr_assert_eq(stats_of(r).evicted, 2);
	end(r);
}

Test(registry, thousands_come_and_go)
{
	struct weir_registry *r = make_small(64);
	char key[16];

	for (unsigned i = 0; i < 50000; i++) {
		snprintf(key, sizeof(key), "%u", i);
		touch(r, key);
		cr_assert(is_there(r, key));
	}
	cr_assert_not(is_there(r, "1"));
	cr_assert_eq(stats_of(r).limiters, 64);
	cr_assert_eq(stats_of(r).made, 50000);
	end(r);
}

Test(registry, an_extra_put_is_caught_and_harmless)
{
	struct weir_registry *r = make_small(2), *other = make_small(2);
	struct weir_limiter *a = got(r, "a"), *foreign = got(other, "a"), *alone;

	cr_assert_eq(weir_limiter_create(NULL, &alone), 0);
	weir_registry_put(r, NULL);
	weir_registry_put(r, alone);
	weir_registry_put(r, foreign);
	weir_registry_put(r, (struct weir_limiter *)(void *)((char *)a + WEIR_ALIGN));
	weir_registry_put(r, (struct weir_limiter *)(void *)((char *)a + 1));
	cr_assert_eq(stats_of(r).bad_puts, 5);
	weir_registry_put(r, a);
	weir_registry_put(r, a);
	cr_assert_eq(stats_of(r).bad_puts, 6);

	cr_assert_eq(got(r, "a"), a);
	touch(r, "b");
	touch(r, "c");
	cr_assert(is_there(r, "a"), "its pin has been counted right");
	weir_registry_put(r, a);
	touch(r, "d");
	touch(r, "e");
	weir_registry_put(r, a); /* for a limiter that no longer exists */
	cr_assert_eq(stats_of(r).bad_puts, 7);
	cr_assert_eq(weir_registry_destroy(r), 0);
	weir_registry_put(other, foreign);
	end(other);
	weir_limiter_destroy(alone);
}

Test(registry, pins_do_not_overflow)
{
	struct weir_registry *r = make_small(1);
	struct weir_limiter *a = got(r, "a"), *l;

	for (uint32_t i = 1; i < (1u << 24) - 1; i++)
		if (get(r, "a", &l) != 0 || l != a)
			cr_assert_fail("pin %u", i);
	cr_assert_eq(get(r, "a", &l), -EOVERFLOW);
	cr_assert_null(l);
	weir_registry_put(r, a);
	cr_assert_eq(get(r, "a", &l), 0);
	cr_assert_eq(weir_registry_destroy(r), -EBUSY);
	for (uint32_t i = 0; i < (1u << 24) - 1; i++)
		weir_registry_put(r, a);
	end(r);
}

Test(registry, a_pinned_registry_cannot_be_destroyed)
{
	struct weir_registry *r = make(NULL);
	struct weir_limiter *a = got(r, "a");

	cr_assert_eq(weir_registry_destroy(r), -EBUSY);
	cr_assert_eq(got(r, "a"), a);
	weir_registry_put(r, a);
	cr_assert_eq(weir_registry_destroy(r), -EBUSY);
	weir_registry_put(r, a);
	end(r);
	cr_assert_eq(weir_registry_destroy(NULL), 0);
}

struct tour {
	struct weir_registry *r;
	char keys[8][8];
	unsigned count, stop;
	bool make;
};

static bool visit(void *arg, const void *key, size_t key_len, struct weir_limiter *limiter)
{
	struct tour *tour = arg;
	struct weir_limiter *l;

	memcpy(tour->keys[tour->count++], key, key_len);
	cr_assert_eq(weir_registry_find(tour->r, key, key_len, &l), 0);
	cr_assert_eq(l, limiter);
	weir_registry_put(tour->r, l);
	cr_assert(stats_of(tour->r).limiters > 0);
	for (unsigned i = 0; tour->make && i < 6; i++) {
		char other[8];

		snprintf(other, sizeof(other), "new%u", i);
		touch(tour->r, other);
	}
	cr_assert_eq(weir_registry_find(tour->r, key, key_len, &l), 0, "it is pinned");
	weir_registry_put(tour->r, l);
	return tour->count < tour->stop;
}

Test(registry, a_visit_sees_each_once)
{
	struct weir_registry *r = make_small(4);
	struct tour tour = {.r = r, .stop = 8};

	cr_assert_eq(weir_registry_visit(r, visit, &tour), 0);
	touch(r, "");
	touch(r, "b");
	touch(r, "seven77");
	cr_assert_eq(weir_registry_visit(r, visit, &tour), 3);
	cr_assert_str_eq(tour.keys[0], "");
	cr_assert_str_eq(tour.keys[1], "b");
	cr_assert_str_eq(tour.keys[2], "seven77");
	tour = (struct tour){.r = r, .stop = 2};
	cr_assert_eq(weir_registry_visit(r, visit, &tour), 2);
	end(r);
}

Test(registry, a_visitor_may_create_limiters)
{
	struct weir_registry *r = make_small(2);
	struct tour tour = {.r = r, .stop = 8, .make = true};

	touch(r, "a");
	touch(r, "b");
	cr_assert_eq(weir_registry_visit(r, visit, &tour), 2);
	end(r);
}

static bool look(void *arg, const void *key, size_t key_len, struct weir_limiter *limiter)
{
	(void)arg, (void)key, (void)key_len, (void)limiter;
	return true;
}

Test(registry, a_visit_does_not_count_as_use)
{
	struct weir_registry *r = make_small(3);

	touch(r, "a");
	touch(r, "b");
	touch(r, "c");
	touch(r, "d"); /* evicts a; now b and c have lost their mark */
	touch(r, "b");
	cr_assert_eq(weir_registry_visit(r, look, NULL), 3);
	touch(r, "e");
	cr_assert_not(is_there(r, "c"));
	cr_assert(is_there(r, "b") && is_there(r, "d"));
	end(r);
}

Test(registry, bad_configurations_are_explained)
{
	struct weir_random random = {.next = NULL};
	struct weir_registry_config config;
	struct weir_registry *r;
	struct weir_config limiter;
	char why[100];

	weir_config_init(&limiter);
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.max = WEIR_REGISTRY_MAX + 1;
	cr_assert_eq(weir_registry_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "max is 1048577, above 1048576.");
	cr_assert_eq(weir_registry_create(&config, &r), -EINVAL);
	cr_assert_null(r);
	config.max = 1;
	config.limiter_size = 100;
	cr_assert_eq(weir_registry_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_eq(strncmp(why, "limiter_size is 100, but a limiter needs ", 41), 0, "%s", why);
	config.limiter_size = 0;
	limiter.random = &random;
	cr_assert_eq(weir_registry_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_eq(strncmp(why, "One random source ", 18), 0, "%s", why);
	limiter.random = NULL;
	limiter.quantile = 2;
	cr_assert_eq(weir_registry_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "quantile is 2, not between 0 and 1.");
	limiter.quantile = 0;
	cr_assert_eq(weir_registry_config_check(&config, why, sizeof(why)), 0);
	config.size = 0;
	cr_assert_eq(weir_registry_config_check(&config, NULL, 0), -EINVAL);
	config.size = sizeof(config) + 1;
	cr_assert_eq(weir_registry_config_check(&config, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "The program was built for a newer library.");
	cr_assert_eq(weir_registry_config_check(NULL, NULL, 0), 0);
}

Test(registry, too_large_a_registry_is_out_of_memory)
{
	struct weir_registry_config config;
	struct weir_registry *r;

	weir_registry_config_init(&config);
	config.max = WEIR_REGISTRY_MAX;
	config.limiter_size = (size_t)1 << 40;
	cr_assert_eq(weir_registry_create(&config, &r), -ENOMEM);
	config.limiter_size = SIZE_MAX;
	cr_assert_eq(weir_registry_create(&config, &r), -ENOMEM);
	config.limiter_size = SIZE_MAX / 4;
	cr_assert_eq(weir_registry_create(&config, &r), -ENOMEM);
	/* Two of some of these sizes just fit into SIZE_MAX, and the registry itself does not. */
	config.max = 2;
	for (size_t less = 0; less < 4096; less += WEIR_ALIGN) {
		config.limiter_size = SIZE_MAX / 2 - less;
		cr_assert_eq(weir_registry_create(&config, &r), -ENOMEM, "%zu", less);
	}
	cr_assert_null(r);
}

Test(registry, an_older_program_gets_the_stats_it_knows)
{
	struct weir_registry *r = make(NULL);
	struct weir_registry_stats s;

	memset(&s, 0xaa, sizeof(s));
	weir_registry_stats_init_sized(&s, offsetof(struct weir_registry_stats, evicted));
	touch(r, "a");
	weir_registry_stats_take(r, &s);
	cr_assert(s.limiters == 1 && s.made == 1);
	cr_assert_eq(s.evicted, UINT64_C(0xaaaaaaaaaaaaaaaa));
	end(r);
}
