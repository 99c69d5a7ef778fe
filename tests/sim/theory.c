/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * theory.c - compare the simulator with queueing theory where theory has an answer.
 *
 * Tolerances are about four standard errors of the run; an error in the model would be larger.
 */
#include "play.h"
#include "quantity.h"
#include "source.h"

#include <math.h>

#define NO_LIMIT "fixed:limit=1000000"
#define LAWS     6

static struct run_result result;

/* Simple scenarios: a warm-up, then the phase that is checked. */
static const struct tally *steady(const char *limit, const char *server, const char *rest,
				  const char *phase)
{
	char text[2000];

	snprintf(text, sizeof(text),
		 "name = \"theory\"; server = ( %s ); %s\n"
		 "phases = ( { length = \"20s\"; %s }, { length = \"500s\"; %s } );\n",
		 server, rest, phase, phase);
	play_text(&result, limit, text, 1);
	return &result.phases[1].tally;
}

static double mean_ms(const struct tally *t)
{
	return tally_latency_mean(t) / MS;
}

/* Expect a value within a relative tolerance. */
#define NEAR(is, should, part)                                                                     \
	cr_expect(fabs((is) - (should)) <= (part) * (should), "%s: %g, not %g", #is, (double)(is), \
		  (double)(should))

/* Erlang B: the share of calls refused by n servers without a queue, at an offered load. */
static double erlang_b(unsigned servers, double load)
{
	double b = 1;

	for (unsigned n = 1; n <= servers; n++)
		b = load * b / (n + load * b);
	return b;
}

/* Erlang C: the share that waits, with a queue. */
static double erlang_c(unsigned servers, double load)
{
	double b = erlang_b(servers, load);

	return b / (1 - load / servers * (1 - b));
}

static const char *const laws[LAWS] = {
	"constant 10ms",    "exponential 10ms", "uniform 10ms",
	"lognormal 10ms 1", "pareto 10ms 3.5",  "bimodal 10ms 0.1 10",
};

/* Second moment, in square milliseconds. */
static double second_moment(unsigned law)
{
	const double squares[LAWS] = {
		100,
		200,
		400.0 / 3,
		100 * exp(1),
		100 * 2.5 * 2.5 / (1.5 * 3.5), /* (a - 1)^2 / (a (a - 2)) */
		100 * (0.9 + 0.1 * 100) / (1.9 * 1.9),
	};

	return squares[law];
}

static const char *station(const char *discipline, unsigned workers, const char *work)
{
	static char text[200];

	snprintf(text, sizeof(text),
		 "{ name = \"s\"; discipline = \"%s\"; workers = %u; work = \"%s\"; }", discipline,
		 workers, work);
	return text;
}

/* A loss system depends only on the mean of the work, not on its law. */
Test(theory, erlang_loses)
{
	for (unsigned i = 0; i < LAWS; i++) {
		const struct tally *t = steady("fixed:limit=8", station("fifo", 8, laws[i]), "",
					       "load = 0.9;");

		cr_expect_float_eq(tally_rejected_share(t), erlang_b(8, 7.2), 0.006, "%s", laws[i]);
		NEAR(mean_ms(t), 10, 0.03);
	}
}

Test(theory, erlang_waits)
{
	const struct tally *t = steady(NO_LIMIT, station("fifo", 4, "exponential 10ms"), "",
				       "load = 0.8;");

	NEAR(mean_ms(t), 10 + erlang_c(4, 3.2) * 10 / (4 * (1 - 0.8)), 0.03);
	NEAR(tally_per_second(t, t->offered), 320, 0.01);
	cr_expect_eq(t->rejected, 0);
}

/* Pollaczek and Khinchine: the wait is proportional to the second moment of the work. */
/* One worker, and K calls at most in the system: at load 1 each number of calls is as likely. */
Test(theory, a_full_queue_sends_calls_back)
{
	const struct tally *t = steady(
		NO_LIMIT, "{ name = \"s\"; workers = 1; work = \"exponential 10ms\"; queue = 3; }",
		"", "load = 1;");

	NEAR((double)t->failed / (double)t->offered, 1.0 / 5, 0.04);
	NEAR(tally_per_second(t, t->good), 80, 0.02);
	NEAR(tally_inflight_mean(t), 2, 0.03);
	cr_expect_eq(t->rejected, 0);
	cr_expect_eq(result.leaked, 0);
}

