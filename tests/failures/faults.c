/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of this thread: which call fails, and whether one has. */
static _Thread_local struct {
	bool armed, lasting, happened;
	enum fault kind;
	unsigned left;
	int error;
	const void *caller; /* of the allocation that failed last; NULL: none has */
	size_t size;
} next;

void fault_arm(enum fault kind, unsigned nth, int error, bool lasting)
{
	next.kind = kind;
	next.left = nth;
	next.error = error;
	next.lasting = lasting;
	next.happened = false;
	next.caller = NULL;
	next.armed = true;
}

bool fault_disarm(void)
{
	next.armed = false;
	return next.happened;
}

/* The libraries whose allocations fail; none: all. */
static struct {
	uintptr_t begin, end;
} chosen[8];

static unsigned chosen_count;

static int choose(struct dl_phdr_info *info, size_t size, void *arg)
{
	const unsigned i = chosen_count;

	(void)size;
	if (strstr(info->dlpi_name, arg) == NULL)
		return 0;
	if (i == sizeof(chosen) / sizeof(chosen[0]))
		abort();
	chosen[i].begin = info->dlpi_addr;
	for (unsigned k = 0; k < info->dlpi_phnum; k++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[k];
		const uintptr_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;

		if (part->p_type == PT_LOAD && end > chosen[i].end)
			chosen[i].end = end;
	}
	chosen_count++;
	return 0;
}

void fault_only_in(const char *library)
{
	(void)dl_iterate_phdr(choose, (void *)(uintptr_t)library);
}

static bool is_chosen(const void *caller)
{
	const uintptr_t at = (uintptr_t)caller;

	for (unsigned i = 0; i < chosen_count; i++)
		if (at >= chosen[i].begin && at < chosen[i].end)
			return true;
	return chosen_count == 0;
}

static bool fails(enum fault kind)
{
	if (!next.armed || next.kind != kind)
		return false;
	if (next.left > 1) {
		next.left--;
		return false;
	}
	next.happened = true;
	next.armed = next.lasting;
	errno = next.error;
	return true;
}

static bool is_refused(const void *caller, size_t size)
{
	if (!next.armed || next.kind != FAULT_MEMORY || !is_chosen(caller) || !fails(FAULT_MEMORY))
		return false;
	next.caller = caller;
	next.size = size;
	return true;
}

/* What is allocated. */

#define BLOCKS ((size_t)1 << 16)
#define GONE   ((void *)1) /* a block was here: search on */

static struct {
	void *at;
	const void *caller;
	size_t size;
} blocks[BLOCKS];

static size_t block_count;
static atomic_bool watching;
static atomic_flag blocks_lock = ATOMIC_FLAG_INIT;
static _Atomic size_t mapped;

static void lock_blocks(void)
{
	while (atomic_flag_test_and_set_explicit(&blocks_lock, memory_order_acquire))
		;
}

static void unlock_blocks(void)
{
	atomic_flag_clear_explicit(&blocks_lock, memory_order_release);
}

static size_t place_of(const void *at)
{
	return (size_t)(((uintptr_t)at >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48) % BLOCKS;
}

static void *note(void *at, size_t size, const void *caller)
{
	size_t i = place_of(at);

	if (at == NULL || !watching)
		return at;
	lock_blocks();
	if (block_count == BLOCKS / 2)
		abort();
	while (blocks[i].at != NULL && blocks[i].at != GONE)
		i = (i + 1) % BLOCKS;
	blocks[i].at = at;
	blocks[i].caller = caller;
	blocks[i].size = size;
	block_count++;
	unlock_blocks();
	return at;
}

/* Before the memory can be given to another thread. */
static void forget(const void *at)
{
	size_t i = place_of(at);

	if (at == NULL || !watching)
		return;
	lock_blocks();
	while (blocks[i].at != NULL && blocks[i].at != at)
		i = (i + 1) % BLOCKS;
	if (blocks[i].at == at) {
		blocks[i].at = GONE;
		block_count--;
	}
	unlock_blocks();
}

void holdings_watch(void)
{
	lock_blocks();
	memset(blocks, 0, sizeof(blocks));
	block_count = 0;
	watching = true;
	unlock_blocks();
}

/* The folder's own descriptor is one of them, always. */
static size_t files_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	if (folder == NULL)
		abort();
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

struct holdings holdings_take(void)
{
	struct holdings h = {.blocks = block_count, .mapped = mapped};

	h.files = files_open();
	return h;
}

static void show_place(const void *caller, size_t size, const char *what)
{
	Dl_info where = {.dli_fname = "?"};

	(void)dladdr(caller, &where);
	fprintf(stderr, "  %zu bytes %s by %s+%#zx (%s)\n", size, what, where.dli_fname,
		(size_t)((uintptr_t)caller - (uintptr_t)where.dli_fbase),
		where.dli_sname != NULL ? where.dli_sname : "?");
}

void fault_show(void)
{
	if (next.caller != NULL)
		show_place(next.caller, next.size, "refused, as asked");
}

void holdings_show(void)
{
	watching = false;
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i].at != NULL && blocks[i].at != GONE)
			show_place(blocks[i].caller, blocks[i].size, "left, allocated");
	watching = true;
}

