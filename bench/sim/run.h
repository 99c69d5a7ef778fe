/*
 * run.h - one limiter through one scenario.
 *
 *	source -> limiter -> server
 *
 * The limiter is the library's, driven through its _at functions: what is
 * simulated is the code that ships, and only the world around it is a model.
 */
#ifndef RUN_H
#define RUN_H

#include "scenario.h"
#include "tally.h"

#include <stdio.h>
#include <weir/weir.h>

struct run_setup {
	const struct scenario *scenario;
	const struct weir_config *limiter; /* the seed in it is not used */
	uint64_t seed;

	/* Told when a phase begins, before its first call. Optional. */
	void (*phase_begins)(void *arg, struct weir_limiter *limiter, unsigned phase);
	void *arg;

	FILE *series; /* a line of TSV every tenth of a second; NULL: none */
};

struct run_result {
	struct tally phases[PHASES_MAX];
	uint64_t hash;    /* over every arrival's time, limit and fate: equal if the runs were */
	uint64_t windows; /* that the limit saw */
	uint64_t samples; /* calls that ended, served or given up, in the end */
	uint64_t above;   /* admissions above the limit: there are none */
	uint32_t leaked;  /* permits still out when all was over: none */
};

/* 0, or a negative errno if the limiter cannot be made. */
int run(const struct run_setup *setup, struct run_result *result);

#endif
