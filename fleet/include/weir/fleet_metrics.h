/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/fleet_metrics.h - a fleet's numbers as text for Prometheus and compatible scrapers.
 *
 *	if (weir_metrics_create(&metrics) != 0)
 *		return -1;
 *	weir_fleet_metrics_add(metrics, fleet, NULL, 0);	and limiters: weir/metrics.h
 *	length = weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text));
 *	weir_metrics_destroy(metrics);
 *
 * The numbers are what the last refresh left behind, as with weir_share_info_take(); units, leases
 * and ownership are current. Nothing here waits for the store, and no callback is called.
 *
 * Thread safety. As weir/metrics.h: a set is used by one thread at a time. The fleet may be busy
 * meanwhile.
 *
 * Metrics. Counters end with _total. Of the fleet, with the prefix weir_fleet_: store_up,
 * store_writable, store_durable (1 or 0 each), refreshes_total, refresh_failures_total,
 * sessions_total, refresh_seconds (of the last one), refresh_age_seconds (since the last one that
 * succeeded; NaN before the first). Of each share, with the prefix weir_share_ and the label
 * limit, its name: units, wants, capacity, effective, members, lease_seconds (what is left of it),
 * mismatch (1 or 0), conflicts_total, changes_total (of its state), and state, with the label
 * state: 1 for weir_share_state_name() of the present state, 0 for each of the others. Of
 * partitions of work, with the prefix weir_work_ and the label work, their name: partitions,
 * owned, units, gained_total, lost_total, forced_total (of those lost). They mean the same as the
 * fields of struct weir_share_info and the functions of weir/work.h.
 */
#ifndef WEIR_FLEET_METRICS_H
#define WEIR_FLEET_METRICS_H

#include <weir/fleet.h>
#include <weir/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Add the numbers of a fleet, its shares and its partitions of work to a set, with count labels in
 * any order; count may be 0. "limit", "state" and "work" are reserved as names of labels. Of a
 * region, weir_region_fleet() is the fleet.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: a label's name is invalid, reserved or given twice, or a value is NULL. The set is
 *          unchanged.
 * -EILSEQ: a label's value is not UTF-8. The set is unchanged.
 * -EEXIST: another fleet has exactly the same labels. The set is unchanged.
 * -ENOMEM: out of memory. The set may lack some of the numbers.
 */
WEIR_API int weir_fleet_metrics_add(struct weir_metrics *metrics, struct weir_fleet *fleet,
				    const struct weir_label *labels, size_t count);

#ifdef __cplusplus
}
#endif
#endif
