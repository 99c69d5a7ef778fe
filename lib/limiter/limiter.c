/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paths of a call: admission, release, and what a release may trigger.
 *
 *    try_acquire   admission: reserve; clock
 *    release       clock; admission: return; sampler: record; then, rarely,
 *                  queue: drain, if calls wait
 *                  window: if it is due, close it, update the limit, publish
 *
 * The permit is returned first: only the releasing thread pays for what follows, and no other
 * thread waits for it.
 *
 * Words that belong to this file, besides those of admission, sampler, queue, shed and track:
 * part_totals, added to with release as a stripe's totals are (lib/sample/totals.h); published,
 * whose ledger is in limiter.h; runtime, which belongs to the window's owner.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/cancel.h"
#include "lib/limiter/idle.h"
#include "lib/limiter/limiter.h"
#include "lib/process/owner_wait.h"
#include "lib/base/probes.h"
#include "lib/base/splitmix.h"

double limiter_random(const struct weir_limiter *l)
{
	if (l->random != NULL)
		return l->random->next(l->random);
	return splitmix(l->runtime->random += SPLITMIX_STEP);
}

uint32_t limiter_bound(const struct weir_limiter *l, double limit)
{
	if (!(limit > l->limit_min))
		return l->limit_min;
	return limit < l->limit_max ? (uint32_t)limit : l->limit_max;
}

int limiter_denial(const struct weir_limiter *l)
{
	return l->ops == NULL ? -ESTALE : -EACCES;
}

int limiter_request(const struct weir_limiter *l, const struct weir_call *call,
		    struct request *request, bool *bypass)
{
	static const struct weir_call ordinary = {.cost = 1};
	const uint32_t parts = l->admission.count > 0 ? l->admission.count : 1;

	if (UNLIKELY(!l->serves))
		return limiter_denial(l);
	if (call == NULL)
		call = &ordinary;
	*request = (struct request){
		.part = call->partition,
		.cost = call->cost > 0 ? call->cost : 1,
	};
	*bypass = (call->flags & WEIR_CALL_BYPASS) != 0;
	if (call->partition >= parts || call->cost > WEIR_LIMIT_MAX ||
	    call->priority < WEIR_PRIORITY_MIN || call->priority > WEIR_PRIORITY_MAX ||
	    (call->flags & ~(uint32_t)WEIR_CALL_BYPASS) != 0 || call->reserved != 0)
		return -EINVAL;
	if (l->shedding.parts > 0 && !*bypass) {
		const struct stripe *stripe = sampler_stripe(&l->sampling);

		request->rank = (uint8_t)shed_rank(&l->shedding,
						   (uint32_t)(stripe - l->sampling.stripes),
						   request->part, call->priority);
	}
	return 0;
}

/*
 * Before a refusal while the limit pauses: if the pause is over, admit the calls that wait, and then
 * this one if there is room.
 */
static bool reserve_after_pause(struct weir_limiter *l, const struct request *request,
				const weir_time *now, struct permit *permit)
{
	const weir_time at = time_for(l, now);
	const bool resumed = admission_resume(&l->admission, at);
	bool admitted = false;

	if (permit->drain || resumed)
		queue_drain(&l->queueing, at);
	if (!resumed)
		return false;
	admitted = admission_reserve(&l->admission, request, permit) == ADMITTED;
	if (permit->drain)
		queue_drain(&l->queueing, at);
	return admitted;
}

/* Before a refusal: release reservations that have lapsed, or record what the partition lacks. */
static bool reserve_again(struct weir_limiter *l, const struct request *request,
			  enum decision decision, const weir_time *now, struct permit *permit)
{
	const weir_time at = time_for(l, now);

	if (decision == REFUSED_DEFICIT && admission_raise_level(&l->admission, request, at))
		permit->drain = true;
	if (decision == REFUSED_RESERVED && admission_lapse(&l->admission, at)) {
		permit->drain = false;
		queue_drain(&l->queueing, at);
		decision = admission_reserve(&l->admission, request, permit);
	}
	if (permit->drain)
		queue_drain(&l->queueing, at);
	return decision == ADMITTED;
}

