/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checkpoints [KIND]: an acknowledged checkpoint is never undone, even if requests arrive late or
 * twice, or are not answered. Members in simulated time, over a store in memory, or of that kind.
 */

#include <errno.h>
#include <string.h>

#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)

static struct world w;
static uint64_t fences[2];
static unsigned losses;

static void lost(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	(void)arg;
	(void)partition;
	CHECK(fence != 0 && forced);
	losses++;
}

static void gained(void *arg, uint32_t partition, uint64_t fence)
{
	(void)partition;
	*(uint64_t *)arg = fence;
}

static struct weir_work *enter(unsigned member)
{
	struct weir_work_config config;
	struct weir_work *work;

	world_enter(&w, member, 0);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = 1;
	config.on_gain = gained;
	config.on_lost = lost;
	config.arg = &fences[member];
	CHECK(weir_work_open(w.actors[member].fleet, &config, &work, NULL, 0) == 0);
	return work;
}

/* One member, which owns the partition. */
static struct weir_work *begin(void)
{
	struct weir_work *work;

	world_begin(&w, 100, LEASE, REFRESH);
	memset(fences, 0, sizeof(fences));
	losses = 0;
	work = enter(0);
	world_run(&w, 3 * ROUND);
	CHECK(fences[0] != 0);
	return work;
}

static int checkpoint_as(struct weir_work *work, enum manner manner, uint64_t sequence)
{
	int r;

	w.actors[0].manner = manner;
	r = weir_work_checkpoint(work, 0, fences[0], sequence, "x", 1);
	w.actors[0].manner = ANSWERS;
	return r;
}

static uint64_t last(struct weir_work *work)
{
	uint64_t sequence;
	char value[16];
	size_t size = sizeof(value);

	CHECK(weir_work_load(work, 0, &sequence, value, &size) == 0 && size == 1);
	return sequence;
}

/*
 * The write arrives after a later one was acknowledged; before is the version of the row at that
 * time.
 */
static void late(uint64_t before)
{
	struct weir_work *work = begin();

	if (before > 0)
		CHECK(checkpoint_as(work, ANSWERS, before) == 0);
	CHECK(checkpoint_as(work, DELAYS, 10) == -EIO);
	CHECK(checkpoint_as(work, ANSWERS, 20) == 0);
	CHECK(world_deliver(&w) == -EAGAIN);
	CHECK(last(work) == 20);
	CHECK(checkpoint_as(work, ANSWERS, 21) == 0 && last(work) == 21);
	world_end(&w);
}

/* It arrives before the next one is sent: the next one must be above it. */
static void sooner(void)
{
	struct weir_work *work = begin();

	CHECK(checkpoint_as(work, ANSWERS, 5) == 0);
	CHECK(checkpoint_as(work, DELAYS, 10) == -EIO);
	CHECK(world_deliver(&w) == 0);
	CHECK(checkpoint_as(work, ANSWERS, 7) == -ERANGE && last(work) == 10);
	CHECK(checkpoint_as(work, ANSWERS, 10) == 0);
	world_end(&w);
}

/* It overtakes the next one, which has been sent when it arrives. */
static void overtaken(void)
{
	struct weir_work *work = begin();

	CHECK(checkpoint_as(work, ANSWERS, 5) == 0);
	CHECK(checkpoint_as(work, DELAYS, 10) == -EIO);
	CHECK(checkpoint_as(work, OVERTAKEN, 7) == -ERANGE && last(work) == 10);
	CHECK(checkpoint_as(work, DELAYS, 11) == -EIO);
	CHECK(checkpoint_as(work, OVERTAKEN, 12) == 0 && last(work) == 12);
	world_end(&w);
}

/* It has happened, and only the answer is lost. */
static void unanswered(void)
{
	struct weir_work *work = begin();

	CHECK(checkpoint_as(work, LOSES, 30) == -EIO && last(work) == 30);
	CHECK(checkpoint_as(work, ANSWERS, 29) == -ERANGE);
	CHECK(checkpoint_as(work, ANSWERS, 30) == 0 && last(work) == 30);
	CHECK(checkpoint_as(work, UNREACHABLE, 31) == -EIO && last(work) == 30);
	CHECK(checkpoint_as(work, ANSWERS, 31) == 0);
	world_end(&w);
}

/* It arrives when another member owns the partition, and has written a checkpoint, or none. */
static void of_a_former_owner(bool written)
{
	struct weir_work *work = begin(), *others;

	CHECK(checkpoint_as(work, ANSWERS, 5) == 0);
	CHECK(checkpoint_as(work, DELAYS, 10) == -EIO);
	others = enter(1);
	world_run_without(&w, LEASE + 4 * ROUND, 0);
	CHECK(fences[1] > fences[0]);
	if (written)
		CHECK(weir_work_checkpoint(others, 0, fences[1], 6, "y", 1) == 0);
	CHECK(world_deliver(&w) == -EAGAIN);
	CHECK(last(others) == (written ? 6 : 5));
	CHECK(checkpoint_as(work, ANSWERS, 11) == -ESTALE);
	CHECK(weir_work_checkpoint(others, 0, fences[1], 7, "y", 1) == 0 && last(others) == 7);
	world_end(&w);
}

/*
 * The owner's row is gone, as if the store had ended its session too early. The checkpoint that
 * detects it is the last one by that fence, and the partition is gained again.
 */
static void row_is_gone(void)
{
	const struct weir_store_write write = {"work/partition/0", WEIR_STORE_WRITE_ERASE, NULL, 0};
	struct weir_work *work = begin();
	const uint64_t fence = fences[0];

	CHECK(checkpoint_as(work, ANSWERS, 5) == 0);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &write, 1, NULL) == 0);
	CHECK(weir_work_fence(work, 0) == fence && losses == 0);
	CHECK(checkpoint_as(work, UNREACHABLE, 6) == -EIO);
	CHECK(weir_work_fence(work, 0) == fence);
	CHECK(checkpoint_as(work, ANSWERS, 6) == -ESTALE);
	CHECK(weir_work_fence(work, 0) == 0 && weir_work_owned(work) == 0);
	CHECK(weir_work_checkpoint(work, 0, fence - 1, 6, "x", 1) == -ESTALE);
	CHECK(weir_work_fence(work, 0) == 0);
	world_run(&w, 2 * ROUND);
	CHECK(losses == 1 && fences[0] > fence && weir_work_fence(work, 0) == fences[0]);
	CHECK(weir_work_checkpoint(work, 0, fence, 6, "x", 1) == -ESTALE);
	CHECK(weir_work_fence(work, 0) == fences[0] && last(work) == 5);
	CHECK(checkpoint_as(work, ANSWERS, 6) == 0);
	world_end(&w);
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	late(0);
	late(5);
	sooner();
	overtaken();
	unanswered();
	of_a_former_owner(false);
	of_a_former_owner(true);
	row_is_gone();
	test_store_end(&test_store);
	printf("no checkpoint goes back, %s\n", test_store.kind);
	return 0;
}
