/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which calls are samples: all while they are few, some by chance while they are many, and what
 * holds for the others. The clock is set by the test.
 */

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/limiter/limiter.h"
#include "rig.h"

#define RATE 1000 /* samples a second that are enough */

static uint64_t window_count, window_samples;
static double window_calls;
static uint64_t window_overloads, window_others;

static void add_window(void *arg, const struct weir_report *report)
{
	(void)arg;
	window_count++;
	window_samples += report->window.count;
	window_calls += report->window.calls;
	window_overloads += report->window.dropped + report->window.timed_out;
	window_others += report->window.others;
}

static const struct weir_observer adds = {.window = add_window};

static struct weir_config thinned(enum weir_windowing windowing)
{
	struct weir_config config = rig_config(1000);

	rig_time = WEIR_S;
	window_count = window_samples = window_overloads = window_others = 0;
	window_calls = 0;
	config.sample_rate = RATE;
	config.windowing = windowing;
	config.stripes = 2;
	config.observer = &adds;
	return config;
}

/* Calls at that rate, one at a time. Returns how many were samples. */
static unsigned run(struct weir_limiter *l, double rate, unsigned calls, enum weir_outcome outcome)
{
	const weir_dur gap = (weir_dur)(1e9 / rate);
	struct weir_token token;
	unsigned samples = 0;

	for (unsigned i = 0; i < calls; i++) {
		cr_assert_eq(weir_try_acquire(l, &token), 0);
		samples += token.start != 0;
		rig_time += gap;
		weir_release(l, &token, outcome);
	}
	return samples;
}

Test(thinning, at_the_rate_and_below_each_call_is_a_sample)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);

	cr_assert_eq(run(l, RATE / 10, 1000, WEIR_SUCCESS), 1000);
	cr_assert_eq(run(l, RATE, 1000, WEIR_SUCCESS), 1000);
	cr_assert_eq(window_samples, 2000);
	cr_assert_eq(window_calls, 2000);
	cr_assert_eq(rig_snapshot(l).sample_every, 1);
	weir_limiter_destroy(l);
}

static void check_share(enum weir_windowing windowing, double every)
{
	struct weir_config config = thinned(windowing);
	struct weir_limiter *l = rig_make(&config);
	const unsigned calls = (unsigned)(4000 * every);
	double samples;

	run(l, RATE * every, calls, WEIR_SUCCESS); /* until it has adapted */
	window_calls = 0;
	samples = run(l, RATE * every, calls, WEIR_SUCCESS);
	/* Five standard deviations of the number of samples. */
	cr_assert_float_eq(samples, 4000, 5 * sqrt(4000), "%g of %u", samples, calls);
	cr_assert_float_eq(rig_snapshot(l).sample_every, every, every / 100);
	cr_assert_float_eq(window_calls, calls, calls / 10., "%g of %u", window_calls, calls);
	cr_assert_eq(rig_snapshot(l).succeeded, 2 * calls);
	cr_assert_eq(rig_snapshot(l).admitted, 2 * calls);
	weir_limiter_destroy(l);
}

Test(thinning, above_it_as_many_are_as_are_enough)
{
	check_share(WEIR_WINDOW_SAMPLE, 1.5);
	check_share(WEIR_WINDOW_SAMPLE, 20);
	check_share(WEIR_WINDOW_TIME, 20);
	check_share(WEIR_WINDOW_SAMPLE, 200);
}

Test(thinning, a_sample_stands_for_a_bounded_number_of_calls)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);

	run(l, 1e7, 1000000, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).sample_every, EACH_MAX);
	weir_limiter_destroy(l);
}

Test(thinning, when_calls_become_few_each_is_a_sample_again)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);

	run(l, 50 * RATE, 100000, WEIR_SUCCESS);
	cr_assert_gt(rig_snapshot(l).sample_every, 40);
	/* The countdown that was drawn last, and at the next sample one more that is not yet over. */
	run(l, RATE / 2, 2000, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).sample_every, 1);
	cr_assert_eq(run(l, RATE / 2, 100, WEIR_SUCCESS), 100);
	weir_limiter_destroy(l);
}

/* Also if it was thinned so little that no countdown is long. */
Test(thinning, once_calls_are_few_no_countdown_goes_on)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);

	for (unsigned i = 0; i < 50; i++) {
		run(l, 1.6 * RATE, 2000, WEIR_SUCCESS);
		cr_assert_gt(rig_snapshot(l).sample_every, 1);
		while (rig_snapshot(l).sample_every > 1)
			run(l, RATE / 2, 1, WEIR_SUCCESS);
		cr_assert_eq(run(l, RATE / 2, 10, WEIR_SUCCESS), 10);
	}
	weir_limiter_destroy(l);
}

