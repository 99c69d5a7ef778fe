/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measuring how busy CPUs are, step by step: called by the gauge's thread, or by a test in its
 * place.
 */
#ifndef WEIR_LIB_CPU_H
#define WEIR_LIB_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/base.h>

/* Sizes of a control group's path and of the root's, in bytes, with their zeros. */
#define CPU_GROUP_MAX 1024
#define CPU_ROOT_MAX  256

/* The time used and the whole time, since some beginning, in units of the source. */
struct cpu_reading {
	uint64_t used, whole;
	double share;              /* of whole that may be used: CPUs granted to a group */
	bool grouped;              /* of a control group, not of CPUs */
	char group[CPU_GROUP_MAX]; /* the group's path */
};

/* State of one measuring thread. */
struct cpu_meter {
	char root[CPU_ROOT_MAX];
	double time_constant; /* nanoseconds */
	double busy;          /* smoothed, 0 to 1; 0: unknown */
	bool begun;           /* last is valid */
	bool measured;        /* busy is known */
	weir_time when;       /* time of last */
	struct cpu_reading last;
};

/* Returns 0, or a negative errno: then busy is unknown until two further readings. */
int cpu_measure(struct cpu_meter *meter, weir_time now);

#endif
