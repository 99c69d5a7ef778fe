/*
 * Checks of partitions' configurations, at first and when they change.
 */
#ifndef WEIR_LIB_PARTITION_H
#define WEIR_LIB_PARTITION_H

#include <weir/partition.h>

/* Whether it is the name of partition 0. */
bool partition_is_unknown(const char *name);

/* p with its defaults filled in; of NULL, partition 0 as it is if nobody configures it. */
struct weir_partition partition_defaults(const struct weir_partition *p);

/* Whether its numbers are within their ranges. It need have no name. */
bool partition_is_sound(const struct weir_partition *p);

/* Each has a name, and no two the same. 0, or -EINVAL and a sentence. */
int partition_check_names(const struct weir_partition *partitions, uint32_t count, char *why,
			  size_t why_size);

/* All that a limiter has, with defaults, together. 0, or -EINVAL and a sentence. */
int partition_check(const struct weir_partition *partitions, uint32_t count, char *why,
		    size_t why_size);

#endif
