/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subjects.h - what is measured.
 *
 * A subject repeats one operation in a loop of its own, so that the compiler sees what it would see
 * in a program: no call through a pointer inside the loop. Its line of help says what the operation
 * is, such as a pair of acquire and release.
 */
#ifndef SUBJECTS_H
#define SUBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/limit.h>

#define LINE         128 /* bytes that two processors should not share: two cache lines */
#define SUBJECT_NAME 32  /* most bytes of a name, with the terminating zero */

/* Private to a thread. */
struct worker {
	_Alignas(LINE) _Atomic uint64_t begun;
	_Alignas(LINE) _Atomic uint64_t ended;
	uint64_t latency_sum;
	unsigned number; /* of this thread, from 0 */
	double ns;       /* timed by the loop itself; 0: the whole loop is timed */
};

enum {
	REFUSES = 1u << 0,    /* every iteration, on purpose; others never refuse */
	ALONE = 1u << 1,      /* with one thread only */
	TOGETHER = 1u << 2,   /* with two threads at least */
	ALLOCATES = 1u << 3,  /* may allocate in its loop */
	EACH_LIMIT = 1u << 4, /* one for each limit, with its name after a dash */
};

struct subject {
	const char *group;
	char name[SUBJECT_NAME];
	const char *about;
	/* Create and free what all threads share; exits on failure. Both may be NULL. */
	void *(*make)(const struct subject *self, unsigned threads);
	void (*unmake)(void *shared);
	/* Repeat the operation. Returns the number of refusals and other unexpected results. */
	uint64_t (*loop)(void *shared, struct worker *worker, uint64_t times);
	unsigned flags;
	unsigned slow;      /* divisor of the iterations, for slow operations; 0 is 1 */
	const void *detail; /* passed to make() by its own file */
	const struct weir_limit_ops *limit; /* of EACH_LIMIT; else NULL */
};

/* All subjects, including those for each limit. */
struct subjects {
	struct subject *all;
	unsigned count;
};

/* The first subject is the floor. Exits if memory runs out. */
struct subjects subjects_make(void);
void subjects_free(struct subjects *subjects);

/* Whether a subject's name or group matches a glob pattern; NULL matches all. */
bool subject_matches(const struct subject *subject, const char *pattern);

/* Whether the subject can be measured with that number of threads. */
bool subject_fits(const struct subject *subject, unsigned threads);

/* Append a table of count subjects, copied. */
void subjects_add(struct subjects *subjects, const struct subject *table, unsigned count);

/* The subjects of each file. */
void baselines_list(struct subjects *subjects);
void limits_list(struct subjects *subjects);
void features_list(struct subjects *subjects);
void halves_list(struct subjects *subjects);
void refusals_list(struct subjects *subjects);
void waiting_list(struct subjects *subjects);
void registry_list(struct subjects *subjects);
void numbers_list(struct subjects *subjects);
void executor_list(struct subjects *subjects);
void windows_list(struct subjects *subjects);
void shared_list(struct subjects *subjects);
void rate_list(struct subjects *subjects);

#define SUBJECTS_ADD(subjects, table)                                                              \
	subjects_add((subjects), (table), sizeof(table) / sizeof((table)[0]))

#endif
