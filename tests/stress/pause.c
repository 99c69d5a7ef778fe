/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads acquire the only permit, while the limit pauses again and again.
 *
 *   stress-pause [PAIRS [THREADS]]
 *
 * PAIRS is the number of pairs of acquire and release, without refused attempts.
 *
 * Checked meanwhile: no waiter is forgotten (one with a far deadline never times out); what one
 * holder of the permit wrote before its release is visible to the next. Checked at the end: nothing
 * is in flight, no call waits, and a call is admitted.
 */

#include <sched.h>

#include <weir/weir.h>

#include "check.h"

#define FAR    (300 * WEIR_S)
#define EVERY  50 /* windows, of which one is followed by a pause */
#define LENGTH (20 * WEIR_US)

static struct weir_limiter *limiter;
static uint64_t alone; /* plain: each holder sees the last one's value */

struct worker {
	_Alignas(128) uint64_t seed;
	uint64_t pairs; /* to do */
	uint64_t refused;
};

static double pausing_init(void *state, const void *config, double random)
{
	(void)state;
	(void)config;
	(void)random;
	return 1;
}

static double pausing_update(void *state, const struct weir_window *w)
{
	uint32_t *windows = state;

	(void)w;
	return ++*windows % EVERY == 0 ? -(double)LENGTH : 1;
}

static const struct weir_limit_ops pausing = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_PAUSES | WEIR_LIMIT_EVERY_CALL,
	.name = "pausing",
	.about = "Pauses again and again.",
	.version = 1,
	.state_size = sizeof(uint32_t),
	.init = pausing_init,
	.update = pausing_update,
};

static bool admitted(struct worker *w, struct weir_token *token)
{
	if (draw(&w->seed) % 2 == 0) {
		CHECK(weir_acquire(limiter, weir_now() + FAR, token) == 0);
		return true;
	}
	if (weir_try_acquire(limiter, token) == 0)
		return true;
	w->refused++;
	sched_yield();
	return false;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct weir_token token;

	for (uint64_t done = 0; done < w->pairs;) {
		if (!admitted(w, &token))
			continue;
		alone++;
		weir_release(limiter, &token, WEIR_SUCCESS);
		done++;
	}
	return NULL;
}

static void make_limiter(unsigned threads)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &pausing;
	config.queue = threads;
	config.windowing = WEIR_WINDOW_SAMPLE;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
}

static void check_end(uint64_t pairs)
{
	struct weir_token token;

	CHECK(alone == pairs);
	CHECK(weir_inflight(limiter) == 0 && weir_waiting(limiter) == 0);
	CHECK(weir_acquire(limiter, weir_now() + FAR, &token) == 0);
	weir_release(limiter, &token, WEIR_IGNORE);
}

int main(int argc, char **argv)
{
	const uint64_t pairs = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	const unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 8;
	static struct worker workers[THREADS_MAX];
	uint64_t refused = 0;
	struct crew crew;

	CHECK(threads > 0 && threads <= THREADS_MAX);
	make_limiter(threads);
	for (unsigned i = 0; i < threads; i++)
		workers[i] = (struct worker){.seed = i + 1, .pairs = pairs / threads};
	crew_start(&crew, threads, work, (char *)workers, sizeof(workers[0]));
	crew_join(&crew);
	check_end(pairs / threads * threads);
	for (unsigned i = 0; i < threads; i++)
		refused += workers[i].refused;
	printf("%llu pairs, %llu refused\n", (unsigned long long)alone,
	       (unsigned long long)refused);
	weir_limiter_destroy(limiter);
	return 0;
}
