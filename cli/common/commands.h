/*
 * commands.h - a program of several commands, `PROGRAM COMMAND [OPTION...]`: finds the command, and
 * lets it have the rest.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <argp.h>
#include <stddef.h>

/* Takes its own arguments, argv[0] being its name for messages; answers an exit status. */
struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
};

struct program {
	const char *name;
	const char *about;
	const struct argp_child *options; /* of all commands; NULL: none */
	const struct command *commands;
	size_t count;
};

/* Does what the arguments say, and ends the program. */
_Noreturn void program_run(const struct program *program, int argc, char **argv);

#endif
