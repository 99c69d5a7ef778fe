/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plot_command.c - write the tables of the other commands and have gnuplot draw them. The looks of
 * a plot are in plots/NAME.gp, which gets the paths of its tables as variables.
 */
#include "command.h"
#include "bench/sim/alloc_or_abort.h"
#include "output.h"
#include "run_command.h"
#include "scores.h"
#include "sweep_command.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SIZE 4096

/* Width of a plot as text if the output is not a terminal. */
#define COLUMNS 100

struct kind {
	const char *name;
	bool scores, series, fixed, swept;
	bool one_limit, one_scenario;
	unsigned lines; /* of a series; more would only be noise in a narrow panel */
	const char *limits, *scenarios; /* defaults; NULL: required */
	uint64_t seeds;                 /* default */
};

static const struct kind kinds[] = {
	{.name = "timeline",
	 .scores = true,
	 .series = true,
	 .one_limit = true,
	 .lines = 240,
	 .seeds = 1},
	{.name = "limits",
	 .scores = true,
	 .series = true,
	 .one_scenario = true,
	 .lines = 100,
	 .limits = CHOICE_ALL,
	 .seeds = 1},
	{.name = "map",
	 .scores = true,
	 .fixed = true,
	 .limits = CHOICE_ALL,
	 .scenarios = CHOICE_ALL,
	 .seeds = 3},
	{.name = "heat", .scores = true, .limits = CHOICE_ALL, .scenarios = CHOICE_ALL, .seeds = 3},
	{.name = "sweep",
	 .scores = true,
	 .swept = true,
	 .one_limit = true,
	 .scenarios = CHOICE_ALL,
	 .seeds = 3},
	{.name = "real"},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The fixed limits on a map. */
static const unsigned ladder[] = {1,  2,  3,  4,  6,   8,   12,  16,  20,  24,
				  32, 48, 64, 96, 128, 192, 256, 384, 512, 1024};

#define RUNGS (sizeof(ladder) / sizeof(ladder[0]))

/* A table in the folder of --data, or in a temporary file without a name. */
struct table {
	char path[PATH_SIZE];
	FILE *nameless;
};

struct wanted {
	struct choice choice;
	const struct kind *kind;
	const char *out, *format, *data, *from, *param;
	unsigned steps; /* 0: chosen to fit the range */
	char def[WEIR_LIMIT_CONFIG_MAX];
	struct table scores, series, abouts;
};

static const struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

/* The format for a file name, by its ending; NULL if unknown. */
static const char *format_of(const char *out)
{
	static const char *const formats[] = {"png", "svg", "txt"};
	const char *dot = strrchr(out, '.');

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && dot != NULL; i++)
		if (strcmp(dot + 1, formats[i]) == 0)
			return formats[i];
	return NULL;
}

/* Called after all options have been parsed, and before the choice is made from them. */
static void set_kind(struct wanted *wanted, const char *name, struct argp_state *state)
{
	struct choice *choice = &wanted->choice;
	const struct kind *kind = kind_named(name);
	bool drawn = wanted->from != NULL;

	if (wanted->kind != NULL)
		argp_error(state, "Only one plot can be drawn");
	if (kind == NULL) {
		argp_error(state, "There is no plot %s", name);
		return;
	}
	wanted->kind = kind;
	if (choice->limits_text == NULL)
		choice->limits_text = drawn || kind->seeds == 0 ? CHOICE_ALL : kind->limits;
	if (choice->scenarios_text == NULL)
		choice->scenarios_text = drawn || kind->seeds == 0 ? CHOICE_ALL : kind->scenarios;
	if (choice->last_seed < choice->first_seed)
		choice->last_seed = kind->seeds;
}

