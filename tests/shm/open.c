/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening shared limiters: which files are accepted under a name, which owners are trusted, and
 * what happens when a system call fails. Cases that need a second user are skipped unless run as
 * root.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "lib/shm/shm.h"

#include "../stress/check.h"

#define OTHER_USER 65534u
#define MEMBERS    4

/* System calls of the library fail with that error when left has counted down to 1. */
static struct {
	int map, reserve, link;
	int error;
	bool unnamed;   /* unnamed files are not supported */
	bool dies;      /* instead of linking the file */
	bool interrupt; /* every reservation of more than a page */
} fault;

static bool fails(int *left)
{
	if (*left == 0 || --*left > 0)
		return false;
	errno = fault.error;
	return true;
}

/* The linker's names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);
int __real_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fd >= 0 && fails(&fault.map))
		return MAP_FAILED;
	return __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t size)
{
	if (fails(&fault.reserve))
		return fault.error;
	if (fault.interrupt && size > 4096)
		return EINTR;
	return __real_posix_fallocate(fd, offset, size);
}

int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
	if (fault.dies)
		_exit(0);
	if (fails(&fault.link))
		return -1;
	return __real_linkat(from_folder, from, to_folder, to, flags);
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
	if (fault.unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_open(path, flags, mode);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Unique to this run, so that several runs do not interfere. */
static char name[32], path[64];
static struct weir_config config;
static char why[300];

static int open_it(unsigned mode)
{
	struct weir_limiter *limiter;
	int r;

	why[0] = '\0';
	r = weir_shm_open(name, mode, &config, MEMBERS, &limiter, why, sizeof(why));
	CHECK((r == 0) == (limiter != NULL) && (r == 0) == (why[0] == '\0'));
	weir_shm_detach(limiter);
	return r;
}

static int open_of(uint32_t owner, unsigned mode)
{
	struct weir_limiter *limiter;
	const int r = weir_shm_open_of(name, owner, mode, &config, MEMBERS, &limiter, why,
				       sizeof(why));

	weir_shm_detach(limiter);
	return r;
}

static int observe_of(uint32_t owner)
{
	struct weir_limiter *limiter;
	const int r = weir_shm_open_observer_of(name, owner, &limiter, why, sizeof(why));

	weir_shm_detach(limiter);
	return r;
}

static int observe_it(void)
{
	struct weir_limiter *limiter;
	const int r = weir_shm_open_observer(name, &limiter, why, sizeof(why));

	CHECK((r == 0) == (limiter != NULL));
	weir_shm_detach(limiter);
	return r;
}

/*
 * Both functions refuse it with that error, in a sentence that begins with the name and contains
 * that text.
 */
static void refused(int error, const char *what)
{
	CHECK(open_it(0600) == error && strncmp(why, name, strlen(name)) == 0);
	CHECK(strstr(why, what) != NULL && why[strlen(why) - 1] == '.');
	CHECK(observe_it() == error && strstr(why, what) != NULL);
}

static void write_file(const char *bytes, off_t size, mode_t mode)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, mode);

	CHECK(fd >= 0 && ftruncate(fd, size) == 0);
	CHECK(pwrite(fd, bytes, strlen(bytes), 0) == (ssize_t)strlen(bytes));
	close(fd);
}

