/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * command.h - the commands of weir. Each parses its own arguments and returns an exit status.
 * argv[0] is the command's name for messages.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <argp.h>

int command_fleet(int argc, char **argv);
int command_reap(int argc, char **argv);
int command_set(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_top(int argc, char **argv);

/* Exit status of an option that is wrong, here as in argp. */
#define EXIT_USAGE 64

#endif