/* The order changes neither the throughput nor the mean wait, and it does change who waits long. */
Test(theory, the_newest_first)
{
	const char *server = "{ name = \"s\"; workers = 4; work = \"exponential 10ms\"; "
			     "newest_first = true; }";
	const struct tally *t = steady(NO_LIMIT, server, "", "load = 0.8;");

	NEAR(mean_ms(t), 10 + erlang_c(4, 3.2) * 10 / (4 * (1 - 0.8)), 0.03);
	cr_expect_gt(tally_latency_quantile(t, 0.99), 100 * MS, "%g",
		     tally_latency_quantile(t, 0.99) / MS);
}

Test(theory, one_worker_with_any_law_of_work)
{
	for (unsigned i = 0; i < LAWS; i++) {
		const struct tally *t = steady(NO_LIMIT, station("fifo", 1, laws[i]), "",
					       "load = 0.5;");

		NEAR(mean_ms(t), 10 + 0.05 * second_moment(i) / (2 * (1 - 0.5)), 0.06);
	}
}

/* With processor sharing the law of the work does not matter. */
Test(theory, one_shared_worker_with_any_law_of_work)
{
	for (unsigned i = 0; i < LAWS; i++) {
		const struct tally *t = steady(NO_LIMIT, station("shared", 1, laws[i]), "",
					       "load = 0.6;");

		NEAR(mean_ms(t), 10 / (1 - 0.6), 0.05);
	}
}

/* With exponential work a shared station has as many jobs as one with a queue. */
Test(theory, shared_workers)
{
	const struct tally *t = steady(NO_LIMIT, station("shared", 4, "exponential 10ms"), "",
				       "load = 0.8;");

	NEAR(mean_ms(t), 10 + erlang_c(4, 3.2) * 10 / (4 * (1 - 0.8)), 0.03);
}

/* Sojourn in M/M/1 is exponential. The server is not notified, so timeouts do not change it. */
Test(theory, timeouts_without_the_server_knowing)
{
	const struct tally *t = steady(NO_LIMIT, station("fifo", 1, "exponential 10ms"),
				       "client = { timeout = \"40ms\"; };", "load = 0.7;");
	double late = exp(-40.0 / 10 * 0.3);

	cr_expect_float_eq((double)t->timed_out / (double)t->admitted, late, 0.015);
	NEAR(mean_ms(t), 10 / 0.3 * (1 - late), 0.04);
}

/* A server that is notified does no work in vain: no collapse at twice its capacity. */
Test(theory, timeouts_that_stop_work)
{
	const char *server = station("fifo", 4, "exponential 10ms");
	const struct tally *t = steady(NO_LIMIT, server,
				       "client = { timeout = \"100ms\"; stops_work = true; };",
				       "load = 2;");

	cr_expect_gt(tally_per_second(t, t->good), 0.85 * 400);
	t = steady(NO_LIMIT, server, "client = { timeout = \"100ms\"; };", "load = 2;");
	cr_expect_lt(tally_per_second(t, t->good), 4);
}

/* Exponential work and patience, with a worker for each call: the earlier of two events. */
Test(theory, cancels)
{
	const struct tally *t = steady(
		NO_LIMIT, "{ name = \"s\"; discipline = \"delay\"; work = \"exponential 10ms\"; }",
		"classes = { cancelled = 0.2; cancel_after = \"exponential 30ms\"; };",
		"rate = 500;");

	cr_expect_float_eq((double)t->cancelled / (double)t->admitted, 0.2 * 10 / 40, 0.003);
	NEAR(tally_per_second(t, t->good), 500 * (1 - 0.05), 0.01);
}

/* Each try fails with probability 1/2: 1 + 1/2 + 1/4 + 1/8 tries. */
Test(theory, retries)
{
	const struct tally *t = steady(
		NO_LIMIT, "{ name = \"s\"; discipline = \"delay\"; work = \"10ms\"; }",
		"client = { retries = 3; backoff = \"1ms\"; }; classes = { failing = 0.5; };",
		"rate = 200;");

	NEAR(tally_per_second(t, t->offered), 200 * 1.875, 0.01);
	NEAR(tally_per_second(t, t->good), 200 * (1 - 1.0 / 16), 0.01);
	NEAR(mean_ms(t), 10, 1e-6);
}