Test(thinning, which_calls_are_samples_is_left_to_chance)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);
	enum { EVERY = 16, CALLS = 1 << 18 };
	unsigned phase[EVERY] = {0}, samples = 0, last = 0;
	double gaps = 0, squares = 0;

	run(l, EVERY * RATE, 10000, WEIR_SUCCESS);
	for (unsigned i = 0; i < CALLS; i++) {
		if (run(l, EVERY * RATE, 1, WEIR_SUCCESS) == 0)
			continue;
		gaps += i - last;
		squares += (double)(i - last) * (i - last);
		last = i;
		phase[i % EVERY]++;
		samples++;
	}
	/* The standard deviation of a geometric distribution is nearly its mean. */
	gaps /= samples;
	cr_assert_float_eq(sqrt(squares / samples - gaps * gaps) / gaps, 1, 0.06);
	for (unsigned i = 0; i < EVERY; i++)
		cr_assert_float_eq(phase[i], samples / (double)EVERY, 5 * sqrt(samples / 16.));
	weir_limiter_destroy(l);
}

Test(thinning, the_limit_hears_of_each_overload)
{
	for (int i = 0; i < 2; i++) {
		struct weir_config config = thinned(i == 0 ? WEIR_WINDOW_SAMPLE : WEIR_WINDOW_TIME);
		struct weir_limiter *l = rig_make(&config);

		run(l, 30 * RATE, 30000, WEIR_SUCCESS);
		window_overloads = 0;
		for (int k = 0; k < 1000; k++) {
			run(l, 30 * RATE, 10, WEIR_SUCCESS);
			run(l, 30 * RATE, 1, k % 2 == 0 ? WEIR_DROPPED : WEIR_TIMED_OUT);
		}
		run(l, RATE, 2000, WEIR_SUCCESS); /* ends the window */
		cr_assert_eq(window_overloads, 1000);
		cr_assert(rig_snapshot(l).dropped == 500 && rig_snapshot(l).timed_out == 500);
		cr_assert_eq(rig_snapshot(l).succeeded, 30000 + 10000 + 2000);
		weir_limiter_destroy(l);
	}
}

Test(thinning, outcomes_are_counted_exactly)
{
	static const enum weir_outcome outcomes[] = {WEIR_IGNORE, WEIR_CANCELLED, WEIR_FAILED};
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);
	struct weir_snapshot s;

	for (int i = 0; i < 30000; i++) {
		run(l, 50 * RATE, 1, outcomes[i % 3]);
		run(l, 50 * RATE, 1, WEIR_SUCCESS);
	}
	s = rig_snapshot(l);
	cr_assert(s.ignored == 10000 && s.cancelled == 10000 && s.failed == 10000);
	cr_assert(s.succeeded == 30000 && s.admitted == 60000 && s.inflight == 0);
	cr_assert_lt(window_samples, 5000);
	/* An estimate: as many calls were no samples as were. */
	cr_assert_float_eq((double)window_others / window_calls, 1, 0.2, "%g",
			   (double)window_others / window_calls);
	weir_limiter_destroy(l);
}

Test(thinning, calls_of_partitions_are_counted_exactly)
{
	static const struct weir_partition partition = {.name = "a", .share = 0.5};
	const struct weir_call call = {.partition = 1};
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l;
	struct weir_token token;

	config.partitions = &partition;
	config.partition_count = 1;
	l = rig_make(&config);
	for (int i = 0; i < 20000; i++) {
		cr_assert_eq(weir_try_acquire_for(l, &call, &token), 0);
		rig_time += WEIR_S / RATE / 50;
		weir_release(l, &token, i % 4 == 0 ? WEIR_FAILED : WEIR_SUCCESS);
	}
	cr_assert_eq(rig_partition(l, 1).admitted, 20000);
	cr_assert_eq(rig_partition(l, 1).succeeded, 15000);
	cr_assert_gt(rig_snapshot(l).sample_every, 40);
	weir_limiter_destroy(l);
}

static void check_all(const struct weir_config *config)
{
	struct weir_limiter *l = rig_make(config);

	cr_assert_eq(run(l, 1e6, 20000, WEIR_SUCCESS), 20000);
	cr_assert_eq(rig_snapshot(l).sample_every, 1);
	weir_limiter_destroy(l);
}

