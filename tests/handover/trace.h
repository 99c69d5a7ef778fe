/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace of partitions: each change of their rows in the store, and of what members own, a line
 * each. check.c reads it.
 *
 * TIME row PARTITION OWNER MADE CAUSE          OWNER "-": the row is gone
 * TIME request PARTITION MEMBER MADE CAUSE     the same
 * TIME worker MEMBER MADE CAUSE                MADE 0: the row is gone
 * TIME checkpoint PARTITION SEQUENCE VERSION FENCE CAUSE
 * TIME rewound PARTITION FENCE VERSION CAUSE   VERSION 0: the row is gone
 * TIME part PARTITION PROCESS MEMBER STATE FENCE FACT...
 * TIME closed PROCESS MEMBER                   it takes part no more; or: dead
 *
 * MEMBER and OWNER are numbers of members, in hexadecimal. CAUSE is the process that has committed,
 * "operator" for the program that sets checkpoints back, "expiry", or "lost" when the store has lost
 * everything. FENCE of a checkpoint is what its commit has checked, 0 that there is no owner.
 */
#ifndef WEIR_TESTS_TRACE_H
#define WEIR_TESTS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/work.h>

#define TRACE_PARTITIONS 16
#define TRACE_WORKERS    64

enum part_state { PART_NONE, PART_OWNED, PART_ASKED, PART_LEAVING, PART_OVER };

/* What was printed last of a process. */
struct trace_member {
	uint64_t id;
	enum part_state states[TRACE_PARTITIONS];
	uint64_t fences[TRACE_PARTITIONS];
	uint64_t given[TRACE_PARTITIONS];
};

struct trace_line {
	uint64_t member, made, version, sequence, fence;
};

struct trace_rows {
	struct trace_line rows[TRACE_PARTITIONS], requests[TRACE_PARTITIONS],
		checkpoints[TRACE_PARTITIONS], rewound[TRACE_PARTITIONS];
	struct trace_line workers[TRACE_WORKERS];
	unsigned count; /* of workers */
};

struct trace {
	bool on;
	struct trace_rows last, now;
};

/* work: NULL for a process that owns nothing, because of why. now: by the clock of the process. */
void trace_member(const struct trace *trace, weir_time time, unsigned process,
		  struct trace_member *last, const struct weir_work *work, const char *why,
		  weir_time now);

/* Note the rows: begin, then each row, then end, which prints what has changed. */
void trace_begin(struct trace *trace);
bool trace_row(void *trace, const struct weir_store_row *row);
void trace_end(struct trace *trace, weir_time time, const char *cause, uint64_t fence);

#endif
