/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No pointer in a block is ever followed: whatever is written there, with a correct checksum, a
 * process that attaches or observes either refuses it or continues. Numbers that no configuration
 * results in are refused one by one.
 */

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "lib/limiter/saved_state.h"
#include "lib/process/owner_wait.h"
#include "lib/shm/reap.h"
#include "lib/shm/shm.h"
#include "lib/wait/slots.h"

#include "../stress/check.h"

#define MEMBERS 4

/* An address that no process can have. */
#define NOWHERE UINT64_C(0x00c10cc10cc10cc1)

/* Of an identity, the lower bits: when the process began. The next higher ones: its namespace. */
#define BEGAN_BITS 21

/* Above all durations of a configuration. */
#define TOO_LONG (((weir_dur)1 << 60) + 1)

/* Words of the head that are tested in one process. */
#define TRIED 64

static const struct weir_partition partitions[] = {{.name = "a", .share = 0.5}, {.name = "b"}};

struct rig {
	struct weir_config config;
	size_t size;
	struct shm_head *head;
	struct shm_constants good;
};

static struct rig make(void)
{
	struct rig rig;

	weir_config_init(&rig.config);
	rig.config.queue = 4;
	rig.config.stripes = 1;
	rig.config.partitions = partitions;
	rig.config.partition_count = 2;
	rig.config.windowing = WEIR_WINDOW_SAMPLE;
	rig.config.shed = 1;
	rig.size = weir_shm_size(&rig.config, MEMBERS);
	rig.head = mmap(NULL, rig.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(rig.head != MAP_FAILED);
	CHECK(weir_shm_init(rig.head, rig.size, &rig.config, MEMBERS, NULL, 0) == 0);
	rig.good = rig.head->constants;
	return rig;
}

/*
 * Everything that involves callbacks: a clock, a random source, a gauge, an observer, an algorithm.
 */
static void use(struct weir_limiter *limiter)
{
	struct weir_snapshot snapshot;
	struct weir_token token = {.state = 0};
	struct weir_wait wait = {.slot = 0, .stamp = 1};
	char text[1024];

	if (weir_try_acquire(limiter, &token) == 0)
		weir_release_at(limiter, weir_now() + WEIR_S, &token, WEIR_SUCCESS);
	(void)!weir_poll(limiter, &wait, &token);
	(void)!weir_cancel(limiter, &wait, &token);
	(void)weir_partition_find(limiter, "b");
	(void)weir_limiter_format(limiter, text, sizeof(text));
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	(void)weir_shm_reap(limiter, NULL);
}

/* A process that does not exist, of this pid namespace. */
static uint64_t dead_of(const struct weir_limiter *limiter)
{
	return UINT64_C(0x3fffff) << 41 | (limiter->leasing.self & 0x1ffffffffff);
}

/*
 * The state that process number leaves if it dies while it closes a window: the reaper restarts the
 * algorithm.
 */
static void tear(struct weir_limiter *limiter)
{
	atomic_store(&limiter->sampling.sampler->due, (uint64_t)MEMBERS << 1 | DUE_BUSY);
	limiter->runtime->torn = 1;
	limiter->leasing.leases[MEMBERS - 1].identity = dead_of(limiter);
}

static void join_and_use(const struct rig *rig, const struct weir_config *config)
{
	struct weir_limiter *limiter;

	if (weir_shm_attach(rig->head, rig->size, config, &limiter, NULL, 0) != 0)
		return;
	tear(limiter);
	use(limiter);
	weir_shm_detach(limiter);
}

static void observe_and_use(const struct rig *rig)
{
	struct weir_limiter *limiter;

	CHECK(mprotect(rig->head, rig->size, PROT_READ) == 0);
	if (weir_shm_observe(rig->head, rig->size, &limiter, NULL, 0) == 0) {
		use(limiter);
		weir_shm_detach(limiter);
	}
	CHECK(mprotect(rig->head, rig->size, PROT_READ | PROT_WRITE) == 0);
}

static void check_sum(struct shm_head *head)
{
	head->check = saved_hash(SAVED_HASH_BEGIN, &head->constants, sizeof(head->constants));
}

/* Put an address into that word of the head, which is otherwise unchanged. */
static void try_word(const struct rig *rig, size_t at)
{
	const uint64_t nowhere = NOWHERE;

	rig->head->constants = rig->good;
	memcpy((char *)&rig->head->constants + at, &nowhere, sizeof(nowhere));
	check_sum(rig->head);
	join_and_use(rig, NULL);
	join_and_use(rig, &rig->config);
	observe_and_use(rig);
}

static void await(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void forged_heads(void)
{
	const struct rig rig = make();
	const size_t step = sizeof(uint64_t), end = sizeof(rig.good);

	for (size_t from = 0; from < end; from += TRIED * step) {
		const pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid > 0) {
			await(pid);
			continue;
		}
		for (size_t at = from; at < from + TRIED * step && at < end; at += step)
			try_word(&rig, at);
		_exit(0);
	}
	munmap(rig.head, rig.size);
}

static int attach_to(const struct rig *rig)
{
	struct weir_limiter *limiter;
	const int r = weir_shm_attach(rig->head, rig->size, NULL, &limiter, NULL, 0);

	weir_shm_detach(limiter);
	return r;
}

static int observe(const struct rig *rig)
{
	struct weir_limiter *limiter;
	const int r = weir_shm_observe(rig->head, rig->size, &limiter, NULL, 0);

	weir_shm_detach(limiter);
	return r;
}

/* Change one number of the head. */
#define FORGED(field, value)                                                                       \
	do {                                                                                       \
		rig.head->constants = rig.good;                                                    \
		rig.head->constants.field = (value);                                               \
		check_sum(rig.head);                                                               \
	} while (0)

#define IMPOSSIBLE(field, value)                                                                   \
	do {                                                                                       \
		FORGED(field, value);                                                              \
		CHECK(attach_to(&rig) == -EPROTO && observe(&rig) == -EPROTO);                     \
	} while (0)

static void impossible_numbers(void)
{
	const struct rig rig = make();

	IMPOSSIBLE(state_size, WEIR_LIMIT_STATE_MAX + 1);
	IMPOSSIBLE(config_size, WEIR_LIMIT_CONFIG_MAX + 1);
	IMPOSSIBLE(limit_min, 0);
	IMPOSSIBLE(limit_min, rig.good.limit_max + 1);
	IMPOSSIBLE(limit_max, WEIR_LIMIT_MAX + 1);
	IMPOSSIBLE(members, 0);
	IMPOSSIBLE(members, LEASES_MAX + 1);
	IMPOSSIBLE(sampler.stripes, 0);
	IMPOSSIBLE(sampler.stripes, 3);
	IMPOSSIBLE(sampler.stripes, 512);
	IMPOSSIBLE(sampler.window_min, rig.good.sampler.window_max + 1);
	IMPOSSIBLE(sampler.window_max, TOO_LONG);
	IMPOSSIBLE(sampler.rtt_threshold, TOO_LONG);
	IMPOSSIBLE(sampler.rtt, WEIR_RTT_QUANTILE + 1);
	IMPOSSIBLE(sampler.quantile, 0);
	IMPOSSIBLE(sampler.quantile, 1);
	IMPOSSIBLE(sampler.quantile, (double)NAN);
	IMPOSSIBLE(sampler.rtt_smoothing, 0);
	IMPOSSIBLE(sampler.rtt_smoothing, 1.1);
	IMPOSSIBLE(parts, 0);
	IMPOSSIBLE(parts, WEIR_PARTITIONS_MAX + 2);
	IMPOSSIBLE(admission_count, 1);
	IMPOSSIBLE(hold, TOO_LONG);
	IMPOSSIBLE(partitions[1].share, 2);
	IMPOSSIBLE(queue.slots, QUEUE_MAX + 1);
	IMPOSSIBLE(queue.rows, 1);
	IMPOSSIBLE(queue.order, WEIR_ADAPTIVE + 1);
	IMPOSSIBLE(queue.stand, TOO_LONG);
	IMPOSSIBLE(shed, 2);
	IMPOSSIBLE(shed_floor, -0.1);
	IMPOSSIBLE(shed_floor, 1.1);
	IMPOSSIBLE(burst, WEIR_LIMIT_MAX + 1);
	IMPOSSIBLE(size, rig.good.size + LINE);
	FORGED(seed, rig.good.seed + 1);
	CHECK(attach_to(&rig) == 0 && observe(&rig) == 0);
	munmap(rig.head, rig.size);
}

/* A process joins only with the same algorithm. An observer shows what all limiters have. */
static void another_version(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter;
	struct weir_snapshot snapshot;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	weir_sample_at(limiter, weir_now(), weir_now() + WEIR_S, 1, WEIR_SUCCESS);
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	CHECK(snapshot.windows == 1 && snapshot.last.count > 0);
	weir_shm_detach(limiter);

	FORGED(state_size, rig.good.state_size - 1);
	CHECK(attach_to(&rig) == -EPROTO && observe(&rig) == 0);
	FORGED(config_size, rig.good.config_size - 1);
	CHECK(attach_to(&rig) == -EPROTO && observe(&rig) == 0);
	FORGED(flags, rig.good.flags ^ 1);
	CHECK(attach_to(&rig) == -EPROTO && observe(&rig) == 0);
	FORGED(version, rig.good.version + 1);
	CHECK(attach_to(&rig) == -EPROTO);
	CHECK(weir_shm_observe(rig.head, rig.size, &limiter, NULL, 0) == 0);
	weir_snapshot_take(limiter, &snapshot);
	CHECK(snapshot.windows == 1 && snapshot.last.count == 0 && snapshot.last.names == NULL);
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
}

/* The process that closed a window died in the middle of it: the algorithm restarts. */
static void torn_states(void)
{
	static const struct weir_limit_ops *const limits[] = {&weir_fixed, &weir_settable,
							      &weir_vegas};

	for (unsigned i = 0; i < 3; i++) {
		struct rig rig = make();
		struct weir_limiter *limiter;
		struct weir_shm_reaped reaped;

		rig.config.limit = limits[i];
		CHECK(weir_shm_init(rig.head, rig.size, &rig.config, MEMBERS, NULL, 0) == 0);
		CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
		CHECK(weir_limit(limiter) == 20);
		if (limits[i] == &weir_settable)
			CHECK(weir_limit_set(limiter, 33) == 0);
		tear(limiter);
		CHECK(weir_shm_reap_at(limiter, 0, &reaped) == 0 && reaped.processes == 1);
		CHECK(weir_limit(limiter) == (limits[i] == &weir_settable ? 33 : 20));
		CHECK(limiter->runtime->torn == 0);
		weir_shm_detach(limiter);
		munmap(rig.head, rig.size);
	}
}

/* What is known of a process decides whether it is dead; what is not known does not. */
static void fates(void)
{
	const uint64_t began = (UINT64_C(1) << BEGAN_BITS) - 1;
	uint64_t self;

	/* A number that no process has rings no bell. */
	lease_ring(NULL, MEMBERS, 0);
	lease_ring(NULL, MEMBERS, MEMBERS + 1);
	CHECK(lease_identify(&self) == 0 && lease_fate(self, self) == ALIVE);
	if ((self & began) == 0)
		return; /* /proc does not say when this process began: an emulator's */
	CHECK(lease_fate(self ^ 1, self) == DEAD); /* the pid is used again */
	CHECK(lease_fate(self & ~began, self) == ALIVE);
	CHECK(lease_fate(self ^ 1, self & ~began) == ALIVE);
	CHECK(lease_fate(self ^ UINT64_C(1) << BEGAN_BITS, self) == FOREIGN);
}

/* The work of a process that died is taken over, and of no other. */
static void stand_ins(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter;
	uint64_t dead;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	dead = dead_of(limiter);
	CHECK(!reap_stand_in(limiter, 0, 1) && !reap_stand_in(limiter, MEMBERS + 1, 1));
	CHECK(!reap_stand_in(limiter, 1, 1) && !reap_stand_in(limiter, 2, 1));
	CHECK(!reap_stand_in(limiter, REAPER, 1));
	atomic_store(&limiter->leasing.audit->reaper, dead);
	atomic_store(&limiter->shedding.steering->due, (uint64_t)REAPER << 1 | 1);
	CHECK(reap_stand_in(limiter, REAPER, 1));
	CHECK(atomic_load(&limiter->shedding.steering->due) == 0);
	CHECK(atomic_load(&limiter->leasing.audit->reaper) == dead); /* left to the next reaper */
	CHECK(weir_shm_reap(limiter, NULL) == 0);
	CHECK(atomic_load(&limiter->leasing.audit->reaper) == 0);
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
}

/*
 * A wait for a living process ends once it has lasted long enough and the process was looked at often
 * enough; a thread of the same process is waited for as long as it takes.
 */
static void waits(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter, *own;
	struct owner_wait wait = owner_wait_begin();
	unsigned looks = 0;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	CHECK(owner_wait_longer(limiter, &wait, 1) && wait.until != 0 && wait.looks == 1);
	wait.until = WEIR_FOREVER;
	for (unsigned i = 0; i < 100; i++)
		CHECK(owner_wait_longer(limiter, &wait, 1));
	wait = (struct owner_wait){.until = 1};
	while (owner_wait_longer(limiter, &wait, 1))
		looks++;
	CHECK(looks > 1 && looks < 100);
	/* What a dead one owned is taken over instead, if that is looked at. */
	atomic_store(&limiter->leasing.audit->reaper, dead_of(limiter));
	CHECK(owner_wait_longer(limiter, &wait, REAPER));
	CHECK(weir_shm_reap(limiter, NULL) == 0);
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
	CHECK(weir_limiter_create(NULL, &own) == 0);
	CHECK(owner_wait_longer(own, &wait, 0));
	weir_limiter_destroy(own);
}

/* While another process reaps, others do not; one that detaches then leaves its lease. */
static void busy_reapers(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter, *other;
	struct weir_shm_reaped reaped;
	uint64_t alive;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &other, NULL, 0) == 0);
	alive = limiter->leasing.self;
	atomic_store(&limiter->leasing.audit->reaper, alive);
	CHECK(weir_shm_reap(limiter, NULL) == -EAGAIN);
	CHECK(!reap_stand_in(limiter, REAPER, 1));
	weir_shm_detach(other);
	CHECK(atomic_load(&limiter->leasing.leases[1].identity) == alive);
	/* The operator says that the reaper is dead. */
	CHECK(weir_shm_evict(limiter, 2, &reaped) == 0 && reaped.processes >= 1);
	CHECK(atomic_load(&limiter->leasing.leases[1].identity) == 0);
	munmap(rig.head, rig.size);
}

