/*
 * A rate, as the files of lib/ see it.
 *
 * word      written by                      order    pairs with
 * --------  ------------------------------  -------  ------------------------------------------
 * taken[i]  take, charge, lapse: CAS        release  second look: terms it was counted by
 * taken[i]  give back: -units               release  second look, as above
 * waiting   stand: +1, locked               acq_rel  given: the units that it gave before
 * waiting   given: +GIVEN                   acq_rel  stand: it sees the waiter in what it adds to
 * waiting   leave: -1, locked               relaxed  nothing: a number
 * version   publish: store, locked          release  read_terms: the words of the new terms
 * word[j]   publish: store, locked          release  read_terms: who sees a word of terms yet to
 *                                                    come sees that the version has gone on
 * total[k]  anyone: add                     relaxed  nothing: numbers
 *
 * Everything else is under the lock: the terms as their writer knows them, and the queue.
 *
 * A call that is admitted reads the clock, then the terms in force, then swaps taken. Terms are
 * written to the one of two places that is not in force, which then comes into force by the
 * version; who finds the version changed has read what may be half of each, and reads again. So
 * nobody waits for a writer that was stopped, and only as many writers as there are make a
 * reader try again.
 *
 * Why terms and taken may be apart. taken only counts, and terms only say what has fallen due, in
 * the same count. A change goes on from what had fallen due when it was made. So who takes by old
 * terms, at a time that he read before them, takes what had fallen due before the change. But if
 * the writer is stopped between its look at the clock and the publication, others count slots by
 * the old terms that the change is not to know of, and where less falls due by the new ones, what
 * lapsed in them would be debt. So it looks at the clock again, and if a slot has begun, makes the
 * change from there: all who have read the old terms read the clock before that.
 *
 * Why a refusal is right. Who reads the clock, is stopped, and goes on in a later slot finds in
 * taken what others have counted there: what was left of the earlier slots has lapsed, and by his
 * time there is nothing, though there was something in each slot. So who finds nothing looks a
 * second time: at taken, then at the clock, then at the terms. What was in taken then was counted
 * at times no later than this, by terms no newer than these. If by these too nothing is left,
 * there was nothing when taken was read. If not, he tries again: then others have taken
 * something meanwhile, or a slot has begun, so that it ends.
 *
 * Why no waiter is forgotten. Units come by time, and a waiter knows when. They come sooner when a
 * quota is set, which is done under the lock by a thread that then serves; or when some are given
 * back, by a settlement or by a call that got units of some of its quotas only. A waiter (1) adds
 * itself to waiting, (2) looks at what is left. A thread that gives back (a) takes the units off
 * taken, (b) adds GIVEN to waiting, and serves if the value it added to has waiters in it. (1) and
 * (b) modify one word, so one is first. If it is (1), (b) finds the waiter. If it is (b), (1)
 * acquires what (b) released, so (2) sees taken without the units. All modifications of waiting are
 * read-modify-writes, so those between do not end a release sequence, and each of them changes the
 * word: an addition of nothing would order nothing once a compiler has left it out.
 */
#ifndef WEIR_LIB_RATE_H
#define WEIR_LIB_RATE_H

#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/base/layout.h"
#include "lib/rate/accrual.h"
#include "lib/base/park.h"

/* Lines for totals, which processors share if there are more of them. A power of two. */
#define TALLIES 8

struct terms {
	struct accrual accrual;
	struct quota quota[WEIR_QUOTAS_MAX];
};

#define ACCRUAL_WORDS (sizeof(struct accrual) / sizeof(uint64_t))
#define QUOTA_WORDS   (sizeof(struct quota) / sizeof(uint64_t))
#define TERMS_WORDS   (sizeof(struct terms) / sizeof(uint64_t))

struct published_terms {
	_Alignas(LINE) _Atomic uint64_t word[TERMS_WORDS];
};

