/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limiter, as the files of lib/ see it.
 *
 * The handle, struct weir_limiter, belongs to one process. It and its arrays hold pointers and
 * constants. What threads share lies in one block without any pointer; the handle finds its parts
 * by their offsets (lib/limiter/config.c). The block follows the handle in memory, or lies
 * elsewhere, for several processes (lib/shm/shm.c).
 */
#ifndef WEIR_LIB_LIMITER_H
#define WEIR_LIB_LIMITER_H

#include <weir/observe.h>

#include "lib/admission/admission.h"
#include "lib/admission/burst.h"
#include "lib/base/clock.h"
#include "lib/process/lease.h"
#include "lib/wait/queue.h"
#include "lib/sample/sampler.h"
#include "lib/admission/shed.h"
#include "lib/limiter/track.h"

/* A complete, checked configuration. */
struct settings {
	const struct weir_limit_ops *ops;
	uint32_t state_size; /* of ops */
	uint32_t limit_min, limit_max;
	struct sampler_config sampler;
	struct queue_config queue;
	struct admission_config admission;
	struct weir_partition partitions[WEIR_PARTITIONS_MAX + 1]; /* names belong to the caller */
	uint32_t parts;   /* including partition 0; 1 without partitions */
	uint32_t members; /* processes that may share the limiter; 0: not shared */
	uint32_t shed;
	double shed_floor;
	uint32_t burst;
	uint32_t track;
	uint64_t seed;
	const struct weir_clock *clock;
	weir_time clock_zero;
	struct weir_random *random;
	const struct weir_gauge *cpu;
	struct weir_observer observer;
	_Alignas(16) unsigned char limit_config[WEIR_LIMIT_CONFIG_MAX];
};

/* Returns 0, or -EINVAL with a sentence in why. */
int settings_from(struct settings *settings, const struct weir_config *config, char *why,
		  size_t why_size);

/* Whether settings read from elsewhere are such as settings_from() makes, except for pointers. */
bool settings_are_sound(const struct settings *settings);

/* A digest of the limit's parameters and of the configuration of windows. */
uint64_t limit_digest(const struct weir_limit_ops *ops, const struct sampler_config *windows,
		      const void *limit_config);

/* Sizes of the process's own part and of the shared block, in bytes; multiples of LINE. */
size_t limiter_own_size(const struct settings *settings);
size_t limiter_block_size(const struct settings *settings);

/* Make a handle in mem for a block. Neither reads nor writes the block's contents. */
struct weir_limiter *limiter_set_up(void *mem, void *block, const struct settings *settings);

/* Initialise the block of a new limiter. */
void limiter_begin(struct weir_limiter *l, const struct settings *settings);

/*
 * The latest report, for readers on other threads, as a sequence lock. And, for each process,
 * totals as they were last shown, so that a total never appears to shrink.
 *
 * word     written by                    order    pairs with
 * -------  ----------------------------  -------  -----------------------------------
 * version  the window's owner: odd       relaxed  the stores to words carry it
 * word[i]  the window's owner            release  read: a reader that sees a new word
 *                                                 sees that version is odd, or later
 * version  the window's owner: even      release  read: the words
 * windows  the window's owner: store     relaxed  nothing: a number
 * shown    a reader: CAS when exceeded   relaxed  nothing: a number
 *
 * A reader that finds version odd or changed tries again.
 */
#define REPORT_WORDS ((sizeof(struct weir_report) + 7) / 8)

struct published {
	_Alignas(LINE) _Atomic uint32_t version;
	_Atomic uint64_t windows;
	_Atomic uint64_t word[REPORT_WORDS];
};

struct shown {
	_Alignas(LINE) _Atomic uint64_t admitted, succeeded;
	_Atomic uintptr_t closing; /* lib/sample/window_owner.h */
};

/* What the window's owner keeps besides the limit's state. */
struct limit_runtime {
	_Alignas(LINE) uint64_t random; /* state of the built-in generator */
	struct burst burst;
	_Atomic uint32_t torn; /* 1: the limit's state is being changed */
};

/*
 * Called around code that changes the stored state of the limit. A process that dies in between
 * leaves a state that is neither the old nor the new: limiter_recover_state(). Only the compiler
 * must keep the order: when a process dies, the kernel makes its stores visible.
 */
