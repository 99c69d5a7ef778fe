/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight processes share a limiter: they acquire, wait, poll, cancel, detach, close windows. One
 * after the other is killed at any moment, and a new one replaces it. Others are stopped at any
 * moment, in the middle of a call, a window or a reaping, and continue later; one process is never
 * stopped, and never waits for one that is. The limit holds throughout, as shown by seats, of which
 * there are at most as many as permits. Afterwards all processes make progress, waiters are served,
 * the limit moves, and in the end nothing is in flight and nothing raises the limit.
 *
 *	kills KILLS [SEED]
 */

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../stress/check.h"

#define WORKERS 8
#define LIMIT   5

#define WHO  UINT64_C(0xff)
#define NEXT UINT64_C(0x100)

/* Kills between two stops that are longer than an audit, and how long these are, in microseconds. */
#define LONG_EVERY 100
#define LONG       1500000

/* Rounds that each worker must do after the last kill, and the seconds that this may take. */
#define GOES_ON  50
#define PATIENCE 60

struct worker {
	_Alignas(128) _Atomic uint64_t rounds;
	pid_t pid;
	bool stopped;
};

/* Shared besides the limiter: shows whether the limiter is right. */
struct table {
	/* The worker in each seat, from 1, or 0; above that, how often the seat was taken. */
	_Atomic uint64_t seat[LIMIT];
	_Atomic uint32_t seatless; /* permits that were acquired when no seat was free */
	_Atomic uint32_t over;     /* the workers must end */
	_Atomic uint32_t kept_out; /* reapings that another reaper kept out */
	struct worker worker[WORKERS];
};

static struct table *table;
static void *block;
static size_t block_size;

/* Detached calls raise the limit, up to LIMIT. */
static struct weir_limit_ops on_top;

static struct weir_config configuration(void)
{
	static const struct weir_partition parts[] = {{.name = "live", .share = 0.5}};
	static const struct weir_aimd_config aimd = {.initial = LIMIT, .min = 1, .max = LIMIT};
	struct weir_config config;

	weir_config_init(&config);
	on_top = weir_aimd;
	on_top.flags |= WEIR_LIMIT_DETACHED;
	config.limit = &on_top;
	config.limit_config = &aimd;
	config.windowing = WEIR_WINDOW_SAMPLE;
	config.limit_max = LIMIT;
	config.queue = 2 * WORKERS;
	config.partitions = parts;
	config.partition_count = 1;
	config.partition_hold = WEIR_MS;
	return config;
}