/* Backoffs of 10, 30 and 90 ms: a call whose tries all fail ends after 130 ms. */
Test(theory, backoff_grows)
{
	const struct phase_result *p = result.phases;

	play_text(
		&result, NO_LIMIT,
		"name = \"t\"; server = { name = \"s\"; work = \"1ms\"; };\n"
		"arrivals = { process = \"regular\"; };\n"
		"client = { retries = 3; backoff = \"10ms\"; backoff_growth = 3; };\n"
		"classes = { failing = 1; };\n"
		"phases = ( { length = \"1500ms\"; rate = 1; }, { length = \"9ms\"; rate = 0; },\n"
		"  { length = \"2ms\"; rate = 0; }, { length = \"1s\"; rate = 0; } );",
		1);
	/* The call arrives at 1 s: all its tries are over at 1.13 s. */
	cr_expect_eq(p[0].tally.offered, 4);
	cr_expect_eq(p[0].tally.failed, 4);
	play_text(
		&result, NO_LIMIT,
		"name = \"t\"; server = { name = \"s\"; work = \"1ms\"; };\n"
		"arrivals = { process = \"regular\"; };\n"
		"client = { retries = 3; backoff = \"10ms\"; backoff_growth = 3; };\n"
		"classes = { failing = 1; };\n"
		"phases = ( { length = \"1005ms\"; rate = 1; }, { length = \"10ms\"; rate = 0; },\n"
		"  { length = \"114ms\"; rate = 0; }, { length = \"2ms\"; rate = 0; } );",
		1);
	cr_expect_eq(p[0].tally.offered, 1);
	cr_expect_eq(p[1].tally.offered, 1);
	cr_expect_eq(p[2].tally.offered, 1, "at 1040 ms");
	cr_expect_eq(p[3].tally.offered, 1, "at 1130 ms");
}

/* A call that would fail after its timeout has timed out. */
Test(theory, failures_and_timeouts)
{
	const struct tally *t = steady(
		NO_LIMIT, "{ name = \"s\"; discipline = \"delay\"; work = \"10ms\"; }",
		"client = { timeout = \"20ms\"; };\n"
		"classes = ( { name = \"a\"; failing = 1; fail_after = \"1s\"; },\n"
		"            { name = \"b\"; failing = 1; fail_after = \"5ms\"; fail_as = \"success\"; } );",
		"rate = 100;");

	NEAR(tally_per_second(t, t->timed_out), 50, 0.03);
	NEAR(tally_per_second(t, t->failed), 50, 0.03);
	cr_expect_eq(t->good, 0);
	NEAR(mean_ms(t), 20, 1e-6);
}

/* Closed-loop clients: the machine repairman's formula. */
Test(theory, clients)
{
	const struct tally *t = steady(
		NO_LIMIT, station("fifo", 2, "exponential 10ms"),
		"arrivals = { process = \"closed\"; think = \"exponential 40ms\"; };",
		"clients = 10;");
	double p = 1, sum = 1, busy = 0;

	for (unsigned n = 1; n <= 10; n++) {
		p *= (10 - n + 1) / 40.0 / (fmin(n, 2) / 10);
		sum += p;
		busy += p * fmin(n, 2);
	}
	NEAR(tally_per_second(t, t->good), busy / sum / 10 * 1000, 0.01);
	/* Little's law: ten clients are thinking or waiting. */
	NEAR(10 / (tally_per_second(t, t->good) / 1000) - 40, mean_ms(t), 0.03);
}

/* With fewer clients than before, the others make no more calls. */
Test(theory, clients_leave)
{
	play_text(
		&result, NO_LIMIT,
		"name = \"t\"; server = { name = \"s\"; discipline = \"delay\"; work = \"1ms\"; };\n"
		"arrivals = { process = \"closed\"; think = \"99ms\"; };\n"
		"phases = ( { length = \"10s\"; clients = 100; }, { length = \"10s\"; clients = 1; },\n"
		"           { length = \"10s\"; clients = 50; } );",
		1);
	NEAR((double)result.phases[0].tally.offered, 10000, 0.015);
	NEAR((double)result.phases[1].tally.offered, 100, 0.015);
	NEAR((double)result.phases[2].tally.offered, 5000, 0.015);
}

static double most_done(const char *limit, const char *server)
{
	const struct tally *t = steady(limit, server, "", "rate = 6000;");

	return tally_per_second(t, t->good);
}

