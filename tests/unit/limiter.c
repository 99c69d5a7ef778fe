/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limiter, call by call, at times that the test sets.
 */

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#include "lib/limiter/limiter.h"

static struct weir_config config_for(const struct weir_limit_ops *ops, const void *limit_config)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = ops;
	config.limit_config = limit_config;
	return config;
}

static struct weir_limiter *make(const struct weir_config *config)
{
	struct weir_limiter *limiter;

	cr_assert_eq(weir_limiter_create(config, &limiter), 0);
	return limiter;
}

static struct weir_limiter *make_fixed(uint32_t limit)
{
	struct weir_fixed_config fixed = {.limit = limit};
	struct weir_config config = config_for(&weir_fixed, &fixed);

	return make(&config);
}

Test(limiter, a_cap_bounds_any_limit)
{
	struct weir_fixed_config fixed = {.limit = 4};
	struct weir_config config = config_for(&weir_fixed, &fixed);
	const struct weir_call dear = {.cost = 3};
	struct weir_limiter *l;
	struct weir_token a, b, c;

	config.burst = 2;
	l = make(&config);
	cr_assert_eq(weir_limit_cap(l, WEIR_LIMIT_MAX + 1), -EINVAL);
	cr_assert_eq(weir_limit(l), 4);
	cr_assert_eq(weir_limit_cap(l, 1), 0);
	cr_assert_eq(weir_limit(l), 1);
	cr_assert_eq(weir_try_acquire_at(l, 1, &a), 0);
	cr_assert_eq(weir_try_acquire_at(l, 1, &b), -EAGAIN);
	/* A cap of 0 admits no call of any cost, whether calls are in flight or not. */
	cr_assert_eq(weir_limit_cap(l, 0), 0);
	cr_assert_eq(weir_try_acquire_for_at(l, &dear, 1, &b), -EAGAIN);
	weir_release_at(l, 2, &a, WEIR_SUCCESS);
	cr_assert_eq(weir_try_acquire_for_at(l, &dear, 2, &b), -EAGAIN);
	cr_assert_eq(weir_try_acquire_at(l, 2, &b), -EAGAIN);
	cr_assert_eq(weir_inflight(l), 0);
	/* A cap above the limit bounds nothing, and the burst is available again. */
	cr_assert_eq(weir_limit_cap(l, 100), 0);
	cr_assert_eq(weir_limit(l), 4);
	cr_assert_eq(weir_try_acquire_for_at(l, &dear, 3, &a), 0);
	cr_assert_eq(weir_try_acquire_for_at(l, &dear, 3, &b), 0);
	cr_assert_eq(weir_try_acquire_at(l, 3, &c), -EAGAIN);
	cr_assert_eq(weir_limit_cap(l, WEIR_LIMIT_MAX), 0);
	weir_release_at(l, 4, &a, WEIR_SUCCESS);
	weir_release_at(l, 4, &b, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}

Test(limiter, a_cap_holds_for_partitions_too)
{
	const struct weir_partition parts[] = {{.name = "a", .share = 0.5}};
	struct weir_fixed_config fixed = {.limit = 4};
	struct weir_config config = config_for(&weir_fixed, &fixed);
	const struct weir_call call = {.partition = 1, .cost = 2};
	struct weir_limiter *l;
	struct weir_token a, b;

	config.partitions = parts;
	config.partition_count = 1;
	l = make(&config);
	cr_assert_eq(weir_limit_cap(l, 0), 0);
	cr_assert_eq(weir_try_acquire_for_at(l, &call, 1, &a), -EAGAIN);
	cr_assert_eq(weir_limit_cap(l, 2), 0);
	cr_assert_eq(weir_try_acquire_for_at(l, &call, 1, &a), 0);
	cr_assert_eq(weir_try_acquire_at(l, 1, &b), -EAGAIN);
	weir_release_at(l, 2, &a, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}

static void count_grant(void *arg)
{
	++*(unsigned *)arg;
}

Test(limiter, a_higher_cap_admits_waiters)
{
	const struct weir_partition parts[] = {{.name = "a", .share = 0.5}};
	struct weir_fixed_config fixed = {.limit = 4};
	struct weir_config config = config_for(&weir_fixed, &fixed);
	const struct weir_call call = {.partition = 1};
	struct weir_limiter *l;
	struct weir_token token;
	struct weir_wait wait;
	unsigned grants = 0;

	config.partitions = parts;
	config.partition_count = 1;
	config.queue = 1;
	l = make(&config);
	cr_assert_eq(weir_limit_cap(l, 0), 0);
	cr_assert_eq(weir_enqueue_for_at(l, &call, 1, count_grant, &grants, &wait), 0);
	cr_assert_eq(weir_poll_at(l, 2, &wait, &token), -EAGAIN);
	cr_assert_eq(weir_limit_cap(l, 1), 0);
	cr_assert_eq(grants, 1);
	cr_assert_eq(weir_poll_at(l, 3, &wait, &token), 0);
	weir_release_at(l, 4, &token, WEIR_SUCCESS);
	cr_assert(weir_inflight(l) == 0 && weir_waiting(l) == 0);
	weir_limiter_destroy(l);
}

Test(limiter, admits_up_to_the_limit_and_no_more)
{
	struct weir_limiter *l = make_fixed(2);
	struct weir_token a, b, c;

	cr_assert_eq(weir_try_acquire_at(l, 1, &a), 0);
	cr_assert_eq(weir_try_acquire_at(l, 1, &b), 0);
	cr_assert_eq(weir_try_acquire_at(l, 1, &c), -EAGAIN);
	cr_assert(a.inflight == 1 && b.inflight == 2 && c.state == 0);
	weir_release_at(l, 2, &a, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 1);
	cr_assert_eq(weir_try_acquire_at(l, 3, &c), 0);
	weir_release_at(l, 4, &b, WEIR_IGNORE);
	weir_release_at(l, 4, &c, WEIR_DROPPED);
	cr_assert_eq(weir_inflight(l), 0);

	struct weir_snapshot s = rig_snapshot(l);

	cr_assert(s.admitted == 3 && s.rejected == 1 && s.succeeded == 1 && s.ignored == 1 &&
		  s.dropped == 1);
	weir_limiter_destroy(l);
}

Test(limiter, a_second_release_is_detected_and_harmless)
{
	struct weir_limiter *l = make_fixed(2);
	struct weir_token a, copy, never;

	cr_assert_eq(weir_try_acquire_at(l, 1, &a), 0);
	copy = a;
	weir_release_at(l, 2, &a, WEIR_SUCCESS);
	weir_release_at(l, 2, &a, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).double_released, 1);
	weir_release_at(l, 2, &copy, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).double_released, 2);
	memset(&never, 0, sizeof(never));
	weir_release_at(l, 2, &never, WEIR_SUCCESS);

	struct weir_snapshot s = rig_snapshot(l);

	cr_assert_eq(s.double_released, 3);
	cr_assert(s.inflight == 0 && s.limit == 2 && s.succeeded == 1 && s.waiting == 0);
	weir_limiter_destroy(l);
}