Test(thinning, each_call_is_a_sample_where_that_is_needed)
{
	struct weir_limit_ops every = weir_settable;
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);

	config.sample_rate = WEIR_SAMPLE_ALL;
	check_all(&config);
	config.sample_rate = 0; /* it has a clock of its own */
	check_all(&config);
	config.sample_rate = RATE;
	config.track = 4;
	check_all(&config);
	config.track = 0;
	every.flags |= WEIR_LIMIT_EVERY_CALL;
	config.limit = &every;
	check_all(&config);
}

Test(thinning, times_of_the_program_are_samples_unless_it_asks_otherwise)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_token token;
	unsigned samples[2] = {0};

	config.clock = NULL;
	for (int asks = 0; asks < 2; asks++) {
		struct weir_limiter *l;

		config.sample_rate = asks ? RATE : 0;
		l = rig_make(&config);
		for (int i = 0; i < 20000; i++, rig_time += WEIR_US) {
			cr_assert_eq(weir_try_acquire_at(l, rig_time, &token), 0);
			samples[asks] += token.start != 0;
			weir_release_at(l, rig_time + WEIR_US, &token, WEIR_SUCCESS);
		}
		cr_assert_eq(rig_snapshot(l).succeeded, 20000);
		weir_limiter_destroy(l);
	}
	cr_assert_eq(samples[0], 20000);
	cr_assert_lt(samples[1], 10000);
}

/* A token of a call that is no sample. */
static struct weir_token counted(struct weir_limiter *l)
{
	struct weir_token token;

	do {
		run(l, 50 * RATE, 100, WEIR_SUCCESS);
		cr_assert_eq(weir_try_acquire(l, &token), 0);
		if (token.start == 0)
			return token;
		weir_release(l, &token, WEIR_SUCCESS);
	} while (true);
}

Test(thinning, a_call_that_is_no_sample_can_be_detached)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);
	struct weir_token token = counted(l), copy;
	const uint64_t before = rig_snapshot(l).succeeded;

	cr_assert_eq(weir_detach(l, &token), 0);
	copy = token;
	weir_release(l, &token, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).succeeded, before + 1);
	cr_assert_eq(rig_snapshot(l).detached, 1);
	cr_assert_eq(weir_inflight(l), 0);
	weir_release(l, &copy, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).double_released, 1);
	weir_limiter_destroy(l);
}

Test(thinning, a_copy_of_such_a_token_is_detected)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);
	struct weir_token token = counted(l), copy = token;

	weir_release(l, &token, WEIR_SUCCESS);
	weir_release(l, &token, WEIR_SUCCESS);
	weir_release(l, &copy, WEIR_DROPPED);
	cr_assert_eq(rig_snapshot(l).double_released, 2);
	cr_assert_eq(rig_snapshot(l).dropped, 0);
	weir_limiter_destroy(l);
}

static void granted(void *arg)
{
	(void)arg;
}

Test(thinning, the_release_of_a_call_that_is_no_sample_serves_a_waiter)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l;
	struct weir_token token, next;
	struct weir_wait wait;

	config.queue = 1;
	l = rig_make(&config);
	token = counted(l);
	cr_assert_eq(weir_limit_set(l, 1), 0);
	cr_assert_eq(weir_enqueue(l, granted, NULL, &wait), 0);
	cr_assert_eq(weir_poll(l, &wait, &next), -EAGAIN);
	weir_release(l, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_poll(l, &wait, &next), 0);
	weir_release(l, &next, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}

Test(thinning, a_stripe_with_few_calls_keeps_no_countdown_of_a_higher_rate)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);
	const struct sampling *s = &l->sampling;

	run(l, 50 * RATE, 100000, WEIR_SUCCESS);
	for (uint32_t i = 0; i < s->config.stripes; i++)
		atomic_store(&s->stripes[i].skip, 300);
	run(l, RATE / 2, 2000, WEIR_SUCCESS);
	for (uint32_t i = 0; i < s->config.stripes; i++)
		cr_assert_eq(atomic_load(&s->stripes[i].skip), 0, "stripe %u", i);
	weir_limiter_destroy(l);
}

/* Go on until a window is closed; window_calls is what it had. */
static void end_window(struct weir_limiter *l, double rate)
{
	window_count = 0;
	window_calls = 0;
	while (window_count == 0)
		run(l, rate, 1, WEIR_SUCCESS);
}

