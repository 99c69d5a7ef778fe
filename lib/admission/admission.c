/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sharing the limit between partitions. admission.h has the ledger.
 */

#include "lib/admission/admission.h"

#include <math.h>
#include <string.h>

#include "lib/base/combiner.h"

#define RELAXED memory_order_relaxed

/* A product of share and limit that exceeds an integer by less than this is rounding noise. */
#define NOISE 1e-9

static void part_init(struct part *part, const struct weir_partition *p)
{
	memset(part, 0, sizeof(*part));
	gate_init(&part->own, p->max);
	set_double(&part->share, p->share);
	set_double(&part->cap, p->cap);
	atomic_init(&part->max, p->max);
	atomic_init(&part->reject_delay, p->reject_delay);
}

void admission_init(const struct admission *a, const struct admission_config *config,
		    uint32_t limit, uint32_t burst)
{
	memset(a->room, 0, sizeof(*a->room));
	atomic_init(&a->room->learned, limit);
	atomic_init(&a->room->ceiling, WEIR_LIMIT_MAX);
	atomic_init(&a->room->burst, burst);
	gate_init(a->gate, limit);
	for (uint32_t i = 0; i < config->count; i++)
		part_init(&a->parts[i], &config->partitions[i]);
	admission_retune(a);
}

uint32_t admission_margin(uint32_t permits, uint32_t cost, uint32_t rank)
{
	uint32_t margin, most;

	if (LIKELY(rank == 0))
		return 0;
	margin = rank * (uint32_t)sqrt((double)permits);
	most = permits > cost ? permits - cost : 0;
	return margin < most ? margin : most;
}

struct permit admission_take_again(const struct admission *a, uint32_t want, uint32_t leave,
				   bool overtake)
{
	struct permit taken = {.inflight = 0};
	uint32_t mode;

	do {
		taken.drain |= cache_close(&a->cache);
		mode = cache_mode(&a->cache);
		taken.cost = gate_reserve(a->gate, want, leave, overtake, &taken.inflight);
	} while (taken.cost == 0 && !cache_stayed_shut(&a->cache, mode));
	return taken;
}

/* Permits that the call would take now: want, bounded by the limit and the partition's cap. */
static uint32_t affordable(const struct admission *a, const struct part *part, uint32_t want)
{
	const uint64_t word = gate_read(a->gate);

	if (UNLIKELY(gate_limit(word) == 0))
		return 0;
	return gate_cost(gate_read(&part->own), gate_cost(word, want));
}

/* Whether busy permits, cost of them this call's, are within the guarantee. */
static bool within(const struct part *part, uint32_t busy, uint32_t cost, uint32_t rank)
{
	uint32_t guarantee = atomic_load_explicit(&part->guarantee, RELAXED);

	return busy + admission_margin(guarantee, cost, rank) <= guarantee;
}

/* The peak of what the partition has lately used or asked for, up to its guarantee. */
static uint32_t level_of(const struct part *part)
{
	uint32_t peak = atomic_load_explicit(&part->peak, RELAXED);
	uint32_t before = atomic_load_explicit(&part->before, RELAXED);
	uint32_t guarantee = atomic_load_explicit(&part->guarantee, RELAXED);
	uint32_t level = peak > before ? peak : before;

	return level < guarantee ? level : guarantee;
}

uint32_t admission_reserved_for(const struct part *part)
{
	uint32_t busy = gate_inflight(gate_read(&part->own)), level = level_of(part);

	return level > busy ? level - busy : 0;
}

static uint32_t reserved_for_all(const struct admission *a)
{
	uint32_t reserved = 0;

	for (uint32_t i = 0; i < a->count; i++)
		reserved += admission_reserved_for(&a->parts[i]);
	return reserved;
}

bool admission_has_reserved(const struct admission *a)
{
	return a->count > 0 && reserved_for_all(a) > 0;
}

static void raise_peak(struct part *part, uint32_t busy)
{
	uint32_t peak = atomic_load_explicit(&part->peak, RELAXED);

	while (UNLIKELY(busy > peak) &&
	       !atomic_compare_exchange_weak_explicit(&part->peak, &peak, busy, RELAXED, RELAXED))
		;
}

/* Take permits of the gate for a call above its partition's guarantee. */
static enum decision borrow(const struct admission *a, const struct request *request, uint32_t cost,
			    struct permit *permit)
{
	uint32_t reserved = reserved_for_all(a);
	uint32_t margin = admission_margin(gate_limit(gate_read(a->gate)), cost, request->rank);
	const struct terms terms = {
		.leave = reserved + margin,
		.overtake = request->overtake,
		.lend = !request->queued,
	};
	uint64_t word;

	if (admission_take(a, cost, terms, permit))
		return ADMITTED;
	if (reserved == 0)
		return REFUSED;
	word = gate_read(a->gate);
	cost = gate_cost(word, cost);
	return gate_inflight(word) + cost + margin <= gate_limit(word) ? REFUSED_RESERVED : REFUSED;
}