/*
 * While the release of a copy is being detected, in flight is below zero for a moment. Here it
 * stays below zero, as another thread could find it.
 */
Test(limiter, a_copy_that_is_being_detected_is_not_visible)
{
	struct weir_limiter *l = make_fixed(4);
	const struct weir_call three = {.cost = 3};
	struct weir_token token, copy, none;

	for (uint64_t calls = 1; calls <= 2; calls++) {
		cr_assert_eq(weir_try_acquire_for_at(l, &three, 1, &token), 0);
		cr_assert_eq(rig_snapshot(l).admitted, calls);
		copy = token;
		weir_release_at(l, 2, &token, WEIR_SUCCESS);
		atomic_fetch_sub(&l->admission.gate->word, 3);
		cr_assert(rig_snapshot(l).admitted == calls && rig_snapshot(l).inflight == 0);
		cr_assert(weir_inflight(l) == 0 && weir_limit(l) == 4 && weir_waiting(l) == 0);
		cr_assert_eq(weir_try_acquire_at(l, 2, &none), -EAGAIN);
		gate_mend(l->admission.gate, 3);
		weir_release_at(l, 2, &copy, WEIR_SUCCESS);
		cr_assert(rig_snapshot(l).admitted == calls && rig_snapshot(l).inflight == 0);
		cr_assert_eq(rig_snapshot(l).double_released, calls);
	}
	weir_limiter_destroy(l);
}

