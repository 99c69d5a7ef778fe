/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes that share a limiter can rely on, one property after the other: addresses, names,
 * forks, waiting and waking, observers, refusals, and deaths at chosen points.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../stress/check.h"

#define LIMIT   3
#define MEMBERS 4

static struct weir_settable_config three = {.initial = LIMIT};

/* A block in an unnamed file. */
struct rig {
	struct weir_config config;
	size_t size;
	int fd;
	void *block;
	struct weir_limiter *limiter;
};

static void *map(const struct rig *rig, int protection)
{
	void *at = mmap(NULL, rig->size, protection, MAP_SHARED, rig->fd, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static struct rig rig_of(const struct weir_config *config)
{
	struct rig rig = {.config = *config, .size = weir_shm_size(config, MEMBERS)};

	rig.fd = memfd_create("weir", MFD_CLOEXEC);
	CHECK(rig.fd >= 0 && ftruncate(rig.fd, (off_t)rig.size) == 0);
	rig.block = map(&rig, PROT_READ | PROT_WRITE);
	CHECK(weir_shm_init(rig.block, rig.size, &rig.config, MEMBERS, NULL, 0) == 0);
	CHECK(weir_shm_attach(rig.block, rig.size, &rig.config, &rig.limiter, NULL, 0) == 0);
	return rig;
}

static struct weir_config settable(void)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &three;
	config.queue = 8;
	return config;
}

static struct rig make(void)
{
	struct weir_config config = settable();

	return rig_of(&config);
}

static void end(struct rig *rig)
{
	weir_shm_detach(rig->limiter);
	munmap(rig->block, rig->size);
	close(rig->fd);
}

static struct weir_limiter *join(const struct rig *rig)
{
	struct weir_limiter *limiter;

	CHECK(weir_shm_attach(rig->block, rig->size, NULL, &limiter, NULL, 0) == 0);
	return limiter;
}

static pid_t start(const struct rig *rig, void (*child)(const struct rig *rig))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		child(rig);
		_exit(0);
	}
	return pid;
}