/*
 * Allocations. The functions behind them are those of glibc, or of the address sanitizer, because
 * dlsym() allocates.
 */

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

#if defined(SANITIZED) || defined(__SANITIZE_ADDRESS__)
#define BEHIND(name) __interceptor_##name
#else
#define BEHIND(name) __libc_##name
#endif

/* Their names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *BEHIND(malloc)(size_t size);
void *BEHIND(calloc)(size_t count, size_t size);
void *BEHIND(realloc)(void *at, size_t size);
void *BEHIND(memalign)(size_t alignment, size_t size);
void BEHIND(free)(void *at);
/* NOLINTEND(bugprone-reserved-identifier) */

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
	return is_refused(CALLER, size) ? NULL : note(BEHIND(malloc)(size), size, CALLER);
}

void *calloc(size_t count, size_t size)
{
	if (is_refused(CALLER, count * size))
		return NULL;
	return note(BEHIND(calloc)(count, size), count * size, CALLER);
}

void *realloc(void *at, size_t size)
{
	void *to;

	if (is_refused(CALLER, size))
		return NULL;
	/* If it cannot be had, which does not happen here, the old one is missing from the list. */
	forget(at);
	to = BEHIND(realloc)(at, size);
	return note(to, size, CALLER);
}

static void *aligned(size_t alignment, size_t size, const void *caller)
{
	return is_refused(caller, size) ? NULL
					: note(BEHIND(memalign)(alignment, size), size, caller);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return aligned(alignment, size, CALLER);
}

void *memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size)
{
	return aligned(alignment, size, CALLER);
}

int posix_memalign(void **at, size_t alignment, size_t size)
{
	void *made = aligned(alignment, size, CALLER);

	if (made == NULL)
		return ENOMEM;
	*at = made;
	return 0;
}

void free(void *at)
{
	forget(at);
	BEHIND(free)(at);
}

/* System calls. */

/* The function of that name in the libraries behind this program. */
#define REAL(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&(name)) known;                                                  \
		__typeof__(&(name)) real = __atomic_load_n(&known, __ATOMIC_RELAXED);              \
		if (real == NULL) {                                                                \
			real = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name);                       \
			__atomic_store_n(&known, real, __ATOMIC_RELAXED);                          \
		}                                                                                  \
		real;                                                                              \
	})

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *made;

	if (fails(FAULT_MAP))
		return MAP_FAILED;
	made = REAL(mmap)(at, size, protection, flags, fd, offset);
	if (made != MAP_FAILED)
		mapped += size;
	return made;
}

int munmap(void *at, size_t size)
{
	mapped -= size;
	return REAL(munmap)(at, size);
}

int madvise(void *at, size_t size, int advice)
{
	return fails(FAULT_ADVISE) ? -1 : REAL(madvise)(at, size, advice);
}

static bool has_mode(int flags)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list list;

	if (has_mode(flags)) {
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
	}
	return fails(FAULT_OPEN) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list list;

	if (has_mode(flags)) {
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
	}
	return fails(FAULT_OPEN) ? -1 : REAL(openat)(folder, path, flags, mode);
}

int shm_open(const char *name, int flags, mode_t mode)
{
	return fails(FAULT_OPEN) ? -1 : REAL(shm_open)(name, flags, mode);
}

DIR *opendir(const char *path)
{
	return fails(FAULT_OPEN) ? NULL : REAL(opendir)(path);
}

/* What fopen() returns reads by the functions of this file, as stdio's own cannot be reached. */

static ssize_t cookie_read(void *cookie, char *to, size_t size)
{
	return read((int)(intptr_t)cookie, to, size);
}

static int cookie_close(void *cookie)
{
	return close((int)(intptr_t)cookie);
}

FILE *fopen(const char *path, const char *mode)
{
	const cookie_io_functions_t functions = {.read = cookie_read, .close = cookie_close};
	FILE *file;
	int fd;

	if (mode[0] != 'r' || mode[1] == '+')
		return REAL(fopen)(path, mode);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	file = fopencookie((void *)(intptr_t)fd, "r", functions);
	if (file == NULL)
		close(fd);
	return file;
}

ssize_t read(int fd, void *to, size_t size)
{
	return fails(FAULT_READ) ? -1 : REAL(read)(fd, to, size);
}

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
	return fails(FAULT_READ) ? -1 : REAL(pread)(fd, to, size, at);
}

