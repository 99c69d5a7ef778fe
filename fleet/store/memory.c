/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store in memory: private to one process, or a file of /dev/shm that processes map.
 *
 * The clock is CLOCK_BOOTTIME, which no administrator sets and which continues while the machine
 * sleeps. Every process that could hold a lease is on this machine, and ends with it, so a block
 * that outlives a restart of the machine is made anew. A file may be removed while processes have
 * it open, as some systems do when a user logs out. Each call checks whether that has happened, and
 * continues with the file that has the name then; a new file counts as proven only since it was
 * made. Versions begin at the wall clock's microseconds, so that they rise over restarts of the
 * machine too, unless that clock goes back.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fleet/store/memory.h"

#define BYTES_DEFAULT ((size_t)4 << 20)
#define BYTES_MAX     ((size_t)1 << 30)
#define MODE_DEFAULT  0600

/* A new file is reserved in pieces of that many bytes, interrupted so often at most. */
#define PIECE         ((size_t)1 << 20)
#define RESERVE_TRIES 10000

static weir_time ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static weir_time now_of(const struct memory *m)
{
	return m->clock != NULL ? m->clock->now(m->clock) : ns_of(CLOCK_BOOTTIME);
}

/*
 * The process that holds the lock may be stopped. One that held it may have died; it leaves a valid
 * block (row_table.h).
 */
static int lock_shared(struct memory *m)
{
	const weir_time end = ns_of(CLOCK_MONOTONIC) + m->timeout;
	const struct timespec until = {
		.tv_sec = (time_t)(end / WEIR_S),
		.tv_nsec = (long)(end % WEIR_S),
	};
	int r = pthread_mutex_clocklock(&m->block->lock, CLOCK_MONOTONIC, &until);

	if (r == EOWNERDEAD) {
		r = pthread_mutex_consistent(&m->block->lock);
		/* It may have made a change, and not have said which. */
		bell_note(&m->block->bell, "", 0);
		bell_wake(&m->block->bell);
	}
	if (r == ETIMEDOUT)
		return store_say(-EIO, m->why, "Another process holds the lock, and is stopped.");
	return r == 0 ? 0 : store_say(-EIO, m->why, "Locking failed: error %d.", r);
}

void memory_unmap(struct memory *m)
{
	if (m->block != NULL)
		munmap(m->block, m->size);
	if (m->fd >= 0)
		close(m->fd);
	m->block = NULL;
	m->fd = -1;
}

/*
 * A process that comes after the file was removed creates another one, and knows nothing of this
 * one. Returns 1, 0 or -EIO.
 */
static int is_removed(struct memory *m)
{
	struct stat file;

	if (m->fd < 0)
		return 1;
	if (fstat(m->fd, &file) != 0)
		return store_say(-EIO, m->why, "fstat() failed.");
	return file.st_nlink == 0;
}

/* Continue with the file that has the name now; its versions are above all earlier ones. */
static int replace(struct memory *m)
{
	char why[WHY_SIZE] = "";
	int r;

	memory_unmap(m);
	r = memory_open_file(m, why);
	if (r == 0)
		r = lock_shared(m);
	else
		(void)store_say(r, m->why, "%s", why);
	if (r != 0) {
		memory_unmap(m);
		return -EIO;
	}
	block_raise(m->block, now_of(m), m->seen);
	return 0;
}

int memory_lock(struct memory *m, bool *other)
{
	int r;

	*other = false;
	if (!m->shared) {
		pthread_mutex_lock(&m->block->lock);
		return 0;
	}
	r = is_removed(m);
	if (r == 0) {
		r = lock_shared(m);
		if (r != 0)
			return r;
		/* The file may have been removed while this waited for the lock. */
		r = is_removed(m);
		if (r == 0)
			return 0;
		pthread_mutex_unlock(&m->block->lock);
	}
	*other = r > 0;
	return *other ? replace(m) : r;
}

static int lock(struct memory *m)
{
	bool other;

	return memory_lock(m, &other);
}

static int unlock(struct memory *m, int r)
{
	m->seen = block_version(m->block);
	pthread_mutex_unlock(&m->block->lock);
	if (r == -ENOSPC)
		(void)store_say(r, m->why, "The block of %zu bytes is full.", m->size);
	else if (r == -ESTALE)
		(void)store_say(r, m->why, "The session is over.");
	else if (r == -EAGAIN)
		(void)store_say(r, m->why, "Something has changed since it was read.");
	return r;
}

