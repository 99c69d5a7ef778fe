/*
 * How a call went, by the HTTP status that it was answered with.
 */
#ifndef ADAPTERS_OUTCOME_H
#define ADAPTERS_OUTCOME_H

#include <weir/limiter.h>

/* Overload is what a limit can do something about. What failed otherwise is no sample. */
static inline enum weir_outcome outcome_of_status(unsigned status)
{
	switch (status) {
	case 429:
	case 503:
		return WEIR_DROPPED;
	case 502:
		return WEIR_FAILED;
	case 504:
		return WEIR_TIMED_OUT;
	default:
		return status < 400 ? WEIR_SUCCESS : WEIR_IGNORE;
	}
}

#endif