static void await(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void run(const struct rig *rig, void (*child)(const struct rig *rig))
{
	await(start(rig, child));
}

static void kill_now(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* Wait until that many calls wait, or are in flight. */
static void until(uint32_t (*count)(const struct weir_limiter *limiter),
		  const struct weir_limiter *limiter, uint32_t number)
{
	while (count(limiter) != number)
		usleep(100);
}

static bool add_permits(void *sum, const struct weir_shm_member *member)
{
	*(uint32_t *)sum += member->permits;
	return true;
}

/* Permits that a reaping would return: one that a process is just taking may be in flight before. */
static uint32_t held(const struct weir_limiter *limiter)
{
	uint32_t sum = 0;

	CHECK(weir_shm_visit(limiter, add_permits, &sum) >= 1);
	return sum;
}

static char state_of(pid_t pid)
{
	char path[32], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	CHECK(file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
	fclose(file);
	return state;
}

/* Wait until the process is in a blocking call, so in the middle of nothing else. */
static void until_asleep(pid_t pid)
{
	while (state_of(pid) != 'S')
		usleep(100);
}

/* Map the block at another address, in another process. */
static void acquire_from_other_process(const struct rig *rig)
{
	void *at = map(rig, PROT_READ | PROT_WRITE);
	struct weir_limiter *limiter;
	struct weir_token token;

	CHECK(at != rig->block);
	CHECK(weir_shm_attach(at, rig->size, &rig->config, &limiter, NULL, 0) == 0);
	CHECK(weir_inflight(limiter) == LIMIT - 1);
	CHECK(weir_try_acquire(limiter, &token) == 0);
	CHECK(weir_try_acquire(limiter, &token) == -EAGAIN);
	weir_shm_detach(limiter);
}

static void any_address(void)
{
	struct weir_token token[LIMIT];
	struct rig rig = make();

	for (unsigned i = 0; i < LIMIT - 1; i++)
		CHECK(weir_try_acquire(rig.limiter, &token[i]) == 0);
	run(&rig, acquire_from_other_process);
	CHECK(weir_inflight(rig.limiter) == LIMIT - 1); /* detaching returns permits */
	CHECK(weir_try_acquire(rig.limiter, &token[2]) == 0);
	for (unsigned i = 0; i < LIMIT; i++)
		weir_release(rig.limiter, &token[i], WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 0);
	end(&rig);
}

/* Unique to this run, so that several runs do not interfere. */
static char name[32];

static void open_by_name(const struct rig *rig)
{
	struct weir_limiter *limiter;
	struct weir_token token;

	CHECK(weir_shm_open(name, 0600, &rig->config, 9, &limiter, NULL, 0) == 0);
	CHECK(weir_acquire(limiter, WEIR_FOREVER, &token) == 0);
	weir_release(limiter, &token, WEIR_SUCCESS);
	weir_limiter_destroy(limiter); /* detaches, too */
}

/* Many processes open a name at once, and one creates it; permissions are those of the file. */
static void by_name(void)
{
	struct rig rig = {.config = settable()};
	struct weir_limiter *limiter;
	struct weir_snapshot s;
	pid_t child[8];
	char why[200];
	char path[64];
	struct stat file;

	snprintf(name, sizeof(name), "/weir-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	CHECK(weir_shm_open(name, 0, NULL, 0, &limiter, why, sizeof(why)) == -ENOENT);
	CHECK(limiter == NULL && strstr(why, name) != NULL);
	CHECK(weir_shm_open_observer(name, &limiter, NULL, 0) == -ENOENT);
	for (unsigned i = 0; i < 8; i++)
		child[i] = start(&rig, open_by_name);
	for (unsigned i = 0; i < 8; i++)
		await(child[i]);
	CHECK(stat(path, &file) == 0 && (file.st_mode & 0777) == 0600);
	CHECK(weir_shm_open_observer(name, &limiter, NULL, 0) == 0);
	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	CHECK(s.admitted == 8 && s.inflight == 0 && s.limit == LIMIT);
	weir_shm_detach(limiter);
	CHECK(shm_unlink(name) == 0);
}

static bool is_ours(void *arg, const char *found)
{
	*(unsigned *)arg += strcmp(found, name) == 0;
	return true;
}

static bool stop_at_once(void *arg, const char *found)
{
	(void)found;
	++*(unsigned *)arg;
	return false;
}

static unsigned times_found(void)
{
	unsigned times = 0;

	CHECK(weir_shm_names_visit(is_ours, &times) >= (int)times);
	return times;
}

/* Files that are not, not yet or no longer limiters are not among the names. */
static void found_by_name(void)
{
	const struct weir_config config = settable();
	struct weir_limiter *limiter;
	struct weir_shm_info info;
	unsigned stopped = 0;
	char path[64];
	int fd;

	snprintf(name, sizeof(name), "/weir-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	CHECK(times_found() == 0);
	CHECK(mkdir(path, 0700) == 0 && times_found() == 0 && rmdir(path) == 0);
	CHECK(mkfifo(path, 0600) == 0 && times_found() == 0 && unlink(path) == 0);
	CHECK(symlink("/dev/zero", path) == 0 && times_found() == 0 && unlink(path) == 0);
	fd = shm_open(name, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && times_found() == 0);
	CHECK(ftruncate(fd, 100000) == 0 && times_found() == 0);
	CHECK(close(fd) == 0 && shm_unlink(name) == 0);
	CHECK(weir_shm_open(name, 0600, &config, MEMBERS, &limiter, NULL, 0) == 0);
	CHECK(times_found() == 1);
	fd = shm_open(name, O_RDWR, 0);
	CHECK(fd >= 0);
	CHECK(weir_shm_names_visit(stop_at_once, &stopped) == 1 && stopped == 1);
	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(limiter, &info) == 0);
	CHECK(info.queue == config.queue && info.order == WEIR_FIFO && info.shed == 0);
	CHECK(info.burst == 0 && info.parts == 0 && info.window_min > 0);
	CHECK(info.window_max >= info.window_min);
	weir_shm_detach(limiter);
	CHECK(ftruncate(fd, (off_t)info.bytes - 1) == 0 && times_found() == 0);
	CHECK(ftruncate(fd, 20) == 0 && times_found() == 0);
	close(fd);
	CHECK(shm_unlink(name) == 0 && times_found() == 0);
}

/* The token and the handle of the parent process. */
static struct weir_token parents_token;

static void use_parents_handle(const struct rig *rig)
{
	struct weir_limiter *old = rig->limiter, *own;
	struct weir_token token, copy = parents_token;
	struct weir_wait wait;
	struct weir_shm_info info;
	struct weir_snapshot s;
	char memory[WEIR_SAVED_MAX];

	CHECK(weir_try_acquire(old, &token) == -ESTALE);
	CHECK(weir_acquire(old, WEIR_FOREVER, &token) == -ESTALE);
	CHECK(weir_enqueue(old, NULL, NULL, &wait) == -ESTALE);
	CHECK(weir_poll(old, &wait, &token) == -EINVAL);
	CHECK(weir_cancel(old, &wait, &token) == -EINVAL);
	CHECK(weir_limit_set(old, 1) == -ESTALE);
	CHECK(weir_partitions_set(old, NULL, 0, NULL, 0) == -ESTALE);
	CHECK(weir_limiter_save(old, memory, sizeof(memory)) == -ESTALE);
	CHECK(weir_limiter_load(old, memory, sizeof(memory), 0, NULL, 0) == -ESTALE);
	CHECK(weir_shm_reap(old, NULL) == -ESTALE);
	CHECK(weir_shm_listen(old, 0) == -ESTALE);
	CHECK(weir_detach(old, &copy) == -ESTALE);
	CHECK(weir_limit_cap(old, 1) == -ESTALE && weir_queue_size(old) == 0);
	CHECK(weir_limiter_format(old, NULL, 0) == 0);
	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(old, &info) == -ESTALE);
	CHECK(weir_limit(old) == 0 && weir_inflight(old) == 0 && weir_waiting(old) == 0);
	CHECK(weir_delay_begin(old, 0) == 0 && weir_partition_find(old, "a") == 0);
	weir_delay_end(old, 0);
	weir_shadow_set(old, true);
	weir_queued(old, &copy, 1);
	weir_sample_at(old, 1, 2, 1, WEIR_SUCCESS);
	weir_snapshot_init(&s);
	weir_snapshot_take(old, &s);
	CHECK(s.limit == 0);
	weir_release(old, &copy, WEIR_SUCCESS);
	weir_shm_detach(old);
	weir_limiter_destroy(old);

	own = join(rig);
	CHECK(weir_inflight(own) == 1);
	copy = parents_token;
	CHECK(weir_detach(own, &copy) == -EINVAL);
	weir_release(own, &copy, WEIR_SUCCESS); /* not this process's token */
	CHECK(weir_try_acquire(own, &token) == 0);
	copy = parents_token;
	weir_release(own, &copy, WEIR_SUCCESS);
	CHECK(weir_inflight(own) == 2);
	weir_release(own, &token, WEIR_SUCCESS);
	weir_snapshot_take(own, &s);
	CHECK(s.double_released == 2);
	weir_shm_detach(own);
}

static void after_a_fork(void)
{
	struct rig rig = make();

	CHECK(weir_try_acquire(rig.limiter, &parents_token) == 0);
	run(&rig, use_parents_handle);
	CHECK(weir_inflight(rig.limiter) == 1);
	weir_release(rig.limiter, &parents_token, WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 0);
	end(&rig);
}

static void wait_for_two(const struct rig *rig)
{
	struct weir_limiter *limiter = join(rig);
	struct weir_token token[2];

	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_acquire(limiter, WEIR_FOREVER, &token[i]) == 0);
	for (unsigned i = 0; i < 2; i++)
		weir_release(limiter, &token[i], WEIR_SUCCESS);
	weir_shm_detach(limiter);
}

/* A release or a raised limit wakes a waiter in another process. */
static void wakes_others(void)
{
	struct weir_token token[LIMIT];
	struct rig rig = make();
	pid_t child;

	for (unsigned i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire(rig.limiter, &token[i]) == 0);
	child = start(&rig, wait_for_two);
	until(weir_waiting, rig.limiter, 1);
	CHECK(weir_limit_set(rig.limiter, LIMIT + 1) == 0);
	until(weir_inflight, rig.limiter, LIMIT + 1);
	until(weir_waiting, rig.limiter, 1);
	weir_release(rig.limiter, &token[0], WEIR_SUCCESS);
	await(child);
	CHECK(weir_inflight(rig.limiter) == LIMIT - 1);
	end(&rig);
}

static void notify(void *arg)
{
	++*(unsigned *)arg;
}

static void listen_for_a_permit(const struct rig *rig)
{
	struct weir_limiter *limiter = join(rig);
	struct weir_token token[2];
	struct weir_wait wait[2];
	unsigned notified[2] = {0, 0};

	CHECK(weir_shm_listen(limiter, weir_now() + WEIR_MS) == -ETIMEDOUT);
	CHECK(weir_enqueue(limiter, notify, &notified[0], &wait[0]) == 0);
	CHECK(weir_shm_listen(limiter, WEIR_FOREVER) == 0);
	CHECK(notified[0] == 1);
	CHECK(weir_poll(limiter, &wait[0], &token[0]) == 0);

	/* The same, but the waiter is polled before any thread listens. */
	CHECK(weir_enqueue(limiter, notify, &notified[1], &wait[1]) == 0);
	while (weir_poll(limiter, &wait[1], &token[1]) != 0)
		usleep(100);
	CHECK(weir_shm_listen(limiter, 0) == -ETIMEDOUT);
	CHECK(notified[1] == 0);
	weir_release(limiter, &token[1], WEIR_SUCCESS);

	/*
	 * If this process itself makes room, the callback runs at once: unless another process is
	 * handing out permits, as the parent may be until its release has returned.
	 */
	until_asleep(getppid());
	weir_release(limiter, &token[0], WEIR_SUCCESS);
	CHECK(weir_enqueue(limiter, notify, &notified[1], &wait[1]) == 0);
	CHECK(notified[1] == 1);
	CHECK(weir_cancel(limiter, &wait[1], &token[1]) == -EALREADY);
	weir_shm_detach(limiter);
}

static void notifies_others(void)
{
	struct weir_token token[LIMIT];
	struct rig rig = make();
	pid_t child;

	for (unsigned i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire(rig.limiter, &token[i]) == 0);
	child = start(&rig, listen_for_a_permit);
	for (unsigned i = 0; i < 2; i++) {
		until(weir_waiting, rig.limiter, 1);
		usleep(2000); /* most likely it is asleep by now */
		weir_release(rig.limiter, &token[i], WEIR_SUCCESS);
	}
	await(child);
	CHECK(weir_inflight(rig.limiter) == 1);
	end(&rig);
}

static bool note(void *arg, const struct weir_shm_member *member)
{
	struct weir_shm_member *seen = arg;

	*seen = *member;
	return true;
}

/* An observer sees everything and changes nothing: its pages are read-only. */
static void observes_and_changes_nothing(void)
{
	static const struct weir_partition parts[] = {{.name = "a", .share = 0.5}};
	struct weir_config config = settable();
	struct weir_limiter *watcher;
	struct weir_shm_member seen;
	struct weir_partition_snapshot part;
	struct weir_shm_info info;
	struct weir_snapshot s;
	struct weir_token token;
	struct weir_wait wait = {.slot = 0};
	struct rig rig;
	void *at;

	config.partitions = parts;
	config.partition_count = 1;
	rig = rig_of(&config);
	at = map(&rig, PROT_READ);
	CHECK(weir_shm_observe(at, rig.size, &watcher, NULL, 0) == 0);
	CHECK(weir_try_acquire(rig.limiter, &token) == 0);
	weir_snapshot_init(&s);
	weir_snapshot_take(watcher, &s);
	CHECK(s.limit == LIMIT && s.inflight == 1 && s.admitted == 1);
	weir_partition_snapshot_init(&part);
	CHECK(weir_partition_count(watcher) == 2);
	CHECK(weir_partition_snapshot_take(watcher, 1, &part) == 0);
	CHECK(strcmp(part.name, "a") == 0 && part.guarantee == 2);
	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(watcher, &info) == 0);
	CHECK(strcmp(info.limit, "settable") == 0 && info.settable == 1 && info.attached == 1);
	CHECK(info.members == MEMBERS && info.number == 0 && info.queue == 8);
	CHECK(info.bytes == rig.size);
	CHECK(weir_shm_visit(watcher, note, &seen) == 1);
	CHECK(seen.pid == getpid() && seen.permits == 1 && seen.calls == 1);
	CHECK(seen.life == WEIR_SHM_ALIVE);

	CHECK(weir_limit_set(watcher, 9) == -EACCES);
	CHECK(weir_limit_cap(watcher, 9) == -EACCES);
	CHECK(weir_delay_begin(watcher, 1) == 0);
	weir_delay_end(watcher, 1);
	CHECK(weir_partitions_set(watcher, NULL, 0, NULL, 0) == -EACCES);
	CHECK(weir_shm_reap(watcher, NULL) == -EACCES);
	CHECK(weir_enqueue(watcher, NULL, NULL, &wait) == -EACCES);
	CHECK(weir_poll(watcher, &wait, &token) == -EINVAL);
	weir_release(watcher, &token, WEIR_SUCCESS);
	weir_shadow_set(watcher, true);
	CHECK(weir_inflight(rig.limiter) == 1);
	weir_shm_detach(watcher);
	munmap(at, rig.size);
	end(&rig);
}

static int attach_to(void *block, size_t size, const struct weir_config *config)
{
	struct weir_limiter *limiter;
	char why[200] = "";
	int r = weir_shm_attach(block, size, config, &limiter, why, sizeof(why));

	CHECK((r == 0) == (limiter != NULL));
	CHECK(r == 0 || (why[0] != '\0' && why[strlen(why) - 1] == '.'));
	weir_shm_detach(limiter);
	return r;
}

static void refuses(void)
{
	static const struct weir_clock clock = {.now = NULL};
	struct weir_config config = settable();
	struct rig rig = make();
	char *bytes = rig.block;

	CHECK(weir_shm_init(NULL, rig.size, &config, MEMBERS, NULL, 0) == -EINVAL);
	CHECK(weir_shm_init(bytes + 8, rig.size, &config, MEMBERS, NULL, 0) == -EINVAL);
	CHECK(weir_shm_init(bytes, rig.size, &config, 0, NULL, 0) == -EINVAL);
	config.quantile = 2;
	CHECK(weir_shm_size(&config, MEMBERS) == 0);
	config.quantile = 0;
	CHECK(weir_shm_size(&config, 0) == 0);
	CHECK(weir_shm_size(&config, WEIR_SHM_MEMBERS_MAX + 1) == 0);
	CHECK(weir_shm_init(rig.block, rig.size - 1, &config, MEMBERS, NULL, 0) == -EINVAL);
	CHECK(attach_to(rig.block, rig.size, &config) == 0);
	CHECK(attach_to(rig.block, rig.size, NULL) == 0);
	CHECK(attach_to(NULL, rig.size, NULL) == -EINVAL);
	CHECK(attach_to(bytes + 8, rig.size - 8, NULL) == -EINVAL);
	CHECK(attach_to(bytes, rig.size - 1, NULL) == -EPROTO);
	CHECK(attach_to(bytes, 100, NULL) == -EPROTO);
	CHECK(attach_to(bytes + 4096, rig.size - 4096, NULL) == -EPROTO);
	config.queue++;
	CHECK(attach_to(bytes, rig.size, &config) == -EPROTO);
	config.queue--;
	config.limit = &weir_vegas;
	config.limit_config = NULL;
	CHECK(attach_to(bytes, rig.size, &config) == -EPROTO);
	config.clock = &clock;
	CHECK(attach_to(bytes, rig.size, &config) == -EINVAL);
	bytes[300] ^= 1; /* somewhere in the constants */
	CHECK(attach_to(bytes, rig.size, NULL) == -EPROTO);
	bytes[300] ^= 1;
	CHECK(attach_to(bytes, rig.size, NULL) == 0);
	end(&rig);
}

/* A process that expects another configuration than the block was made with is refused. */
static void refuses_other_configurations(void)
{
	static const struct weir_partition unknown = {.name = "unknown"};
	static struct weir_settable_config four = {.initial = 4};
	struct weir_partition parts[] = {{.name = "a", .share = 0.5, .cap = 0.9, .max = 9},
					 {.name = "b"}};
	const struct weir_partition same = parts[0];
	struct weir_config config = settable(), other;
	struct rig rig;

	config.partitions = parts;
	config.partition_count = 2;
	rig = rig_of(&config);
#define OTHER(field, value)                                                                        \
	do {                                                                                       \
		other = config;                                                                    \
		other.field = (value);                                                             \
		CHECK(attach_to(rig.block, rig.size, &other) == -EPROTO);                          \
	} while (0)
#define OTHER_PARTITION(field, value)                                                              \
	do {                                                                                       \
		parts[0].field = (value);                                                          \
		CHECK(attach_to(rig.block, rig.size, &config) == -EPROTO);                         \
		parts[0] = same;                                                                   \
	} while (0)
	OTHER(limit_config, &four);
	OTHER(limit_min, 2);
	OTHER(limit_max, 100);
	OTHER(queue, 9);
	OTHER(order, WEIR_LIFO);
	OTHER(queue_stand, WEIR_S);
	OTHER(partition_count, 1);
	OTHER(delayed_max, 3);
	OTHER(partition_hold, WEIR_S);
	OTHER(shed, 1);
	OTHER(shed_floor, 0.5);
	OTHER(burst, 1);
	OTHER(sample_rate, 10);
	OTHER(windowing, WEIR_WINDOW_SAMPLE);
	OTHER(rtt, WEIR_RTT_MIN);
	OTHER_PARTITION(name, "c");
	OTHER_PARTITION(share, 0.4);
	OTHER_PARTITION(cap, 0.8);
	OTHER_PARTITION(max, 8);
	OTHER_PARTITION(reject_delay, 1);
#undef OTHER
#undef OTHER_PARTITION
	CHECK(attach_to(rig.block, rig.size, &config) == 0);
	end(&rig);

	/* One partition that is named, and none: both have one row. */
	rig = make();
	config = settable();
	config.partitions = &unknown;
	config.partition_count = 1;
	CHECK(attach_to(rig.block, rig.size, &config) == -EPROTO);
	end(&rig);
}

static bool count_one(void *arg, const struct weir_shm_member *member)
{
	(void)member;
	++*(unsigned *)arg;
	return false;
}

/* What only a member of a shared limiter can do, and to whom. */
static void members_only(void)
{
	struct weir_config config = settable();
	struct rig rig = make();
	struct weir_limiter *other = join(&rig), *alone;
	struct weir_shm_info info;
	unsigned visited = 0;

	CHECK(weir_limiter_create(&config, &alone) == 0);
	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(alone, &info) == -ENOTSUP);
	CHECK(weir_shm_reap(alone, NULL) == -ENOTSUP);
	CHECK(weir_shm_evict(alone, 1, NULL) == -ENOTSUP);
	CHECK(weir_shm_listen(alone, 0) == -ENOTSUP);
	CHECK(weir_shm_visit(alone, count_one, &visited) == 0);
	weir_limiter_destroy(alone);

	CHECK(weir_shm_visit(rig.limiter, count_one, &visited) == 1 && visited == 1);
	CHECK(weir_shm_evict(rig.limiter, 0, NULL) == -EINVAL);
	CHECK(weir_shm_evict(rig.limiter, 1, NULL) == -EINVAL); /* itself */
	CHECK(weir_shm_evict(rig.limiter, MEMBERS, NULL) == -EINVAL);
	CHECK(weir_shm_evict(rig.limiter, MEMBERS + 1, NULL) == -EINVAL);
	weir_shm_detach(other);
	end(&rig);
}