/* A file that is not a limiter is refused without waiting, and stays as it is. */
static void files_that_are_no_limiters(void)
{
	struct weir_limiter *limiter;
	char overlong[NAME_MAX + 2] = "";
	struct stat file;

	write_file("", 0, 0600);
	refused(-EPROTO, "the file is empty");
	CHECK(stat(path, &file) == 0 && file.st_size == 0 && unlink(path) == 0);
	write_file("hello", 5, 0600);
	CHECK(open_it(0600) == -EPROTO && observe_it() == -EPROTO);
	CHECK(stat(path, &file) == 0 && file.st_size == 5 && unlink(path) == 0);
	write_file("", 100000, 0600);
	CHECK(open_it(0600) == -EPROTO && observe_it() == -EPROTO && unlink(path) == 0);
	write_file("", (off_t)1 << 40, 0600);
	CHECK(open_it(0600) == -EPROTO && observe_it() == -EPROTO);
	CHECK(stat(path, &file) == 0 && file.st_blocks < 100 && unlink(path) == 0);
	CHECK(mkfifo(path, 0600) == 0);
	refused(-EPROTO, "not a regular file");
	CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
	CHECK(open_it(0600) == -EISDIR && observe_it() == -EPROTO && rmdir(path) == 0);
	CHECK(symlink("/dev/zero", path) == 0);
	refused(-ELOOP, "cannot be opened");
	CHECK(unlink(path) == 0);
	CHECK(weir_shm_open("/a/b", 0600, &config, MEMBERS, &limiter, NULL, 0) == -EINVAL);
	CHECK(weir_shm_open(name, 0600, &config, 0, &limiter, NULL, 0) == -EINVAL);
	memset(overlong, 'x', NAME_MAX + 1);
	CHECK(weir_shm_open_observer(overlong, &limiter, NULL, 0) == -EINVAL);
	CHECK(weir_shm_open_observer("", &(struct weir_limiter *){NULL}, NULL, 0) == -EINVAL);
	CHECK(weir_shm_open_observer("/a/b", &(struct weir_limiter *){NULL}, NULL, 0) == -EINVAL);
}

static bool look_for_it(void *arg, const char *seen)
{
	*(bool *)arg = strcmp(seen, name) == 0;
	return !*(bool *)arg;
}

/* A file that begins as a limiter does is refused for what follows, and is found if it is whole. */
static void files_that_begin_like_limiters(void)
{
	static const struct {
		char magic[8];
		uint64_t size;
		const char *what;
		bool found;
	} cases[] = {
		{"weirdos", 8, "not a shared limiter", false},
		{SHM_MAGIC, 8, "another version", true},
		{SHM_MAGIC, UINT64_C(1) << 40, "is truncated", false},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct shm_beginning b = {.ready = SHM_READY, .size = cases[i].size};
		const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
		bool found = false;

		memcpy(b.magic, cases[i].magic, sizeof(b.magic));
		CHECK(fd >= 0 && ftruncate(fd, 100000) == 0);
		CHECK(pwrite(fd, &b, sizeof(b), 0) == (ssize_t)sizeof(b));
		close(fd);
		CHECK(open_it(0600) == -EPROTO && strstr(why, cases[i].what) != NULL);
		CHECK(weir_shm_names_visit(look_for_it, &found) >= 0 && found == cases[i].found);
		CHECK(unlink(path) == 0);
	}
}

/* Truncated at any length, or extended: a block is mapped up to its end, and no further. */
static void truncated_files(void)
{
	struct stat file;
	struct weir_limiter *limiter;

	CHECK(open_it(0600) == 0 && stat(path, &file) == 0);
	CHECK(truncate(path, file.st_size + 1000000) == 0 && open_it(0600) == 0 &&
	      observe_it() == 0);
	CHECK(truncate(path, file.st_size - 1) == 0);
	refused(-EPROTO, "is truncated");
	CHECK(truncate(path, 60) == 0 && open_it(0600) == -EPROTO && observe_it() == -EPROTO);
	CHECK(truncate(path, 20) == 0 && open_it(0600) == -EPROTO && observe_it() == -EPROTO);
	CHECK(shm_unlink(name) == 0 && observe_it() == -ENOENT);
	CHECK(weir_shm_open(name, 0600, NULL, 0, &limiter, why, sizeof(why)) == -ENOENT);
}

/* Whether this process has left a temporary name behind. */
static bool leaves_temporary_name(void)
{
	const struct dirent *entry;
	DIR *folder = opendir("/dev/shm");
	bool leaves = false;
	char begin[32];

	CHECK(folder != NULL);
	snprintf(begin, sizeof(begin), ".weir-%d-", (int)getpid());
	while ((entry = readdir(folder)) != NULL)
		leaves |= strncmp(entry->d_name, begin, strlen(begin)) == 0;
	closedir(folder);
	return leaves;
}

