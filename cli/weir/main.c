/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - weir: the shared limiters of this machine, and the limits of fleets.
 */
#include "command.h"
#include "cli/common/commands.h"

#include <locale.h>

static const struct command commands[] = {
	{"top", command_top, "watch shared limiters on a terminal"},
	{"stat", command_stat, "print their figures, as a table, JSON or OpenMetrics"},
	{"set", command_set, "change a limit, partitions or shadow mode"},
	{"reap", command_reap, "return what dead processes held"},
	{"fleet", command_fleet, "show and change limits that machines share"},
};

/* Only characters follow the locale; numbers do not, since scripts parse them. */
int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "weir",
		.about =
			"Show and change the concurrency limits that processes and machines share.",
		.commands = commands,
		.count = sizeof(commands) / sizeof(commands[0]),
	};

	setlocale(LC_CTYPE, "");
	program_run(&program, argc, argv);
}
