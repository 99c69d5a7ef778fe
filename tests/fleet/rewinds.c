/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rewinds [KIND]: checkpoints that are set back, with and without an owner, and whatever the owner
 * has under way. Members in simulated time, over a store in memory, or of that kind.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)

#define PARTITIONS 12 /* 1 is the beginning of 10 and 11 */

/* A member, as its callbacks report it. */
struct worker {
	struct weir_work *work;
	uint64_t fences[PARTITIONS];
	unsigned gained, lost, forced;
};

static struct world w;
static struct worker workers[2];

static void gain(void *arg, uint32_t partition, uint64_t fence)
{
	struct worker *worker = arg;

	CHECK(worker->fences[partition] == 0);
	worker->fences[partition] = fence;
	worker->gained++;
}

static void lose(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	struct worker *worker = arg;

	CHECK(worker->fences[partition] == fence);
	worker->fences[partition] = 0;
	worker->lost++;
	worker->forced += forced;
}

static struct worker *open_work(unsigned member, struct weir_fleet *fleet)
{
	struct worker *worker = &workers[member];
	struct weir_work_config config;

	*worker = (struct worker){.work = NULL};
	weir_work_config_init(&config);
	config.name = "work";
	config.count = PARTITIONS;
	config.on_gain = gain;
	config.on_lost = lose;
	config.arg = worker;
	CHECK(weir_work_open(fleet, &config, &worker->work, NULL, 0) == 0);
	return worker;
}

static struct worker *enter(unsigned member)
{
	world_enter(&w, member, 0);
	return open_work(member, w.actors[member].fleet);
}

/* One member, which owns all partitions. */
static struct worker *begin(void)
{
	struct worker *worker;

	world_begin(&w, 100, LEASE, REFRESH);
	worker = enter(0);
	world_run(&w, 3 * ROUND);
	CHECK(worker->gained == PARTITIONS);
	return worker;
}

static int write_as(const struct worker *worker, uint64_t fence, uint64_t sequence)
{
	return weir_work_checkpoint(worker->work, 1, fence, sequence, "x", 1);
}

static int write_in_manner(const struct worker *worker, enum manner manner, uint64_t sequence)
{
	int r;

	w.actors[0].manner = manner;
	r = write_as(worker, worker->fences[1], sequence);
	w.actors[0].manner = ANSWERS;
	return r;
}

/* The sequence, with the first letter of its value; 0: there is no checkpoint. */
static uint64_t last(const struct worker *worker, char letter)
{
	uint64_t sequence = 99;
	char value[16] = "";
	size_t size = sizeof(value);
	const int r = weir_work_load(worker->work, 1, &sequence, value, &size);

	if (r == -ENOENT) {
		CHECK(letter == '\0' && sequence == 0 && size == 0);
		return 0;
	}
	CHECK(r == 0 && size == (letter != '\0') && value[0] == letter);
	return sequence;
}

static int rewind_to(uint64_t sequence)
{
	return weir_work_rewind(w.store, "work", 1, sequence, "r", 1, "operator");
}

static int restart(void)
{
	return weir_work_restart(w.store, "work", 1, "operator");
}

/* The owner learns it with its next checkpoint, and goes on by another fence, from where it is. */
static void by_checkpoint(void)
{
	struct worker *worker = begin();
	const uint64_t fence = worker->fences[1];

	CHECK(write_as(worker, fence, 20) == 0);
	CHECK(rewind_to(10) == 1 && last(worker, 'r') == 10);
	CHECK(weir_work_fence(worker->work, 1) == fence);
	CHECK(write_as(worker, fence, 21) == -ESTALE && last(worker, 'r') == 10);
	CHECK(weir_work_fence(worker->work, 1) == 0);
	CHECK(write_as(worker, fence, 10) == -ESTALE);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(worker->lost == 1 && worker->forced == 1 && worker->gained == PARTITIONS + 1);
	CHECK(worker->fences[1] > fence && weir_work_owned(worker->work) == PARTITIONS);
	CHECK(write_as(worker, fence, 21) == -ESTALE);
	CHECK(weir_work_fence(worker->work, 1) == worker->fences[1]);
	CHECK(write_as(worker, worker->fences[1], 9) == -ERANGE);
	CHECK(write_as(worker, worker->fences[1], 11) == 0 && last(worker, 'x') == 11);
	world_end(&w);
}

