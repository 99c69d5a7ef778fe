/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batcher used by many threads: they enqueue, and retry what failed; batches are done at once, by
 * another thread later, or never; meanwhile there are flushes, pauses and changes of the rate. At
 * the end it is drained, or what is left is discarded.
 *
 *	fleet-batches [OPERATIONS [THREADS]]
 *
 * Checked: every operation comes back as often as it was accepted, and to its own thread; the
 * statistics add up; no units are needed at the end.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <weir/batcher.h>

#include "../stress/check.h"

#define WATCHERS 3

struct work {
	struct weir_operation operation; /* first: a pointer to it is a pointer to this */
	_Atomic unsigned accepted, came_back;
};

static struct weir_rate *rate;
static struct weir_batcher *batcher;
static struct weir_batch_handler watchers[WATCHERS];
static atomic_bool over;
static _Atomic uint64_t events[WEIR_BATCHER_SHUTDOWN + 1];

/* Batches that another thread reports done: the last one of each thread. */
static _Atomic uint64_t later;

static uint64_t word_of(struct weir_batch batch)
{
	return (uint64_t)batch.slot << 32 | batch.stamp;
}

static struct weir_batch batch_of(uint64_t word)
{
	return (struct weir_batch){.slot = (uint32_t)(word >> 32), .stamp = (uint32_t)word};
}

static void come_back(void *context, struct weir_operation *op)
{
	(void)context;
	CHECK(op->inside == NULL);
	atomic_fetch_add(&((struct work *)op)->came_back, 1);
}

static void process(void *arg, struct weir_batch batch, struct weir_operation *first, size_t count)
{
	static uint64_t seed = 5; /* used only by the batcher's thread */
	uint64_t kind;

	CHECK(arg == NULL);
	while (first != NULL) {
		struct weir_operation *next = first->next;

		come_back(NULL, first);
		first = next;
		count--;
	}
	CHECK(count == 0);
	kind = draw(&seed) % 8;
	if (kind == 0)
		return; /* never reported done: it times out */
	/* another thread reports it done, and this one the batch that was left to it before */
	if (kind < 3)
		batch = batch_of(atomic_exchange(&later, word_of(batch)));
	(void)weir_batcher_done(batcher, batch);
}

static void hear(void *arg, enum weir_batcher_event event, uint64_t value)
{
	(void)arg;
	(void)value;
	atomic_fetch_add(&events[event], 1);
}

static void want(void *arg, const struct weir_cost *units)
{
	(void)arg;
	(void)units;
}

struct hand {
	struct work *works;
	uint64_t count, seed;
	uint64_t accepted;
};

static void *hand_over(void *arg)
{
	struct hand *hand = arg;

	for (uint64_t i = 0; i < hand->count; i++) {
		struct work *work = &hand->works[i];
		const uint64_t chance = draw(&hand->seed);
		int r;

		work->operation = (struct weir_operation){
			.watcher = &watchers[chance % WATCHERS],
			.cost = {{chance / 8 % 3}},
			.flags = chance / 32 % 2 != 0 ? WEIR_OPERATION_BATCHABLE : 0,
		};
		/* Before it can come back. */
		atomic_fetch_add(&work->accepted, 1);
		r = weir_batcher_enqueue(batcher, &work->operation,
					 chance / 64 % 4 == 0 ? weir_now() + 50 * WEIR_US
							      : WEIR_FOREVER);
		if (r == 0)
			hand->accepted++;
		else
			atomic_fetch_sub(&work->accepted, 1);
		CHECK(r == 0 || r == -ETIMEDOUT || r == -ESHUTDOWN);
	}
	return NULL;
}

static void *meddle(void *arg)
{
	const struct weir_quota paces[] = {
		{.units = 200000}, {.units = 0}, {.flags = WEIR_QUOTA_UNLIMITED}};
	uint64_t seed = 99;

	(void)arg;
	while (!atomic_load(&over)) {
		struct weir_batcher_stats s;

		switch (draw(&seed) % 8) {
		case 0:
			weir_batcher_pause(batcher);
			break;
		case 1:
			CHECK(weir_rate_set(rate, 0, &paces[draw(&seed) % 3]) == 0);
			break;
		case 2:
			(void)weir_batcher_done(batcher, batch_of(atomic_exchange(&later, 0)));
			break;
		case 3:
			weir_batcher_resume(batcher);
			break;
		default:
			weir_batcher_flush(batcher);
		}
		weir_batcher_stats_init(&s);
		weir_batcher_stats_take(batcher, &s);
		CHECK(s.accepted == s.queued + s.released + s.discarded);
		CHECK(s.batches == s.running + s.done + s.timed_out + s.reset);
		nanosleep(&(const struct timespec){.tv_nsec = 200000}, NULL);
	}
	CHECK(weir_rate_set(rate, 0, &paces[2]) == 0);
	weir_batcher_resume(batcher);
	return NULL;
}