/* Gunther: n / (1 + contention (n - 1) + coherency n (n - 1)), with a peak at 15.5. */
Test(theory, contention)
{
	const char *servers[] = {
		"{ name = \"s\"; workers = 64; work = \"10ms\"; contention = 0.04; coherency = 0.004; }",
		"{ name = \"s\"; discipline = \"shared\"; workers = 64; work = \"10ms\";"
		" contention = 0.04; coherency = 0.004; }"};
	static const unsigned limits[] = {1, 8, 15, 40};

	for (unsigned s = 0; s < 2; s++)
		for (unsigned i = 0; i < 4; i++) {
			double n = limits[i];
			char limit[40];

			snprintf(limit, sizeof(limit), "fixed:limit=%u", limits[i]);
			NEAR(most_done(limit, servers[s]),
			     100 * n / (1 + 0.04 * (n - 1) + 0.004 * n * (n - 1)), 0.02);
		}
}

/* Eight whole workers, and eight worth 0.3 each. */
Test(theory, hyperthreads)
{
	const char *server = "{ name = \"s\"; workers = 16; work = \"10ms\"; second_half = 0.3; }";

	NEAR(most_done("fixed:limit=8", server), 800, 0.02);
	NEAR(most_done("fixed:limit=12", server), 800 + 4 * 30, 0.02);
	NEAR(most_done("fixed:limit=16", server), 800 + 8 * 30, 0.02);
	NEAR(most_done("fixed:limit=40", server), 800 + 8 * 30, 0.02);
}

/* The server works for 900 ms of every second. */
Test(theory, pauses)
{
	NEAR(most_done("fixed:limit=40", "{ name = \"s\"; workers = 4; work = \"10ms\";"
					 " pause_every = \"900ms\"; pause_length = \"100ms\"; }"),
	     400 * 0.9, 0.01);
}

/* Eight connections, each kept for 50 ms at the next station. */
Test(theory, kept_workers)
{
	const char *pool =
		"{ name = \"pool\"; workers = 8; kept = true; work = \"1us\"; },"
		"{ name = \"far\"; discipline = \"delay\"; work = \"exponential 50ms\"; }";

	NEAR(most_done("fixed:limit=40", pool), 160, 0.01);
	NEAR(most_done("fixed:limit=4", pool), 80, 0.01);
}

/* A call that is given up returns its connection. */
Test(theory, a_call_given_up_frees_kept_workers)
{
	const struct tally *t = steady(
		NO_LIMIT,
		"{ name = \"pool\"; workers = 40; kept = true; work = \"1us\"; },"
		"{ name = \"far\"; discipline = \"delay\"; work = \"exponential 50ms\"; }",
		"client = { timeout = \"50ms\"; stops_work = true; };", "rate = 200;");

	NEAR(tally_per_second(t, t->good), 200 * (1 - exp(-1)), 0.02);
}

/* The slower of two stations determines the capacity, and load refers to it. */
Test(theory, stations_in_a_row)
{
	const struct tally *t = steady(
		NO_LIMIT,
		"{ name = \"a\"; workers = 2; work = \"exponential 10ms\"; },"
		"{ name = \"b\"; workers = 1; work = \"exponential 8ms\"; }",
		"", "load = 0.6;");

	/* Burke: departures of the first station are Poisson again. */
	NEAR(tally_per_second(t, t->offered), 75, 0.015);
	NEAR(mean_ms(t), 10 + erlang_c(2, 0.75) * 10 / (2 * (1 - 0.375)) + 8 / (1 - 0.6), 0.04);
}

static double offered_a_second(const char *arrivals, const char *phase)
{
	char rest[300];
	const struct tally *t;

	snprintf(rest, sizeof(rest), "arrivals = { %s };", arrivals);
	t = steady(NO_LIMIT, "{ name = \"s\"; discipline = \"delay\"; work = \"1ms\"; }", rest,
		   phase);
	return tally_per_second(t, t->offered);
}

