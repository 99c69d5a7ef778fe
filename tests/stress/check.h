/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the stress programs: a check that stays in every build, cheap random numbers, threads.
 * They use no test framework, because they run under ThreadSanitizer.
 */
#ifndef WEIR_TESTS_STRESS_CHECK_H
#define WEIR_TESTS_STRESS_CHECK_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* xorshift64: good enough to choose among alternatives. */
static inline uint64_t draw(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

#define THREADS_MAX 128

struct crew {
	pthread_t thread[THREADS_MAX];
	unsigned size;
};

static inline void crew_start(struct crew *crew, unsigned size, void *(*work)(void *), char *args,
			      size_t arg_size)
{
	CHECK(size <= THREADS_MAX);
	crew->size = size;
	for (unsigned i = 0; i < size; i++)
		CHECK(pthread_create(&crew->thread[i], NULL, work, args + i * arg_size) == 0);
}

static inline void crew_join(const struct crew *crew)
{
	for (unsigned i = 0; i < crew->size; i++)
		CHECK(pthread_join(crew->thread[i], NULL) == 0);
}

#endif
