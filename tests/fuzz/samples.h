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

/* A limit of 0 is a pause. A minute later a call is admitted, and the limit applies again. */
static inline bool end_pause(struct weir_limiter *limiter, weir_time *now)
{
	struct weir_token token;

	if (weir_limit(limiter) != 0)
		return false;
	*now += WEIR_PAUSE_MAX;
	must(weir_try_acquire_at(limiter, *now, &token) == 0);
	weir_release_at(limiter, *now, &token, WEIR_IGNORE);
	return true;
}

/* Starting at that second. Returns how often the limit paused. */
static inline unsigned feed(struct weir_limiter *limiter, unsigned second, unsigned count)
{
	weir_time now = second * WEIR_S;
	struct weir_snapshot snapshot;
	unsigned pauses = 0;

	for (unsigned i = 0; i < count; i++) {
		weir_dur rtt = 1 + (i * i * 7919) % (i % 50 == 0 ? WEIR_S : 50 * WEIR_MS);
		enum weir_outcome outcome = i % 13 == 0 ? (enum weir_outcome)(i / 13 % 6)
							: WEIR_SUCCESS;

		now += 5 * WEIR_MS;
		weir_sample_at(limiter, now - rtt, now, 1 + i % (2 * weir_limit(limiter) + 1),
			       outcome);
		pauses += end_pause(limiter, &now);
		check_limit(limiter);
	}
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	must(snapshot.limit == weir_limit(limiter));
	return pauses;
}

#endif
