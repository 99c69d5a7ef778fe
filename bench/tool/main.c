/*
 * main.c - weir-sim: the arena. Finds the command and lets it have the rest.
 */
#include "command.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
};

static const struct command commands[] = {
	{"list", command_list, "what limits and scenarios there are"},
	{"run", command_run, "run limits through scenarios"},
	{"score", command_score, "judge limits by the oracle"},
	{"sweep", command_sweep, "judge the values of a parameter"},
	{"plot", command_plot, "draw how limits do"},
	{"replay", command_replay, "show limits in calls that you recorded"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_named(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	char name[64];
	int status;

	snprintf(name, sizeof(name), "weir-sim %s", command->name);
	argv[0] = name;
	status = command->run(argc, argv);
	return output_end() ? status : EXIT_FAILURE;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	const struct command *command;
	int first = state->next - 1;

	if (key == ARGP_KEY_NO_ARGS)
		argp_usage(state);
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	command = command_named(arg);
	if (command == NULL)
		argp_error(state, "there is no command %s", arg);
	exit(run_command(command, state->argc - first, state->argv + first));
}

static char *help_filter(int key, const char *text, void *input)
{
	char *help = NULL;
	size_t size;
	FILE *out;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	out = open_memstream(&help, &size);
	if (out == NULL)
		return NULL;
	fputs("Commands:\n", out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-26s %s\n", commands[i].name, commands[i].about);
	fputs("\n`weir-sim COMMAND --help' tells more of each.", out);
	fclose(out);
	return help;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = option,
		.args_doc = "COMMAND [OPTION...]",
		.doc = "Judge concurrency limits: in simulated services, in virtual time.",
		.help_filter = help_filter,
	};

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, NULL);
	return EXIT_SUCCESS;
}
