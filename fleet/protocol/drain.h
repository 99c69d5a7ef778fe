/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members that an operator has drained: by their numbers, in a row LIMIT/drain/ID each, or by their
 * labels, all of which are in a row LIMIT/drained. Both stay until they are undrained. A member that
 * comes back under another number moves the row of its number to that one.
 */
#ifndef WEIR_FLEET_DRAIN_H
#define WEIR_FLEET_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/fleet.h>

#define DRAIN_TEXT  "weir-drain 1\n"
#define DRAINED_KEY "drained" /* of the labels */

/* The number of a drained member, and the version of its drain row. */
struct drain {
	uint64_t id, version;
};

/* All of a limit, unsorted. */
struct drains {
	struct drain *at;
	size_t count, room;
	char *labels;            /* one on each line, and a zero byte; NULL: none */
	uint64_t labels_version; /* of their row; 0: there is none */
};

/* Returns false without memory. */
bool drains_add(struct drains *drains, const struct drain *drain);

/* Read the row of labels. Returns 0, -EPROTO: it is not one, or -ENOMEM. */
int drains_parse(struct drains *drains, const struct weir_store_row *row);

/* Whether a member of that number and label is drained, by either of them. */
bool drains_have(const struct drains *drains, uint64_t id, const char *label);
bool drains_have_label(const struct drains *drains, const char *label);

/* The label that follows on from *at, which begins as drains.labels. Returns false at the end. */
bool drains_next_label(const char **at, char label[WEIR_FLEET_LABEL_MAX + 1]);

/* The version of its drain row; 0: it is not drained. */
uint64_t drains_version(const struct drains *drains, uint64_t id);
void drains_clear(struct drains *drains);
void drains_free(struct drains *drains);

#endif
