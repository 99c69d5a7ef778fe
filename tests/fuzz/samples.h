/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.h - some thousand samples for a limiter, good and bad, so that every limit moves; and
 * invariants that hold all the time.
 */
#ifndef SAMPLES_H
#define SAMPLES_H

#include "fuzz.h"

#include <weir/weir.h>

static inline void check_limit(const struct weir_limiter *limiter)
{
	must(weir_limit(limiter) >= 1 && weir_limit(limiter) <= WEIR_LIMIT_MAX);
	must(weir_inflight(limiter) == 0);
}

/* Starting at that second. */
static inline void feed(struct weir_limiter *limiter, unsigned second, unsigned count)
{
	weir_time now = second * WEIR_S;
	struct weir_snapshot snapshot;

	for (unsigned i = 0; i < count; i++) {
		weir_dur rtt = 1 + (i * i * 7919) % (i % 50 == 0 ? WEIR_S : 50 * WEIR_MS);
		enum weir_outcome outcome = i % 13 == 0 ? (enum weir_outcome)(i / 13 % 6)
							: WEIR_SUCCESS;

		now += 5 * WEIR_MS;
		weir_sample_at(limiter, now - rtt, now, 1 + i % (2 * weir_limit(limiter) + 1),
			       outcome);
		check_limit(limiter);
	}
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	must(snapshot.limit == weir_limit(limiter));
}

#endif
