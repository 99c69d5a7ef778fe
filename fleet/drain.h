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

/* Numbers of members, as read, in no order. */
struct drains {
	uint64_t *ids;
	size_t count, room;
};

/* False: no memory. */
bool drains_add(struct drains *drains, uint64_t id);
bool drains_have(const struct drains *drains, uint64_t id);
void drains_clear(struct drains *drains);
void drains_free(struct drains *drains);

#endif
