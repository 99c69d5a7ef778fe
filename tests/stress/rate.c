/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads use one rate.
 *
 *	stress-rate [CALLS [THREADS]]
 *
 * First, at times that the test sets: threads take what they can, while another thread sets the
 * quota to two equivalent values in turn, and the clock advances by a slot when no thread finds
 * anything left. Checked: what was taken is exactly what has fallen due. Then with two quotas, of
 * which each call takes both or none, and slots that begin as soon as any call is refused: both
 * accounts are right.
 *
 * Then in real time, a rate that cannot be exceeded: it refuses no call, however many slots begin
 * while a call runs. Then with two quotas, of which some calls take one and some both, and one call
 * waits: it is not forgotten by a call that gives back what it got of one quota only.
 *
 * Then also in real time: threads wait for their turns, leave at short deadlines, or give back what
 * they took, and the rate is closed and opened meanwhile. Checked: all get their turns in the end,
 * no call still waits, and no more was taken than can have fallen due.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <weir/weir.h>

#include "check.h"

#define UNITS UINT64_C(99999)
#define FEW   UINT64_C(1000)
#define SLOT  (7 * WEIR_MS)
#define BURST (UINT64_C(1) << 40) /* so large that nothing lapses */

static _Atomic weir_time given_time;

static weir_time given_now(const struct weir_clock *clock)
{
	(void)clock;
	return atomic_load(&given_time);
}

static const struct weir_clock given_clock = {.now = given_now};

struct scene {
	struct weir_rate *rate;
	struct weir_quota same[2]; /* two equivalent values */
	atomic_uint round;
	unsigned rounds;
	atomic_uint idle; /* threads that found nothing left in this round */
	atomic_bool over;
	_Atomic uint64_t taken[2];
};

static struct weir_rate_snapshot take_snapshot(struct weir_rate *rate)
{
	struct weir_rate_snapshot s;

	weir_rate_snapshot_init(&s);
	weir_rate_snapshot_take(rate, &s);
	return s;
}

/* Take units until nothing is left. */
static void take_all(struct scene *scene)
{
	while (weir_rate_try(scene->rate, 1) == 0)
		atomic_fetch_add(&scene->taken[0], 1);
}

static void *take_each_round(void *arg)
{
	struct scene *scene = *(struct scene **)arg;

	for (unsigned round = 1; !atomic_load(&scene->over); round++) {
		do /* also between rounds, when there must be nothing left */
			take_all(scene);
		while (atomic_load(&scene->round) < round && !atomic_load(&scene->over));
		take_all(scene);
		atomic_fetch_add(&scene->idle, 1);
	}
	return NULL;
}

/* Two equivalent values: a thread that read half of each would see a rate 60 times too high or low. */
static void *set_it(void *arg)
{
	struct scene *scene = *(struct scene **)arg;

	for (unsigned i = 0; !atomic_load(&scene->over); i++)
		CHECK(weir_rate_set(scene->rate, 0, &scene->same[i % 2]) == 0);
	return NULL;
}

/* Begin a slot, and let all threads take what there is. */
static void play_round(struct scene *scene, unsigned threads)
{
	atomic_store(&scene->idle, 0);
	atomic_fetch_add(&scene->round, 1);
	while (atomic_load(&scene->idle) < threads)
		sched_yield();
}

/* Of each quota, what was taken and what is left is what has fallen due. */
static void check_accounts(const struct scene *scene, unsigned quotas, uint64_t due)
{
	const struct weir_rate_snapshot s = take_snapshot(scene->rate);

	for (unsigned i = 0; i < quotas; i++)
		CHECK(atomic_load(&scene->taken[i]) + s.quotas[i].available ==
		      due + s.quotas[i].debt);
}

/* Make a rate for the calls of a scene. */
static struct scene *open_scene(uint64_t units, unsigned quotas)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct weir_rate_config config;

	CHECK(scene != NULL);
	weir_rate_config_init(&config);
	config.quotas[0] = config.quotas[1] = (struct weir_quota){.units = units, .burst = BURST};
	config.quota_count = quotas;
	config.slot = SLOT;
	config.clock = &given_clock;
	CHECK(weir_rate_create(&config, &scene->rate) == 0);
	scene->same[0] = config.quotas[0];
	scene->same[1] = (struct weir_quota){
		.units = 60 * units, .period = 60 * WEIR_S, .burst = BURST};
	return scene;
}

