/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads acquire, wait and release, while one saves what was learned and loads it again,
 * completely or in part.
 *
 *   stress-saved_state [PAIRS [THREADS]]
 *
 * Checked meanwhile: a state is never torn, neither saved nor in the limiter: its words are one
 * number; what was saved can be loaded; no waiter is forgotten. Checked at the end: nothing is in
 * flight, no call waits, and windows were closed.
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <weir/weir.h>

#include "check.h"

#define FAR (300 * WEIR_S)

/* A limit that goes up and down, with a state of many words. */
#define WORDS 32

struct chorus {
	uint64_t word[WORDS];
};

struct chorus_config {
	uint32_t initial;
};

static double sing(struct chorus *c, uint64_t tone)
{
	for (int i = 0; i < WORDS; i++)
		c->word[i] = tone;
	return 1 + (double)(tone % 8);
}

static void check_tone(const struct chorus *c)
{
	for (int i = 1; i < WORDS; i++)
		CHECK(c->word[i] == c->word[0]);
}

static double chorus_init(void *state, const void *config, double random)
{
	const struct chorus_config *c = config;

	(void)random;
	return sing(state, c->initial);
}

static double chorus_update(void *state, const struct weir_window *w)
{
	struct chorus *c = state;

	(void)w;
	check_tone(c);
	return sing(c, c->word[0] + 1);
}

static const char *const chorus_numbers[] = {"tone", NULL};

static void chorus_observe(const void *state, double *values)
{
	const struct chorus *c = state;

	check_tone(c);
	values[0] = (double)c->word[0];
}

static const struct weir_param chorus_params[] = {
	{"initial", WEIR_PARAM_U32, offsetof(struct chorus_config, initial), 1, 1e9, "1",
	 "at first"},
};

static const struct weir_limit_ops chorus = {
	.size = sizeof(chorus),
	.name = "chorus",
	.about = "All words of its state are one number.",
	.version = 1,
	.state_size = sizeof(struct chorus),
	.config_size = sizeof(struct chorus_config),
	.params = chorus_params,
	.param_count = 1,
	.init = chorus_init,
	.update = chorus_update,
	.numbers = chorus_numbers,
	.observe = chorus_observe,
};

static struct weir_limiter *limiter;
static atomic_bool done;
static uint64_t saved, loaded;

struct worker {
	_Alignas(128) uint64_t seed;
	uint64_t pairs; /* pairs to do */
};

static int attempt(struct worker *w, struct weir_token *token)
{
	int r;

	if (draw(&w->seed) % 4 != 0)
		return weir_try_acquire(limiter, token);
	r = weir_acquire(limiter, weir_now() + FAR, token);
	CHECK(r != -ETIMEDOUT);
	return r;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct weir_token token;

	for (uint64_t admitted = 0; admitted < w->pairs;) {
		if (attempt(w, &token) != 0) {
			sched_yield();
			continue;
		}
		if (draw(&w->seed) % 16 == 0)
			sched_yield();
		weir_release(limiter, &token, WEIR_SUCCESS);
		admitted++;
	}
	return NULL;
}

/* Called by the window's owner, which saves now and then: it must not wait for itself. */
static void look(void *arg, const struct weir_report *report)
{
	unsigned char bytes[WEIR_SAVED_MAX];

	(void)arg;
	if ((uint64_t)report->numbers[0] % 64 == 0)
		CHECK(weir_limiter_save(limiter, bytes, sizeof(bytes)) > 0);
}

static void *remember(void *arg)
{
	static const weir_dur ages[] = {0, 0, WEIR_SAVED_HALF_LIFE, 100 * WEIR_SAVED_HALF_LIFE};
	unsigned char bytes[WEIR_SAVED_MAX];
	uint64_t seed = 7;
	char why[200];
	int size;

	(void)arg;
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		weir_dur age = ages[draw(&seed) % 4];

		size = weir_limiter_save(limiter, bytes, sizeof(bytes));
		CHECK(size > 0);
		saved++;
		if (draw(&seed) % 4 == 0)
			sched_yield();
		CHECK(weir_limiter_load(limiter, bytes, (size_t)size, age, why, sizeof(why)) == 0);
		loaded++;
	}
	return NULL;
}

static void round_of(enum weir_windowing windowing, unsigned threads, uint64_t share)
{
	static struct worker workers[THREADS_MAX];
	const struct weir_observer observer = {.window = look};
	struct weir_config config;
	struct weir_snapshot s;
	struct crew crew;
	pthread_t rememberer;

	weir_config_init(&config);
	config.limit = &chorus;
	config.windowing = windowing;
	config.window_min = 10 * WEIR_US;
	config.observer = &observer;
	config.queue = threads;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	atomic_store_explicit(&done, false, memory_order_relaxed);
	for (unsigned i = 0; i < threads; i++) {
		workers[i] = (struct worker){
			.seed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15),
			.pairs = share / threads,
		};
	}
	CHECK(pthread_create(&rememberer, NULL, remember, NULL) == 0);
	crew_start(&crew, threads, work, (char *)workers, sizeof(workers[0]));
	crew_join(&crew);
	atomic_store_explicit(&done, true, memory_order_relaxed);
	CHECK(pthread_join(rememberer, NULL) == 0);

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	CHECK(s.inflight == 0 && s.waiting == 0);
	CHECK(s.succeeded == share / threads * threads);
	CHECK(s.windows > 0 && saved > 0 && loaded == saved);
	printf("succeeded %llu, windows %llu, saved and loaded %llu times\n",
	       (unsigned long long)s.succeeded, (unsigned long long)s.windows,
	       (unsigned long long)saved);
	weir_limiter_destroy(limiter);
}

int main(int argc, char **argv)
{
	uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;

	if (threads < 1 || threads > THREADS_MAX || wanted / 2 < threads) {
		fprintf(stderr, "stress-saved_state: 1 to %d threads, at least 2 pairs each\n",
			THREADS_MAX);
		return 2;
	}
	round_of(WEIR_WINDOW_SAMPLE, threads, wanted / 2);
	round_of(WEIR_WINDOW_TIME, threads, wanted / 2);
	return 0;
}
