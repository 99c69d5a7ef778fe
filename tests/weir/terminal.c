/* SPDX-License-Identifier: BSD-2-Clause */
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct news {
	pid_t program;
	enum fate fate;
	int number;
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "weir-screen: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int property(VTermProp prop, VTermValue *value, void *user)
{
	struct terminal *t = user;

	if (prop == VTERM_PROP_ALTSCREEN)
		t->alternate = value->boolean != 0;
	if (prop == VTERM_PROP_CURSORVISIBLE)
		t->cursor = value->boolean != 0;
	return 1;
}

static const VTermScreenCallbacks callbacks = {.settermprop = property};

static void make_screen(struct terminal *t)
{
	t->vt = vterm_new(t->rows, t->columns);
	if (t->vt == NULL)
		fail("vterm_new");
	vterm_set_utf8(t->vt, 1);
	t->screen = vterm_obtain_screen(t->vt);
	vterm_screen_set_callbacks(t->screen, &callbacks, t);
	vterm_screen_enable_altscreen(t->screen, 1);
	vterm_screen_reset(t->screen, 1);
}

static void tell(int news, pid_t program, enum fate fate, int number)
{
	const struct news one = {.program = program, .fate = fate, .number = number};

	if (write(news, &one, sizeof(one)) != (ssize_t)sizeof(one))
		_exit(2);
}

static _Noreturn void run(char *const *argv)
{
	setpgid(0, 0);
	tcsetpgrp(STDIN_FILENO, getpid());
	signal(SIGTTOU, SIG_DFL);
	execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

/*
 * A process whose parent is of another session is not stopped by a terminal: it needs one that
 * would go on with it. So there is one, which tells what it sees.
 */
static _Noreturn void be_parent(int news, char *const *argv)
{
	pid_t program;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	program = fork();
	if (program == 0)
		run(argv);
	setpgid(program, program);
	tcsetpgrp(STDIN_FILENO, program);
	tell(news, program, RUNNING, 0);
	while (waitpid(program, &status, WUNTRACED | WCONTINUED) == program) {
		if (WIFSTOPPED(status))
			tell(news, program, STOPPED, WSTOPSIG(status));
		else if (WIFCONTINUED(status))
			tell(news, program, RUNNING, 0);
		else if (WIFSIGNALED(status))
			tell(news, program, KILLED, WTERMSIG(status));
		else
			tell(news, program, EXITED, WEXITSTATUS(status));
	}
	pause();
	_exit(0);
}

/* As the kernel has it: asked of a terminal where no program can have changed it yet. */
static struct termios terminal_settings(void)
{
	struct termios settings;
	int master, slave;

	if (openpty(&master, &slave, NULL, NULL, NULL) != 0 || tcgetattr(master, &settings) != 0)
		fail("openpty");
	close(master);
	close(slave);
	return settings;
}

void terminal_start(struct terminal *t, int columns, int rows, char *const *argv)
{
	const struct winsize size = {.ws_col = (unsigned short)columns,
				     .ws_row = (unsigned short)rows};
	int news[2];

	*t = (struct terminal){.rows = rows,
			       .columns = columns,
			       .cursor = true,
			       .ascii = true,
			       .before = terminal_settings()};
	make_screen(t);
	if (pipe(news) != 0)
		fail("pipe");
	t->parent = forkpty(&t->master, NULL, &t->before, &size);
	if (t->parent < 0)
		fail("forkpty");
	if (t->parent == 0)
		be_parent(news[1], argv);
	close(news[1]);
	t->news = news[0];
	while (t->program == 0)
		terminal_wait(t, 100);
}

void terminal_end(struct terminal *t)
{
	if (t->fate == RUNNING || t->fate == STOPPED)
		kill(t->program, SIGKILL);
	kill(t->parent, SIGKILL);
	waitpid(t->parent, NULL, 0);
	close(t->master);
	close(t->news);
	vterm_free(t->vt);
}

static void take_output(struct terminal *t)
{
	char bytes[4096];
	ssize_t size = read(t->master, bytes, sizeof(bytes));
	size_t answer;

	for (ssize_t i = 0; i < size; i++)
		t->ascii &= (unsigned char)bytes[i] < 0x80;
	if (size > 0)
		vterm_input_write(t->vt, bytes, (size_t)size);
	while ((answer = vterm_output_read(t->vt, bytes, sizeof(bytes))) > 0)
		terminal_type(t, bytes, answer);
}

static void take_news(struct terminal *t)
{
	struct news one;

	if (read(t->news, &one, sizeof(one)) != (ssize_t)sizeof(one))
		return;
	t->program = one.program;
	t->fate = one.fate;
	t->number = one.number;
}

bool terminal_wait(struct terminal *t, int ms)
{
	struct pollfd from[2] = {{.fd = t->master, .events = POLLIN},
				 {.fd = t->news, .events = POLLIN}};

	if (poll(from, 2, ms) <= 0)
		return false;
	if ((from[0].revents & POLLIN) != 0)
		take_output(t);
	else if ((from[1].revents & POLLIN) != 0)
		take_news(t);
	return true;
}

void terminal_resize(struct terminal *t, int columns, int rows)
{
	const struct winsize size = {.ws_col = (unsigned short)columns,
				     .ws_row = (unsigned short)rows};

	t->columns = columns;
	t->rows = rows;
	vterm_set_size(t->vt, rows, columns);
	ioctl(t->master, TIOCSWINSZ, &size);
}

void terminal_type(struct terminal *t, const char *bytes, size_t size)
{
	if (write(t->master, bytes, size) != (ssize_t)size)
		fail("write");
}

bool terminal_restored(const struct terminal *t)
{
	struct termios now;

	return tcgetattr(t->master, &now) == 0 && now.c_iflag == t->before.c_iflag &&
	       now.c_oflag == t->before.c_oflag && now.c_lflag == t->before.c_lflag &&
	       now.c_cflag == t->before.c_cflag && !t->alternate && t->cursor;
}

size_t terminal_utf8(unsigned long c, char *text)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n; i-- > 1; c >>= 6)
		text[i] = (char)(0x80 | (c & 0x3f));
	text[0] = (char)(first[n == 1 ? 0 : n] | c);
	text[n] = '\0';
	return n;
}

void terminal_row(const struct terminal *t, int row, char *text, size_t size)
{
	size_t used = 0, end = 0;

	for (int column = 0; column < t->columns && used + 5 < size; column++) {
		const VTermPos at = {.row = row, .col = column};
		VTermScreenCell cell;

		vterm_screen_get_cell(t->screen, at, &cell);
		if (cell.chars[0] == (uint32_t)-1)
			continue; /* the right half of a wide one */
		used += terminal_utf8(cell.chars[0] != 0 ? cell.chars[0] : ' ', text + used);
		if (cell.chars[0] != 0 && cell.chars[0] != ' ')
			end = used;
	}
	text[end] = '\0';
}