static void put_double(_Atomic uint64_t *word, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	atomic_store(word, bits);
}

/* Settings of a partition that no configuration can have. */
static void forged_settings(void)
{
	static const double shares[] = {-1, 2, (double)NAN};
	const struct rig rig = make();
	struct weir_partition_snapshot part;
	struct weir_limiter *limiter;
	struct weir_token token;
	unsigned admitted = 0;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	weir_partition_snapshot_init(&part);
	for (unsigned i = 0; i < 3; i++) {
		put_double(&limiter->admission.parts[1].share, shares[i]);
		CHECK(weir_limit_cap(limiter, 10 + i) == 0);
		CHECK(weir_partition_snapshot_take(limiter, 1, &part) == 0 && part.guarantee == 0);
		CHECK(weir_try_acquire(limiter, &token) == 0);
		weir_release(limiter, &token, WEIR_SUCCESS);
	}
	atomic_store(&limiter->admission.parts[1].reject_delay, UINT64_MAX);
	CHECK(weir_delay_begin(limiter, 1) == 0);

	/* A rank above the highest is the highest, of which one call in a hundred is not shed. */
	CHECK(weir_try_acquire(limiter, &token) == 0);
	for (unsigned i = 0; i < LEVELS; i++)
		atomic_store(&limiter->shedding.rankings[0].rank[i], 77);
	for (unsigned i = 0; i < 200; i++)
		admitted += weir_try_acquire(limiter, &token) == 0;
	CHECK(admitted > 0);
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
}

