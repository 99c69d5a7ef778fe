/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks and correlations, compared with values computed by hand.
 */
#include "rank.h"

#include <math.h>

#include <criterion/criterion.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define NEAR(a, b) cr_expect_lt(fabs((a) - (b)), 1e-12, "%.15g", a)

Test(rank, the_highest_is_first_and_ties_share_a_rank)
{
	const double scores[] = {0.5, 0.9, 0.5, 0.1, 0.5};
	const double expected[] = {3, 1, 3, 5, 3};
	double places[COUNT(scores)];

	rank_places(scores, COUNT(scores), places);
	for (size_t i = 0; i < COUNT(scores); i++)
		NEAR(places[i], expected[i]);
}

Test(rank, same_order_is_one_and_opposite_is_minus_one)
{
	const double a[] = {1, 2, 3, 4}, b[] = {10, 200, 3000, 3001}, c[] = {9, 7, 5, -3};

	NEAR(rank_spearman(a, b, 4), 1);
	NEAR(rank_kendall(a, b, 4), 1);
	NEAR(rank_spearman(a, c, 4), -1);
	NEAR(rank_kendall(a, c, 4), -1);
}

/* Distances of ranks 0, 1, 1, 2, 2: rho is 1 - 6 * 10 / (5 * 24); 3 pairs of 10 are swapped. */
Test(rank, correlation_without_ties)
{
	const double a[] = {1, 2, 3, 4, 5}, b[] = {1, 3, 2, 6, 4};
	const double c[] = {1, 3, 4, 2, 5};

	NEAR(rank_spearman(a, b, 5), 0.8);
	NEAR(rank_kendall(a, b, 5), 0.8 - 0.2);
	NEAR(rank_spearman(a, c, 5), 1 - 6 * 6.0 / (5 * 24));
	NEAR(rank_kendall(a, c, 5), 0.6);
}

/*
 * Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: the products of their distances from 2.5 add up to 4.5, the
 * squares to 4.5 and 5. Five of six pairs agree; one is a tie in a.
 */
Test(rank, correlation_with_ties)
{
	const double a[] = {4, 3, 3, 1}, b[] = {4, 2, 3, 1};

	NEAR(rank_spearman(a, b, 4), 4.5 / sqrt(4.5 * 5));
	NEAR(rank_kendall(a, b, 4), 5 / sqrt(5.0 * 6));
}

Test(rank, correlation_is_nan_if_all_are_equal)
{
	const double a[] = {1, 1, 1}, b[] = {1, 2, 3};

	cr_expect(isnan(rank_spearman(a, b, 3)));
	cr_expect(isnan(rank_kendall(b, a, 3)));
	cr_expect(isnan(rank_spearman(b, b, 1)));
	cr_expect(isnan(rank_kendall(b, b, 0)));
}
