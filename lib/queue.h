/*
 * The queue: numbered slots in which calls wait for a permit. No threads in
 * here, and no sleep: a state machine that parking, polling and callbacks sit on.
 */
#ifndef WEIR_LIB_QUEUE_H
#define WEIR_LIB_QUEUE_H

#include <stdbool.h>

#include <weir/wait.h>

#include "lib/admission.h"
#include "lib/park.h"

#define QUEUE_MAX GATE_WAITERS_MAX

struct slot {
	_Alignas(LINE) _Atomic uint32_t state; /* stamp:29 | state:3 */
	uint32_t inflight, granted;            /* the drainer's, before it grants */
	uint32_t cost;                         /* the waiter's, before it pushes */
	uint16_t part;                         /* the waiter's */
	weir_time since;                       /* the waiter's */
	uint32_t inbox_next, gone_next;        /* the pusher's, until the drainer takes the list */
	uint32_t next, prev;                   /* the drainer's list */
	_Atomic uint32_t watches;              /* the waiter's: it sleeps for a short while only */
	struct park park;
};
_Static_assert(sizeof(struct slot) == LINE, "a slot is one line");

/* Whom to tell. Pointers of one process, hence not in the slot. */
struct listener {
	weir_granted_fn *granted;
	void *arg;
	bool sleeps; /* it is a thread, in its slot's park */
};

struct queue {
	_Alignas(LINE) _Atomic uint32_t inbox; /* slots pushed since the last drain, newest first */
	_Atomic uint32_t gone;                 /* slots abandoned since the last drain */
	_Atomic uint32_t pending;              /* drains asked for and not yet done */
	_Atomic uint32_t open;                 /* shadow mode: nobody waits */

	_Alignas(LINE) uint32_t slots; /* never changes */
	uint32_t rows;                 /* never changes */
	uint32_t order;                /* never changes */
	weir_dur stand;                /* never changes */
};

/* Those who wait in one partition, oldest at the head. The drainer's. */
struct row {
	uint32_t head, tail, length;
	bool stuck;               /* at the partition's cap, hence not announced at the gate */
	bool tried;               /* and found no room, in this round */
	weir_time standing_since; /* when the first of those now waiting came */
};

/* A queue with its arrays, which lie elsewhere in the same memory. */
struct queueing {
	struct queue *queue;
	struct slot *slots;
	struct row *rows; /* one a partition, or one */
	_Atomic uint64_t *free;
	struct listener *listeners;
	struct admission admission;
};

struct queue_config {
	uint32_t slots; /* 0: nobody can wait */
	uint32_t rows;
	enum weir_order order;
	weir_dur stand;
	bool open;
};

void queue_init(const struct queueing *q, const struct queue_config *config);

/*
 * Take a slot and stand in it; a permit may be there at once. False: the queue
 * is full.
 */
bool queue_enter(const struct queueing *q, weir_time now, const struct demand *demand,
		 struct listener listener, struct weir_wait *wait);

/* Take a slot for a permit that is there already; cost 0: let through. False: there is none. */
bool queue_place(const struct queueing *q, const struct demand *demand, const struct permit *permit,
		 struct listener listener, struct weir_wait *wait);

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

/* The waiter's thread sleeps for a short while only, and drains then; or no longer does. */
void queue_watch(const struct queueing *q, const struct weir_wait *wait, bool watches);

/* Where the waiter's thread may sleep. */
struct park *queue_park(const struct queueing *q, const struct weir_wait *wait);

#endif
