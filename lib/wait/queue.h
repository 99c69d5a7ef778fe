/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue: numbered slots in which calls wait for a permit. It is a state machine that neither
 * creates threads nor sleeps; parking, polling and callbacks are built on it.
 */
#ifndef WEIR_LIB_QUEUE_H
#define WEIR_LIB_QUEUE_H

#include <stdbool.h>

#include <weir/wait.h>

#include "lib/admission/admission.h"
#include "lib/wait/callback.h"
#include "lib/base/park.h"

#define QUEUE_MAX GATE_WAITERS_MAX

struct slot {
	_Alignas(LINE) _Atomic uint64_t state; /* process:32 | stamp:29 | state:3 */
	_Atomic uint32_t granted;              /* permits, 0: let through; the drainer's */
	uint32_t inflight;                     /* the drainer's, before it grants */
	uint32_t cost;                         /* the waiter's, before it waits */
	_Atomic uint16_t part;                 /* the waiter's */
	uint8_t sleeps;                        /* the waiter's: 1: a thread sleeps in park */
	uint8_t notifies;                      /* the waiter's: 1: it has a callback */
	weir_time since;                       /* the waiter's */
	_Atomic uint32_t next, prev;           /* the drainer's list */
	_Atomic uint32_t watches;              /* the waiter's: 1: it wakes up in time to drain */
	struct park park;
};
_Static_assert(sizeof(struct slot) == LINE, "a slot is one line");

/* How to notify a waiter: pointers of one process, so not in the slot (lib/wait/callback.h). */
struct listener {
	weir_granted_fn *granted;
	void *arg;
	bool sleeps; /* it is a thread that sleeps in its slot's park */
};

/* Words of fresh that one bit of news stands for: 64 bits then cover QUEUE_MAX slots. */
#define NEWS_PART 16

struct queue {
	/* A summary of fresh: bit i stands for NEWS_PART words. */
	_Alignas(LINE) _Atomic uint64_t news;
	_Atomic uint64_t pending; /* the drain's combiner (lib/base/combiner.h) */
	_Atomic uint32_t open;    /* 1: shadow mode: no call waits */
};

/* The waiters of one partition, oldest at the head. The drainer's. */
struct row {
	_Atomic uint32_t head, tail;
	uint32_t length;
	uint32_t stuck;           /* 1: at the partition's cap, so not announced at the gate */
	weir_time standing_since; /* when the row last became non-empty */
};

/* Constant. */
struct queue_config {
	uint32_t slots; /* 0: no call can wait */
	uint32_t rows;
	uint32_t order; /* enum weir_order */
	uint32_t open;  /* initial value of queue.open */
	weir_dur stand; /* weir_config.queue_stand */
};

/* A process's view of a queue: pointers to its arrays, and what is private to the process. */
struct queueing {
	struct queue_config config;
	uint32_t owner; /* this process's number (lib/base/layout.h) */
	struct queue *queue;
	struct slot *slots;
	struct row *rows;           /* one for each partition; one if there are none */
	_Atomic uint64_t *free;     /* slots that may be free */
	_Atomic uint64_t *fresh;    /* slots that the drainer must examine */
	struct callback *callbacks; /* this process's, one for each slot */
	struct lease *leases; /* of the processes that share the limiter; NULL: it is not shared */
	uint32_t lease_count;
	const struct admission *admission; /* the limiter's */
};

void queue_init(const struct queueing *q);

/*
 * Take a slot and wait in it. A permit may be granted at once. False: the queue is full.
 */
bool queue_enter(const struct queueing *q, weir_time now, const struct request *request,
		 struct listener listener, struct weir_wait *wait);

/* Take a slot for a permit already reserved (cost 0: let through). False: the queue is full. */
bool queue_enter_granted(const struct queueing *q, const struct request *request,
			 const struct permit *permit, struct listener listener,
			 struct weir_wait *wait);

enum queue_state {
	QUEUE_NONE,    /* no such waiter */
	QUEUE_WAITING, /* still waiting */
	QUEUE_GRANTED, /* the caller owns the permit now; the slot is free again */
	QUEUE_GONE,    /* left without a permit */
};

/* What a waiter was granted. A cost of 0: let through without a permit. */
struct waited {
	uint32_t inflight, cost;
	uint16_t part;
};

/* See whether the permit has been granted. *got is set except with QUEUE_NONE. */
enum queue_state queue_poll(const struct queueing *q, const struct weir_wait *wait,
			    struct waited *got);

/* Leave the queue. If the permit was granted first, the same as queue_poll(). */
enum queue_state queue_leave(const struct queueing *q, weir_time now, const struct weir_wait *wait,
			     struct waited *got);

/* Hand out free permits. Called after anything that may have made room. */
void queue_drain(const struct queueing *q, weir_time now);

/*
 * Whether no slot is taken, not even by a waiter that was granted a permit. If the queue belongs to
 * one process, the answer is exact while no thread is in a function of the queue: a slot is then
 * free exactly if its bit is set.
 */
bool queue_is_empty(const struct queueing *q);

/* Notify waiters of this process that another process granted permits. False: there are none. */
bool queue_notify(const struct queueing *q);

/*
 * Remove the waiters of a dead process and return the permits that they were granted. Only one
 * thread may do so at a time. Afterwards, drain the queue.
 */
void queue_reclaim(const struct queueing *q, uint32_t dead);

/*
 * Correct the announcements of waiters after queue_reclaim() or queue_recover(). False: the right
 * number is not known now, or another thread is draining: try again later.
 */
bool queue_recount(const struct queueing *q, weir_time now);

/* Continue a drain that a dead process left unfinished. */
void queue_recover(const struct queueing *q, uint32_t dead, weir_time now);

/* Permits of partition part that were granted and that waiters have not taken yet. */
uint32_t queue_granted(const struct queueing *q, uint16_t part);

/* A digest of all slots' states, to detect changes. */
uint64_t queue_digest(const struct queueing *q);

/* Set whether the waiter's thread wakes up in time to drain; see set_watch() in grant.c. */
void queue_watch(const struct queueing *q, const struct weir_wait *wait, bool watches);

/* The park in which the waiter's thread may sleep. */
struct park *queue_park(const struct queueing *q, const struct weir_wait *wait);

#endif
