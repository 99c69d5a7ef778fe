/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * commands.h - a program with several commands, `PROGRAM COMMAND [OPTION...]`: finds the command
 * and passes it the rest of the arguments.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <argp.h>
#include <stddef.h>

/* run() parses its own arguments, argv[0] being its name for messages; returns an exit status. */
struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
};

struct program {
	const char *name;
	const char *about;
	const struct argp_child *options; /* common to all commands; may be NULL */
	const struct command *commands;
	size_t count;
};

/* Run the command that the arguments name, and exit. */
_Noreturn void program_run(const struct program *program, int argc, char **argv);

#endif