/* A process can end no more delays than it began. */
static void delays_belong_to_a_process(void)
{
	static const struct weir_partition parts[] = {{.name = "a", .reject_delay = WEIR_MS}};
	struct weir_config config = settable();
	struct weir_partition_snapshot part;
	struct weir_limiter *other;
	struct rig rig;

	config.partitions = parts;
	config.partition_count = 1;
	config.delayed_max = 2;
	rig = rig_of(&config);
	other = join(&rig);
	weir_partition_snapshot_init(&part);
	CHECK(weir_delay_begin(rig.limiter, 1) == WEIR_MS);
	CHECK(weir_delay_begin(rig.limiter, 0) == 0 && weir_delay_begin(rig.limiter, 2) == 0);
	CHECK(weir_delay_begin(other, 1) == WEIR_MS);
	CHECK(weir_delay_begin(other, 1) == 0); /* two are delayed, the most */
	weir_delay_end(other, 1);
	weir_delay_end(other, 1);
	weir_delay_end(other, 2);
	CHECK(weir_partition_snapshot_take(rig.limiter, 1, &part) == 0 && part.delayed == 1);
	weir_delay_end(rig.limiter, 1);
	CHECK(weir_partition_snapshot_take(rig.limiter, 1, &part) == 0 && part.delayed == 0);
	CHECK(weir_delay_begin(other, 1) == WEIR_MS);
	weir_shm_detach(other);
	CHECK(weir_partition_snapshot_take(rig.limiter, 1, &part) == 0 && part.delayed == 0);
	end(&rig);
}

