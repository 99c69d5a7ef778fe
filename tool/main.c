/*
 * main.c - weir: the shared limiters of this machine. Finds the command and lets it have the rest.
 */
#include "command.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
};

static const struct command commands[] = {
	{"top", command_top, "watch them"},
	{"stat", command_stat, "print their numbers, for people and for programs"},
	{"set", command_set, "change a limit, shares, shadow mode"},
	{"reap", command_reap, "give back what dead processes held"},
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

	snprintf(name, sizeof(name), "weir %s", command->name);
	argv[0] = name;
	status = command->run(argc, argv);
	errno = 0;
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return status;
	fprintf(stderr, "weir: standard output: %s\n",
		errno != 0 ? strerror(errno) : "Not all of it could be written");
	return EXIT_FAILURE;
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
	fputs("\n`weir COMMAND --help' tells more of each.", out);
	fclose(out);
	return help;
}

/* Characters are the terminal's; numbers are not the locale's, as scripts read them. */
int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = option,
		.args_doc = "COMMAND [OPTION...]",
		.doc = "Look after the concurrency limits that processes of this machine share.",
		.help_filter = help_filter,
	};

	setlocale(LC_CTYPE, "");
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, NULL);
	return EXIT_SUCCESS;
}