struct copier {
	struct weir_limiter *limiter;
	struct weir_token token;
	uint64_t released;
	atomic_bool done;
};

static void *release_copies(void *arg)
{
	struct copier *copier = arg;

	for (; !atomic_load(&copier->done); copier->released++) {
		struct weir_token copy = copier->token;

		weir_release(copier->limiter, &copy, WEIR_SUCCESS);
	}
	return NULL;
}

Test(limiter, releases_of_copies_admit_no_call)
{
	struct copier copier = {.limiter = make_fixed(4)};
	struct weir_token token;
	pthread_t thread;

	cr_assert_eq(weir_try_acquire(copier.limiter, &token), 0);
	copier.token = token;
	weir_release(copier.limiter, &token, WEIR_SUCCESS);
	cr_assert_eq(pthread_create(&thread, NULL, release_copies, &copier), 0);
	for (int i = 0; i < 100000; i++)
		cr_assert_eq(rig_snapshot(copier.limiter).admitted, 1);
	atomic_store(&copier.done, true);
	pthread_join(thread, NULL);

	struct weir_snapshot s = rig_snapshot(copier.limiter);

	cr_assert(s.admitted == 1 && s.succeeded == 1 && s.double_released == copier.released);
	weir_limiter_destroy(copier.limiter);
}

Test(limiter, a_tracked_copy_is_detected_even_while_others_are_in_flight)
{
	struct weir_fixed_config fixed = {.limit = 10};
	struct weir_config config = config_for(&weir_fixed, &fixed);
	struct weir_limiter *l;
	struct weir_token a, b, copy;

	config.track = 16;
	l = make(&config);
	cr_assert_eq(weir_try_acquire_at(l, 1, &a), 0);
	cr_assert_eq(weir_try_acquire_at(l, 1, &b), 0);
	copy = a;
	weir_release_at(l, 2, &a, WEIR_SUCCESS);
	weir_release_at(l, 2, &copy, WEIR_SUCCESS);
	cr_assert_eq(rig_snapshot(l).double_released, 1);
	cr_assert_eq(weir_inflight(l), 1);
	weir_release_at(l, 2, &b, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}

struct finding {
	size_t count;
	struct weir_outstanding last;
};

static bool note(void *arg, const struct weir_outstanding *token)
{
	struct finding *finding = arg;

	finding->count++;
	finding->last = *token;
	return true;
}

/* Not inlined, and not static, so that its name can be found by address. */
__attribute__((noinline)) void leak_one(struct weir_limiter *l);
void leak_one(struct weir_limiter *l)
{
	struct weir_token token;

	cr_assert_eq(weir_try_acquire_at(l, 77, &token), 0);
}

Test(limiter, a_token_that_is_never_released_is_found_with_the_place_of_its_acquisition)
{
	struct weir_config config = config_for(&weir_fixed, NULL);
	struct weir_limiter *l;
	struct weir_token token;
	struct finding finding = {.count = 0};

	config.track = 4;
	l = make(&config);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(weir_try_acquire_at(l, 5, &token), 0);
		weir_release_at(l, 6, &token, WEIR_SUCCESS);
	}
	cr_assert_eq(weir_outstanding_visit(l, note, &finding), 0);
	leak_one(l);
	cr_assert_eq(weir_inflight(l), 1);
	cr_assert_eq(weir_outstanding_visit(l, note, &finding), 1);
	cr_assert_eq(finding.last.start, 77);
	cr_assert(finding.last.place > (const void *)(uintptr_t)leak_one);
	cr_assert((const char *)finding.last.place < (const char *)(uintptr_t)leak_one + 4096);
	cr_assert(finding.last.module != NULL && finding.last.offset != 0);
	weir_limiter_destroy(l);
}