/* The owner writes none, and learns it with its next refresh. */
static void by_refresh(void)
{
	struct worker *worker = begin();
	const uint64_t fence = worker->fences[1];

	CHECK(write_as(worker, fence, 20) == 0);
	CHECK(restart() == 1 && last(worker, '\0') == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(worker->lost == 1 && worker->forced == 1 && worker->gained == PARTITIONS + 1);
	CHECK(worker->fences[1] > fence && write_as(worker, fence, 21) == -ESTALE);
	CHECK(write_as(worker, worker->fences[1], 0) == 0 && last(worker, 'x') == 0);
	/* It is over: nothing is lost any more. */
	world_run(&w, 3 * LEASE);
	CHECK(worker->lost == 1 && weir_work_owned(worker->work) == PARTITIONS);
	world_end(&w);
}

/* What the owner has written before arrives after it; also the very first checkpoint. */
static void late(uint64_t before, bool nothing)
{
	struct worker *worker = begin();

	if (before > 0)
		CHECK(write_in_manner(worker, ANSWERS, before) == 0);
	CHECK(write_in_manner(worker, DELAYS, before + 10) == -EIO);
	CHECK((nothing ? restart() : rewind_to(before)) == 1);
	CHECK(world_deliver(&w) == -EAGAIN);
	CHECK(last(worker, nothing ? '\0' : 'r') == (nothing ? 0 : before));
	CHECK(write_in_manner(worker, ANSWERS, before + 11) == -ESTALE);
	world_end(&w);
}

/* The owner's row has gone meanwhile, and another member owns the partition. */
static void of_a_former_owner(void)
{
	struct worker *worker = begin(), *other;

	CHECK(write_in_manner(worker, ANSWERS, 20) == 0);
	CHECK(rewind_to(10) == 1);
	other = enter(1);
	world_run_without(&w, LEASE + 4 * ROUND, 0);
	CHECK(other->fences[1] > worker->fences[1] && last(other, 'r') == 10);
	CHECK(write_as(other, other->fences[1], 11) == 0);
	CHECK(other->lost == 0 && weir_work_owned(other->work) == PARTITIONS);
	/* The note for the former owner is still there; this one is for the present owner. */
	CHECK(rewind_to(11) == 1);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	CHECK(other->lost == 1 && other->gained == PARTITIONS + 1);
	CHECK(write_as(worker, worker->fences[1], 21) == -ESTALE && last(other, 'r') == 11);
	world_end(&w);
}

/* It has no owner: the next owner begins there. */
static void without_owner(void)
{
	struct worker *worker = begin();

	CHECK(write_in_manner(worker, ANSWERS, 20) == 0);
	weir_work_close(worker->work);
	CHECK(rewind_to(10) == 1 && rewind_to(11) == -ERANGE && rewind_to(10) == 1);
	world_kill(&w, 0);
	worker = enter(0);
	world_run(&w, 3 * ROUND);
	CHECK(weir_work_owned(worker->work) == PARTITIONS && last(worker, 'r') == 10);
	CHECK(write_in_manner(worker, ANSWERS, 12) == 0 && worker->lost == 0);
	world_end(&w);
}

/* It leaves before it has learnt it: no row is left that concerns the next owner. */
static bool count_row(void *arg, const struct weir_store_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return true;
}

static void leaving(void)
{
	static const char *const prefix[] = {"work/rewound/"};
	struct worker *worker = begin();
	unsigned rows = 0;

	for (uint32_t i = 0; i < PARTITIONS; i++)
		CHECK(weir_work_restart(w.store, "work", i, NULL) == 1);
	CHECK(weir_store_read(w.store, prefix, 1, count_row, &rows, NULL) == 0 &&
	      rows == PARTITIONS);
	rows = 0;
	weir_work_close(worker->work);
	CHECK(weir_store_read(w.store, prefix, 1, count_row, &rows, NULL) == 0 && rows == 0);
	world_end(&w);
}

/* What an operator sees. */
struct seen {
	uint64_t rewinds, at, sequence;
	uint32_t checkpoints;
	char by[64];
};

static bool see(void *arg, const struct weir_work_partition *p)
{
	struct seen *seen = arg;

	if (p->partition != 1)
		return true;
	*seen = (struct seen){p->rewinds, p->rewound_at, p->sequence, p->checkpoints, ""};
	(void)snprintf(seen->by, sizeof(seen->by), "%s", p->rewound_by);
	return true;
}

static struct seen look(void)
{
	struct seen seen = {.rewinds = 99};

	CHECK(weir_work_inspect(w.store, "work", NULL, see, &seen) == 0);
	return seen;
}

static void visible(void)
{
	struct worker *worker = begin();
	struct seen seen;

	CHECK(write_in_manner(worker, ANSWERS, 20) == 0);
	seen = look();
	CHECK(seen.rewinds == 0 && seen.at == 0 && seen.by[0] == '\0' && seen.sequence == 20);
	CHECK(rewind_to(10) == 1);
	seen = look();
	CHECK(seen.rewinds == 1 && seen.at > 1600000000 && strcmp(seen.by, "operator") == 0);
	CHECK(seen.checkpoints == 1 && seen.sequence == 10);
	CHECK(weir_work_restart(w.store, "work", 1, NULL) == 1);
	seen = look();
	CHECK(seen.rewinds == 2 && strchr(seen.by, ':') != NULL && seen.checkpoints == 0);
	/* It stays when the partition goes on. */
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(write_in_manner(worker, ANSWERS, 5) == 0);
	CHECK(write_in_manner(worker, LOSES, 6) == -EIO);
	CHECK(write_in_manner(worker, ANSWERS, 7) == 0);
	seen = look();
	CHECK(seen.rewinds == 2 && seen.checkpoints == 1 && seen.sequence == 7);
	world_end(&w);
}

/* All of them: those that are below the sequence stay. */
static void all(void)
{
	struct worker *worker = begin();

	for (uint32_t i = 0; i < PARTITIONS - 1; i++) {
		const uint64_t sequence = UINT64_C(10) * i;

		CHECK(weir_work_checkpoint(worker->work, i, worker->fences[i], sequence, "x", 1) ==
		      0);
	}
	CHECK(weir_work_rewind(w.store, "work", WEIR_WORK_ALL, 50, NULL, 0, NULL) ==
	      PARTITIONS - 6);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(worker->lost == PARTITIONS - 6 && weir_work_owned(worker->work) == PARTITIONS);
	CHECK(last(worker, 'x') == 10);
	CHECK(weir_work_restart(w.store, "work", WEIR_WORK_ALL, NULL) == PARTITIONS);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(worker->lost == 2 * PARTITIONS - 6 && weir_work_owned(worker->work) == PARTITIONS);
	CHECK(last(worker, '\0') == 0);
	CHECK(weir_work_rewind(w.store, "work", WEIR_WORK_ALL, 0, NULL, 0, NULL) == 0);
	world_end(&w);
}

static void bad_input(void)
{
	static const char long_value[WEIR_CHECKPOINT_SIZE_MAX + 1];
	const struct weir_store_write odd = {"work.checkpoints/1", WEIR_STORE_WRITE_PUT,
					     "weir-checkpoint 1 -\n", 20};
	const struct weir_store_write note = {"work/rewound/1", WEIR_STORE_WRITE_PUT, "x\n", 2};
	struct worker *worker = begin();

	CHECK(rewind_to(0) == -ERANGE);
	CHECK(weir_work_rewind(w.store, "a/b", 1, 0, NULL, 0, NULL) == -EINVAL);
	CHECK(weir_work_rewind(w.store, "work", WEIR_WORK_MAX, 0, NULL, 0, NULL) == -EINVAL);
	CHECK(weir_work_rewind(w.store, "work", 1, 0, NULL, 1, NULL) == -EINVAL);
	CHECK(weir_work_rewind(w.store, "work", 1, 0, "", 0, "no word") == -EINVAL);
	CHECK(weir_work_rewind(w.store, "work", 1, 0, long_value, sizeof(long_value), NULL) ==
	      -EMSGSIZE);
	CHECK(weir_work_restart(w.store, "work", PARTITIONS, NULL) == -ENOENT);
	CHECK(weir_work_restart(w.store, "other", 1, NULL) == -ENOENT);
	CHECK(weir_work_restart(w.store, "other", WEIR_WORK_ALL, NULL) == -ENOENT);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &odd, 1, NULL) == 0);
	CHECK(restart() == -EPROTO && write_in_manner(worker, ANSWERS, 1) == -EPROTO);
	CHECK(weir_work_inspect(w.store, "work", NULL, NULL, NULL) == -EPROTO);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &note, 1, NULL) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO);
	world_end(&w);
}

