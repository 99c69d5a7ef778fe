/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rate, as the files of lib/ see it.
 *
 * word      written by                      order    pairs with
 * --------  ------------------------------  -------  ------------------------------------------
 * taken[i]  take, charge, lapse: CAS        release  second look: terms it was counted by
 * taken[i]  return: -units                  release  second look, as above
 * waiting   join: +1, locked                acq_rel  return: the units that it returned
 * waiting   return: +RETURN                 acq_rel  join: it sees the waiter in what it adds to
 * waiting   leave: -1, locked               relaxed  nothing: a number
 * version   publish: store, locked          release  read_terms: the words of the new terms
 * word[j]   publish: store, locked          release  read_terms: a reader that sees a word of
 *                                                    later terms sees that version has changed
 * total[k]  any thread: add                 relaxed  nothing: numbers
 *
 * Everything else is under the lock: the writer's copy of the terms, and the queue.
 *
 * A call that is admitted reads the clock, then the terms in force, then swaps taken. The terms are
 * a double-buffered snapshot. New ones are written to the buffer that is not in force, and the
 * version puts that buffer into force. A reader that finds the version changed may have read half
 * of each, and reads again. So no thread waits for a writer that was stopped, and a reader retries
 * at most once for each write.
 *
 * Why terms and taken may be read separately. taken is only a count, and terms only say how many
 * units have been added so far, in the same count. A change continues from the units added when it
 * was made. So a call that uses old terms, with a time that it read before them, takes units added
 * before the change. But suppose that the writer is stopped between reading the clock and
 * publishing. Other threads then count slots by the old terms that the change does not include. If
 * fewer units are added by the new terms, units that lapsed in those slots would become debt. So
 * the writer reads the clock again, and if a slot has begun, repeats the change from there: every
 * thread that has read the old terms read the clock before that.
 *
 * Why a refusal is right. Suppose that a thread reads the clock, is stopped, and continues in a
 * later slot. It finds in taken what other threads have counted since: units left from earlier
 * slots have lapsed, and by its old time nothing is left, although each slot had something. So a
 * thread that finds nothing looks a second time: at taken, then at the clock, then at the terms.
 * What was in taken was then counted at times no later than this, by terms no newer than these. If
 * nothing is left by these either, nothing was left when taken was read. If something is, the
 * thread tries again. In that case other threads have taken something meanwhile, or a slot has
 * begun, so this ends.
 *
 * Why no waiter is forgotten. Units are added over time, and a waiter knows when. They come sooner
 * if a quota is set, which is done under the lock by a thread that then serves; or if some are
 * returned, by a settlement or by a call that got units of some of its quotas only. A waiter (1)
 * adds itself to waiting, (2) looks at what is left. A thread that returns units (a) subtracts them
 * from taken, (b) adds RETURN to waiting, and serves if the value it added to has waiters in it.
 * (1) and (b) modify one word, so one is first. If it is (1), (b) finds the waiter. If it is (b),
 * (1) acquires what (b) released, so (2) sees taken without the units. All modifications of waiting
 * are read-modify-writes, so those in between do not end a release sequence, and each of them
 * changes the word: a compiler could drop an addition of zero, which would then order nothing.
 */
#ifndef WEIR_LIB_RATE_H
#define WEIR_LIB_RATE_H

#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/base/layout.h"
#include "lib/rate/accrual.h"
#include "lib/base/park.h"

/* Lines for totals; with more CPUs, some share a line. A power of two. */
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
	RATE_TAKEN, /* one for each quota */
	RATE_TOTALS = RATE_TAKEN + WEIR_QUOTAS_MAX,
};

struct tally {
	_Alignas(LINE) _Atomic uint64_t total[RATE_TOTALS];
};

enum seat_state { SEAT_FREE, SEAT_WAITING, SEAT_NOTIFYING, SEAT_GRANTED };

/* An entry in the queue. */
struct seat {
	struct weir_cost cost;
	weir_granted_fn *granted;
	void *arg;
	uint32_t stamp; /* of this use, so that a stale waiter is recognised */
	enum seat_state state;
	uint32_t next, prev; /* in the line, or in the free list */
	bool sleeps;         /* the waiter is a thread, parked here */
	bool watches;        /* this thread wakes when the first waiter can be served */
	struct park park;
};

struct line {
	uint32_t head, tail;
	uint32_t free;
};

struct weir_rate {
	_Alignas(LINE) _Atomic uint64_t taken[WEIR_QUOTAS_MAX];
	_Atomic uint64_t waiting; /* lower half: waiters; upper half: returns of units */

	_Alignas(LINE) _Atomic uint64_t version; /* lowest bit: the buffer in force */
	uint32_t quotas;
	uint32_t seats;
	const struct weir_clock *clock; /* NULL: CLOCK_MONOTONIC */
	void (*sooner)(void *arg);
	void *sooner_arg;
	uint64_t slot;
	uint64_t recovery;
	struct published_terms published[2];

	_Alignas(LINE) pthread_mutex_t lock; /* guards everything below */
	struct terms terms;
	struct weir_quota value[WEIR_QUOTAS_MAX]; /* as configured */
	weir_time lowered; /* when the pace was last lowered; valid while it is below 100 % */
	struct line line;

	struct tally tally[TALLIES];
	struct seat seat[];
};

/* One return of units, added to the upper half of waiting, where it wraps. */
#define RETURN (UINT64_C(1) << 32)

static inline uint32_t rate_waiting(const struct weir_rate *r)
{
	return (uint32_t)atomic_load_explicit(&r->waiting, memory_order_relaxed);
}

static inline weir_time rate_now(const struct weir_rate *r)
{
	return LIKELY(r->clock == NULL) ? clock_monotonic() : r->clock->now(r->clock);
}

/* Returns 0, or -EINVAL with a sentence in why. */
int rate_check(const struct weir_rate_config *config, struct weir_rate_config *complete, char *why,
	       size_t why_size);
int rate_check_quota(const struct weir_quota *q, unsigned index, char *why, size_t why_size);

/* Put the terms into force. The caller holds the lock. */
void rate_publish(struct weir_rate *r);

/*
 * Move the origin if it is far away, so that numbers stay small enough. The caller holds the lock.
 */
void rate_renew(struct weir_rate *r, weir_time now);

void rate_count(struct weir_rate *r, enum rate_total which, uint64_t count);

bool rate_is_cost(const struct weir_rate *r, const struct weir_cost *cost);

/* Take the cost, unless calls wait. */
bool rate_try(struct weir_rate *r, weir_time now, const struct weir_cost *cost);

/* Take the cost, even if calls wait. False: one of the quotas is used up, and nothing is taken. */
bool rate_admit(struct weir_rate *r, weir_time now, const struct weir_cost *cost);

/* When the call can begin if no other call takes anything. The caller holds the lock. */
weir_time rate_turn(struct weir_rate *r, const struct weir_cost *cost);

/* The queue of waiters. */
void line_init(struct weir_rate *r);

/* The first cost in the line; NULL: no call waits. The caller holds the lock. */
const struct weir_cost *line_first(const struct weir_rate *r);

/*
 * Called with the lock, which it releases: serve all whose turn it is, have a sleeping thread watch
 * for the next turn, and notify those served. wake: turns may come sooner than that thread
 * expects.
 */
void line_serve(struct weir_rate *r, weir_time now, bool wake);

#endif
