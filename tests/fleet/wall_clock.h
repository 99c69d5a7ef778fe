/* SPDX-License-Identifier: BSD-2-Clause */
/* A wall clock that can be set, for one program that a test starts. Uses libfaketime. */
#ifndef WEIR_TESTS_FLEET_WALL_CLOCK_H
#define WEIR_TESTS_FLEET_WALL_CLOCK_H

#include <stdbool.h>
#include <sys/types.h>

struct wall_clock {
	char file[64]; /* contains the offset of the clock; "": there is no libfaketime */
};

/* The clock begins without an offset. Prints a line if it cannot be set. */
void wall_clock_begin(struct wall_clock *wall);
void wall_clock_end(const struct wall_clock *wall);

bool wall_clock_can(const struct wall_clock *wall);

/* Set the offset, as "+1h", "-1h" or "+0". Takes effect immediately. */
void wall_clock_set(const struct wall_clock *wall, const char *offset);

/* Call between fork() and exec(): the new program uses this clock. */
void wall_clock_follow(const struct wall_clock *wall);

/* The program has been killed: remove what libfaketime leaves behind then. */
void wall_clock_killed(pid_t program);

#endif