static void close_scene(struct scene *scene)
{
	CHECK(take_snapshot(scene->rate).admitted == atomic_load(&scene->taken[0]));
	CHECK(take_snapshot(scene->rate).quotas[0].taken == atomic_load(&scene->taken[0]));
	weir_rate_destroy(scene->rate);
	free(scene);
}

static void in_rounds(unsigned rounds, unsigned threads)
{
	struct scene *const scene = open_scene(UNITS, 1), *scenes[THREADS_MAX];
	struct crew takers, setter;

	for (unsigned i = 0; i < threads; i++)
		scenes[i] = scene;
	crew_start(&takers, threads, take_each_round, (char *)scenes, sizeof(scenes[0]));
	crew_start(&setter, 1, set_it, (char *)scenes, sizeof(scenes[0]));
	for (unsigned k = 0; k < rounds; k++) {
		const uint64_t due = (k + 1) * SLOT * UNITS / WEIR_S;

		play_round(scene, threads);
		CHECK(atomic_load(&scene->taken[0]) == due);
		check_accounts(scene, 1, due);
		atomic_fetch_add(&given_time, SLOT);
	}
	atomic_store(&scene->over, true);
	crew_join(&takers);
	crew_join(&setter);
	close_scene(scene);
}

/* Take of two quotas, both or none. A refused call makes the next slot begin. */
static void *take_both(void *arg)
{
	struct scene *scene = *(struct scene **)arg;
	uint64_t seed = (uint64_t)(uintptr_t)arg;

	while (!atomic_load(&scene->over)) {
		const struct weir_cost cost = {.units = {1, 1 + draw(&seed) % 3}};

		if (weir_rate_try_for(scene->rate, &cost) != 0) {
			atomic_fetch_add(&given_time, SLOT);
			if (atomic_fetch_add(&scene->round, 1) >= scene->rounds)
				atomic_store(&scene->over, true);
			continue;
		}
		for (unsigned i = 0; i < 2; i++)
			atomic_fetch_add(&scene->taken[i], cost.units[i]);
	}
	return NULL;
}

static void in_a_rush(unsigned rounds, unsigned threads)
{
	struct scene *const scene = open_scene(FEW, 2), *scenes[THREADS_MAX];
	const weir_time began = given_time;
	struct crew takers, setter;

	scene->rounds = rounds;
	for (unsigned i = 0; i < threads; i++)
		scenes[i] = scene;
	crew_start(&setter, 1, set_it, (char *)scenes, sizeof(scenes[0]));
	crew_start(&takers, threads, take_both, (char *)scenes, sizeof(scenes[0]));
	crew_join(&takers);
	crew_join(&setter);
	check_accounts(scene, 2, (given_time - began + SLOT) * FEW / WEIR_S);
	close_scene(scene);
}

#define PLENTY (UINT64_C(64) * WEIR_S) /* units per second: the maximum */

struct open_house {
	struct weir_rate *rate;
	uint64_t calls;
};

static void *take_of_plenty(void *arg)
{
	const struct open_house *house = *(struct open_house **)arg;
	const struct weir_cost both = {.units = {1, 1}};

	for (uint64_t i = 0; i < house->calls; i++) {
		CHECK(weir_rate_try(house->rate, 1) == 0);
		CHECK(weir_rate_try_for(house->rate, &both) == 0);
		CHECK(weir_rate_take(house->rate, 1, 0) == 0);
	}
	return NULL;
}

/* Each slot brings more than all threads can take in it, and nothing is saved up. */
static void in_plenty(uint64_t calls, unsigned threads)
{
	struct open_house house = {.calls = calls}, *houses[THREADS_MAX];
	struct weir_rate_config config;
	struct crew takers;

	weir_rate_config_init(&config);
	config.quotas[0] = config.quotas[1] = (struct weir_quota){.units = PLENTY};
	config.quota_count = 2;
	config.slot = WEIR_MS / 10;
	CHECK(weir_rate_create(&config, &house.rate) == 0);
	for (unsigned i = 0; i < threads; i++)
		houses[i] = &house;
	crew_start(&takers, threads, take_of_plenty, (char *)houses, sizeof(houses[0]));
	crew_join(&takers);
	CHECK(take_snapshot(house.rate).refused == 0);
	CHECK(take_snapshot(house.rate).admitted == 3 * calls * threads);
	weir_rate_destroy(house.rate);
}