bool limiter_reserve(struct weir_limiter *l, const struct request *request, const weir_time *now,
		     struct permit *permit)
{
	enum decision decision = admission_reserve(&l->admission, request, permit);

	if (LIKELY(decision == ADMITTED && !permit->drain))
		return true;
	if (decision != ADMITTED && UNLIKELY(admission_paused(&l->admission)))
		return reserve_after_pause(l, request, now, permit);
	if (decision == REFUSED && !permit->drain)
		return false;
	return reserve_again(l, request, decision, now, permit);
}

void limiter_pass(const struct weir_limiter *l, weir_time now, uint16_t part, enum total which,
		  struct weir_token *token)
{
	*token = (struct weir_token){.start = now, .partition = part, .state = TOKEN_PASSED};
	count(l, which);
}

static void count_pressure(const struct weir_limiter *l, const struct stripe *stripe, uint16_t part)
{
	if (l->shedding.parts > 0)
		shed_refused(&l->shedding, (uint32_t)(stripe - l->sampling.stripes), part);
}

/* Always inlined: the text of a probe makes the function look long to a compiler. */
static inline __attribute__((always_inline)) void count_refusal(const struct weir_limiter *l,
								const struct request *request)
{
	struct stripe *stripe = sampler_stripe(&l->sampling);

	PROBE_REJECT(l, request->part, request->rank > 0);
	stripe_count(stripe, TOTAL_REJECTED);
	count_part(l, stripe, request->part, PART_REJECTED);
	count_pressure(l, stripe, request->part);
	if (request->rank == 0)
		return;
	stripe_count(stripe, TOTAL_SHED);
	count_part(l, stripe, request->part, PART_SHED);
}

void limiter_count_refusal(const struct weir_limiter *l, const struct request *request)
{
	count_refusal(l, request);
}

void limiter_let_through(const struct weir_limiter *l, const struct request *request, weir_time now,
			 struct weir_token *token)
{
	count_pressure(l, sampler_stripe(&l->sampling), request->part);
	limiter_pass(l, now, request->part, TOTAL_WOULD_REJECT, token);
}

int limiter_refuse(const struct weir_limiter *l, const struct request *request,
		   const weir_time *now, struct weir_token *token)
{
	if (request->rank > 0)
		shed_steer(&l->shedding, time_for(l, now));
	if (UNLIKELY(limiter_in_shadow(l))) {
		limiter_let_through(l, request, time_for(l, now), token);
		return 0;
	}
	*token = (struct weir_token){.state = TOKEN_EMPTY};
	count_refusal(l, request);
	return -EAGAIN;
}

void limiter_abandon(const struct weir_limiter *l, uint16_t part)
{
	struct stripe *stripe = sampler_stripe(&l->sampling);

	count_pressure(l, stripe, part);
	stripe_count(stripe, TOTAL_ABANDONED);
	count_part(l, stripe, part, PART_ABANDONED);
}

/* now may be NULL: the clock is read only when it is needed. */
static int try_acquire_any(struct weir_limiter *l, const struct weir_call *call,
			   const weir_time *now, const void *place, struct weir_token *token)
{
	struct request request;
	struct permit permit;
	bool bypass;
	int r = limiter_request(l, call, &request, &bypass);

	if (r != 0) {
		*token = (struct weir_token){.state = TOKEN_EMPTY};
		return r;
	}
	if (bypass) {
		limiter_pass(l, time_for(l, now), request.part, TOTAL_BYPASSED, token);
		return 0;
	}
	if (!limiter_reserve(l, &request, now, &permit))
		return limiter_refuse(l, &request, now, token);
	limiter_admit(l, (struct moment){now, now != NULL}, request.part, &permit, place, token);
	return 0;
}

/* An ordinary call on a limiter without partitions and priorities only needs the gate. */
static inline int try_acquire_plain(struct weir_limiter *l, const weir_time *now, const void *place,
				    struct weir_token *token)
{
	static const struct request ordinary = {.cost = 1};
	struct permit permit;
	bool admitted;

