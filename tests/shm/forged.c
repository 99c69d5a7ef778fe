/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of a block are forged, as by a process that shares it: numbers out of range, or
 * links that form rings. The block lies between pages that cannot be accessed. Whatever it
 * contains, all operations of the other processes stay within it and come to an end.
 *
 *	forged [SCENE]	one scene only
 */

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "lib/base/combiner.h"
#include "lib/shm/shm.h"
#include "lib/wait/slots.h"

#include "../stress/check.h"

#define LIMIT   3
#define SLOTS   5
#define MEMBERS 3

/* Bytes that cannot be accessed on each side: more than an index of 16 bits spans. */
#define GUARD ((size_t)64 << 20)

/* Seconds of CPU time, and of waiting, after which an operation counts as endless. */
#define BUSY_FOR_EVER 3
#define IDLE_FOR_EVER 240

struct stage {
	struct weir_limiter *limiter;
	struct weir_token token[LIMIT];
	struct weir_wait wait[SLOTS];
	void *block;
	size_t size;
	uint32_t wrong; /* a number that is out of range */
};

struct scene {
	const char *name;
	void (*forge)(struct stage *s);
	bool parted;
	void (*play)(void); /* plays the scene, if there is no forge */
};

static const uint32_t wrong[] = {SLOTS,  SLOTS + 1,  63,      MEMBERS + 1, 8192,
				 0xffff, 0x7fffffff, NIL - 1, NIL};

#define WRONG (sizeof(wrong) / sizeof(wrong[0]))

static struct weir_config configuration(bool parted)
{
	static const struct weir_fixed_config three = {.limit = LIMIT};
	static const struct weir_partition parts[] = {{.name = "a", .share = 0.5}, {.name = "b"}};
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &three;
	config.queue = SLOTS;
	config.stripes = 1;
	if (parted) {
		config.partitions = parts;
		config.partition_count = 2;
	}
	return config;
}

/* Memory that ends next to inaccessible pages, and begins nearly next to some. */
static void *guarded(size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
	char *area = mmap(NULL, 2 * GUARD + whole, PROT_NONE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(area != MAP_FAILED);
	CHECK(mprotect(area + GUARD, whole, PROT_READ | PROT_WRITE) == 0);
	return area + GUARD + whole - size;
}

static const struct queueing *queue_of(const struct stage *s)
{
	return &s->limiter->queueing;
}

static struct slot *slot_of(const struct stage *s, uint32_t i)
{
	return &queue_of(s)->slots[i];
}

static void put_link(_Atomic uint32_t *link, uint32_t value)
{
	atomic_store(link, value);
}

/* Forgeries. All permits are held, and all slots but one have a waiter. */

static void fresh_behind_the_last(struct stage *s)
{
	const struct queueing *q = queue_of(s);

	atomic_store(&q->fresh[0], UINT64_MAX);
	atomic_store(&q->queue->news, UINT64_MAX);
}

static void free_behind_the_last(struct stage *s)
{
	atomic_store(&queue_of(s)->free[0],
		     s->wrong == NIL ? UINT64_MAX : UINT64_C(1) << s->wrong % 64);
}

/* Bits that may be set. */
static void announcements_of_all(struct stage *s)
{
	atomic_store(&queue_of(s)->fresh[0], (UINT64_C(1) << SLOTS) - 1);
	atomic_store(&queue_of(s)->queue->news, 1);
}

static void links_out(struct stage *s)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		put_link(&slot_of(s, i)->next, s->wrong);
		put_link(&slot_of(s, i)->prev, s->wrong);
	}
	announcements_of_all(s);
}

static void rows_out(struct stage *s)
{
	for (uint32_t r = 0; r < queue_of(s)->config.rows; r++) {
		put_link(&queue_of(s)->rows[r].head, s->wrong);
		put_link(&queue_of(s)->rows[r].tail, s->wrong);
		queue_of(s)->rows[r].length = s->wrong;
		queue_of(s)->rows[r].stuck = s->wrong;
	}
	announcements_of_all(s);
}