/* An owner that writes one checkpoint after the other, and the fences of which go void. */
struct busy {
	struct worker *worker;
	atomic_ullong fence, written;
	atomic_bool ends;
};

static void *keep_writing(void *arg)
{
	struct busy *busy = arg;

	for (uint64_t sequence = 1000; !atomic_load(&busy->ends); sequence++)
		if (write_as(busy->worker, atomic_load(&busy->fence), sequence) == 0)
			atomic_fetch_add(&busy->written, 1);
	return NULL;
}

/*
 * It is set back nevertheless, each time, and none of its checkpoints is written after that until
 * it has gained the partition again. This fleet uses the store itself, as the simulated world has
 * no locks.
 */
static void without_a_pause(void)
{
	struct weir_fleet_config config;
	struct weir_fleet *fleet;
	struct busy busy;
	pthread_t thread;

	world_begin(&w, 100, LEASE, REFRESH);
	weir_fleet_config_init(&config);
	config.store = w.store;
	config.manual = 1;
	CHECK(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	busy = (struct busy){.worker = open_work(0, fleet)};
	while (weir_work_owned(busy.worker->work) < PARTITIONS)
		CHECK(weir_fleet_refresh(fleet) == 0);
	CHECK(write_as(busy.worker, busy.worker->fences[1], 100) == 0);
	atomic_store(&busy.fence, busy.worker->fences[1]);
	CHECK(pthread_create(&thread, NULL, keep_writing, &busy) == 0);
	for (unsigned i = 0; i < 50; i++) {
		const unsigned long long before = atomic_load(&busy.written);

		while (atomic_load(&busy.written) < before + 3)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		CHECK(rewind_to(10 + i) == 1);
		CHECK(last(busy.worker, 'r') == 10 + i);
		while (weir_work_fence(busy.worker->work, 1) != 0)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		CHECK(last(busy.worker, 'r') == 10 + i);
		CHECK(weir_fleet_refresh(fleet) == 0);
		CHECK(busy.worker->fences[1] > atomic_load(&busy.fence));
		atomic_store(&busy.fence, busy.worker->fences[1]);
	}
	atomic_store(&busy.ends, true);
	pthread_join(thread, NULL);
	weir_fleet_close(fleet);
	world_end(&w);
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	by_checkpoint();
	by_refresh();
	late(0, true);
	late(5, true);
	late(5, false);
	of_a_former_owner();
	without_owner();
	leaving();
	visible();
	all();
	bad_input();
	without_a_pause();
	test_store_end(&test_store);
	printf("checkpoints are set back, %s\n", test_store.kind);
	return 0;
}