	admitted = admission_reserve_one(&l->admission, &ordinary, &permit);
	if (UNLIKELY(permit.drain))
		queue_drain(&l->queueing, time_for(l, now));
	if (!admitted && UNLIKELY(admission_paused(&l->admission)))
		admitted = reserve_after_pause(l, &ordinary, now, &permit);
	if (!admitted)
		return limiter_refuse(l, &ordinary, now, token);
	limiter_admit(l, (struct moment){now, now != NULL}, 0, &permit, place, token);
	return 0;
}

/*
 * Whether the call equals NULL, the ordinary one, on a limiter without partitions and priorities.
 */
static inline bool is_ordinary(const struct weir_call *call)
{
	return call == NULL || (call->partition == 0 && call->cost <= 1 && call->flags == 0 &&
				call->reserved == 0 && call->priority >= WEIR_PRIORITY_MIN &&
				call->priority <= WEIR_PRIORITY_MAX);
}

static inline int try_acquire(struct weir_limiter *l, const struct weir_call *call,
			      const weir_time *now, const void *place, struct weir_token *token)
{
	if (LIKELY(l->plain && is_ordinary(call)))
		return try_acquire_plain(l, now, place, token);
	return try_acquire_any(l, call, now, place, token);
}

int weir_try_acquire(struct weir_limiter *l, struct weir_token *token)
{
	return try_acquire(l, NULL, NULL, __builtin_return_address(0), token);
}

int weir_try_acquire_at(struct weir_limiter *l, weir_time now, struct weir_token *token)
{
	return try_acquire(l, NULL, &now, __builtin_return_address(0), token);
}

int weir_try_acquire_for(struct weir_limiter *l, const struct weir_call *call,
			 struct weir_token *token)
{
	return try_acquire(l, call, NULL, __builtin_return_address(0), token);
}

int weir_try_acquire_for_at(struct weir_limiter *l, const struct weir_call *call, weir_time now,
			    struct weir_token *token)
{
	return try_acquire(l, call, &now, __builtin_return_address(0), token);
}

/*
 * If a thread is putting a limit into force, wait until it has put the current values into force.
 */
static void await_tuning(struct weir_limiter *l)
{
	struct owner_wait wait = owner_wait_begin();
	uint32_t owner;

	while (!admission_is_tuned(&l->admission, &owner)) {
		if (owner_wait_longer(l, &wait, owner))
			continue;
		admission_retune_beside(&l->admission);
		return;
	}
}

void limiter_retune(struct weir_limiter *l, weir_time now, bool wait)
{
	admission_retune(&l->admission);
	if (wait)
		await_tuning(l);
	if (l->admission.count > 0 || admission_waiting(&l->admission) > 0)
		queue_drain(&l->queueing, now);
}

/* Inputs that a limit can request besides the samples. */
#define EXTRAS (WEIR_LIMIT_CPU | WEIR_LIMIT_DETACHED | WEIR_LIMIT_NOW | WEIR_LIMIT_REAL_TIME)

/* How soon a limiter notices that the system's clock was set. */
#define ZERO_LASTS (10 * WEIR_S)

static double cpu_now(const struct weir_limiter *l)
{
	double cpu;
	int cancel;

	if ((l->ops->flags & WEIR_LIMIT_CPU) == 0 || l->cpu == NULL)
		return 0;
	cancel = cancel_hold();
	cpu = l->cpu->read(l->cpu);
	cancel_release(cancel);
	if (!(cpu > 0))
		return 0;
	return cpu < 1 ? cpu : 1;
}

/*
 * The window's end by the system's clock. That runs at the same rate as CLOCK_MONOTONIC, so it is read only
 * now and then; reading it for each window would make calls slower. Windows are closed one at a time.
 */
static weir_time real_time(struct weir_limiter *l, weir_time end)
{
	if (l->clock == NULL && end - l->zero_read >= ZERO_LASTS) {
		l->clock_zero = clock_zero();
		l->zero_read = end;
	}
	return end + l->clock_zero;
}

/*
 * Detached calls may have started after the call that found the most in flight; that call itself
 * still counts, hence the minimum of 1.
 */
