/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a fleet in simulated time, and the store between them, whose requests suffer faults.
 */
#ifndef WEIR_TESTS_FLEET_FAULTS_SIMULATED_H
#define WEIR_TESTS_FLEET_FAULTS_SIMULATED_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/limits.h>
#include <weir/share_of_rate.h>

#include "../stress/check.h"

#define MEMBERS  8
#define CAPACITY 500
#define RESERVED 10
#define LEASE    (6 * WEIR_S)
#define REFRESH  (2 * WEIR_S)
#define TIMEOUT  (500 * WEIR_MS)
#define TICK     (20 * WEIR_MS)
#define SLOT     (100 * WEIR_MS)
#define HOUR     (3600 * WEIR_S)
#define MINUTE   (60 * WEIR_S)
#define CALL_MAX (500 * WEIR_MS)
#define FASTEST  9000 /* error of clocks in millionths; leases allow for 10,000 */

#define SECOND_TICKS  (WEIR_S / TICK)
#define HISTORY_TICKS ((LEASE + LEASE / 50 + 2 * WEIR_S) / TICK)
#define CALM_AGAIN    (15 * LEASE) /* until the final state is reached: throttling ends in steps */
#define PARCELS       64
#define CALLS         (2 * CAPACITY)

struct sim;

struct member {
	struct weir_store store; /* first */
	struct weir_clock clock;
	struct sim *sim;
	struct weir_fleet *fleet; /* NULL: not present */
	struct weir_share *share;
	struct weir_rate *rate;
	struct weir_limiter *limiter;
	struct weir_share_rate rate_link;
	struct weir_share_limiter limiter_link;
	void (*apply)(void *arg, uint64_t units); /* of the link, like the next two */
	uint64_t (*wanted)(void *arg);
	void *arg;
	uint64_t applied;
	weir_time offset, next;
	int64_t millionths;
	bool busy;             /* its thread is waiting for the store */
	bool dead;             /* it was killed, and is removed when it is not busy */
	bool leaving;          /* it sends nothing any more */
	weir_time stopped;     /* end of its stop; 0: not stopped */
	weir_time cut;         /* end of its separation from the store */
	weir_time back;        /* time of its return */
	weir_time excused;     /* until then it may have more calls than its share */
	uint64_t units, wants; /* units as last seen; wants per second */
	double backlog;        /* fractions of calls that it still has to send */
	struct {
		struct weir_token token;
		weir_time end; /* 0: none */
	} calls[CALLS];
	unsigned inflight;
};

#define PARCEL_ROWS (MEMBERS * 2) /* an allocator writes a row for each member, and one for all */

/* A commit that arrives later. */
struct parcel {
	weir_time due; /* 0: none */
	uint64_t session;
	struct weir_store_check checks[PARCEL_ROWS];
	struct weir_store_write writes[PARCEL_ROWS];
	char keys[2 * PARCEL_ROWS][WEIR_STORE_KEY_MAX + 1];
	char values[PARCEL_ROWS][4096];
	size_t check_count, write_count;
};

struct sim {
	struct weir_clock clock; /* first: the store's clock */
	weir_time now, tick;
	bool calls;     /* calls in flight are shared, not a rate */
	bool allocated; /* the limit has an allocator */
	uint64_t chance;
	struct weir_store *store;
	/* Added to versions: those of a store that has forgotten are above all earlier ones. */
	uint64_t base;
	weir_time proven; /* since when the store has lost nothing; 0: always */
	weir_time down;   /* end of the store's outage */
	unsigned losses;  /* per thousand requests */
	weir_dur calm;    /* mean time between faults */
	uint64_t demand;  /* of a member at most, per second: more than there is, or less */
	struct member members[MEMBERS];
	struct parcel parcels[PARCELS];

	uint64_t capacity;
	uint64_t capacities[HISTORY_TICKS], admitted[SECOND_TICKS], changes[SECOND_TICKS + 10];
	uint64_t admitted_now, changed_now;
	unsigned long ticks;

	/* Statistics. */
	uint64_t all, most, worst, allowed;
	uint64_t commits, unanswered, late, stops, deaths, cuts, downs, losses_of_all,
		capacity_changes;
};

static inline uint64_t below(struct sim *s, uint64_t most)
{
	return draw(&s->chance) % most;
}

/* Let time pass; members that wait for the store are in the middle of a call. */
void pass(struct sim *s, weir_time until);

/* The clocks of the store and of a member. */
weir_time store_time(const struct weir_clock *clock);
weir_time member_time(const struct weir_clock *clock);

/* Convert a time of the member's clock, rounded up. */
weir_time world_time(const struct member *m, weir_time there);

/* A member's connection to the store. */
extern const struct weir_store_ops net;

void open_store(struct sim *s);

/* The commit that arrives next, or NULL; and its arrival. */
struct parcel *next_parcel(struct sim *s);
void deliver(struct sim *s, struct parcel *p);

#endif
