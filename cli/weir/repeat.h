/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * repeat.h - --interval and --count: commands that print repeatedly.
 */
#ifndef REPEAT_H
#define REPEAT_H

#include <argp.h>
#include <stdbool.h>
#include <weir/base.h>

struct repeat {
	weir_dur interval; /* 0: print once */
	unsigned count;    /* 0: endlessly */
	unsigned done;
	weir_time next;
};

#define REPEAT_OPTIONS                                                                             \
	{"interval", 'i', "SECONDS", 0, "Repeat every SECONDS, 0.1 to 3600", 0},                   \
	{                                                                                          \
		"count", 'c', "N", 0, "Print N times, 1 s apart unless --interval is given", 0     \
	}

/* Parse one of these options. ARGP_ERR_UNKNOWN for any other. */
error_t repeat_option(struct repeat *repeat, int key, const char *arg, struct argp_state *state);

/* Parse SECONDS. Exits with a usage error if it is not one. */
weir_dur repeat_seconds(const char *text, struct argp_state *state);

/* Sleep until the next turn. False after the last one. */
bool repeat_again(struct repeat *repeat);

#endif
