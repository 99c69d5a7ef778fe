/* SPDX-License-Identifier: BSD-2-Clause */
#include "tty.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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

/* Signals that end the program, and those that ncurses handles, are delivered in the wait only. */
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

bool tty_begin(struct tty *tty, const char *command, const char *instead)
{
	const char *type = getenv("TERM");
	SCREEN *screen;

	catch_signals(&tty->open);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fprintf(stderr,
			"%s: Standard input and output are not a terminal; use %s in scripts.\n",
			command, instead);
		return false;
	}
	screen = newterm(NULL, stdout, stdin);
	if (!is_capable(screen)) {
		fprintf(stderr, "%s: A terminal of type %s cannot show it.\n", command,
			type != NULL ? type : "\"\"");
		return false;
	}
	tty->screen = screen;
	set_up_screen();
	return true;
}

/* End by the signal itself, so that the parent process sees it. */
void tty_end(struct tty *tty)
{
	endwin();
	delscreen(tty->screen);
	if (ended_by == 0)
		return;
	signal(ended_by, SIG_DFL);
	raise(ended_by);
	sigprocmask(SIG_SETMASK, &tty->open, NULL);
}

bool tty_wait(const struct tty *tty, weir_time next)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	const weir_time now = weir_now();
	const weir_dur left = next > now ? next - now : 0;
	const struct timespec timeout = {
		.tv_sec = (time_t)(left / WEIR_S),
		.tv_nsec = (long)(left % WEIR_S),
	};

	if (ppoll(&input, 1, &timeout, &tty->open) > 0) {
		/* A pending key kept signals blocked: handle a signal that came before it first. */
		ppoll(NULL, 0, &(struct timespec){0}, &tty->open);
		if ((input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
			return false;
	}
	if (continued) {
		continued = 0;
		reset_prog_mode();
		clearok(curscr, TRUE);
	}
	return ended_by == 0;
}
