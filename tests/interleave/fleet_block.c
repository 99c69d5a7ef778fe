/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fleet's store in shared memory (fleet/store/memory.c, row_table.h): two halves, a flip, and
 * processes that die in the middle of a write.
 *
 * Each thread is a process with a handle of its own. The files of /dev/shm are the scene's: a call of
 * the system is one step, a death closes what the process has open, and every process maps a file at
 * the same address. A dead process leaves its stores in part, as far as it has not released them.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fleet/store/futex.h"
#include "fleet/store/memory.h"
#include "tests/interleave/explore.h"
#include "tests/interleave/memory.h"
#include "tests/interleave/schedule.h"
#include "tests/interleave/system.h"

#define BEGAN   (5 * WEIR_S) /* the time at which a scene begins, by all clocks */
#define TIMEOUT (3 * WEIR_MS)
#define TTL     ((weir_dur)100)
#define FD      1000 /* the first number of a file of the scene's */
#define FILES   2
#define OPEN    16

/* The scene's system is no part of what is explored. */
#define SYSTEM __attribute__((no_sanitize("thread")))

/* A file, and which of those that have it open has locked it. */
struct file {
	size_t size;
	bool linked;
	int lock; /* an index of opened[]; -1: none */
	struct view view;
};

static _Alignas(64) char bytes[FILES][BLOCK_BYTES_MIN];
static struct file files[FILES];
static struct {
	unsigned file, thread;
	bool closed;
} opened[OPEN];
static struct ghost calls; /* those that changed something, so far */
static struct ghost opens, removed;

/* A call of the system is one step. changes: others can notice it. */
SYSTEM static void enter_system(bool changes)
{
	if (!schedule_running())
		return;
	schedule_point(__builtin_return_address(0));
	if (changes)
		ghost_add(&calls, 1);
	else
		(void)ghost_get(&calls);
}

SYSTEM static struct file *file_of(int fd)
{
	return &files[opened[fd - FD].file];
}

/* The file that has the name is the first, or once that is removed the second one. */
SYSTEM int shm_open(const char *name, int flags, mode_t mode)
{
	struct file *file;
	int i;

	(void)name;
	(void)mode;
	enter_system(true);
	file = &files[removed.value];
	if (!file->linked && (flags & O_CREAT) == 0) {
		errno = ENOENT;
		return -1;
	}
	file->linked = true;
	i = (int)ghost_add(&opens, 1) - 1;
	require(i < OPEN);
	opened[i].file = (unsigned)removed.value;
	opened[i].thread = schedule_running() ? explore_self() : SCENE_THREADS;
	opened[i].closed = false;
	return FD + i;
}

SYSTEM static void remove_file(void)
{
	enter_system(true);
	files[removed.value].linked = false;
	ghost_add(&removed, 1);
}

/* A dead process has its file open no longer. All that it did is done. */
SYSTEM static void take_from_dead(struct file *file)
{
	const unsigned thread = file->lock >= 0 ? opened[file->lock].thread : SCENE_THREADS;

	if (thread == SCENE_THREADS || !explore_died(thread))
		return;
	memory_join(explore_self(), thread);
	file->lock = -1;
}

SYSTEM static void unlock_file(int fd)
{
	struct file *file = file_of(fd);

	if (file->lock != fd - FD)
		return;
	file->lock = -1;
	if (schedule_running())
		memory_release(explore_self(), &file->view);
}

SYSTEM int flock(int fd, int operation)
{
	struct file *file = file_of(fd);

	enter_system(true);
	if (operation == LOCK_UN) {
		unlock_file(fd);
		return 0;
	}
	take_from_dead(file);
	if (file->lock >= 0) {
		errno = EWOULDBLOCK;
		return -1;
	}
	file->lock = fd - FD;
	if (schedule_running())
		memory_acquire(explore_self(), &file->view);
	return 0;
}

SYSTEM int close(int fd)
{
	if (fd < FD)
		return (int)syscall(SYS_close, fd);
	enter_system(true);
	unlock_file(fd);
	opened[fd - FD].closed = true;
	return 0;
}

SYSTEM int fstat(int fd, struct stat *stat)
{
	enter_system(false);
	memset(stat, 0, sizeof(*stat));
	stat->st_mode = S_IFREG | 0600;
	stat->st_uid = geteuid();
	stat->st_size = (off_t)file_of(fd)->size;
	stat->st_nlink = file_of(fd)->linked;
	return 0;
}