struct dirent *readdir(DIR *folder)
{
	return fails(FAULT_READ) ? NULL : REAL(readdir)(folder);
}

ssize_t write(int fd, const void *from, size_t size)
{
	return fails(FAULT_WRITE) ? -1 : REAL(write)(fd, from, size);
}

int ftruncate(int fd, off_t size)
{
	return fails(FAULT_RESERVE) ? -1 : REAL(ftruncate)(fd, size);
}

int posix_fallocate(int fd, off_t offset, off_t size)
{
	return fails(FAULT_RESERVE) ? errno : REAL(posix_fallocate)(fd, offset, size);
}

int fstat(int fd, struct stat *file)
{
	return fails(FAULT_STAT) ? -1 : REAL(fstat)(fd, file);
}

int stat(const char *path, struct stat *file)
{
	return fails(FAULT_STAT) ? -1 : REAL(stat)(path, file);
}

ssize_t readlink(const char *restrict path, char *restrict to, size_t size)
{
	return fails(FAULT_STAT) ? -1 : REAL(readlink)(path, to, size);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
	if (fails(FAULT_LINK))
		return -1;
	return REAL(linkat)(from_folder, from, to_folder, to, flags);
}

int flock(int fd, int operation)
{
	if ((operation & LOCK_UN) == 0 && fails(FAULT_LOCK))
		return -1;
	return REAL(flock)(fd, operation);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
		   void *arg)
{
	if (fails(FAULT_THREAD))
		return errno;
	return REAL(pthread_create)(thread, attributes, work, arg);
}

ssize_t getrandom(void *to, size_t size, unsigned flags)
{
	return fails(FAULT_RANDOM) ? -1 : REAL(getrandom)(to, size, flags);
}

int getentropy(void *to, size_t size)
{
	return fails(FAULT_RANDOM) ? -1 : REAL(getentropy)(to, size);
}

int eventfd(unsigned count, int flags)
{
	return fails(FAULT_EVENT) ? -1 : REAL(eventfd)(count, flags);
}

int epoll_create1(int flags)
{
	return fails(FAULT_EVENT) ? -1 : REAL(epoll_create1)(flags);
}

int pipe2(int fds[2], int flags)
{
	return fails(FAULT_EVENT) ? -1 : REAL(pipe2)(fds, flags);
}

int socket(int domain, int type, int protocol)
{
	return fails(FAULT_SOCKET) ? -1 : REAL(socket)(domain, type, protocol);
}

int connect(int fd, const struct sockaddr *to, socklen_t size)
{
	return fails(FAULT_CONNECT) ? -1 : REAL(connect)(fd, to, size);
}

ssize_t send(int fd, const void *from, size_t size, int flags)
{
	return fails(FAULT_SEND) ? -1 : REAL(send)(fd, from, size, flags);
}

ssize_t sendto(int fd, const void *from, size_t size, int flags, const struct sockaddr *to,
	       socklen_t to_size)
{
	return fails(FAULT_SEND) ? -1 : REAL(sendto)(fd, from, size, flags, to, to_size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return fails(FAULT_SEND) ? -1 : REAL(sendmsg)(fd, message, flags);
}

ssize_t recv(int fd, void *to, size_t size, int flags)
{
	return fails(FAULT_RECEIVE) ? -1 : REAL(recv)(fd, to, size, flags);
}

ssize_t recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
		 socklen_t *from_size)
{
	return fails(FAULT_RECEIVE) ? -1 : REAL(recvfrom)(fd, to, size, flags, from, from_size);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return fails(FAULT_RECEIVE) ? -1 : REAL(recvmsg)(fd, message, flags);
}

/*
 * Code that is compiled with _FILE_OFFSET_BITS=64, as with hiredis, calls these by other names.
 * Where off_t has 64 bits anyway, they are the same functions.
 */
#if defined(__clang__)
#define SAME_AS(name) alias(#name)
#else
#define SAME_AS(name) alias(#name), copy(name)
#endif

#define ALSO_WITH_64(name)                                                                         \
	__typeof__(name) name##_with_64 __asm__(#name "64") __attribute__((SAME_AS(name)))

_Static_assert(sizeof(off_t) == 8, "off_t has 64 bits");

ALSO_WITH_64(mmap);
ALSO_WITH_64(open);
ALSO_WITH_64(openat);
ALSO_WITH_64(fopen);
ALSO_WITH_64(pread);
ALSO_WITH_64(readdir);
ALSO_WITH_64(ftruncate);
ALSO_WITH_64(posix_fallocate);
ALSO_WITH_64(fstat);
ALSO_WITH_64(stat);
