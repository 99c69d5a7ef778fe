/*
 * subjects.h - what is measured.
 *
 * A subject does an admission and its end, a pair, in a loop of its own, so that
 * the compiler sees what it would see in a program: no call through a pointer
 * inside the loop.
 */
#ifndef SUBJECTS_H
#define SUBJECTS_H

#include <stdint.h>

#define LINE 128 /* bytes that two processors should not share */

/* Each thread's own. */
struct worker {
	_Alignas(LINE) _Atomic uint64_t begun;
	_Alignas(LINE) _Atomic uint64_t ended;
	uint64_t latency_sum;
};

struct subject {
	const char *name, *about;
	/* One for all threads; exits if it cannot. Both may be NULL. */
	void *(*make)(void);
	void (*unmake)(void *shared);
	/* So many pairs; how many of them were refused. */
	uint64_t (*loop)(void *shared, struct worker *worker, uint64_t pairs);
	int refuses;        /* all of them, on purpose */
	const char *beside; /* the subject to compare it with, beside the floor; or NULL */
};

/* By index from 0, NULL past the last. The first is the floor. */
const struct subject *subject_at(unsigned index);

#endif