static bool note_one(void *arg, const struct weir_outstanding *token)
{
	(void)note(arg, token);
	return false;
}

Test(limiter, a_visit_of_outstanding_tokens_ends_on_request)
{
	struct weir_config config = config_for(&weir_fixed, NULL);
	struct finding finding = {.count = 0};
	struct weir_limiter *l;

	config.track = 4;
	l = make(&config);
	leak_one(l);
	leak_one(l);
	cr_assert_eq(weir_outstanding_visit(l, note_one, &finding), 1);
	cr_assert_eq(weir_outstanding_visit(l, note, &finding), 2);
	weir_limiter_destroy(l);
}

Test(limiter, a_token_with_impossible_numbers_is_taken_for_a_copy)
{
	struct weir_config config = config_for(&weir_fixed, NULL);
	struct weir_token token, forged;
	struct weir_limiter *l;

	config.track = 4;
	l = make(&config);
	cr_assert_eq(weir_try_acquire_at(l, 5, &token), 0);
	forged = token;
	forged.track = 5;
	weir_release_at(l, 6, &forged, WEIR_SUCCESS);
	forged = token;
	forged.partition = 1;
	weir_release_at(l, 6, &forged, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 1);
	cr_assert_eq(rig_snapshot(l).double_released, 2);
	weir_release_at(l, 6, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}

Test(limiter, more_tokens_than_are_tracked_are_harmless)
{
	struct weir_config config = config_for(&weir_fixed, NULL);
	struct weir_token tokens[10];
	struct weir_limiter *l;

	config.track = 3;
	l = make(&config);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(weir_try_acquire_at(l, 5, &tokens[i]), 0);
	for (int i = 0; i < 10; i++)
		weir_release_at(l, 6, &tokens[i], WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	cr_assert_eq(rig_snapshot(l).double_released, 0);
	weir_limiter_destroy(l);
}

Test(limiter, a_settable_limit_changes_at_once_and_within_its_bounds)
{
	struct weir_config config = config_for(&weir_settable, NULL);
	struct weir_limiter *l, *fixed = make_fixed(3);

	config.limit_min = 2;
	config.limit_max = 50;
	l = make(&config);
	cr_assert_eq(weir_limit(l), 20);
	cr_assert_eq(weir_limit_set(l, 7), 0);
	cr_assert_eq(weir_limit(l), 7);
	cr_assert_eq(weir_limit_set(l, 1), 0);
	cr_assert_eq(weir_limit(l), 2);
	cr_assert_eq(weir_limit_set(l, 1000), 0);
	cr_assert_eq(weir_limit(l), 50);
	cr_assert_eq(weir_limit_set(l, 0), -EINVAL);
	cr_assert_eq(weir_limit_set(l, WEIR_LIMIT_MAX + 1), -EINVAL);
	cr_assert_eq(weir_limit(l), 50);
	cr_assert_eq(weir_limit_set(fixed, 7), -ENOTSUP);
	weir_limiter_destroy(l);
	weir_limiter_destroy(fixed);
}

Test(limiter, a_lowered_limit_revokes_no_permit_and_admits_no_call)
{
	struct weir_config config = config_for(&weir_settable, NULL);
	struct weir_limiter *l = make(&config);
	struct weir_token tokens[5], more;

	for (int i = 0; i < 5; i++)
		cr_assert_eq(weir_try_acquire_at(l, 1, &tokens[i]), 0);
	cr_assert_eq(weir_limit_set(l, 2), 0);
	for (int i = 4; i >= 2; i--) {
		cr_assert_eq(weir_try_acquire_at(l, 1, &more), -EAGAIN);
		weir_release_at(l, 2, &tokens[i], WEIR_SUCCESS);
	}
	cr_assert_eq(weir_try_acquire_at(l, 1, &more), -EAGAIN);
	weir_release_at(l, 2, &tokens[1], WEIR_SUCCESS);
	cr_assert_eq(weir_try_acquire_at(l, 1, &more), 0);
	weir_limiter_destroy(l);
}

/* A limit that returns what the test sets. */
static double answer;

static double set_init(void *state, const void *c, double random)
{
	(void)state;
	(void)c;
	cr_assert(random >= 0 && random < 1);
	return answer;
}

static double set_update(void *state, const struct weir_window *w)
{
	(void)state;
	(void)w;
	return answer;
}

static const struct weir_limit_ops set_by_test = {
	.size = sizeof(struct weir_limit_ops),
	.name = "set",
	.init = set_init,
	.update = set_update,
};

Test(limiter, the_bounds_hold_whatever_the_limit_returns)
{
	static const struct {
		double answer;
		uint32_t limit;
	} cases[] = {
		{12.9, 12},
		{0, 1},
		{-5, 1},
		{1e30, WEIR_LIMIT_MAX},
		{INFINITY, WEIR_LIMIT_MAX},
		{3, 3},
		{NAN, 3},
		{-INFINITY, 1},
	};
	struct weir_config config = config_for(&set_by_test, NULL);
	struct weir_limiter *l;

	answer = 10;
	config.windowing = WEIR_WINDOW_SAMPLE;
	l = make(&config);
	cr_assert_eq(weir_limit(l), 10);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		answer = cases[i].answer;
		weir_sample_at(l, 100, 200, 1, WEIR_SUCCESS);
		cr_assert_eq(weir_limit(l), cases[i].limit, "%g", cases[i].answer);
	}
	weir_limiter_destroy(l);
}

Test(limiter, the_initial_limit_is_within_the_bounds)
{
	struct weir_config config = config_for(&set_by_test, NULL);
	struct weir_limiter *l;

	answer = NAN;
	l = make(&config);
	cr_assert_eq(weir_limit(l), 1);
	weir_limiter_destroy(l);
}

Test(limiter, a_clock_that_stands_still_or_goes_back_costs_a_sample_and_no_permit)
{
	struct weir_config config = config_for(&weir_vegas, NULL);
	struct weir_limiter *l;
	struct weir_token token;

	config.windowing = WEIR_WINDOW_SAMPLE;
	l = make(&config);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(weir_try_acquire_at(l, 1000, &token), 0);
		weir_release_at(l, i % 2 ? 1000 : 500, &token, WEIR_SUCCESS);
	}
	cr_assert_eq(weir_inflight(l), 0);
	cr_assert_eq(rig_snapshot(l).succeeded, 100);
	cr_assert_eq(rig_snapshot(l).windows, 0);
	cr_assert_eq(weir_limit(l), 20);
	weir_limiter_destroy(l);
}

