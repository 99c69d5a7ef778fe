/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a permit, with threads and without.
 */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "rig.h"

static struct weir_limiter *make(uint32_t limit, uint32_t queue)
{
	struct weir_settable_config settable = {.initial = limit};
	struct weir_limiter *limiter;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_settable;
	config.limit_config = &settable;
	config.queue = queue;
	cr_assert_eq(weir_limiter_create(&config, &limiter), 0);
	return limiter;
}

Test(waiting, without_a_queue_no_call_waits)
{
	struct weir_limiter *l = make(1, 0);
	struct weir_token a, b;
	struct weir_wait wait;

	cr_assert_eq(weir_acquire(l, WEIR_FOREVER, &a), 0);
	cr_assert_eq(weir_acquire(l, WEIR_FOREVER, &b), -EAGAIN);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), -EAGAIN);
	cr_assert_eq(weir_acquire(l, 0, &b), -EAGAIN, "refused, not late");
	cr_assert_eq(weir_queue_size(l), 0);
	cr_assert_eq(rig_snapshot(l).rejected, 3);
	cr_assert_eq(rig_snapshot(l).abandoned, 0);
	weir_release(l, &a, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}

Test(waiting, with_a_deadline_in_the_past_a_free_permit_is_still_taken)
{
	struct weir_limiter *l = make(1, 4);
	struct weir_token a, b;

	cr_assert_eq(weir_queue_size(l), 4);
	cr_assert_eq(weir_acquire(l, 0, &a), 0);
	cr_assert_eq(weir_acquire(l, 0, &b), -ETIMEDOUT);
	cr_assert_eq(weir_acquire(l, weir_now() + WEIR_MS, &b), -ETIMEDOUT);
	cr_assert_eq(b.state, 0);
	cr_assert_eq(rig_snapshot(l).abandoned, 2);
	cr_assert_eq(rig_snapshot(l).waiting, 0);
	weir_release(l, &a, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}

struct sleeper {
	struct weir_limiter *limiter;
	struct weir_token token;
	int result;
};

static void *sleep_on_it(void *arg)
{
	struct sleeper *s = arg;

	s->result = weir_acquire(s->limiter, WEIR_FOREVER, &s->token);
	return NULL;
}

static void until_waiting(const struct weir_limiter *l, uint32_t waiting)
{
	while (weir_waiting(l) != waiting)
		usleep(100);
}

Test(waiting, a_release_wakes_a_waiting_thread, .timeout = 60)
{
	struct sleeper s = {.limiter = make(1, 4)};
	struct weir_token token;
	pthread_t thread;

	cr_assert_eq(weir_try_acquire(s.limiter, &token), 0);
	cr_assert_eq(pthread_create(&thread, NULL, sleep_on_it, &s), 0);
	until_waiting(s.limiter, 1);
	weir_release(s.limiter, &token, WEIR_SUCCESS);
	pthread_join(thread, NULL);
	cr_assert_eq(s.result, 0);
	weir_release(s.limiter, &s.token, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(s.limiter), 0);
	weir_limiter_destroy(s.limiter);
}

Test(waiting, a_raised_limit_wakes_as_many_threads_as_it_has_room_for, .timeout = 60)
{
	struct weir_limiter *l = make(1, 8);
	struct sleeper s[5];
	struct weir_token token;
	pthread_t thread[5];

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	for (int i = 0; i < 5; i++) {
		s[i] = (struct sleeper){.limiter = l};
		cr_assert_eq(pthread_create(&thread[i], NULL, sleep_on_it, &s[i]), 0);
	}
	until_waiting(l, 5);
	cr_assert_eq(weir_limit_set(l, 4), 0);
	cr_assert_eq(weir_waiting(l), 2);
	cr_assert_eq(weir_inflight(l), 4);
	cr_assert_eq(weir_limit_set(l, 6), 0);
	for (int i = 0; i < 5; i++) {
		pthread_join(thread[i], NULL);
		cr_assert_eq(s[i].result, 0);
		weir_release(l, &s[i].token, WEIR_SUCCESS);
	}
	weir_release(l, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}

/* An adaptive limit wakes waiters when it grows, as weir_limit_set() does. */
Test(waiting, an_adaptive_limit_that_grows_wakes_waiters)
{
	struct weir_aimd_config aimd = {.initial = 1, .min = 1};
	struct weir_limiter *l;
	struct weir_config config;
	struct weir_token token;
	struct weir_wait wait;

	weir_config_init(&config);
	config.limit = &weir_aimd;
	config.limit_config = &aimd;
	config.windowing = WEIR_WINDOW_SAMPLE;
	config.queue = 1;
	cr_assert_eq(weir_limiter_create(&config, &l), 0);
	cr_assert_eq(weir_try_acquire_at(l, 1000, &token), 0);
	cr_assert_eq(weir_enqueue_at(l, 1000, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_poll_at(l, 1500, &wait, &token), -EAGAIN);
	weir_sample_at(l, 1000, 2000, 1, WEIR_SUCCESS);
	cr_assert_eq(weir_limit(l), 2);
	cr_assert_eq(weir_poll_at(l, 2000, &wait, &token), 0);
	weir_limiter_destroy(l);
}

Test(waiting, new_calls_do_not_overtake_waiters)
{
	struct weir_limiter *l = make(1, 4);
	struct weir_token a, b;
	struct weir_wait wait;

	cr_assert_eq(weir_try_acquire(l, &a), 0);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	weir_release(l, &a, WEIR_SUCCESS);
	cr_assert_eq(weir_try_acquire(l, &a), -EAGAIN); /* the permit is the waiter's */
	cr_assert_eq(weir_poll(l, &wait, &b), 0);
	weir_release(l, &b, WEIR_SUCCESS);
	cr_assert_eq(weir_try_acquire(l, &a), 0);
	weir_limiter_destroy(l);
}

Test(waiting, a_call_gets_a_permit_or_is_queued)
{
	const struct weir_call special = {.flags = WEIR_CALL_BYPASS}, wrong = {.partition = 7};
	struct weir_limiter *l = make(1, 1);
	struct weir_token a, b, c;
	struct weir_wait wait, none;

	cr_assert_eq(weir_acquire_or_enqueue(l, NULL, NULL, NULL, &none, &a), 0);
	cr_assert(none.stamp == 0 && a.inflight == 1);
	cr_assert_eq(weir_acquire_or_enqueue(l, NULL, NULL, NULL, &wait, &b), -EINPROGRESS);
	cr_assert_eq(b.state, 0);
	cr_assert_eq(weir_acquire_or_enqueue(l, NULL, NULL, NULL, &none, &c), -EAGAIN);
	cr_assert_eq(weir_acquire_or_enqueue(l, &wrong, NULL, NULL, &none, &c), -EINVAL);
	cr_assert_eq(none.stamp, 0);
	cr_assert_eq(weir_acquire_or_enqueue(l, &special, NULL, NULL, &none, &c), 0);
	weir_release(l, &c, WEIR_SUCCESS);
	weir_release(l, &a, WEIR_SUCCESS);
	cr_assert_eq(weir_poll(l, &wait, &b), 0);
	weir_release(l, &b, WEIR_SUCCESS);
	cr_assert(rig_snapshot(l).rejected == 1 && rig_snapshot(l).bypassed == 1);
	weir_limiter_destroy(l);
}

Test(waiting, cancelled_waiters_make_room_in_the_queue)
{
	struct weir_limiter *l = make(1, 2);
	struct weir_wait first, second, third;
	struct weir_token token, none;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	for (int i = 0; i < 1000; i++) {
		cr_assert_eq(weir_enqueue(l, NULL, NULL, &first), 0);
		cr_assert_eq(weir_enqueue(l, NULL, NULL, &second), 0);
		cr_assert_eq(weir_enqueue(l, NULL, NULL, &third), -EAGAIN);
		cr_assert_eq(weir_cancel(l, &first, &none), 0);
		cr_assert_eq(weir_cancel(l, &second, &none), 0);
		cr_assert_eq(weir_cancel(l, &second, &none), -EINVAL);
	}
	weir_limiter_destroy(l);
}

Test(waiting, a_queue_may_have_more_slots_than_a_word_has_bits)
{
	enum { SLOTS = 200 };
	struct weir_limiter *l = make(1, SLOTS);
	struct weir_wait wait[SLOTS], none;
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(l, &token), 0);
	for (int i = 0; i < SLOTS; i++)
		cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait[i]), 0);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &none), -EAGAIN);
	cr_assert_eq(weir_waiting(l), SLOTS);
	for (int i = 0; i < SLOTS; i++) {
		weir_release(l, &token, WEIR_SUCCESS);
		cr_assert_eq(weir_poll(l, &wait[i], &token), 0, "in order: %d", i);
	}
	cr_assert_eq(weir_waiting(l), 0);
	weir_limiter_destroy(l);
}

