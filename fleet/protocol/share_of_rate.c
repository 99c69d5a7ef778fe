/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rate limit set to a share of a fleet's rate. It uses public functions only, so an application
 * can do the same for anything else.
 */

#include <weir/share_of_rate.h>

#include <errno.h>

static void set_pace(void *arg, uint64_t units)
{
	const struct weir_share_rate *link = arg;
	struct weir_quota value = link->value;

	value.units = units;
	(void)weir_rate_set(link->rate, link->quota, &value);
}

static uint64_t needed(void *arg)
{
	const struct weir_share_rate *link = arg;
	const struct weir_cost needs = weir_batcher_needs(link->batcher);
	const uint64_t units = needs.units[link->quota];

	return units < WEIR_SHARE_UNITS_MAX ? units : WEIR_SHARE_UNITS_MAX;
}

int weir_share_of_rate(struct weir_share_config *config, struct weir_share_rate *link,
		       struct weir_rate *rate, unsigned quota, struct weir_batcher *batcher)
{
	struct weir_rate_snapshot s;

	weir_rate_snapshot_init(&s);
	weir_rate_snapshot_take(rate, &s);
	if (quota >= s.quota_count)
		return -EINVAL;
	*link = (struct weir_share_rate){
		.rate = rate,
		.batcher = batcher,
		.quota = quota,
		.value = s.quotas[quota].quota,
	};
	link->value.flags &= ~(uint32_t)WEIR_QUOTA_UNLIMITED;
	config->apply = set_pace;
	config->wants = batcher != NULL ? needed : NULL;
	config->headroom = batcher != NULL ? WEIR_HEADROOM_ALWAYS : config->headroom;
	config->arg = link;
	config->period = link->value.period;
	return 0;
}
