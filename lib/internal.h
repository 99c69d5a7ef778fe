/*
 * A limiter, as the files of lib/ see it.
 *
 * The handle, struct weir_limiter, is a process's own: it holds pointers. What
 * threads share lies behind it in one block, in which there is no pointer; a
 * handle finds the parts by their offsets (lib/config.c).
 */
#ifndef WEIR_LIB_INTERNAL_H
#define WEIR_LIB_INTERNAL_H

#include <weir/observe.h>

#include "lib/clock.h"
#include "lib/gate.h"
#include "lib/queue.h"
#include "lib/sampler.h"
#include "lib/track.h"

/* A configuration, complete and checked. */
struct settings {
	const struct weir_limit_ops *ops;
	uint32_t limit_min, limit_max;
	struct sampler_config sampler;
	struct queue_config queue;
	uint32_t track;
	uint64_t seed;
	const struct weir_clock *clock;
	struct weir_random *random;
	struct weir_observer observer;
	_Alignas(16) unsigned char limit_config[WEIR_LIMIT_CONFIG_MAX];
};

/* 0 or -EINVAL, with a sentence in why. */
int settings_from(struct settings *settings, const struct weir_config *config, char *why,
		  size_t why_size);

/*
 * The latest report, for readers on other threads; and totals as they were last
 * shown, so that none is ever shown to shrink.
 *
 * word     written by                    order    pairs with
 * -------  ----------------------------  -------  -----------------------------------
 * version  the window's owner: odd       relaxed  the stores to words carry it
 * word[i]  the window's owner            release  read: who sees a new word sees that
 *                                                 version is odd, or later
 * version  the window's owner: even      release  read: the words
 * windows  the window's owner: +1        relaxed  nothing: a number
 * shown    a reader: CAS when beaten     relaxed  nothing: a number
 *
 * A reader that finds version odd or changed tries again.
 */
#define REPORT_WORDS ((sizeof(struct weir_report) + 7) / 8)

struct published {
	_Alignas(LINE) _Atomic uint32_t version;
	_Atomic uint64_t windows;
	_Atomic uint64_t word[REPORT_WORDS];
	_Alignas(LINE) _Atomic uint64_t admitted_shown, succeeded_shown;
};

/* What the limit and its window's owner keep. */
struct brain {
	_Alignas(LINE) uint64_t random; /* state of our own generator */
	_Alignas(16) unsigned char state[WEIR_LIMIT_STATE_MAX];
};

struct weir_limiter {
	const struct weir_limit_ops *ops;
	const struct weir_clock *clock; /* NULL: CLOCK_MONOTONIC */
	struct weir_random *random;     /* NULL: the generator in brain */
	struct weir_observer observer;
	uint32_t limit_min, limit_max;

	struct gate *gate;
	struct sampling sampling;
	struct queueing queueing;
	struct tracking tracking;
	struct published *published;
	struct brain *brain;
};

static inline weir_time limiter_now(const struct weir_limiter *l)
{
	return LIKELY(l->clock == NULL) ? clock_monotonic() : l->clock->now(l->clock);
}

static inline void count(const struct weir_limiter *l, enum total which)
{
	stripe_count(sampler_stripe(&l->sampling), which);
}

enum { TOKEN_EMPTY, TOKEN_HELD };

/* Make out a token for a permit of the gate's. place is whom to blame if it is not released. */
static inline void limiter_admit(const struct weir_limiter *l, weir_time now, uint32_t inflight,
				 const void *place, struct weir_token *token)
{
	token->start = now;
	token->inflight = inflight;
	token->track = 0;
	token->state = TOKEN_HELD;
	if (UNLIKELY(l->tracking.count > 0))
		track_add(&l->tracking, token, place);
}

/* Counted as a refusal at once; *token is emptied. */
int limiter_refuse(const struct weir_limiter *l, struct weir_token *token);

/* The next random number of the limiter, in [0, 1). The window's owner's, or at init. */
double limiter_random(const struct weir_limiter *l);

/* What a limit asks for, without the fraction and within the bounds. */
uint32_t limiter_bound(const struct weir_limiter *l, double limit);

/* Bring before the reader what a window came to. */
void publish(struct published *p, const struct weir_report *report);

#endif
