/*
 * A memory, byte by byte:
 *
 *   head    what it is, of which limiter, and what does not depend on the algorithm
 *   state   head.state_size bytes: the algorithm's
 *   check   8 bytes: saved_hash() over all before them
 *
 * Numbers lie as the machine has them, since the state does; one word of the head differs
 * between machines that would not understand each other.
 *
 * Why this hash, FNV-1a of 64 bits: each step maps the hash one to one, so one damaged
 * byte, whatever was done to it, is always found; what else disks and copies do to a file escapes
 * once in 2^64 times or so. zlib's CRC-32 finds a few more kinds for certain and
 * the rest less often, and would be a library for every user to carry, for a kilobyte at
 * the end. The same function tells one set of parameters from another.
 */
#ifndef WEIR_LIB_SAVED_STATE_H
#define WEIR_LIB_SAVED_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/saved.h>

#define SAVED_MAGIC  "weirmem" /* with its zero, eight bytes */
#define SAVED_FORMAT 1

struct saved_head {
	char magic[8];
	uint32_t layout;
	uint32_t format;
	uint32_t size; /* of all */
	uint32_t version;
	uint32_t state_size;
	uint32_t limit; /* in force */
	char name[16];  /* of the algorithm, filled up with zeros */
	uint64_t saved; /* nanoseconds on CLOCK_REALTIME */
	uint64_t parameters;
	uint64_t random;     /* state of the limiter's generator */
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
