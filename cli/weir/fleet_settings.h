/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_settings.h - the settings of a limit, as SETTING=VALUE of weir fleet set, and in a file for
 * weir fleet apply.
 */
#ifndef FLEET_SETTINGS_H
#define FLEET_SETTINGS_H

#include <stdbool.h>
#include <stdio.h>
#include <weir/fleet.h>

/* Settings that were given; all others stay as they are. */
struct fleet_settings {
	struct weir_fleet_limit to;
	bool capacity, reserved, members, allotment, lease, allocated;
};

/*
 * Whether a setting has been given already, by its name of that length. NULL: there is no such
 * setting.
 */
bool *fleet_setting_given(struct fleet_settings *settings, const char *name, size_t length);

/* Parse the value of a setting that there is. False: why, which is no whole sentence, says so. */
bool fleet_setting_take(struct fleet_settings *settings, const bool *given, const char *value,
			char *why, size_t why_size);

/* Change a limit to what was given. */
void fleet_settings_apply(const struct fleet_settings *settings, struct weir_fleet_limit *limit);

const char *fleet_allotment(enum weir_allotment allotment);

/* Parse a whole number up to max. False: it is not one. */
bool fleet_whole(const char *text, uint64_t max, uint64_t *value);

#endif
