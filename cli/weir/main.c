/*
 * main.c - weir: the shared limiters of this machine, and the limits of fleets.
 */
#include "command.h"
#include "cli/common/commands.h"

#include <locale.h>

static const struct command commands[] = {
	{"top", command_top, "watch them"},
	{"stat", command_stat, "print their numbers, for people and for programs"},
	{"set", command_set, "change a limit, shares, shadow mode"},
	{"reap", command_reap, "give back what dead processes held"},
	{"fleet", command_fleet, "look after limits that machines share"},
};

/* Characters are the terminal's; numbers are not the locale's, as scripts read them. */
int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "weir",
		.about = "Look after the concurrency limits that processes and machines share.",
		.commands = commands,
		.count = sizeof(commands) / sizeof(commands[0]),
	};

	setlocale(LC_CTYPE, "");
	program_run(&program, argc, argv);
}
