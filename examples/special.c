/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Special kinds of calls at a server's limiter: a health check that must never be refused, an
 * upload with the cost of several calls, a subscription that lasts for hours, a short burst, and
 * the outcomes of a call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#define LIMIT 10
#define BURST 4

static unsigned failures;

static void expect(const char *what, bool is_true)
{
	printf("%-4s %s\n", is_true ? "yes" : "NO", what);
	failures += !is_true;
}

static struct weir_snapshot look(const struct weir_limiter *limiter)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	return s;
}

static struct weir_limiter *make_limiter(void)
{
	const struct weir_fixed_config fixed = {.limit = LIMIT};
	struct weir_limiter *limiter;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	config.burst = BURST; /* permits above the limit, while latency does not rise */
	return weir_limiter_create(&config, &limiter) == 0 ? limiter : NULL;
}

static void burst(struct weir_limiter *limiter)
{
	struct weir_token token[2 * LIMIT];
	unsigned admitted = 0;

	while (weir_try_acquire(limiter, &token[admitted]) == 0)
		admitted++;
	expect("a burst gets the limit and the headroom above it", admitted == LIMIT + BURST);
	while (admitted > 0)
		weir_release(limiter, &token[--admitted], WEIR_SUCCESS);
}

static void upload(struct weir_limiter *limiter, unsigned megabytes)
{
	const struct weir_call call = {.cost = megabytes};
	struct weir_token token;

	if (weir_try_acquire_for(limiter, &call, &token) != 0) {
		expect("the upload is admitted", false);
		return;
	}
	expect("an upload of 6 MB holds 6 permits", weir_inflight(limiter) == megabytes);
	weir_release(limiter, &token, WEIR_SUCCESS);
}

static void health_check(struct weir_limiter *limiter)
{
	const struct weir_call call = {.flags = WEIR_CALL_BYPASS};
	const struct weir_call all = {.cost = LIMIT + BURST};
	struct weir_token token, none, check;

	if (weir_try_acquire_for(limiter, &all, &token) != 0)
		exit(EXIT_FAILURE);
	expect("the limiter is full", weir_try_acquire(limiter, &none) == -EAGAIN);
	expect("a health check is admitted all the same",
	       weir_try_acquire_for(limiter, &call, &check) == 0);
	expect("and takes no permit", weir_inflight(limiter) == LIMIT + BURST);
	weir_release(limiter, &check, WEIR_SUCCESS);
	weir_release(limiter, &token, WEIR_SUCCESS);
	expect("it was counted", look(limiter).bypassed == 1);
}

static void subscription(struct weir_limiter *limiter)
{
	struct weir_token token;

	if (weir_try_acquire(limiter, &token) != 0 || weir_detach(limiter, &token) != 0)
		exit(EXIT_FAILURE);
	expect("a subscription keeps its permit", weir_inflight(limiter) == 1);
	/* Hours later. As a sample its latency would have looked like a stalled service. */
	weir_release(limiter, &token, WEIR_SUCCESS);
	expect("and its latency is not a sample", look(limiter).detached == 1);
}

static void endings(struct weir_limiter *limiter)
{
	static const enum weir_outcome outcomes[] = {
		WEIR_SUCCESS,   /* served */
		WEIR_IGNORE,    /* a bad request: no evidence of load */
		WEIR_DROPPED,   /* the database refused it as overloaded */
		WEIR_TIMED_OUT, /* the database did not answer in time */
		WEIR_CANCELLED, /* the client went away */
		WEIR_FAILED,    /* a bad gateway: it failed before any work was done */
	};
	struct weir_token token;

	for (unsigned i = 0; i < 6; i++) {
		if (weir_try_acquire(limiter, &token) != 0)
			exit(EXIT_FAILURE);
		weir_release(limiter, &token, outcomes[i]);
	}
	expect("each outcome is counted",
	       look(limiter).ignored == 1 && look(limiter).dropped == 1 &&
		       look(limiter).timed_out == 1 && look(limiter).cancelled == 1 &&
		       look(limiter).failed == 1);
}

int main(void)
{
	struct weir_limiter *limiter = make_limiter();

	if (limiter == NULL)
		return EXIT_FAILURE;
	burst(limiter);
	upload(limiter, 6);
	health_check(limiter);
	subscription(limiter);
	endings(limiter);
	expect("nothing is left in flight", weir_inflight(limiter) == 0);
	weir_limiter_destroy(limiter);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
