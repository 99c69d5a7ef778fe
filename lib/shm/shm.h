/*
 * The head of a shared block, as it lies in memory:
 *
 *   head       what the block is, and all that never changes in it
 *   leases     of processes (lib/process/lease.h)
 *   holdings   for each lease, a holding for each partition
 *   audit      the reaper's (lib/shm/reap.h)
 *   limiter    as behind a handle of one's own (lib/limiter/config.c)
 *
 * What never changes has a checksum; each process copies it when it attaches, and does not read it
 * there again. None of it is a pointer. Any process that shares the block may change everything
 * else to anything at any time, so that is checked where it is used (docs/design.md, "One limiter
 * for many processes").
 *
 * word     written by        order    pairs with
 * -------  ----------------  -------  -----------------------------------------
 * ready    init: store       release  attach: all of the block
 */
#ifndef WEIR_LIB_SHM_H
#define WEIR_LIB_SHM_H

#include "lib/shm/reap.h"

#define SHM_MAGIC "weirshm" /* with its zero, eight bytes */
#define SHM_READY UINT64_C(0x7265616479217765)

/* A partition as it was when the block was made: struct weir_partition, with the name itself. */
struct shm_partition {
	part_name name;
	double share, cap;
	weir_dur reject_delay;
	uint32_t max;
};

/*
 * What a block is, and what it consists of, in numbers and text. It has no place for a pointer, so
 * no pointer that was written into a block is ever used. A process that attaches makes settings
 * from this, and adds pointers of its own.
 */
struct shm_constants {
	char magic[8];
	uint64_t layout; /* of all shared structures */
	uint64_t clock;  /* of this run of the machine, and of its time namespace */
	uint64_t size;   /* of the block */
	uint32_t version, state_size, config_size, flags; /* the algorithm's */
	char limit[16];                                   /* its name */
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

/* A block's constants as a process has copied them, and settings of them with its own pointers. */
struct shm_copy {
	struct shm_constants constants;
	struct settings settings;
};

/* The folder in which shm_open() keeps files. */
#define SHM_FOLDER "/dev/shm"

/* What a block begins with. */
struct shm_beginning {
	uint64_t ready, check;
	char magic[8];
	uint64_t layout, clock, size;
};

/*
 * Read the first bytes of a file, which may be shorter. Nothing is mapped, so a file that is
 * truncated meanwhile does no harm. False: it does not begin as a limiter does.
 */
bool shm_read_beginning(int fd, struct shm_beginning *b);

/* Where in a block things are. */
struct places {
	size_t leases, holdings, audit, limiter, size;
};

struct places places_in(const struct settings *settings);

/* As refuse(), where it is the block's fault and not the caller's. */
#define fault(...) (explain(__VA_ARGS__), -EPROTO)

/* A configuration for members to share: 0, or -EINVAL and a sentence. */
int settings_for(struct settings *settings, const struct weir_config *config, uint32_t members,
		 char *why, size_t why_size);

/* Leases and the rest of a block, on a handle. */
void find_leases(struct weir_limiter *l, void *block, const struct settings *settings);

/* Memory of this process's own; NULL: there is none. */
void *pages(size_t size);

/*
 * What a block has, checked, with this process's pointers: those of config, which must be what the
 * block was made with; without config, of whichever algorithm it is of. 0, or a negative
 * errno and a sentence.
 */
int read_block(const struct shm_head *head, size_t size, const struct weir_config *config,
	       struct shm_copy *copy, char *why, size_t why_size);

/* The same to look on: any algorithm will do. */
int read_block_to_observe(const struct shm_head *head, size_t size, struct shm_copy *copy,
			  char *why, size_t why_size);

#endif
