/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error sentences of configurations.
 */
#ifndef ADAPTERS_COMPLAIN_H
#define ADAPTERS_COMPLAIN_H

#include <errno.h>
#include <stdio.h>

#include <weir/limiter.h>

/* Copy the sentence to why, which may be NULL, cut at why_size. Always returns -EINVAL. */
static inline int complain(char *why, size_t why_size, const char *sentence)
{
	if (why != NULL)
		snprintf(why, why_size, "%s", sentence);
	return -EINVAL;
}

/* A wait without a queue would refuse every request that has to wait, so it is rejected. */
static inline int check_wait(const struct weir_limiter *limiter, weir_dur wait, char *why,
			     size_t why_size)
{
	if (wait > 0 && weir_queue_size(limiter) == 0)
		return complain(why, why_size,
				"wait needs a limiter with a queue (weir_config.queue).");
	return 0;
}

#endif
