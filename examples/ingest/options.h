/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command line options: what all programs need of argp.
 */
#ifndef INGEST_OPTIONS_H
#define INGEST_OPTIONS_H

#include <argp.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

static inline unsigned option_number(const char *text, unsigned min, unsigned max,
				     const struct argp_state *state)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || *text == '-' || n < min || n > max)
		argp_error(state, "%s is not a number from %u to %u", text, min, max);
	return (unsigned)n;
}

#endif