Test(limiter, the_same_seed_gives_the_same_limits)
{
	uint32_t first[2000];

	for (int round = 0; round < 3; round++) {
		struct weir_vegas_config vegas = {.probe = 2};
		struct weir_config config = config_for(&weir_vegas, &vegas);
		bool same = true;
		struct weir_limiter *l;

		config.windowing = WEIR_WINDOW_SAMPLE;
		config.seed = round == 2 ? 99 : 5;
		l = make(&config);
		for (unsigned i = 0; i < 2000; i++) {
			weir_time end = 1000000 + i * 1000;

			weir_sample_at(l, end - 500 - i % 300, end, 1000, WEIR_SUCCESS);
			if (round == 0)
				first[i] = weir_limit(l);
			same = same && first[i] == weir_limit(l);
		}
		cr_assert_eq(same, round != 2);
		weir_limiter_destroy(l);
	}
}

Test(limiter, it_needs_only_the_callers_memory)
{
	struct weir_config config = config_for(&weir_vegas, NULL);
	struct weir_limiter *l;
	struct weir_token token;
	size_t size;
	char *mem;

	config.queue = 100;
	config.rtt = WEIR_RTT_QUANTILE;
	config.track = 70;
	size = weir_limiter_size(&config);
	cr_assert(size > 0 && size % WEIR_ALIGN == 0);
	mem = aligned_alloc(WEIR_ALIGN, size + WEIR_ALIGN);
	memset(mem, 0xa5, size + WEIR_ALIGN);
	cr_assert_eq(weir_limiter_init(mem, size - 1, &config, &l), -EINVAL);
	cr_assert_eq(weir_limiter_init(mem + 8, size, &config, &l), -EINVAL);
	cr_assert_eq(weir_limiter_init(NULL, size, &config, &l), -EINVAL);
	cr_assert_null(l);
	cr_assert_eq(weir_limiter_init(mem, size, &config, &l), 0);
	for (int i = 0; i < 1000; i++) {
		cr_assert_eq(weir_try_acquire_at(l, (weir_time)i * WEIR_MS, &token), 0);
		weir_release_at(l, (weir_time)i * WEIR_MS + WEIR_US, &token, WEIR_SUCCESS);
	}
	cr_assert(rig_snapshot(l).windows > 5);
	for (size_t i = size; i < size + WEIR_ALIGN; i++)
		cr_assert_eq((unsigned char)mem[i], 0xa5);
	free(mem);
}