static void *share(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

static bool take_seat(uint32_t number, unsigned *seat)
{
	for (unsigned i = 0; i < LIMIT; i++) {
		uint64_t word = atomic_load(&table->seat[i]);

		*seat = i;
		if ((word & WHO) == 0 &&
		    atomic_compare_exchange_strong(&table->seat[i], &word, word + NEXT + number))
			return true;
	}
	return false;
}

/* All seats at once, and not one after the other: none changed between two looks. */
static bool all_taken(void)
{
	uint64_t seen[LIMIT];

	for (unsigned i = 0; i < LIMIT; i++) {
		seen[i] = atomic_load(&table->seat[i]);
		if ((seen[i] & WHO) == 0)
			return false;
	}
	for (unsigned i = 0; i < LIMIT; i++)
		if (atomic_load(&table->seat[i]) != seen[i])
			return false;
	return true;
}

static void sit(uint32_t number, uint64_t *random)
{
	unsigned seat;

	while (!take_seat(number, &seat)) {
		if (!all_taken())
			continue;
		atomic_fetch_add(&table->seatless, 1);
		return;
	}
	for (uint64_t n = draw(random) % 3000; n > 0; n--)
		atomic_signal_fence(memory_order_acq_rel);
	if (draw(random) % 4 == 0)
		usleep((useconds_t)(draw(random) % 1000));
	atomic_fetch_and(&table->seat[seat], ~WHO);
}

static int queue_up(struct weir_limiter *limiter, uint64_t *random, struct weir_token *token)
{
	struct weir_wait wait;

	if (weir_enqueue(limiter, NULL, NULL, &wait) != 0)
		return -EAGAIN;
	for (uint64_t n = draw(random) % 20; n > 0; n--)
		if (weir_poll(limiter, &wait, token) == 0)
			return 0;
	return weir_cancel(limiter, &wait, token) == -EALREADY ? 0 : -EAGAIN;
}

static int get(struct weir_limiter *limiter, uint64_t *random, struct weir_token *token)
{
	const struct weir_call live = {.partition = 1};

	switch (draw(random) % 5) {
	case 0:
		return weir_try_acquire(limiter, token);
	case 1:
		return weir_acquire(limiter, WEIR_FOREVER, token);
	case 2:
		return weir_acquire_for(limiter, &live, weir_now() + 200 * WEIR_US, token);
	case 3:
		return weir_acquire_for(limiter, &live, WEIR_FOREVER, token);
	default:
		return queue_up(limiter, random, token);
	}
}

/* A stopped reaper keeps others from reaping. */
static void reap(struct weir_limiter *limiter)
{
	const int r = weir_shm_reap(limiter, NULL);

	CHECK(r == 0 || r == -EAGAIN);
	if (r == -EAGAIN)
		atomic_fetch_add(&table->kept_out, 1);
}

static void work(uint32_t number, uint64_t random)
{
	struct worker *self = &table->worker[number - 1];
	struct weir_config config = configuration();
	struct weir_limiter *limiter;
	struct weir_token token;

	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	while (weir_shm_attach(block, block_size, &config, &limiter, NULL, 0) != 0)
		usleep(1000);
	while (atomic_load(&table->over) == 0) {
		if (get(limiter, &random, &token) == 0) {
			if (draw(&random) % 4 == 0)
				CHECK(weir_detach(limiter, &token) == 0);
			sit(number, &random);
			weir_release(limiter, &token,
				     draw(&random) % 8 == 0 ? WEIR_DROPPED : WEIR_SUCCESS);
		}
		if (draw(&random) % 16 == 0)
			reap(limiter);
		atomic_fetch_add(&self->rounds, 1);
	}
	weir_shm_detach(limiter);
	_exit(0);
}

static void start_worker(uint32_t number, uint64_t *random)
{
	const uint64_t seed = draw(random);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		work(number, seed);
	table->worker[number - 1].pid = pid;
	table->worker[number - 1].stopped = false;
}

static void stop_worker(uint32_t number)
{
	struct worker *worker = &table->worker[number - 1];
	int status;

	if (worker->stopped)
		return;
	CHECK(kill(worker->pid, SIGSTOP) == 0);
	CHECK(waitpid(worker->pid, &status, WUNTRACED) == worker->pid && WIFSTOPPED(status));
	worker->stopped = true;
}

static void continue_worker(uint32_t number)
{
	if (table->worker[number - 1].stopped)
		CHECK(kill(table->worker[number - 1].pid, SIGCONT) == 0);
	table->worker[number - 1].stopped = false;
}

/*
 * The seats of a process must be freed before its permits can be: as soon as it is dead, others may
 * reap it. So it is stopped first. Then it takes no more seats, and keeps its permits until it is
 * dead.
 */
static void kill_worker(uint32_t number)
{
	pid_t pid = table->worker[number - 1].pid;

	stop_worker(number);
	for (unsigned i = 0; i < LIMIT; i++)
		if ((atomic_load(&table->seat[i]) & WHO) == number)
			atomic_fetch_and(&table->seat[i], ~WHO);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* What the process does that is never stopped: each of these returns, whatever others do. */
static void go_on(struct weir_limiter *limiter, uint64_t *random)
{
	struct weir_token token;

	if (weir_try_acquire(limiter, &token) == 0) {
		sit(WORKERS + 1, random);
		weir_release(limiter, &token, WEIR_SUCCESS);
	}
	CHECK(weir_limit_cap(limiter, draw(random) % 2 == 0 ? LIMIT : LIMIT - 1) == 0);
	if (weir_acquire(limiter, weir_now() + 100 * WEIR_US, &token) == 0) {
		sit(WORKERS + 1, random);
		weir_release(limiter, &token, WEIR_SUCCESS);
	}
	if (draw(random) % 4 != 0)
		reap(limiter);
}

/* One of the others is stopped, or continues. */
static void stop_one(uint64_t *random)
{
	const uint32_t number = (uint32_t)(draw(random) % WORKERS) + 1;

	if (table->worker[number - 1].stopped)
		continue_worker(number);
	else
		stop_worker(number);
}

/* For so long that an audit ends meanwhile, which may find permits of the stopped process. */
static void stop_long(struct weir_limiter *limiter, uint64_t *random)
{
	const weir_time end = weir_now() + LONG * WEIR_US;

	for (unsigned i = 0; i < WORKERS / 2; i++)
		stop_one(random);
	while (weir_now() < end) {
		go_on(limiter, random);
		usleep(5000);
	}
}

static void kill_many(struct weir_limiter *limiter, unsigned kills, uint64_t *random)
{
	for (unsigned i = 0; i < kills; i++) {
		uint32_t number = (uint32_t)(draw(random) % WORKERS) + 1;

		usleep((useconds_t)(draw(random) % 3000));
		stop_one(random);
		go_on(limiter, random);
		kill_worker(number);
		go_on(limiter, random);
		start_worker(number, random);
		if (i % LONG_EVERY == LONG_EVERY / 2)
			stop_long(limiter, random);
	}
	for (uint32_t number = 1; number <= WORKERS; number++)
		continue_worker(number);
	CHECK(weir_limit_cap(limiter, WEIR_LIMIT_MAX) == 0);
}

static uint64_t least_rounds(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < WORKERS; i++) {
		uint64_t rounds = atomic_load(&table->worker[i].rounds);

		least = rounds < least ? rounds : least;
	}
	return least;
}

static struct weir_snapshot snapshot(const struct weir_limiter *limiter)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	return s;
}

