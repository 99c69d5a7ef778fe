/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limiters.h - shared limiters that are read repeatedly: their rates, and their recent history.
 */
#ifndef LIMITERS_H
#define LIMITERS_H

#include "name.h"
#include "reading.h"

/* Readings kept of each limiter and each partition: one minute at one reading a second. */
#define PAST 60

struct point {
	uint64_t limit; /* of a partition: its cap */
	uint64_t inflight, waiting;
	double rtt; /* nanoseconds; 0 if unknown, and for a partition */
	struct rates rates;
};

/* The latest is at[(count - 1) % PAST]. */
struct past {
	struct point at[PAST];
	unsigned count;
};

void past_add(struct past *past, const struct point *point);

struct watched {
	char name[NAME_ROOM];
	struct reading now, before;
	bool twice; /* before is valid */
	struct rates rates;
	struct past past;
	struct past *part_past; /* of each partition; NULL if there are none, or out of memory */
	size_t part_count;
	bool seen;
};

struct limiters {
	struct choice choice;
	struct watched *at; /* sorted by name */
	size_t count;
	struct left_out left_out; /* at the last reading */
};

/*
 * Read them all, and drop those that are gone. complain() is called for each that cannot be read.
 * Returns 1 if one of these was named on the command line, or if the names cannot be listed;
 * otherwise 0.
 */
int limiters_look(struct limiters *l,
		  void (*complain)(void *arg, const char *name, const char *why), void *arg);
void limiters_free(struct limiters *l);

/* The reading before the present one, or NULL. */
const struct reading *watched_before(const struct watched *w);

/* The point that many readings before the latest; NULL if it is no longer kept. */
const struct point *past_point(const struct past *past, unsigned back);

#endif