SYSTEM int ftruncate(int fd, off_t size)
{
	enter_system(true);
	require(size == 0);
	file_of(fd)->size = 0;
	memset(bytes[opened[fd - FD].file], 0, sizeof(bytes[0]));
	return 0;
}

SYSTEM int posix_fallocate(int fd, off_t from, off_t size)
{
	enter_system(true);
	require(from == 0 && size == sizeof(bytes[0]));
	file_of(fd)->size = (size_t)size;
	return 0;
}

static bool stops_at_map; /* the process of thread 0 is stopped there until thread 1 ends */

SYSTEM void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t from)
{
	if (fd < FD)
		return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, from);
	require(size == sizeof(bytes[0]) && !opened[fd - FD].closed);
	if (stops_at_map && explore_self() == 0)
		explore_await_end(1);
	return bytes[opened[fd - FD].file];
}

SYSTEM static bool is_in_file(const void *at)
{
	return (uintptr_t)at - (uintptr_t)bytes < sizeof(bytes);
}

SYSTEM int munmap(void *at, size_t size)
{
	if (is_in_file(at))
		return 0;
	return (int)syscall(SYS_munmap, at, size);
}

/* The kernel looks at the word and puts the thread to sleep in one step. */
SYSTEM void futex_sleep(const _Atomic uint32_t *word, uint32_t seen, weir_time until)
{
	const void *pc = __builtin_return_address(0);

	if (memory_newest((void *)(uintptr_t)word, 4, pc) == seen)
		(void)schedule_sleep(word, until, pc);
}

static void *watch; /* of the process of thread 1; NULL: there is none, and no thread to wake */

SYSTEM void futex_wake(_Atomic uint32_t *word)
{
	if (watch == NULL)
		return;
	enter_system(true);
	if (schedule_running())
		schedule_wake(word, true);
}

/*
 * Copies and fills are looked at only in files, which are large; a file that is emptied as a whole
 * is not looked at.
 */

void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memset(void *to, int value, size_t size);
SYSTEM void *__wrap_memcpy(void *to, const void *from, size_t size);
SYSTEM void *__wrap_memset(void *to, int value, size_t size);

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	if (is_in_file(to)) {
		system_access((void *)(uintptr_t)from, size, false, __builtin_return_address(0));
		system_access(to, size, true, __builtin_return_address(0));
	}
	return __real_memcpy(to, from, size);
}

void *__wrap_memset(void *to, int value, size_t size)
{
	if (is_in_file(to) && size < sizeof(bytes[0]))
		system_access(to, size, true, __builtin_return_address(0));
	return __real_memset(to, value, size);
}

bool store_is_key(const char *text)
{
	return text[0] != '\0';
}

int store_say(int r, char *why, const char *format, ...)
{
	(void)why;
	(void)format;
	return r;
}

/* The processes: a handle of each, and one to look at the end. */
static struct weir_store *stores[SCENE_THREADS + 1];

static struct weir_store *store_of_self(void)
{
	return stores[schedule_running() ? explore_self() : SCENE_THREADS];
}

static int open_store(unsigned process)
{
	static char why[WHY_SIZE];
	const struct weir_store_config config = {.shm_bytes = BLOCK_BYTES_MIN};
	const struct store_setup setup = {
		.address = {.scheme = "shm", .path = "/scene"},
		.timeout = TIMEOUT,
		.config = &config,
	};

	return memory_store_open(&setup, &stores[process], why);
}

/*
 * Rows hold a number, as that many bytes and one that say it, so a half of one version and a half of
 * another are told apart.
 */
struct seen {
	unsigned rows, others;
	long number[2];
	uint64_t written[2];
	uint64_t version;
};

static bool see(void *arg, const struct weir_store_row *row)
{
	struct seen *seen = arg;
	const unsigned char *value = row->value;
	const unsigned which = row->key[2] == 'b';

	if (row->key[2] != 'a' && row->key[2] != 'b') {
		seen->others |= 1u << (row->key[2] - '0');
		return true;
	}
	seen->rows++;
	seen->number[which] = value[0];
	seen->written[which] = row->version;
	require(row->size == (size_t)(which == 0 ? value[0] + 1 : 30 - value[0]));
	for (size_t i = 0; i < row->size; i++)
		require(value[i] == value[0]);
	return true;
}