#define BIG (UINT64_C(1) << 40)

/* All calls need the second quota, which has one unit; the first is enough except for BIG. */
struct crossing {
	struct weir_rate *rate;
	struct weir_cost cost;
	const atomic_bool *over;
	_Atomic uint64_t turns;
};

static void settle_all(struct weir_rate *rate, const struct weir_cost *cost)
{
	for (unsigned i = 0; i < 2; i++)
		CHECK(weir_rate_settle(rate, i, cost->units[i], 0) == 0);
}

static void *take_and_give_back(void *arg)
{
	struct crossing *crossing = arg;

	for (; !atomic_load(crossing->over); atomic_fetch_add(&crossing->turns, 1))
		if (weir_rate_try_for(crossing->rate, &crossing->cost) == 0)
			settle_all(crossing->rate, &crossing->cost);
	return NULL;
}

/* Whether each thread has since ended the call that it was in, and one more. */
static bool have_turned(struct crossing *crossing, const uint64_t *turns, unsigned threads)
{
	for (unsigned i = 0; i < threads; i++)
		if (atomic_load(&crossing[i].turns) < turns[i] + 2)
			return false;
	return true;
}

/* A call that waits for what others hold for a moment gets it once they are done. */
static void wait_once(struct weir_rate *rate, struct crossing *crossing, unsigned threads)
{
	static const struct weir_cost cost = {.units = {1}};
	uint64_t turns[THREADS_MAX];
	struct weir_wait wait;
	int status;

	CHECK(weir_rate_enqueue(rate, &cost, NULL, NULL, &wait) == 0);
	for (unsigned i = 0; i < threads; i++)
		turns[i] = atomic_load(&crossing[i].turns);
	while ((status = weir_rate_poll(rate, &wait)) == -EAGAIN &&
	       !have_turned(crossing, turns, threads))
		sched_yield();
	CHECK(status == 0 || weir_rate_poll(rate, &wait) == 0);
	settle_all(rate, &cost);
}

static void in_passing(unsigned rounds, unsigned threads)
{
	struct crossing *const crossing = calloc(threads, sizeof(*crossing));
	struct weir_rate_config config;
	struct weir_rate *rate;
	struct crew takers;
	atomic_bool over = false;

	CHECK(crossing != NULL);
	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = FEW};
	config.quotas[1] = (struct weir_quota){.units = 1};
	config.quota_count = 2;
	config.slot = WEIR_S;
	config.queue = 1;
	config.clock = &given_clock;
	CHECK(weir_rate_create(&config, &rate) == 0);
	for (unsigned i = 0; i < threads; i++) {
		crossing[i].rate = rate;
		crossing[i].over = &over;
		crossing[i].cost = (struct weir_cost){.units = {i % 2 == 0 ? BIG : 0, 1}};
	}
	crew_start(&takers, threads, take_and_give_back, (char *)crossing, sizeof(*crossing));
	for (unsigned i = 0; i < rounds; i++)
		wait_once(rate, crossing, threads);
	atomic_store(&over, true);
	crew_join(&takers);
	CHECK(take_snapshot(rate).quotas[0].available == FEW);
	CHECK(take_snapshot(rate).quotas[1].available == 1);
	weir_rate_destroy(rate);
	free(crossing);
}

#define FAST 400000 /* units per second */

struct crowd {
	struct weir_rate *rate;
	uint64_t calls;
	_Atomic uint64_t taken, late;
	atomic_bool over;
};

static void *wait_for_turns(void *arg)
{
	struct crowd *crowd = *(struct crowd **)arg;
	uint64_t seed = (uint64_t)(uintptr_t)arg | 1;

	for (uint64_t i = 0; i < crowd->calls;) {
		const bool hurry = draw(&seed) % 8 == 0;
		const uint64_t cost = 1 + draw(&seed) % 4;

		if (weir_rate_take(crowd->rate, cost,
				   hurry ? weir_now() + draw(&seed) % WEIR_MS : WEIR_FOREVER) !=
		    0) {
			CHECK(hurry);
			atomic_fetch_add(&crowd->late, 1);
			continue;
		}
		if (draw(&seed) % 4 == 0)
			CHECK(weir_rate_settle(crowd->rate, 0, cost, 0) == 0);
		else
			atomic_fetch_add(&crowd->taken, cost);
		i++;
	}
	return NULL;
}

