/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are cancelled before they call libweir-fleet, and a process that holds the lock of a
 * store's file: each call returns, the thread ends after it, and nothing is left locked.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/batcher.h>
#include <weir/rate.h>
#include <weir/store.h>

#include "../stress/cancelled.h"

static unsigned called;

static void process(void *arg, struct weir_batch batch, struct weir_operation *first, size_t count)
{
	(void)batch;
	(void)first;
	(void)count;
	called++;
	if (arg != NULL)
		pthread_testcancel();
}

static const struct weir_batch_handler watcher = {.process = process, .arg = &called};
static struct weir_operation operations[3];
static struct weir_batcher *batcher;

static void enqueue_in_vain(void)
{
	CHECK(weir_batcher_enqueue(batcher, &operations[2], weir_now() + 10 * WEIR_MS) ==
	      -ETIMEDOUT);
}

static void drain_in_vain(void)
{
	CHECK(weir_batcher_drain(batcher, weir_now() + 10 * WEIR_MS) == -ETIMEDOUT);
}

static void end(void)
{
	CHECK(weir_batcher_destroy(batcher) == 0);
}

static void turn(void)
{
	(void)weir_batcher_turn(batcher);
}

static struct weir_rate *make_rate(struct weir_quota quota)
{
	struct weir_rate_config config;
	struct weir_rate *rate;

	weir_rate_config_init(&config);
	config.quotas[0] = quota;
	CHECK(weir_rate_create(&config, &rate) == 0);
	return rate;
}

static void make_batcher(struct weir_rate *rate, bool by_hand)
{
	struct weir_batcher_config config;

	weir_batcher_config_init(&config);
	config.rate = rate;
	config.buffer = 2;
	config.by_hand = by_hand;
	CHECK(weir_batcher_create(&config, &batcher) == 0);
	for (unsigned i = 0; i < 3; i++)
		operations[i] = (struct weir_operation){.watcher = &watcher, .cost = {{1}}};
	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_batcher_enqueue(batcher, &operations[i], 0) == 0);
}

/* Nothing is released: a thread that waits for room, or for the end, waits until its deadline. */
static void check_waiting(void)
{
	struct weir_rate *rate = make_rate((struct weir_quota){.units = 0});
	struct weir_batcher_stats stats;

	make_batcher(rate, false);
	cancelled_in(enqueue_in_vain);
	weir_batcher_stats_init(&stats);
	weir_batcher_stats_take(batcher, &stats);
	CHECK(stats.blocked == 0 && stats.queued == 2);
	cancelled_in(drain_in_vain);
	CHECK(weir_batcher_discard(batcher, NULL, NULL) == 2);
	cancelled_in(end);
	weir_rate_destroy(rate);
}

/* Both operations are processed, by the thread that is cancelled with the first. */
static void check_turn(void)
{
	struct weir_rate *rate = make_rate((struct weir_quota){.flags = WEIR_QUOTA_UNLIMITED});

	make_batcher(rate, true);
	weir_batcher_flush(batcher);
	called = 0;
	cancelled_in(turn);
	CHECK(called == 2);
	weir_rate_destroy(rate);
}

static struct weir_store *store;

static bool see(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	(void)row;
	called++;
	pthread_testcancel();
	return true;
}

static void read_all(void)
{
	static const char *const all[] = {""};

	CHECK(weir_store_read(store, all, 1, see, NULL, NULL) == 0);
}

static void check_store(void)
{
	const struct weir_store_write writes[] = {{"a/1", WEIR_STORE_WRITE_PUT, "1", 1},
						  {"a/2", WEIR_STORE_WRITE_PUT, "2", 1}};

	CHECK(weir_store_open(NULL, &store, NULL, 0) == 0);
	CHECK(weir_store_commit(store, 0, NULL, 0, writes, 2, NULL) == 0);
	called = 0;
	cancelled_in(read_all);
	read_all();
	CHECK(called == 4);
	weir_store_close(store);
}

/* Any process that may open the file may lock it, and be stopped. */
static void hold_file(const char *name)
{
	const int file = shm_open(name, O_RDWR | O_CREAT, 0600);

	CHECK(file >= 0 && flock(file, LOCK_EX) == 0);
	CHECK(raise(SIGSTOP) == 0);
	_exit(0);
}

static void check_file(void)
{
	struct weir_store_config config;
	char name[64], address[80];
	pid_t child;
	int status;

	(void)snprintf(name, sizeof(name), "/weir-cancel-fleet-%ld", (long)getpid());
	(void)snprintf(address, sizeof(address), "shm:%s", name);
	weir_store_config_init(&config);
	config.address = address;
	config.timeout = 20 * WEIR_MS;
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		hold_file(name);
	CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	CHECK(weir_store_open(&config, &store, NULL, 0) == -EIO);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	CHECK(weir_store_open(&config, &store, NULL, 0) == 0);
	weir_store_close(store);
	CHECK(shm_unlink(name) == 0);
}

int main(void)
{
	check_waiting();
	check_turn();
	check_store();
	check_file();
	return 0;
}
