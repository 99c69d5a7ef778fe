/*
 * top.c - weir top: the shared limiters of this machine, on a terminal.
 *
 * All happens between two waits for a key, a signal or the next reading. Signals are blocked but in
 * that wait, so that no handler, ncurses' neither, meets a screen that is being drawn.
 */
#include "top.h"

#include <inttypes.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bars.h"
#include "command.h"
#include "repeat.h"

static volatile sig_atomic_t ended_by, continued;

static void end_by(int number)
{
	ended_by = number;
}

static void go_on(int number)
{
	(void)number;
	continued = 1;
}

/* What is shown. */

const char *top_span(const struct top *top, char *text, size_t size)
{
	const double seconds = PAST * (double)top->interval / (double)WEIR_S;

	if (seconds < 60)
		snprintf(text, size, "%.3gs", seconds);
	else
		snprintf(text, size, "%.3gm", seconds / 60);
	return text;
}

const struct watched *top_chosen(const struct top *top)
{
	for (size_t i = 0; i < top->limiters.count; i++)
		if (strcmp(top->limiters.at[i].name, top->chosen) == 0)
			return &top->limiters.at[i];
	return NULL;
}

static void draw_title(const struct top *top, enum view view)
{
	const time_t now = time(NULL);
	struct tm local;
	char clock[16] = "";

	if (localtime_r(&now, &local) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	attrset(A_BOLD);
	mvaddstr(0, 0, "weir top");
	attrset(A_NORMAL);
	if (view == DETAIL) {
		char shown[SHOWN_ROOM];

		printw("  %.*s", COLS > 30 ? COLS - 30 : 0,
		       name_shown(top->chosen, shown, sizeof(shown)));
	} else {
		printw("  %zu shared limiter%s", top->limiters.count,
		       top->limiters.count == 1 ? "" : "s");
	}
	if (top->filter[0] != '\0' && view == LIST)
		printw(", with \"%s\"", top->filter);
	if (top->paused)
		mvaddstr(0, COLS > 20 ? COLS - 18 : 0, " paused");
	mvaddstr(0, COLS > 9 ? COLS - 9 : 0, " ");
	addstr(clock);
}

static void draw_keys(const struct top *top, enum view view)
{
	static const char *const keys[] = {
		[LIST] = "q quit  enter details  s sort  p parts  / filter  space pause  h help",
		[DETAIL] = "q back  up, down scroll  space pause  h help",
		[HELP] = "any key: back",
	};

	attrset(A_REVERSE);
	mvhline(LINES - 1, 0, ' ' | A_REVERSE, COLS);
	mvaddnstr(LINES - 1, 0, top->why[0] != '\0' && view != HELP ? top->why : keys[view], COLS);
	attrset(A_NORMAL);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"",
		"In the list",
		"  up, down, k, j     choose a limiter",
		"  page up, page down ten at a time; home, end the first, the last",
		"  enter              its details",
		"  s, S               sort by the next column, by the one before",
		"  r                  reverse the order",
		"  p                  show partitions, or hide them",
		"  /                  show those only that have this in their name",
		"  space              pause, and go on",
		"  q                  quit",
		"",
		"LIMIT is the limit, of a partition the most it may have. INFL are permits in",
		"flight, WAIT calls in the queue. RTT is that of the last window. Rejected are",
		"also those who waited in vain, dropped also those that timed out. USED are",
		"permits in flight, as a part of the limit; bold where calls were refused.",
		"",
		"In the details, up and down scroll, and q goes back.",
	};
	struct page page = {.row = 0};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		page_line(&page, PLAIN);
		page_text(&page, "%s", lines[i]);
		page_end(&page);
	}
}

static void draw_filter(const struct top *top)
{
	char shown[SHOWN_ROOM];

	attrset(A_REVERSE);
	mvhline(LINES - 1, 0, ' ' | A_REVERSE, COLS);
	mvprintw(LINES - 1, 0, "Names with: %s_", name_shown(top->filter, shown, sizeof(shown)));
	attrset(A_NORMAL);
}

static void draw(struct top *top, const struct screen *screen)
{
	erase();
	if (screen->view == LIST)
		top_draw_list(top);
	else if (screen->view == DETAIL)
		top_draw_detail(top);
	else
		draw_help();
	draw_title(top, screen->view);
	if (screen->filtering)
		draw_filter(top);
	else
		draw_keys(top, screen->view);
	refresh();
}

/* What is read. */

static void note(void *arg, const char *name, const char *why)
{
	struct top *top = arg;
	char shown[2][SHOWN_ROOM];

	snprintf(top->why, sizeof(top->why), "%s: %s", name_shown(name, shown[0], sizeof(shown[0])),
		 name_shown(why, shown[1], sizeof(shown[1])));
}

static void look(struct top *top)
{
	top->why[0] = '\0';
	limiters_look(&top->limiters, note, top);
}

/* The terminal, and signals. */

/* Those that end it, and those that ncurses catches, come in the wait alone. */
static void catch_signals(sigset_t *open)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = end_by};
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		sigaddset(&held, ends[i]);
		sigaction(ends[i], &action, NULL);
	}
	action.sa_handler = go_on;
	sigaction(SIGCONT, &action, NULL);
	sigaddset(&held, SIGCONT);
	sigaddset(&held, SIGTSTP);
	sigaddset(&held, SIGWINCH);
	sigprocmask(SIG_BLOCK, &held, open);
}

