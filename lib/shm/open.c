/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared limiters by their names.
 *
 * shm_open() keeps its files in one folder, in which any user may create anything. So a file there
 * is opened without following links and without waiting for the other end of a FIFO, and is checked
 * (lib/shm/trust.h) before anything is read.
 *
 * A limiter is published under its name when it is complete. It is created in an unnamed file, and
 * a link publishes it. The link fails if the name is taken, and then the limiter with that name is
 * opened instead. So there is no lock that another process could hold, a creator that dies leaves
 * nothing behind, and a limiter that has a name is never created a second time. Where the system
 * does not support unnamed files, a temporary name is used instead; it is left behind if the
 * creator dies.
 */

#include "lib/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cancel.h"
#include "lib/base/explain.h"
#include "lib/shm/trust.h"

/* Attempts to open or create a name that other processes remove and create meanwhile. */
#define TRIES 100

/* Memory is reserved in pieces of these sizes, in bytes: a signal undoes only one piece. */
#define PIECE       ((size_t)1 << 20)
#define PIECE_MIN   ((size_t)4096)
#define PIECE_TRIES 10000

#define PATH_ROOM (sizeof(SHM_FOLDER) + NAME_MAX + 1)

/* Return a negative errno of opening or mapping, with a sentence. */
static int fail(const char *what, const char *name, int error, char *why, size_t why_size)
{
	char text[128];

	explain(why, why_size, "%s: %s: %s.", name, what, strerror_r(error, text, sizeof(text)));
	return -error;
}

/* The path of a name, as for shm_open(): leading slashes are ignored, and no others are allowed. */
static bool find_path(const char *name, char path[PATH_ROOM])
{
	const char *file = name + strspn(name, "/");

	if (*file == '\0' || strlen(file) > NAME_MAX || strchr(file, '/') != NULL)
		return false;
	snprintf(path, PATH_ROOM, "%s/%s", SHM_FOLDER, file);
	return true;
}

/* Write a sentence that names the owner of the file: another user may have taken the name. */
static int refuse_file(const char *path, const char *name, int error, char *why, size_t why_size)
{
	struct stat file;

	if ((error != EACCES && error != EPERM) || lstat(path, &file) != 0)
		return fail("cannot be opened", name, error, why, why_size);
	explain(why, why_size, "%s: cannot be opened: Permission denied: it belongs to user %u.",
		name, (unsigned)file.st_uid);
	return -error;
}

/*
 * Open the file of that path, if it is trusted. Returns its descriptor, or a negative errno and a
 * sentence.
 */