Test(waiting, a_stale_waiter_is_detected)
{
	struct weir_limiter *l = make(1, 1);
	struct weir_wait wait, copy, forged = {.slot = 4000000, .stamp = 1};
	struct weir_token held, token;

	cr_assert_eq(weir_try_acquire(l, &held), 0);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	copy = wait;
	weir_release(l, &held, WEIR_SUCCESS);
	cr_assert_eq(weir_poll(l, &wait, &token), 0);
	held = token;
	cr_assert_eq(weir_poll(l, &copy, &token), -EINVAL);
	cr_assert_eq(weir_enqueue(l, NULL, NULL, &wait), 0);
	cr_assert_eq(wait.slot, copy.slot);
	cr_assert_eq(weir_poll(l, &copy, &token), -EINVAL);
	cr_assert_eq(weir_cancel(l, &copy, &token), -EINVAL);
	cr_assert_eq(weir_poll(l, &forged, &token), -EINVAL);
	cr_assert_eq(token.state, held.state, "a failed poll leaves the token unchanged");
	weir_limiter_destroy(l);
}

struct intruder {
	struct weir_limiter *limiter;
	int result;
};

static void intrude(void *arg)
{
	struct intruder *intruder = arg;
	struct weir_token token;

	intruder->result = weir_try_acquire(intruder->limiter, &token);
}

