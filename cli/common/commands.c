/* SPDX-License-Identifier: BSD-2-Clause */
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command *command_named(const struct program *p, const char *name)
{
	for (size_t i = 0; i < p->count; i++)
		if (strcmp(p->commands[i].name, name) == 0)
			return &p->commands[i];
	return NULL;
}

/* Whether all output could be written. Prints an error message otherwise. */
static bool is_printed(const char *program)
{
	errno = 0;
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return true;
	fprintf(stderr, "%s: standard output: %s\n", program,
		errno != 0 ? strerror(errno) : "Not all of it could be written");
	return false;
}

static int run_command(const struct program *p, const struct command *command, int argc,
		       char **argv)
{
	char name[64];
	int status;

	snprintf(name, sizeof(name), "%s %s", p->name, command->name);
	argv[0] = name;
	status = command->run(argc, argv);
	return is_printed(p->name) ? status : EXIT_FAILURE;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	const struct program *p = state->input;
	const struct command *command;
	int first = state->next - 1;

	if (key == ARGP_KEY_NO_ARGS)
		argp_usage(state);
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	command = command_named(p, arg);
	if (command == NULL) {
		argp_error(state, "there is no command %s", arg);
		return EINVAL;
	}
	exit(run_command(p, command, state->argc - first, state->argv + first));
}

static char *help_filter(int key, const char *text, void *input)
{
	const struct program *p = input;
	char *help = NULL;
	size_t size;
	FILE *out;

	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	out = open_memstream(&help, &size);
	if (out == NULL)
		return NULL;
	fputs("Commands:\n", out);
	for (size_t i = 0; i < p->count; i++)
		fprintf(out, "  %-26s %s\n", p->commands[i].name, p->commands[i].about);
	fprintf(out, "\n`%s COMMAND --help' describes each.", p->name);
	fclose(out);
	return help;
}

void program_run(const struct program *program, int argc, char **argv)
{
	const struct argp argp = {
		.parser = option,
		.args_doc = "COMMAND [OPTION...]",
		.doc = program->about,
		.children = program->options,
		.help_filter = help_filter,
	};

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, (void *)program);
	exit(EXIT_SUCCESS);
}