static void notify(void *arg)
{
	++*(unsigned *)arg;
}

static uint64_t promised(const struct weir_limiter *limiter, uint32_t stamp)
{
	return slot_word(limiter->leasing.number, stamp, PROMISED);
}

/* What a slot says about this process's callbacks only counts if a callback is set for that use. */
static void forged_promises(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter;
	struct weir_token token;
	struct weir_wait wait;
	unsigned notified = 0;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	/* A slot without a waiter. */
	for (uint32_t i = 0; i < rig.config.queue; i++)
		atomic_store(&limiter->queueing.slots[i].state, promised(limiter, 1));
	(void)weir_shm_listen(limiter, 0);
	for (uint32_t i = 0; i < rig.config.queue; i++)
		atomic_store(&limiter->queueing.slots[i].state, slot_word(0, 1, FREE));

	/* A slot whose waiter has got its permit, and whose callback may be gone. */
	CHECK(weir_enqueue(limiter, notify, &notified, &wait) == 0 && notified == 1);
	const struct weir_wait over = wait;
	CHECK(weir_poll(limiter, &wait, &token) == 0);
	weir_release(limiter, &token, WEIR_SUCCESS);
	atomic_store(&limiter->queueing.slots[over.slot].state, promised(limiter, over.stamp));
	(void)weir_shm_listen(limiter, 0);
	CHECK(notified == 1);
	atomic_store(&limiter->queueing.slots[over.slot].state, slot_word(0, over.stamp, FREE));
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
}