static void hold_one(const struct rig *rig)
{
	struct weir_limiter *limiter = join(rig);
	struct weir_token token;

	CHECK(weir_try_acquire(limiter, &token) == 0);
	pause();
}

/* When all leases are taken, that of a dead process is reused. A zombie counts as dead. */
static void leases_run_out(void)
{
	struct rig rig = make();
	struct weir_limiter *limiter;
	pid_t child[MEMBERS - 1];

	for (unsigned i = 0; i < MEMBERS - 1; i++)
		child[i] = start(&rig, hold_one);
	until(held, rig.limiter, MEMBERS - 1);
	CHECK(weir_shm_attach(rig.block, rig.size, NULL, &limiter, NULL, 0) == -ENOSPC);
	CHECK(kill(child[0], SIGKILL) == 0);
	while (weir_shm_attach(rig.block, rig.size, NULL, &limiter, NULL, 0) != 0)
		usleep(100);
	CHECK(waitpid(child[0], NULL, WNOHANG) == child[0]);
	CHECK(weir_inflight(limiter) == MEMBERS - 2);
	weir_shm_detach(limiter);
	for (unsigned i = 1; i < MEMBERS - 1; i++)
		kill_now(child[i]);
	CHECK(weir_shm_reap(rig.limiter, NULL) == 0);
	CHECK(weir_inflight(rig.limiter) == 0);
	end(&rig);
}

