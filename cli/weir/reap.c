/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reap.c - weir reap: returns what dead processes held of shared limiters.
 */
#include "command.h"
#include "name.h"
#include "repeat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

struct wanted {
	struct choice choice;
	struct repeat repeat;
	bool noted;           /* what is left out was printed */
	uint32_t pid, number; /* to evict; 0: none */
};

static uint32_t parse_number(const char *text, const char *whole, struct argp_state *state)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || *text == '-' || errno != 0 || n == 0 || n > INT32_MAX)
		argp_error(state, "%s is neither a pid nor the number of a process", whole);
	return (uint32_t)n;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct wanted *wanted = state->input;

	switch (key) {
	case 'e':
		if (arg[0] == '#')
			wanted->number = parse_number(arg + 1, arg, state);
		else
			wanted->pid = parse_number(arg, arg, state);
		return 0;
	case 'u':
	case ARGP_KEY_ARG:
		return choice_option(&wanted->choice, key, arg, state);
	case ARGP_KEY_END:
		repeat_option(&wanted->repeat, key, arg, state);
		if ((wanted->pid != 0 || wanted->number != 0) && wanted->choice.count != 1)
			argp_error(state, "--evict needs the name of one limiter");
		if ((wanted->pid != 0 || wanted->number != 0) && wanted->repeat.interval > 0)
			argp_error(state, "--evict cannot be used with --interval or --count");
		return 0;
	default:
		return repeat_option(&wanted->repeat, key, arg, state);
	}
}

/* The process that --evict names. */
struct sought {
	const struct wanted *wanted;
	struct weir_shm_member found;
	unsigned matches;
};

static bool seek(void *arg, const struct weir_shm_member *member)
{
	struct sought *sought = arg;
	const struct wanted *wanted = sought->wanted;

	if (wanted->number != 0 ? member->number != wanted->number
				: (uint32_t)member->pid != wanted->pid)
		return true;
	sought->found = *member;
	sought->matches++;
	return true;
}

/* A live process would go on using permits that were given to other calls. */
static int find_dead(const struct wanted *wanted, const struct weir_limiter *limiter,
		     uint32_t *number, char *why, size_t why_size)
{
	struct sought sought = {.wanted = wanted};

	weir_shm_visit(limiter, seek, &sought);
	if (sought.matches == 0)
		snprintf(why, why_size, "No such process is attached.");
	else if (sought.matches > 1)
		snprintf(why, why_size,
			 "Several processes have that pid: give the number that "
			 "weir stat --members shows.");
	else if (sought.found.life == WEIR_SHM_ALIVE)
		snprintf(why, why_size, "Process %" PRId32 " is alive: end it first.",
			 sought.found.pid);
	else
		*number = sought.found.number;
	return sought.matches == 1 && sought.found.life != WEIR_SHM_ALIVE ? 0 : -EINVAL;
}

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* When repeated, print only what is new. */
static void report(const char *name, const struct weir_shm_reaped *reaped, bool again)
{
	char shown[SHOWN_ROOM];

	if (again && reaped->processes == 0 && reaped->found == 0)
		return;
	printf("%s: ", name_shown(name, shown, sizeof(shown)));
	if (reaped->processes == 0)
		printf("no dead processes");
	else
		printf("%" PRIu32 " dead process%s, %" PRIu32 " permit%s returned",
		       reaped->processes, reaped->processes == 1 ? "" : "es", reaped->permits,
		       plural(reaped->permits));
	if (reaped->found > 0)
		printf(", %" PRIu32 " lost permit%s found", reaped->found, plural(reaped->found));
	if (reaped->foreign > 0)
		printf(", %" PRIu32 " of another pid namespace", reaped->foreign);
	putchar('\n');
	fflush(stdout);
}

static int reap(const struct wanted *wanted, struct weir_limiter *limiter,
		struct weir_shm_reaped *reaped, char *why, size_t why_size)
{
	const bool evict = wanted->pid != 0 || wanted->number != 0;
	uint32_t number = 0;
	char text[128];
	int r = evict ? find_dead(wanted, limiter, &number, why, why_size) : 0;

	if (r != 0)
		return r;
	r = evict ? weir_shm_evict(limiter, number, reaped) : weir_shm_reap(limiter, reaped);
	if (r == -EAGAIN)
		snprintf(why, why_size, "Another process is reaping it.");
	else if (r != 0)
		snprintf(why, why_size, "It cannot be reaped: %s.",
			 strerror_r(-r, text, sizeof(text)));
	return r;
}

/*
 * Detach from the limiter before anything is printed: a closed pipe would end the program while it
 * is attached. A limiter that was named explicitly may belong to any user.
 */
static int reap_named(const struct wanted *wanted, const struct name *named)
{
	const unsigned trusted = wanted->choice.count > 0 ? 0666 : 0660;
	const char *name = named->text;
	struct weir_limiter *limiter;
	struct weir_shm_reaped reaped;
	char why[512];
	int r = weir_shm_open_of(name, named->owner, trusted, NULL, 0, &limiter, why, sizeof(why));

	if (r == -ENOENT && wanted->choice.count == 0)
		return 0;
	if (r == 0) {
		r = reap(wanted, limiter, &reaped, why, sizeof(why));
		weir_shm_detach(limiter);
	}
	if (r == 0)
		report(name, &reaped, wanted->repeat.interval > 0);
	/* When repeated, another process may be reaping at the same time. */
	if (r == 0 || (r == -EAGAIN && wanted->repeat.interval > 0))
		return 0;
	name_complain(name, why);
	return EXIT_FAILURE;
}

static int reap_all(struct wanted *wanted)
{
	struct names names;
	char why[512];
	int status = EXIT_SUCCESS;

	if (names_find(&names, &wanted->choice, why, sizeof(why)) != 0) {
		name_complain("", why);
		status = EXIT_FAILURE;
	}
	for (size_t i = 0; i < names.count; i++)
		status |= reap_named(wanted, &names.at[i]);
	if (!wanted->noted)
		left_out_print(&names.left_out);
	wanted->noted = true;
	names_free(&names);
	return status;
}

int command_reap(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"evict", 'e', "PID|#NUMBER", 0,
		 "Reap this process of another pid namespace, which must be dead", 0},
		CHOICE_OPTIONS,
		REPEAT_OPTIONS,
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.args_doc = "[NAME...]",
		.doc = "Return what dead processes held of the named shared limiters, or of all that "
		       "belong to you or root.\v"
		       "A permit that was in transit when its process died is found by comparing the "
		       "counts for a second: use --interval=0.5 --count=4.",
	};
	struct wanted wanted = {.noted = false};
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	do {
		status = reap_all(&wanted);
	} while (repeat_again(&wanted.repeat));
	return status;
}
