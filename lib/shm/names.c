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

bool shm_read_beginning(int fd, struct shm_beginning *b)
{
	return pread(fd, b, sizeof(*b), 0) == (ssize_t)sizeof(*b) && b->ready == SHM_READY &&
	       memcmp(b->magic, SHM_MAGIC, sizeof(b->magic)) == 0;
}

static bool is_block(int fd, struct stat *file)
{
	struct shm_beginning b;

	return fstat(fd, file) == 0 && S_ISREG(file->st_mode) && shm_read_beginning(fd, &b) &&
	       (uint64_t)file->st_size >= b.size;
}

static bool has_block(int folder, const struct dirent *entry, struct stat *file)
{
	bool has;
	int fd;

	if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
		return false;
	fd = openat(folder, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	has = is_block(fd, file);
	close(fd);
	return has;
}

static int visit_files(bool (*visit)(void *arg, const struct weir_shm_file *file), void *arg)
{
	DIR *folder = opendir(SHM_FOLDER);
	const struct dirent *entry;
	int visited = 0;

	if (folder == NULL)
		return -errno;
	while ((entry = readdir(folder)) != NULL) {
		char name[sizeof(entry->d_name) + 1];
		struct weir_shm_file found;
		struct stat file;

		if (!has_block(dirfd(folder), entry, &file))
			continue;
		snprintf(name, sizeof(name), "/%s", entry->d_name);
		found = (struct weir_shm_file){
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
	return visited;
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