Test(theory, arrivals_have_their_mean)
{
	NEAR(offered_a_second("process = \"poisson\";", "rate = 1000;"), 1000, 0.006);
	NEAR(offered_a_second("process = \"regular\";", "rate = 999;"), 999, 1e-5);
	NEAR(offered_a_second("process = \"batches\"; batch = 20;", "rate = 1000;"), 1000, 0.04);
	NEAR(offered_a_second("process = \"onoff\"; on = \"1s\"; off = \"4s\"; low = 0.25;",
			      "rate = 1000;"),
	     1000 * (1 + 4 * 0.25) / 5, 0.01);
	NEAR(offered_a_second("process = \"onoff\"; on = \"exponential 100ms\"; "
			      "off = \"exponential 300ms\";",
			      "rate = 1000;"),
	     250, 0.08);
	/* It reaches its mean only in the very long run. */
	NEAR(offered_a_second("process = \"selfsimilar\"; on = \"100ms\"; off = \"300ms\";",
			      "rate = 1000;"),
	     1000, 0.25);
}

/* A quarter of the calls of a ramp from 0 arrive in its first half. */
Test(theory, ramps)
{
	static const char *const processes[] = {"poisson", "regular", "batches"};

	for (unsigned i = 0; i < 3; i++) {
		char text[600];

		snprintf(text, sizeof(text),
			 "name = \"t\"; arrivals = { process = \"%s\"; };\n"
			 "server = { name = \"s\"; discipline = \"delay\"; work = \"1ms\"; };\n"
			 "phases = ( { length = \"1min\"; rate = (0, 1000); },\n"
			 "           { length = \"1min\"; rate = (1000, 2000); },\n"
			 "           { length = \"1min\"; rate = [2000, 0]; } );",
			 processes[i]);
		play_text(&result, NO_LIMIT, text, 1);
		NEAR((double)result.phases[0].tally.offered, 30000, 0.025);
		NEAR((double)result.phases[1].tally.offered, 90000, 0.015);
		NEAR((double)result.phases[2].tally.offered, 60000, 0.02);
	}
}

enum { CALLS = 40 };

struct listener {
	struct sim sim;
	weir_time times[CALLS];
	unsigned heard;
};

static void hear(void *arg)
{
	struct listener *listener = arg;

	if (listener->heard < CALLS)
		listener->times[listener->heard++] = listener->sim.now;
}

/* Evenly spaced, from 0 to 10 a second in 20 s: t^2 / 4 calls have arrived after t seconds. */
Test(theory, ramps_are_exact)
{
	static const struct arrivals_model regular = {.process = ARRIVALS_REGULAR};
	struct listener listener = {.heard = 0};
	struct source source;

	source_init(&source, &listener.sim, &regular, 1, hear, &listener);
	source_rate(&source, 0, 10, 20 * WEIR_S);
	while (listener.heard < CALLS && sim_step(&listener.sim))
		;
	for (unsigned i = 0; i < CALLS; i++)
		cr_expect_float_eq((double)listener.times[i], 2e9 * sqrt(i + 1), 3, "%u: %ju", i,
				   (uintmax_t)listener.times[i]);
	source_stop(&source);
	source_free(&source);
	sim_free(&listener.sim);
}

/* The rest of a gap carries over when the rate changes: 1 in 300 ms, 3 in 300 ms, ... */
Test(theory, gaps_carry_over)
{
	play_text(
		&result, NO_LIMIT,
		"name = \"t\"; arrivals = { process = \"regular\"; }; rounds = 100;\n"
		"server = { name = \"s\"; discipline = \"delay\"; work = \"1ms\"; };\n"
		"phases = ( { length = \"150ms\"; rate = 3; }, { length = \"50ms\"; rate = 11; } );",
		1);
	cr_expect_eq(result.phases[0].tally.offered + result.phases[1].tally.offered, 100);
}

/* Over 100 times longer intervals, self-similar counts vary almost as much; Poisson, a tenth. */
static double spread(const char *process, double length)
{
	char text[700];
	double sum = 0, squares = 0;
	unsigned parts = 0;

	for (uint64_t seed = 1; seed <= 5; seed++) {
		snprintf(
			text, sizeof(text),
			"name = \"t\"; arrivals = { process = \"%s\"; on = \"100ms\"; off = \"300ms\"; };\n"
			"server = { name = \"s\"; discipline = \"delay\"; work = \"1ms\"; };\n"
			"phases = ( { length = \"%gs\"; rate = 300; }, { length = \"%gs\"; rate = 300; },"
			"{ length = \"%gs\"; rate = 300; }, { length = \"%gs\"; rate = 300; } );",
			process, length, length, length, length);
		play_text(&result, NO_LIMIT, text, seed);
		for (unsigned i = 0; i < 4; i++) {
			double rate = tally_per_second(&result.phases[i].tally,
						       result.phases[i].tally.offered);

			sum += rate;
			squares += rate * rate;
			parts++;
		}
	}
	return sqrt(squares / parts - sum / parts * sum / parts);
}

