/*
 * limiters.h - shared limiters, read again and again: their rates, and their recent past.
 */
#ifndef LIMITERS_H
#define LIMITERS_H

#include "name.h"
#include "reading.h"

/* Readings that are remembered of each limiter and each partition: a minute, one a second. */
#define PAST 60

struct point {
	uint64_t limit; /* of a partition: the most it may have */
	uint64_t inflight, waiting;
	double rtt; /* nanoseconds; 0: none, or a partition's */
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
	bool twice; /* there is a reading before */
	struct rates rates;
	struct past past;
	struct past *part_past; /* of each partition; NULL: there is no memory, or there are none */
	size_t part_count;
	bool seen;
};

struct limiters {
	struct choice choice;
	struct watched *at; /* by their names */
	size_t count;
	struct left_out left_out; /* at the last look */
};

/*
 * Read them all, and forget those that are gone. complain() is told of those that cannot be read.
 * 0; 1: one of them was asked for, or it cannot be seen which there are.
 */
int limiters_look(struct limiters *l,
		  void (*complain)(void *arg, const char *name, const char *why), void *arg);
void limiters_free(struct limiters *l);

/* The reading before the present one; NULL: there is none. */
const struct reading *watched_before(const struct watched *w);

/* So many points before the latest; NULL: it is not remembered. */
const struct point *past_point(const struct past *past, unsigned back);

#endif