/* Between two grants there is room, but a call still waits for it. */
Test(waiting, room_that_a_waiter_is_about_to_get_is_not_free)
{
	struct intruder intruder = {.limiter = make(1, 4)};
	struct weir_wait first, second;
	struct weir_token token;

	cr_assert_eq(weir_try_acquire(intruder.limiter, &token), 0);
	cr_assert_eq(weir_enqueue(intruder.limiter, intrude, &intruder, &first), 0);
	cr_assert_eq(weir_enqueue(intruder.limiter, NULL, NULL, &second), 0);
	cr_assert_eq(weir_limit_set(intruder.limiter, 3), 0);
	cr_assert_eq(intruder.result, -EAGAIN);
	cr_assert_eq(weir_poll(intruder.limiter, &second, &token), 0);
	weir_limiter_destroy(intruder.limiter);
}

struct chain {
	struct weir_limiter *limiter;
	struct weir_token held;
	int calls;
};

static void release_in_callback(void *arg)
{
	struct chain *chain = arg;

	chain->calls++;
	if (chain->held.state != 0)
		weir_release(chain->limiter, &chain->held, WEIR_SUCCESS);
}

Test(waiting, a_callback_may_use_the_limiter)
{
	struct chain chain = {.limiter = make(2, 4)};
	struct weir_wait first, second;
	struct weir_token a, token;

	cr_assert_eq(weir_try_acquire(chain.limiter, &a), 0);
	cr_assert_eq(weir_try_acquire(chain.limiter, &chain.held), 0);
	cr_assert_eq(weir_enqueue(chain.limiter, release_in_callback, &chain, &first), 0);
	cr_assert_eq(weir_enqueue(chain.limiter, release_in_callback, &chain, &second), 0);
	weir_release(chain.limiter, &a, WEIR_SUCCESS);
	cr_assert_eq(chain.calls, 2);
	cr_assert_eq(weir_poll(chain.limiter, &first, &token), 0);
	weir_release(chain.limiter, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_poll(chain.limiter, &second, &token), 0);
	weir_release(chain.limiter, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(chain.limiter), 0);
	weir_limiter_destroy(chain.limiter);
}

