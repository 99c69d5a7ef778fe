/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait for a rate: in the callbacks of an event loop, and in threads.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "rate_rig.h"

/* Without threads. */

static void count_call(void *arg)
{
	(*(unsigned *)arg)++;
}

Test(rate_waiting, waiters_are_served_in_order_and_not_overtaken)
{
	struct weir_rate *rate = with_queue(10, 3);
	struct weir_wait wait[3], none;
	unsigned notified[3] = {0};

	cr_assert_eq(drain(rate, 1), 1);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(weir_rate_enqueue(rate, &one, count_call, &notified[i], &wait[i]), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &none), -EAGAIN);
	cr_assert_eq(weir_rate_serve(rate), clock_time + 100 * WEIR_MS);
	cr_assert_eq(look(rate).waiting, 3);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_try(rate, 1), -EAGAIN, "the units left are for waiters");
	cr_assert_eq(weir_rate_poll(rate, &wait[0]), -EAGAIN);
	cr_assert_eq(weir_rate_serve(rate), clock_time + 100 * WEIR_MS);
	cr_assert_eq(notified[0], 1);
	cr_assert_eq(notified[1], 0);
	cr_assert_eq(weir_rate_poll(rate, &wait[0]), 0);
	cr_assert_eq(weir_rate_poll(rate, &wait[0]), -EINVAL);
	cr_assert_eq(weir_rate_cancel(rate, &wait[1]), 0);
	cr_assert_eq(weir_rate_cancel(rate, &wait[1]), -EINVAL);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER);
	cr_assert_eq(notified[2], 1);
	cr_assert_eq(weir_rate_cancel(rate, &wait[2]), -EALREADY);
	cr_assert_eq(notified[1], 0);
	cr_assert_eq(look(rate).abandoned, 1);
	cr_assert_eq(look(rate).admitted, 3);
	weir_rate_destroy(rate);
}

struct again {
	struct weir_rate *rate;
	struct weir_wait next;
};

static void stand_again(void *arg)
{
	struct again *again = arg;

	cr_assert_eq(weir_rate_enqueue(again->rate, &one, NULL, NULL, &again->next), 0);
}

Test(rate_waiting, a_notified_waiter_may_enqueue_again)
{
	struct again again = {.rate = with_queue(10, 2)};
	struct weir_wait first;

	cr_assert_eq(drain(again.rate, 1), 1);
	cr_assert_eq(weir_rate_enqueue(again.rate, &one, stand_again, &again, &first), 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(again.rate), clock_time + 100 * WEIR_MS);
	cr_assert_eq(weir_rate_poll(again.rate, &first), 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(again.rate), WEIR_FOREVER);
	cr_assert_eq(weir_rate_poll(again.rate, &again.next), 0);
	weir_rate_destroy(again.rate);
}

struct reuse {
	struct weir_rate *rate;
	struct weir_wait wait, next;
	int answer;
};

static void end_and_enqueue_again(void *arg)
{
	struct reuse *again = arg;

	again->answer = weir_rate_poll(again->rate, &again->wait);
	cr_assert_eq(weir_rate_enqueue(again->rate, &one, NULL, NULL, &again->next), 0);
}

/* The seat's next use is independent: the return of the earlier callback does not affect it. */
Test(rate_waiting, a_seat_that_a_callback_has_freed_may_be_used_again)
{
	struct reuse again = {.rate = with_queue(10, 1)};
	struct weir_wait first;

	cr_assert_eq(drain(again.rate, 1), 1);
	cr_assert_eq(
		weir_rate_enqueue(again.rate, &one, end_and_enqueue_again, &again, &again.wait), 0);
	first = again.wait;
	clock_time += 100 * WEIR_MS;
	(void)weir_rate_serve(again.rate);
	cr_assert_eq(again.answer, 0);
	cr_assert_eq(again.next.slot, first.slot);
	cr_assert_eq(weir_rate_poll(again.rate, &again.next), -EAGAIN);
	cr_assert_eq(weir_rate_poll(again.rate, &first), -EINVAL, "it has ended");
	clock_time += 100 * WEIR_MS;
	(void)weir_rate_serve(again.rate);
	cr_assert_eq(weir_rate_poll(again.rate, &again.next), 0);
	weir_rate_destroy(again.rate);
}

