/*
 * main.c - weir-sim: the arena.
 */
#include "command.h"
#include "cli/common/commands.h"

static const struct command commands[] = {
	{"list", command_list, "what limits and scenarios there are"},
	{"run", command_run, "run limits through scenarios"},
	{"score", command_score, "judge limits by the oracle"},
	{"sweep", command_sweep, "judge the values of a parameter"},
	{"plot", command_plot, "draw how limits do"},
	{"replay", command_replay, "show limits in calls that you recorded"},
};

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "weir-sim",
		.about = "Judge concurrency limits: in simulated services, in virtual time.",
		.commands = commands,
		.count = sizeof(commands) / sizeof(commands[0]),
	};

	program_run(&program, argc, argv);
}
