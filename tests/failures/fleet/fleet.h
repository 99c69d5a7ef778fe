/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.h - what the cases of libweir-fleet have in common: a store of the kind that is tested, and
 * a fleet over it that has one share. Each file has the cases of one part.
 */
#ifndef WEIR_TESTS_FAILURES_FLEET_H
#define WEIR_TESTS_FAILURES_FLEET_H

#include <string.h>

#include <weir/fleet.h>
#include <weir/store.h>

#include "../cases.h"

#define CAPACITY 100

#define COUNT(cases) (sizeof(cases) / sizeof((cases)[0]))

/* What a server's client library needs: without it, there is no answer, or no memory. */
#define CLIENT                                                                                     \
	(FAULT_BIT(FAULT_MEMORY) | FAULT_BIT(FAULT_OPEN) | FAULT_BIT(FAULT_READ) |                 \
	 FAULT_BIT(FAULT_WRITE) | FAULT_BIT(FAULT_STAT) | FAULT_BIT(FAULT_EVENT) |                 \
	 FAULT_BIT(FAULT_RANDOM) | FAULT_BIT(FAULT_SOCKET) | FAULT_BIT(FAULT_CONNECT) |            \
	 FAULT_BIT(FAULT_SEND) | FAULT_BIT(FAULT_RECEIVE))

/* Further documented results. */
/* clang-format off */
#define UNANSWERED {CLIENT, -EIO}
#define REPEATED   {CLIENT, 0} /* or not needed */
/* The file of a store in shared memory has no room, or cannot be examined. */
#define NO_ROOM    {FAULT_BIT(FAULT_RESERVE), -ENOSPC}
#define UNEXAMINED {FAULT_BIT(FAULT_STAT), -EIO}
/* Only weir_fleet_error() tells. */
#define NOT_TOLD   {FAULT_BIT(FAULT_STAT) | FAULT_BIT(FAULT_MEMORY), 0}
#define UNROUNDED  {FAULT_BIT(FAULT_MEMORY), 0}
#define NO_RANDOM  {FAULT_BIT(FAULT_RANDOM), -EIO}
/* clang-format on */

struct failure_table {
	struct failure_case *cases;
	size_t count;
};

/* Of all stores; of those in shared memory; the others are of stores without a server. */
extern const struct failure_table store_failures, existing_store_failures;
extern const struct failure_table share_failures, limit_failures, region_failures, work_failures,
	batcher_failures, metrics_failures;

/* The kind of store, and whether it has a server. */
extern const char *kind;
extern bool remote;

/* What the cases work on; one at a time. NULL: not made. */
extern char address[128], why[256];
extern struct weir_store_config config;
extern struct weir_store *store;
extern struct weir_fleet *fleet;
extern struct weir_share *share;

/* Check that `why` has a sentence. */
void is_explained(void);

/* Each store is a new one: its name, it, and its end. */
void new_name(void);
int open_store(void);
void begin_store(void);
void end_store(void);

/* A store that cannot have forgotten a lease. */
void begin_trusted(void);

/* A fleet over it, and its share of the limit named limit. */
struct weir_fleet_config fleet_config(void);
int open_fleet(void);
int join(void);
int refresh(void);
void begin_fleet(void);
void begin_share(void);
void begin_with_units(void);
void end_fleet(void);

/* After a failed refresh. */
void has_sentence(void);
/* The whole limit, after two refreshes at most. */
void has_units(void);

/* Partitions of the work named work. */
int open_work(void);
void end_work(void);

#endif
