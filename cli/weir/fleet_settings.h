/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_settings.h - the settings of a limit, as SETTING=VALUE of weir fleet set, and in a file for
 * weir fleet apply.
 */
#ifndef FLEET_SETTINGS_H
#define FLEET_SETTINGS_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <weir/fleet.h>

/* Settings that were given; all others stay as they are. */
struct fleet_settings {
	struct weir_fleet_limit to;
	bool capacity, reserved, members, allotment, lease, learning, allocated;
};

/*
 * Whether a setting has been given already, by its name of that length. NULL: there is no such
 * setting.
 */
bool *fleet_setting_given(struct fleet_settings *settings, const char *name, size_t length);

/* Parse the value of a setting that there is. False: why, which is no whole sentence, says so. */
bool fleet_setting_take(struct fleet_settings *settings, const bool *given, const char *value,
			char *why, size_t why_size);

/* Parse SETTING=VALUE of a command line. Does not return if it is wrong. */
void fleet_setting_word(struct fleet_settings *settings, const char *word,
			struct argp_state *state);

bool fleet_settings_any(const struct fleet_settings *settings);

/* Change a limit to what was given. */
void fleet_settings_apply(const struct fleet_settings *settings, struct weir_fleet_limit *limit);

/* The settings that make and set have, for their help. */
#define FLEET_SETTINGS_HELP                                                                        \
	"  capacity=N                 Units for all members together\n"                            \
	"  reserved=N                 Units that each member has at all times\n"                   \
	"  members=N                  Members that units are reserved for\n"                       \
	"  allotment=HOW              fair, proportional, static or none\n"                        \
	"  lease=SECONDS              The longest lease that a member may have\n"                  \
	"  learning=SECONDS           How long members learn once the store may have lost\n"       \
	"                             leases; own: as each is configured\n"                        \
	"  allocated=1                Let an elected member divide the capacity: for thousands\n"  \
	"                             of members. It can change while there are none\n"

/* Of a limit that is made: what weir_fleet_configure() takes, too. */
#define FLEET_LEASE_DEFAULT (15 * WEIR_S)

const char *fleet_allotment(enum weir_allotment allotment);

/* The time to learn as a setting has it. */
#define LEARNING_ROOM 32
const char *fleet_learning(weir_dur learning, char text[LEARNING_ROOM]);

/* Parse a whole number up to max. False: it is not one. */
bool fleet_whole(const char *text, uint64_t max, uint64_t *value);

#endif