static void wait_forever(const struct rig *rig)
{
	struct weir_limiter *limiter = join(rig);
	struct weir_token token;

	(void)!weir_acquire(limiter, WEIR_FOREVER, &token);
	pause();
}

/* Waiters of a dead process leave the queue, granted or not. */
static void waiters_die(void)
{
	struct weir_token token[LIMIT];
	struct weir_shm_reaped reaped;
	struct rig rig = make();
	pid_t first, second;

	for (unsigned i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire(rig.limiter, &token[i]) == 0);
	first = start(&rig, wait_forever);
	until(weir_waiting, rig.limiter, 1);
	second = start(&rig, wait_forever);
	until(weir_waiting, rig.limiter, 2);
	/* A process that joins the queue may be handing out permits, which others then leave to it. */
	until_asleep(first);
	until_asleep(second);
	kill_now(first);
	weir_release(rig.limiter, &token[0], WEIR_SUCCESS); /* granted to a dead process */
	CHECK(weir_waiting(rig.limiter) == 1 && weir_inflight(rig.limiter) == LIMIT);
	CHECK(weir_shm_reap(rig.limiter, &reaped) == 0);
	CHECK(reaped.processes == 1);
	until(held, rig.limiter, LIMIT); /* the second waiter has been granted */
	CHECK(weir_waiting(rig.limiter) == 0 && weir_inflight(rig.limiter) == LIMIT);
	kill_now(second);
	CHECK(weir_shm_reap(rig.limiter, &reaped) == 0);
	CHECK(reaped.processes == 1);
	CHECK(weir_inflight(rig.limiter) == LIMIT - 1);
	end(&rig);
}

