/*
 * subjects.h - what is measured.
 *
 * A subject does one thing over and over, in a loop of its own, so that the compiler sees
 * what it would see in a program: no call through a pointer inside the loop. What the one
 * thing is, a pair of acquire and release or something else, its line of help says.
 */
#ifndef SUBJECTS_H
#define SUBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/limit.h>

#define LINE         128 /* bytes that two processors should not share */
#define SUBJECT_NAME 32  /* bytes of a name at most, with the zero */

/* Each thread's own. */
struct worker {
	_Alignas(LINE) _Atomic uint64_t begun;
	_Alignas(LINE) _Atomic uint64_t ended;
	uint64_t latency_sum;
	unsigned number; /* of this thread, from 0 */
	double ns;       /* of what the loop timed itself; as long as it is 0, the whole loop */
};

enum {
	REFUSES = 1u << 0,    /* every time, on purpose; all others never do */
	ALONE = 1u << 1,      /* in one thread only */
	TOGETHER = 1u << 2,   /* in two threads at least */
	ALLOCATES = 1u << 3,  /* is allowed to */
	EACH_LIMIT = 1u << 4, /* there is one for each limit: the limit's name comes after a dash */
};

struct subject {
	const char *group;
	char name[SUBJECT_NAME];
	const char *about;
	/* One for all threads, of which there are so many; exits if it cannot. Both may be NULL. */
	void *(*make)(const struct subject *self, unsigned threads);
	void (*unmake)(void *shared);
	/* So many times; how many of them were refused, or otherwise not as they should be. */
	uint64_t (*loop)(void *shared, struct worker *worker, uint64_t times);
	unsigned flags;
	unsigned slow;      /* it takes some hundred times a pair: do so many times fewer; 0 is 1 */
	const void *detail; /* what its own make() wants to know */
	const struct weir_limit_ops *limit; /* of EACH_LIMIT; else NULL */
};

/* All of them, limits and what there is for each limit included. */
struct subjects {
	struct subject *all;
	unsigned count;
};

/* The first is the floor. Exits if there is no memory. */
struct subjects subjects_make(void);
void subjects_free(struct subjects *subjects);

/* Whether a subject's name or group matches a pattern, as file names do; NULL: all do. */
bool subject_matches(const struct subject *subject, const char *pattern);

/* Whether it can be measured in so many threads. */
bool subject_fits(const struct subject *subject, unsigned threads);

/* For those who list them: a table of count, copied. */
void subjects_add(struct subjects *subjects, const struct subject *table, unsigned count);

/* What each file has. */
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