static bool is_capable(SCREEN *screen)
{
	if (screen == NULL)
		return false;
	if (tigetstr("cup") != NULL && tigetstr("cup") != (char *)-1)
		return true;
	endwin();
	delscreen(screen);
	return false;
}

static void set_up_screen(void)
{
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	if (getenv("NO_COLOR") == NULL && has_colors() && start_color() == OK &&
	    use_default_colors() == OK)
		init_pair(1, COLOR_RED, -1);
}

/* NULL: it has no use for a screen, and that has been said. */
static SCREEN *open_terminal(void)
{
	const char *type = getenv("TERM");
	SCREEN *screen;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs("weir top: Standard input and output are no terminal; for programs there is "
		      "weir stat.\n",
		      stderr);
		return NULL;
	}
	screen = newterm(NULL, stdout, stdin);
	if (!is_capable(screen)) {
		fprintf(stderr, "weir top: A terminal of type %s cannot show it.\n",
			type != NULL ? type : "\"\"");
		return NULL;
	}
	set_up_screen();
	return screen;
}

/* Until there is a key or a signal, or it is time. False: the terminal is gone. */
static bool wait_until(weir_time next, const sigset_t *open)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	const weir_time now = weir_now();
	const weir_dur left = next > now ? next - now : 0;
	const struct timespec timeout = {
		.tv_sec = (time_t)(left / WEIR_S),
		.tv_nsec = (long)(left % WEIR_S),
	};

	if (ppoll(&input, 1, &timeout, open) <= 0)
		return true;
	/* A key that was there kept signals out: one that came before it goes first. */
	ppoll(NULL, 0, &(struct timespec){0}, open);
	return (input.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static void run(struct top *top, const sigset_t *open)
{
	weir_time next = weir_now();
	struct screen screen = {.view = top->chosen[0] != '\0' ? DETAIL : LIST};
	int key;

	while (ended_by == 0) {
		if (weir_now() >= next) {
			if (!top->paused)
				look(top);
			next = weir_now() + top->interval;
		}
		if (screen.view == LIST)
			top_choose_again(top);
		draw(top, &screen);
		if (!wait_until(next, open))
			return;
		while ((key = getch()) != ERR)
			if (!top_press(top, &screen, key))
				return;
		if (continued) {
			continued = 0;
			reset_prog_mode();
			clearok(curscr, TRUE);
		}
	}
}

/* As if the signal had ended it: whoever waits for it is told. */
static void end_as_told(const sigset_t *open)
{
	if (ended_by == 0)
		return;
	signal(ended_by, SIG_DFL);
	raise(ended_by);
	sigprocmask(SIG_SETMASK, open, NULL);
}

struct wanted {
	struct top top;
	bool ascii;
};

static enum sort sort_named(const char *name, struct argp_state *state)
{
	static const char *const names[] = {
		[SORT_NAME] = "name",       [SORT_LIMIT] = "limit",  [SORT_INFLIGHT] = "inflight",
		[SORT_WAITING] = "waiting", [SORT_RTT] = "rtt",      [SORT_ADMITTED] = "admit",
		[SORT_REJECTED] = "reject", [SORT_DROPPED] = "drop",
	};

	for (enum sort i = 0; i < SORTS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	argp_error(state,
		   "%s is no column: there are name, limit, inflight, waiting, rtt, admit, reject, "
		   "drop",
		   name);
	return SORT_NAME;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;
	struct top *top = &wanted->top;

	switch (key) {
	case 'i':
		top->interval = repeat_seconds(arg, state);
		return 0;
	case 's':
		top->sort = sort_named(arg, state);
		return 0;
	case 'p':
		top->partitions = true;
		return 0;
	case 'a':
		wanted->ascii = true;
		return 0;
	case ARGP_KEY_ARG:
		top->limiters.asked = &state->argv[state->next - 1];
		top->limiters.asked_count = (size_t)(state->argc - state->next + 1);
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A single one that was asked for must be there, and its details are shown. */
static bool begin(struct top *top)
{
	if (top->limiters.asked_count == 0)
		return true;
	look(top);
	if (top->why[0] != '\0') {
		fprintf(stderr, "weir top: %s\n", top->why);
		return false;
	}
	if (top->limiters.asked_count == 1)
		strcpy(top->chosen, top->limiters.at[0].name);
	return true;
}

int command_top(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"interval", 'i', "SECONDS", 0, "Look so often: 0.1 to 3600 (1)", 0},
		{"sort", 's', "COLUMN", 0,
		 "name, limit, inflight, waiting, rtt, admit, reject or drop", 0},
		{"partitions", 'p', NULL, 0, "Show partitions", 0},
		{"ascii", 'a', NULL, 0, "Draw bars in ASCII, whatever the locale has", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "[NAME...]",
		.doc = "Watch the shared limiters of those names, or all; of a single name the "
		       "details.\v"
		       "The key h shows what keys do.",
	};
	struct wanted wanted = {.top = {.interval = WEIR_S}};
	SCREEN *screen = NULL;
	sigset_t open;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	wanted.top.unicode = !wanted.ascii && bars_unicode();
	if (begin(&wanted.top)) {
		catch_signals(&open);
		screen = open_terminal();
	}
	if (screen != NULL) {
		run(&wanted.top, &open);
		endwin();
		delscreen(screen);
		end_as_told(&open);
	}
	limiters_free(&wanted.top.limiters);
	return screen != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