static int read_into(struct seen *seen)
{
	static const char *const prefixes[] = {"k/"};
	struct weir_store *store = store_of_self();
	struct weir_store_view view;
	int r;

	*seen = (struct seen){.rows = 0};
	r = store->ops->read(store, prefixes, 1, see, seen, &view);
	if (r == 0)
		seen->version = view.version;
	return r;
}

/* One complete version. */
static struct seen look(void)
{
	struct seen seen;

	require(read_into(&seen) == 0);
	require(seen.rows == 0 || seen.rows == 2);
	require(seen.number[0] == seen.number[1] && seen.written[0] == seen.written[1]);
	require(seen.written[0] <= seen.version);
	return seen;
}

#define ANY UINT64_MAX

/* Write a number, provided that the rows have that version; 0: that there are none. */
static int write_number(long number, uint64_t version)
{
	unsigned char value[32];
	const struct weir_store_check check = {
		"k/a", version != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT, version};
	const struct weir_store_write writes[] = {
		{"k/a", WEIR_STORE_WRITE_PUT, value, (size_t)number + 1},
		{"k/b", WEIR_STORE_WRITE_PUT, value, 30 - (size_t)number},
	};
	struct weir_store *store = store_of_self();
	uint64_t wrote;

	memset(value, (int)number, sizeof(value));
	return store->ops->commit(store, 0, &check, version != ANY, writes, 2, &wrote);
}

/* Write a row of the calling process; its number is its key. */
static int put(uint64_t session, uint64_t *version)
{
	const char key[] = {'k', '/', (char)('0' + explore_self()), '\0'};
	const struct weir_store_write write = {
		key, session != 0 ? WEIR_STORE_WRITE_BIND : WEIR_STORE_WRITE_PUT, "value", 5};
	struct weir_store *store = store_of_self();

	return store->ops->commit(store, session, NULL, 0, &write, 1, version);
}

static struct ghost acknowledged; /* numbers that were added, or rows put, as bits */
static struct ghost kept, ended;  /* how often the session was renewed, and ended */
static uint64_t session;

static void begin(void)
{
	for (unsigned i = 0; i < FILES; i++)
		files[i] = (struct file){.lock = -1};
	calls = opens = removed = acknowledged = kept = ended = (struct ghost){0};
	stops_at_map = false;
	watch = NULL;
	explore_pass(BEGAN);
	explore_name(&((struct block *)(void *)bytes[0])->current, "current");
	explore_name(&((struct block *)(void *)bytes[0])->ready, "ready");
	explore_name(&((struct block *)(void *)bytes[0])->lock, "lock");
	explore_name(&((struct block *)(void *)bytes[1])->current, "current of the second file");
}

/* A store that all have open; both rows have the number 1. */
static void setup_open(void)
{
	begin();
	for (unsigned i = 0; i <= SCENE_THREADS; i++)
		require(open_store(i) == 0);
	require(write_number(1, 0) == 0);
	ghost_add(&acknowledged, 1);
}

/* The same, with a session that has lasted for more than half of its time, and its row. */
static void setup_session(void)
{
	const struct weir_store_write write = {"k/9", WEIR_STORE_WRITE_BIND, "value", 5};
	struct weir_store *store;
	weir_dur granted;
	uint64_t version;

	setup_open();
	store = store_of_self();
	require(store->ops->begin(store, TTL, &session, &granted) == 0);
	require(store->ops->commit(store, session, NULL, 0, &write, 1, &version) == 0);
	explore_pass(60);
}

/* No file. */
static void setup_none(void)
{
	begin();
}

static void setup_stopped_open(void)
{
	begin();
	stops_at_map = true;
}

/* Add one to the number. It fails only if another process has done so since. */
static bool add(void)
{
	const struct seen before = look();
	const int r = write_number(before.number[0] + 1, before.written[0]);

	if (r == 0) {
		ghost_add(&acknowledged, 1);
		return true;
	}
	require(r == -EAGAIN && look().number[0] > before.number[0]);
	return false;
}

static void add_once(void)
{
	(void)add();
}

