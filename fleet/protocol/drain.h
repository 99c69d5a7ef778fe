/*
 * Members that an operator has drained: LIMIT/drain/ID, which stays until it is undrained. A member
 * that comes back under another number takes the row along.
 */
#ifndef WEIR_FLEET_DRAIN_H
#define WEIR_FLEET_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAIN_TEXT "weir-drain 1\n"

/* The number of a member that is drained, and the version of the row that says so. */
struct drain {
	uint64_t id, version;
};

/* As read, in no order. */
struct drains {
	struct drain *at;
	size_t count, room;
};

/* False: no memory. */
bool drains_add(struct drains *drains, const struct drain *drain);
bool drains_have(const struct drains *drains, uint64_t id);

/* The version of its row; 0: it is not drained. */
uint64_t drains_version(const struct drains *drains, uint64_t id);
void drains_clear(struct drains *drains);
void drains_free(struct drains *drains);

#endif
