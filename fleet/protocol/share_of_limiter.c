/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limiter bounded by a share of a fleet's limit. It uses public functions only, so an application
 * can do the same for anything else.
 */

#include <weir/fleet.h>
#include <weir/observe.h>

static void bound(void *arg, uint64_t units)
{
	const struct weir_share_limiter *link = arg;

	(void)weir_limit_cap(link->limiter,
			     units < WEIR_LIMIT_MAX ? (uint32_t)units : WEIR_LIMIT_MAX);
}

/* Calls that it could use at once: those in flight, plus refused ones in proportion. */
static uint64_t wanted(void *arg)
{
	struct weir_share_limiter *link = arg;
	struct weir_snapshot s;
	uint64_t admitted, refused, calls, most;

	weir_snapshot_init(&s);
	weir_snapshot_take(link->limiter, &s);
	admitted = s.admitted - link->admitted;
	refused = s.rejected + s.abandoned - link->refused;
	link->admitted = s.admitted;
	link->refused = s.rejected + s.abandoned;
	most = s.windows > 0 ? s.last.limit : link->first;
	most = most > 0 ? most : 1; /* it pauses: then it tries one call, which also needs a unit */
	calls = s.inflight > s.last.window.inflight_max ? s.inflight : s.last.window.inflight_max;
	if (admitted == 0)
		calls = s.inflight; /* no call since the last refresh: the last window is old */
	calls += s.waiting;
	if (refused > 0) {
		const double more = (double)refused / (double)(admitted > 0 ? admitted : 1);
		const double all = (double)(calls > 0 ? calls : 1) * (1 + more);

		calls = all < (double)most ? (uint64_t)all : most;
	}
	calls += calls / 4 + 1;
	return calls < most ? calls : most;
}

void weir_share_of_limiter(struct weir_share_config *config, struct weir_share_limiter *link,
			   struct weir_limiter *limiter)
{
	*link = (struct weir_share_limiter){.limiter = limiter, .first = weir_limit(limiter)};
	config->apply = bound;
	config->wants = wanted;
	config->headroom = WEIR_HEADROOM_ALWAYS;
	config->arg = link;
}