static void begin(void)
{
	struct weir_batcher_config config;
	struct weir_rate_config pace;

	weir_rate_config_init(&pace);
	pace.quotas[0] = (struct weir_quota){.units = 200000};
	pace.slot = WEIR_MS;
	CHECK(weir_rate_create(&pace, &rate) == 0);
	weir_batcher_config_init(&config);
	config.rate = rate;
	config.buffer = 64;
	config.batches = 16;
	config.flush_interval = WEIR_MS;
	config.time_max = 5 * WEIR_MS;
	config.pause = 2 * WEIR_MS;
	config.wants_interval = WEIR_MS;
	config.audit_interval = 3 * WEIR_MS;
	config.event = hear;
	config.wants = want;
	CHECK(weir_batcher_create(&config, &batcher) == 0);
}

static void end(struct work *works, uint64_t count, uint64_t accepted, bool drains)
{
	struct weir_batcher_stats s;
	uint64_t discarded = 0;

	if (!drains)
		discarded = weir_batcher_discard(batcher, come_back, NULL);
	CHECK(weir_batcher_drain(batcher, WEIR_FOREVER) == 0);
	for (uint64_t i = 0; i < count; i++)
		CHECK(atomic_load(&works[i].came_back) == atomic_load(&works[i].accepted));
	weir_batcher_stats_init(&s);
	weir_batcher_stats_take(batcher, &s);
	CHECK(s.accepted == accepted && s.released + s.discarded == accepted);
	CHECK(s.discarded == discarded && s.queued == 0 && s.running == 0);
	CHECK(s.needs.units[0] == 0);
	CHECK(atomic_load(&events[WEIR_BATCHER_BATCH]) == s.batches);
	CHECK(atomic_load(&events[WEIR_BATCHER_SHUTDOWN]) == 1);
	printf("accepted %lu, batches %lu, timed out %lu, given back %lu\n",
	       (unsigned long)accepted, (unsigned long)s.batches, (unsigned long)s.timed_out,
	       (unsigned long)discarded);
	CHECK(weir_batcher_destroy(batcher) == 0);
	weir_rate_destroy(rate);
}

static void play(uint64_t count, unsigned threads, bool drains)
{
	struct work *works = calloc(count * threads, sizeof(*works));
	struct hand hands[THREADS_MAX];
	struct crew crew, meddler;
	uint64_t accepted = 0;

	CHECK(works != NULL);
	atomic_store(&over, false);
	atomic_store(&later, 0);
	for (unsigned i = 0; i <= WEIR_BATCHER_SHUTDOWN; i++)
		atomic_store(&events[i], 0);
	begin();
	for (unsigned i = 0; i < threads; i++)
		hands[i] = (struct hand){.works = works + i * count, .count = count, .seed = i + 1};
	crew_start(&crew, threads, hand_over, (char *)hands, sizeof(hands[0]));
	crew_start(&meddler, 1, meddle, NULL, 0);
	crew_join(&crew);
	if (drains) {
		atomic_store(&over, true);
		crew_join(&meddler);
	}
	for (unsigned i = 0; i < threads; i++)
		accepted += hands[i].accepted;
	if (!drains) {
		CHECK(weir_batcher_drain(batcher, 0) <= 0);
		atomic_store(&over, true);
		crew_join(&meddler);
	}
	end(works, count * threads, accepted, drains);
	free(works);
}

int main(int argc, char **argv)
{
	const uint64_t operations = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	const unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 6;

	for (unsigned i = 0; i < WATCHERS; i++)
		watchers[i] = (struct weir_batch_handler){.process = process, .batch_max = i * 5};
	play(operations / threads, threads, true);
	play(operations / threads, threads, false);
	return 0;
}