Test(theory, self_similar_arrivals_do_not_even_out)
{
	double few = spread("selfsimilar", 1), many = spread("selfsimilar", 100);

	cr_expect_lt(spread("poisson", 100), spread("poisson", 1) * 0.2);
	cr_expect_gt(many, few * 0.22, "%g %g", many, few);
	cr_expect_gt(many, 5 * spread("poisson", 100));
}

Test(theory, background_calls_bypass_limiters)
{
	const struct tally *t = steady("fixed:limit=1", station("fifo", 1, "exponential 10ms"), "",
				       "rate = 10; background_load = 0.5;");

	/* One foreground call at a time, in an M/M/1 that is half busy with background calls. */
	cr_expect_gt(mean_ms(t), 19);
	cr_expect_lt(mean_ms(t), 23);
	NEAR(tally_per_second(t, t->offered), 10, 0.06);
}

/* The factor on work along a ramp. */
Test(theory, slower_work)
{
	play_text(
		&result, NO_LIMIT,
		"name = \"t\"; server = { name = \"s\"; discipline = \"delay\"; work = \"10ms\"; };\n"
		"phases = ( { length = \"50s\"; rate = 500; slower = 5; },\n"
		"           { length = \"50s\"; rate = 500; slower = (1, 10); },\n"
		"           { length = \"1s\"; rate = 0; },\n"
		"           { length = \"50s\"; rate = 500; slower = 0.2; } );",
		1);
	NEAR(mean_ms(&result.phases[0].tally), 50, 1e-3);
	NEAR(mean_ms(&result.phases[1].tally), 55, 0.02);
	NEAR(mean_ms(&result.phases[3].tally), 2, 1e-3);
}

/* Classes arrive in the mix of the phase, and each has its own work. */
Test(theory, classes)
{
	play_text(&result, NO_LIMIT,
		  "name = \"t\"; server = { name = \"s\"; discipline = \"delay\"; };\n"
		  "classes = ( { name = \"small\"; share = 9; work = { s = \"1ms\"; }; },\n"
		  "            { name = \"large\"; share = 1; work = { s = \"100ms\"; }; } );\n"
		  "phases = ( { length = \"50s\"; rate = 500; },\n"
		  "           { length = \"50s\"; rate = 500; mix = (1, 9); } );",
		  1);
	NEAR(mean_ms(&result.phases[0].tally), 10.9, 0.04);
	NEAR(mean_ms(&result.phases[1].tally), 90.1, 0.02);
	NEAR((double)result.phases[1].class_good[1], 22500, 0.02);
}

/* The duration of a stream is not a latency; it is never late, and has no timeout. */
Test(theory, streams)
{
	const struct tally *t = steady(
		NO_LIMIT, "{ name = \"s\"; discipline = \"delay\"; work = \"10ms\"; }",
		"client = { deadline = \"20ms\"; timeout = \"30ms\"; };\n"
		"classes = ( { name = \"call\"; share = 9; }, { name = \"stream\"; stream = true;\n"
		"  work = { s = \"exponential 5s\"; }; } );",
		"rate = 100;");

	cr_expect_eq(t->late + t->timed_out, 0);
	NEAR(mean_ms(t), 10, 1e-6);
	NEAR(tally_inflight_mean(t), 90 * 0.01 + 10 * 5, 0.05);
}

/* Limiters side by side get equal shares of calls; one that starts late gets none before. */
Test(theory, limiters_share)
{
	play_text(
		&result, NO_LIMIT,
		"name = \"t\"; server = { name = \"s\"; discipline = \"delay\"; work = \"1ms\"; };\n"
		"limiters = ( { count = 3; }, { count = 2; start = \"50s\"; limit = \"vegas\"; } );\n"
		"phases = ( { length = \"50s\"; rate = 600; }, { length = \"50s\"; rate = 600; } );",
		1);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 2; k++)
			NEAR((double)result.phases[k].limiter_good[i],
			     k == 1  ? 6000
			     : i < 3 ? 10000
				     : 0,
			     0.05);
}

