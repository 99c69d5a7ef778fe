/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "lib/base/cancel.h"

/* The negative errno of a failure that may pass; 0 if the file is not there for this process. */
static int passing(int error)
{
	switch (error) {
	case EINTR:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EIO:
		return -error;
	default:
		return 0;
	}
}

static int read_file(const char *path, char *text, size_t size)
{
	ssize_t length;
	int fd, r = 0;

	do {
		fd = open(path, O_RDONLY | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return passing(errno);
	do {
		length = read(fd, text, size - 1);
	} while (length < 0 && errno == EINTR);
	if (length < 0)
		r = passing(errno);
	else
		text[length] = '\0';
	close(fd);
	return r;
}

int proc_read(const char *path, char *text, size_t size)
{
	const int cancel = cancel_hold();
	int r;

	text[0] = '\0';
	r = read_file(path, text, size);
	cancel_release(cancel);
	return r;
}

int proc_link(const char *path, char *text, size_t size)
{
	const ssize_t length = readlink(path, text, size - 1);

	text[length > 0 ? length : 0] = '\0';
	return length < 0 ? passing(errno) : 0;
}

int proc_namespace(const char *path, uint64_t *number)
{
	struct stat space;

	*number = 0;
	if (stat(path, &space) != 0)
		return passing(errno);
	*number = space.st_ino;
	return 0;
}