static inline void state_change_begin(struct limit_runtime *runtime)
{
	atomic_store_explicit(&runtime->torn, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_acq_rel);
}

static inline void state_change_end(struct limit_runtime *runtime)
{
	atomic_signal_fence(memory_order_acq_rel);
	atomic_store_explicit(&runtime->torn, 0, memory_order_relaxed);
}

/*
 * Outcomes of a partition's calls on one CPU, besides the totals of all. Here admissions are
 * counted, and not derived from the other numbers: the in-flight field of a partition's word
 * includes calls that the gate is about to refuse, so derived admissions would be too high.
 */
enum part_total {
	PART_ADMITTED,
	PART_SUCCEEDED,
	PART_DROPPED, /* including timeouts */
	PART_OTHER,
	PART_REJECTED,
	PART_SHED,
	PART_ABANDONED,
	PART_TOTALS,
};

struct part_totals {
	_Alignas(LINE) _Atomic uint64_t total[PART_TOTALS];
};

struct weir_limiter {
	const struct weir_limit_ops *ops; /* NULL: in a forked child (lib/shm/shm.c) */
	const struct weir_clock *clock;   /* NULL: CLOCK_MONOTONIC */
	weir_time clock_zero;             /* nanoseconds from 1970 to the clock's zero */
	weir_time zero_read;              /* when that was measured, on CLOCK_MONOTONIC */
	struct weir_random *random;       /* NULL: the generator in runtime */
	const struct weir_gauge *cpu;     /* NULL: no gauge */
	struct weir_observer observer;
	uint32_t limit_min, limit_max;
	bool plain;  /* neither partitions nor priorities */
	bool serves; /* admits calls; false for an observer, and in a forked child */

	struct leasing leasing;
	struct admission admission;
	struct sampling sampling;
	struct queueing queueing;
	struct shedding shedding;
	struct tracking tracking;
	struct part_totals *part_totals; /* one for each stripe and partition */
	struct published *published;
	struct shown *shown;
	struct limit_runtime *runtime;
	void *stored_state;          /* in the block; ops->state_size bytes */
	void *state;                 /* where the limit works on it: stored_state, or a copy */
	unsigned char *limit_config; /* complete; never changes */
};

static inline weir_time limiter_now(const struct weir_limiter *l)
{
	return LIKELY(l->clock == NULL) ? clock_monotonic() : l->clock->now(l->clock);
}

static inline void count(const struct weir_limiter *l, enum total which)
{
	stripe_count(sampler_stripe(&l->sampling), which);
}

static inline void count_part(const struct weir_limiter *l, const struct stripe *stripe,
			      uint16_t part, enum part_total which)
{
	size_t k;

	if (LIKELY(l->admission.count == 0))
		return;
	k = (size_t)(stripe - l->sampling.stripes) * l->admission.count + part;
	atomic_fetch_add_explicit(&l->part_totals[k].total[which], 1, memory_order_release);
}

/* State of a token: what it holds, and with flags whether its latency counts. */
enum {
	TOKEN_EMPTY,
	TOKEN_HELD,
	TOKEN_PASSED, /* let through, without a permit */
	TOKEN_DETACHED = 1 << 8,
	TOKEN_COUNTED = 1 << 9, /* no sample (lib/sample/thinning.h) */
	TOKEN_DRAWN = 1 << 10,  /* a sample that stands for calls that are none */
};

static inline weir_time time_for(const struct weir_limiter *l, const weir_time *now)
{
	return now != NULL ? *now : limiter_now(l);
}

/* When a call was admitted, as far as it is known, and whether the program said so. */
struct moment {
	const weir_time *now; /* NULL: the clock is read when needed */
	bool given;
};

/*
 * Make the call a sample, or not. A sample reads the clock, and finds out how many permits are
 * really in flight while some are idle in stripes.
 */
static inline void limiter_begin_sample(const struct weir_limiter *l, struct moment at,
					struct weir_token *token)
{
	const struct sampling *s = &l->sampling;
	const bool thins = s->config.interval != 0 && (!at.given || s->config.thins_given);
	struct stripe *stripe = sampler_stripe(s);

