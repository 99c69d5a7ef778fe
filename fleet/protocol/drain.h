/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members that an operator has drained: a row LIMIT/drain/ID each, which stays until the member is
 * undrained. A member that comes back under another number moves the row to that number.
 */
#ifndef WEIR_FLEET_DRAIN_H
#define WEIR_FLEET_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAIN_TEXT "weir-drain 1\n"

/* The number of a drained member, and the version of its drain row. */
struct drain {
	uint64_t id, version;
};

/* All of a limit, unsorted. */
struct drains {
	struct drain *at;
	size_t count, room;
};

/* Returns false without memory. */
bool drains_add(struct drains *drains, const struct drain *drain);
bool drains_have(const struct drains *drains, uint64_t id);

/* The version of its drain row; 0: it is not drained. */
uint64_t drains_version(const struct drains *drains, uint64_t id);
void drains_clear(struct drains *drains);
void drains_free(struct drains *drains);

#endif