/* A waiter that the block no longer knows is over for good: its callback may be gone. */
static void forged_end(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter;
	struct weir_token token[1000];
	struct weir_wait wait, over;
	unsigned notified = 0, held = 0;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	while (weir_try_acquire(limiter, &token[held]) == 0)
		CHECK(++held < 1000);
	for (unsigned cancels = 0; cancels < 2; cancels++) {
		CHECK(weir_enqueue(limiter, notify, &notified, &wait) == 0 && notified == 0);
		over = wait;
		atomic_store(&limiter->queueing.slots[over.slot].state,
			     slot_word(0, over.stamp, FREE));
		CHECK((cancels ? weir_cancel(limiter, &wait, &token[held])
			       : weir_poll(limiter, &wait, &token[held])) == -EINVAL);
		atomic_store(&limiter->queueing.slots[over.slot].state,
			     promised(limiter, over.stamp));
		(void)weir_shm_listen(limiter, 0);
		CHECK(notified == 0);
	}
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
}

/* The block offers a slot in which a waiter of this process waits, with its callback. */
static void forged_free(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter;
	struct weir_token token[1000];
	struct weir_wait wait, next;
	unsigned notified = 0, held = 0;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	while (weir_try_acquire(limiter, &token[held]) == 0)
		CHECK(++held < 1000);
	CHECK(weir_enqueue(limiter, notify, &notified, &wait) == 0 && notified == 0);
	atomic_store(&limiter->queueing.free[0], UINT64_C(1) << wait.slot);
	CHECK(weir_enqueue(limiter, notify, &notified, &next) == -EAGAIN);
	atomic_store(&limiter->queueing.free[0], UINT64_C(1) << wait.slot);
	atomic_store(&limiter->queueing.slots[wait.slot].state, slot_word(0, wait.stamp, FREE));
	CHECK(weir_enqueue(limiter, notify, &notified, &next) == -EAGAIN);
	CHECK(weir_cancel(limiter, &wait, &token[held]) == -EINVAL && notified == 0);
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
}

