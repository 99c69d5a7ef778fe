/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers for the model tests, from a seed that a failure prints.
 */
#ifndef WEIR_TESTS_MODEL_RANDOM_H
#define WEIR_TESTS_MODEL_RANDOM_H

#include <stdint.h>

static inline uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline uint32_t below(uint64_t *state, uint32_t end)
{
	return (uint32_t)(draw(state) % end);
}

#endif
