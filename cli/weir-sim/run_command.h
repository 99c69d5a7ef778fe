/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run_command.h - write time series of runs as TSV.
 */
#ifndef RUN_COMMAND_H
#define RUN_COMMAND_H

#include "choice.h"

struct series_plan {
	const char *path;
	weir_dur every; /* between two lines; 0: by lines */
	unsigned lines; /* 0: 500 */
	bool oracle;    /* add the oracle's limits and its run */
};

/* Run each limit in each scenario with the first seed. False, after a message, on failure. */
bool series_write(const struct choice *choice, const struct series_plan *plan);

#endif