/* The waiters in front of the call may lack only permits that are reserved. */
static enum decision refused_by_partition(const struct admission *a, const struct part *part)
{
	bool waited = gate_waiters(gate_read(&part->own)) != 0;

	return waited && admission_has_reserved(a) ? REFUSED_RESERVED : REFUSED;
}

/* Take permits of the gate for a call that has cost of its partition, which then has busy. */
static enum decision take_within_partition(const struct admission *a, const struct request *request,
					   uint32_t cost, uint32_t busy, struct permit *permit)
{
	const struct terms terms = {.overtake = true, .lend = !request->queued};
	struct part *part = &a->parts[request->part];

	if (!within(part, busy, cost, request->rank))
		return borrow(a, request, cost, permit);
	if (admission_take(a, cost, terms, permit)) {
		raise_peak(part, busy - (cost - permit->cost));
		return ADMITTED;
	}
	return request->rank > 0 ? REFUSED : REFUSED_DEFICIT;
}

enum decision admission_reserve_part(const struct admission *a, const struct request *request,
				     struct permit *permit)
{
	struct part *part = &a->parts[request->part];
	const uint32_t want = affordable(a, part, request->cost);
	enum decision decision;
	uint32_t busy, cost = 0;

	*permit = (struct permit){.cost = 0};
	if (LIKELY(want > 0))
		cost = gate_reserve(&part->own, want, 0, request->overtake, &busy);
	if (cost == 0)
		return refused_by_partition(a, part);
	decision = take_within_partition(a, request, cost, busy, permit);
	/* Unchecked: they are this call's own, even if a token's copy has just taken some. */
	if (permit->cost < cost)
		permit->drain |= gate_waiters(gate_subtract(&part->own, cost - permit->cost)) != 0;
	return decision;
}

bool admission_entitled(const struct admission *a, const struct request *request)
{
	struct part *part = &a->parts[request->part];
	uint32_t cost = affordable(a, part, request->cost);

	return cost > 0 &&
	       within(part, gate_inflight(gate_read(&part->own)) + cost, cost, request->rank);
}

/* Begin a new interval if the last one is over. True if less is reserved afterwards. */
static bool roll(struct part *part, weir_time now, weir_dur hold)
{
	uint64_t since = atomic_load_explicit(&part->since, RELAXED);
	uint32_t level = level_of(part), busy, peak;
	int64_t age = (int64_t)(now - since);

	if (since != 0 && age <= (int64_t)hold && age >= -(int64_t)hold)
		return false;
	if (!atomic_compare_exchange_strong_explicit(&part->since, &since, now, RELAXED, RELAXED))
		return false;
	busy = gate_inflight(gate_read(&part->own));
	peak = atomic_exchange_explicit(&part->peak, busy, RELAXED);
	/* An interval that was not ended in time, or is by another clock, is of no use any more. */
	if (since == 0 || age > 2 * (int64_t)hold || age < 0)
		peak = busy;
	atomic_store_explicit(&part->before, peak, RELAXED);
	return level_of(part) < level;
}

bool admission_raise_level(const struct admission *a, const struct request *request, weir_time now)
{
	struct part *part = &a->parts[request->part];
	uint32_t guarantee = atomic_load_explicit(&part->guarantee, RELAXED);
	uint32_t busy = gate_inflight(gate_read(&part->own)), peak, wanted;
	bool less = roll(part, now, a->hold);

	peak = atomic_load_explicit(&part->peak, RELAXED);
	wanted = (peak > busy ? peak : busy) + request->cost;
	raise_peak(part, wanted < guarantee ? wanted : guarantee);
	return less;
}

bool admission_lapse(const struct admission *a, weir_time now)
{
	bool any = false;

	for (uint32_t i = 0; i < a->count; i++)
		any |= roll(&a->parts[i], now, a->hold);
	return any;
}

/* A configured fraction, from 0 to 1; any other value is corrupt and counts as 0. */
static double part_of(const _Atomic uint64_t *bits)
{
	const double part = double_of(bits);

	return part >= 0 && part <= 1 ? part : 0;
}

/* A share of the limit in permits, rounded down, and the fraction above that. */
static uint32_t whole_of(double share, uint32_t limit, double *fraction)
{
	double exact = share * limit, whole = floor(exact + NOISE);

	*fraction = exact - whole > NOISE ? exact - whole : 0;
	return (uint32_t)whole;
}

/* The first partition with the greatest fraction, which is then cleared; -1: all are 0. */
static int take_greatest(double *fraction, uint32_t count)
{
	int best = -1;

	for (uint32_t i = 0; i < count; i++)
		if (fraction[i] > 0 && (best < 0 || fraction[i] > fraction[best] + NOISE))
			best = (int)i;
	if (best >= 0)
		fraction[best] = 0;
	return best;
}

/* Divide the limit by shares, rounded up; if it is too small, the smallest fractions down. */
static void apportion(const struct admission *a, uint32_t limit, uint32_t *guarantee)
{
	double fraction[WEIR_PARTITIONS_MAX + 1];
	uint32_t left = limit;
	int next;

	for (uint32_t i = 0; i < a->count; i++) {
		uint32_t whole = whole_of(part_of(&a->parts[i].share), limit, &fraction[i]);

		guarantee[i] = whole < left ? whole : left;
		left -= guarantee[i];
	}
	while (left > 0 && (next = take_greatest(fraction, a->count)) >= 0) {
		guarantee[next]++;
		left--;
	}
}