static void fill_extras(struct weir_limiter *l, struct weir_window *w)
{
	const uint32_t detached = admission_detached(&l->admission);
	uint32_t now;

	w->cpu = cpu_now(l);
	if ((l->ops->flags & WEIR_LIMIT_NOW) != 0) {
		now = weir_inflight(l);
		w->inflight_now = now > detached ? now - detached : 0;
	}
	if ((l->ops->flags & WEIR_LIMIT_REAL_TIME) != 0)
		w->real = real_time(l, w->end);
	if (detached > 0)
		w->inflight_max = w->inflight_max > detached ? w->inflight_max - detached : 1;
}

void limiter_fetch_state(struct weir_limiter *l)
{
	if (l->state != l->stored_state)
		memcpy(l->state, l->stored_state, l->ops->state_size);
}

void limiter_store_state(struct weir_limiter *l)
{
	if (l->state == l->stored_state)
		return;
	state_change_begin(l->runtime);
	memcpy(l->stored_state, l->state, l->ops->state_size);
	state_change_end(l->runtime);
}

/*
 * In place, the state is half changed during the whole update; with a copy, only while the copy is
 * written back.
 */
static double update(struct weir_limiter *l, const struct weir_window *w)
{
	const bool in_place = l->state == l->stored_state;
	double limit;

	if (in_place)
		state_change_begin(l->runtime);
	limit = l->ops->update(l->state, w);
	if (in_place)
		state_change_end(l->runtime);
	limiter_store_state(l);
	return limit;
}

/*
 * The limit after a window; unchanged if the algorithm returns none. *resume: until when it pauses;
 * 0: it does not.
 */
static uint32_t updated(struct weir_limiter *l, const struct weir_window *w, weir_time *resume)
{
	double limit;

	*resume = 0;
	if ((l->ops->flags & WEIR_LIMIT_SETTABLE) != 0)
		return w->limit;
	limit = update(l, w);
	if (limit < 0 && (l->ops->flags & WEIR_LIMIT_PAUSES) != 0)
		*resume = w->end + (weir_time)fmin(ceil(-limit), (double)WEIR_PAUSE_MAX);
	return isnan(limit) ? w->limit : limiter_bound(l, limit);
}

uint32_t limiter_numbers(const struct weir_limiter *l)
{
	uint32_t count = 0;

	if (l->ops->observe == NULL)
		return 0;
	while (count < WEIR_NUMBERS_MAX && l->ops->numbers[count] != NULL)
		count++;
	return count;
}

static void fill_numbers(const struct weir_limiter *l, struct weir_report *report)
{
	report->names = NULL;
	report->count = limiter_numbers(l);
	memset(report->numbers, 0, sizeof(report->numbers));
	if (report->count > 0)
		l->ops->observe(l->state, report->numbers);
}

static void notify_observer(const struct weir_limiter *l, const struct weir_report *report)
{
	const int cancel = cancel_hold();

	l->observer.window(l->observer.arg, report);
	cancel_release(cancel);
}

/*
 * Try to open the permit cache. Nothing needs a drain, which would roll reservations early, unless
 * a limit that another thread has stored was put into force on the way.
 */
static void open_cache(struct weir_limiter *l, weir_time now)
{
	const uint32_t before = gate_limit(gate_read(l->admission.gate));

	admission_retune(&l->admission);
	if (gate_limit(gate_read(l->admission.gate)) != before)
		queue_drain(&l->queueing, now);
}

/* Update the limit with the window. True: it has changed, or pauses, or no longer does. */
static bool ask_limit(struct weir_limiter *l, weir_time now, struct weir_report *report)
{
	struct weir_window *w = &report->window;
	weir_time resume;
	bool changed;

	limiter_fetch_state(l);
	w->limit = admission_limit(&l->admission);
	w->random = limiter_random(l);
	if (UNLIKELY((l->ops->flags & EXTRAS) != 0))
		fill_extras(l, w);
	report->limit = updated(l, w, &resume);
	changed = admission_pause(&l->admission, resume, now);
	/* A settable limit is not stored: it may have been set meanwhile. */
	if (report->limit != w->limit)
		atomic_store_explicit(&l->admission.room->learned, report->limit,
				      memory_order_relaxed);
	return changed || report->limit != w->limit;
}

