/*
 * A wall clock that can be set, for one program that a test starts: by libfaketime.
 */
#ifndef WEIR_TESTS_FLEET_WALL_H
#define WEIR_TESTS_FLEET_WALL_H

#include <stdbool.h>

struct wall {
	char file[64]; /* what the clock is off by; empty: there is no libfaketime */
};

/* It is right; where it cannot be set, that is said. */
void wall_begin(struct wall *wall);
void wall_end(const struct wall *wall);

bool wall_can(const struct wall *wall);

/* "+1h", "-1h", "+0"; seen by who follows it at once. */
void wall_set(const struct wall *wall, const char *offset);

/* In a process that is about to be another program: that goes by this clock. */
void wall_follow(const struct wall *wall);

#endif
