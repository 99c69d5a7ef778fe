/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workers KIND: processes that divide partitions of work over a store of that kind, come, go and
 * are killed. Each partition is worked on by one of them at a time; its checkpoints never go back.
 *
 * On a busy machine a lease may end while its holder does not run: the holder's callback comes when
 * it runs again. So a partition that another process gains before is a debt of its holder, which
 * only a forced loss pays.
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

#include <weir/work.h>

#include "../stress/check.h"
#include "server.h"

#define WORKERS    3
#define PARTITIONS 12

/* Shared by all processes. */
struct board {
	_Atomic uint32_t owner[PARTITIONS]; /* a worker's number, from 1; 0: none */
	_Atomic uint64_t done[PARTITIONS];  /* the last sequence that was written */
	/* Partitions that others own, and it has not lost yet. */
	_Atomic int32_t debts[WORKERS + 1];
	_Atomic uint32_t clashes, forced, backwards, refused, unasked;
	_Atomic uint64_t checkpoints;
};

struct worker {
	struct weir_work *work;
	uint32_t number;
};

static struct board *board;
static char address[128];

static void gain(void *arg, uint32_t partition, uint64_t fence)
{
	const struct worker *w = arg;

	const uint32_t before = atomic_exchange(&board->owner[partition], w->number);

	(void)fence;
	if (before == 0)
		return;
	atomic_fetch_add(&board->debts[before], 1);
	atomic_fetch_add(&board->clashes, 1);
}

static void lose(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	const struct worker *w = arg;
	uint32_t mine = w->number;

	(void)fence;
	if (forced)
		atomic_fetch_add(&board->forced, 1);
	if (atomic_compare_exchange_strong(&board->owner[partition], &mine, 0))
		return;
	/*
	 * Another one owns it already, which is wrong if the partition was released without force.
	 */
	if (forced)
		atomic_fetch_sub(&board->debts[w->number], 1);
	else
		atomic_fetch_add(&board->unasked, 1);
}

/* One unit of work: the sequence after the last one written. */
static void work_on(const struct worker *w, uint32_t partition)
{
	const uint64_t fence = weir_work_fence(w->work, partition);
	const uint64_t before = atomic_load(&board->done[partition]);
	uint64_t sequence;
	size_t size = 0;
	int r;

	if (fence == 0)
		return;
	r = weir_work_load(w->work, partition, &sequence, NULL, &size);
	if (r != 0 && r != -ENOENT)
		return;
	if (sequence < before)
		atomic_fetch_add(&board->backwards, 1);
	r = weir_work_checkpoint(w->work, partition, fence, sequence + 1, NULL, 0);
	if (r == 0) {
		atomic_store(&board->done[partition], sequence + 1);
		atomic_fetch_add(&board->checkpoints, 1);
	}
	atomic_fetch_add(&board->refused, r == -ESTALE);
}

static void be_worker(uint32_t number)
{
	struct worker w = {.number = number};
	struct weir_fleet_config config;
	struct weir_work_config work;
	struct weir_fleet *fleet;
	char why[256];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	weir_fleet_config_init(&config);
	config.address = address;
	config.lease = 2 * WEIR_S;
	CHECK(weir_fleet_open(&config, &fleet, why, sizeof(why)) == 0);
	weir_work_config_init(&work);
	work.name = "work";
	work.count = PARTITIONS;
	work.on_gain = gain;
	work.on_lost = lose;
	work.arg = &w;
	CHECK(weir_work_open(fleet, &work, &w.work, why, sizeof(why)) == 0);
	for (uint32_t i = 0;; i = (i + 1) % PARTITIONS) {
		work_on(&w, i);
		sleep_ms(2);
	}
}

static pid_t start(uint32_t number)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		be_worker(number);
	return pid;
}

static void end(pid_t pid, uint32_t number)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	for (unsigned i = 0; i < PARTITIONS; i++) {
		uint32_t dead = number;

		(void)atomic_compare_exchange_strong(&board->owner[i], &dead, 0);
	}
	atomic_store(&board->debts[number], 0); /* a dead process gets no callback */
}

/* Wait until every worker's callback has reported what it lost. */
static void wait_for_debts(void)
{
	for (unsigned i = 1; i <= WORKERS; i++)
		for (unsigned tries = 0; atomic_load(&board->debts[i]) != 0; tries++) {
			CHECK(tries < 100000);
			sleep_ms(2);
		}
}

/*
 * Wait until that many workers own the same number of partitions each, and none is without an
 * owner.
 */
static void wait_for(unsigned workers, const char *what)
{
	for (unsigned tries = 0;; tries++) {
		unsigned has[WORKERS + 1] = {0}, even = 0;

		for (unsigned i = 0; i < PARTITIONS; i++)
			has[atomic_load(&board->owner[i])]++;
		for (unsigned i = 1; i <= WORKERS; i++)
			even += has[i] == PARTITIONS / workers;
		CHECK(atomic_load(&board->backwards) == 0);
		if (even == workers)
			break;
		CHECK(tries < 150000);
		sleep_ms(2);
	}
	printf("%s\n", what);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const bool etcd = argc == 2 && strcmp(argv[1], "etcd") == 0;
	struct server server;
	pid_t workers[WORKERS];
	uint64_t before;

	CHECK(argc == 2);
	server_start(&server, etcd ? SERVER_ETCD : SERVER_REDIS_DURABLE);
	(void)snprintf(address, sizeof(address), "%s://127.0.0.1:%u", etcd ? "etcd" : "redis",
		       server.port);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(board != MAP_FAILED);
	workers[0] = start(1);
	workers[1] = start(2);
	wait_for(2, "two own half of the partitions each");
	workers[2] = start(3);
	wait_for(3, "a third has got its share of them");
	end(workers[0], 1);
	wait_for(2, "one was killed: two have half each");
	workers[0] = start(1);
	wait_for(3, "it came back");
	server_kill(&server);
	server_restart(&server);
	before = atomic_load(&board->checkpoints);
	while (atomic_load(&board->checkpoints) < before + PARTITIONS)
		sleep_ms(2);
	wait_for(3, "the store was killed, and came back; the work goes on");
	wait_for_debts();
	for (unsigned i = 0; i < WORKERS; i++)
		end(workers[i], i + 1);
	server_end(&server);
	CHECK(atomic_load(&board->unasked) == 0);
	printf("%llu checkpoints, %u refused; %u lost by force, %u with two owners\n",
	       (unsigned long long)atomic_load(&board->checkpoints), atomic_load(&board->refused),
	       atomic_load(&board->forced), atomic_load(&board->clashes));
	return 0;
}