/* The youngest waiters are linked before the oldest, in a ring. */
static void rings(struct stage *s)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		put_link(&slot_of(s, i)->next, (i + 1) % SLOTS);
		put_link(&slot_of(s, i)->prev, (i + SLOTS - 1) % SLOTS);
		slot_of(s, i)->since = UINT64_MAX / 4;
	}
	announcements_of_all(s);
}

static void rings_of_one(struct stage *s)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		put_link(&slot_of(s, i)->next, i);
		put_link(&slot_of(s, i)->prev, i);
		slot_of(s, i)->since = UINT64_MAX / 4;
		slot_of(s, i)->cost = 0;
	}
	announcements_of_all(s);
}

static void parts_out(struct stage *s)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		atomic_store(&slot_of(s, i)->part, (uint16_t)s->wrong);
	announcements_of_all(s);
}

/* Waiters of a process that cannot exist, which are PROMISED and have yet to be notified. */
static void owners_out(struct stage *s)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		const uint64_t word = slot_read(slot_of(s, i));

		atomic_store(&slot_of(s, i)->state, slot_word(s->wrong, word_stamp(word),
							      i % 2 == 0 ? PROMISED : WAITING));
		slot_of(s, i)->notifies = 1;
	}
	announcements_of_all(s);
}

static void states_out(struct stage *s)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		const uint64_t word = slot_read(slot_of(s, i));

		atomic_store(&slot_of(s, i)->state, word_with(word, i % 2 == 0 ? 7 : ABANDONED));
		slot_of(s, i)->cost = s->wrong;
		slot_of(s, i)->inflight = s->wrong;
	}
	announcements_of_all(s);
}

static void counts_out(struct stage *s)
{
	struct weir_limiter *l = s->limiter;

	for (uint32_t number = 1; number <= MEMBERS; number++) {
		atomic_store(&lease_holdings(&l->leasing, number)->held, UINT64_MAX);
		atomic_store(&lease_holdings(&l->leasing, number)->delayed, UINT32_MAX);
		atomic_store(&l->leasing.leases[number - 1].detached, UINT64_MAX);
	}
}

/* A process has died in a drain, so the next reaper continues it. */
static void leave_drain_to_reaper(const struct stage *s, uint32_t dead)
{
	atomic_store(&queue_of(s)->queue->pending, (uint64_t)dead << COMBINER_OWNER_SHIFT | 1);
}

static void attach(struct stage *s, bool parted)
{
	const struct weir_config config = configuration(parted);

	CHECK(weir_shm_attach(s->block, s->size, &config, &s->limiter, NULL, 0) == 0);
}

static void fill(struct stage *s)
{
	const unsigned parts = weir_partition_count(s->limiter);

	for (int i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire(s->limiter, &s->token[i]) == 0);
	for (unsigned i = 0; i < SLOTS - 1; i++) {
		const struct weir_call call = {.partition = (uint16_t)(parts > 0 ? i % parts : 0)};

		CHECK(weir_enqueue_for(s->limiter, &call, NULL, NULL, &s->wait[i]) == 0);
	}
}

