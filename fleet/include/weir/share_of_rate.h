/*
 * weir/share_of_rate.h - a rate as the user of a share: so many a second of all members together.
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
 * Units of the share are units of one of the rate's quotas, a period of that quota. Whatever the
 * share comes to is set as the quota's units, from the next slot on, or at once if it is less: as
 * leases never add up to more than there is, nor do the rates of all members. Without a lease,
 * and without anything that is reserved, it is 0, and who waits goes on waiting.
 *
 * Who is told by the service that it is too much says so to both: weir_rate_throttled(), for it
 * acts at once, and weir_share_throttled(), for all members.
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
	struct weir_quota value; /* as it was, but for its units */
};

/*
 * Set apply, arg and period, and wants if there is a batcher: it wants what all need that is in it
 * (weir_batcher_needs()). With a batcher of NULL, say what is wanted by weir_share_demand_set(), or by
 * weir_share_demand_add() with each call. *link, the rate and the batcher must outlive the share. 0;
 * -EINVAL: there is no such quota.
 */
WEIR_API int weir_share_of_rate(struct weir_share_config *config, struct weir_share_rate *link,
				struct weir_rate *rate, unsigned quota,
				struct weir_batcher *batcher);

#ifdef __cplusplus
}
#endif
#endif
