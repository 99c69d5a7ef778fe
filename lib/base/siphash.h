/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein, 2012): a hash with a secret key. An attacker who
 * chooses the input but does not know the key cannot find collisions. One round for each word and
 * three at the end are what Rust, Python, Ruby and Perl use in their hash tables, for that reason.
 *
 * No library in Debian provides it: libsodium has SipHash-2-4, which adds a dependency and takes
 * twice the time; xxHash is faster, but does not claim to withstand chosen keys.
 */
#ifndef WEIR_LIB_SIPHASH_H
#define WEIR_LIB_SIPHASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct siphash_key {
	uint64_t k0, k1;
};

struct siphash_state {
	uint64_t v0, v1, v2, v3;
};

/* Eight bytes as a little-endian word. */
static inline uint64_t word_at(const unsigned char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

/* The bytes after the last whole word, little-endian, padded with zeros. */
static inline uint64_t word_at_end(const unsigned char *bytes, size_t size)
{
	const unsigned left = size % 8;
	uint64_t word = 0;

	if (left == 0)
		return 0;
	if (size > 8)
		return word_at(bytes + size - 8) >> (64 - 8 * left);
	for (unsigned i = 0; i < left; i++)
		word |= (uint64_t)bytes[i] << 8 * i;
	return word;
}

static inline uint64_t rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void siphash_round(struct siphash_state *s)
{
	s->v0 += s->v1;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v2 = rotate(s->v2, 32);
}

static inline void siphash_word(struct siphash_state *s, uint64_t word)
{
	s->v3 ^= word;
	siphash_round(s);
	s->v0 ^= word;
}

static inline uint64_t siphash(const struct siphash_key *key, const unsigned char *bytes,
			       size_t size)
{
	struct siphash_state s = {
		.v0 = key->k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = key->k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = key->k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = key->k1 ^ UINT64_C(0x7465646279746573),
	};

	for (size_t i = 0; i < size / 8; i++)
		siphash_word(&s, word_at(bytes + 8 * i));
	siphash_word(&s, word_at_end(bytes, size) | (uint64_t)size << 56);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		siphash_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

#endif
