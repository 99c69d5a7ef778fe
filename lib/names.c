/*
 * The shared limiters of a machine, by their names.
 *
 * shm_open() keeps its files in one folder, in which anybody may put anything. So what is found is
 * opened without following links and without waiting for whoever is at the other end, and its first
 * bytes are read, not mapped: who cuts the file meanwhile does no harm.
 */

#include <weir/shm.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/shm.h"

#define FOLDER "/dev/shm"

/* What a block begins with. */
struct beginning {
	uint64_t ready, check;
	char magic[8];
	uint64_t layout, clock, size;
};

#define IN_HEAD(field)                                                                             \
	(offsetof(struct shm_head, constants) + offsetof(struct shm_constants, field))

_Static_assert(IN_HEAD(magic) == offsetof(struct beginning, magic) &&
		       IN_HEAD(size) == offsetof(struct beginning, size),
	       "a block begins so");

static bool is_block(int fd)
{
	struct beginning b;
	struct stat file;

	return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
	       pread(fd, &b, sizeof(b), 0) == (ssize_t)sizeof(b) && b.ready == SHM_READY &&
	       memcmp(b.magic, SHM_MAGIC, sizeof(b.magic)) == 0 && (uint64_t)file.st_size >= b.size;
}

static bool has_block(int folder, const struct dirent *entry)
{
	bool has;
	int fd;

	if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
		return false;
	fd = openat(folder, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	has = is_block(fd);
	close(fd);
	return has;
}

int weir_shm_names_visit(bool (*visit)(void *arg, const char *name), void *arg)
{
	DIR *folder = opendir(FOLDER);
	const struct dirent *entry;
	int visited = 0;

	if (folder == NULL)
		return -errno;
	while ((entry = readdir(folder)) != NULL) {
		char name[sizeof(entry->d_name) + 1];

		if (!has_block(dirfd(folder), entry))
			continue;
		snprintf(name, sizeof(name), "/%s", entry->d_name);
		visited++;
		if (!visit(arg, name))
			break;
	}
	closedir(folder);
	return visited;
}
