/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles on blocks that processes share: attaching and detaching. lib/shm/open.c finds blocks by
 * their names.
 *
 * A handle lies in pages that the kernel zeroes in a child of fork(): there it has neither a lease
 * nor a limiter. Functions detect this by tests that they make anyway.
 */

#include "lib/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/explain.h"

_Static_assert(WEIR_SHM_MEMBERS_MAX == LEASES_MAX, "a member has a lease");

static size_t whole_pages(size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/*
 * Make a handle on the block, in pages of its own. Returns 0, or a negative errno and a sentence.
 */
static int make_handle(void *block, const struct shm_copy *copy, struct weir_limiter **limiter,
		       char *why, size_t why_size)
{
	const struct shm_constants *c = &copy->constants;
	const size_t size = whole_pages(limiter_own_size(&copy->settings));
	struct weir_limiter *l;
	uint64_t self;
	int r = lease_identify(&self);
	void *own;

	if (r != 0) {
		explain_proc(r, why, why_size);
		return r;
	}
	own = pages(size);
	if (own == NULL) {
		explain(why, why_size, "There is not enough memory for the handle.");
		return -ENOMEM;
	}
	if (madvise(own, size, MADV_WIPEONFORK) != 0) {
		munmap(own, size);
		explain(why, why_size, "This kernel cannot wipe memory on fork (MADV_WIPEONFORK).");
		return -ENOTSUP;
	}
	l = limiter_set_up(own, (char *)block + places_in(&copy->settings).limiter,
			   &copy->settings);
	set_up_leases(l, block, &copy->settings);
	l->leasing.self = self;
	l->leasing.own_size = size;
	l->leasing.block_size = c->size;
	l->leasing.flags = c->flags;
	memcpy(l->leasing.limit, c->limit, sizeof(c->limit));
	*limiter = l;
	return 0;
}

/* From now on, what this process owns is owned under this number. */
static void set_number(struct weir_limiter *l, uint32_t number)
{
	l->sampling.owner = number;
	l->shedding.owner = number;
	l->admission.owner = number;
	l->queueing.owner = number;
}

/* Take a lease, reaping dead processes if all are taken. */
static bool join(struct weir_limiter *l)
{
	struct weir_shm_reaped reaped;

	if (!lease_join(&l->leasing)) {
		set_number(l, REAPER);
		(void)reap(l, weir_now(), 0, &reaped);
		if (!lease_join(&l->leasing))
			return false;
	}
	set_number(l, l->leasing.number);
	return true;
}

static int attach(void *block, size_t size, const struct weir_config *config,
		  struct weir_limiter **limiter, char *why, size_t why_size)
{
	struct shm_copy copy;
	struct weir_limiter *l;
	int r = read_block(block, size, config, &copy, why, why_size);

	if (r == 0)
		r = make_handle(block, &copy, &l, why, why_size);
	if (r != 0)
		return r;
	if (!join(l)) {
		munmap(l, l->leasing.own_size);
		explain(why, why_size, "All %u leases are taken by processes that are attached.",
			(unsigned)copy.settings.members);
		return -ENOSPC;
	}
	*limiter = l;
	return 0;
}

int weir_shm_attach(void *block, size_t size, const struct weir_config *config,
		    struct weir_limiter **limiter, char *why, size_t why_size)
{
	*limiter = NULL;
	return attach(block, size, config, limiter, why, why_size);
}

static int observe(const void *block, size_t size, struct weir_limiter **limiter, char *why,
		   size_t why_size)
{
	struct shm_copy copy;
	int r = read_block_to_observe(block, size, &copy, why, why_size);

	if (r != 0)
		return r;
	/* The handle has pointers to non-const, but an observer writes nothing. */
	r = make_handle((void *)(uintptr_t)block, &copy, limiter, why, why_size);
	if (r != 0)
		return r;
	(*limiter)->plain = false;
	(*limiter)->serves = false;
	return 0;
}

int weir_shm_observe(const void *block, size_t size, struct weir_limiter **limiter, char *why,
		     size_t why_size)
{
	*limiter = NULL;
	return observe(block, size, limiter, why, why_size);
}

void weir_shm_detach(struct weir_limiter *l)
{
	struct leasing had;

	if (l == NULL || l->ops == NULL)
		return; /* from before a fork: only the kernel knows the size of this mapping */
	had = l->leasing;
	if (had.mine != NULL)
		reap_own(l, weir_now());
	munmap(l, had.own_size);
	if (had.mapped != NULL)
		munmap(had.mapped, had.mapped_size);
}
