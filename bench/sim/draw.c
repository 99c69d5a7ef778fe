/*
 * draw.c - generator and distributions, out of exactly rounded arithmetic only:
 * + - * / sqrt, frexp and ldexp give the same bits everywhere.
 */
#include "draw.h"

#include <math.h>

#define LN2    0.693147180559945309417
#define SQRT_2 1.41421356237309504880

static uint64_t rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

/* splitmix64, as the generator's authors advise: it makes a good state of any seed, zero too. */
void rng_seed(struct rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = (seed += 0x9e3779b97f4a7c15U);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
		rng->s[i] = z ^ (z >> 31);
	}
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

double rng_uniform(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

/* ln m = 2 artanh((m - 1) / (m + 1)); with m within sqrt 2 of 1, 11 terms are enough. */
static double ln(double x)
{
	int exponent;
	double m = frexp(x, &exponent);
	double f, sum = 0;

	if (m < SQRT_2 / 2) {
		m *= 2;
		exponent--;
	}
	f = (m - 1) / (m + 1);
	for (int k = 21; k >= 1; k -= 2)
		sum = sum * f * f + 1.0 / k;
	return exponent * LN2 + 2 * f * sum;
}

/* Powers of two taken out, what is left is below 0.35: 14 terms are enough. */
static double e_to(double x)
{
	double whole = floor(x / LN2 + 0.5);
	double r = x - whole * LN2;
	double sum = 1;

	for (int k = 14; k >= 1; k--)
		sum = 1 + sum * r / k;
	return ldexp(sum, (int)whole);
}

/* Mean 1. 1 - u, since u may be 0. */
static double exponential(struct rng *rng)
{
	return -ln(1 - rng_uniform(rng));
}

/* Marsaglia's polar method. The second number of each pair is not kept: no state beside the rng. */
static double normal(struct rng *rng)
{
	double u, v, s;

	do {
		u = 2 * rng_uniform(rng) - 1;
		v = 2 * rng_uniform(rng) - 1;
		s = u * u + v * v;
	} while (s >= 1 || s == 0);
	return u * sqrt(-2 * ln(s) / s);
}

double law_draw(const struct law *law, struct rng *rng)
{
	double sigma = law->shape;

	switch (law->kind) {
	case LAW_EXPONENTIAL:
		return law->mean * exponential(rng);
	case LAW_LOGNORMAL:
		return law->mean * e_to(sigma * normal(rng) - sigma * sigma / 2);
	case LAW_CONST:
		break;
	}
	return law->mean;
}