/* Whatever fails, a limiter in use continues unchanged, and there is never half a limiter. */
static void failing_calls(void)
{
	struct weir_limiter *limiter;
	struct weir_token token;

	fault.error = ENOMEM;
	for (unsigned i = 0; i < 2; i++) {
		fault.map = (int)i + 1; /* of the creator; of the process that attaches */
		CHECK(open_it(0600) == -ENOMEM && strstr(why, "cannot be mapped") != NULL);
		CHECK(observe_it() == (i == 0 ? -ENOENT : 0));
	}
	CHECK(shm_unlink(name) == 0);
	fault.error = ENOSPC;
	fault.reserve = 1;
	CHECK(open_it(0600) == -ENOSPC && strstr(why, "not enough memory") != NULL &&
	      observe_it() == -ENOENT);
	fault.error = EIO;
	fault.link = 1;
	CHECK(open_it(0600) == -EIO && observe_it() == -ENOENT);

	CHECK(weir_shm_open(name, 0600, &config, MEMBERS, &limiter, NULL, 0) == 0);
	CHECK(weir_try_acquire(limiter, &token) == 0);
	fault.error = ENOMEM;
	fault.map = 1;
	CHECK(open_it(0600) == -ENOMEM);
	CHECK(weir_inflight(limiter) == 1);
	CHECK(open_it(0600) == 0 && weir_inflight(limiter) == 1);
	weir_release(limiter, &token, WEIR_SUCCESS);
	CHECK(weir_inflight(limiter) == 0);
	weir_shm_detach(limiter);
	CHECK(shm_unlink(name) == 0);
}

/* Signals come at intervals shorter than it takes to reserve a large block in one piece. */
static void interrupted(void)
{
	fault.interrupt = true;
	CHECK(open_it(0600) == 0 && observe_it() == 0 && shm_unlink(name) == 0);
	fault.interrupt = false;
	fault.error = EINTR;
	fault.reserve = 1;
	CHECK(open_it(0600) == 0 && shm_unlink(name) == 0);
}

static pid_t start(void (*child)(void))
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		child();
		_exit(0);
	}
	return pid;
}

