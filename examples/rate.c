/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of an interface that allows 300 calls, and 1000 units of cost, per minute. It shows how
 * calls are paced, how an expensive call delays later ones, how the true cost of a call is settled,
 * and what happens after a 429 of the backend. The example uses a simulated clock, so a minute
 * takes no time. A real program leaves weir_rate_config.clock unset, and waits in weir_rate_take().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

enum { CALLS, UNITS };

static unsigned failures;
static weir_time minute;

static void expect(const char *what, bool is_true)
{
	printf("%-4s %s\n", is_true ? "yes" : "NO", what);
	failures += !is_true;
}

static weir_time read_clock(const struct weir_clock *clock)
{
	(void)clock;
	return minute;
}

static const struct weir_clock played = {.now = read_clock};

static struct weir_rate *make_rate(void)
{
	struct weir_rate_config config;
	struct weir_rate *rate;
	char why[160];

	weir_rate_config_init(&config);
	config.quotas[CALLS] = (struct weir_quota){.units = 300, .period = 60 * WEIR_S};
	config.quotas[UNITS] = (struct weir_quota){.units = 1000, .period = 60 * WEIR_S};
	config.quota_count = 2;
	config.queue = 100;
	config.clock = &played;
	if (weir_rate_config_check(&config, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		return NULL;
	}
	return weir_rate_create(&config, &rate) == 0 ? rate : NULL;
}

static struct weir_rate_snapshot look(struct weir_rate *rate)
{
	struct weir_rate_snapshot s;

	weir_rate_snapshot_init(&s);
	weir_rate_snapshot_take(rate, &s);
	return s;
}

/* Wait as an event loop does: join the queue, and try again at each turn. Returns the time. */
static weir_time call_when_it_may(struct weir_rate *rate, uint64_t units)
{
	const struct weir_cost cost = {.units = {1, units}};
	struct weir_wait wait;

	if (weir_rate_enqueue(rate, &cost, NULL, NULL, &wait) != 0)
		return WEIR_FOREVER;
	for (;;) {
		const weir_time next = weir_rate_serve(rate);

		if (weir_rate_poll(rate, &wait) == 0)
			return minute;
		minute = next; /* an event loop sets its timer here */
	}
}

static void pace(struct weir_rate *rate)
{
	const weir_time began = minute;
	bool even = true;

	for (unsigned i = 0; i < 300; i++)
		even = even && call_when_it_may(rate, 3) == began + i * 200 * WEIR_MS;
	expect("300 calls a minute are one per 200 ms", even);
	minute = began + 60 * WEIR_S;
	expect("and no more", look(rate).admitted == 300);
}

static void pay_for_a_dear_one(struct weir_rate *rate)
{
	const weir_time began = minute;

	call_when_it_may(rate, 100);
	expect("an expensive call begins at once", minute == began);
	call_when_it_may(rate, 1);
	expect("and is paid for by a pause", minute - began > 5 * WEIR_S);
}

/* The cost is known only from the answer. */
static void settle(struct weir_rate *rate)
{
	const weir_time began = minute;

	call_when_it_may(rate, 50);
	weir_rate_settle(rate, UNITS, 50, 2);
	call_when_it_may(rate, 1);
	expect("unused cost is returned", minute - began < WEIR_S);
}

static void hear_429(struct weir_rate *rate)
{
	const weir_time began = minute;

	weir_rate_throttled(rate, 10 * WEIR_S);
	expect("after a 429 nothing is sent", weir_rate_try(rate, 1) == -EAGAIN);
	call_when_it_may(rate, 1);
	expect("until it is allowed", minute - began >= 10 * WEIR_S);
	expect("and then more slowly", look(rate).percent == 70);
	minute += 60 * WEIR_S;
	expect("for a while", look(rate).percent == 100);
}

int main(void)
{
	struct weir_rate *rate = make_rate();

	if (rate == NULL)
		return EXIT_FAILURE;
	pace(rate);
	pay_for_a_dear_one(rate);
	settle(rate);
	hear_429(rate);
	weir_rate_destroy(rate);
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
