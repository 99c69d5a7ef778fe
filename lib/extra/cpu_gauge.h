/*
 * Measuring how busy processors are, one step at a time: what the gauge's thread does, and what a
 * test does in its place.
 */
#ifndef WEIR_LIB_CPU_H
#define WEIR_LIB_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/base.h>

/* Bytes of a control group's path, and of the root's, with their zeros. */
#define CPU_GROUP_MAX 1024
#define CPU_ROOT_MAX  256

/* How much time was used, of how much, since some beginning; in units of its source. */
struct cpu_reading {
	uint64_t used, whole;
	double share;              /* of whole that may be used: processors granted to a group */
	bool grouped;              /* of a control group, or else of processors */
	char group[CPU_GROUP_MAX]; /* which */
};

/* One thread's. */
struct cpu_meter {
	char root[CPU_ROOT_MAX];
	double time_constant; /* nanoseconds */
	double busy;          /* smoothed; 0: not known */
	bool begun;           /* last is one */
	bool measured;        /* busy is known */
	weir_time when;       /* of last */
	struct cpu_reading last;
};

/* 0; or a negative errno, and nothing is known until two further readings. */
int cpu_measure(struct cpu_meter *meter, weir_time now);

#endif