Test(limiter, an_invalid_configuration_is_rejected_with_a_sentence)
{
	struct weir_config config;
	struct weir_limiter *l;
	char why[160];

#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		weir_config_init(&config);                                                         \
		config.field = (value);                                                            \
		why[0] = '\0';                                                                     \
		cr_assert_eq(weir_config_check(&config, why, sizeof(why)), -EINVAL, #field);       \
		cr_assert(why[0] != '\0' && why[strlen(why) - 1] == '.', "%s", why);               \
		cr_assert_eq(weir_limiter_create(&config, &l), -EINVAL);                           \
		cr_assert_null(l);                                                                 \
		cr_assert_eq(weir_limiter_init(NULL, 0, &config, &l), -EINVAL);                    \
		cr_assert_null(l);                                                                 \
		cr_assert_eq(weir_limiter_size(&config), 0);                                       \
	} while (0)

	REFUSED(limit_max, WEIR_LIMIT_MAX + 1);
	REFUSED(limit_min, WEIR_LIMIT_MAX + 1);
	REFUSED(window_min, 2 * WEIR_S);
	REFUSED(window_max, WEIR_MS);
	REFUSED(window_max, UINT64_MAX);
	REFUSED(rtt_threshold, UINT64_MAX);
	REFUSED(quantile, -0.1);
	REFUSED(quantile, 1);
	REFUSED(quantile, NAN);
	REFUSED(rtt_smoothing, 1.1);
	REFUSED(rtt_smoothing, -1);
	REFUSED(rtt_smoothing, NAN);
	REFUSED(queue, 65536);
	REFUSED(queue_stand, UINT64_MAX);
	REFUSED(stripes, 257);
	REFUSED(track, UINT32_MAX);
	REFUSED(partition_hold, UINT64_MAX);
	REFUSED(burst, WEIR_LIMIT_MAX + 1);
	REFUSED(windowing, (enum weir_windowing)9);
	REFUSED(sparse, (enum weir_sparse)9);
	REFUSED(rtt, (enum weir_rtt)9);
	REFUSED(order, (enum weir_order)9);
	REFUSED(size, 3);
	REFUSED(size, sizeof(config) + 8);
	weir_config_init(&config);
	cr_assert_eq(weir_config_check(&config, why, sizeof(why)), 0);
	cr_assert_eq(weir_config_check(NULL, why, sizeof(why)), 0);
	cr_assert_eq(weir_limiter_create(NULL, &l), 0);
	cr_assert_eq(weir_limit(l), 8);
	weir_limiter_destroy(l);
}
