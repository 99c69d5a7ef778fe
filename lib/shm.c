/*
 * Handles on blocks that processes share: to attach to one, by its place or by its name, and to
 * leave it.
 *
 * The handle lies in pages of its own that a child of fork() finds full of zeros: there is no lease
 * in it, and no limiter. All functions look for that where they have to look for something anyway.
 */

#include "lib/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/params.h"

_Static_assert(WEIR_SHM_MEMBERS_MAX == LEASES_MAX, "a member has a lease");

static size_t whole_pages(size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* A handle on the block, in pages of its own. 0, or a negative errno and a sentence. */
static int make_handle(void *block, const struct shm_copy *copy, struct weir_limiter **limiter,
		       char *why, size_t why_size)
{
	const struct shm_constants *c = &copy->constants;
	const size_t size = whole_pages(limiter_own_size(&copy->settings));
	struct weir_limiter *l;
	void *own = pages(size);

	if (own == NULL) {
		explain(why, why_size, "There is no memory for the handle.");
		return -ENOMEM;
	}
	if (madvise(own, size, MADV_WIPEONFORK) != 0) {
		munmap(own, size);
		explain(why, why_size,
			"This kernel has no memory that a child of fork() finds wiped.");
		return -ENOTSUP;
	}
	l = limiter_set_up(own, (char *)block + places_in(&copy->settings).limiter,
			   &copy->settings);
	find_leases(l, block, &copy->settings);
	l->leasing.self = lease_identify();
	l->leasing.own_size = size;
	l->leasing.block_size = c->size;
	l->leasing.flags = c->flags;
	memcpy(l->leasing.limit, c->limit, sizeof(c->limit));
	*limiter = l;
	return 0;
}

/* What it owns from now on, it owns under this number. */
static void set_number(struct weir_limiter *l, uint32_t number)
{
	l->sampling.owner = number;
	l->shedding.owner = number;
	l->admission.owner = number;
	l->queueing.owner = number;
	l->queueing.admission.owner = number;
}

/* Take a lease, of the dead if there is no other. */
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
	if (!queue_is_sound(&l->queueing)) {
		munmap(l, l->leasing.own_size);
		return fault(why, why_size, "The shared limiter is damaged: its queue is.");
	}
	if (!join(l)) {
		munmap(l, l->leasing.own_size);
		explain(why, why_size, "As many processes as may be, %u, are attached.",
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
	/* The handle's pointers are not to constants, but who looks on writes nothing. */
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

/* A negative errno of opening or mapping, and a sentence. */
static int fail(const char *what, const char *name, int error, char *why, size_t why_size)
{
	char text[128];

	explain(why, why_size, "%s: %s: %s.", name, what, strerror_r(error, text, sizeof(text)));
	return -error;
}

/* All of the file; NULL, and errno. */
static void *map(int fd, int protection, size_t *size)
{
	struct stat file;
	void *at;

	*size = 0;
	if (fstat(fd, &file) != 0)
		return NULL;
	*size = (size_t)file.st_size;
	at = mmap(NULL, *size, protection, MAP_SHARED, fd, 0);
	return at != MAP_FAILED ? at : NULL;
}

static bool is_ready(const void *block, size_t size)
{
	const struct shm_head *head = block;

	return size >= sizeof(*head) &&
	       atomic_load_explicit(&head->ready, memory_order_acquire) != 0;
}

/*
 * Make what is in the file, unless somebody has: the caller has its lock. Its maker may have
 * died in the middle; then nobody was ever attached, and it is made anew.
 */
static int make(int fd, const struct weir_config *config, uint32_t members, const char *name,
		char *why, size_t why_size)
{
	struct settings settings;
	size_t size, needed;
	void *block;
	int r = settings_for(&settings, config, members, why, why_size);

	if (r != 0)
		return r;
	block = map(fd, PROT_READ | PROT_WRITE, &size);
	if (block != NULL) {
		const bool ready = is_ready(block, size);

		munmap(block, size);
		if (ready)
			return 0;
	}
	needed = places_in(&settings).size;
	r = posix_fallocate(fd, 0, (off_t)needed);
	if (r != 0)
		return fail("there is no room", name, r, why, why_size);
	block = map(fd, PROT_READ | PROT_WRITE, &size);
	if (block == NULL)
		return fail("cannot be mapped", name, errno, why, why_size);
	r = weir_shm_init(block, size, config, members, why, why_size);
	munmap(block, size);
	return r;
}

static int lock_file(int fd)
{
	int r;

	do {
		r = flock(fd, LOCK_EX);
	} while (r != 0 && errno == EINTR);
	return r;
}

/* The file of that name, with a limiter in it; or a negative errno and a sentence. */
static int open_made(const char *name, unsigned mode, const struct weir_config *config,
		     uint32_t members, char *why, size_t why_size)
{
	const int how = O_RDWR | O_CLOEXEC | (config != NULL ? O_CREAT : 0);
	int fd = shm_open(name, how, (mode_t)mode), r = 0;

	if (fd < 0)
		return fail("cannot be opened", name, errno, why, why_size);
	if (config != NULL) {
		if (lock_file(fd) != 0)
			r = fail("cannot be locked", name, errno, why, why_size);
		else
			r = make(fd, config, members, name, why, why_size);
		(void)flock(fd, LOCK_UN);
	}
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* Map the file, and close it. */
static int map_and_close(int fd, int protection, const char *name, void **block, size_t *size,
			 char *why, size_t why_size)
{
	int error;

	*block = map(fd, protection, size);
	error = errno;
	close(fd);
	if (*block == NULL && *size == 0)
		return fault(why, why_size, "%s: there is no shared limiter.", name);
	return *block != NULL ? 0 : fail("cannot be mapped", name, error, why, why_size);
}

/* The block goes with the handle, or at once. */
static int keep_mapping(int r, void *block, size_t size, struct weir_limiter *limiter)
{
	if (r != 0) {
		munmap(block, size);
		return r;
	}
	limiter->leasing.mapped = block;
	limiter->leasing.mapped_size = size;
	return 0;
}

int weir_shm_open(const char *name, unsigned mode, const struct weir_config *config,
		  uint32_t members, struct weir_limiter **limiter, char *why, size_t why_size)
{
	void *block;
	size_t size;
	int fd = open_made(name, mode, config, members, why, why_size), r;

	*limiter = NULL;
	if (fd < 0)
		return fd;
	r = map_and_close(fd, PROT_READ | PROT_WRITE, name, &block, &size, why, why_size);
	if (r != 0)
		return r;
	r = attach(block, size, config, limiter, why, why_size);
	return keep_mapping(r, block, size, *limiter);
}

int weir_shm_look(const char *name, struct weir_limiter **limiter, char *why, size_t why_size)
{
	void *block;
	size_t size;
	int fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0), r;

	*limiter = NULL;
	if (fd < 0)
		return fail("cannot be opened", name, errno, why, why_size);
	r = map_and_close(fd, PROT_READ, name, &block, &size, why, why_size);
	if (r != 0)
		return r;
	r = observe(block, size, limiter, why, why_size);
	return keep_mapping(r, block, size, *limiter);
}

void weir_shm_detach(struct weir_limiter *l)
{
	struct leasing had;

	if (l == NULL || l->ops == NULL)
		return; /* of before a fork: how large it was is not known, but to the kernel */
	had = l->leasing;
	if (had.mine != NULL)
		reap_own(l, weir_now());
	munmap(l, had.own_size);
	if (had.mapped != NULL)
		munmap(had.mapped, had.mapped_size);
}
