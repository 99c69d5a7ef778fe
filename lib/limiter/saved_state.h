/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The saved state, byte by byte:
 *
 *    head    type, limiter, and what does not depend on the algorithm
 *    state   head.state_size bytes: the algorithm's
 *    check   8 bytes: saved_hash() over everything before
 *
 * Numbers are stored in the machine's representation, as the state is. The word head.layout differs
 * between machines that cannot read each other's numbers.
 *
 * Why this hash, 64-bit FNV-1a: each step is a bijection of the hash, so any change of a single
 * byte is always detected, and other damage goes undetected about once in 2^64 cases. zlib's CRC-32
 * detects a few more kinds with certainty and the others less often, and every user would need one
 * more library for one kilobyte. The same function distinguishes sets of parameters.
 */
#ifndef WEIR_LIB_SAVED_STATE_H
#define WEIR_LIB_SAVED_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/saved.h>

#define SAVED_MAGIC  "weirmem" /* eight bytes, with its terminating zero */
#define SAVED_FORMAT 1

struct saved_head {
	char magic[8];
	uint32_t layout;
	uint32_t format;
	uint32_t size; /* of the whole saved state, in bytes */
	uint32_t version;
	uint32_t state_size;
	uint32_t limit; /* in force when it was saved */
	char name[16];  /* of the algorithm, padded with zeros */
	uint64_t saved; /* nanoseconds on CLOCK_REALTIME */
	uint64_t parameters;
	uint64_t random;     /* state of the limiter's random generator */
	double rtt_smoothed; /* nanoseconds; 0: none yet */
};

#define SAVED_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t saved_hash(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
