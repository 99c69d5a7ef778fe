/*
 * A limiter, as the files of lib/ see it.
 *
 * The handle, struct weir_limiter, is a process's own, with some arrays: pointers, and what
 * never changes. What threads share is in one block, in which there is no pointer; a handle finds
 * the parts by their offsets (lib/limiter/config.c). The block lies behind the handle, or elsewhere, for
 * several processes (lib/shm/shm.c).
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

/* A configuration, complete and checked. */
struct settings {
	const struct weir_limit_ops *ops;
	uint32_t state_size; /* of ops */
	uint32_t limit_min, limit_max;
	struct sampler_config sampler;
	struct queue_config queue;
	struct admission_config admission;
	struct weir_partition partitions[WEIR_PARTITIONS_MAX + 1]; /* names: the caller's */
	uint32_t parts;   /* with partition 0; 1 without any */
	uint32_t members; /* processes that may share it; 0: it is one's own */
	uint32_t shed;
	double shed_floor;
	uint32_t burst;
	uint32_t track;
	uint64_t seed;
	const struct weir_clock *clock;
	struct weir_random *random;
	const struct weir_gauge *cpu;
	struct weir_observer observer;
	_Alignas(16) unsigned char limit_config[WEIR_LIMIT_CONFIG_MAX];
};

/* 0 or -EINVAL, with a sentence in why. */
int settings_from(struct settings *settings, const struct weir_config *config, char *why,
		  size_t why_size);

/* Whether settings that were found somewhere are as settings_from() makes them, but for pointers. */
bool settings_are_sound(const struct settings *settings);

/* Of the limit's parameters, and of what a window is. */
uint64_t limit_digest(const struct weir_limit_ops *ops, const struct sampler_config *windows,
		      const void *limit_config);

/* Bytes of what is a process's own, and of what is shared; each a multiple of LINE. */
size_t limiter_own_size(const struct settings *settings);
size_t limiter_block_size(const struct settings *settings);

/* A handle in mem, on a block. What is in the block is neither read nor written. */
struct weir_limiter *limiter_set_up(void *mem, void *block, const struct settings *settings);

/* What is in a new limiter's block. */
void limiter_begin(struct weir_limiter *l, const struct settings *settings);

/*
 * The latest report, for readers on other threads; and, each process's own, totals as they were
 * last shown, so that none is ever shown to shrink.
 *
 * word     written by                    order    pairs with
 * -------  ----------------------------  -------  -----------------------------------
 * version  the window's owner: odd       relaxed  the stores to words carry it
 * word[i]  the window's owner            release  read: who sees a new word sees that
 *                                                 version is odd, or later
 * version  the window's owner: even      release  read: the words
 * windows  the window's owner: store     relaxed  nothing: a number
 * shown    a reader: CAS when beaten     relaxed  nothing: a number
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
	_Atomic uintptr_t closing; /* lib/sample/sampler.h */
};

/* What the window's owner keeps, beside the limit's state. */
struct brain {
	_Alignas(LINE) uint64_t random; /* state of our own generator */
	struct burst burst;
	_Atomic uint32_t torn; /* 1: the state is being changed */
};

/*
 * Called around code that changes the limit's state where it is kept. A process that dies in
 * between leaves a state that is neither the old nor the new: limiter_mend(). The compiler must
 * keep the order; the end of the process in the kernel does the rest.
 */
static inline void brain_open(struct brain *brain)
{
	atomic_store_explicit(&brain->torn, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_acq_rel);
}

static inline void brain_close(struct brain *brain)
{
	atomic_signal_fence(memory_order_acq_rel);
	atomic_store_explicit(&brain->torn, 0, memory_order_relaxed);
}

/*
 * What a partition's calls came to, on one CPU; beside the totals of all. Here admissions are
 * counted, and do not follow from the rest: what is in flight in a partition's word has
 * calls in it that the gate is about to refuse, and would be shown too high.
 */
enum part_total {
	PART_ADMITTED,
	PART_SUCCEEDED,
	PART_DROPPED, /* with timeouts */
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
	const struct weir_limit_ops *ops; /* NULL: forked away from whose it was (lib/shm/shm.c) */
	const struct weir_clock *clock;   /* NULL: CLOCK_MONOTONIC */
	struct weir_random *random;       /* NULL: the generator in brain */
	const struct weir_gauge *cpu;     /* NULL: not known */
	struct weir_observer observer;
	uint32_t limit_min, limit_max;
	bool plain;  /* neither partitions nor priorities */
	bool serves; /* calls; not, if it only looks on, or is forked away */