/* A process that dies with a lease, the second. */
static void die_attached(const struct stage *s, bool parted)
{
	struct stage other = {.block = s->block, .size = s->size};
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		attach(&other, parted);
		(void)!weir_enqueue(other.limiter, NULL, NULL, &other.wait[0]);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void try_all(struct stage *s)
{
	struct weir_limiter *l = s->limiter;
	struct weir_snapshot snapshot;
	struct weir_token token;
	struct weir_wait wait;

	(void)!weir_enqueue(l, NULL, NULL, &wait);
	(void)!weir_cancel(l, &wait, &token);
	for (int i = 0; i < LIMIT; i++)
		weir_release(l, &s->token[i], WEIR_SUCCESS);
	(void)!weir_try_acquire(l, &token);
	(void)!weir_poll(l, &s->wait[0], &token);
	(void)!weir_cancel(l, &s->wait[1], &token);
	(void)weir_shm_listen(l, 0);
	(void)!weir_acquire(l, weir_now() + WEIR_MS, &token);
	weir_shadow_set(l, true);
	weir_shadow_set(l, false);
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(l, &snapshot);
}

static void play(const struct scene *scene, uint32_t number)
{
	const struct weir_config config = configuration(scene->parted);
	struct weir_shm_reaped reaped;
	struct stage s = {.size = weir_shm_size(&config, MEMBERS), .wrong = number};

	s.block = guarded(s.size);
	CHECK(weir_shm_init(s.block, s.size, &config, MEMBERS, NULL, 0) == 0);
	attach(&s, scene->parted);
	fill(&s);
	die_attached(&s, scene->parted);
	scene->forge(&s);
	leave_drain_to_reaper(&s, 2);
	CHECK(weir_shm_reap(s.limiter, &reaped) == 0);
	scene->forge(&s);
	try_all(&s);
	scene->forge(&s);
	CHECK(weir_shm_reap(s.limiter, &reaped) == 0);
	scene->forge(&s);
	weir_shm_detach(s.limiter);
}

/* Octaves that do not exist, of each lane: their buckets would lie behind the block. */
static void quantile(void)
{
	struct weir_config config = configuration(false);
	struct stage s = {.size = 0};
	weir_time now = weir_now();

	config.rtt = WEIR_RTT_QUANTILE;
	config.window_samples = 1;
	s.size = weir_shm_size(&config, MEMBERS);
	s.block = guarded(s.size);
	CHECK(weir_shm_init(s.block, s.size, &config, MEMBERS, NULL, 0) == 0);
	CHECK(weir_shm_attach(s.block, s.size, &config, &s.limiter, NULL, 0) == 0);
	for (int i = 0; i < 5; i++) {
		struct sampling *sampling = &s.limiter->sampling;

		memset(&sampling->lanes[0], 0xff, sizeof(sampling->lanes[0]));
		sampling->sampler->rtt_smoothed = NAN;
		now += WEIR_S;
		weir_sample_at(s.limiter, now - WEIR_MS, now, 1, WEIR_SUCCESS);
	}
	weir_shm_detach(s.limiter);
}

static struct weir_limiter *window_of;
static int windows, depth;

/* The window is given away while its owner has it, and this thread would take it. */
static void see_window(void *arg, const struct weir_report *report)
{
	(void)arg;
	CHECK(depth == 0);
	depth++;
	windows++;
	atomic_store(&window_of->sampling.sampler->due, DUE_AT_ONCE);
	weir_sample_at(window_of, report->window.end, report->window.end + WEIR_MS, 1,
		       WEIR_SUCCESS);
	depth--;
}

static void window_given_away(void)
{
	const struct weir_observer observer = {.window = see_window};
	struct weir_config config = configuration(false);
	weir_time now = weir_now();
	struct stage s = {.size = 0};

	config.windowing = WEIR_WINDOW_SAMPLE;
	config.observer = &observer;
	s.size = weir_shm_size(&config, MEMBERS);
	s.block = guarded(s.size);
	CHECK(weir_shm_init(s.block, s.size, &config, MEMBERS, NULL, 0) == 0);
	CHECK(weir_shm_attach(s.block, s.size, &config, &window_of, NULL, 0) == 0);
	for (int i = 0; i < 3; i++)
		weir_sample_at(window_of, now, now + WEIR_MS, 1, WEIR_SUCCESS);
	CHECK(windows == 3);
	weir_shm_detach(window_of);
}

static _Atomic bool has_left;

static void *wait_for_a_while(void *arg)
{
	struct weir_token token;

	CHECK(weir_acquire(arg, weir_now() + 20 * WEIR_MS, &token) == -ETIMEDOUT);
	atomic_store(&has_left, true);
	return NULL;
}

/* A waiting thread is woken all the time. */
static void woken(void)
{
	const struct weir_config config = configuration(false);
	struct stage s = {.size = weir_shm_size(&config, MEMBERS)};
	pthread_t thread;

	s.block = guarded(s.size);
	CHECK(weir_shm_init(s.block, s.size, &config, MEMBERS, NULL, 0) == 0);
	attach(&s, false);
	for (int i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire(s.limiter, &s.token[i]) == 0);
	CHECK(pthread_create(&thread, NULL, wait_for_a_while, s.limiter) == 0);
	/* Faster than it can look; the highest bit says whether a thread sleeps. */
	while (!atomic_load(&has_left))
		for (uint32_t i = 0; i < SLOTS; i++)
			*(volatile uint32_t *)(void *)slot_of(&s, i)->park.count += 1;
	CHECK(pthread_join(thread, NULL) == 0);
	weir_shm_detach(s.limiter);
}

/* Another process requests the combiner's work again each time that it has been done. */
static void combiner_requested_forever(void)
{
	_Atomic uint64_t pending = 0;
	uint32_t rounds = 0;

	CHECK(combiner_begin(&pending, 1));
	do {
		atomic_fetch_add(&pending, 1);
	} while (!combiner_over(&pending, 1, &rounds));
	CHECK(rounds == COMBINER_ROUNDS);
}

/* A thread that requests work when the combiner may change owner continues it. */
static void combiner_changes_owner(void)
{
	_Atomic uint64_t pending = 0;
	uint32_t rounds = COMBINER_TURN - 1;

	CHECK(combiner_begin(&pending, 1));
	atomic_fetch_add(&pending, 1);
	CHECK(!combiner_over(&pending, 1, &rounds));
	CHECK(combiner_requests(pending) == 1 && rounds == COMBINER_TURN);
	CHECK(combiner_over(&pending, 1, &rounds) && combiner_requests(pending) == 0);
}

static bool survives(const struct scene *scene, uint32_t number)
{
	const struct rlimit busy = {.rlim_cur = BUSY_FOR_EVER, .rlim_max = BUSY_FOR_EVER + 1};
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setrlimit(RLIMIT_CPU, &busy) == 0);
		alarm(IDLE_FOR_EVER);
		if (scene->play != NULL)
			scene->play();
		else
			play(scene, number);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	fprintf(stderr, "%s, %#x: %s\n", scene->name, (unsigned)number,
		WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "failed");
	return false;
}

