/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - weir-sim, a program that compares limits in simulated services.
 */
#include "command.h"
#include "cli/common/commands.h"

static const struct command commands[] = {
	{"list", command_list, "list limits and scenarios"},
	{"run", command_run, "run limits through scenarios"},
	{"score", command_score, "score limits against the oracle"},
	{"sweep", command_sweep, "score the values of a parameter"},
	{"plot", command_plot, "draw results"},
	{"replay", command_replay, "show limits in calls that you recorded"},
};

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "weir-sim",
		.about = "Compare concurrency limits in simulated services, in virtual time.",
		.commands = commands,
		.count = sizeof(commands) / sizeof(commands[0]),
	};

	program_run(&program, argc, argv);
}
