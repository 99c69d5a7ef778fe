/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * screen.c - runs a program on a terminal and plays a script to it.
 *
 *	weir-screen COLUMNSxROWS PROGRAM [ARGUMENT...] <script
 *
 * A line of the script is one of
 *
 *	expect REGEX		wait until a row of the screen matches (POSIX, extended)
 *	absent REGEX		wait until none does
 *	type TEXT, key NAME	write that, or what the key sends
 *	size COLUMNSxROWS
 *	signal NAME		TERM, INT, HUP, QUIT, TSTP, STOP, CONT
 *	stopped, running	wait until it is
 *	exited N, killed NAME	wait until it has ended so
 *	restored		the terminal is as the program found it
 *	ascii			all it has written is ASCII
 *	bold REGEX		as expect, where the match begins in bold
 *	text FILE, svg FILE	write what is on the screen
 *
 * and waits for some minutes at most. The exit status is 1, and the screen is printed, if
 * something does not come true.
 */
#include <locale.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "terminal.h"

#define PATIENCE 240 /* s */
#define ROW_MAX  4096

static void print_screen(FILE *file, const struct terminal *t)
{
	char text[ROW_MAX];

	for (int row = 0; row < t->rows; row++) {
		terminal_row(t, row, text, sizeof(text));
		fprintf(file, "%s\n", text);
	}
}

static void fail(struct terminal *t, const char *line)
{
	fprintf(stderr, "weir-screen: never came true: %s\n", line);
	print_screen(stderr, t);
	fprintf(stderr, "fate %d %d, alternate %d, cursor %d\n", t->fate, t->number, t->alternate,
		t->cursor);
	terminal_end(t);
	exit(EXIT_FAILURE);
}

static int signal_named(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},  {"QUIT", SIGQUIT},
		       {"TSTP", SIGTSTP}, {"STOP", SIGSTOP}, {"CONT", SIGCONT}};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcmp(signals[i].name, name) == 0)
			return signals[i].number;
	return 0;
}

static const char *key_named(const char *name)
{
	static const char *const keys[][2] = {
		{"up", "\033OA"},    {"down", "\033OB"},  {"enter", "\r"},    {"escape", "\033"},
		{"space", " "},      {"ctrl-c", "\003"},  {"ctrl-z", "\032"}, {"backspace", "\177"},
		{"pgup", "\033[5~"}, {"pgdn", "\033[6~"}, {"home", "\033OH"}, {"end", "\033OF"},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i][0], name) == 0)
			return keys[i][1];
	return "";
}

/* What a script can wait for, with its argument. */
struct state {
	const char *what, *argument;
	regex_t pattern;
};

static bool begins_bold(const struct terminal *t, int row, int column)
{
	VTermScreenCell cell;

	vterm_screen_get_cell(t->screen, (VTermPos){.row = row, .col = column}, &cell);
	return cell.attrs.bold;
}

static bool on_screen(const struct terminal *t, const struct state *state, bool bold)
{
	char text[ROW_MAX];
	regmatch_t match;

	for (int row = 0; row < t->rows; row++) {
		terminal_row(t, row, text, sizeof(text));
		if (regexec(&state->pattern, text, 1, &match, 0) == 0 &&
		    (!bold || begins_bold(t, row, (int)match.rm_so)))
			return true;
	}
	return false;
}

static bool is_true(const struct terminal *t, const struct state *state)
{
	if (strcmp(state->what, "expect") == 0)
		return on_screen(t, state, false);
	if (strcmp(state->what, "bold") == 0)
		return on_screen(t, state, true);
	if (strcmp(state->what, "absent") == 0)
		return !on_screen(t, state, false);
	if (strcmp(state->what, "stopped") == 0)
		return t->fate == STOPPED;
	if (strcmp(state->what, "running") == 0)
		return t->fate == RUNNING;
	if (strcmp(state->what, "restored") == 0)
		return terminal_restored(t);
	if (strcmp(state->what, "ascii") == 0)
		return t->ascii;
	if (strcmp(state->what, "exited") == 0)
		return t->fate == EXITED && t->number == atoi(state->argument);
	if (strcmp(state->what, "killed") == 0)
		return t->fate == KILLED && t->number == signal_named(state->argument);
	fprintf(stderr, "weir-screen: there is no command %s\n", state->what);
	exit(2);
}

static void wait_for(struct terminal *t, const char *what, const char *argument, const char *line)
{
	struct state state = {.what = what, .argument = argument};
	struct timespec begin, now;

	if (regcomp(&state.pattern, argument, REG_EXTENDED) != 0) {
		fprintf(stderr, "weir-screen: %s is no pattern\n", argument);
		exit(2);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		terminal_wait(t, 50);
		if (is_true(t, &state)) {
			regfree(&state.pattern);
			return;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begin.tv_sec <= PATIENCE);
	fail(t, line);
}

static void resize(struct terminal *t, const char *size)
{
	int columns, rows;

	if (sscanf(size, "%dx%d", &columns, &rows) == 2)
		terminal_resize(t, columns, rows);
}

static void write_text(const struct terminal *t, const char *path)
{
	FILE *file = fopen(path, "w");

	if (file == NULL) {
		perror(path);
		exit(2);
	}
	print_screen(file, t);
	fclose(file);
}

/* Until it has written all of what it is writing: then it waits for a moment. */
static void settle(struct terminal *t)
{
	for (int i = 0; i < 100 && terminal_wait(t, 60); i++)
		;
}

static void play(struct terminal *t, const char *line)
{
	char what[16] = "";
	const char *argument = strchr(line, ' ');

	sscanf(line, "%15s", what);
	argument = argument != NULL ? argument + 1 : "";
	if (strcmp(what, "text") == 0 || strcmp(what, "svg") == 0)
		settle(t);
	if (what[0] == '\0' || what[0] == '#')
		return;
	if (strcmp(what, "type") == 0)
		terminal_type(t, argument, strlen(argument));
	else if (strcmp(what, "key") == 0)
		terminal_type(t, key_named(argument), strlen(key_named(argument)));
	else if (strcmp(what, "size") == 0)
		resize(t, argument);
	else if (strcmp(what, "signal") == 0)
		kill(t->program, signal_named(argument));
	else if (strcmp(what, "text") == 0)
		write_text(t, argument);
	else if (strcmp(what, "svg") == 0)
		drawing_write(t, argument);
	else
		wait_for(t, what, argument, line);
}

int main(int argc, char **argv)
{
	struct terminal terminal;
	char line[1024];
	int columns = 0, rows = 0;

	setlocale(LC_CTYPE, "");
	if (argc < 3 || sscanf(argv[1], "%dx%d", &columns, &rows) != 2) {
		fputs("usage: weir-screen COLUMNSxROWS PROGRAM [ARGUMENT...] <script\n", stderr);
		return 2;
	}
	terminal_start(&terminal, columns, rows, argv + 2);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		play(&terminal, line);
	}
	terminal_end(&terminal);
	return EXIT_SUCCESS;
}