static void run(void (*child)(void))
{
	const pid_t pid = start(child);
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void die_before_the_link(void)
{
	fault.dies = true;
	(void)open_it(0600);
	_exit(1);
}

/* A creator that dies leaves nothing, and the next one creates the limiter. */
static void creators_die(void)
{
	run(die_before_the_link);
	CHECK(observe_it() == -ENOENT && open_it(0600) == 0 && observe_it() == 0);
	CHECK(shm_unlink(name) == 0);
}

static void hold_and_leave(void)
{
	struct weir_limiter *limiter;
	struct weir_token token;

	for (unsigned i = 0; i < 50; i++) {
		CHECK(weir_shm_open(name, 0600, &config, 64, &limiter, why, sizeof(why)) == 0);
		CHECK(weir_try_acquire(limiter, &token) == 0);
		weir_release(limiter, &token, WEIR_SUCCESS);
		weir_shm_detach(limiter);
		(void)shm_unlink(name);
	}
}

/* Created by one, opened by others and removed by any of them, at the same time. */
static void all_at_once(void)
{
	pid_t child[8];
	int status;

	for (unsigned i = 0; i < 8; i++)
		child[i] = start(hold_and_leave);
	for (unsigned i = 0; i < 8; i++) {
		CHECK(waitpid(child[i], &status, 0) == child[i]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	(void)shm_unlink(name);
}

/* On systems that do not support unnamed files. */
static void without_unnamed_files(void)
{
	fault.unnamed = true;
	CHECK(open_it(0600) == 0 && observe_it() == 0 && !leaves_temporary_name());
	CHECK(shm_unlink(name) == 0);
	all_at_once();
	fault.error = EIO;
	fault.link = 1;
	CHECK(open_it(0600) == -EIO && observe_it() == -ENOENT && !leaves_temporary_name());
	fault.unnamed = false;
}

static void become_other_user(void)
{
	CHECK(setresgid(OTHER_USER, OTHER_USER, OTHER_USER) == 0);
	CHECK(setresuid(OTHER_USER, OTHER_USER, OTHER_USER) == 0);
}

static mode_t strangers_mode;

static void create_as_other_user(void)
{
	become_other_user();
	umask(0);
	CHECK(open_it(strangers_mode) == 0);
}

static void squat_as_other_user(void)
{
	become_other_user();
	umask(0);
	write_file("", 0, strangers_mode);
}

static void open_as_other_user(void)
{
	become_other_user();
	CHECK(observe_it() == 0 && observe_of(1) == 0);
	CHECK(open_it(0600) == -EACCES && strstr(why, "it belongs to user 0") != NULL);
}

static int locked[2]; /* a pipe: written to when the lock is held */

static void lock_as_other_user(void)
{
	int fd;

	become_other_user();
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
	CHECK(write(locked[1], "", 1) == 1);
	pause();
}

static bool see_owner(void *arg, const struct weir_shm_file *file)
{
	if (strcmp(file->name, name) == 0)
		*(struct weir_shm_file *)arg = *file;
	return true;
}

/* The mode that a caller would give the file says which users it trusts. */
static void other_users(void)
{
	struct weir_shm_file seen = {.owner = 0};
	struct stat file;

	strangers_mode = 0600;
	run(create_as_other_user);
	CHECK(weir_shm_files_visit(see_owner, &seen) > 0);
	CHECK(seen.owner == OTHER_USER && seen.group == OTHER_USER && seen.mode == 0600);
	refused(-EPERM, "belongs to user 65534");
	CHECK(open_it(0660) == -EPERM && observe_of(1) == -EPERM && open_of(1, 0600) == -EPERM);
	CHECK(observe_of(OTHER_USER) == 0 && open_of(OTHER_USER, 0600) == 0);
	CHECK(observe_of(WEIR_SHM_ANY_USER) == 0 && open_of(WEIR_SHM_ANY_USER, 0600) == 0);
	CHECK(open_it(0666) == 0 && shm_unlink(name) == 0);

	strangers_mode = 0660;
	run(create_as_other_user);
	CHECK(observe_of(OTHER_USER) == 0 && open_of(OTHER_USER, 0660) == 0);
	CHECK(open_of(OTHER_USER, 0600) == -EPERM && strstr(why, "group 65534") != NULL);
	CHECK(setegid(OTHER_USER) == 0 && open_it(0600) == -EPERM && open_it(0660) == 0);
	CHECK(observe_it() == -EPERM && setegid(0) == 0 && shm_unlink(name) == 0);

	strangers_mode = 0666;
	run(create_as_other_user);
	CHECK(observe_of(OTHER_USER) == -EPERM && strstr(why, "lets every user") != NULL);
	CHECK(open_of(OTHER_USER, 0660) == -EPERM && open_it(0666) == 0);
	CHECK(observe_of(WEIR_SHM_ANY_USER) == 0 && shm_unlink(name) == 0);

	/* A name that is taken stays as it is, even where root could write to it. */
	run(squat_as_other_user);
	refused(-EPERM, "belongs to user 65534");
	CHECK(stat(path, &file) == 0 && file.st_size == 0 && unlink(path) == 0);
}

/* Other users trust files of root, as far as they may read them. */
static void files_of_root(void)
{
	const mode_t before = umask(022);
	pid_t child;
	char byte;

	CHECK(open_it(0644) == 0);
	run(open_as_other_user);
	/* A lock that a user holds with read permission only holds up no other process. */
	CHECK(pipe(locked) == 0);
	child = start(lock_as_other_user);
	CHECK(read(locked[0], &byte, 1) == 1);
	CHECK(open_it(0644) == 0);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	CHECK(chmod(path, 0666) == 0 && observe_it() == -EPERM && open_it(0644) == -EPERM);
	CHECK(shm_unlink(name) == 0);
	umask(before);
}

int main(void)
{
	snprintf(name, sizeof(name), "/weir-open-%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	weir_config_init(&config);
	config.queue = 500; /* so that the block has several pages */
	files_that_are_no_limiters();
	files_that_begin_like_limiters();
	truncated_files();
	failing_calls();
	interrupted();
	creators_die();
	all_at_once();
	without_unnamed_files();
	if (geteuid() != 0) {
		puts("there is no second user: half of the test is skipped");
		return 0;
	}
	other_users();
	files_of_root();
	return 0;
}