static struct weir_limit_ops on_top;

/* Two long-lived calls on top of the limit, and one ordinary call. */
static void hold_streams(const struct rig *rig)
{
	const struct weir_call costly = {.cost = 2};
	struct weir_limiter *limiter;
	struct weir_token token[3];

	CHECK(weir_shm_attach(rig->block, rig->size, &rig->config, &limiter, NULL, 0) == 0);
	CHECK(weir_try_acquire_for(limiter, &costly, &token[0]) == 0);
	CHECK(weir_detach(limiter, &token[0]) == 0);
	for (unsigned i = 1; i < 3; i++)
		CHECK(weir_try_acquire(limiter, &token[i]) == 0);
	CHECK(weir_detach(limiter, &token[1]) == 0);
	pause();
}

/* Detaching from the block lowers the limit, too. */
static void detach_and_leave(const struct rig *rig)
{
	struct weir_limiter *limiter;
	struct weir_token token;

	CHECK(weir_shm_attach(rig->block, rig->size, &rig->config, &limiter, NULL, 0) == 0);
	CHECK(weir_try_acquire(limiter, &token) == 0);
	CHECK(weir_detach(limiter, &token) == 0);
	CHECK(weir_limit(limiter) == LIMIT + 1);
	weir_shm_detach(limiter);
}