	struct leasing leasing;
	struct admission admission;
	struct sampling sampling;
	struct queueing queueing;
	struct shedding shedding;
	struct tracking tracking;
	struct part_totals *part_totals; /* a stripe and a partition each */
	struct published *published;
	struct shown *shown;
	struct brain *brain;
	void *kept;                  /* the limit's state, of ops->state_size */
	void *state;                 /* where the limit works on it: there, or on a copy */
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

/* A token's state: what it holds, and whether its latency counts. */
enum {
	TOKEN_EMPTY,
	TOKEN_HELD,
	TOKEN_PASSED, /* let through, without a permit */
	TOKEN_DETACHED = 0x100,
};

/* Make out a token for permits of the gate's. place is whom to blame if it is not released. */
static inline void limiter_admit(const struct weir_limiter *l, weir_time now, uint16_t part,
				 const struct permit *permit, const void *place,
				 struct weir_token *token)
{
	token->start = now;
	token->inflight = permit->inflight;
	token->cost = permit->cost;
	token->track = 0;
	token->serial = 0;
	token->partition = part;
	token->state = TOKEN_HELD;
	token->home = permit->home | l->leasing.mark;
	if (l->leasing.mine != NULL)
		holding_add(&l->leasing.mine[part], permit->cost);
	if (UNLIKELY(l->admission.count > 0))
		count_part(l, sampler_stripe(&l->sampling), part, PART_ADMITTED);
	if (UNLIKELY(l->tracking.count > 0))
		track_add(&l->tracking, token, place);
}

/* Make out a token without a permit, counted as which. */
void limiter_pass(const struct weir_limiter *l, weir_time now, uint16_t part, enum total which,
		  struct weir_token *token);

static inline bool limiter_in_shadow(const struct weir_limiter *l)
{
	return atomic_load_explicit(&l->queueing.queue->open, memory_order_relaxed) != 0;
}

/* Why the limiter does not serve: what functions answer that would change something. */
int limiter_denial(const struct weir_limiter *l);

/*
 * What a call asks for, if it is well-formed: 0. -EINVAL if not, and a denial if the limiter does
 * not serve. *bypass: it is to be let through.
 */
int limiter_request(const struct weir_limiter *l, const struct weir_call *call,
		    struct request *request, bool *bypass);

/*
 * Reserve for a newcomer; what is kept, and who waits, are seen to. now may be NULL: the
 * clock is read.
 */
bool limiter_reserve(struct weir_limiter *l, const struct request *request, const weir_time *now,
		     struct permit *permit);

void limiter_count_refusal(const struct weir_limiter *l, const struct request *request);

/* In shadow mode: count the call as one that would be refused. */
void limiter_let_through(const struct weir_limiter *l, const struct request *request, weir_time now,
			 struct weir_token *token);

/* Counted as a refusal at once; *token is emptied. In shadow mode: let through instead. */
int limiter_refuse(const struct weir_limiter *l, const struct request *request,
		   const weir_time *now, struct weir_token *token);

/* Calls let through that have not ended. */
uint32_t limiter_passing(const struct weir_limiter *l);

/* Counted as having left the queue. */
void limiter_abandon(const struct weir_limiter *l, uint16_t part);

/*
 * A new limit, or new shares, are in the words: put them in force, and serve waiters. If another
 * thread is putting a limit in force, it will put these in force as well; wait: before this
 * returns.
 */
void limiter_retune(struct weir_limiter *l, weir_time now, bool wait);

/* Refusals in partition index, of a dead process, are delayed no more. */
void limiter_end_delays(const struct weir_limiter *l, uint32_t index, uint32_t count);

/*
 * The limit's state for the window's owner: brought to where the limit works on it, and back. A
 * limit may find anything there, if other processes share it; but a copy does not change meanwhile.
 */
void limiter_bring_state(struct weir_limiter *l);
void limiter_keep_state(struct weir_limiter *l);

/*
 * The limit's state was left half changed: it begins anew, at the limit in force if it can. The
 * window's owner's.
 */
void limiter_mend(struct weir_limiter *l);

/* How many numbers the limit shows of itself. */
uint32_t limiter_numbers(const struct weir_limiter *l);

/* The next random number of the limiter, in [0, 1). The window's owner's, or at init. */
double limiter_random(const struct weir_limiter *l);

/* What a limit asks for, without the fraction and within the bounds. */
uint32_t limiter_bound(const struct weir_limiter *l, double limit);

/* Bring before the reader what a window came to; without names, as a pointer is of one process. */
void publish(struct published *p, const struct weir_report *report);

#endif
