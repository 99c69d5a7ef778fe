/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registry.c - a limiter for each host, looked up by name at every call, and the same without the
 * look-up: the difference is its cost.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host {
	struct weir_limiter *limiter;
	char name[32];
};

struct hosts {
	struct weir_registry *registry;
	unsigned count; /* a power of two */
	struct host host[];
};

static void *hosts_make(const struct subject *self, unsigned threads)
{
	const unsigned count = *(const unsigned *)self->detail;
	struct hosts *hosts = must(calloc(1, sizeof(*hosts) + count * sizeof(struct host)));
	struct weir_config limiter = roomy(self->limit);
	struct weir_registry_config config;

	(void)threads;
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	must_do(weir_registry_create(&config, &hosts->registry), "weir_registry_create");
	hosts->count = count;
	for (unsigned i = 0; i < count; i++) {
		struct host *host = &hosts->host[i];

		snprintf(host->name, sizeof(host->name), "api-%u.example.net:443", i);
		must_do(weir_registry_get(hosts->registry, host->name, strlen(host->name),
					  &host->limiter),
			"weir_registry_get");
	}
	return hosts;
}

static void hosts_unmake(void *shared)
{
	struct hosts *hosts = shared;

	for (unsigned i = 0; i < hosts->count; i++)
		weir_registry_put(hosts->registry, hosts->host[i].limiter);
	must_do(weir_registry_destroy(hosts->registry), "weir_registry_destroy");
	free(hosts);
}

/* In turn, or, with many limiters, in an order that prefetchers do not predict. */
static const struct host *next_host(const struct hosts *hosts, uint64_t i)
{
	return &hosts->host[(i * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (hosts->count - 1)];
}

static uint64_t held_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct hosts *hosts = shared;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++)
		refused += pair_loop(next_host(hosts, i)->limiter, worker, 1);
	return refused;
}

static uint64_t get_loop(void *shared, struct worker *worker, uint64_t times)
{
	const struct hosts *hosts = shared;
	uint64_t refused = 0;

	for (uint64_t i = 0; i < times; i++) {
		const char *name = next_host(hosts, i)->name;
		struct weir_limiter *limiter;

		if (weir_registry_get(hosts->registry, name, strlen(name), &limiter) != 0) {
			refused++;
			continue;
		}
		refused += pair_loop(limiter, worker, 1);
		weir_registry_put(hosts->registry, limiter);
	}
	return refused;
}

static const unsigned few = 16, many = 1024;

static const struct subject table[] = {
	{
		.group = "registry",
		.name = "held",
		.about = "a pair on one of 16 limiters, by pointer",
		.make = hosts_make,
		.unmake = hosts_unmake,
		.loop = held_loop,
		.detail = &few,
	},
	{
		.group = "registry",
		.name = "registry",
		.about = "the same, each got from a registry by name, and put",
		.make = hosts_make,
		.unmake = hosts_unmake,
		.loop = get_loop,
		.detail = &few,
	},
	{
		.group = "registry",
		.name = "held-1024",
		.about = "a pair on one of 1024 limiters, by pointer",
		.make = hosts_make,
		.unmake = hosts_unmake,
		.loop = held_loop,
		.detail = &many,
	},
	{
		.group = "registry",
		.name = "registry-1024",
		.about = "the same, each got from a registry by name, and put",
		.make = hosts_make,
		.unmake = hosts_unmake,
		.loop = get_loop,
		.detail = &many,
	},
};

void registry_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
