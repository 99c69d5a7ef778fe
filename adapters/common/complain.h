/*
 * What is wrong with a configuration.
 */
#ifndef ADAPTERS_COMPLAIN_H
#define ADAPTERS_COMPLAIN_H

#include <errno.h>
#include <stdio.h>

#include <weir/limiter.h>

/* One sentence, cut at why_size; why may be NULL. Always -EINVAL. */
static inline int complain(char *why, size_t why_size, const char *sentence)
{
	if (why != NULL)
		snprintf(why, why_size, "%s", sentence);
	return -EINVAL;
}

/* Without a queue everybody who would wait is refused: nobody who sets a wait means that. */
static inline int check_wait(const struct weir_limiter *limiter, weir_dur wait, char *why,
			     size_t why_size)
{
	if (wait > 0 && weir_queue_size(limiter) == 0)
		return complain(why, why_size,
				"wait needs a limiter with a queue (weir_config.queue).");
	return 0;
}

#endif