/* Whether the window has a sample: others say nothing about the calls that are in flight. */
static bool has_sample(const struct weir_window *w)
{
	return w->count > 0 || w->dropped > 0 || w->timed_out > 0;
}

/* What else follows from a window with samples. changed: the limit has to be put into force. */
static void follow(struct weir_limiter *l, weir_time now, const struct weir_report *report,
		   bool changed)
{
	const struct weir_window *w = &report->window;
	struct room *room = l->admission.room;
	const uint32_t open = atomic_load_explicit(&room->burst, memory_order_relaxed);
	const uint32_t burst = burst_after(&l->runtime->burst, w, open);

	if (burst != open)
		atomic_store_explicit(&room->burst, burst, memory_order_relaxed);
	cache_note_window(&l->admission.cache, w->inflight_max,
			  admission_capped(&l->admission, report->limit));
	if (changed || burst != open)
		limiter_retune(l, now, false);
	else if (cache_may_open(&l->admission.cache))
		open_cache(l, now);
	if (l->shedding.parts > 0)
		shed_steer(&l->shedding, now);
}

static void show(const struct weir_limiter *l, struct weir_report *report)
{
	if (admission_paused(&l->admission))
		report->limit = 0;
	fill_numbers(l, report);
	publish(l->published, report);
	report->names = l->ops->numbers;
	PROBE_WINDOW(l, report->window.limit, report->limit, report->window.inflight_max,
		     (int64_t)report->window.rtt,
		     report->window.dropped + report->window.timed_out);
	if (l->observer.window != NULL)
		notify_observer(l, report);
}

/* Update the limit with a window that this thread owns, and release the window. */
static void learn(struct weir_limiter *l, weir_time now, struct weir_report *report)
{
	const bool changed = ask_limit(l, now, report), sampled = has_sample(&report->window);

	if (LIKELY(sampled))
		follow(l, now, report, changed);
	else if (changed)
		limiter_retune(l, now, false);
	if (LIKELY(sampled) || changed)
		show(l, report);
	sampler_open(&l->sampling, now);
}

/* Rare, so kept out of the path of calls. */
static __attribute__((noinline)) void close_window(struct weir_limiter *l, weir_time now)
{
	struct weir_report report; /* not cleared: learn() fills all of it */

	if (sampler_close(&l->sampling, now, &report.window))
		learn(l, now, &report);
}

/* For limits of which each sample is a window. */
static __attribute__((noinline)) void close_window_with(struct weir_limiter *l,
							struct stripe *stripe, weir_time now,
							const struct sample *sample)
{
	struct weir_report report; /* not cleared: learn() fills all of it */

	if (sampler_close_with(&l->sampling, stripe, now, sample, &report.window))
		learn(l, now, &report);
}

/* For limits that take notice of cancelled calls: these are no samples. */
static __attribute__((noinline)) void close_bare_window(struct weir_limiter *l, weir_time now)
{
	struct weir_report report; /* not cleared: learn() fills all of it */

	if (sampler_close_bare(&l->sampling, now, &report.window))
		learn(l, now, &report);
}

static bool notices_cancelled(const struct weir_limiter *l)
{
	return l->sampling.config.each_sample && (l->ops->flags & WEIR_LIMIT_CANCELLED) != 0;
}

/* A clock that went back measured nothing. */
static inline uint64_t time_between(weir_time start, weir_time now)
{
	const int64_t age = (int64_t)(now - start);

	return age > 0 ? (uint64_t)age : 0;
}

static inline void record(struct weir_limiter *l, struct stripe *stripe, weir_time now,
			  const struct sample *sample)
{
	if (UNLIKELY(l->sampling.config.each_sample))
		close_window_with(l, stripe, now, sample);
	else if (sampler_record(&l->sampling, stripe, sample->rtt, sample->inflight,
				sample->kind) &&
		 UNLIKELY(sampler_due(&l->sampling, now)))
		close_window(l, now);
}

