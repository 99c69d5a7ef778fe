/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * draw.c - the generator and the distributions, from exactly rounded arithmetic only: + - * / sqrt,
 * frexp and ldexp give the same bits on every machine.
 */
#include "draw.h"

#include <math.h>
#include <stddef.h>

#define LN2    0.693147180559945309417
#define SQRT_2 1.41421356237309504880

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void rng_seed(struct rng *rng, uint64_t seed, uint64_t index)
{
	rng->state = mix(seed + GOLDEN) ^ mix(index * GOLDEN + 1);
}

uint64_t rng_next(struct rng *rng)
{
	return mix(rng->state += GOLDEN);
}

double rng_uniform(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

uint64_t rng_seed_of(uint64_t seed, unsigned what)
{
	struct rng rng;

	rng_seed(&rng, seed, what);
	return rng_next(&rng);
}

/* ln m = 2 artanh((m - 1) / (m + 1)); with m within sqrt 2 of 1, 11 terms are enough. */
double draw_ln(double x)
{
	static const double odd[] = {
		1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
		1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0,
	};
	int exponent;
	double m = frexp(x, &exponent);
	double f, square, sum = 0;

	if (m < SQRT_2 / 2) {
		m *= 2;
		exponent--;
	}
	f = (m - 1) / (m + 1);
	square = f * f;
	for (size_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++)
		sum = sum * square + odd[k];
	return exponent * LN2 + 2 * f * sum;
}

/* With powers of two taken out, the rest is below 0.35: 14 terms are enough. */
double draw_exp(double x)
{
	double whole = floor(x / LN2 + 0.5);
	double r = x - whole * LN2;
	double sum = 1;

	for (int k = 14; k >= 1; k--)
		sum = 1 + sum * r / k;
	return ldexp(sum, (int)whole);
}

/* Mean 1. Uses 1 - u, since u may be 0. */
static double exponential(struct rng *rng)
{
	return -draw_ln(1 - rng_uniform(rng));
}

/* Marsaglia's polar method. The second number of each pair is dropped: the rng is all the state. */
static double normal(struct rng *rng)
{
	double u, v, s;

	do {
		u = 2 * rng_uniform(rng) - 1;
		v = 2 * rng_uniform(rng) - 1;
		s = u * u + v * v;
	} while (s >= 1 || s == 0);
	return u * sqrt(-2 * draw_ln(s) / s);
}

/* Mean 1: x^(-1 / alpha) of a uniform x, times (alpha - 1) / alpha. */
static double pareto(double alpha, struct rng *rng)
{
	return (alpha - 1) / alpha * draw_exp(-draw_ln(1 - rng_uniform(rng)) / alpha);
}

double law_draw(const struct law *law, struct rng *rng)
{
	double sigma = law->shape;

	switch (law->kind) {
	case LAW_EXPONENTIAL:
		return law->mean * exponential(rng);
	case LAW_UNIFORM:
		return law->mean * 2 * rng_uniform(rng);
	case LAW_LOGNORMAL:
		return law->mean * draw_exp(sigma * normal(rng) - sigma * sigma / 2);
	case LAW_PARETO:
		return law->mean * pareto(law->shape, rng);
	case LAW_BIMODAL:
		return law->mean / (1 - law->share + law->share * law->factor) *
		       (rng_uniform(rng) < law->share ? law->factor : 1);
	case LAW_CONSTANT:
		break;
	}
	return law->mean;
}