static void add_twice(void)
{
	(void)add();
	(void)add();
}

static void add_after_first(void)
{
	explore_await_end(0);
	require(add());
	require(add());
}

/* What was acknowledged before it reads is there, and a later reading shows no less. */
static void observe(void)
{
	uint64_t version = 0;

	for (unsigned i = 0; i < 2; i++) {
		const long least = ghost_get(&acknowledged);
		const struct seen seen = look();

		require(seen.number[0] >= least && seen.version >= version);
		version = seen.version;
	}
}

/* A number that was not acknowledged may be there, if its writer has died. */
static void check_numbers(void)
{
	const long more = look().number[0] - ghost_get(&acknowledged);

	require(more == 0 || (more == 1 && explore_died(0)));
}

static void keep(void)
{
	struct weir_store *store = store_of_self();
	weir_dur granted;

	require(store->ops->keep(store, session, &granted) == 0 && granted == TTL);
	ghost_add(&kept, 1);
}

/* The session lasts as it was renewed, and no longer. */
static void see_session_end(void)
{
	explore_await_end(0);
	explore_await_end(1);
	explore_pass(70);
	if (ghost_get(&kept) > 0)
		require((look().others >> 9 & 1) != 0);
	explore_pass(30);
	require((look().others >> 9 & 1) == 0);
}

static void put_bound(void)
{
	const bool over = ghost_get(&ended) > 0;
	uint64_t version;
	const int r = put(session, &version);

	require(r == -ESTALE || (r == 0 && !over));
}

static void end_session(void)
{
	struct weir_store *store = store_of_self();

	require(store->ops->end(store, session) == 0);
	ghost_add(&ended, 1);
}

/* No row outlives the session that it is bound to. */
static void check_unbound(void)
{
	const struct seen seen = look();

	require(ghost_get(&ended) == 0 || seen.others == 0);
}

static void open_and_put(void)
{
	uint64_t version;

	require(open_store(explore_self()) == 0);
	require(put(0, &version) == 0);
	require(version > BEGAN / WEIR_US);
	ghost_add(&acknowledged, 1L << explore_self());
}

static void check_put(void)
{
	require(open_store(SCENE_THREADS) == 0);
	require((ghost_get(&acknowledged) & ~(long)look().others) == 0);
}

/* Each commit of a handle has a higher version, in whichever file it is. */
static void put_rising(uint64_t *last)
{
	uint64_t version;
	int r = put(0, &version);

	if (r == -EAGAIN)
		r = put(0, &version);
	require(r == 0 && version > *last);
	*last = version;
}

/* Numbers of the second file are from 5, unless one is written there that was read in the first. */
static void write_and_put(void)
{
	const struct seen before = look();
	const int r = write_number(before.rows > 0 ? before.number[0] + 1 : 5, ANY);
	uint64_t last = before.version;

	require(r == 0 || r == -EAGAIN);
	put_rising(&last);
	explore_await_end(1);
	put_rising(&last);
	ghost_add(&acknowledged, 2L << explore_self());
}

static void check_second_file(void)
{
	const struct seen seen = look();

	require(seen.rows == 0 || seen.number[0] >= 5);
	require((ghost_get(&acknowledged) & ~1L & ~((long)seen.others << 1)) == 0);
}

static bool stop_at_row(void *arg, const struct weir_store_row *row)
{
	(void)row;
	explore_await_end(1);
	return see(arg, row);
}

static void read_and_stop(void)
{
	static const char *const prefixes[] = {"k/a"};
	struct weir_store_view view;
	struct seen seen = {.rows = 0};

	require(stores[0]->ops->read(stores[0], prefixes, 1, stop_at_row, &seen, &view) == 0);
	require(seen.number[0] >= 1);
}

/* How long a process waits for one that is stopped. */
static void read_beside_stopped(void)
{
	const uint64_t before = explore_now();
	struct seen seen;
	const int r = read_into(&seen);

	require(r == 0 || (r == -EIO && explore_now() == before + TIMEOUT));
}

static void add_after_stop(void)
{
	explore_await_end(0);
	require(add());
}

static void open_beside_stopped(void)
{
	const uint64_t before = explore_now();
	const int r = open_store(explore_self());

	require(r == 0 || (r == -EIO && explore_now() == before + TIMEOUT));
}