static uint32_t detached_in(const struct weir_limiter *limiter)
{
	struct weir_shm_member seen = {.number = 0};

	CHECK(weir_shm_visit(limiter, note, &seen) >= 1); /* the last one is the process itself */
	return seen.detached;
}

/* Detached calls raise the limit while they are held, and until their process is reaped. */
static void detached_calls_end_with_reaping(void)
{
	struct weir_config config = settable();
	struct weir_token token[2 * LIMIT];
	struct weir_shm_member dead;
	struct rig rig;
	pid_t child;

	on_top = weir_settable;
	on_top.flags |= WEIR_LIMIT_DETACHED;
	config.limit = &on_top;
	rig = rig_of(&config);
	CHECK(weir_try_acquire(rig.limiter, &token[0]) == 0);
	CHECK(weir_detach(rig.limiter, &token[0]) == 0);
	CHECK(detached_in(rig.limiter) == 1);
	child = start(&rig, hold_streams);
	until(weir_limit, rig.limiter, LIMIT + 4);
	CHECK(weir_inflight(rig.limiter) == 5 && detached_in(rig.limiter) == 3);
	kill_now(child);
	CHECK(weir_shm_visit(rig.limiter, note, &dead) == 2);
	CHECK(dead.life == WEIR_SHM_DEAD && dead.permits == 4 && dead.detached == 3);
	CHECK(weir_limit(rig.limiter) == LIMIT + 4);
	CHECK(weir_shm_reap(rig.limiter, NULL) == 0);
	CHECK(weir_limit(rig.limiter) == LIMIT + 1 && weir_inflight(rig.limiter) == 1);
	for (unsigned i = 1; i <= LIMIT; i++)
		CHECK(weir_try_acquire(rig.limiter, &token[i]) == 0);
	CHECK(weir_try_acquire(rig.limiter, &token[LIMIT + 1]) == -EAGAIN);
	for (unsigned i = 0; i <= LIMIT; i++)
		weir_release(rig.limiter, &token[i], WEIR_SUCCESS);
	CHECK(weir_limit(rig.limiter) == LIMIT && weir_inflight(rig.limiter) == 0);
	CHECK(detached_in(rig.limiter) == 0);

	run(&rig, detach_and_leave);
	CHECK(weir_limit(rig.limiter) == LIMIT && weir_inflight(rig.limiter) == 0);
	end(&rig);
}

/* A copy of a released token takes at most what its process has left. */
static void copies_of_detached_tokens(void)
{
	struct weir_config config = settable();
	struct weir_token token[2], copy, dear;
	struct weir_limiter *other;
	struct weir_snapshot s;
	struct rig rig;

	on_top = weir_settable;
	on_top.flags |= WEIR_LIMIT_DETACHED;
	config.limit = &on_top;
	rig = rig_of(&config);
	CHECK(weir_shm_attach(rig.block, rig.size, &config, &other, NULL, 0) == 0);
	CHECK(weir_try_acquire(rig.limiter, &token[0]) == 0);
	CHECK(weir_detach(rig.limiter, &token[0]) == 0);
	copy = token[0];
	CHECK(weir_detach(other, &copy) == 0); /* it is detached already */
	weir_release(other, &copy, WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 1 && weir_limit(rig.limiter) == LIMIT + 1);
	copy = token[0];
	weir_release(rig.limiter, &token[0], WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 0 && weir_limit(rig.limiter) == LIMIT);
	token[0] = copy;
	weir_release(rig.limiter, &token[0], WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 0 && weir_limit(rig.limiter) == LIMIT);

	CHECK(weir_try_acquire(other, &token[0]) == 0 && weir_detach(other, &token[0]) == 0);
	CHECK(weir_try_acquire(rig.limiter, &token[1]) == 0);
	dear = token[1];
	dear.cost = 2;
	weir_release(rig.limiter, &dear, WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 2);
	/* The copy costs its process the permit that it has, but others stay detached. */
	weir_release(rig.limiter, &copy, WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 1 && weir_limit(rig.limiter) == LIMIT + 1);
	weir_snapshot_init(&s);
	weir_snapshot_take(rig.limiter, &s);
	CHECK(s.double_released == 3);
	weir_release(other, &token[0], WEIR_SUCCESS);
	CHECK(weir_inflight(rig.limiter) == 0 && weir_limit(rig.limiter) == LIMIT);
	weir_shm_detach(other);
	end(&rig);
}

