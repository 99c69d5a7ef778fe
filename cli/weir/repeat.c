/* SPDX-License-Identifier: BSD-2-Clause */
#include "repeat.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define COUNT_MAX 1000000000

weir_dur repeat_seconds(const char *text, struct argp_state *state)
{
	char *end;
	const double seconds = strtod(text, &end);

	if (end == text || *end != '\0' || !(seconds >= 0.1 && seconds <= 3600))
		argp_error(state, "%s is not a number of seconds from 0.1 to 3600", text);
	return (weir_dur)(seconds * (double)WEIR_S);
}

static unsigned times(const char *text, struct argp_state *state)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || *text == '-' || errno != 0 || n == 0 || n > COUNT_MAX)
		argp_error(state, "%s is not a number of times", text);
	return (unsigned)n;
}

error_t repeat_option(struct repeat *repeat, int key, const char *arg, struct argp_state *state)
{
	switch (key) {
	case 'i':
		repeat->interval = repeat_seconds(arg, state);
		return 0;
	case 'c':
		repeat->count = times(arg, state);
		return 0;
	case ARGP_KEY_END:
		if (repeat->count > 0 && repeat->interval == 0)
			repeat->interval = WEIR_S;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

bool repeat_again(struct repeat *repeat)
{
	struct timespec at;

	repeat->done++;
	if (repeat->interval == 0 || repeat->done == repeat->count)
		return false;
	/* By the clock, so that the time of the work does not add up. Missed turns are skipped. */
	if (repeat->next == 0)
		repeat->next = weir_now();
	do {
		repeat->next += repeat->interval;
	} while (repeat->next <= weir_now());
	at = (struct timespec){
		.tv_sec = (time_t)(repeat->next / WEIR_S),
		.tv_nsec = (long)(repeat->next % WEIR_S),
	};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	return true;
}
