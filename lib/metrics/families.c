/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/metrics/families.h"

#include <weir/observe.h>
#include <weir/partition.h>
#include <weir/rate.h>

#define OF_LIMITER(type, field)                                                                    \
	.count = 1, .samples = {{type, offsetof(struct weir_snapshot, field), NULL}}
#define OF_PARTITION(type, field)                                                                  \
	.count = 1, .samples = {{type, offsetof(struct weir_partition_snapshot, field), NULL}}
#define OF_RATE(type, field)                                                                       \
	.count = 1, .samples = {{type, offsetof(struct weir_rate_snapshot, field), NULL}}
#define OF_QUOTA(type, field)                                                                      \
	.count = 1, .samples = {{type, offsetof(struct weir_quota_snapshot, field), NULL}}
#define ENDED(status, field)                                                                       \
	{                                                                                          \
		U64, offsetof(struct weir_snapshot, field), "status=\"" status "\""                \
	}
#define PART_ENDED(status, field)                                                                  \
	{                                                                                          \
		U64, offsetof(struct weir_partition_snapshot, field), "status=\"" status "\""      \
	}

/* clang-format off */
const struct family metric_families[] = {
	{LIMITER, GAUGE, "weir_limit", NULL,
	 "Permits that may be out at once, as learned, without any burst.", OF_LIMITER(U32, limit)},
	{LIMITER, GAUGE, "weir_burst", NULL,
	 "Permits above the limit that are available now.", OF_LIMITER(U32, burst)},
	{LIMITER, GAUGE, "weir_inflight", NULL,
	 "Permits that are out.", OF_LIMITER(U32, inflight)},
	{LIMITER, GAUGE, "weir_waiting", NULL,
	 "Calls that wait for a permit.", OF_LIMITER(U32, waiting)},
	{LIMITER, GAUGE, "weir_passing", NULL,
	 "Calls let through without a permit that have not ended.", OF_LIMITER(U32, passing)},
	{LIMITER, GAUGE, "weir_shadow", NULL,
	 "1 in shadow mode, when nothing is refused.", OF_LIMITER(U32, shadow)},
	{LIMITER, GAUGE, "weir_rtt_seconds", "seconds",
	 "Latency of the last window, as the limit saw it.",
	 OF_LIMITER(NANOSECONDS, last.window.rtt)},
	{LIMITER, GAUGE, "weir_sample_every", NULL,
	 "Calls for each one whose latency is measured.", OF_LIMITER(REAL, sample_every)},
	{NUMBERS, GAUGE, "weir_limit_number", NULL,
	 "Internal numbers of the limit, in its own units: latencies in nanoseconds.", .count = 0},

	{LIMITER, COUNTER, "weir_calls", NULL, "Calls that were admitted and have ended.",
	 .count = 6, .samples = {
		ENDED("success", succeeded), ENDED("ignored", ignored), ENDED("dropped", dropped),
		ENDED("timeout", timed_out), ENDED("cancelled", cancelled), ENDED("failed", failed)}},
	{LIMITER, COUNTER, "weir_admitted", NULL,
	 "Calls that got a permit.", OF_LIMITER(U64, admitted)},
	{LIMITER, COUNTER, "weir_rejected", NULL,
	 "Calls refused at once.", OF_LIMITER(U64, rejected)},
	{LIMITER, COUNTER, "weir_shed", NULL,
	 "Calls refused for their priority, of the rejected.", OF_LIMITER(U64, shed)},
	{LIMITER, COUNTER, "weir_abandoned", NULL,
	 "Calls that left the queue without a permit.", OF_LIMITER(U64, abandoned)},
	{LIMITER, COUNTER, "weir_bypassed", NULL,
	 "Calls let through because they requested a bypass.", OF_LIMITER(U64, bypassed)},
	{LIMITER, COUNTER, "weir_would_reject", NULL,
	 "Calls let through in shadow mode, in place of a refusal or a wait.",
	 OF_LIMITER(U64, would_reject)},
	{LIMITER, COUNTER, "weir_detached", NULL,
	 "Admitted calls that became long-lived.", OF_LIMITER(U64, detached)},
	{LIMITER, COUNTER, "weir_double_releases", NULL,
	 "Tokens released twice, a bug in the program.", OF_LIMITER(U64, double_released)},
	{LIMITER, COUNTER, "weir_windows", NULL,
	 "Windows that the limit has seen.", OF_LIMITER(U64, windows)},

	{PARTITION, GAUGE, "weir_partition_share_ratio", "ratio",
	 "The partition's configured share of the limit.", OF_PARTITION(REAL, share)},
	{PARTITION, GAUGE, "weir_partition_guarantee", NULL,
	 "Permits that its share guarantees.", OF_PARTITION(U32, guarantee)},
	{PARTITION, GAUGE, "weir_partition_cap", NULL,
	 "Permits that it never exceeds.", OF_PARTITION(U32, cap)},
	{PARTITION, GAUGE, "weir_partition_inflight", NULL,
	 "Permits of its calls that are out.", OF_PARTITION(U32, inflight)},
	{PARTITION, GAUGE, "weir_partition_waiting", NULL,
	 "Its calls that wait for a permit.", OF_PARTITION(U32, waiting)},
	{PARTITION, GAUGE, "weir_partition_reserved", NULL,
	 "Permits reserved for it.", OF_PARTITION(U32, reserved)},
	{PARTITION, GAUGE, "weir_partition_delayed", NULL,
	 "Its refusals that are being delayed.", OF_PARTITION(U32, delayed)},
	{PARTITION, COUNTER, "weir_partition_calls", NULL,
	 "Its calls that were admitted and have ended.", .count = 3, .samples = {
		PART_ENDED("success", succeeded), PART_ENDED("overload", dropped),
		PART_ENDED("other", other)}},
	{PARTITION, COUNTER, "weir_partition_admitted", NULL,
	 "Its calls that got a permit.", OF_PARTITION(U64, admitted)},
	{PARTITION, COUNTER, "weir_partition_rejected", NULL,
	 "Its calls refused at once.", OF_PARTITION(U64, rejected)},
	{PARTITION, COUNTER, "weir_partition_shed", NULL,
	 "Its calls refused for their priority, of the rejected.", OF_PARTITION(U64, shed)},
	{PARTITION, COUNTER, "weir_partition_abandoned", NULL,
	 "Its calls that left the queue without a permit.", OF_PARTITION(U64, abandoned)},

	{RATE, GAUGE, "weir_rate_waiting", NULL,
	 "Calls that wait.", OF_RATE(U32, waiting)},
	{RATE, GAUGE, "weir_rate_percent", NULL,
	 "The pace: 100, or less after the backend throttled; 0: nothing passes yet.",
	 OF_RATE(U32, percent)},
	{RATE, COUNTER, "weir_rate_admitted", NULL,
	 "Calls that were admitted.", OF_RATE(U64, admitted)},
	{RATE, COUNTER, "weir_rate_refused", NULL,
	 "Calls refused at once.", OF_RATE(U64, refused)},
	{RATE, COUNTER, "weir_rate_abandoned", NULL,
	 "Calls that left the queue without being admitted.", OF_RATE(U64, abandoned)},
	{RATE, COUNTER, "weir_rate_throttled", NULL,
	 "Times that the backend throttled.", OF_RATE(U64, throttled)},
	{QUOTA, GAUGE, "weir_quota_units", NULL,
	 "Units that may be taken in a period.", OF_QUOTA(U64, quota.units)},
	{QUOTA, GAUGE, "weir_quota_available", NULL,
	 "Units that are left now.", OF_QUOTA(U64, available)},
	{QUOTA, GAUGE, "weir_quota_debt", NULL,
	 "Units taken that have not been added yet.", OF_QUOTA(U64, debt)},
	{QUOTA, COUNTER, "weir_quota_taken", NULL,
	 "Units that calls have taken.", OF_QUOTA(U64, taken)},
};
/* clang-format on */

const size_t metric_family_count = sizeof(metric_families) / sizeof(metric_families[0]);
