/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_read.h - read scenarios from files, and list those built in.
 *
 * The format is libconfig's; docs/scenarios.md lists the settings.
 */
#ifndef SCENARIO_READ_H
#define SCENARIO_READ_H

#include "scenario.h"

/*
 * Returns 0, or a negative errno, with a sentence in why:
 * -EINVAL: the text is wrong; why is "NAME:LINE: what is wrong"
 * other: the file cannot be read
 *
 * Free the scenario with scenario_free().
 */
int scenario_from_file(struct scenario *scenario, const char *path, char *why, size_t why_size);
int scenario_from_text(struct scenario *scenario, const char *name, const char *text, char *why,
		       size_t why_size);

/* A built-in scenario by index from 0; false past the last. Aborts if it is not valid. */
bool scenario_builtin(struct scenario *scenario, unsigned index);

/*
 * As above, by name: a file if it contains a slash or a dot, drawn at random if it begins as
 * scenario_random.h says, else built in; -ENOENT if unknown.
 */
int scenario_find(struct scenario *scenario, const char *name, char *why, size_t why_size);

/* The text of a scenario that is no file, by name; NULL if it is unknown. Free it. */
char *scenario_text_of(const char *name);

/* The text of a built-in scenario; NULL past the last. */
const char *scenario_text(unsigned index);

#endif
