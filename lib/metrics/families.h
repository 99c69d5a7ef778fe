/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics of limiters and rates: what each is called, and where its values are. */
#ifndef WEIR_LIB_METRICS_FAMILIES_H
#define WEIR_LIB_METRICS_FAMILIES_H

#include <stddef.h>

#define SAMPLES_MAX 6

enum type {
	U32,
	U64,
	REAL,
	NANOSECONDS, /* a double; 0 means unknown */
};

/* Location of a sample's value, in the snapshot that it belongs to. */
struct sample {
	enum type type;
	size_t offset;
	const char *label; /* NULL: none besides those of its limiter or partition */
};

enum kind {
	GAUGE,
	COUNTER,
};

enum owner {
	LIMITER,
	PARTITION,
	NUMBERS, /* internal values of the limit, which names them */
	RATE,
	QUOTA,
};

struct family {
	enum owner owner;
	enum kind kind;
	const char *name;
	const char *unit; /* the suffix of name; NULL: none */
	const char *help;
	unsigned count;
	struct sample samples[SAMPLES_MAX];
};

/* All of them, in the order in which they are written. */
extern const struct family metric_families[];
extern const size_t metric_family_count;

#endif
