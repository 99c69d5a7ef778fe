/*
 * reading.h - all numbers of a shared limiter, at one moment.
 *
 * The limiter is looked up by its name each time. So one that is gone, cut or made anew is seen,
 * and nothing stays mapped that somebody could cut.
 */
#ifndef READING_H
#define READING_H

#include "name.h"

#include <weir/weir.h>

struct part_reading {
	char name[WEIR_PARTITION_NAME_MAX + 1];
	struct weir_partition_snapshot s; /* but for its name */
};

struct reading {
	weir_time at;
	struct weir_snapshot s;
	struct weir_shm_info info;
	char algorithm[1024]; /* as weir_limiter_format() has it; its name if that is all */
	struct part_reading *parts;
	size_t part_count; /* 0: it has none */
	struct weir_shm_member *members;
	size_t member_count;
};

/*
 * Look at the limiter of that name for as long as use() does, whose failure is a negative errno. 0, or
 * that of either, and a sentence.
 */
int reading_look(const struct name *name, int (*use)(void *arg, const struct weir_limiter *limiter),
		 void *arg, char *why, size_t why_size);

/* Of the limiter of that name. 0, or a negative errno and a sentence; then *r is empty. */
int reading_take(struct reading *r, const struct name *name, char *why, size_t why_size);
void reading_free(struct reading *r);

/* The partition of that name; NULL: there is none, or r is NULL. */
const struct part_reading *reading_part(const struct reading *r, const char *name);

/* What a partition may have at most: its cap, or the whole limit. */
uint32_t reading_part_most(const struct reading *r, const struct part_reading *part);

/* Calls a second. */
struct rates {
	double admitted;
	double rejected; /* with those who waited in vain */
	double dropped;  /* with those that timed out */
};

/* Between two readings. All zero if before is NULL, or of a limiter that is no more. */
struct rates reading_rates(const struct reading *before, const struct reading *now);
struct rates reading_part_rates(const struct reading *before, const struct reading *now,
				const struct part_reading *part);

#endif