static void open_after_stop(void)
{
	uint64_t version;

	explore_await_end(0);
	require(open_store(explore_self()) == 0);
	require(put(0, &version) == 0);
}

static void open_first(void)
{
	require(open_store(explore_self()) == 0);
}

static void setup_watched(void)
{
	static const char *const prefixes[] = {"k/a", "k/b"};
	static char why[WHY_SIZE];

	setup_open();
	require(memory_watch_open(stores[1], prefixes, 2, &watch, why) == 0);
}

/* A change is reported at once; and later if its writer has died before it could say so. */
static void wait_for_change(void)
{
	struct weir_store_change change = {.key = ""};
	const uint64_t before = explore_now();
	const int r = memory_watch_wait(stores[1], watch, 10 * WEIR_S, &change);

	if (explore_died(0)) {
		require(r == 0 || look().number[0] == 1);
		return;
	}
	require(r == 0 && change.key[0] == 'k' && explore_now() == before);
	require(look().written[0] >= change.version && change.version > 0);
}

static void wait_for_wake(void)
{
	struct weir_store_change change = {.key = ""};
	const uint64_t before = explore_now();

	require(memory_watch_wait(stores[1], watch, 10 * WEIR_S, &change) == -ECANCELED);
	require(explore_now() == before);
}

static void wake_watch(void)
{
	memory_watch_wake(stores[1], watch);
}

/* Another process makes changes that are not watched, each of which wakes the thread. */
static void put_unwatched(void)
{
	uint64_t version;

	require(put(0, &version) == 0);
}

static const struct scene scenes[] = {
	{
		.name = "block.commit",
		.claim = "what is read is one complete version, with all that was acknowledged",
		.no_timeouts = true,
		.mortal = 1,
		.torn = true,
		.setup = setup_open,
		.threads = {add_twice, add_once, observe},
		.check = check_numbers,
	},
	{
		.name = "block.successor",
		.claim = "the next writer goes on after a death, at once",
		.no_timeouts = true,
		.mortal = 1,
		.torn = true,
		.setup = setup_open,
		.threads = {add_twice, add_after_first},
		.check = check_numbers,
	},
	{
		.name = "block.session",
		.claim = "a session that was renewed lasts through copies, and ends",
		.no_timeouts = true,
		.mortal = 1,
		.torn = true,
		.setup = setup_session,
		.threads = {keep, add_once, see_session_end},
	},
	{
		.name = "block.over",
		.claim = "no row is bound to a session that is over",
		.no_timeouts = true,
		.mortal = 1 | 2,
		.torn = true,
		.setup = setup_session,
		.threads = {put_bound, end_session},
		.check = check_unbound,
	},
	{
		.name = "block.create",
		.claim =
			"processes that open it first have one store, though one dies in the middle",
		.no_timeouts = true,
		.mortal = 1,
		.torn = true,
		.setup = setup_none,
		.threads = {open_and_put, open_and_put},
		.check = check_put,
	},
	{
		.name = "block.removed",
		.claim = "after a removal all go on in one new file, in which versions rise",
		.no_timeouts = true,
		.no_stale = true, /* all is read under a lock */
		.setup = setup_open,
		.threads = {write_and_put, remove_file, write_and_put},
		.check = check_second_file,
	},
	{
		.name = "block.stopped",
		.claim =
			"a stopped process that has the lock is waited for no longer than the timeout",
		.no_timeouts = true,
		.setup = setup_open,
		.threads = {read_and_stop, read_beside_stopped, add_after_stop},
	},
	{
		.name = "block.stopped_open",
		.claim =
			"a stopped process that has the file's lock is waited for no longer either",
		.no_timeouts = true,
		.setup = setup_stopped_open,
		.threads = {open_first, open_beside_stopped, open_after_stop},
	},
	{
		.name = "block.watch",
		.claim = "a thread that watches hears of each change, though its writer dies",
		.no_timeouts = true,
		.mortal = 1,
		.torn = true,
		.setup = setup_watched,
		.threads = {add_once, wait_for_change},
	},
	{
		.name = "block.woken",
		.claim = "a thread that watches can be woken by another one of its process",
		.no_timeouts = true,
		.setup = setup_watched,
		.threads = {put_unwatched, wait_for_wake, wake_watch},
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
