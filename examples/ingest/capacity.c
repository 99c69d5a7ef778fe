/* SPDX-License-Identifier: BSD-2-Clause */
#include "capacity.h"

#include <errno.h>
#include <stdio.h>

/*
 * Twenty slots per second. Up to 21 of them can begin within one second of the database's clock, so
 * with a twentieth of its capacity left out, the database refuses none.
 */
#define SLOT (50 * WEIR_MS)

/* The pace recovers soon after a refusal, since other users of the database are rare and brief. */
#define RECOVERY WEIR_S

static int complain(const char *why)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, why);
	return -1;
}

static int make_rate(struct capacity *capacity, const struct capacity_config *config)
{
	struct weir_rate_config rate;

	weir_rate_config_init(&rate);
	rate.quotas[0] = (struct weir_quota){.units = config->reserved, .period = WEIR_S};
	rate.slot = SLOT;
	rate.recovery = RECOVERY;
	return weir_rate_create(&rate, &capacity->rate);
}

static int make_batcher(struct capacity *capacity, const struct capacity_config *config)
{
	struct weir_batcher_config batcher;

	weir_batcher_config_init(&batcher);
	batcher.rate = capacity->rate;
	batcher.buffer = config->operations;
	batcher.flush_interval = SLOT / 2;
	return weir_batcher_create(&batcher, &capacity->batcher);
}

static int join(struct capacity *capacity, const struct capacity_config *config)
{
	struct weir_fleet_config fleet;
	struct weir_share_config share;
	char why[256];

	weir_fleet_config_init(&fleet);
	fleet.address = config->fleet;
	fleet.lease = config->lease;
	fleet.learning = config->lease; /* the same for all processors */
	if (weir_fleet_open(&fleet, &capacity->fleet, why, sizeof(why)) != 0)
		return complain(why);
	weir_share_config_init(&share);
	share.name = config->limit;
	share.capacity = config->units;
	share.reserved = config->reserved;
	share.members = config->members;
	if (weir_share_of_rate(&share, &capacity->link, capacity->rate, 0, capacity->batcher) != 0)
		return complain("there is no such quota");
	if (weir_share_join(capacity->fleet, &share, &capacity->share, why, sizeof(why)) != 0)
		return complain(why);
	return 0;
}

int capacity_open(struct capacity *capacity, const struct capacity_config *config)
{
	*capacity = (struct capacity){0};
	if (make_rate(capacity, config) != 0 || make_batcher(capacity, config) != 0) {
		capacity_close(capacity);
		return complain("no rate, or no batcher");
	}
	if (join(capacity, config) == 0)
		return 0;
	capacity_close(capacity);
	return -1;
}

/* Destroy the share first, since it uses the others. */
void capacity_close(struct capacity *capacity)
{
	weir_share_leave(capacity->share);
	weir_fleet_close(capacity->fleet);
	(void)weir_batcher_destroy(capacity->batcher);
	weir_rate_destroy(capacity->rate);
}

void capacity_throttled(struct capacity *capacity, weir_dur retry_after)
{
	weir_rate_throttled(capacity->rate, retry_after);
	weir_share_throttled(capacity->share);
}