/* A limit whose process dies in the middle of an update, on request. */
struct fatal {
	uint32_t half, other_half;
};

static _Atomic uint32_t *fatal_now;

static double fatal_init(void *state, const void *config, double random)
{
	(void)config;
	(void)random;
	*(struct fatal *)state = (struct fatal){.half = 7, .other_half = 7};
	return 2;
}

static double fatal_update(void *state, const struct weir_window *w)
{
	struct fatal *f = state;

	(void)w;
	CHECK(f->half == f->other_half); /* no process sees a state that was left half changed */
	f->half++;
	if (atomic_load(fatal_now) != 0)
		raise(SIGKILL);
	f->other_half++;
	return f->half % 2 == 0 ? 2 : 3;
}

static const struct weir_limit_ops fatal = {
	.size = sizeof(fatal),
	.name = "fatal",
	.about = "Dies.",
	.version = 1,
	.state_size = sizeof(struct fatal),
	.init = fatal_init,
	.update = fatal_update,
};

static void close_a_window(struct weir_limiter *limiter)
{
	struct weir_token token;

	CHECK(weir_try_acquire(limiter, &token) == 0);
	weir_release_at(limiter, weir_now() + WEIR_MS, &token, WEIR_SUCCESS);
}

static uint64_t windows(const struct weir_limiter *limiter)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	return s.windows;
}

static void close_many(const struct rig *rig)
{
	struct weir_limiter *limiter;

	CHECK(weir_shm_attach(rig->block, rig->size, &rig->config, &limiter, NULL, 0) == 0);
	for (;;)
		close_a_window(limiter);
}

/* The window's owner dies: the limit does not change until it is reaped, and then continues. */
static void owners_die(void)
{
	struct weir_config config;
	uint64_t before;
	struct rig rig;
	pid_t child;

	fatal_now = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(fatal_now != MAP_FAILED);
	weir_config_init(&config);
	config.limit = &fatal;
	config.windowing = WEIR_WINDOW_SAMPLE;
	config.sample_rate = WEIR_SAMPLE_ALL; /* the child's calls are many */
	rig = rig_of(&config);
	close_a_window(rig.limiter);
	CHECK(windows(rig.limiter) == 1);
	child = start(&rig, close_many);
	atomic_store(fatal_now, 1);
	CHECK(waitpid(child, NULL, 0) == child);
	atomic_store(fatal_now, 0);
	before = windows(rig.limiter);
	close_a_window(rig.limiter);
	CHECK(windows(rig.limiter) == before); /* admitted, but the limit learns nothing */
	CHECK(weir_shm_reap(rig.limiter, NULL) == 0);
	close_a_window(rig.limiter);
	CHECK(windows(rig.limiter) > before);
	CHECK(weir_inflight(rig.limiter) == 0);
	end(&rig);
	munmap((void *)fatal_now, 4096);
}

static void attach_in_own_namespace(const struct rig *rig)
{
	pid_t child;

	if (unshare(CLONE_NEWPID) != 0)
		_exit(77);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct weir_limiter *limiter = join(rig);
		struct weir_token token;

		CHECK(weir_try_acquire(limiter, &token) == 0);
		_exit(0); /* dies without detaching */
	}
	await(child);
}

/* Nothing is known of a process of another pid namespace, except what an operator says. */
static void other_namespaces(void)
{
	struct weir_shm_member member = {.number = 0};
	struct weir_shm_reaped reaped;
	struct rig rig = make();
	pid_t child = start(&rig, attach_in_own_namespace);
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	if (WEXITSTATUS(status) == 77) {
		puts("namespaces are not to be had: skipped");
		end(&rig);
		return;
	}
	CHECK(weir_shm_reap(rig.limiter, &reaped) == 0);
	CHECK(reaped.processes == 0 && reaped.foreign == 1);
	CHECK(weir_inflight(rig.limiter) == 1);
	CHECK(weir_shm_visit(rig.limiter, note, &member) == 2);
	CHECK(member.life == WEIR_SHM_FOREIGN && member.permits == 1);
	CHECK(weir_shm_evict(rig.limiter, member.number + 1, NULL) == -EINVAL);
	CHECK(weir_shm_evict(rig.limiter, member.number, &reaped) == 0);
	CHECK(reaped.processes == 1 && reaped.permits == 1);
	CHECK(weir_inflight(rig.limiter) == 0);
	end(&rig);
}

int main(void)
{
	any_address();
	by_name();
	found_by_name();
	after_a_fork();
	wakes_others();
	notifies_others();
	observes_and_changes_nothing();
	refuses();
	refuses_other_configurations();
	members_only();
	delays_belong_to_a_process();
	leases_run_out();
	waiters_die();
	detached_calls_end_with_reaping();
	copies_of_detached_tokens();
	owners_die();
	other_namespaces();
	return 0;
}