Test(thinning, calls_of_a_discarded_window_are_not_in_the_next_one)
{
	struct weir_config config = thinned(WEIR_WINDOW_TIME);
	const double rate = 50. * RATE;
	struct weir_limiter *l;

	config.sparse = WEIR_SPARSE_DISCARD;
	config.window_samples = 20;
	config.window_min = config.window_max = 100 * WEIR_MS;
	l = rig_make(&config);
	run(l, rate, 100000, WEIR_SUCCESS);
	end_window(l, rate);
	/* As long as ten windows, without a sample. */
	for (int i = 0; i < 50; i++) {
		for (uint32_t k = 0; k < l->sampling.config.stripes; k++)
			atomic_store(&l->sampling.stripes[k].skip, SKIP_MAX);
		run(l, rate, 1000, WEIR_SUCCESS);
	}
	for (uint32_t k = 0; k < l->sampling.config.stripes; k++)
		atomic_store(&l->sampling.stripes[k].skip, 0);
	end_window(l, rate);
	cr_assert_lt(window_calls, 20000, "%g", window_calls);
	weir_limiter_destroy(l);
}

/* The block was made by a process that does not track. */
Test(thinning, each_call_of_a_process_that_tracks_is_a_sample)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l;
	struct weir_token token;
	unsigned char *block;
	size_t size;

	config.clock = NULL;
	size = weir_shm_size(&config, 2);
	block = aligned_alloc(WEIR_ALIGN, (size + WEIR_ALIGN - 1) / WEIR_ALIGN * WEIR_ALIGN);
	cr_assert(block != NULL && weir_shm_init(block, size, &config, 2, NULL, 0) == 0);
	for (unsigned tracks = 0; tracks < 2; tracks++) {
		unsigned samples = 0;

		config.track = 4 * tracks;
		cr_assert_eq(weir_shm_attach(block, size, &config, &l, NULL, 0), 0);
		for (unsigned i = 0; i < 20000; i++, rig_time += WEIR_US) {
			cr_assert_eq(weir_try_acquire_at(l, rig_time, &token), 0);
			samples += token.start != 0;
			weir_release_at(l, rig_time + WEIR_US, &token, WEIR_SUCCESS);
		}
		cr_assert(tracks ? samples == 20000 : samples < 10000, "%u", samples);
		weir_shm_detach(l);
	}
	free(block);
}

/* Another process may write anything into the words of a shared limiter. */
Test(thinning, invalid_words_do_no_harm)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);
	const struct sampling *s = &l->sampling;

	for (uint32_t i = 0; i < s->config.stripes; i++)
		atomic_store(&s->stripes[i].skip, UINT32_MAX);
	cr_assert_eq(run(l, RATE, 100, WEIR_SUCCESS), 100);
	atomic_store(&s->sampler->each, 0);
	cr_assert_eq(rig_snapshot(l).sample_every, 1);
	atomic_store(&s->sampler->each, UINT32_MAX);
	cr_assert_eq(rig_snapshot(l).sample_every, 1);
	run(l, RATE, 100, WEIR_SUCCESS);
	atomic_store(&s->sampler->ended, UINT64_MAX);
	atomic_store(&s->sampler->paced, UINT64_MAX);
	run(l, RATE, 1000, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).sample_every, 1);
	weir_limiter_destroy(l);
}

Test(thinning, a_clock_that_goes_back_measures_nothing)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_limiter *l = rig_make(&config);

	run(l, 20 * RATE, 40000, WEIR_SUCCESS);
	rig_time = WEIR_S;
	run(l, 20 * RATE, 40000, WEIR_SUCCESS);
	cr_assert_float_eq(rig_snapshot(l).sample_every, 20, 2);
	weir_limiter_destroy(l);
}

