/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost.c - time an admission by a rate or a limiter, with and without a share of a fleet's limit.
 * Each round measures every subject once and compares it with its counterpart without a share. The
 * fleet's thread refreshes every 100 ms meanwhile, fifty times as often as by default.
 */
#include "commands.h"
#include "meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/share_of_rate.h>
#include <weir/weir.h>

/* Units a second and permits that the loops cannot exceed. */
#define PLENTY (UINT64_C(1) << 36)
#define CALLS  100000

/* What is measured: a rate or a limiter, with or without a share. */
struct subject {
	const char *name;
	uint64_t (*loop)(const struct subject *s, uint64_t times);
	unsigned base; /* index of the subject to compare with */
	bool limits, shares;
	struct weir_rate *rate;
	struct weir_limiter *limiter;
	struct weir_fleet *fleet;
	struct weir_share *share;
	struct weir_share_rate pace;
	struct weir_share_limiter cap;
	double *ns, *ratio;
};

static uint64_t rate_loop(const struct subject *s, uint64_t times)
{
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++)
		refused += weir_rate_try(s->rate, 1) != 0;
	return refused;
}

static uint64_t rate_demand_loop(const struct subject *s, uint64_t times)
{
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		weir_share_demand_add(s->share, 1);
		refused += weir_rate_try(s->rate, 1) != 0;
	}
	return refused;
}

static uint64_t rate_asked_loop(const struct subject *s, uint64_t times)
{
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++)
		refused += weir_share_units(s->share) == 0 || weir_rate_try(s->rate, 1) != 0;
	return refused;
}

static uint64_t pair_loop(const struct subject *s, uint64_t times)
{
	struct weir_token token;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		if (weir_try_acquire(s->limiter, &token) != 0)
			refused++;
		else
			weir_release(s->limiter, &token, WEIR_SUCCESS);
	}
	return refused;
}

static uint64_t pair_asked_loop(const struct subject *s, uint64_t times)
{
	struct weir_token token;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		if (weir_share_units(s->share) == 0 || weir_try_acquire(s->limiter, &token) != 0)
			refused++;
		else
			weir_release(s->limiter, &token, WEIR_SUCCESS);
	}
	return refused;
}

static struct subject subjects[] = {
	{.name = "rate", .loop = rate_loop, .base = 0},
	{.name = "rate-pushed", .loop = rate_loop, .base = 0, .shares = true},
	{.name = "rate-demand", .loop = rate_demand_loop, .base = 0, .shares = true},
	{.name = "rate-asked", .loop = rate_asked_loop, .base = 0, .shares = true},
	{.name = "limiter", .loop = pair_loop, .base = 4, .limits = true},
	{.name = "limiter-pushed", .loop = pair_loop, .base = 4, .limits = true, .shares = true},
	{.name = "limiter-asked",
	 .loop = pair_asked_loop,
	 .base = 4,
	 .limits = true,
	 .shares = true},
};

#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

static void make_rate(struct subject *s)
{
	struct weir_rate_config config;

	weir_rate_config_init(&config);
	config.quotas[0].units = PLENTY / 2;
	must_do(weir_rate_create(&config, &s->rate), "weir_rate_create", "");
}

static void make_limiter(struct subject *s)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit_min = CALLS;
	must_do(weir_limiter_create(&config, &s->limiter), "weir_limiter_create", "");
}

static void join(struct subject *s)
{
	struct weir_fleet_config fleet;
	struct weir_share_config share;
	char why[256] = "";

	weir_fleet_config_init(&fleet);
	fleet.lease = 60 * WEIR_S; /* long enough for a busy machine */
	fleet.refresh = 100 * WEIR_MS;
	must_do(weir_fleet_open(&fleet, &s->fleet, why, sizeof(why)), "weir_fleet_open", why);
	weir_share_config_init(&share);
	share.name = "limit";
	share.capacity = PLENTY;
	if (s->limits)
		weir_share_of_limiter(&share, &s->cap, s->limiter);
	else
		must_do(weir_share_of_rate(&share, &s->pace, s->rate, 0, NULL),
			"weir_share_of_rate", "");
	share.wants = NULL;
	must_do(weir_share_join(s->fleet, &share, &s->share, why, sizeof(why)), "weir_share_join",
		why);
	must_do(weir_share_demand_set(s->share, PLENTY / 2), "weir_share_demand_set", "");
	must_do(weir_fleet_refresh(s->fleet), "weir_fleet_refresh", "");
}

static void make(struct subject *s, unsigned rounds)
{
	s->ns = must(calloc(rounds + 1, sizeof(*s->ns)));
	s->ratio = must(calloc(rounds + 1, sizeof(*s->ratio)));
	if (s->limits)
		make_limiter(s);
	else
		make_rate(s);
	if (s->shares)
		join(s);
	/* The share's pace takes effect in the next slot. */
	while (!s->limits && weir_rate_try(s->rate, 1) != 0)
		;
}

static void unmake(struct subject *s)
{
	weir_fleet_close(s->fleet);
	weir_rate_destroy(s->rate);
	weir_limiter_destroy(s->limiter);
	free(s->ns);
	free(s->ratio);
}

/* A refusal would be faster than an admission, so there must be none. */
static double measure(const struct subject *s, uint64_t times)
{
	const weir_time begin = weir_now();
	const uint64_t refused = s->loop(s, times);
	const weir_time end = weir_now();

	if (refused != 0) {
		fprintf(stderr, "weir-fleet-bench: %s refused %llu\n", s->name,
			(unsigned long long)refused);
		exit(EXIT_FAILURE);
	}
	return (double)(end - begin) / (double)times;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int cost_command(int argc, char **argv)
{
	const unsigned rounds = (unsigned)strtoul(argv[0], NULL, 10);
	const uint64_t times = strtoull(argv[1], NULL, 10);

	if (argc != 2 || rounds == 0 || times == 0)
		must_do(-1, "cost", "takes two numbers: rounds and times");
	for (unsigned i = 0; i < SUBJECTS; i++) {
		make(&subjects[i], rounds);
		(void)measure(&subjects[i], times);
	}
	for (unsigned round = 0; round < rounds; round++) {
		/* Once forwards and once backwards, so that no subject gains from its position. */
		for (unsigned i = 0; i < SUBJECTS; i++)
			subjects[i].ns[round] = measure(&subjects[i], times);
		for (unsigned i = SUBJECTS; i-- > 0;)
			subjects[i].ns[round] += measure(&subjects[i], times);
		for (unsigned i = 0; i < SUBJECTS; i++)
			subjects[i].ratio[round] = subjects[i].ns[round] /
						   subjects[subjects[i].base].ns[round];
	}
	printf("# %u rounds of twice %llu\n", rounds, (unsigned long long)times);
	printf("subject\tto\tmedian_ns\tratio\tratio_q1\tratio_q3\n");
	for (unsigned i = 0; i < SUBJECTS; i++) {
		struct subject *s = &subjects[i];

		qsort(s->ns, rounds, sizeof(double), ascending);
		qsort(s->ratio, rounds, sizeof(double), ascending);
		printf("%s\t%s\t%.1f\t%.3f\t%.3f\t%.3f\n", s->name, subjects[s->base].name,
		       s->ns[rounds / 2] / 2, s->ratio[rounds / 2], s->ratio[rounds / 4],
		       s->ratio[rounds * 3 / 4]);
	}
	for (unsigned i = 0; i < SUBJECTS; i++)
		unmake(&subjects[i]);
	return EXIT_SUCCESS;
}