/* An outcome that says nothing about load. */
static void count_other(const struct weir_limiter *l, struct stripe *stripe, uint16_t part,
			enum weir_outcome outcome)
{
	switch (outcome) {
	case WEIR_CANCELLED:
		stripe_count(stripe, TOTAL_CANCELLED);
		break;
	case WEIR_FAILED:
		stripe_count(stripe, TOTAL_FAILED);
		break;
	default:
		stripe_count(stripe, TOTAL_IGNORED);
		break;
	}
	count_part(l, stripe, part, PART_OTHER);
}

static inline void finish(struct weir_limiter *l, struct stripe *stripe, uint16_t part,
			  weir_time now, struct sample *sample, enum weir_outcome outcome)
{
	if (LIKELY(outcome == WEIR_SUCCESS)) {
		count_part(l, stripe, part, PART_SUCCEEDED);
	} else if (outcome == WEIR_DROPPED || outcome == WEIR_TIMED_OUT) {
		count_part(l, stripe, part, PART_DROPPED);
		sample->kind = outcome == WEIR_DROPPED ? DROPPED : TIMED_OUT;
	} else {
		count_other(l, stripe, part, outcome);
		sampler_note(&l->sampling, stripe, sample->rtt);
		if (outcome == WEIR_CANCELLED && notices_cancelled(l))
			close_bare_window(l, now);
		return;
	}
	record(l, stripe, now, sample);
}

/* A call that is no sample. An overload is one nevertheless, without a latency. */
static __attribute__((noinline)) void finish_counted(struct weir_limiter *l, struct stripe *stripe,
						     uint16_t part, const weir_time *now,
						     uint32_t inflight, enum weir_outcome outcome)
{
	struct sample sample = {.inflight = inflight};

	if (outcome == WEIR_DROPPED || outcome == WEIR_TIMED_OUT)
		finish(l, stripe, part, time_for(l, now), &sample, outcome);
	else
		count_other(l, stripe, part, outcome);
}

/* Not held: the token is a copy of one that was released before. */
static inline struct returned give_back(const struct weir_limiter *l,
					const struct weir_token *token, uint16_t part,
					uint32_t cost, uint32_t home)
{
	const struct returned not_held = {.held = false};

	if (UNLIKELY(part >= l->admission.count && part > 0))
		return not_held;
	if (UNLIKELY(token->track != 0) && !track_remove(&l->tracking, token))
		return not_held;
	if (l->leasing.mine != NULL && !holding_take(&l->leasing.mine[part], cost))
		return not_held;
	return admission_give_back(&l->admission, part, cost, home);
}

/* A token without a permit: let through, already released, or another process's. */
static void release_nothing(const struct weir_limiter *l, struct weir_token *token)
{
	if (l->serves)
		count(l, token->state == TOKEN_PASSED ? TOTAL_PASSED : TOTAL_DOUBLE_RELEASED);
	token->state = TOKEN_EMPTY;
}

/*
 * Whether the token belongs to this process, by what is left of its home without the mark. A shared
 * limiter has no permit cache, so nothing is left.
 */
static inline bool is_own(const struct weir_limiter *l, uint32_t home)
{
	return l->leasing.mark == 0 ? LIKELY(l->serves) : LIKELY(home == 0);
}

/*
 * The count of the process itself is the first to rise and the last to fall (lib/process/lease.h).
 */
static void begin_detached(struct weir_limiter *l, weir_time now, uint32_t cost)
{
	struct lease *lease = lease_own(&l->leasing);

	if (lease != NULL)
		lease_detach(lease, cost);
	admission_detach(&l->admission, cost);
	limiter_retune(l, now, false);
}

/*
 * A detached call no longer raises the limit. For a copied token, no more is subtracted than the
 * process's count.
 */
static void end_detached(struct weir_limiter *l, weir_time now, uint32_t cost)
{
	struct lease *lease = lease_own(&l->leasing);

	if ((l->ops->flags & WEIR_LIMIT_DETACHED) == 0)
		return;
	if (lease != NULL && lease_detached(lease) < cost)
		cost = lease_detached(lease);
	admission_end_detached(&l->admission, cost);
	if (lease != NULL)
		lease_end_detached(lease, cost);
	limiter_retune(l, now, false);
}