/* No work is done while there are no workers, and all of it after. */
Test(theory, black_hole)
{
	play_text(&result, "fixed:limit=30",
		  "name = \"t\"; server = { name = \"s\"; workers = 4; work = \"10ms\"; };\n"
		  "phases = ( { length = \"10s\"; load = 0.5; },\n"
		  "           { length = \"10s\"; load = 0.5; workers = 0; },\n"
		  "           { length = \"10s\"; load = 0.5; } );",
		  1);
	cr_expect_leq(result.phases[1].tally.good, 4);
	cr_expect_leq(result.phases[1].tally.admitted, 30);
	NEAR(tally_per_second(&result.phases[2].tally, result.phases[2].tally.good), 200, 0.06);
}

/* The arrivals and their draws are the same whatever the limit. */
Test(theory, limits_do_not_change_the_world)
{
	uint64_t offered;

	offered = steady("fixed:limit=4", station("fifo", 4, "10ms"), "", "load = 2;")->offered;
	cr_expect_eq(steady(NO_LIMIT, station("fifo", 4, "10ms"), "", "load = 2;")->offered,
		     offered);
}

/* A constant limit has the same mean in each slice of a phase. */
Test(theory, slices)
{
	steady("fixed:limit=7", station("fifo", 4, "10ms"), "", "load = 2;");
	for (unsigned i = 0; i < SLICES; i++)
		NEAR(result.phases[1].slices[i], 7 * 50e9, 1e-9);
}

/* A call that ends after the last phase does not count in it. */
Test(theory, nothing_counts_after_the_last_phase)
{
	play_text(&result, NO_LIMIT,
		  "name = \"t\"; server = { name = \"s\"; workers = 1; work = \"10ms\"; };\n"
		  "client = { retries = 2; }; arrivals = { process = \"regular\"; };\n"
		  "phases = { length = \"1s\"; rate = 1000; };",
		  1);
	cr_expect_eq(result.phases[0].tally.good, 99);
	cr_expect_eq(result.phases[0].limiter_good[0], 99);
}

static void goes_on(void *arg, const struct weir_report *report)
{
	weir_time *last = arg;

	cr_assert_geq(report->window.end, *last);
	*last = report->window.end;
}

/* Even a queue that would last longer than time can be expressed is served in the end. */
Test(theory, time_does_not_wrap)
{
	weir_time last = 0;
	const struct weir_observer observer = {.window = goes_on, .arg = &last};
	struct weir_config limiter;
	struct scenario scenario;
	char why[300];

	cr_assert_eq(
		scenario_from_text(&scenario, "t",
				   "name = \"t\"; server = { name = \"s\"; work = \"10000h\"; };\n"
				   "phases = { length = \"1s\"; rate = 1000; slower = 1e6; };",
				   why, sizeof(why)),
		0, "%s", why);
	weir_config_init(&limiter);
	limiter.limit = &weir_settable;
	limiter.observer = &observer;
	play_setup(&result, &(struct run_setup){
				    .scenario = &scenario,
				    .limiter = &limiter,
				    .seed = 1,
				    .limits = (const uint32_t[]){100000},
			    });
	cr_expect_gt(result.samples, 900);
	cr_expect_gt(last, 0);
}

/* The mean and quantiles of a law. */
static void check_law(const char *text, double mean, double p50, double p90)
{
	enum { DRAWS = 400001 };
	static double draws[DRAWS];
	struct rng rng = {.state = 1};
	struct law law;
	double sum = 0;
	unsigned low = 0, high = 0;

	cr_assert_null(law_read(text, &law), "%s", text);
	for (unsigned i = 0; i < DRAWS; i++) {
		draws[i] = law_draw(&law, &rng) / MS;
		sum += draws[i];
		low += draws[i] <= p50;
		high += draws[i] <= p90;
	}
	cr_expect(fabs(sum / DRAWS - mean) < 0.03 * mean, "%s: mean %g", text, sum / DRAWS);
	cr_expect_float_eq((double)low / DRAWS, 0.5, 0.005, "%s: median", text);
	cr_expect_float_eq((double)high / DRAWS, 0.9, 0.005, "%s: p90", text);
}

