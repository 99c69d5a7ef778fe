/*
 * The queue: numbered slots in which calls wait for a permit. No threads in
 * here, and no sleep: a state machine that parking, polling and callbacks sit on.
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
	_Alignas(LINE) _Atomic uint64_t state; /* whose process:32 | stamp:29 | state:3 */
	_Atomic uint32_t granted;              /* the drainer's, before it grants */
	uint32_t inflight;                     /* the drainer's, before it grants */
	uint32_t cost;                         /* the waiter's, before it waits */
	_Atomic uint16_t part;                 /* the waiter's */
	uint8_t sleeps;                        /* the waiter's: 1: a thread, in the slot's park */
	uint8_t notifies;                      /* the waiter's: 1: it has a callback */
	weir_time since;                       /* the waiter's */
	_Atomic uint32_t next, prev;           /* the drainer's list */
	_Atomic uint32_t watches;              /* the waiter's: it sleeps for a short while only */
	struct park park;
};
_Static_assert(sizeof(struct slot) == LINE, "a slot is one line");

/* What to call: pointers of one process, hence not in the slot (lib/wait/callback.h). */
struct listener {
	weir_granted_fn *granted;
	void *arg;
	bool sleeps; /* it is a thread, in its slot's park */
};

/* Words of the news that one bit of the summary stands for: 64 of these are enough for all. */
#define NEWS_PART 16

struct queue {
	_Alignas(LINE) _Atomic uint64_t news; /* a summary: where slots have news */
	_Atomic uint64_t pending;             /* drains asked for and not yet done */
	_Atomic uint32_t open;                /* shadow mode: nobody waits */
};

/* Those who wait in one partition, oldest at the head. The drainer's. */
struct row {
	_Atomic uint32_t head, tail;
	uint32_t length;
	uint32_t stuck;           /* 1: at the partition's cap, hence not announced at the gate */
	weir_time standing_since; /* when the first of those now waiting came */
};

/* What never changes, but for open, which is how it begins. */
struct queue_config {
	uint32_t slots; /* 0: nobody can wait */
	uint32_t rows;
	uint32_t order; /* enum weir_order */
	uint32_t open;
	weir_dur stand;
};

/* A queue with its arrays, which lie elsewhere; and what is this process's own. */
struct queueing {
	struct queue_config config;
	uint32_t owner; /* this process's number (lib/base/layout.h) */
	struct queue *queue;
	struct slot *slots;
	struct row *rows;           /* one a partition, or one */
	_Atomic uint64_t *free;     /* slots that may be free */
	_Atomic uint64_t *fresh;    /* slots that have news for the drainer */
	struct callback *callbacks; /* this process's, one for each slot */
	struct lease *leases;       /* of the processes that share it; NULL: it is not shared */
	uint32_t lease_count;
	struct admission admission;
};

void queue_init(const struct queueing *q);

/*
 * Take a slot and stand in it; a permit may be there at once. False: the queue
 * is full.
 */
bool queue_enter(const struct queueing *q, weir_time now, const struct request *request,
		 struct listener listener, struct weir_wait *wait);

/* Take a slot for a permit that is there already; cost 0: let through. False: there is none. */
bool queue_enter_granted(const struct queueing *q, const struct request *request,
			 const struct permit *permit, struct listener listener,
			 struct weir_wait *wait);

enum queue_state {
	QUEUE_NONE,    /* no such waiter */
	QUEUE_WAITING, /* still */
	QUEUE_GRANTED, /* the permit is the caller's, and the slot is free again */
	QUEUE_GONE,    /* left without a permit */
};

/* What a waiter got, and as what. A cost of 0: no permit, but let through. */
struct waited {
	uint32_t inflight, cost;
	uint16_t part;
};

/* See whether the permit has come. *got is set but with QUEUE_NONE. */
enum queue_state queue_poll(const struct queueing *q, const struct weir_wait *wait,
			    struct waited *got);

/* Leave; unless the permit came first: then as queue_poll(). */
enum queue_state queue_leave(const struct queueing *q, weir_time now, const struct weir_wait *wait,
			     struct waited *got);

/* Hand out what the gate has. Called after anything that could have made room. */
void queue_drain(const struct queueing *q, weir_time now);

/*
 * Whether no slot is taken, not even by a waiter that was granted. Exact while no thread is in a
 * function of the queue, if it belongs to one process: then a slot is free if its bit says so.
 */
bool queue_is_empty(const struct queueing *q);

/* Tell waiters of this process whose permits came from other processes. False: there are none. */
bool queue_notify(const struct queueing *q);

/*
 * Waiters of a dead process leave; permits that they were granted go back. Whoever does this is
 * the only one to. Afterwards, drain the queue.
 */
void queue_reclaim(const struct queueing *q, uint32_t dead);

/*
 * After deaths, and what is below: bring the announcements of waiters to what they should be.
 * False: it could not be told, or somebody else is draining: try again some time.
 */
bool queue_recount(const struct queueing *q, weir_time now);

/* Go on with a drain that a dead process was at. */
void queue_recover(const struct queueing *q, uint32_t dead, weir_time now);

/* Permits of partition part that slots hold, their waiters having yet to come for them. */
uint32_t queue_granted(const struct queueing *q, uint16_t part);

/* Changes whenever any slot has changed. */
uint64_t queue_digest(const struct queueing *q);

/* The waiter's thread sleeps for a short while only, and drains then; or no longer does. */
void queue_watch(const struct queueing *q, const struct weir_wait *wait, bool watches);

/* Where the waiter's thread may sleep. */
struct park *queue_park(const struct queueing *q, const struct weir_wait *wait);

#endif
