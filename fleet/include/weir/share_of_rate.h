/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/share_of_rate.h - connects a rate to a share: one rate limit for all members together.
 *
 *	struct weir_share_rate link;
 *	struct weir_share_config config;
 *
 *	weir_share_config_init(&config);
 *	config.name = "orders";
 *	config.capacity = 20000;
 *	weir_share_of_rate(&config, &link, rate, 0, batcher);
 *	error = weir_share_join(fleet, &config, &share, why, sizeof(why));
 *
 * One unit of the share is one unit of one of the rate's quotas per period of that quota. The units
 * of the share are set as the quota's units, from the next slot on, or at once if there are fewer.
 * As the leases never add up to more than the capacity, nor do the rates of all members. Without a
 * lease, and without reserved units, the quota is 0, and calls that wait keep waiting.
 *
 * If the backend signals overload, call both weir_rate_throttled(), which acts at once, and
 * weir_share_throttled(), which acts for all members.
 */
#ifndef WEIR_SHARE_OF_RATE_H
#define WEIR_SHARE_OF_RATE_H

#include <weir/batcher.h>
#include <weir/fleet.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_share_rate {
	struct weir_rate *rate;
	struct weir_batcher *batcher;
	unsigned quota;
	struct weir_quota value; /* as configured; its units are those of the share */
};

/*
 * Set apply, arg and period of config, and wants and headroom if there is a batcher: the demand is
 * then what all operations in it need (weir_batcher_needs()). If batcher is NULL, set the demand by
 * weir_share_demand_set(), or by weir_share_demand_add() for each call. *link, the rate and the
 * batcher must outlive the share.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: there is no such quota
 */
WEIR_API int weir_share_of_rate(struct weir_share_config *config, struct weir_share_rate *link,
				struct weir_rate *rate, unsigned quota,
				struct weir_batcher *batcher);

#ifdef __cplusplus
}
#endif
#endif
