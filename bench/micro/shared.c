/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.c - the cost of a limiter that processes can share: a pair on a private limiter, and on
 * one in a shared block, both with and without cached permits.
 */
#include "rig.h"

#include <sys/mman.h>

static void *own_make(const struct subject *self, unsigned threads)
{
	struct weir_config config = roomy(self->limit);

	(void)threads;
	config.stripes = 1; /* with one stripe no permits are cached */
	return limiter_of(&config);
}

/* The block is not shared with other processes, and is freed when this one ends. */
static void *shared_make(const struct subject *self, unsigned threads)
{
	struct weir_config config = roomy(self->limit);
	const size_t size = weir_shm_size(&config, 8);
	void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct weir_limiter *limiter;

	(void)threads;
	must(block != MAP_FAILED ? block : NULL);
	must_do(weir_shm_init(block, size, &config, 8, NULL, 0), "weir_shm_init");
	must_do(weir_shm_attach(block, size, &config, &limiter, NULL, 0), "weir_shm_attach");
	settle(limiter);
	return limiter;
}

static void shared_unmake(void *shared)
{
	weir_shm_detach(shared);
}

static const struct subject table[] = {
	{
		.group = "shared",
		.name = "own",
		.about = "a pair on a private limiter",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = pair_loop,
	},
	{
		.group = "shared",
		.name = "own-uncached",
		.about = "the same, one stripe: no permits are cached",
		.make = own_make,
		.unmake = limiter_unmake,
		.loop = pair_loop,
	},
	{
		.group = "shared",
		.name = "shared",
		.about = "a pair on a limiter that other processes could share",
		.make = shared_make,
		.unmake = shared_unmake,
		.loop = pair_loop,
	},
};

void shared_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