struct taker {
	struct weir_limiter *limiter;
	struct weir_wait wait, *other;
	struct weir_token token;
	bool cancels;
	int answer, other_answer, calls;
};

static void take_in_callback(void *arg)
{
	struct taker *t = arg;
	struct weir_token none;

	t->calls++;
	if (t->other != NULL)
		t->other_answer = weir_poll(t->limiter, t->other, &none);
	t->answer = t->cancels ? weir_cancel(t->limiter, &t->wait, &t->token)
			       : weir_poll(t->limiter, &t->wait, &t->token);
}

/* The callback itself can take the permit that it announces; the slot is free then. */
Test(waiting, a_callback_may_end_its_waiter, .timeout = 60)
{
	static const int answers[] = {0, -EALREADY};

	for (int cancels = 0; cancels < 2; cancels++) {
		struct weir_limiter *l = make(1, 2);
		struct taker now = {.limiter = l, .cancels = cancels};
		struct taker later = now;
		struct weir_wait other;

		cr_assert_eq(weir_enqueue(l, take_in_callback, &now, &now.wait), 0);
		cr_assert_eq(now.answer, answers[cancels]);
		cr_assert_eq(weir_poll(l, &now.wait, &later.token), -EINVAL, "it has ended");
		cr_assert_eq(weir_enqueue(l, take_in_callback, &later, &later.wait), 0);
		cr_assert_eq(weir_enqueue(l, NULL, NULL, &other), 0);
		later.other = &other;
		cr_assert_eq(later.calls, 0);
		weir_release(l, &now.token, WEIR_SUCCESS);
		cr_assert_eq(later.calls, 1);
		cr_assert_eq(later.other_answer, -EAGAIN);
		cr_assert_eq(later.answer, answers[cancels]);
		weir_release(l, &later.token, WEIR_SUCCESS);
		cr_assert_eq(weir_poll(l, &other, &later.token), 0);
		weir_release(l, &later.token, WEIR_SUCCESS);
		cr_assert_eq(weir_inflight(l), 0);
		weir_limiter_destroy(l);
	}
}

struct reuse {
	struct taker taker;
	struct weir_wait next;
};

static void take_and_enqueue_again(void *arg)
{
	struct reuse *again = arg;

	take_in_callback(&again->taker);
	cr_assert_eq(weir_enqueue(again->taker.limiter, NULL, NULL, &again->next), 0);
}

/* The slot's next use is independent: the return of the earlier callback does not affect it. */
Test(waiting, a_slot_that_a_callback_has_freed_may_be_used_again, .timeout = 60)
{
	struct weir_limiter *l = make(1, 1);
	struct reuse again = {.taker = {.limiter = l}};
	struct weir_token token;

	cr_assert_eq(weir_enqueue(l, take_and_enqueue_again, &again, &again.taker.wait), 0);
	cr_assert_eq(again.taker.answer, 0);
	cr_assert_eq(weir_poll(l, &again.next, &token), -EAGAIN);
	weir_release(l, &again.taker.token, WEIR_SUCCESS);
	cr_assert_eq(weir_poll(l, &again.next, &token), 0);
	weir_release(l, &token, WEIR_SUCCESS);
	cr_assert_eq(weir_inflight(l), 0);
	weir_limiter_destroy(l);
}

struct slow {
	struct weir_limiter *limiter;
	struct weir_wait wait;
	struct weir_token token;
	sem_t began, end;
	atomic_bool ended;
};