static int open_file(const char *path, const char *name, int how, const struct trust *trust,
		     char *why, size_t why_size)
{
	struct stat file;
	int fd, r;

	do {
		fd = open(path, how | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return refuse_file(path, name, errno, why, why_size);
	r = trust_check(trust, fd, name, &file, why, why_size);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* Reserve memory for a whole new file. Returns 0 or an errno. */
static int reserve(int fd, size_t size)
{
	size_t piece = PIECE, done = 0;
	int tries = PIECE_TRIES;

	while (done < size) {
		const size_t next = size - done < piece ? size - done : piece;
		const int error = posix_fallocate(fd, (off_t)done, (off_t)next);

		if (error == 0)
			done += next;
		else if (error != EINTR || --tries == 0)
			return error;
		else if (piece > PIECE_MIN)
			piece /= 2;
	}
	return 0;
}

/*
 * Make a limiter in a new file that is not visible to other processes. Returns 0, or a negative
 * errno and a sentence.
 */
static int fill(int fd, size_t size, const struct weir_config *config, uint32_t members,
		const char *name, char *why, size_t why_size)
{
	int r = reserve(fd, size);
	void *block;

	if (r != 0)
		return fail("there is not enough memory", name, r, why, why_size);
	block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (block == MAP_FAILED)
		return fail("cannot be mapped", name, errno, why, why_size);
	r = weir_shm_init(block, size, config, members, why, why_size);
	munmap(block, size);
	return r;
}

/* A new file, and the path from which it can be linked. */
struct new_file {
	int fd; /* -1: none, and errno is set */
	bool named;
	char path[PATH_ROOM];
};

static struct new_file begin_file(mode_t mode)
{
	struct new_file file = {.fd = -1};

	if (access("/proc/self/fd", X_OK) == 0)
		file.fd = open(SHM_FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (file.fd >= 0) {
		snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
		return file;
	}
	file.named = true;
	for (int i = 0; i < TRIES && file.fd < 0; i++) {
		snprintf(file.path, sizeof(file.path), "%s/.weir-%d-%" PRIx64, SHM_FOLDER,
			 (int)getpid(), weir_now());
		file.fd = open(file.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (file.fd < 0 && errno != EEXIST && errno != EINTR)
			break;
	}
	return file;
}

/*
 * Create a limiter under that path. Returns its file; or -EEXIST, if there is one already; or
 * another negative errno and a sentence.
 */
static int make(const char *path, const char *name, mode_t mode, size_t size,
		const struct weir_config *config, uint32_t members, char *why, size_t why_size)
{
	const struct new_file file = begin_file(mode);
	int r;

	if (file.fd < 0)
		return fail("cannot be created", name, errno, why, why_size);
	r = fill(file.fd, size, config, members, name, why, why_size);
	if (r == 0 && linkat(AT_FDCWD, file.path, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0)
		r = fail("cannot be created", name, errno, why, why_size);
	if (file.named)
		(void)unlink(file.path);
	if (r == 0)
		return file.fd;
	close(file.fd);
	return r;
}

/* The final result. Sentences about earlier attempts are dropped. */
static int answer(int fd, const char *said, char *why, size_t why_size)
{
	if (fd < 0)
		explain(why, why_size, "%s", said);
	return fd;
}

/*
 * Open the file with that name, creating it if there is none. Returns its descriptor, or a negative
 * errno and a sentence.
 */
static int open_or_make(const char *name, const struct trust *trust, mode_t mode,
			const struct weir_config *config, uint32_t members, char *why,
			size_t why_size)
{
	char path[PATH_ROOM], said[512] = "";
	struct settings settings;
	int fd = config != NULL ? settings_for(&settings, config, members, why, why_size) : 0;

	if (fd != 0)
		return fd;
	if (!find_path(name, path))
		return fail("cannot be opened", name, EINVAL, why, why_size);
	for (int i = 0; i < TRIES; i++) {
		fd = open_file(path, name, O_RDWR, trust, said, sizeof(said));
		if (fd != -ENOENT || config == NULL)
			return answer(fd, said, why, why_size);
		fd = make(path, name, mode, places_in(&settings).size, config, members, said,
			  sizeof(said));
		if (fd != -EEXIST)
			return answer(fd, said, why, why_size);
	}
	explain(why, why_size, "%s: other processes keep creating and removing it.", name);
	return -EAGAIN;
}

/*
 * How many bytes of a file to map: the size that the block states, and nothing beyond it. If the
 * file is not a block, the size of a head, which is then refused. Returns 0 or a negative errno.
 */
static int bytes_to_map(int fd, size_t file_size, size_t *bytes)
{
	struct shm_beginning b;
	const size_t head = file_size < sizeof(struct shm_head) ? file_size
								: sizeof(struct shm_head);
	const int r = shm_read_beginning(fd, &b);

	*bytes = r > 0 && b.size >= sizeof(struct shm_head) ? b.size : head;
	return r < 0 ? r : 0;
}

/* Map the block, and close the file. Returns 0, or a negative errno and a sentence. */
static int map_and_close(int fd, int protection, const char *name, void **block, size_t *size,
			 char *why, size_t why_size)
{
	struct stat file;
	int r = 0;

	if (fstat(fd, &file) != 0)
		r = fail("cannot be examined", name, errno, why, why_size);
	else if (file.st_size == 0)
		r = fault(why, why_size, "%s: there is no shared limiter: the file is empty.",
			  name);
	if (r == 0) {
		r = bytes_to_map(fd, (size_t)file.st_size, size);
		if (r != 0)
			(void)fail("cannot be read", name, -r, why, why_size);
		else if (*size > (size_t)file.st_size)
			r = fault(why, why_size,
				  "%s: the shared limiter is truncated: %llu of %zu bytes.", name,
				  (unsigned long long)file.st_size, *size);
	}
	if (r == 0) {
		*block = mmap(NULL, *size, protection, MAP_SHARED, fd, 0);
		if (*block == MAP_FAILED)
			r = fail("cannot be mapped", name, errno, why, why_size);
	}
	close(fd);
	return r;
}

/* Let the handle own the mapping; on failure, unmap the block. */
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

static int open_name(const char *name, uint32_t owner, unsigned mode,
		     const struct weir_config *config, uint32_t members,
		     struct weir_limiter **limiter, char *why, size_t why_size)
{
	const struct trust trust = trust_of_mode(owner, (mode_t)mode);
	void *block;
	size_t size;
	int fd, r;

	fd = open_or_make(name, &trust, (mode_t)mode, config, members, why, why_size);
	if (fd < 0)
		return fd;
	r = map_and_close(fd, PROT_READ | PROT_WRITE, name, &block, &size, why, why_size);
	if (r != 0)
		return r;
	r = weir_shm_attach(block, size, config, limiter, why, why_size);
	return keep_mapping(r, block, size, *limiter);
}

/* A thread cancelled meanwhile would leave a file open or memory mapped. */
int weir_shm_open_of(const char *name, uint32_t owner, unsigned mode,
		     const struct weir_config *config, uint32_t members,
		     struct weir_limiter **limiter, char *why, size_t why_size)
{
	const int cancel = cancel_hold();
	int r;

	*limiter = NULL;
	r = open_name(name, owner, mode, config, members, limiter, why, why_size);
	cancel_release(cancel);
	return r;
}

int weir_shm_open(const char *name, unsigned mode, const struct weir_config *config,
		  uint32_t members, struct weir_limiter **limiter, char *why, size_t why_size)
{
	return weir_shm_open_of(name, 0, mode, config, members, limiter, why, why_size);
}

static int observe_name(const char *name, uint32_t owner, struct weir_limiter **limiter, char *why,
			size_t why_size)
{
	const struct trust trust = trust_of_observer(owner);
	char path[PATH_ROOM];
	void *block;
	size_t size;
	int fd, r;

	if (!find_path(name, path))
		return fail("cannot be opened", name, EINVAL, why, why_size);
	fd = open_file(path, name, O_RDONLY, &trust, why, why_size);
	if (fd < 0)
		return fd;
	r = map_and_close(fd, PROT_READ, name, &block, &size, why, why_size);
	if (r != 0)
		return r;
	r = weir_shm_observe(block, size, limiter, why, why_size);
	return keep_mapping(r, block, size, *limiter);
}

int weir_shm_open_observer_of(const char *name, uint32_t owner, struct weir_limiter **limiter,
			      char *why, size_t why_size)
{
	const int cancel = cancel_hold();
	int r;

	*limiter = NULL;
	r = observe_name(name, owner, limiter, why, why_size);
	cancel_release(cancel);
	return r;
}

int weir_shm_open_observer(const char *name, struct weir_limiter **limiter, char *why,
			   size_t why_size)
{
	return weir_shm_open_observer_of(name, 0, limiter, why, why_size);
}
