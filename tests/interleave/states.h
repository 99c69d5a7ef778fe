/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states that were visited, as a set of 64-bit digests. Two states with one digest would be
 * taken for the same one: with ten million states the chance is 3 in a million.
 */
#ifndef WEIR_TESTS_INTERLEAVE_STATES_H
#define WEIR_TESTS_INTERLEAVE_STATES_H

#include <stdbool.h>
#include <stdint.h>

/* Add a digest. False: it was there already. */
bool states_add(uint64_t digest);
uint64_t states_count(void);
void states_reset(void);

/* A digest of what a digest stood for, and one thing more. */
static inline uint64_t digest_mix(uint64_t digest, uint64_t more)
{
	uint64_t x = (digest ^ more) * UINT64_C(0x9e3779b97f4a7c15);

	x ^= x >> 32;
	x = (x + more) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

#endif
