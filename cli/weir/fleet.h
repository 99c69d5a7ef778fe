/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.h - what the commands of weir fleet share: the store, and what they read from it.
 */
#ifndef FLEET_H
#define FLEET_H

#include <argp.h>
#include <stdio.h>
#include <weir/work.h>

#include "fleet_settings.h"
#include "name.h"

/* The store's options (-a and others). They may stand before or after the command's name. */
extern const struct argp fleet_options;
#define FLEET_CHILDREN                                                                             \
	{                                                                                          \
		{&fleet_options, 0, NULL, 0},                                                      \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

int fleet_list(int argc, char **argv);
int fleet_show(int argc, char **argv);
int fleet_top(int argc, char **argv);
int fleet_make(int argc, char **argv);
int fleet_set(int argc, char **argv);
int fleet_apply(int argc, char **argv);
int fleet_remove(int argc, char **argv);
int fleet_drain(int argc, char **argv);
int fleet_undrain(int argc, char **argv);
int fleet_resize(int argc, char **argv);
int fleet_rewind(int argc, char **argv);
int fleet_serve(int argc, char **argv);
int fleet_template(int argc, char **argv);

/* Open the store that the options name. NULL if it cannot be opened; a message has been printed. */
struct weir_store *fleet_store(void);

/* The sentence for an error of an operation on a limit. */
const char *fleet_why(struct weir_store *store, int error, char *why, size_t size);

/* Print that sentence as an error message. Returns EXIT_FAILURE. */
int fleet_complain(struct weir_store *store, const char *name, int error);

/* Whether text has the form of a label, which that of a member's number is, too. */
bool fleet_is_label(const char *text);

/* A label as tables show it. Of a longer one, the beginning and the end are shown. */
#define LABEL_WIDTH 15
const char *fleet_label(const char *label, char text[LABEL_WIDTH + 1]);

/* A copy of a label or sentence, freed with the reading. */
struct kept {
	struct kept *next;
	char text[];
};

/* Everything that the store has under one name. */
struct fleet_reading {
	char name[WEIR_SHARE_NAME_MAX + 1];
	struct weir_fleet_limit limit; /* version 0: there is no limit of that name */
	bool other_version;            /* its record has another format version */
	struct weir_fleet_member *members;
	size_t member_count;
	uint32_t workers, owned, checkpoints;
	struct weir_work_size work; /* capacity 0: not known, or plain work */
	struct weir_work_partition *partitions;
	size_t partition_count;
	struct kept *labels; /* and sentences, of members and partitions */
	bool full;           /* out of memory: some of it is missing */
};

struct fleet_readings {
	struct fleet_reading *at;
	size_t count;
};

/* Read what is under a name and append it to readings. 0, or a negative errno. */
int fleet_read(struct weir_store *store, const char *name, struct fleet_readings *readings);

/* Read all names, without their members and partitions of work. */
int fleet_read_all(struct weir_store *store, struct fleet_readings *readings);
void fleet_forget(struct fleet_readings *readings);

/* A template of limits. version of its limit is that of all templates. */
struct fleet_template_reading {
	char pattern[WEIR_FLEET_PATTERN_MAX + 1];
	struct weir_fleet_limit limit;
};

struct fleet_templates {
	struct fleet_template_reading *at;
	size_t count;
};

/* Read all templates. 0, or a negative errno. */
int fleet_templates_read(struct weir_store *store, struct fleet_templates *templates);
void fleet_templates_forget(struct fleet_templates *templates);

/* The sentence for an error of an operation on a template. */
const char *fleet_template_why(struct weir_store *store, int error, char *why, size_t size);

/* Units that a member may use, including the reserved ones. */
uint64_t fleet_share(const struct weir_fleet_member *member);

/* Whether this member has no reserved units because it joined after the last one that has. */
bool fleet_is_surplus(const struct weir_fleet_limit *limit, const struct weir_fleet_member *member);

/* Print one JSON object, on one line if one_line. False if memory ran out. */
bool fleet_json(FILE *out, const struct fleet_readings *readings, bool details, bool one_line);

/* Print OpenMetrics text. False if memory ran out. */
bool fleet_metrics(FILE *out, const struct fleet_readings *readings);

#endif