static const struct scene scenes[] = {
	{.name = "fresh", .forge = fresh_behind_the_last, .parted = false},
	{.name = "fresh, partitions", .forge = fresh_behind_the_last, .parted = true},
	{.name = "free", .forge = free_behind_the_last, .parted = false},
	{.name = "links", .forge = links_out, .parted = false},
	{.name = "links, partitions", .forge = links_out, .parted = true},
	{.name = "rows", .forge = rows_out, .parted = false},
	{.name = "rows, partitions", .forge = rows_out, .parted = true},
	{.name = "rings", .forge = rings, .parted = false},
	{.name = "rings, partitions", .forge = rings, .parted = true},
	{.name = "rings of one", .forge = rings_of_one, .parted = false},
	{.name = "rings of one, partitions", .forge = rings_of_one, .parted = true},
	{.name = "parts", .forge = parts_out, .parted = false},
	{.name = "parts, partitions", .forge = parts_out, .parted = true},
	{.name = "owners", .forge = owners_out, .parted = false},
	{.name = "owners, partitions", .forge = owners_out, .parted = true},
	{.name = "states", .forge = states_out, .parted = false},
	{.name = "states, partitions", .forge = states_out, .parted = true},
	{.name = "counts", .forge = counts_out, .parted = false},
	{.name = "counts, partitions", .forge = counts_out, .parted = true},
	{.name = "quantile", .play = quantile},
	{.name = "window", .play = window_given_away},
	{.name = "woken", .play = woken},
	{.name = "combiner", .play = combiner_requested_forever},
	{.name = "combiner, new owner", .play = combiner_changes_owner},
};

int main(int argc, char **argv)
{
	bool all = true;

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		if (argc > 1 && strcmp(argv[1], scenes[i].name) != 0)
			continue;
		for (size_t k = 0; k < (scenes[i].play != NULL ? 1 : WRONG); k++)
			all = survives(&scenes[i], wrong[k]) && all;
	}
	return all ? 0 : 1;
}