Test(theory, laws_have_their_quantiles)
{
	double scale = 10 * 1.5 / 2.5;

	check_law("exponential 10ms", 10, 10 * log(2), 10 * log(10));
	check_law("uniform 10ms", 10, 10, 18);
	check_law("lognormal 10ms 1", 10, 10 * exp(-0.5), 10 * exp(1.2815515655 - 0.5));
	check_law("pareto 10ms 2.5", 10, scale * pow(2, 0.4), scale * pow(10, 0.4));
}

/* Jobs that are checked one by one. */
struct watched {
	struct job job;
	struct sim *sim;
	weir_time ended;
};

static void note_end(void *owner)
{
	struct watched *watched = owner;

	watched->ended = watched->sim->now;
}

struct bench {
	struct sim sim;
	struct station station;
	struct watched jobs[4];
};

static const struct station_ops watching = {.finished = note_end};

/* Jobs with work of 100, 200, 300 and 400 ns, all submitted at time 0. */
static struct bench *bench_make(enum discipline discipline, unsigned workers)
{
	static struct bench bench;
	const struct station_model model = {
		.discipline = discipline,
		.workers = workers,
		.speed = 1,
		.second_half = 1,
	};

	bench = (struct bench){.sim = {.now = 0}};
	station_init(&bench.station, &bench.sim, &watching, &model);
	for (unsigned i = 0; i < 4; i++) {
		struct watched *watched = &bench.jobs[i];

		watched->sim = &bench.sim;
		watched->job = (struct job){.work = 100 * (i + 1), .owner = watched};
		station_submit(&bench.station, &watched->job);
	}
	return &bench;
}

/* Advance time to the end of the next job, and then by more nanoseconds. */
static void until_next_end(struct bench *bench, weir_dur more)
{
	cr_assert(sim_step(&bench->sim));
	bench->sim.now += more;
}

static void check_ends(struct bench *bench, const weir_time *ends)
{
	while (sim_step(&bench->sim))
		;
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(bench->jobs[i].ended, ends[i], "%u: %ju", i,
			     (uintmax_t)bench->jobs[i].ended);
	cr_expect_eq(bench->station.service.count, 0);
	cr_expect_null(bench->station.head);
	station_free(&bench->station);
	sim_free(&bench->sim);
}

Test(station, works_in_order)
{
	check_ends(bench_make(STATION_FIFO, 2), (weir_time[]){100, 200, 400, 600});
	check_ends(bench_make(STATION_DELAY, 1), (weir_time[]){100, 200, 300, 400});
	/* Four jobs at half the speed, then three at two thirds, then two at full speed. */
	check_ends(bench_make(STATION_SHARED, 2), (weir_time[]){200, 350, 450, 550});
}

Test(station, withdraws_a_waiting_job)
{
	struct bench *bench = bench_make(STATION_FIFO, 2);

	station_withdraw(&bench->station, &bench->jobs[2].job);
	check_ends(bench, (weir_time[]){100, 200, 0, 500});
}

/* The next job begins at once. */
Test(station, withdraws_a_job_in_service)
{
	struct bench *bench = bench_make(STATION_FIFO, 2);

	until_next_end(bench, 50);
	station_withdraw(&bench->station, &bench->jobs[1].job);
	check_ends(bench, (weir_time[]){100, 0, 400, 550});
}

Test(station, withdraws_a_job_of_shared_workers)
{
	struct bench *bench = bench_make(STATION_SHARED, 2);

	until_next_end(bench, 0);
	station_withdraw(&bench->station, &bench->jobs[3].job);
	check_ends(bench, (weir_time[]){200, 300, 400, 0});
}

/* Work done before a pause, or a change of speed, is kept. */
Test(station, pauses_and_changes)
{
	struct bench *bench = bench_make(STATION_DELAY, 1);
	struct station_model half = bench->station.model;

	half.speed = 0.5;
	until_next_end(bench, 50);
	station_pause(&bench->station, true);
	bench->sim.now += 1000;
	station_pause(&bench->station, false);
	station_change(&bench->station, &half);
	check_ends(bench, (weir_time[]){100, 1250, 1450, 1650});
}

/* A worker that is removed finishes its job first. */
Test(station, loses_workers)
{
	struct bench *bench = bench_make(STATION_FIFO, 3);
	struct station_model fewer = bench->station.model;

	fewer.workers = 1;
	station_change(&bench->station, &fewer);
	check_ends(bench, (weir_time[]){100, 200, 300, 700});
}
