/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rank.c - straight from the definitions, pair by pair: there are only a dozen scores.
 */
#include "rank.h"

#include <math.h>

/* 1: the first is higher; -1: the second is. */
static int order(double first, double second)
{
	return (first > second) - (first < second);
}

static double place_of(const double *scores, size_t count, size_t one)
{
	double place = 1;

	for (size_t i = 0; i < count; i++)
		if (i != one)
			place += (1 - order(scores[one], scores[i])) / 2.0;
	return place;
}

void rank_places(const double *scores, size_t count, double *places)
{
	for (size_t i = 0; i < count; i++)
		places[i] = place_of(scores, count, i);
}

double rank_spearman(const double *a, const double *b, size_t count)
{
	double mean = (double)(count + 1) / 2, both = 0, of_a = 0, of_b = 0;

	for (size_t i = 0; i < count; i++) {
		double x = place_of(a, count, i) - mean, y = place_of(b, count, i) - mean;

		both += x * y;
		of_a += x * x;
		of_b += y * y;
	}
	return of_a > 0 && of_b > 0 ? both / sqrt(of_a * of_b) : NAN;
}

double rank_kendall(const double *a, const double *b, size_t count)
{
	double both = 0, of_a = 0, of_b = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++) {
			int x = order(a[i], a[k]), y = order(b[i], b[k]);

			both += x * y;
			of_a += x * x;
			of_b += y * y;
		}
	return of_a > 0 && of_b > 0 ? both / sqrt(of_a * of_b) : NAN;
}