static void check(const struct wanted *wanted, struct argp_state *state)
{
	const struct kind *kind = wanted->kind;

	if (wanted->format == NULL)
		argp_error(state, "%s does not end in .png, .svg or .txt", wanted->out);
	if (kind->swept && wanted->param == NULL)
		argp_error(state, "--param is required: the parameter to vary");
	if (kind->seeds == 0 && wanted->from == NULL)
		argp_error(state, "%s needs a table: --from is required", kind->name);
	if (wanted->from != NULL && kind->series)
		argp_error(state, "%s cannot be drawn from scores alone", kind->name);
	if (wanted->from == NULL && kind->one_limit && wanted->choice.limit_count != 1)
		argp_error(state, "%s takes one limit", kind->name);
	if (kind->one_scenario && wanted->choice.scenario_count != 1)
		argp_error(state, "%s takes one scenario", kind->name);
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &wanted->choice;
		return 0;
	case 'o':
		wanted->out = arg;
		wanted->format = format_of(arg);
		return 0;
	case 'd':
		wanted->data = arg;
		return 0;
	case 'f':
		wanted->from = arg;
		return 0;
	case 'P':
		wanted->param = arg;
		return 0;
	case 'n':
		wanted->steps = choice_number(arg, 2, SWEEP_STEPS_MAX, state);
		return 0;
	case ARGP_KEY_ARG:
		set_kind(wanted, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "Which plot?");
		return EINVAL;
	case ARGP_KEY_SUCCESS:
		check(wanted, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool complain(const char *what, int error)
{
	fprintf(stderr, "weir-sim plot: %s: %s\n", what, strerror(error));
	return false;
}

/* gnuplot inherits a file without a name and opens it by its descriptor. */
static bool table_make(struct table *table, const struct wanted *wanted, const char *name)
{
	int length;

	if (wanted->data != NULL) {
		length = snprintf(table->path, PATH_SIZE, "%s/%s", wanted->data, name);
		return length < PATH_SIZE || complain(wanted->data, ENAMETOOLONG);
	}
	table->nameless = tmpfile();
	if (table->nameless == NULL)
		return complain("a temporary file", errno);
	snprintf(table->path, PATH_SIZE, "/dev/fd/%d", fileno(table->nameless));
	return fcntl(fileno(table->nameless), F_SETFD, 0) == 0;
}

static void table_free(const struct table *table)
{
	if (table->nameless != NULL)
		fclose(table->nameless);
}

static bool write_scores(struct wanted *wanted)
{
	return table_make(&wanted->scores, wanted, "scores.tsv") &&
	       scores_report(&wanted->choice, true, wanted->scores.path, NULL, NULL) ==
		       EXIT_SUCCESS;
}

static bool write_series(struct wanted *wanted)
{
	return table_make(&wanted->series, wanted, "series.tsv") &&
	       series_write(&wanted->choice, &(struct series_plan){.path = wanted->series.path,
								   .lines = wanted->kind->lines,
								   .oracle = true});
}

/* Descriptions of the scenarios, for captions. */
static bool write_abouts(struct wanted *wanted)
{
	const struct choice *choice = &wanted->choice;
	FILE *out;

	if (!table_make(&wanted->abouts, wanted, "scenarios.tsv"))
		return false;
	out = output_open(wanted->abouts.path);
	if (out == NULL)
		return false;
	fputs("scenario\tfamily\tabout\n", out);
	for (size_t i = 0; i < choice->scenario_count; i++)
		fprintf(out, "%s\t%s\t%s\n", choice->scenarios[i].name, choice->scenarios[i].family,
			choice->scenarios[i].about);
	return output_close(out, wanted->abouts.path);
}

static void add_ladder(struct choice *choice)
{
	char text[64], why[200];

	for (size_t i = 0; i < RUNGS; i++) {
		snprintf(text, sizeof(text), "fixed:limit=%u", ladder[i]);
		if (!choice_add_limit(choice, text, why, sizeof(why)))
			abort();
	}
}

/* The default of the varied parameter; unknown here for window parameters. */
static void find_default(struct wanted *wanted)
{
	const struct weir_limit_ops *ops = wanted->choice.limits[0]->config.limit;
	size_t length = strcspn(wanted->param, "=");

	for (uint32_t i = 0; i < ops->param_count; i++)
		if (strlen(ops->params[i].name) == length &&
		    strncmp(ops->params[i].name, wanted->param, length) == 0)
			snprintf(wanted->def, sizeof(wanted->def), "%s", ops->params[i].def);
}

static bool make_tables(struct wanted *wanted)
{
	const struct kind *kind = wanted->kind;

	if (wanted->from != NULL) {
		snprintf(wanted->scores.path, PATH_SIZE, "%s", wanted->from);
		return access(wanted->from, R_OK) == 0 || complain(wanted->from, errno);
	}
	if (wanted->data != NULL && mkdir(wanted->data, 0777) != 0 && errno != EEXIST)
		return complain(wanted->data, errno);
	if (kind->fixed)
		add_ladder(&wanted->choice);
	if (kind->swept) {
		find_default(wanted);
		if (!sweep_expand(&wanted->choice, wanted->param, wanted->steps))
			return false;
	}
	if (kind->scores && !write_scores(wanted))
		return false;
	return !kind->series || (write_series(wanted) && write_abouts(wanted));
}

static unsigned terminal_columns(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40)
		return COLUMNS;
	return size.ws_col;
}

/* Quote for gnuplot: in single quotes, with those inside doubled. */
static void say_text(FILE *to, const char *name, const char *text)
{
	fprintf(to, "%s='", name);
	for (; *text != '\0'; text++)
		fprintf(to, *text == '\'' ? "''" : "%c", *text);
	fputs("'; ", to);
}

/* The variables of the script; free the result. */
static char *variables(const struct wanted *wanted)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (to == NULL)
		return NULL;
	say_text(to, "scores", wanted->scores.path);
	say_text(to, "series", wanted->series.path);
	say_text(to, "abouts", wanted->abouts.path);
	say_text(to, "out", wanted->out == NULL ? "" : wanted->out);
	say_text(to, "format", wanted->format);
	say_text(to, "default", wanted->def);
	if (wanted->param != NULL)
		fprintf(to, "param='%.*s'; ", (int)strcspn(wanted->param, "='"), wanted->param);
	fprintf(to, "columns=%u", terminal_columns());
	fclose(to);
	return text;
}

