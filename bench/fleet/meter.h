/*
 * meter.h - a store that counts what goes through it: questions, and bytes of keys and values.
 */
#ifndef METER_H
#define METER_H

#include <stdatomic.h>
#include <weir/fleet.h>

/* What members have asked, all together. */
struct count {
	_Atomic uint64_t keeps, reads, commits, conflicts;
	_Atomic uint64_t sent, got; /* bytes of keys and values */
};

struct meter {
	struct weir_store store; /* first: what a fleet calls */
	struct weir_store *to;
	struct count *count;
	/* Called before each question. NULL: nothing happens. */
	void (*before)(void);
};

struct meter meter_of(struct weir_store *to, struct count *count, void (*before)(void));

void count_clear(struct count *count);

/* What must not fail here: 0, or it exits and says so. */
void must_do(int error, const char *what, const char *why);
void *must(void *memory);

#endif
