/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of a shared block in memory:
 *
 *    head       what the block is, and its constants
 *    leases     of processes (lib/process/lease.h)
 *    holdings   for each lease, a holding for each partition
 *    audit      the reaper's (lib/shm/reap.h)
 *    limiter    as in an unshared limiter (lib/limiter/config.c)
 *
 * The constants have a checksum. Each process copies them when it attaches, and does not read them
 * in the block again. None of them is a pointer. Any process that shares the block may change
 * anything else to any value at any time, so it is checked where it is used (docs/design.md, "One
 * limiter for many processes").
 *
 * word     written by        order    pairs with
 * -------  ----------------  -------  -----------------------------------------
 * ready    init: store       release  attach: all of the block
 */
#ifndef WEIR_LIB_SHM_H
#define WEIR_LIB_SHM_H

#include "lib/shm/reap.h"

#define SHM_MAGIC "weirshm" /* eight bytes, with its terminating zero */
#define SHM_READY UINT64_C(0x7265616479217765)

/* A partition as it was when the block was made: struct weir_partition with the name inside. */
struct shm_partition {
	part_name name;
	double share, cap;
	weir_dur reject_delay;
	uint32_t max;
};

/*
 * Type and contents of a block, as numbers and text. It has no field for a pointer, so no pointer
 * that was written into a block is ever used. A process that attaches makes settings from this, and
 * adds its own pointers.
 */
struct shm_constants {
	char magic[8];
	uint64_t layout; /* layout_signature(): of all shared structures */
	uint64_t clock;  /* clock_signature(): of this boot and time namespace */
	uint64_t size;   /* of the block, in bytes */
	uint32_t version, state_size, config_size, flags; /* of the algorithm */
	char limit[16];                                   /* name of the algorithm */
	_Alignas(16) unsigned char limit_config[WEIR_LIMIT_CONFIG_MAX];
	uint32_t limit_min, limit_max;
	uint32_t members, shed, burst;
	uint32_t parts, admission_count, delayed_max;
	weir_dur hold;
	double shed_floor;
	uint64_t seed;
	struct sampler_config sampler;
	struct queue_config queue;
	struct shm_partition partitions[WEIR_PARTITIONS_MAX + 1];
};

struct shm_head {
	_Alignas(LINE) _Atomic uint64_t ready; /* SHM_READY, or the block is not ready */
	uint64_t check;                        /* saved_hash() of the constants */
	struct shm_constants constants;
};

/* A process's copy of a block's constants, and the settings made from it with its own pointers. */
struct shm_copy {
	struct shm_constants constants;
	struct settings settings;
};

/* The folder in which shm_open() keeps files. */
#define SHM_FOLDER "/dev/shm"

/* The first bytes of a block. */
struct shm_beginning {
	uint64_t ready, check;
	char magic[8];
	uint64_t layout, clock, size;
};

/*
 * Read the first bytes of a file, which may be shorter. Nothing is mapped, so a file that is
 * truncated meanwhile does no harm. Returns 1; 0 if it does not begin like a limiter; or a negative
 * errno.
 */
int shm_read_beginning(int fd, struct shm_beginning *b);

/* Offsets of the parts of a block, and its size. */
struct places {
	size_t leases, holdings, audit, limiter, size;
};

struct places places_in(const struct settings *settings);

/* As refuse(), where the block is at fault and not the caller. */
#define fault(...) (explain(__VA_ARGS__), -EPROTO)

/* Say that /proc cannot be read for now: error is that negative errno. */
void explain_proc(int error, char *why, size_t why_size);

/* Settings of a limiter to be shared by members. Returns 0, or -EINVAL and a sentence. */
int settings_for(struct settings *settings, const struct weir_config *config, uint32_t members,
		 char *why, size_t why_size);

/* Set up the handle's pointers to leases, holdings and audit. */
void set_up_leases(struct weir_limiter *l, void *block, const struct settings *settings);

/* Memory of this process; NULL: out of memory. */
void *pages(size_t size);

/*
 * Read and check a block, and add this process's pointers, those of config. config must be what the
 * block was made with; if it is NULL, the algorithm is found by its name. Returns 0, or a negative
 * errno and a sentence.
 */
int read_block(const struct shm_head *head, size_t size, const struct weir_config *config,
	       struct shm_copy *copy, char *why, size_t why_size);

/* The same for an observer: any algorithm will do. */
int read_block_to_observe(const struct shm_head *head, size_t size, struct shm_copy *copy,
			  char *why, size_t why_size);

#endif
