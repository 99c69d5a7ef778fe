/*
 * repeat.h - how often a command does what it does: --interval and --count, which several have.
 */
#ifndef REPEAT_H
#define REPEAT_H

#include <argp.h>
#include <stdbool.h>
#include <weir/base.h>

struct repeat {
	weir_dur interval; /* 0: it does it once */
	unsigned count;    /* 0: without end */
	unsigned done;
	weir_time next;
};

#define REPEAT_OPTIONS                                                                             \
	{"interval", 'i', "SECONDS", 0, "Again and again, so many seconds apart, 0.1 to 3600", 0}, \
	{                                                                                          \
		"count", 'c', "N", 0,                                                              \
			"So many times (with --interval: without end), 1 s apart unless told", 0   \
	}

/* Take an option, if it is one of these. */
error_t repeat_option(struct repeat *repeat, int key, const char *arg, struct argp_state *state);

/* SECONDS, or it is an error of the command line. */
weir_dur repeat_seconds(const char *text, struct argp_state *state);

/* Sleep until it is time for the next one. False: there is none. */
bool repeat_again(struct repeat *repeat);

#endif
