/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Caching permits in stripes, and recalling them. permit_cache.h has the ledger.
 */

#include "lib/admission/permit_cache.h"

/*
 * Fractions of the limit: the cache is opened if no call of the last window found more than 1/4 in
 * flight, and closed when 1/2 is in flight. All stripes together may have 1/4. So while permits are
 * idle, the number in flight that a call is given is below half of the limit, as the true number
 * is, and a limit algorithm that checks whether half of it is used gets the right answer.
 */
#define OPEN_PART  4
#define CLOSE_PART 2
#define LENT_PART  4

/* Windows of one sample in a row that must have been far before the cache is opened. */
#define FAR_SAMPLES 64

/* Least limit per stripe, in permits: it lends 8 to each stripe; with fewer it is not worth it. */
#define STRIPE_MIN 32

/* Most permits that one stripe may have: half of what its 16 bits can count. */
#define QUOTA_MAX (UINT32_C(1) << 15)

#define RELAXED memory_order_relaxed

void cache_init(const struct permit_cache *c)
{
	atomic_init(&c->shared->mode, CACHE_SHUT);
	atomic_init(&c->shared->quota, 0);
	atomic_init(&c->shared->far, 0);
	c->shared->windows = 0;
}

/* Whether a mode or mark is older than another; the numbers may wrap. */
static bool is_older(uint32_t mark, uint32_t than)
{
	return (int32_t)(mark - than) < 0;
}

static bool is_near(uint64_t gate)
{
	return gate_inflight(gate) * CLOSE_PART >= gate_limit(gate);
}

/* Mark the stripe, and give back what is idle there. True: drain the queue. */
static bool sweep(const struct permit_cache *c, struct stripe *stripe, uint32_t mode)
{
	uint64_t word = atomic_load_explicit(&stripe->cached, RELAXED);
	uint32_t idle;
	bool drain;

	do {
		if (!is_older(cache_mark(word), mode))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&stripe->cached, &word, (uint64_t)mode << CACHE_MARK_SHIFT | (uint32_t)word,
		memory_order_acq_rel, RELAXED));
	idle = cache_is(cache_mark(word), CACHE_OPEN) ? cache_idle(word) : 0;
	if (idle == 0)
		return false;
	drain = gate_waiters(gate_subtract_lent(c->gate, idle)) != 0;
	atomic_fetch_sub_explicit(&stripe->cached, idle * CACHE_IDLE, memory_order_release);
	return drain;
}

bool cache_close(const struct permit_cache *c)
{
	uint32_t mode = cache_mode(c);
	bool drain = false;

	while (cache_is(mode, CACHE_OPEN)) {
		if (atomic_compare_exchange_weak_explicit(&c->shared->mode, &mode, mode + 1,
							  memory_order_acq_rel,
							  memory_order_acquire))
			mode++;
	}
	if (cache_is(mode, CACHE_SHUT))
		return false;
	for (uint32_t i = 0; i < c->count; i++)
		drain |= sweep(c, &c->sampling->stripes[i], mode);
	/* A thread that loses this race has found all stripes swept. */
	atomic_compare_exchange_strong_explicit(&c->shared->mode, &mode, mode + 2,
						memory_order_release, RELAXED);
	return drain;
}

/* Take up an idle permit of an open stripe; how many are left goes to *idle. */
static bool take(struct stripe *stripe, uint32_t *idle)
{
	uint64_t word = atomic_load_explicit(&stripe->cached, RELAXED);

	do {
		if (cache_idle(word) == 0 || !cache_is(cache_mark(word), CACHE_OPEN))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&stripe->cached, &word,
							word - CACHE_IDLE + CACHE_OUT,
							memory_order_acquire, RELAXED));
	*idle = cache_idle(word) - 1;
	return true;
}