static int memory_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct memory *m = (struct memory *)self;
	int r = lock(m);

	if (r != 0)
		return r;
	*granted = ttl;
	return unlock(m, block_begin(m->block, now_of(m), ttl, session));
}

static int memory_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct memory *m = (struct memory *)self;
	int r = lock(m);

	return r == 0 ? unlock(m, block_keep(m->block, now_of(m), session, granted)) : r;
}

/* Its number is that of the version in which the rows are gone. */
static void note_row(void *arg, const char *key)
{
	struct block *b = arg;

	bell_note(&b->bell, key, block_version(b) + 1);
}

static int memory_end(struct weir_store *self, uint64_t session)
{
	struct memory *m = (struct memory *)self;
	int r = lock(m);

	if (r != 0)
		return r;
	block_bound(m->block, session, note_row, m->block);
	r = block_end(m->block, now_of(m), session);
	bell_wake(&m->block->bell);
	return unlock(m, r);
}

/* Under the lock, so that the death of this process before it has rung does not go unnoticed. */
static void report(struct memory *m, const struct weir_store_write *writes, size_t count)
{
	struct bell *bell = &m->block->bell;

	for (size_t i = 0; i < count; i++)
		bell_note(bell, writes[i].key, block_version(m->block));
	bell_wake(bell);
}

static int memory_commit(struct weir_store *self, uint64_t session,
			 const struct weir_store_check *checks, size_t check_count,
			 const struct weir_store_write *writes, size_t write_count,
			 uint64_t *version)
{
	struct memory *m = (struct memory *)self;
	bool other;
	int r = memory_lock(m, &other);

	if (r != 0)
		return r;
	/* A commit that was based on a reading of the other store is not written to this one. */
	if (other)
		return unlock(m, session != 0 ? -ESTALE : -EAGAIN);
	r = block_commit(m->block, now_of(m), session, checks, check_count, writes, write_count);
	*version = block_version(m->block);
	if (r == 0)
		report(m, writes, write_count);
	return unlock(m, r);
}

static int memory_read(struct weir_store *self, const char *const *prefixes, size_t count,
		       weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct memory *m = (struct memory *)self;
	int r = lock(m);

	if (r != 0)
		return r;
	block_read(m->block, now_of(m), prefixes, count, row, arg);
	*view = (struct weir_store_view){
		.version = block_version(m->block),
		.proven = m->shared ? now_of(m) - m->block->since : WEIR_FOREVER,
	};
	return unlock(m, 0);
}

static void memory_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	const struct memory *m = (struct memory *)self;

	*caps = (struct weir_store_caps){
		.ttl_min = WEIR_MS,
		.note = m->shared
				? "Versions rise over restarts of the machine only as long as its "
				  "wall clock does not go back."
				: "The store ends with the process.",
	};
}

static void memory_error(struct weir_store *self, char *text, size_t size)
{
	(void)snprintf(text, size, "%s", ((struct memory *)self)->why);
}

static void memory_close(struct weir_store *self)
{
	struct memory *m = (struct memory *)self;

	memory_unmap(m);
	free(m);
}

static const struct weir_store_ops memory_ops = {
	.size = sizeof(memory_ops),
	.name = "memory",
	.begin = memory_begin,
	.keep = memory_keep,
	.end = memory_end,
	.commit = memory_commit,
	.read = memory_read,
	.caps = memory_caps,
	.error = memory_error,
	.close = memory_close,
	.watch_open = memory_watch_open,
	.watch_wait = memory_watch_wait,
	.watch_wake = memory_watch_wake,
	.watch_close = memory_watch_close,
};

/* The negative errno of a failure that may pass; 0 if there is no such file for this process. */
static int passing(int error)
{
	const bool passes = error == EINTR || error == EMFILE || error == ENFILE ||
			    error == ENOMEM || error == EIO;

	return passes ? -error : 0;
}

