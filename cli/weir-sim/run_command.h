/*
 * run_command.h - runs as they go, as TSV.
 */
#ifndef RUN_COMMAND_H
#define RUN_COMMAND_H

#include "choice.h"

struct series_plan {
	const char *path;
	weir_dur every; /* between two lines; 0: by how many there are to be */
	unsigned lines; /* 0: 500 */
	bool oracle;    /* with the oracle's limits, and a run of theirs */
};

/* Each limit in each scenario, with the first seed. False, after a message: it is not written. */
bool series_write(const struct choice *choice, const struct series_plan *plan);

#endif