static uint32_t cap_of(const struct part *part, uint32_t limit)
{
	const double share = part_of(&part->cap);
	const uint32_t set = atomic_load_explicit(&part->max, RELAXED);
	const uint32_t max = set < WEIR_LIMIT_MAX ? set : WEIR_LIMIT_MAX;
	double fraction;
	uint32_t cap = whole_of(share, limit, &fraction);

	if (share >= 1)
		return max; /* the gate's own bound is enough, bursts included */
	cap = cap < max ? cap : max;
	return cap > 0 ? cap : 1;
}

/* A time that is further away than any pause is corrupt, or by another clock. */
static bool is_pausing(uint64_t resume, weir_time now)
{
	return resume > now && resume - now <= WEIR_PAUSE_MAX;
}

bool admission_pause(const struct admission *a, weir_time until, weir_time now)
{
	const uint64_t before = atomic_load_explicit(&a->room->resume, RELAXED);
	const uint64_t resume = is_pausing(until, now) ? until : 0;

	if (resume == before)
		return false;
	atomic_store_explicit(&a->room->resume, resume, RELAXED);
	return true;
}

bool admission_resume(const struct admission *a, weir_time now)
{
	uint64_t resume = atomic_load_explicit(&a->room->resume, RELAXED);

	if (LIKELY(resume == 0) || is_pausing(resume, now))
		return false;
	if (!atomic_compare_exchange_strong_explicit(&a->room->resume, &resume, 0, RELAXED,
						     RELAXED))
		return false;
	admission_retune(a);
	return true;
}

bool admission_awaits_time(const struct admission *a)
{
	return admission_paused(a) || admission_has_reserved(a);
}

weir_time admission_next_drain(const struct admission *a, weir_time now)
{
	const uint64_t resume = atomic_load_explicit(&a->room->resume, RELAXED);

	return is_pausing(resume, now) ? resume : now + a->hold;
}

static void retune(const struct admission *a)
{
	uint32_t limit = admission_raised(a), guarantee[WEIR_PARTITIONS_MAX + 1];
	uint32_t burst = atomic_load_explicit(&a->room->burst, RELAXED);
	uint32_t open = burst < WEIR_LIMIT_MAX - limit ? limit + burst : WEIR_LIMIT_MAX;

	cache_set_limit(&a->cache, admission_paused(a) ? 0 : admission_capped(a, open));
	if (a->count == 0)
		return;
	apportion(a, limit, guarantee);
	for (uint32_t i = 0; i < a->count; i++) {
		struct part *part = &a->parts[i];
		uint32_t cap = cap_of(part, limit);
		uint32_t mine = guarantee[i] < cap ? guarantee[i] : cap;

		(void)gate_set_limit(&part->own, cap, UINT32_MAX);
		atomic_store_explicit(&part->guarantee, mine, RELAXED);
	}
}

static void retune_all(const struct admission *a)
{
	uint32_t rounds = 0;

	do {
		retune(a);
	} while (!combiner_over(&a->room->retuning, a->owner, &rounds));
}

void admission_retune(const struct admission *a)
{
	if (combiner_begin(&a->room->retuning, a->owner))
		retune_all(a);
}

bool admission_is_tuned(const struct admission *a, uint32_t *owner)
{
	return !combiner_pending(&a->room->retuning, owner);
}

/*
 * Request another run afterwards: if the owner continued meanwhile, the values stored here may be
 * the old ones.
 */
void admission_retune_beside(const struct admission *a)
{
	retune(a);
	admission_retune(a);
}

void admission_recover(const struct admission *a, uint32_t dead)
{
	uint32_t setter = dead + 1;

	/* Each setting is one word: some of the dead caller's have taken effect, others not. */
	(void)atomic_compare_exchange_strong_explicit(&a->room->setting, &setter, 0,
						      memory_order_acq_rel, RELAXED);
	if (combiner_recover(&a->room->retuning, dead, a->owner))
		retune_all(a);
}

void admission_detach(const struct admission *a, uint32_t cost)
{
	atomic_fetch_add_explicit(&a->room->detached, cost, memory_order_release);
}

/* As in the gate, a copy of a token ends another call's; never subtract more than there is. */
void admission_end_detached(const struct admission *a, uint32_t cost)
{
	uint32_t detached = admission_detached(a);

	while (!atomic_compare_exchange_weak_explicit(&a->room->detached, &detached,
						      detached > cost ? detached - cost : 0,
						      RELAXED, RELAXED))
		;
}

uint32_t admission_waiting(const struct admission *a)
{
	uint32_t waiting = 0;

	if (a->count == 0)
		return gate_waiters(gate_read(a->gate));
	for (uint32_t i = 0; i < a->count; i++)
		waiting += gate_waiters(gate_read(&a->parts[i].own));
	return waiting;
}