/* Read the number of this boot; "" where there is no /proc. Returns 0 or a negative errno. */
static int read_boot_id(char *text, size_t room)
{
	ssize_t size;
	int fd, r = 0;

	text[0] = '\0';
	do {
		fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return passing(errno);
	do {
		size = read(fd, text, room - 1);
	} while (size < 0 && errno == EINTR);
	if (size < 0)
		r = passing(errno);
	else
		text[size] = '\0';
	close(fd);
	return r;
}

/* When and where a file was made. */
struct origin {
	uint64_t run;   /* the boot of the machine, with which all processes that used it end */
	uint64_t clock; /* the time namespace, in which times are comparable */
};

/*
 * That of a file that is made now. If it cannot be read for the moment, a process must not guess: it
 * would replace the store of others, as if it were left from before a restart.
 */
static int find_origin(struct origin *now, const char *name, char *why)
{
	struct stat space = {.st_ino = 0};
	char text[64];
	int r = read_boot_id(text, sizeof(text));

	if (r == 0 && stat("/proc/self/ns/time", &space) != 0)
		r = passing(errno);
	if (r != 0)
		return store_say(r, why, "%s: /proc cannot be read.", name);
	now->run = UINT64_C(0xcbf29ce484222325);
	for (const char *at = text; *at != '\0'; at++)
		now->run = (now->run ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	now->clock = space.st_ino;
	return 0;
}

static void *map(int fd, size_t size)
{
	const int how = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, how, fd, 0);

	return at != MAP_FAILED ? at : NULL;
}

static bool is_ready(const struct memory *m)
{
	return m->size >= BLOCK_BYTES_MIN &&
	       atomic_load_explicit(&m->block->ready, memory_order_acquire) == 1;
}

/* A signal undoes what one call has reserved, so it is done in pieces. Returns 0 or an errno. */
static int reserve(int fd, size_t bytes)
{
	unsigned tries = RESERVE_TRIES;
	size_t done = 0;

	while (done < bytes) {
		const size_t left = bytes - done, piece = left < PIECE ? left : PIECE;
		const int error = posix_fallocate(fd, (off_t)done, (off_t)piece);

		if (error == 0)
			done += piece;
		else if (error != EINTR || --tries == 0)
			return error;
	}
	return 0;
}

static int make_empty(int fd)
{
	int r;

	do {
		r = ftruncate(fd, 0);
	} while (r != 0 && errno == EINTR);
	return r;
}

/* Make the file empty, and then as large as it will be; or leave it empty. */
static int resize(int fd, size_t bytes)
{
	if (make_empty(fd) != 0)
		return -1;
	if (reserve(fd, bytes) == 0)
		return 0;
	(void)make_empty(fd);
	return -1;
}

/* Replaces whatever is in the file; no process can be using that. */
static int make_file(struct memory *m, int fd, size_t bytes, const struct origin *now,
		     const char *name, char *why)
{
	if (m->block != NULL)
		munmap(m->block, m->size);
	m->block = NULL;
	if (resize(fd, bytes) != 0)
		return store_say(-ENOSPC, why, "%s: there is no space for it.", name);
	m->size = bytes;
	m->block = map(fd, bytes);
	if (m->block == NULL)
		return store_say(-errno, why, "%s: cannot be mapped.", name);
	return block_make(m->block, bytes, now->run, now->clock, ns_of(CLOCK_BOOTTIME),
			  ns_of(CLOCK_REALTIME) / WEIR_US, true);
}

/*
 * Any user can put a file under the name. It is used if its owner is trusted, and if no users can
 * write to it except those that the mode would let write to a file of this process.
 */
static int check_owner(const struct memory *m, const struct stat *file, const char *name, char *why)
{
	const mode_t others = file->st_mode & (S_IWGRP | S_IWOTH) & ~m->mode;
	const bool any = (m->mode & S_IWOTH) != 0;
	const bool group = (m->mode & S_IWGRP) != 0 && file->st_gid == getegid();

	if (!S_ISREG(file->st_mode))
		return store_say(-EPROTO, why, "%s: not a regular file.", name);
	if (file->st_uid != geteuid() && file->st_uid != 0 && !any && !group)
		return store_say(-EPERM, why,
				 "%s: its owner, user %u, is not trusted: see shm_mode.", name,
				 (unsigned)file->st_uid);
	if (others != 0 && !any)
		return store_say(-EPERM, why, "%s: untrusted users can write to it: see shm_mode.",
				 name);
	return 0;
}

/*
 * Map the block in the file. It is made anew if there is none, if its creator died in the middle, or
 * if it was made before the machine was restarted.
 */
static int map_file(struct memory *m, int fd, size_t bytes, bool existing, const char *name,
		    char *why)
{
	struct origin now = {.run = 0};
	struct stat file;
	int r;

	if (fstat(fd, &file) != 0)
		return store_say(-errno, why, "%s: fstat() failed.", name);
	r = check_owner(m, &file, name, why);
	if (r == 0)
		r = find_origin(&now, name, why);
	if (r != 0)
		return r;
	m->size = (size_t)file.st_size;
	if (m->size > 0 && (m->block = map(fd, m->size)) == NULL)
		return store_say(-errno, why, "%s: cannot be mapped.", name);
	if (m->size > 0 && (m->size < BLOCK_BYTES_MIN ||
			    (m->block->magic != 0 && !block_is_ours(m->block, m->size))))
		return store_say(-EPROTO, why, "%s: not a store of this version.", name);
	if (m->block == NULL || !is_ready(m) || m->block->run != now.run)
		return existing ? store_say(-EPROTO, why, "%s: contains no store.", name)
				: make_file(m, fd, bytes, &now, name, why);
	if (m->block->clock != now.clock)
		return store_say(-EPROTO, why, "%s: created in another time namespace.", name);
	return 0;
}

static int check_block(struct memory *m, char *why)
{
	int r = lock_shared(m);
	bool sound;

	if (r != 0)
		return store_say(r, why, "%s: %s", m->name, m->why);
	sound = block_is_sound(m->block);
	pthread_mutex_unlock(&m->block->lock);
	return sound ? 0 : store_say(-EPROTO, why, "%s: the store is damaged.", m->name);
}

/* The process that has the lock creates or examines the store, and may be stopped. */
static int lock_file(const struct memory *m, int fd)
{
	const weir_time end = ns_of(CLOCK_MONOTONIC) + m->timeout;
	const struct timespec pause = {.tv_nsec = 1000000};

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (ns_of(CLOCK_MONOTONIC) >= end)
			return -EIO;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* The file stays open, so that its removal can be detected. */
int memory_open_file(struct memory *m, char *why)
{
	int r;

	do {
		m->fd = shm_open(m->name, O_RDWR | O_CLOEXEC | (m->existing ? 0 : O_CREAT),
				 m->mode);
	} while (m->fd < 0 && errno == EINTR);
	if (m->fd < 0 && errno == ENOENT)
		return store_say(-ENOENT, why, "%s: there is no such store.", m->name);
	if (m->fd < 0)
		return store_say(-errno, why, "%s: cannot be opened.", m->name);
	r = lock_file(m, m->fd);
	if (r == 0)
		r = map_file(m, m->fd, m->bytes, m->existing, m->name, why);
	else if (r == -EIO)
		(void)store_say(r, why, "%s: another process has locked it, and is stopped.",
				m->name);
	else
		(void)store_say(r, why, "%s: cannot be locked.", m->name);
	(void)flock(m->fd, LOCK_UN);
	return r == 0 ? check_block(m, why) : r;
}

static int open_private(struct memory *m, size_t bytes, char *why)
{
	m->size = bytes;
	m->block = map(-1, bytes);
	if (m->block == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	return block_make(m->block, bytes, 0, 0, 0, 0, false);
}

int memory_store_open(const struct store_setup *setup, struct weir_store **store, char *why)
{
	const struct weir_store_config *c = setup->config;
	const size_t bytes = c->shm_bytes != 0 ? c->shm_bytes : BYTES_DEFAULT;
	struct memory *m = calloc(1, sizeof(*m));
	int r;

	if (m == NULL)
		return store_say(-ENOMEM, why, "Out of memory.");
	*m = (struct memory){
		.store = {.ops = &memory_ops},
		.timeout = setup->timeout,
		.clock = c->clock,
		.shared = setup->address.scheme[0] != '\0',
		.fd = -1,
		.bytes = bytes,
		.mode = c->shm_mode != 0 ? (mode_t)c->shm_mode : MODE_DEFAULT,
		.existing = c->existing != 0,
	};
	(void)snprintf(m->name, sizeof(m->name), "%s", setup->address.path);
	if (bytes < BLOCK_BYTES_MIN || bytes > BYTES_MAX)
		r = store_say(-EINVAL, why, "shm_bytes must be from 64 KiB to 1 GiB.");
	else if (m->shared && c->clock != NULL)
		r = store_say(-EINVAL, why, "A shared store cannot have a clock of its own.");
	else if (m->shared)
		r = memory_open_file(m, why);
	else
		r = open_private(m, bytes, why);
	if (r != 0) {
		memory_unmap(m);
		free(m);
		return r;
	}
	*store = &m->store;
	return 0;
}
