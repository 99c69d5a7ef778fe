/*
 * fleet.h - what the commands of weir fleet share: the store, and what is read of it.
 */
#ifndef FLEET_H
#define FLEET_H

#include <argp.h>
#include <stdio.h>
#include <weir/work.h>

#include "name.h"

/* -a and its kin, taken by each command, in front of it or behind. */
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
int fleet_remove(int argc, char **argv);
int fleet_drain(int argc, char **argv);
int fleet_undrain(int argc, char **argv);

/* The store that the options say. NULL: it cannot be opened, and that has been said. */
struct weir_store *fleet_store(void);

/* A sentence of what came of something that was done to a limit. */
const char *fleet_why(struct weir_store *store, int error, char *why, size_t size);

/* Complain of that. EXIT_FAILURE. */
int fleet_complain(struct weir_store *store, const char *name, int error);

const char *fleet_allotment(enum weir_allotment allotment);

/* A label as tables show it: of one that is longer, how it begins and how it ends. */
#define LABEL_WIDTH 15
const char *fleet_label(const char *label, char text[LABEL_WIDTH + 1]);

/* A label that is kept for as long as the reading. */
struct kept {
	struct kept *next;
	char text[];
};

/* All there is under a name. */
struct fleet_reading {
	char name[WEIR_SHARE_NAME_MAX + 1];
	struct weir_fleet_limit limit; /* version 0: there is no limit of that name */
	bool strange;                  /* of another version */
	struct weir_fleet_member *members;
	size_t member_count;
	uint32_t workers, owned, checkpoints;
	struct weir_work_part *parts;
	size_t part_count;
	struct kept *labels; /* of members and parts */
	bool full;           /* there was no memory for all of it */
};

struct fleet_readings {
	struct fleet_reading *at;
	size_t count;
};

/* Of a name; 0, or a negative errno. Add it to the readings. */
int fleet_read(struct weir_store *store, const char *name, struct fleet_readings *readings);

/* Of all names, without members and parts. */
int fleet_read_all(struct weir_store *store, struct fleet_readings *readings);
void fleet_forget(struct fleet_readings *readings);

/* What a member may use, with what is reserved. */
uint64_t fleet_share(const struct weir_fleet_member *member);

/* Whether there are more members than units are reserved for, and this one came later. */
bool fleet_is_surplus(const struct weir_fleet_limit *limit, const struct weir_fleet_member *member);

/* One object; on one line, if it is one of several. False: there is no memory. */
bool fleet_json(FILE *out, const struct fleet_readings *readings, bool details, bool one_line);

#endif