/* A token that holds a permit. Inlined twice, so that ordinary calls do not test for detachment. */
static inline __attribute__((always_inline)) void release_held(struct weir_limiter *l,
							       weir_time now,
							       struct weir_token *token,
							       bool detached,
							       enum weir_outcome outcome)
{
	/*
	 * Copied now, one by one in the order in which they were stored: a grant callback during
	 * the drain may free the object that contains the token.
	 */
	const weir_time start = token->start;
	const uint32_t inflight = token->inflight, cost = token->cost;
	const uint32_t home = token->home ^ l->leasing.mark;
	const uint16_t part = token->partition;
	const bool drawn = (token->state & TOKEN_DRAWN) != 0;
	struct returned returned;
	struct stripe *stripe;
	struct sample sample;

	token->state = TOKEN_EMPTY;
	returned = give_back(l, token, part, cost, home);
	if (returned.held && detached)
		end_detached(l, now, cost);
	if (UNLIKELY(returned.drain))
		queue_drain(&l->queueing, now);
	if (UNLIKELY(!returned.held)) {
		count(l, TOTAL_DOUBLE_RELEASED);
		return;
	}
	stripe = home != 0 ? &l->sampling.stripes[home - 1] : sampler_stripe(&l->sampling);
	sample = (struct sample){
		.rtt = detached ? 0 : time_between(start, now),
		.inflight = inflight,
		.drawn = drawn,
	};
	finish(l, stripe, part, now, &sample, outcome);
	if (drawn)
		thinning_pace(&l->sampling, now);
}

/* A token that holds a permit, of a call that is no sample. */
static inline void release_counted(struct weir_limiter *l, const weir_time *now,
				   struct weir_token *token, enum weir_outcome outcome)
{
	const uint32_t inflight = token->inflight, cost = token->cost;
	const uint32_t home = token->home ^ l->leasing.mark;
	const uint16_t part = token->partition;
	struct returned returned;
	struct stripe *stripe;

	token->state = TOKEN_EMPTY;
	returned = give_back(l, token, part, cost, home);
	if (UNLIKELY(returned.drain))
		queue_drain(&l->queueing, time_for(l, now));
	if (UNLIKELY(!returned.held)) {
		count(l, TOTAL_DOUBLE_RELEASED);
		return;
	}
	stripe = home != 0 ? &l->sampling.stripes[home - 1] : sampler_stripe(&l->sampling);
	if (UNLIKELY(outcome != WEIR_SUCCESS)) {
		finish_counted(l, stripe, part, now, inflight, outcome);
		return;
	}
	stripe_count_served(stripe);
	count_part(l, stripe, part, PART_SUCCEEDED);
}

static __attribute__((noinline)) void release_other(struct weir_limiter *l, weir_time now,
						    struct weir_token *token,
						    enum weir_outcome outcome)
{
	if ((token->state & ~(TOKEN_COUNTED | TOKEN_DRAWN)) == (TOKEN_HELD | TOKEN_DETACHED) &&
	    is_own(l, token->home ^ l->leasing.mark))
		release_held(l, now, token, true, outcome);
	else
		release_nothing(l, token);
}

/* Whether the token holds a permit of a call that is no sample. */
static inline bool is_counted(const struct weir_limiter *l, const struct weir_token *token)
{
	return token->state == (TOKEN_HELD | TOKEN_COUNTED) &&
	       is_own(l, token->home ^ l->leasing.mark);
}

static inline void release(struct weir_limiter *l, weir_time now, struct weir_token *token,
			   enum weir_outcome outcome)
{
	if (LIKELY((token->state & ~TOKEN_DRAWN) == TOKEN_HELD) &&
	    is_own(l, token->home ^ l->leasing.mark))
		release_held(l, now, token, false, outcome);
	else
		release_other(l, now, token, outcome);
}