/* Whether the stripe, in this open mode, may have another permit. */
static bool may_enter(const struct permit_cache *c, uint64_t word, uint32_t mode)
{
	const uint32_t mark = cache_mark(word);

	if (mark != mode && (cache_idle(word) > 0 || !is_older(mark, mode)))
		return false; /* a sweep has yet to clear it, or it was swept since */
	return cache_idle(word) + cache_out(word) <
	       atomic_load_explicit(&c->shared->quota, RELAXED);
}

/* Register a permit of the gate's with the stripe. False: it stays the gate's own. */
static bool enter(const struct permit_cache *c, struct stripe *stripe, uint32_t mode)
{
	uint64_t word = atomic_load_explicit(&stripe->cached, RELAXED), entered;

	do {
		if (!may_enter(c, word, mode))
			return false;
		entered = (uint64_t)mode << CACHE_MARK_SHIFT | (uint32_t)(word + CACHE_OUT);
	} while (!atomic_compare_exchange_weak_explicit(&stripe->cached, &word, entered,
							memory_order_release, RELAXED));
	atomic_fetch_add_explicit(&c->gate->lent, 1, memory_order_release);
	return true;
}

/* All that the gate counts, less what is known to be idle. */
struct permit cache_count(const struct permit_cache *c, struct permit permit, uint32_t idle)
{
	uint64_t gate = gate_read(c->gate);

	if (UNLIKELY(is_near(gate))) {
		permit.drain |= cache_close(c);
		gate = gate_read(c->gate);
		idle = 0;
	}
	permit.inflight = gate_inflight(gate) > idle ? gate_inflight(gate) - idle : 1;
	return permit;
}

/* Whether that number of permits is free beside all that are in flight or idle. */
static bool leaves(const struct permit_cache *c, uint32_t leave)
{
	uint64_t gate;

	if (LIKELY(leave == 0))
		return true;
	gate = gate_read(c->gate);
	return (uint64_t)gate_taken(gate) + leave <= gate_limit(gate);
}

struct permit cache_reserve(const struct permit_cache *c, uint32_t leave, bool overtake)
{
	struct stripe *stripe = sampler_stripe(c->sampling);
	struct permit permit = {
		.cost = 1,
		.home = (uint32_t)(stripe - c->sampling->stripes) + 1,
	};
	uint32_t mode, idle = 0;

	if (UNLIKELY(!leaves(c, leave) || !take(stripe, &idle))) {
		mode = cache_mode(c);
		if (gate_reserve(c->gate, 1, leave, overtake, &permit.inflight) == 0)
			return (struct permit){.cost = 0};
		if (!cache_is(mode, CACHE_OPEN) || !enter(c, stripe, mode))
			permit.home = 0;
	}
	return cache_count(c, permit, idle);
}

struct returned cache_give_back(const struct permit_cache *c, uint32_t home)
{
	struct stripe *stripe;
	uint64_t word, stays;

	if (home > c->count)
		return (struct returned){.held = false};
	stripe = &c->sampling->stripes[home - 1];
	word = atomic_load_explicit(&stripe->cached, RELAXED);
	do {
		if (UNLIKELY(cache_out(word) == 0))
			return (struct returned){.held = false};
		stays = cache_is(cache_mark(word), CACHE_OPEN) ? CACHE_IDLE : 0;
	} while (!atomic_compare_exchange_weak_explicit(
		&stripe->cached, &word, word - CACHE_OUT + stays, memory_order_release, RELAXED));
	if (LIKELY(stays != 0))
		return (struct returned){.held = true};
	return (struct returned){
		.held = true,
		.drain = gate_waiters(gate_subtract_lent(c->gate, 1)) != 0,
	};
}

/*
 * A token's copy must not give back permits that are lent. lent may read too high, so a release
 * that finds no permits of the gate itself makes sure that none are being lent.
 */
struct returned cache_give_back_beside(const struct permit_cache *c, uint32_t cost)
{
	struct returned returned = {.held = false};
	uint64_t before;
	uint32_t mode;

