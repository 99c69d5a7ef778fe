/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rank.h - rank correlation.
 */
#ifndef RANK_H
#define RANK_H

#include <stddef.h>

/* The rank of each score, 1 for the highest; equal scores share the mean of their ranks. */
void rank_places(const double *scores, size_t count, double *places);

/*
 * From -1 (opposite order) to 1 (same order); NaN if all scores of a or of b are equal, or count is
 * less than two. Spearman's rho is the linear correlation of ranks; Kendall's tau-b counts
 * concordant pairs and corrects for ties.
 */
double rank_spearman(const double *a, const double *b, size_t count);
double rank_kendall(const double *a, const double *b, size_t count);

#endif
