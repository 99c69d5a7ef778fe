/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of partitions' configurations, at creation and when they change. */
#ifndef WEIR_LIB_PARTITION_H
#define WEIR_LIB_PARTITION_H

#include <weir/partition.h>

/* Whether this is the name of partition 0. */
bool partition_is_unknown(const char *name);

/* p with its defaults filled in; for NULL, partition 0 as it is without a configuration. */
struct weir_partition partition_defaults(const struct weir_partition *p);

/* Whether its numbers are in range. It need not have a name. */
bool partition_is_sound(const struct weir_partition *p);

/* Check that each has a name and that names differ. Returns 0, or -EINVAL and a sentence. */
int partition_check_names(const struct weir_partition *partitions, uint32_t count, char *why,
			  size_t why_size);

/*
 * Check all partitions of a limiter, with defaults filled in, together. Returns 0, or -EINVAL and a
 * sentence.
 */
int partition_check(const struct weir_partition *partitions, uint32_t count, char *why,
		    size_t why_size);

#endif
