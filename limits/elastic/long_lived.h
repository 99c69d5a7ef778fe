/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * long_lived.h - how many permits belong to calls that take far longer than most.
 *
 * Streams that the program did not detach, long polls, calls that hang: a few hundred of them hide
 * the few ordinary calls beside them, as the total in flight then hardly varies. At a mark in time
 * a known number is in flight. Each call that ends shows when it began, and so whether it was in
 * flight at the mark. The calls of the mark that have not ended some latencies later are
 * long-lived.
 */
#ifndef WEIR_LIMITS_LONG_LIVED_H
#define WEIR_LIMITS_LONG_LIVED_H

#include <stdint.h>

#include <weir/limit.h>

/* Marks that are open at once. */
#define LONG_LIVED_MARKS 4

/* A moment, and what has since happened to the calls that were in flight then. */
struct mark {
	double at;       /* nanoseconds; 0: not set */
	double inflight; /* permits in flight at the mark */
	double ended;    /* of these, ended as samples, cancelled or failed */
	double seen;     /* long_lived.seen at the mark */
};

/* All zero at first. */
struct long_lived {
	struct mark mark[LONG_LIVED_MARKS];
	uint32_t oldest; /* modulo LONG_LIVED_MARKS: the mark to count at next */
	float each;      /* calls that a sample stands for now */
	double latest;   /* when the last mark was set, nanoseconds */
	double seen;     /* calls so far that samples stand for */
	double latency;  /* smoothed, nanoseconds */
	double counted;  /* smoothed count of permits */
	double permits;  /* the result, whole; 0: too few to matter */
};

/* Take in one window. */
void long_lived_update(struct long_lived *l, const struct weir_window *w);

#endif
