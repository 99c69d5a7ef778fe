/*
 * rank.h - how alike two orders are.
 */
#ifndef RANK_H
#define RANK_H

#include <stddef.h>

/* The place of each score, 1 for the highest; those that are equal share the mean of theirs. */
void rank_places(const double *scores, size_t count, double *places);

/*
 * From -1, the opposite, to 1, the same order; NaN if either has all scores equal, or there are
 * fewer than two. Spearman's rho is the linear correlation of places; Kendall's tau-b counts
 * pairs that stand the same way round, and makes up for equal ones.
 */
double rank_spearman(const double *a, const double *b, size_t count);
double rank_kendall(const double *a, const double *b, size_t count);

#endif