int weir_detach(struct weir_limiter *l, struct weir_token *token)
{
	if (!l->serves)
		return limiter_denial(l);
	if (token->state == TOKEN_EMPTY)
		return -EINVAL;
	if ((token->state & ~(TOKEN_COUNTED | TOKEN_DRAWN)) != TOKEN_HELD)
		return 0; /* let through, or detached already */
	if (!is_own(l, token->home ^ l->leasing.mark))
		return -EINVAL;
	token->state |= TOKEN_DETACHED;
	count(l, TOTAL_DETACHED);
	if ((l->ops->flags & WEIR_LIMIT_DETACHED) != 0)
		begin_detached(l, limiter_now(l), token->cost);
	return 0;
}

void weir_queued(struct weir_limiter *l, const struct weir_token *token, weir_dur delay)
{
	if (!l->serves || (l->ops->flags & WEIR_LIMIT_QUEUE) == 0 ||
	    (token->state & ~(TOKEN_COUNTED | TOKEN_DRAWN)) != TOKEN_HELD || (int64_t)delay < 0)
		return;
	sampler_queued(&l->sampling, sampler_stripe(&l->sampling), delay);
}

void weir_release_at(struct weir_limiter *l, weir_time now, struct weir_token *token,
		     enum weir_outcome outcome)
{
	if (is_counted(l, token))
		release_counted(l, &now, token, outcome);
	else
		release(l, now, token, outcome);
}

void weir_release(struct weir_limiter *l, struct weir_token *token, enum weir_outcome outcome)
{
	if (is_counted(l, token)) {
		release_counted(l, NULL, token, outcome);
		return;
	}
	if (LIKELY(token->home == l->leasing.mark))
		gate_expect(l->admission.gate);
	release(l, limiter_now(l), token, outcome);
}

void weir_sample_at(struct weir_limiter *l, weir_time start, weir_time end, uint32_t inflight,
		    enum weir_outcome outcome)
{
	struct sample sample = {.rtt = time_between(start, end), .inflight = inflight};

	if (l->serves)
		finish(l, sampler_stripe(&l->sampling), 0, end, &sample, outcome);
}

int weir_limit_set(struct weir_limiter *l, uint32_t value)
{
	if (!l->serves)
		return limiter_denial(l);
	if ((l->ops->flags & WEIR_LIMIT_SETTABLE) == 0)
		return -ENOTSUP;
	if (value == 0 || value > WEIR_LIMIT_MAX)
		return -EINVAL;
	atomic_store_explicit(&l->admission.room->learned, limiter_bound(l, value),
			      memory_order_relaxed);
	limiter_retune(l, limiter_now(l), true);
	return 0;
}

int weir_limit_cap(struct weir_limiter *l, uint32_t most)
{
	if (!l->serves)
		return limiter_denial(l);
	if (most > WEIR_LIMIT_MAX)
		return -EINVAL;
	atomic_store_explicit(&l->admission.room->ceiling, most, memory_order_relaxed);
	limiter_retune(l, limiter_now(l), true);
	return 0;
}

void weir_shadow_set(struct weir_limiter *l, bool shadow)
{
	if (!l->serves)
		return;
	atomic_store_explicit(&l->queueing.queue->open, shadow, memory_order_relaxed);
	queue_drain(&l->queueing, limiter_now(l));
}

uint32_t weir_limit(const struct weir_limiter *l)
{
	if (l->ops == NULL || admission_paused(&l->admission))
		return 0;
	return admission_raised(&l->admission);
}

uint32_t weir_inflight(const struct weir_limiter *l)
{
	return l->ops != NULL ? cache_held(&l->admission.cache).most : 0;
}

uint32_t weir_waiting(const struct weir_limiter *l)
{
	return l->ops != NULL ? admission_waiting(&l->admission) : 0;
}

bool limiter_is_idle(const struct weir_limiter *l)
{
	return weir_inflight(l) == 0 && queue_is_empty(&l->queueing) && limiter_passing(l) == 0;
}

uint32_t weir_queue_size(const struct weir_limiter *l)
{
	return l->ops != NULL ? l->queueing.config.slots : 0;
}
