/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads submit tasks in every way, tasks end in every way, the limit changes, and another thread
 * takes permits of the same limiter.
 *
 *   stress-executor [TASKS [SUBMITTERS]]
 *
 * Checked meanwhile: never more tasks run at once than the limit in force allows. Checked at the
 * end: every task that was accepted ran once or was given back once, and no other did; nothing is
 * in flight, no call waits, and the numbers add up.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include <weir/weir.h>

#include "check.h"

static struct weir_limiter *limiter;
static struct weir_executor *executor;
static atomic_bool done;

/*
 * The bound in force: epoch << 32 | limit. It is raised before the limit is, and lowered when no
 * more than that are in flight; each change has a new epoch. A task that starts while this word
 * does not change was within the bound.
 */
static _Atomic uint64_t bound;
static _Atomic uint32_t running, most;

struct task {
	uint64_t seed;
	int accepted; /* written by its submitter */
	atomic_int ran, given;
};

struct submitter {
	struct task *tasks;
	uint64_t count, seed;
	uint64_t accepted, refused, timed_out;
};

static uint32_t start_one(void)
{
	uint64_t before = atomic_load_explicit(&bound, memory_order_seq_cst);
	uint32_t now = atomic_fetch_add_explicit(&running, 1, memory_order_seq_cst) + 1;

	if (atomic_load_explicit(&bound, memory_order_seq_cst) == before)
		CHECK(now <= (uint32_t)before);
	return now;
}

static enum weir_outcome run(void *arg)
{
	struct task *task = arg;
	uint32_t now = start_one(), seen = atomic_load_explicit(&most, memory_order_relaxed);
	uint64_t end = draw(&task->seed) % 64;

	while (now > seen && !atomic_compare_exchange_weak_explicit(
				     &most, &seen, now, memory_order_relaxed, memory_order_relaxed))
		;
	if (end % 4 == 0)
		sched_yield();
	if (end == 1)
		usleep(20);
	atomic_fetch_add_explicit(&task->ran, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&running, 1, memory_order_seq_cst);
	if (end == 2)
		pthread_exit(NULL);
	if (end == 3) {
		pthread_cancel(pthread_self());
		pthread_testcancel();
		abort();
	}
	return (enum weir_outcome)(end % 3);
}

static void give_back(void *context, weir_task_fn *fn, void *arg)
{
	struct task *task = arg;

	CHECK(context == NULL && fn == run);
	atomic_fetch_add_explicit(&task->given, 1, memory_order_relaxed);
}

static int submit(struct submitter *s, struct task *task)
{
	switch (draw(&s->seed) % 8) {
	case 0:
	case 1:
		return weir_executor_try_submit(executor, run, task);
	case 2:
		return weir_executor_submit(executor, run, task,
					    weir_now() + draw(&s->seed) % (50 * WEIR_US));
	default:
		return weir_executor_submit(executor, run, task, WEIR_FOREVER);
	}
}

static void *submit_all(void *arg)
{
	struct submitter *s = arg;

	for (uint64_t i = 0; i < s->count; i++) {
		struct task *task = &s->tasks[i];
		int r;

		task->seed = draw(&s->seed) | 1;
		r = submit(s, task);
		CHECK(r == 0 || r == -EAGAIN || r == -ETIMEDOUT || r == -ESHUTDOWN);
		task->accepted = r == 0;
		s->accepted += r == 0;
		s->timed_out += r == -ETIMEDOUT;
		s->refused += r == -EAGAIN || r == -ESHUTDOWN;
	}
	return NULL;
}

static void *move_limit(void *arg)
{
	uint32_t top = *(uint32_t *)arg, limit = top;
	uint64_t seed = 99, epoch = 0;

	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		uint32_t next = 1 + (uint32_t)(draw(&seed) % top);

		if (next > limit)
			atomic_store_explicit(&bound, ++epoch << 32 | next, memory_order_seq_cst);
		CHECK(weir_limit_set(limiter, next) == 0);
		while (next < limit && weir_inflight(limiter) > next)
			usleep(20);
		atomic_store_explicit(&bound, ++epoch << 32 | next, memory_order_seq_cst);
		limit = next;
		usleep(500);
	}
	return NULL;
}

/* Another user of the same limiter, which the executor does not know of. */
static void *use_limiter(void *arg)
{
	struct weir_token token;

	(void)arg;
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		if (weir_acquire(limiter, weir_now() + WEIR_MS, &token) == 0) {
			usleep(20);
			weir_release(limiter, &token, WEIR_SUCCESS);
		}
		usleep(100);
	}
	return NULL;
}

static void *watch(void *arg)
{
	struct weir_executor_stats s;

	(void)arg;
	weir_executor_stats_init(&s);
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		uint64_t before = atomic_load_explicit(&bound, memory_order_seq_cst);

		weir_executor_stats_take(executor, &s);
		if (atomic_load_explicit(&bound, memory_order_seq_cst) == before)
			CHECK(s.running <= (uint32_t)before);
		CHECK(s.submitted == s.queued + s.running + s.completed + s.died + s.discarded);
		CHECK(s.running <= s.threads);
		usleep(20);
	}
	return NULL;
}

struct round {
	const char *name;
	uint32_t limit, limiter_queue;
	uint32_t threads, queue;
	bool others;  /* other threads use the limiter too */
	bool discard; /* discard while it is busy */
};