	token->start = 0;
	token->state = TOKEN_HELD | TOKEN_COUNTED;
	if (thins && thinning_skips(stripe))
		return;
	token->start = time_for(l, at.now);
	token->state = TOKEN_HELD;
	if (UNLIKELY(gate_lends(l->admission.gate)))
		token->inflight = cache_exact(&l->admission.cache, token->inflight);
	if (!thins)
		return;
	token->state = TOKEN_HELD | TOKEN_DRAWN;
	thinning_draw(s, stripe, token->start);
}

/* Fill in a token that holds permits of the gate. place is the code to report if it leaks. */
static inline void limiter_admit(const struct weir_limiter *l, struct moment at, uint16_t part,
				 const struct permit *permit, const void *place,
				 struct weir_token *token)
{
	token->inflight = permit->inflight;
	token->cost = permit->cost;
	token->track = 0;
	token->serial = 0;
	token->partition = part;
	token->home = permit->home | l->leasing.mark;
	limiter_begin_sample(l, at, token);
	if (l->leasing.mine != NULL)
		holding_add(&l->leasing.mine[part], permit->cost);
	if (UNLIKELY(l->admission.count > 0))
		count_part(l, sampler_stripe(&l->sampling), part, PART_ADMITTED);
	if (UNLIKELY(l->tracking.count > 0))
		track_add(&l->tracking, token, place);
}

/* Fill in a token without a permit, and count it as which. */
void limiter_pass(const struct weir_limiter *l, weir_time now, uint16_t part, enum total which,
		  struct weir_token *token);

static inline bool limiter_in_shadow(const struct weir_limiter *l)
{
	return atomic_load_explicit(&l->queueing.queue->open, memory_order_relaxed) != 0;
}

/* Why the limiter does not serve: what functions that would change something return. */
int limiter_denial(const struct weir_limiter *l);

/*
 * Turn a call into a request. Returns 0; -EINVAL if the call is malformed; limiter_denial() if the
 * limiter does not serve. *bypass: let the call through.
 */
int limiter_request(const struct weir_limiter *l, const struct weir_call *call,
		    struct request *request, bool *bypass);

/*
 * Reserve for a new call; on the way, updates reservations and serves waiters where necessary. now
 * may be NULL: the clock is then read when needed.
 */
bool limiter_reserve(struct weir_limiter *l, const struct request *request, const weir_time *now,
		     struct permit *permit);

void limiter_count_refusal(const struct weir_limiter *l, const struct request *request);

/* In shadow mode: count the call as one that would be refused. */
void limiter_let_through(const struct weir_limiter *l, const struct request *request, weir_time now,
			 struct weir_token *token);

/* Count an immediate refusal, and empty *token. In shadow mode, let the call through instead. */
int limiter_refuse(const struct weir_limiter *l, const struct request *request,
		   const weir_time *now, struct weir_token *token);

/* Calls let through that have not ended. */
uint32_t limiter_passing(const struct weir_limiter *l);

/* Count a waiter that left the queue. */
void limiter_abandon(const struct weir_limiter *l, uint16_t part);

/*
 * Put a new limit or new shares, already stored, into force, and serve waiters. If another thread
 * is putting a limit into force, that thread also puts these into force; with wait, this function
 * waits for that.
 */
void limiter_retune(struct weir_limiter *l, weir_time now, bool wait);

/* Stop counting the delayed refusals of a dead process in partition index. */
void limiter_end_delays(const struct weir_limiter *l, uint32_t index, uint32_t count);

/*
 * For the window's owner: bring the limit's state to where the limit works on it, and store it
 * back. In a shared limiter the state may contain anything, but a copy does not change meanwhile.
 */
void limiter_fetch_state(struct weir_limiter *l);
void limiter_store_state(struct weir_limiter *l);

/*
 * For the window's owner: if the limit's state was left half changed, restart the algorithm, at the
 * limit in force if it can start at one.
 */
void limiter_recover_state(struct weir_limiter *l);

/* The number of numbers that the limit shows. */
uint32_t limiter_numbers(const struct weir_limiter *l);

/* The next random number in [0, 1). For the window's owner, or at initialisation. */
double limiter_random(const struct weir_limiter *l);

/* A limit computed by the algorithm, rounded down and within the bounds. */
uint32_t limiter_bound(const struct weir_limiter *l, double limit);

/* Publish the report of a window, without names, since pointers are valid in one process only. */
void publish(struct published *p, const struct weir_report *report);

#endif
