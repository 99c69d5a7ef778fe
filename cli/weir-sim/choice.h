/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choice.h - what a command works on: limits, scenarios, seeds. Their options are the same for all
 * commands.
 */
#ifndef CHOICE_H
#define CHOICE_H

#include "candidate.h"
#include "bench/sim/scenario_read.h"

#include <argp.h>

struct choice {
	struct plugins plugins;
	struct candidate *
		*limits; /* each allocated on its own, since it contains pointers into itself */
	size_t limit_count;
	struct scenario *scenarios;
	size_t scenario_count;
	uint64_t first_seed, last_seed;
	unsigned threads; /* 0: one per processor */
	unsigned random;  /* scenarios drawn by the first seed, in place of others; 0: none */
	bool seeds_given, scenarios_given; /* by options */

	/* The text of the options; commands set the defaults. */
	const char *limits_text, *scenarios_text;
};

/* The options, as the only child of a command's argp, whose input is a struct choice. */
extern const struct argp_child choice_children[];

/* Only the options for limits, plugins and seeds. */
extern const struct argp_child choice_limit_children[];

/* Stands for all limits that learn, and for all built-in scenarios. */
#define CHOICE_ALL "all"

#define RANDOM_MAX 100000

/* Parse the value of an option. A text that is not valid ends the program with a message. */
unsigned choice_number(const char *text, unsigned least, unsigned most,
		       const struct argp_state *state);
weir_dur choice_duration(const char *text, const struct argp_state *state); /* from 1 us */

/* Add a limit. False, with the reason in why, if the text is not valid. */
bool choice_add_limit(struct choice *choice, const char *text, char *why, size_t why_size);

/* Add the oracle's limits times a factor. Only scores can be made of it. */
void choice_add_oracle(struct choice *choice, double times);

/* The range of seeds in a text. One that is not valid ends the program with a message. */
void choice_set_seeds(struct choice *choice, const char *text, struct argp_state *state);

/* The name of a scenario drawn by the first seed. Also ends the program if that is too large. */
void choice_random_name(char *name, size_t size, const struct choice *choice, unsigned number,
			struct argp_state *state);

/* Remove the first count limits. */
void choice_drop_limits(struct choice *choice, size_t count);

void choice_free(struct choice *choice);

static inline size_t choice_seeds(const struct choice *choice)
{
	return (size_t)(choice->last_seed - choice->first_seed + 1);
}

#endif
