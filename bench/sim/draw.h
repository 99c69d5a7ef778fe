/*
 * draw.h - chance, from a seed, the same on every machine.
 *
 * The logarithm and the exponential are our own: those of a libm may differ in
 * the last bit between processors, and one different bit makes another run.
 */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

/* xoshiro256**, D. Blackman, S. Vigna, 2018. */
struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
double rng_uniform(struct rng *rng); /* in [0, 1) */

enum law_kind {
	LAW_CONST,
	LAW_EXPONENTIAL,
	LAW_LOGNORMAL, /* shape: sigma of the logarithm */
};

/* A distribution of that mean. */
struct law {
	enum law_kind kind;
	double mean;
	double shape;
};

double law_draw(const struct law *law, struct rng *rng);

#endif