enum rate_total {
	RATE_ADMITTED,
	RATE_REFUSED,
	RATE_ABANDONED,
	RATE_THROTTLED,
	RATE_TAKEN, /* and as many more as there are quotas */
	RATE_TOTALS = RATE_TAKEN + WEIR_QUOTAS_MAX,
};

struct tally {
	_Alignas(LINE) _Atomic uint64_t total[RATE_TOTALS];
};

enum seat_state { SEAT_FREE, SEAT_WAITING, SEAT_TELLING, SEAT_GRANTED };

/* A place in the queue. */
struct seat {
	struct weir_cost cost;
	weir_granted_fn *granted;
	void *arg;
	uint32_t stamp; /* of its use, so that a stale waiter is known */
	enum seat_state state;
	uint32_t next, prev; /* in the line, or among the free */
	bool sleeps;         /* it is a thread, in its park */
	bool watches;        /* and wakes when the first in the line has its turn */
	struct park park;
};

struct line {
	uint32_t head, tail;
	uint32_t free;
};

struct weir_rate {
	_Alignas(LINE) _Atomic uint64_t taken[WEIR_QUOTAS_MAX];
	_Atomic uint64_t waiting; /* their number; above it, how often units were given back */

	_Alignas(LINE) _Atomic uint64_t version; /* its last bit: which of the two is in force */
	uint32_t quotas;
	uint32_t seats;
	const struct weir_clock *clock; /* NULL: CLOCK_MONOTONIC */
	void (*sooner)(void *arg);
	void *sooner_arg;
	uint64_t slot;
	uint64_t recovery;
	struct published_terms published[2];

	_Alignas(LINE) pthread_mutex_t lock; /* of all that follows */
	struct terms terms;
	struct weir_quota value[WEIR_QUOTAS_MAX]; /* as they were set */
	weir_time lowered;                        /* when the pace was, last; while it is low */
	struct line line;

	struct tally tally[TALLIES];
	struct seat seat[];
};

/* Units were given back once: added to the upper half of waiting, where it wraps. */
#define GIVEN (UINT64_C(1) << 32)

static inline uint32_t rate_waiting(const struct weir_rate *r)
{
	return (uint32_t)atomic_load_explicit(&r->waiting, memory_order_relaxed);
}

static inline weir_time rate_now(const struct weir_rate *r)
{
	return LIKELY(r->clock == NULL) ? clock_monotonic() : r->clock->now(r->clock);
}

/* 0 or -EINVAL, with a sentence in why. */
int rate_check(const struct weir_rate_config *config, struct weir_rate_config *complete, char *why,
	       size_t why_size);
int rate_check_quota(const struct weir_quota *q, unsigned index, char *why, size_t why_size);

/* Have the terms of the lock's owner in force. */
void rate_publish(struct weir_rate *r);

/* Have their origin nearer, if it is far away: numbers stay small enough. The lock's owner's. */
void rate_renew(struct weir_rate *r, weir_time now);

void rate_count(struct weir_rate *r, enum rate_total which, uint64_t count);

bool rate_is_cost(const struct weir_rate *r, const struct weir_cost *cost);

/* Take what it costs, unless somebody waits. */
bool rate_try(struct weir_rate *r, weir_time now, const struct weir_cost *cost);

/* Take what it costs, whoever waits. False: something of it is used up, and nothing is taken. */
bool rate_admit(struct weir_rate *r, weir_time now, const struct weir_cost *cost);

/* When the call has its turn, if nobody else takes anything. The lock's owner's. */
weir_time rate_turn(struct weir_rate *r, const struct weir_cost *cost);

/* The line. */
void line_init(struct weir_rate *r);

/* The first cost in the line; NULL: nobody waits. The lock's owner's. */
const struct weir_cost *line_first(const struct weir_rate *r);

/*
 * With the lock, returns without: serve whose turn it is, have a sleeping thread watch for the
 * next, and tell those who were served. rouse: turns may come sooner than that one thinks.
 */
void line_serve(struct weir_rate *r, weir_time now, bool rouse);

#endif