static void run_slowly(void *arg)
{
	struct slow *slow = arg;

	sem_post(&slow->began);
	sem_wait(&slow->end);
	usleep(1000);
	slow->ended = true;
}

static void *release_token(void *arg)
{
	struct slow *slow = arg;

	weir_release(slow->limiter, &slow->token, WEIR_SUCCESS);
	return NULL;
}

/* A waiter whose callback is being run by another thread. */
static pthread_t start_slow(struct slow *slow)
{
	pthread_t thread;

	slow->limiter = make(1, 2);
	sem_init(&slow->began, 0, 0);
	sem_init(&slow->end, 0, 0);
	cr_assert_eq(weir_try_acquire(slow->limiter, &slow->token), 0);
	cr_assert_eq(weir_enqueue(slow->limiter, run_slowly, slow, &slow->wait), 0);
	cr_assert_eq(pthread_create(&thread, NULL, release_token, slow), 0);
	sem_wait(&slow->began);
	return thread;
}

Test(waiting, a_poll_or_cancel_waits_for_a_callback_that_is_running, .timeout = 60)
{
	for (int cancels = 0; cancels < 2; cancels++) {
		struct slow slow = {.ended = false};
		pthread_t thread = start_slow(&slow);
		struct weir_token token;

		sem_post(&slow.end);
		if (cancels)
			cr_assert_eq(weir_cancel(slow.limiter, &slow.wait, &token), -EALREADY);
		else
			cr_assert_eq(weir_poll(slow.limiter, &slow.wait, &token), 0);
		cr_assert(slow.ended);
		pthread_join(thread, NULL);
		weir_release(slow.limiter, &token, WEIR_SUCCESS);
		cr_assert_eq(weir_inflight(slow.limiter), 0);
		weir_limiter_destroy(slow.limiter);
	}
}

/* Two threads that run callbacks may each poll the other's waiter. */
Test(waiting, a_poll_from_another_callback_does_not_wait, .timeout = 60)
{
	struct slow slow = {.ended = false};
	pthread_t thread = start_slow(&slow);
	struct weir_limiter *l = make(1, 1);
	struct taker taker = {.limiter = slow.limiter, .other = &slow.wait};
	struct weir_token token;

	cr_assert_eq(weir_enqueue(l, take_in_callback, &taker, &taker.wait), 0);
	cr_assert_eq(taker.other_answer, -EAGAIN);
	cr_assert_not(slow.ended);
	sem_post(&slow.end);
	pthread_join(thread, NULL);
	cr_assert_eq(weir_poll(slow.limiter, &slow.wait, &token), 0);
	weir_limiter_destroy(slow.limiter);
	weir_limiter_destroy(l);
}

static weir_time stopped(const struct weir_clock *clock)
{
	(void)clock;
	return 5;
}

Test(waiting, threads_do_not_wait_on_a_clock_that_the_kernel_does_not_know)
{
	static const struct weir_clock clock = {.now = stopped};
	struct weir_limiter *l;
	struct weir_config config;
	struct weir_token token;

	weir_config_init(&config);
	config.clock = &clock;
	config.queue = 1;
	cr_assert_eq(weir_limiter_create(&config, &l), 0);
	cr_assert_eq(weir_acquire(l, 100, &token), -EINVAL);
	cr_assert_eq(weir_try_acquire(l, &token), 0);
	cr_assert_eq(token.start, 5);
	weir_limiter_destroy(l);
}

/* If a deadline were rounded up to a second, the test would time out. */
Test(waiting, a_short_deadline_is_short)
{
	struct weir_limiter *l = make(1, 1);
	struct weir_token held, token;

	cr_assert_eq(weir_try_acquire(l, &held), 0);
	for (unsigned i = 0; i < 1000; i++)
		cr_assert_eq(weir_acquire(l, weir_now() + 100 * WEIR_US, &token), -ETIMEDOUT);
	weir_release(l, &held, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}