/*
 * The block says that a waiter's callback is running, but none is: the waiter does not wait for it.
 */
static void forged_notifying(void)
{
	const struct rig rig = make();
	struct weir_limiter *limiter;
	struct weir_token token[1000];
	struct weir_wait wait;
	unsigned notified = 0, held = 0;

	CHECK(weir_shm_attach(rig.head, rig.size, NULL, &limiter, NULL, 0) == 0);
	while (weir_try_acquire(limiter, &token[held]) == 0)
		CHECK(++held < 1000);
	CHECK(weir_enqueue(limiter, notify, &notified, &wait) == 0 && notified == 0);
	atomic_store(&limiter->queueing.slots[wait.slot].granted, 0);
	atomic_store(&limiter->queueing.slots[wait.slot].state,
		     slot_word(limiter->leasing.number, wait.stamp, NOTIFYING));
	CHECK(weir_poll(limiter, &wait, &token[held]) == 0 && notified == 0);
	weir_shm_detach(limiter);
	munmap(rig.head, rig.size);
}

int main(void)
{
	forged_heads();
	impossible_numbers();
	another_version();
	torn_states();
	fates();
	stand_ins();
	waits();
	busy_reapers();
	forged_settings();
	forged_promises();
	forged_end();
	forged_free();
	forged_notifying();
	return 0;
}
