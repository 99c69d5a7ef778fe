/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_random.h - scenarios drawn at random from a grammar, so that no limit can be tuned to a
 * list.
 *
 * A scenario is a function of a seed and its number alone, the same on every machine. It is drawn
 * (scenario_random.c) and then written as a text like those in files (random_text.c), which
 * scenario_read.h reads.
 */
#ifndef SCENARIO_RANDOM_H
#define SCENARIO_RANDOM_H

#include "scenario.h"

/* Names are random-SEED-NUMBER: a seed from 0, and a number from 1, both to 4294967295. */
#define RANDOM_PREFIX "random-"

/* False if the name is not one of these. */
bool random_name(const char *name, uint32_t *seed, uint32_t *number);

/* The text of a scenario. Free it. */
char *random_text(uint32_t seed, uint32_t number);

/* What is drawn. Private to the two files. */

#define STRETCHES_MAX 4
#define LAW_SIZE      32

/* A phase that counts. */
struct stretch {
	double length;    /* seconds */
	double load[2];   /* at the beginning and at the end */
	unsigned workers; /* 0: unchanged */
	double slower;    /* factor on all work; 1: unchanged */
};

/* Durations are in seconds; 0: none. */
struct drawn {
	uint32_t seed, number;

	const char *discipline; /* fifo or shared */
	unsigned workers, queue;
	bool newest_first, kept;
	double second_half, contention, coherency;
	double work, network, pause_every, pause_length;
	char law[LAW_SIZE], law_after[LAW_SIZE]; /* of work: before and after the mean */
	double capacity; /* calls a second, about: for the lengths of phases and the number of clients */

	enum process process;
	const char *process_law; /* of on and off times */
	double batch, on, off, low, think;

	double deadline, timeout, backoff;
	unsigned retries;
	bool stops_work;

	const char *outcome; /* NULL: calls succeed, unless the scenario has other reasons */
	double part, after;  /* of calls that end so, after this long */

	unsigned limiters;

	unsigned count;
	double shortest, warm_up; /* lengths, of the shortest phase that there may be, and before */
	struct stretch stretches[STRETCHES_MAX];
};

void random_draw(struct drawn *drawn, uint32_t seed, uint32_t number);

#endif
