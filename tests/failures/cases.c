/* SPDX-License-Identifier: BSD-2-Clause */
#include "cases.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define ERRORS_MAX 3
#define NTH_MAX    100000u

/* A leak is what is left each time: libraries keep some things that they have made once. */
#define REPEATS 3

static const struct kind {
	const char *name;
	int errors[ERRORS_MAX];
} kinds[FAULT_KINDS] = {
	[FAULT_MEMORY] = {"allocation", {ENOMEM}},
	[FAULT_MAP] = {"mapping", {ENOMEM}},
	[FAULT_ADVISE] = {"madvise", {EINVAL}},
	[FAULT_OPEN] = {"open", {EINTR, EMFILE, ENOMEM}},
	[FAULT_READ] = {"read", {EINTR, EIO}},
	[FAULT_WRITE] = {"write", {EINTR, EIO, ENOSPC}},
	[FAULT_RESERVE] = {"reservation", {EINTR, ENOSPC, EIO}},
	[FAULT_STAT] = {"stat", {EIO, ENOMEM}},
	[FAULT_LINK] = {"link", {ENOSPC, EIO}},
	[FAULT_LOCK] = {"lock", {EINTR, ENOLCK}},
	[FAULT_THREAD] = {"thread", {EAGAIN}},
	[FAULT_RANDOM] = {"random number", {EINTR, ENOSYS}},
	[FAULT_EVENT] = {"event descriptor", {EMFILE, ENOMEM}},
	[FAULT_SOCKET] = {"socket", {EMFILE, ENOMEM}},
	[FAULT_CONNECT] = {"connect", {EINTR, ECONNREFUSED, ETIMEDOUT}},
	[FAULT_SEND] = {"send", {EINTR, EPIPE, ENOBUFS}},
	[FAULT_RECEIVE] = {"receive", {EINTR, ECONNRESET, ENOMEM}},
};

static bool only_single;

void cases_only_single(void)
{
	only_single = true;
}

/* What is being done, shown when it ends the program. */
static char doing[512];

static void show_crash(int signal_number)
{
	(void)!write(STDERR_FILENO, doing, strlen(doing));
	(void)signal(signal_number, SIG_DFL);
	(void)raise(signal_number);
}

static void complain(const char *what)
{
	fprintf(stderr, "%s\n", what);
	fault_show();
	abort();
}

static void call(void (*function)(void))
{
	if (function != NULL)
		function();
}

struct trial {
	const struct failure_case *c;
	enum fault kind;
	int error;
	bool lasting;
	unsigned nth; /* 0: no failure */
};

static void describe(const struct trial *t)
{
	const struct failure_case *c = t->c;

	snprintf(doing, sizeof(doing), "%s%s%s%s, %s%s %u fails (%s)\n", c->functions,
		 c->what != NULL ? " (" : "", c->what != NULL ? c->what : "",
		 c->what != NULL ? ")" : "", kinds[t->kind].name,
		 t->lasting ? " and those after number" : "", t->nth, strerrorname_np(t->error));
}

/* Whether the result is documented: an interrupted call may be repeated, any error handed on. */
static bool is_documented(const struct trial *t, int result)
{
	const struct instead *i = t->c->instead;

	for (; i->kinds != 0; i++)
		if ((i->kinds & FAULT_BIT(t->kind)) != 0 && i->result == result)
			return true;
	return result == -t->error || (result == 0 && t->error == EINTR);
}

/* Returns whether the call failed, which is false if there was no nth call. */
static bool attempt(const struct trial *t)
{
	const struct failure_case *c = t->c;
	bool happened = false;
	char text[64];
	int result;

	call(c->begin);
	if (t->nth > 0)
		fault_arm(t->kind, t->nth, t->error, t->lasting);
	result = c->attempt();
	if (t->nth > 0)
		happened = fault_disarm();
	snprintf(text, sizeof(text), "its result is %d", result);
	if (happened ? !is_documented(t, result) : result != 0)
		complain(text);
	if (happened && c->quiet)
		complain("it should do nothing of the kind");
	if (result != 0) {
		call(c->failed);
		result = c->attempt();
		snprintf(text, sizeof(text), "another attempt fails too: %d", result);
		if (result != 0)
			complain(text);
	}
	call(c->use);
	call(c->end);
	return happened;
}

static bool is_same(const struct holdings *a, const struct holdings *b)
{
	return a->blocks == b->blocks && a->mapped == b->mapped && a->files == b->files;
}

/* The same, and nothing is left in the end. */
static bool attempt_cleanly(const struct trial *t)
{
	struct holdings before, after = {.blocks = 0};
	bool happened = false;

	describe(t);
	for (int i = 0; i < REPEATS; i++) {
		holdings_watch();
		before = holdings_take();
		happened = attempt(t);
		after = holdings_take();
		if (is_same(&before, &after))
			return happened;
	}
	fprintf(stderr, "left are %zd allocations, %zd mapped bytes, %zd descriptors\n",
		(ssize_t)(after.blocks - before.blocks), (ssize_t)(after.mapped - before.mapped),
		(ssize_t)(after.files - before.files));
	fault_show();
	holdings_show();
	abort();
}

/* Returns how many calls of that kind there are. */
static unsigned fail_each(struct trial t)
{
	for (t.nth = 1; attempt_cleanly(&t); t.nth++)
		if (t.nth == NTH_MAX)
			complain("there is no end of it");
	return t.nth - 1;
}

static void run_case(const struct failure_case *c)
{
	unsigned calls = 0;

	attempt_cleanly(&(struct trial){.c = c});
	printf("%s%s%s:", c->functions, c->what != NULL ? ", " : "",
	       c->what != NULL ? c->what : "");
	for (unsigned kind = 0; kind < FAULT_KINDS; kind++) {
		unsigned found = 0;

		for (unsigned i = 0; i < ERRORS_MAX && kinds[kind].errors[i] != 0; i++) {
			struct trial t = {.c = c, .kind = kind, .error = kinds[kind].errors[i]};

			found = fail_each(t);
			if (found == 0)
				break;
			t.lasting = true;
			if (t.error != EINTR && !only_single)
				(void)fail_each(t);
		}
		if (found > 0)
			printf(" %u x %s", found, kinds[kind].name);
		calls += found;
	}
	puts(calls == 0 ? " nothing that can fail" : "");
	if (calls == 0 && !c->quiet)
		complain("nothing of it can fail: it should be quiet, or tests nothing");
}

/* One function in each line. */
static void list(const struct failure_case *c)
{
	for (const char *at = c->functions; *at != '\0'; at++)
		putchar(*at == ' ' ? '\n' : *at);
	putchar('\n');
}

static bool is_wanted(const struct failure_case *c, int argc, char **argv)
{
	if (argc == 0)
		return true;
	for (int i = 0; i < argc; i++)
		if (strstr(c->functions, argv[i]) != NULL)
			return true;
	return false;
}

int cases_run(const struct failure_case *cases, size_t count, int argc, char **argv)
{
	const bool only_list = argc > 1 && strcmp(argv[1], "--list") == 0;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGABRT, show_crash);
	(void)signal(SIGSEGV, show_crash);
	(void)signal(SIGBUS, show_crash);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		if (only_list)
			list(&cases[i]);
		else if (is_wanted(&cases[i], argc - 1, argv + 1))
			run_case(&cases[i]);
	}
	return 0;
}
