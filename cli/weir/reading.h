/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reading.h - all figures of a shared limiter at one moment.
 *
 * Each reading opens the limiter by its name. So a limiter that was removed, truncated or created
 * again is noticed, and no file stays mapped that another process could truncate.
 */
#ifndef READING_H
#define READING_H

#include "name.h"

#include <weir/weir.h>

struct part_reading {
	char name[WEIR_PARTITION_NAME_MAX + 1];
	struct weir_partition_snapshot s; /* its name is not set */
};

struct reading {
	weir_time at;
	struct weir_snapshot s;
	struct weir_shm_info info;
	char algorithm[1024]; /* from weir_limiter_format(), or just the name */
	struct part_reading *parts;
	size_t part_count; /* 0 if it has no partitions */
	struct weir_shm_member *members;
	size_t member_count;
};

/*
 * Observe the limiter of that name while use() runs. Returns 0, or a negative errno of either, with
 * a sentence in why.
 */
int reading_use(const struct name *name, int (*use)(void *arg, const struct weir_limiter *limiter),
		void *arg, char *why, size_t why_size);

/* Read the limiter of that name. 0, or a negative errno and a sentence; then *r is empty. */
int reading_take(struct reading *r, const struct name *name, char *why, size_t why_size);
void reading_free(struct reading *r);

/* The partition of that name, or NULL. r may be NULL. */
const struct part_reading *reading_part(const struct reading *r, const char *name);

/* The most permits that a partition may have: its cap, or the whole limit. */
uint32_t reading_part_most(const struct reading *r, const struct part_reading *part);

/* Calls per second. */
struct rates {
	double admitted;
	double rejected; /* including calls that waited in vain */
	double dropped;  /* including timeouts */
};

/* Between two readings. All zero if before is NULL, or is of an earlier limiter of that name. */
struct rates reading_rates(const struct reading *before, const struct reading *now);
struct rates reading_part_rates(const struct reading *before, const struct reading *now,
				const struct part_reading *part);

#endif