/* All workers make progress, and the limit has more than one value. */
static void check_goes_on(struct weir_limiter *limiter)
{
	const uint64_t windows = snapshot(limiter).windows;
	const weir_time end = weir_now() + PATIENCE * WEIR_S;
	uint32_t seen = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		atomic_store(&table->worker[i].rounds, 0);
	while (least_rounds() < GOES_ON || (seen & (seen - 1)) == 0) {
		CHECK(weir_now() < end);
		reap(limiter);
		seen |= 1u << weir_limit(limiter);
		usleep(500);
	}
	CHECK(snapshot(limiter).windows > windows);
}

static uint32_t left_in(const struct weir_limiter *limiter)
{
	uint32_t left = weir_inflight(limiter) + weir_waiting(limiter);
	struct weir_partition_snapshot part;

	for (unsigned i = 0; i < weir_partition_count(limiter); i++) {
		weir_partition_snapshot_init(&part);
		CHECK(weir_partition_snapshot_take(limiter, i, &part) == 0);
		left += part.inflight;
	}
	return left;
}

/*
 * By how much the limit is raised, as a window shows when nothing is in flight. The call is one of
 * the partition's: at a limit of 1, the only permit may still be reserved for it.
 */
static uint32_t raised_by(struct weir_limiter *limiter)
{
	const struct weir_call live = {.partition = 1};
	struct weir_token token;

	CHECK(weir_try_acquire_for(limiter, &live, &token) == 0);
	weir_release_at(limiter, weir_now() + WEIR_MS, &token, WEIR_SUCCESS);
	return weir_limit(limiter) - snapshot(limiter).last.limit;
}

/* Permits that were on their way are found by an audit. */
static void check_empty(struct weir_limiter *limiter)
{
	const weir_time end = weir_now() + PATIENCE * WEIR_S;

	while (left_in(limiter) != 0 || raised_by(limiter) != 0) {
		CHECK(weir_now() < end);
		reap(limiter);
		usleep(10000);
	}
}

static void end_all(struct weir_limiter *limiter)
{
	int status;

	atomic_store(&table->over, 1);
	for (unsigned i = 0; i < WORKERS; i++) {
		while (waitpid(table->worker[i].pid, &status, WNOHANG) == 0) {
			reap(limiter);
			usleep(1000);
		}
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

int main(int argc, char **argv)
{
	const unsigned kills = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 200;
	uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 10) : 42;
	struct weir_config config = configuration();
	struct weir_limiter *limiter;
	struct weir_shm_info info;

	table = share(sizeof(*table));
	block_size = weir_shm_size(&config, WORKERS + 2);
	block = share(block_size);
	CHECK(weir_shm_init(block, block_size, &config, WORKERS + 2, NULL, 0) == 0);
	CHECK(weir_shm_attach(block, block_size, &config, &limiter, NULL, 0) == 0);
	for (uint32_t number = 1; number <= WORKERS; number++)
		start_worker(number, &random);

	kill_many(limiter, kills, &random);
	check_goes_on(limiter);
	end_all(limiter);
	check_empty(limiter);

	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(limiter, &info) == 0);
	printf("%u killed; %lu permits reaped, %lu found, %lu overdrawn; %u without a seat; "
	       "%lu windows; %u reapings kept out\n",
	       kills, (unsigned long)info.reaped, (unsigned long)info.found,
	       (unsigned long)info.overdrawn, atomic_load(&table->seatless),
	       (unsigned long)snapshot(limiter).windows, atomic_load(&table->kept_out));
	CHECK(info.attached == 1);
	CHECK(atomic_load(&table->seatless) == 0 || info.overdrawn > 0);
	CHECK(snapshot(limiter).double_released == 0);
	weir_shm_detach(limiter);
	return 0;
}
