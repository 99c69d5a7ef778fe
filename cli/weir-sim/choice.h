/*
 * choice.h - what a command is to be done with: limits, scenarios, seeds. The options that say so
 * are the same for all commands.
 */
#ifndef CHOICE_H
#define CHOICE_H

#include "candidate.h"
#include "bench/sim/scenario_read.h"

#include <argp.h>

struct choice {
	struct plugins plugins;
	struct candidate **limits; /* each allocated, as it points to itself */
	size_t limit_count;
	struct scenario *scenarios;
	size_t scenario_count;
	uint64_t first_seed, last_seed;
	unsigned threads; /* 0: all processors */

	/* As given; the defaults are the command's. */
	const char *limits_text, *scenarios_text;
};

/* The options, to be the only child of a command's argp; its input is a struct choice. */
extern const struct argp_child choice_children[];

/* The same with those alone that say which limits, and by which seed. */
extern const struct argp_child choice_limit_children[];

/* Of all there are: built-in limits that learn, and built-in scenarios. */
#define CHOICE_ALL "all"

/* What options of commands are given: a text that is none ends the program. */
unsigned choice_number(const char *text, unsigned least, unsigned most,
		       const struct argp_state *state);
weir_dur choice_duration(const char *text, const struct argp_state *state); /* from 1 us */

/* One limit more. False, and why not in a sentence. */
bool choice_add_limit(struct choice *choice, const char *text, char *why, size_t why_size);

/* Forget the first count limits. */
void choice_drop_limits(struct choice *choice, size_t count);

void choice_free(struct choice *choice);

static inline size_t choice_seeds(const struct choice *choice)
{
	return (size_t)(choice->last_seed - choice->first_seed + 1);
}

#endif