static void make(const struct round *round)
{
	struct weir_settable_config settable = {.initial = round->limit};
	struct weir_executor_config pool;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.queue = round->limiter_queue;
	config.window_min = WEIR_MS;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	weir_executor_config_init(&pool);
	pool.limiter = limiter;
	pool.threads_max = round->threads;
	pool.queue = round->queue;
	pool.idle = WEIR_MS;
	CHECK(weir_executor_create(&pool, &executor) == 0);
	atomic_store_explicit(&bound, round->limit, memory_order_seq_cst);
	atomic_store_explicit(&most, 0, memory_order_relaxed);
	atomic_store_explicit(&done, false, memory_order_relaxed);
}

static void settle_accounts(const struct round *round, const struct submitter *s, unsigned n)
{
	uint64_t accepted = 0, refused = 0, timed_out = 0, given = 0;
	struct weir_executor_stats stats;
	struct weir_snapshot snapshot;

	for (unsigned i = 0; i < n; i++) {
		accepted += s[i].accepted;
		refused += s[i].refused;
		timed_out += s[i].timed_out;
		for (uint64_t k = 0; k < s[i].count; k++) {
			const struct task *task = &s[i].tasks[k];
			int back = atomic_load_explicit(&task->given, memory_order_relaxed);

			CHECK(atomic_load_explicit(&task->ran, memory_order_relaxed) + back ==
			      task->accepted);
			given += (uint64_t)back;
		}
	}
	weir_executor_stats_init(&stats);
	weir_executor_stats_take(executor, &stats);
	CHECK(stats.running == 0 && stats.queued == 0 && stats.blocked == 0);
	CHECK(stats.submitted == accepted && stats.discarded == given);
	CHECK(stats.refused == refused && stats.timed_out == timed_out);
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	CHECK(snapshot.double_released == 0);
	CHECK(round->discard || given == 0);
	printf("%-12s %7llu run, %5llu of them died, %5llu given back, %7llu refused, %6llu timed "
	       "out, %2u at once\n",
	       round->name, (unsigned long long)(accepted - given), (unsigned long long)stats.died,
	       (unsigned long long)given, (unsigned long long)refused,
	       (unsigned long long)timed_out,
	       (unsigned)atomic_load_explicit(&most, memory_order_relaxed));
}

/* Shut down; with discard, while threads still submit. */
static void finish(const struct round *round, const struct crew *crew)
{
	if (round->discard) {
		usleep(20000);
		weir_executor_discard(executor, give_back, NULL);
	}
	crew_join(crew);
	CHECK(weir_executor_drain(executor, WEIR_FOREVER) == 0);
	CHECK(atomic_load_explicit(&running, memory_order_seq_cst) == 0);
	if (!round->others)
		CHECK(weir_inflight(limiter) == 0 && weir_waiting(limiter) == 0);
}

static void play(const struct round *round, unsigned submitters, uint64_t tasks)
{
	static struct submitter s[THREADS_MAX];
	uint32_t top = round->limit;
	pthread_t mover, other, watcher;
	struct crew crew;

	make(round);
	for (unsigned i = 0; i < submitters; i++) {
		s[i] = (struct submitter){
			.count = tasks / submitters,
			.seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15),
		};
		s[i].tasks = calloc(s[i].count, sizeof(*s[i].tasks));
		CHECK(s[i].tasks != NULL);
	}
	CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
	CHECK(pthread_create(&mover, NULL, move_limit, &top) == 0);
	if (round->others)
		CHECK(pthread_create(&other, NULL, use_limiter, NULL) == 0);
	crew_start(&crew, submitters, submit_all, (char *)s, sizeof(s[0]));
	finish(round, &crew);
	atomic_store_explicit(&done, true, memory_order_relaxed);
	CHECK(pthread_join(watcher, NULL) == 0);
	CHECK(pthread_join(mover, NULL) == 0);
	if (round->others)
		CHECK(pthread_join(other, NULL) == 0);
	settle_accounts(round, s, submitters);
	CHECK(weir_executor_destroy(executor) == 0);
	CHECK(weir_inflight(limiter) == 0 && weir_waiting(limiter) == 0);
	weir_limiter_destroy(limiter);
	for (unsigned i = 0; i < submitters; i++)
		free(s[i].tasks);
}

int main(int argc, char **argv)
{
	static const struct round rounds[] = {
		{.name = "hand over", .limit = 8, .limiter_queue = 1},
		{.name = "queue", .limit = 8, .limiter_queue = 1, .queue = 20},
		{.name = "no waiting", .limit = 6, .queue = 5},
		{.name = "few threads", .limit = 8, .limiter_queue = 1, .threads = 3, .queue = 5},
		{.name = "one thread", .limit = 2, .limiter_queue = 1, .threads = 1, .queue = 5},
		{.name = "shared", .limit = 4, .limiter_queue = 2, .queue = 9, .others = true},
		{.name = "discard", .limit = 4, .limiter_queue = 1, .queue = 99, .discard = true},
	};
	uint64_t tasks = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
	unsigned submitters = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 6;

	if (submitters < 1 || submitters > THREADS_MAX || tasks < submitters) {
		fprintf(stderr, "stress-executor: 1 to %d submitters, at least one task each\n",
			THREADS_MAX);
		return 2;
	}
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++)
		play(&rounds[i], submitters, tasks);
	return 0;
}
