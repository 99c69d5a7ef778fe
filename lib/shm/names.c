/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of a machine's shared limiters.
 *
 * shm_open() keeps its files in one folder, in which any user may create anything. So a file is
 * opened without following links and without waiting for the other end of a FIFO, and its first
 * bytes are read, not mapped: truncating the file meanwhile does no harm.
 */

#include <weir/shm.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cancel.h"
#include "lib/shm/shm.h"

#define IN_HEAD(field)                                                                             \
	(offsetof(struct shm_head, constants) + offsetof(struct shm_constants, field))

_Static_assert(IN_HEAD(magic) == offsetof(struct shm_beginning, magic) &&
		       IN_HEAD(size) == offsetof(struct shm_beginning, size),
	       "a block begins so");

int shm_read_beginning(int fd, struct shm_beginning *b)
{
	ssize_t size;

	do {
		size = pread(fd, b, sizeof(*b), 0);
	} while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	return size == (ssize_t)sizeof(*b) && b->ready == SHM_READY &&
	       memcmp(b->magic, SHM_MAGIC, sizeof(b->magic)) == 0;
}

static int is_block(int fd, struct stat *file)
{
	struct shm_beginning b;
	int r;

	if (fstat(fd, file) != 0)
		return -errno;
	if (!S_ISREG(file->st_mode))
		return 0;
	r = shm_read_beginning(fd, &b);
	return r <= 0 ? r : (uint64_t)file->st_size >= b.size;
}

/*
 * Whether it holds a limiter: 1, 0, or a negative errno. A file that is gone by now, or that this
 * process may not read, is none.
 */
static int has_block(int folder, const struct dirent *entry, struct stat *file)
{
	int fd, r;

	if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
		return 0;
	do {
		fd = openat(folder, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	r = is_block(fd, file);
	close(fd);
	return r;
}

/* The next file that holds a limiter. Returns 1; 0 after the last; or a negative errno. */
static int next_block(DIR *folder, char *name, size_t room, struct stat *file)
{
	const struct dirent *entry;
	int r = 0;

	while (r == 0) {
		errno = 0;
		entry = readdir(folder);
		if (entry == NULL)
			return -errno;
		r = has_block(dirfd(folder), entry, file);
		if (r > 0)
			snprintf(name, room, "/%s", entry->d_name);
	}
	return r;
}

static int visit_files(bool (*visit)(void *arg, const struct weir_shm_file *file), void *arg)
{
	DIR *folder = opendir(SHM_FOLDER);
	char name[sizeof(((struct dirent *)NULL)->d_name) + 1];
	struct stat file = {.st_mode = 0};
	int visited = 0, r;

	if (folder == NULL)
		return -errno;
	while ((r = next_block(folder, name, sizeof(name), &file)) > 0) {
		const struct weir_shm_file found = {
			.name = name,
			.owner = file.st_uid,
			.group = file.st_gid,
			.mode = file.st_mode & 07777,
		};

		visited++;
		if (!visit(arg, &found))
			break;
	}
	closedir(folder);
	return r < 0 ? r : visited;
}

int weir_shm_files_visit(bool (*visit)(void *arg, const struct weir_shm_file *file), void *arg)
{
	const int cancel = cancel_hold();
	const int visited = visit_files(visit, arg);

	cancel_release(cancel);
	return visited;
}

/* Adapts a visitor of names to one of files. */
struct names_visit {
	bool (*visit)(void *arg, const char *name);
	void *arg;
};

static bool visit_name(void *arg, const struct weir_shm_file *file)
{
	const struct names_visit *names = arg;

	return names->visit(names->arg, file->name);
}

int weir_shm_names_visit(bool (*visit)(void *arg, const char *name), void *arg)
{
	struct names_visit names = {.visit = visit, .arg = arg};

	return weir_shm_files_visit(visit_name, &names);
}