struct taker {
	struct weir_rate *rate;
	struct weir_wait wait, other;
	int answer, other_answer;
	bool cancels;
};

static void take_in_callback(void *arg)
{
	struct taker *t = arg;

	t->other_answer = weir_rate_poll(t->rate, &t->other);
	t->answer = t->cancels ? weir_rate_cancel(t->rate, &t->wait)
			       : weir_rate_poll(t->rate, &t->wait);
}

/* Both are served at once, and the other's callback runs after this one. */
Test(rate_waiting, a_callback_may_end_its_waiter, .timeout = 60)
{
	for (int cancels = 0; cancels < 2; cancels++) {
		struct weir_rate *rate = with_queue(10, 2);
		struct taker taker = {.rate = rate, .cancels = cancels}, idle = {.rate = rate};

		cr_assert_eq(drain(rate, 1), 1);
		cr_assert_eq(weir_rate_enqueue(rate, &one, take_in_callback, &taker, &taker.wait),
			     0);
		cr_assert_eq(weir_rate_enqueue(rate, &one, take_in_callback, &idle, &taker.other),
			     0);
		idle.wait = taker.other;
		clock_time += 200 * WEIR_MS;
		(void)weir_rate_serve(rate);
		clock_time += 200 * WEIR_MS;
		(void)weir_rate_serve(rate);
		cr_assert_eq(taker.answer, cancels ? -EALREADY : 0);
		cr_assert_eq(taker.other_answer, -EAGAIN,
			     "it has yet to be notified, or to be served");
		cr_assert_eq(idle.answer, 0);
		cr_assert_eq(weir_rate_poll(rate, &taker.other), -EINVAL, "it has ended");
		weir_rate_destroy(rate);
	}
}

Test(rate_waiting, returned_units_go_to_waiters)
{
	struct weir_rate *rate = with_queue(10, 2);
	struct weir_wait a, b;

	cr_assert_eq(weir_rate_try(rate, 5), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &a), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &b), 0);
	cr_assert_eq(weir_rate_settle(rate, 0, 5, 0), 0);
	cr_assert_eq(weir_rate_poll(rate, &a), 0);
	cr_assert_eq(weir_rate_poll(rate, &b), -EAGAIN);
	cr_assert_eq(weir_rate_cancel(rate, &b), 0);
	weir_rate_destroy(rate);
}

Test(rate_waiting, a_turn_that_is_years_away, .timeout = 60)
{
	struct weir_rate_config config = plan(1, DAY, 0);
	const weir_time began = clock_time;
	struct weir_rate *rate;
	struct weir_wait wait;
	unsigned looks = 0;

	config.queue = 1;
	rate = make(&config);
	cr_assert_eq(weir_rate_settle(rate, 0, 0, 4000), 0);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &wait), 0);
	while (weir_rate_poll(rate, &wait) == -EAGAIN) {
		cr_assert_lt(looks++, 10, "it may need a few looks");
		clock_time = weir_rate_serve(rate);
		cr_assert_neq(clock_time, WEIR_FOREVER);
		if (look(rate).waiting == 1)
			(void)weir_rate_serve(rate);
	}
	cr_assert_eq(clock_time - began, 4001 * DAY - look(rate).slot);
	weir_rate_destroy(rate);
}

static unsigned sooner;

Test(rate_waiting, an_event_loop_is_notified_when_turns_come_sooner)
{
	struct weir_rate_config config = plan(0, WEIR_S, 100 * WEIR_MS);
	const struct weir_quota more = {.units = 10};
	struct weir_rate *rate;
	struct weir_wait wait;

	config.queue = 1;
	config.sooner = count_call;
	config.sooner_arg = &sooner;
	rate = make(&config);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &wait), 0);
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER, "nothing may pass");
	clock_time += DAY;
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER);
	cr_assert_eq(sooner, 0);
	cr_assert_eq(weir_rate_set(rate, 0, &more), 0);
	cr_assert_eq(sooner, 1);
	cr_assert_eq(weir_rate_serve(rate), clock_time + 100 * WEIR_MS);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(weir_rate_serve(rate), WEIR_FOREVER);
	cr_assert_eq(weir_rate_poll(rate, &wait), 0);
	cr_assert_eq(weir_rate_set(rate, 0, &more), 0);
	cr_assert_eq(sooner, 1, "no call waits");
	weir_rate_destroy(rate);
}

