/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a fleet in simulated time, and the net between them and their store. Requests are lost,
 * late, carried out twice, or carried out without an answer; members have clocks of their own, which
 * are wrong; a member may be stopped, killed, or cut off from the store. The store may be gone for a
 * while, or forget everything.
 */
#ifndef WEIR_TESTS_FLEET_FAULTY_NET_H
#define WEIR_TESTS_FLEET_FAULTY_NET_H

#include <stdbool.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "late_commit.h"

#define LEASE   (6 * WEIR_S)
#define REFRESH (2 * WEIR_S)
#define TICK    (20 * WEIR_MS)
#define MINUTE  (60 * WEIR_S)
#define FASTEST 9000 /* error of clocks in millionths; leases allow for 10,000 */

#define NODES_MAX        8
#define LATE_COMMITS_MAX 64

struct net;

/* A member, and its connection to the store. */
struct node {
	struct weir_store store; /* first */
	struct weir_clock clock;
	struct net *net;
	struct weir_fleet *fleet; /* NULL: not present */
	weir_time offset, next;   /* of its clock; of its next step */
	int64_t millionths;       /* error of its clock */
	bool busy;                /* it is in the middle of a call, as it may wait for the store */
	bool dead;                /* it was killed, and is removed when it is not busy */
	bool leaving;             /* it is being closed: its answers do not count */
	weir_time stopped;        /* end of its stop; 0: not stopped */
	weir_time cut;            /* end of its separation from the store */
	weir_time back;           /* time of its return */
};

/* What a test does with its members. */
struct net_user {
	void (*tick)(struct net *net);        /* TICK has passed */
	weir_time (*step)(struct node *node); /* it runs; returns when again, by its clock */
	/*
	 * Rows may have changed: by a commit of a node (fence: the version that it has checked first),
	 * or, NULL, because time has passed. May be NULL.
	 */
	void (*changed)(struct net *net, const struct node *by, uint64_t fence);
};

struct net {
	struct weir_clock clock; /* first: the store's clock */
	const struct net_user *user;
	weir_time now, tick; /* tick: the next */
	uint64_t chance;
	struct weir_store *store;
	/* Added to versions: those of a store that has forgotten are above all earlier ones. */
	uint64_t base;
	weir_time proven; /* since when the store has lost nothing; 0: always */
	weir_time down;   /* end of the store's outage */
	unsigned losses;  /* per thousand requests */
	struct node *nodes[NODES_MAX];
	unsigned node_count;
	struct {
		weir_time due;
		const struct node *from;
		struct late_commit *commit; /* NULL: free */
	} late[LATE_COMMITS_MAX];
	uint64_t commits, unanswered, late_count; /* statistics */
};

static inline uint64_t below(struct net *net, uint64_t most)
{
	return draw(&net->chance) % most;
}

/* With an empty store, at some time; and the end of it. */
void net_begin(struct net *net, const struct net_user *user, uint64_t seed);
void net_end(struct net *net);

/* The store loses everything. */
void net_forget(struct net *net);

/* Visit all rows, with the versions that nodes see. */
void net_look(struct net *net, weir_store_row_fn *row, void *arg);

/* Let time pass; nodes that wait for the store are in the middle of a call. */
void net_pass(struct net *net, weir_time until);

/* Commits that are under way are lost. */
void net_clear(struct net *net);

/* A connection alone: its clock is the store's, and it takes no steps. */
void node_connect(struct net *net, struct node *node);

/* Open a fleet over it, with a clock that is wrong by as much. Its step is due at once. */
void node_open(struct net *net, struct node *node, int64_t millionths);
void node_close(struct node *node);

/* Whether it can take a step, once it is not busy. */
bool node_runs(const struct node *node);

/* A stop is over: its threads run in any order. */
void node_resume(struct node *node);

#endif
