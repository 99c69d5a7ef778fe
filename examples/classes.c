/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Classes of traffic: guaranteed shares, and priorities within them.
 *
 * A service can process 40 calls at once, each in about 20 ms, and is offered almost twice its
 * capacity: by buyers, with a share of 60 %; by a batch job, which wants far more than its 30 %;
 * and by crawlers, which get the rest. Among the buyers, those at the till have a higher priority
 * than those who browse. The example simulates ten seconds, so it takes no time and has a fixed
 * result: the fraction of each class that was served.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#define LIMIT  40
#define LENGTH (10 * WEIR_S)
#define TICK   (100 * WEIR_US)

struct traffic {
	const char *name, *partition;
	int16_t priority;
	unsigned per_second;
	struct weir_call call;
	unsigned offered, served;
};

static struct traffic traffic[] = {
	{.name = "buyers, at the till", .partition = "buyers", .priority = 10, .per_second = 600},
	{.name = "buyers, browsing", .partition = "buyers", .per_second = 1200},
	{.name = "batch job", .partition = "batch", .per_second = 1500},
	{.name = "crawlers", .partition = "crawlers", .per_second = 500},
};
#define KINDS (sizeof(traffic) / sizeof(traffic[0]))

/* A call that has been admitted, and the time of its end. */
struct call {
	struct weir_token token;
	weir_time end; /* 0: there is none */
};

static struct weir_limiter *make_limiter(void)
{
	static const struct weir_partition partitions[] = {
		{.name = "buyers", .share = 0.6},
		{.name = "batch", .share = 0.3, .cap = 0.5},
		{.name = "crawlers"},
	};
	const struct weir_fixed_config fixed = {.limit = LIMIT};
	struct weir_limiter *limiter;
	struct weir_config config;
	char why[160];

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	config.partitions = partitions;
	config.partition_count = 3;
	config.shed = 1;
	if (weir_config_check(&config, why, sizeof(why)) != 0) {
		fprintf(stderr, "classes: %s\n", why);
		return NULL;
	}
	return weir_limiter_create(&config, &limiter) == 0 ? limiter : NULL;
}

static unsigned draw(void)
{
	static unsigned long long state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33);
}

static void arrive(struct weir_limiter *limiter, struct traffic *t, struct call *calls,
		   weir_time now)
{
	struct weir_token token;
	unsigned i = 0;

	t->offered++;
	if (weir_try_acquire_for_at(limiter, &t->call, now, &token) != 0)
		return;
	t->served++;
	while (calls[i].end != 0)
		i++;
	calls[i] = (struct call){token, now + 10 * WEIR_MS + draw() % (20 * WEIR_MS)};
}

static void simulate(struct weir_limiter *limiter)
{
	struct call calls[LIMIT] = {{.end = 0}};

	for (weir_time now = WEIR_S; now < WEIR_S + LENGTH; now += TICK) {
		for (unsigned i = 0; i < LIMIT; i++)
			if (calls[i].end != 0 && calls[i].end <= now) {
				weir_release_at(limiter, now, &calls[i].token, WEIR_SUCCESS);
				calls[i].end = 0;
			}
		for (unsigned k = 0; k < KINDS; k++)
			if (draw() % (WEIR_S / TICK) < traffic[k].per_second)
				arrive(limiter, &traffic[k], calls, now);
	}
}

int main(void)
{
	struct weir_limiter *limiter = make_limiter();
	double part[KINDS];

	if (limiter == NULL)
		return EXIT_FAILURE;
	/* Look up the indices of the names once. */
	for (unsigned k = 0; k < KINDS; k++)
		traffic[k].call = (struct weir_call){
			.partition = weir_partition_find(limiter, traffic[k].partition),
			.priority = traffic[k].priority,
		};
	simulate(limiter);

	for (unsigned k = 0; k < KINDS; k++) {
		part[k] = traffic[k].served / (double)traffic[k].offered;
		printf("%-20s %5u offered, %5u served: %3.0f %%\n", traffic[k].name,
		       traffic[k].offered, traffic[k].served, 100 * part[k]);
	}
	for (unsigned i = 0; i < weir_partition_count(limiter); i++) {
		struct weir_partition_snapshot s;

		weir_partition_snapshot_init(&s);
		if (weir_partition_snapshot_take(limiter, i, &s) == 0)
			printf("%-20s guaranteed %2u of %d, in flight %2u, rejected %5llu, "
			       "of them %5llu for their priority\n",
			       s.name, s.guarantee, LIMIT, s.inflight,
			       (unsigned long long)s.rejected, (unsigned long long)s.shed);
	}
	weir_limiter_destroy(limiter);
	return part[0] > 0.95 && part[0] > part[1] && part[1] > part[3] ? EXIT_SUCCESS
									: EXIT_FAILURE;
}
