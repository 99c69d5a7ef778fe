/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - weir-fleet-bench: the cost of sharing a limit. bench/README.md explains the tables.
 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *arguments;
	int least;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"cost", "ROUNDS TIMES", 2, cost_command},
	{"load", "ADDRESS|memory SECONDS MEMBERS...", 3, load_command},
	{"settle", "--members N --store ADDRESS|memory [--pid PID] [--allocated 0]", 4,
	 settle_command},
	{"simulate", "MEMBERS|REGIONSxMEMBERS|aMEMBERS...", 1, simulate_command},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

int main(int argc, char **argv)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (argc >= commands[i].least + 2 && strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 2, argv + 2);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(stderr, "%s weir-fleet-bench %s %s\n", i == 0 ? "usage:" : "      ",
			commands[i].name, commands[i].arguments);
	return EXIT_FAILURE;
}