static void *open_and_close(void *arg)
{
	static const struct weir_quota closed = {.units = 0}, open = {.units = FAST};
	const struct timespec pause = {.tv_nsec = 500000};
	struct crowd *crowd = *(struct crowd **)arg;

	while (!atomic_load(&crowd->over)) {
		CHECK(weir_rate_set(crowd->rate, 0, &closed) == 0);
		nanosleep(&pause, NULL);
		CHECK(weir_rate_set(crowd->rate, 0, &open) == 0);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* An event loop's waiter among the threads. */
struct loop {
	struct crowd *crowd;
	atomic_uint notified;
};

static void notify(void *arg)
{
	atomic_fetch_add(&((struct loop *)arg)->notified, 1);
}

static void *wait_as_a_loop(void *arg)
{
	static const struct weir_cost cost = {.units = {2}};
	struct loop loop = {.crowd = *(struct crowd **)arg};
	uint64_t seed = 77;

	for (unsigned served = 0; served < loop.crowd->calls;) {
		struct weir_wait wait;
		int status;

		atomic_store(&loop.notified, 0);
		CHECK(weir_rate_enqueue(loop.crowd->rate, &cost, notify, &loop, &wait) == 0);
		while ((status = weir_rate_poll(loop.crowd->rate, &wait)) == -EAGAIN &&
		       draw(&seed) % 50 != 0) {
			(void)weir_rate_serve(loop.crowd->rate);
			sched_yield();
		}
		if (status == -EAGAIN)
			status = weir_rate_cancel(loop.crowd->rate, &wait) == 0 ? 1 : 0;
		CHECK(atomic_load(&loop.notified) == (status == 0));
		if (status == 0) {
			atomic_fetch_add(&loop.crowd->taken, 2);
			served++;
		}
	}
	return NULL;
}

static void in_real_time(uint64_t calls, unsigned threads)
{
	struct crowd *const crowd = calloc(1, sizeof(*crowd)), *crowds[THREADS_MAX];
	struct weir_rate_config config;
	struct crew waiters, loop, setter;
	weir_time began;
	uint64_t due;

	CHECK(crowd != NULL);
	crowd->calls = calls;
	weir_rate_config_init(&config);
	config.quotas[0] = (struct weir_quota){.units = FAST};
	config.slot = WEIR_MS;
	config.queue = threads + 1;
	began = weir_now();
	CHECK(weir_rate_create(&config, &crowd->rate) == 0);
	for (unsigned i = 0; i < threads; i++)
		crowds[i] = crowd;
	crew_start(&setter, 1, open_and_close, (char *)crowds, sizeof(crowds[0]));
	crew_start(&waiters, threads, wait_for_turns, (char *)crowds, sizeof(crowds[0]));
	crew_start(&loop, 1, wait_as_a_loop, (char *)crowds, sizeof(crowds[0]));
	crew_join(&waiters);
	crew_join(&loop);
	due = ((weir_now() - began) / WEIR_MS + 2) * (FAST / 1000);
	atomic_store(&crowd->over, true);
	crew_join(&setter);
	CHECK(take_snapshot(crowd->rate).waiting == 0);
	CHECK(take_snapshot(crowd->rate).abandoned >= atomic_load(&crowd->late));
	CHECK(atomic_load(&crowd->taken) <= due + 4);
	printf("taken %lu of %lu due, late %lu\n", (unsigned long)atomic_load(&crowd->taken),
	       (unsigned long)due, (unsigned long)atomic_load(&crowd->late));
	weir_rate_destroy(crowd->rate);
	free(crowd);
}

int main(int argc, char **argv)
{
	const uint64_t calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	const unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;

	in_rounds((unsigned)(calls / 3000), threads / 2);
	in_a_rush((unsigned)calls, threads / 2);
	in_plenty(calls / 2, threads);
	in_passing((unsigned)calls, threads / 2);
	in_real_time(calls / threads / 2, threads);
	return 0;
}