/* Move to the nth CPU of those allowed, from 0. */
static void move_to(unsigned n)
{
	static cpu_set_t allowed;
	cpu_set_t one;
	unsigned cpu = 0;

	if (CPU_COUNT(&allowed) == 0)
		cr_assert_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	if (CPU_COUNT(&allowed) < 2)
		cr_skip("there is one CPU");
	while (!CPU_ISSET(cpu, &allowed) || n-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

Test(thinning, a_sample_sees_the_number_in_flight_without_idle_permits)
{
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);
	struct weir_token held[50], token;
	struct weir_limiter *l;
	unsigned seen = 0;

	config.stripes = 16;
	l = rig_make(&config);
	move_to(0);
	run(l, RATE, 200, WEIR_SUCCESS); /* far from the limit: permits are lent */
	cr_assert_eq(rig_fill(l, NULL, held, 50), 50);
	for (int i = 0; i < 50; i++)
		weir_release(l, &held[i], WEIR_SUCCESS);
	cr_assert_gt(atomic_load(&l->admission.gate->lent), 10);
	move_to(1);
	for (int i = 0; i < 20000; i++, rig_time += WEIR_S / RATE / 30) {
		cr_assert_eq(weir_try_acquire(l, &token), 0);
		cr_assert(token.start == 0 || token.inflight == 1);
		seen += token.start != 0;
		weir_release(l, &token, WEIR_SUCCESS);
	}
	cr_assert_gt(seen, 100);
	weir_limiter_destroy(l);
}

/* All memory of a limiter, and what of it belongs to one stripe. */
struct image {
	unsigned char *mem;
	size_t size;
};

static bool is_in(const unsigned char *at, const void *part, size_t size)
{
	const unsigned char *begin = part;

	return part != NULL && at >= begin && at < begin + size;
}

static bool is_of_stripe(const struct weir_limiter *l, uint32_t i, const unsigned char *at)
{
	const uint32_t parts = l->admission.count, shed = l->shedding.parts;

	return is_in(at, &l->sampling.stripes[i], sizeof(struct stripe)) ||
	       is_in(at, &l->part_totals[i * parts], parts * sizeof(*l->part_totals)) ||
	       is_in(at, &l->shedding.arrivals[i * shed], shed * sizeof(*l->shedding.arrivals));
}

/* The first place outside that stripe where memory differs from before; -1: none. */
static long changed(const struct weir_limiter *l, uint32_t stripe, const struct image *now,
		    const unsigned char *before, const void *but, size_t but_size)
{
	for (size_t i = 0; i < now->size; i++)
		if (now->mem[i] != before[i] && !is_of_stripe(l, stripe, now->mem + i) &&
		    !is_in(now->mem + i, but, but_size))
			return (long)i;
	return -1;
}

/*
 * Far from the limit, calls that are no samples change nothing outside their stripe, where other
 * CPUs would have to read it; with partitions, the partition's own word.
 */
static void check_writes(const struct weir_config *config, const struct weir_call *call)
{
	struct image image = {.size = weir_limiter_size(config)};
	unsigned char *before = malloc(image.size);
	struct weir_limiter *l;
	struct weir_token token;
	const void *own;
	uint32_t stripe;
	unsigned seen = 0;

	image.mem = aligned_alloc(WEIR_ALIGN, image.size);
	cr_assert(before != NULL && image.mem != NULL);
	cr_assert_eq(weir_limiter_init(image.mem, image.size, config, &l), 0);
	own = l->admission.count > 0 ? &l->admission.parts[call->partition].own : NULL;
	for (int i = 0; i < 20000; i++) {
		memcpy(before, image.mem, image.size);
		cr_assert_eq(weir_try_acquire_for(l, call, &token), 0);
		rig_time += WEIR_S / RATE / 30;
		if (token.start != 0 || token.home == 0) {
			weir_release(l, &token, WEIR_SUCCESS);
			continue;
		}
		stripe = token.home - 1;
		cr_assert_eq(changed(l, stripe, &image, before, own, LINE), -1);
		memcpy(before, image.mem, image.size);
		weir_release(l, &token, WEIR_SUCCESS);
		cr_assert_eq(changed(l, stripe, &image, before, own, LINE), -1);
		seen++;
	}
	cr_assert_gt(seen, 10000);
	free(image.mem);
	free(before);
}

Test(thinning, far_from_the_limit_calls_change_nothing_that_is_shared)
{
	static const struct weir_partition partition = {.name = "a", .share = 0.5};
	const struct weir_call ordinary = {.cost = 1}, of_partition = {.partition = 1};
	struct weir_config config = thinned(WEIR_WINDOW_SAMPLE);

	move_to(0);
	config.observer = NULL;
	check_writes(&config, &ordinary);
	config.queue = 4;
	config.burst = 10;
	check_writes(&config, &ordinary);
	config.shed = 1;
	check_writes(&config, &ordinary);
	config.shed = 0;
	config.partitions = &partition;
	config.partition_count = 1;
	check_writes(&config, &of_partition);
}