/* Waiting with threads, in real time, of which only the order is asserted. */

struct sleeper {
	struct weir_rate *rate;
	weir_time deadline;
	int result;
};

static void *sleep_on_it(void *arg)
{
	struct sleeper *s = arg;

	s->result = weir_rate_take(s->rate, 1, s->deadline);
	return NULL;
}

static void until_waiting(struct weir_rate *rate, uint32_t waiting)
{
	while (look(rate).waiting != waiting)
		usleep(100);
}

/* Until a call waits, or has waited: on a busy machine its deadline may come before this looks. */
static void until_come(struct weir_rate *rate)
{
	struct weir_rate_snapshot s = look(rate);

	for (; s.waiting + s.abandoned + s.admitted == 0; s = look(rate))
		usleep(100);
}

static struct weir_rate *for_threads(uint64_t units, uint32_t queue)
{
	struct weir_rate_config config = plan(units, WEIR_S, 2 * WEIR_MS);

	config.clock = NULL;
	config.queue = queue;
	return make(&config);
}

Test(rate_waiting, threads_wait_for_their_turn, .timeout = 60)
{
	struct weir_rate *rate = for_threads(500, 8);
	const weir_time began = weir_now();
	struct sleeper s[8];
	pthread_t thread[8];

	for (unsigned i = 0; i < 8; i++) {
		s[i] = (struct sleeper){.rate = rate, .deadline = WEIR_FOREVER};
		cr_assert_eq(pthread_create(&thread[i], NULL, sleep_on_it, &s[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(thread[i], NULL);
		cr_assert_eq(s[i].result, 0);
	}
	/* One a slot and one at once: the clock read here may be early by a slot. */
	cr_assert_geq(weir_now() - began, 6 * 2 * WEIR_MS);
	cr_assert_eq(look(rate).admitted, 8);
	cr_assert_eq(look(rate).waiting, 0);
	weir_rate_destroy(rate);
}

Test(rate_waiting, a_closed_rate_wakes_its_threads_when_it_is_opened, .timeout = 60)
{
	struct weir_rate *rate = for_threads(0, 8);
	const struct weir_quota open = {.flags = WEIR_QUOTA_UNLIMITED}, some = {.units = 1000};
	struct sleeper s[4];
	pthread_t thread[4];

	cr_assert_eq(weir_rate_take(rate, 1, weir_now() + WEIR_MS), -ETIMEDOUT);
	cr_assert_eq(weir_rate_take(rate, 1, 0), -ETIMEDOUT);
	cr_assert_eq(look(rate).abandoned, 2);
	for (unsigned i = 0; i < 4; i++) {
		s[i] = (struct sleeper){.rate = rate, .deadline = WEIR_FOREVER};
		cr_assert_eq(pthread_create(&thread[i], NULL, sleep_on_it, &s[i]), 0);
	}
	until_waiting(rate, 4);
	cr_assert_eq(weir_rate_set(rate, 0, &some), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		cr_assert_eq(s[i].result, 0);
	}
	cr_assert_eq(weir_rate_set(rate, 0, &open), 0);
	cr_assert_eq(weir_rate_take(rate, WEIR_UNITS_MAX, 0), 0);
	weir_rate_destroy(rate);
}

/* The thread that watches leaves; another must watch instead. */
Test(rate_waiting, a_watcher_that_leaves_hands_over_its_watch, .timeout = 60)
{
	struct weir_rate *rate = for_threads(50, 8);
	struct sleeper first = {.rate = rate}, second = {.rate = rate, .deadline = WEIR_FOREVER};
	pthread_t a, b;

	cr_assert_eq(weir_rate_settle(rate, 0, 0, 10), 0); /* a debt of some slots */
	first.deadline = weir_now() + 20 * WEIR_MS;
	cr_assert_eq(pthread_create(&a, NULL, sleep_on_it, &first), 0);
	until_come(rate);
	cr_assert_eq(pthread_create(&b, NULL, sleep_on_it, &second), 0);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	cr_assert(first.result == -ETIMEDOUT || first.result == 0);
	cr_assert_eq(second.result, 0);
	weir_rate_destroy(rate);
}

Test(rate_waiting, without_a_queue_no_call_waits)
{
	struct weir_rate *rate = for_threads(1, 0);
	struct weir_wait wait;

	cr_assert_eq(weir_rate_take(rate, 1, WEIR_FOREVER), -EAGAIN);
	cr_assert_eq(weir_rate_enqueue(rate, &one, NULL, NULL, &wait), -EAGAIN);
	cr_assert_eq(weir_rate_poll(rate, &wait), -EINVAL);
	cr_assert_eq(look(rate).refused, 2);
	weir_rate_destroy(rate);
}

struct slow {
	struct weir_rate *rate;
	struct weir_wait wait;
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

static void *serve_rate(void *arg)
{
	(void)weir_rate_serve(arg);
	return NULL;
}

/* A waiter whose callback is being run by another thread. */
static pthread_t start_slow(struct slow *slow)
{
	pthread_t thread;

	slow->rate = with_queue(10, 1);
	sem_init(&slow->began, 0, 0);
	sem_init(&slow->end, 0, 0);
	cr_assert_eq(drain(slow->rate, 1), 1);
	cr_assert_eq(weir_rate_enqueue(slow->rate, &one, run_slowly, slow, &slow->wait), 0);
	clock_time += 100 * WEIR_MS;
	cr_assert_eq(pthread_create(&thread, NULL, serve_rate, slow->rate), 0);
	sem_wait(&slow->began);
	return thread;
}

Test(rate_waiting, a_poll_or_cancel_waits_for_a_callback_that_is_running, .timeout = 60)
{
	for (int cancels = 0; cancels < 2; cancels++) {
		struct slow slow = {.ended = false};
		pthread_t thread = start_slow(&slow);

		sem_post(&slow.end);
		if (cancels)
			cr_assert_eq(weir_rate_cancel(slow.rate, &slow.wait), -EALREADY);
		else
			cr_assert_eq(weir_rate_poll(slow.rate, &slow.wait), 0);
		cr_assert(slow.ended);
		pthread_join(thread, NULL);
		weir_rate_destroy(slow.rate);
	}
}

static void poll_the_other(void *arg)
{
	struct taker *t = arg;

	t->other_answer = weir_rate_poll(t->rate, &t->other);
}

/* Two threads that run callbacks may each poll the other's waiter. */
Test(rate_waiting, a_poll_from_another_callback_does_not_wait, .timeout = 60)
{
	struct slow slow = {.ended = false};
	pthread_t thread = start_slow(&slow);
	struct weir_rate *rate = with_queue(10, 1);
	struct taker taker = {.rate = slow.rate, .other = slow.wait};

	cr_assert_eq(weir_rate_enqueue(rate, &one, poll_the_other, &taker, &taker.wait), 0);
	cr_assert_eq(taker.other_answer, -EAGAIN);
	cr_assert_not(slow.ended);
	sem_post(&slow.end);
	pthread_join(thread, NULL);
	cr_assert_eq(weir_rate_poll(slow.rate, &slow.wait), 0);
	weir_rate_destroy(slow.rate);
	weir_rate_destroy(rate);
}

Test(rate_waiting, a_threads_seat_cannot_be_polled, .timeout = 60)
{
	struct weir_rate *rate = for_threads(0, 1);
	const struct weir_quota open = {.flags = WEIR_QUOTA_UNLIMITED};
	struct weir_wait forged = {.slot = 0, .stamp = 1};
	struct sleeper s = {.rate = rate, .deadline = WEIR_FOREVER};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, sleep_on_it, &s), 0);
	until_waiting(rate, 1);
	cr_assert_eq(weir_rate_poll(rate, &forged), -EINVAL);
	cr_assert_eq(weir_rate_cancel(rate, &forged), -EINVAL);
	cr_assert_eq(look(rate).waiting, 1);
	cr_assert_eq(weir_rate_set(rate, 0, &open), 0);
	pthread_join(thread, NULL);
	cr_assert_eq(s.result, 0);
	weir_rate_destroy(rate);
}
