/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * draw.h - random numbers from a seed, the same on every machine.
 *
 * The logarithm and the exponential are implemented here: those of libm may differ in the last bit
 * between processors, and one different bit changes the whole run.
 */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

/*
 * SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators",
 * 2014. Its state is one word, so each call has a generator of its own: what is drawn for one
 * call does not depend on whether others were admitted.
 */
struct rng {
	uint64_t state;
};

/* Initialize the generator with that index among those of the seed. */
void rng_seed(struct rng *rng, uint64_t seed, uint64_t index);
uint64_t rng_next(struct rng *rng);
double rng_uniform(struct rng *rng); /* in [0, 1) */

/* The independent users of random numbers in a run. */
enum {
	SEED_SOURCE = 1,
	SEED_BACKGROUND,
	SEED_CALLS,
	SEED_DOORS,
	SEED_PAUSES,
	SEED_CLIENTS,
	SEED_LIMITERS, /* the first limiter; the next ones follow */
	SEED_CLOCKS = SEED_LIMITERS + 0x10000,
};

/* The seed of one of these users in a run with the given seed. */
uint64_t rng_seed_of(uint64_t seed, unsigned what);

enum law_kind {
	LAW_CONSTANT,
	LAW_EXPONENTIAL,
	LAW_UNIFORM,   /* from 0 to twice the mean */
	LAW_LOGNORMAL, /* shape: sigma of the logarithm */
	LAW_PARETO,    /* shape: alpha, above 1 */
	LAW_BIMODAL,   /* a fraction, share, of the draws is factor times as large */
};

/* A distribution, with its mean. */
struct law {
	enum law_kind kind;
	double mean;
	double shape;
	double share, factor;
};

double law_draw(const struct law *law, struct rng *rng);

/* The natural logarithm, of a number above 0, and the exponential, of one that is not huge. */
double draw_ln(double x);
double draw_exp(double x);

#endif
