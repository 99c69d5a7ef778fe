/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command.h - the commands of weir-sim. Each parses its own arguments, with its name for messages
 * in argv[0], and returns an exit status.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <argp.h>

int command_list(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_run(int argc, char **argv);
int command_score(int argc, char **argv);
int command_sweep(int argc, char **argv);
int command_plot(int argc, char **argv);

/* Exit status for wrong options, as in argp. */
#define EXIT_USAGE 64

#endif
