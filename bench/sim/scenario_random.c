/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_random.c - draw a scenario. docs/scenarios.md describes the grammar.
 *
 * Each aspect has random numbers of its own, so that one more choice in it leaves the others as they
 * are. Numbers are rounded to two digits, which are easier to read.
 */
#include "scenario_random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_LEAST 0.3
#define LOAD_MOST  4.0

#define WORKERS_MOST 4096
#define WORK_LEAST   0.0005
#define WORK_MOST    0.5

/* Calls a second; work is longer where the workers could do more. */
#define CAPACITY_MOST 4000.0

#define CLIENTS_MOST 10000.0

/* A phase takes this many calls of the capacity, if that is neither too short nor too long. */
#define CALLS          6000
#define LENGTH_LEAST   4.0
#define LENGTH_MOST    600.0
#define LENGTH_IN_WORK 15

/* The warm-up is longer than that: a limit may need a hundred calls, one after the other. */
#define WARM_UP_IN_WORK 100

enum aspect {
	ASPECT_SERVER = 1,
	ASPECT_NETWORK,
	ASPECT_ARRIVALS,
	ASPECT_CLIENT,
	ASPECT_OUTCOMES,
	ASPECT_LIMITERS,
	ASPECT_PHASES,
};

static double rounded(double x)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1e", x);
	return strtod(text, NULL);
}

static bool chance(struct rng *rng, double part)
{
	return rng_uniform(rng) < part;
}

/* By equal factors. */
static double spread(struct rng *rng, double low, double high)
{
	return rounded(low * draw_exp(rng_uniform(rng) * draw_ln(high / low)));
}

static unsigned below(struct rng *rng, unsigned count)
{
	return (unsigned)(rng_uniform(rng) * count);
}

#define PICK(rng, values) ((values)[below((rng), sizeof(values) / sizeof((values)[0]))])

static double service(const struct drawn *d)
{
	return d->work + d->network;
}

static void draw_law(struct drawn *d, struct rng *rng)
{
	static const double sigmas[] = {0.3, 0.7, 1, 1.5, 2}, alphas[] = {1.5, 1.8, 2.2, 3};
	static const double shares[] = {0.01, 0.1, 0.3}, factors[] = {5, 20, 50, 100};
	double kind = rng_uniform(rng), share = PICK(rng, shares), factor = PICK(rng, factors);
	const char *name = "lognormal";

	if (kind < 0.12)
		name = "constant";
	else if (kind < 0.37)
		name = "exponential";
	else if (kind < 0.67)
		snprintf(d->law_after, LAW_SIZE, " %g", PICK(rng, sigmas));
	else if (kind < 0.87)
		snprintf(d->law_after, LAW_SIZE, " %g %g", share, factor);
	else
		snprintf(d->law_after, LAW_SIZE, " %g", PICK(rng, alphas));
	if (kind >= 0.67)
		name = kind < 0.87 ? "bimodal" : "pareto";
	snprintf(d->law, LAW_SIZE, "%s ", name);
}

/* Shared workers may slow each other down: more calls than workers then destroy throughput. */
static void draw_discipline(struct drawn *d, struct rng *rng)
{
	double kind = rng_uniform(rng), w = d->workers;

	d->discipline = kind < 0.72 ? "fifo" : "shared";
	if (kind < 0.15)
		d->queue = (unsigned)ceil(w * spread(rng, 0.1, 10));
	else if (kind < 0.22)
		d->newest_first = true;
	else if (kind < 0.29)
		d->second_half = 0.3;
	if (kind > 0.9 && w > 1) {
		d->contention = rounded(spread(rng, 0.1, 1) / w);
		d->coherency = rounded(spread(rng, 0.1, 1) / (w * w));
	}
}

/* A quarter of the servers has one to four workers; the others have any number, by equal factors. */
static void draw_server(struct drawn *d, struct rng *rng)
{
	bool small = chance(rng, 0.25);
	double many = fmin(spread(rng, 1, WORKERS_MOST), WORKERS_MOST);

	d->workers = small ? 1 + below(rng, 4) : (unsigned)many;
	d->work = spread(rng, WORK_LEAST, WORK_MOST);
	if (d->workers / d->work > CAPACITY_MOST)
		d->work = rounded(d->workers / CAPACITY_MOST);
	d->second_half = 1;
	draw_law(d, rng);
	draw_discipline(d, rng);
	if (chance(rng, 0.12)) {
		d->pause_every = spread(rng, 2, 30);
		d->pause_length = rounded(d->pause_every * spread(rng, 0.01, 0.2));
	}
}

/* Far away, or the reason for a pool of connections, whose workers wait. */
static void draw_network(struct drawn *d, struct rng *rng)
{
	double w = d->workers;

	if (chance(rng, 0.5))
		d->network = spread(rng, 0.001, 0.3);
	d->kept = d->network > 0 && strcmp(d->discipline, "fifo") == 0 && chance(rng, 0.15);
	if (d->second_half != 1)
		w = ceil(w / 2) + d->second_half * floor(w / 2);
	w /= 1 + d->contention * w + d->coherency * w * w;
	d->capacity = w / (d->kept ? service(d) : d->work);
}