/* The scripts are found relative to the program, installed or built. */
static bool find_scripts(char *path)
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_SIZE - sizeof(WEIR_PLOTS) - 1);
	char *slash;

	if (length < 0)
		return complain("/proc/self/exe", errno);
	path[length] = '\0';
	slash = strrchr(path, '/');
	memcpy(slash + 1, WEIR_PLOTS, sizeof(WEIR_PLOTS));
	return access(path, R_OK | X_OK) == 0 || complain(path, errno);
}

static bool gnuplot(const char *commands, const char *script)
{
	char *argv[] = {(char *)"gnuplot", (char *)"-e", (char *)commands, (char *)script, NULL};
	int error, status;
	pid_t pid;

	error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (error == ENOENT) {
		fputs("weir-sim plot: gnuplot is missing: install gnuplot-nox\n", stderr);
		return false;
	}
	if (error != 0)
		return complain("gnuplot", error);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return complain("gnuplot", errno);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Do not truncate: the old content stays until the plot is drawn. */
static bool can_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0666);

	return fd < 0 ? complain(path, errno) : close(fd) == 0;
}

/* Check for gnuplot and the output first, as the tables may take minutes. */
static bool plot(struct wanted *wanted)
{
	char folder[PATH_SIZE], script[PATH_SIZE + 32];
	char *assignments;
	bool good;

	if (!find_scripts(folder) || setenv("GNUPLOT_LIB", folder, 1) != 0 || !gnuplot("", NULL))
		return false;
	if (wanted->out != NULL && !can_write(wanted->out))
		return false;
	if (!make_tables(wanted))
		return false;
	snprintf(script, sizeof(script), "%s/%s.gp", folder, wanted->kind->name);
	assignments = variables(wanted);
	fflush(stdout);
	good = assignments != NULL && gnuplot(assignments, script);
	free(assignments);
	return good;
}

int command_plot(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"output", 'o', "FILE", 0,
		 "A .png, .svg or .txt file (default: text on standard output)", 0},
		{"data", 'd', "DIR", 0, "Keep the tables in this folder", 0},
		{"from", 'f', "FILE", 0,
		 "Draw these scores, from score or sweep --tsv, without runs", 0},
		{"param", 'P', "NAME=FROM..TO", 0, "The parameter to vary, in a sweep", 0},
		{"steps", 'n', "N", 0, "Number of values, in a sweep", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.children = choice_children,
		.args_doc = "PLOT",
		.doc = "Draw results of limits with gnuplot.\v"
		       "Plots:\n"
		       "  timeline   a limit over time, in one scenario or several\n"
		       "  limits     all limits in one scenario, over time\n"
		       "  map        goodput against latency, with fixed limits\n"
		       "  heat       the power of every limit in every scenario\n"
		       "  sweep      scores by the value of a parameter\n"
		       "  real       power with real threads against simulated power, --from FILE\n"
		       "\n"
		       "By default a sweep uses all scenarios, map and heat use all scenarios and "
		       "all limits, with seeds 1 to 3.",
	};
	struct wanted *wanted = alloc_or_abort(sizeof(*wanted));
	bool good;

	*wanted = (struct wanted){.choice = {.first_seed = 1}, .format = "txt"};
	argp_parse(&argp, argc, argv, 0, NULL, wanted);
	good = plot(wanted);
	table_free(&wanted->scores);
	table_free(&wanted->series);
	table_free(&wanted->abouts);
	choice_free(&wanted->choice);
	free(wanted);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
