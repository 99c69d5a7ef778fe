/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keep a limiter's state over a restart: load it at the start, save it at the end.
 *
 *	example-restart FILE
 *
 * makes calls to a simulated backend, in simulated time, and prints the limit at the start and at
 * the end. A second run starts with the limit at which the first one ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

/* Read a file, up to size. Returns the bytes, or a negative errno. */
static ssize_t read_file(const char *path, void *buffer, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buffer, size);
	n = n < 0 ? -errno : n;
	close(fd);
	return n;
}

/* Write a new file and sync it to disk. 0, or a negative errno. */
static int write_aside(const char *path, const void *bytes, size_t size)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n;
	int r = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, bytes, size);
	if (n < 0 || fsync(fd) != 0)
		r = -errno;
	else if ((size_t)n != size)
		r = -EIO;
	if (close(fd) != 0 && r == 0)
		r = -errno;
	return r;
}

/* Replace the file atomically: after a crash it is the old or the new one, never a part. */
static int replace_file(const char *path, const void *bytes, size_t size)
{
	char aside[4096];
	int r;

	if (snprintf(aside, sizeof(aside), "%s.new", path) >= (int)sizeof(aside))
		return -ENAMETOOLONG;
	r = write_aside(aside, bytes, size);
	if (r == 0 && rename(aside, path) != 0)
		r = -errno;
	if (r != 0)
		unlink(aside);
	return r;
}

/* If the saved state is missing or invalid, start without it. */
static void load(struct weir_limiter *limiter, const char *path)
{
	unsigned char memory[WEIR_SAVED_MAX];
	char why[200];
	const ssize_t n = read_file(path, memory, sizeof(memory));
	weir_dur age;

	if (n == -ENOENT)
		return;
	if (n < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror((int)-n));
		return;
	}
	age = weir_saved_age(memory, (size_t)n);
	if (weir_limiter_load(limiter, memory, (size_t)n, age, why, sizeof(why)) != 0)
		fprintf(stderr, "%s: %s\n", path, why);
}

static int save(struct weir_limiter *limiter, const char *path)
{
	unsigned char memory[WEIR_SAVED_MAX];
	const int n = weir_limiter_save(limiter, memory, sizeof(memory));
	const int r = n < 0 ? n : replace_file(path, memory, (size_t)n);

	if (r != 0)
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
	return r;
}

/* Five seconds of calls, as many as admitted, to a backend that takes 10 ms for 100 at once. */
static void work(struct weir_limiter *limiter)
{
	struct weir_token tokens[1000];
	const weir_time end = 5 * WEIR_S;

	for (weir_time now = 0; now < end;) {
		unsigned n = 0;

		while (n < 1000 && weir_try_acquire_at(limiter, now, &tokens[n]) == 0)
			n++;
		now += n > 100 ? n * 100 * WEIR_US : 10 * WEIR_MS;
		while (n > 0)
			weir_release_at(limiter, now, &tokens[--n], WEIR_SUCCESS);
	}
}

int main(int argc, char **argv)
{
	struct weir_limiter *limiter;
	int r;

	if (argc != 2) {
		fprintf(stderr, "Usage: example-restart FILE\n");
		return 2;
	}
	if (weir_limiter_create(NULL, &limiter) != 0)
		return EXIT_FAILURE;
	load(limiter, argv[1]);
	printf("begins at %u\n", weir_limit(limiter));
	work(limiter);
	printf("ends at %u\n", weir_limit(limiter));
	r = save(limiter, argv[1]);
	weir_limiter_destroy(limiter);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