static void set_shortest(struct drawn *d)
{
	double length = fmin(CALLS / d->capacity, LENGTH_MOST);

	d->shortest = rounded(fmax(fmax(length, LENGTH_LEAST), LENGTH_IN_WORK * service(d)));
	d->warm_up = rounded(fmax(d->shortest, WARM_UP_IN_WORK * service(d)));
}

static void draw_arrivals(struct drawn *d, struct rng *rng)
{
	double kind = rng_uniform(rng);

	d->process = kind < 0.5 ? ARRIVALS_POISSON : ARRIVALS_REGULAR;
	if (kind >= 0.55 && kind < 0.65) {
		d->process = ARRIVALS_BATCHES;
		d->batch = spread(rng, 2, 30);
	} else if (kind >= 0.65 && kind < 0.85) {
		d->process = kind < 0.77 ? ARRIVALS_ONOFF : ARRIVALS_SELFSIMILAR;
		d->process_law = d->process == ARRIVALS_ONOFF && chance(rng, 0.5) ? "exponential "
										  : "";
		d->on = rounded(d->shortest * spread(rng, 0.01, 0.2));
		d->off = rounded(d->on * spread(rng, 0.3, 3));
		d->low = chance(rng, 0.5) ? spread(rng, 0.05, 0.5) : 0;
	} else if (kind >= 0.85) {
		d->process = ARRIVALS_CLOSED;
		d->think = rounded(service(d) * spread(rng, 1, 20));
		d->think = fmin(d->think, rounded(CLIENTS_MOST / LOAD_MOST / d->capacity));
	}
}

/*
 * There is always a deadline. Without one, calls that wait for minutes count as good, and the best
 * fixed limit is one that stores whole bursts.
 */
static void draw_client(struct drawn *d, struct rng *rng)
{
	bool patient = !chance(rng, 0.6);

	d->deadline = rounded(service(d) * spread(rng, patient ? 20 : 5, patient ? 100 : 50));
	if (chance(rng, 0.35))
		d->timeout = rounded(service(d) * spread(rng, 5, 50));
	d->stops_work = chance(rng, 0.3);
	if (chance(rng, 0.25)) {
		d->retries = 1 + below(rng, 3);
		d->backoff = chance(rng, 0.3) ? 0 : rounded(service(d) * spread(rng, 1, 20));
	}
}

/* Much shorter than other calls, as a bad request, about as long, or much longer. */
static void draw_outcomes(struct drawn *d, struct rng *rng)
{
	static const char *const outcomes[] = {"ignored", "failed", "cancelled"};
	static const double parts[] = {0.1, 0.3, 0.5, 0.75, 0.9}, times[] = {0.05, 1, 5};

	if (!chance(rng, 0.25))
		return;
	d->outcome = PICK(rng, outcomes);
	d->part = PICK(rng, parts);
	d->after = rounded(service(d) * PICK(rng, times));
}

/* Not more than there are places, as each limiter admits one call at least. */
static void draw_limiters(struct drawn *d, struct rng *rng)
{
	double places = d->capacity * service(d);

	d->limiters = 1;
	if (chance(rng, 0.2) && places >= 2)
		d->limiters = (unsigned)spread(rng, 2, fmin(fmax(places, 2.1), 32));
}

/* What changes from one phase to the next: the load, at once or in a ramp, the workers, the work. */
static void draw_change(struct drawn *d, struct stretch *to, double load, struct rng *rng)
{
	double kind = rng_uniform(rng), next = spread(rng, LOAD_LEAST, LOAD_MOST);

	to->load[0] = to->load[1] = load;
	if (kind < 0.45)
		to->load[0] = to->load[1] = next;
	else if (kind < 0.65 && d->process != ARRIVALS_CLOSED)
		to->load[1] = next;
	else if (kind < 0.85 && d->workers > 1)
		to->workers = (unsigned)fmax(1, floor(d->workers * spread(rng, 0.1, 0.8)));
	else
		to->slower = spread(rng, 0.3, 2.5);
}

static void draw_phases(struct drawn *d, struct rng *rng)
{
	double load = spread(rng, LOAD_LEAST, LOAD_MOST);

	d->count = 1 + below(rng, STRETCHES_MAX);
	for (unsigned i = 0; i < d->count; i++) {
		struct stretch *one = &d->stretches[i];

		*one = (struct stretch){.load = {load, load}, .slower = 1};
		one->length = rounded(d->shortest * spread(rng, 1, 3));
		if (i > 0)
			draw_change(d, one, load, rng);
		load = one->load[1];
	}
}

void random_draw(struct drawn *d, uint32_t seed, uint32_t number)
{
	static void (*const aspects[])(struct drawn * d, struct rng * rng) = {
		[ASPECT_SERVER] = draw_server,     [ASPECT_NETWORK] = draw_network,
		[ASPECT_ARRIVALS] = draw_arrivals, [ASPECT_CLIENT] = draw_client,
		[ASPECT_OUTCOMES] = draw_outcomes, [ASPECT_LIMITERS] = draw_limiters,
		[ASPECT_PHASES] = draw_phases,
	};
	struct rng rng;

	*d = (struct drawn){.seed = seed, .number = number};
	for (unsigned i = 1; i < sizeof(aspects) / sizeof(aspects[0]); i++) {
		rng_seed(&rng, rng_seed_of(seed, i), number);
		aspects[i](d, &rng);
		if (i == ASPECT_NETWORK)
			set_shortest(d);
	}
}
