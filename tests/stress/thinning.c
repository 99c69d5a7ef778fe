/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads make calls so fast that few of them are samples, far from the limit and at it, by the
 * default limit and by one with windows of time.
 *
 *   stress-thinning [CALLS [THREADS]]
 *
 * Checked: every outcome is counted exactly; the limit hears of each overload; while calls run, no
 * total of a snapshot is higher than the calls that have begun, and none goes back; at the end
 * nothing is in flight, and few of the calls were samples.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/limits.h>
#include <weir/weir.h>

#include "check.h"

#define OUTCOMES (WEIR_FAILED + 1)

static struct weir_limiter *limiter;
static atomic_bool done;

/* Only the window's owner writes these. */
static uint64_t overloads, samples;

static void count_window(void *arg, const struct weir_report *report)
{
	(void)arg;
	overloads += report->window.dropped + report->window.timed_out;
	samples += report->window.count;
}

struct worker {
	_Alignas(128) uint64_t seed;
	uint64_t calls; /* to make */
	uint64_t ended[OUTCOMES], refused, detached;
	_Atomic uint64_t begun;
};

static struct worker workers[THREADS_MAX];
static unsigned worker_count;

/* One call in sixteen ends otherwise than as a success. */
static enum weir_outcome outcome_of(uint64_t number)
{
	return number % 16 == 0 ? (enum weir_outcome)(number / 16 % OUTCOMES) : WEIR_SUCCESS;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct weir_token token;

	for (uint64_t i = 0; i < w->calls; i++) {
		const uint64_t number = draw(&w->seed);
		const enum weir_outcome outcome = outcome_of(number >> 8);

		atomic_store_explicit(&w->begun, i + 1, memory_order_release);
		if (weir_try_acquire(limiter, &token) != 0) {
			w->refused++;
			continue;
		}
		if (number % 4096 == 0)
			sched_yield(); /* often on another CPU afterwards */
		if (number % 256 == 1) {
			CHECK(weir_detach(limiter, &token) == 0);
			w->detached++;
		}
		weir_release(limiter, &token, outcome);
		w->ended[outcome]++;
	}
	return NULL;
}

static struct weir_snapshot snapshot(void)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	return s;
}

static uint64_t begun(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < worker_count; i++)
		sum += atomic_load_explicit(&workers[i].begun, memory_order_acquire);
	return sum;
}

static void *watch(void *arg)
{
	struct weir_snapshot before = {.size = 0}, now;

	(void)arg;
	while (!atomic_load(&done)) {
		now = snapshot();
		CHECK(now.admitted <= begun());
		CHECK(now.admitted >= before.admitted && now.succeeded >= before.succeeded);
		CHECK(now.dropped >= before.dropped && now.ignored >= before.ignored);
		CHECK(now.succeeded + now.dropped + now.timed_out <= now.admitted);
		CHECK(now.sample_every >= 1 && now.sample_every <= 256);
		before = now;
		sched_yield();
	}
	return NULL;
}

static void check_totals(void)
{
	struct worker sum = {.seed = 0};
	const struct weir_snapshot s = snapshot();
	uint64_t admitted = 0;

	for (unsigned i = 0; i < worker_count; i++) {
		for (unsigned k = 0; k < OUTCOMES; k++) {
			sum.ended[k] += workers[i].ended[k];
			admitted += workers[i].ended[k];
		}
		sum.refused += workers[i].refused;
		sum.detached += workers[i].detached;
	}
	CHECK(s.inflight == 0 && s.waiting == 0 && weir_inflight(limiter) == 0);
	CHECK(s.admitted == admitted && s.rejected == sum.refused);
	CHECK(s.succeeded == sum.ended[WEIR_SUCCESS]);
	CHECK(s.ignored == sum.ended[WEIR_IGNORE]);
	CHECK(s.dropped == sum.ended[WEIR_DROPPED]);
	CHECK(s.timed_out == sum.ended[WEIR_TIMED_OUT]);
	CHECK(s.cancelled == sum.ended[WEIR_CANCELLED]);
	CHECK(s.failed == sum.ended[WEIR_FAILED]);
	CHECK(s.detached == sum.detached && s.double_released == 0);
}

/* Close the last window, whatever it waits for. */
static void end_window(void)
{
	weir_sample_at(limiter, weir_now(), weir_now() + 10 * WEIR_S, 1, WEIR_SUCCESS);
	weir_sample_at(limiter, weir_now(), weir_now() + 20 * WEIR_S, 1, WEIR_SUCCESS);
}

static void round_of(const struct weir_limit_ops *limit, uint32_t least, uint64_t calls)
{
	static const struct weir_observer observer = {.window = count_window};
	struct weir_config config;
	struct crew crew, watcher;
	uint64_t lost = 0;

	overloads = samples = 0;
	atomic_store(&done, false);
	weir_config_init(&config);
	config.limit = limit;
	config.limit_min = least;
	config.limit_max = least;
	config.stripes = 4;
	config.observer = &observer;
	config.sample_rate = 10000;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	for (unsigned i = 0; i < worker_count; i++)
		workers[i] = (struct worker){.seed = i + 1, .calls = calls / worker_count};
	crew_start(&crew, worker_count, work, (char *)workers, sizeof(workers[0]));
	crew_start(&watcher, 1, watch, NULL, 0);
	crew_join(&crew);
	atomic_store(&done, true);
	crew_join(&watcher);

	check_totals();
	end_window();
	for (unsigned i = 0; i < worker_count; i++)
		lost += workers[i].ended[WEIR_DROPPED] + workers[i].ended[WEIR_TIMED_OUT];
	CHECK(overloads == lost);
	printf("%s, limit %u: %llu of %llu calls were samples with a latency\n",
	       limit != NULL ? limit->name : "default", (unsigned)least,
	       (unsigned long long)samples, (unsigned long long)calls);
	weir_limiter_destroy(limiter);
}

int main(int argc, char **argv)
{
	const uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;

	worker_count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;
	CHECK(worker_count >= 1 && worker_count <= THREADS_MAX);
	round_of(NULL, 1000, calls / 4);
	round_of(NULL, 3, calls / 4);
	round_of(&weir_vegas, 1000, calls / 4);
	round_of(&weir_vegas, 3, calls / 4);
	return EXIT_SUCCESS;
}
