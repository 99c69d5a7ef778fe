/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The outcome of a call, by the HTTP status of its answer.
 */
#ifndef ADAPTERS_OUTCOME_H
#define ADAPTERS_OUTCOME_H

#include <weir/limiter.h>

/* Only overload is evidence for a limit. Other errors are not samples. */
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