	for (;;) {
		mode = cache_mode(c);
		if (gate_subtract_beside(c->gate, cost, &before)) {
			returned.held = true;
			returned.drain |= gate_waiters(before) != 0;
			return returned;
		}
		if (cache_stayed_shut(c, mode))
			return returned;
		returned.drain |= cache_close(c);
	}
}

void cache_note_window(const struct permit_cache *c, uint32_t inflight_max, uint32_t limit)
{
	const uint32_t enough = c->sampling->config.each_sample ? FAR_SAMPLES : 1;
	struct cache_mode *shared = c->shared;
	bool far;

	if (c->count == 0)
		return;
	far = limit / STRIPE_MIN >= c->count && inflight_max <= limit / OPEN_PART;
	if (!far)
		shared->windows = 0;
	else if (shared->windows < enough)
		shared->windows++;
	far = shared->windows == enough;
	if (far != (atomic_load_explicit(&shared->far, RELAXED) != 0))
		atomic_store_explicit(&shared->far, far, RELAXED);
}

static void set_quota(const struct permit_cache *c, uint32_t limit)
{
	const uint32_t quota = limit / LENT_PART / c->count;

	atomic_store_explicit(&c->shared->quota, quota < QUOTA_MAX ? quota : QUOTA_MAX, RELAXED);
}

/*
 * Open the cache, unless a call waits. A waiter that announces itself before the touch is seen
 * here; one that comes later sees the mode.
 */
static void open_unless_waited_for(const struct permit_cache *c, uint32_t mode)
{
	if (!atomic_compare_exchange_strong_explicit(&c->shared->mode, &mode, mode + 1,
						     memory_order_release, RELAXED))
		return;
	if (gate_waiters(gate_touch(c->gate)) != 0)
		(void)cache_close(c);
}

void cache_set_limit(const struct permit_cache *c, uint32_t limit)
{
	uint32_t mode = cache_mode(c);
	uint64_t gate;

	/* Waiters are left to the caller, which drains the queue after setting the limit. */
	while (!gate_set_limit(c->gate, limit,
			       cache_is(mode, CACHE_SHUT) ? UINT32_MAX : limit / CLOSE_PART)) {
		(void)cache_close(c);
		mode = cache_mode(c);
	}
	if (c->count == 0)
		return;
	set_quota(c, limit);
	gate = gate_read(c->gate);
	if (cache_is(mode, CACHE_SHUT) && gate_waiters(gate) == 0 &&
	    limit / STRIPE_MIN >= c->count && gate_inflight(gate) <= limit / OPEN_PART &&
	    atomic_load_explicit(&c->shared->far, RELAXED) != 0)
		open_unless_waited_for(c, mode);
}

/*
 * The stripes are read before the gate. A permit that was idle in its stripe and is taken up before
 * the gate is read is missed, but none is counted that no call held. One that was held all the time
 * is always included in most, because idle permits leave the gate only by a sweep, which changes
 * mode.
 */
struct held cache_held(const struct permit_cache *c)
{
	uint32_t mode, idle, swept, inflight;

	do {
		mode = cache_mode(c);
		idle = swept = 0;
		for (uint32_t i = 0; mode != 0 && i < c->count; i++) {
			uint64_t word = atomic_load_explicit(&c->sampling->stripes[i].cached,
							     memory_order_acquire);

			if (cache_is(cache_mark(word), CACHE_OPEN))
				idle += cache_idle(word);
			else
				swept += cache_idle(word);
		}
		inflight = gate_inflight(gate_read_acquire(c->gate));
	} while (cache_mode(c) != mode);
	if (cache_is(mode, CACHE_CLOSING)) {
		swept += idle;
		idle = 0;
	}
	return (struct held){
		.least = inflight > idle + swept ? inflight - idle - swept : 0,
		.most = inflight > idle ? inflight - idle : 0,
	};
}

uint32_t cache_exact(const struct permit_cache *c, uint32_t inflight)
{
	const uint32_t most = cache_held(c).most;

	if (most >= inflight)
		return inflight;
	return most > 0 ? most : 1;
}
