/*
 * scenario_read.h - scenarios from files, and those that are built in.
 *
 * The format is libconfig's; docs/scenarios.md lists the settings.
 */
#ifndef SCENARIO_READ_H
#define SCENARIO_READ_H

#include "scenario.h"

/*
 * 0; or -EINVAL and "NAME:LINE: what is wrong" in why, or another negative errno if the file could
 * not be read. What was read is for scenario_free().
 */
int scenario_from_file(struct scenario *scenario, const char *path, char *why, size_t why_size);
int scenario_from_text(struct scenario *scenario, const char *name, const char *text, char *why,
		       size_t why_size);

/* The built-in ones by index from 0; false past the last. They are right, or the program ends. */
bool scenario_builtin(struct scenario *scenario, unsigned index);

/* By name: built in, or, if it has a slash or a dot in it, a file. As above; -ENOENT: neither. */
int scenario_find(struct scenario *scenario, const char *name, char *why, size_t why_size);

/* The text of a built-in one; NULL past the last. */
const char *scenario_text(unsigned index);

#endif
