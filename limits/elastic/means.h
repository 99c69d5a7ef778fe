/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * means.h - slow means over epochs, and the evidence that a new epoch adds.
 *
 * An epoch shows twice how y = ln R depends on x = ln n: by the slope among its samples, and by
 * the change from the slow means of earlier epochs to its own. The variance of a slope is that of
 * the samples over the sum of squares of x. Where the means of epochs scatter more than their
 * samples explain, as in a long queue, the larger variance counts.
 */
#ifndef WEIR_LIMITS_MEANS_H
#define WEIR_LIMITS_MEANS_H

#include "dither.h"
#include "epoch.h"
#include "posterior.h"
#include "queueing.h"

/* All zero at first, but for sigma2. */
struct means {
	double x, y;    /* slow means of ln n and ln R */
	double usual;   /* exp(y), kept for the samples to come; nanoseconds */
	double xx, n;   /* variance of x around its mean; samples behind the means */
	double sigma2;  /* variance of samples' y around a line */
	double scatter; /* variance of epochs' y around what slopes explain */
	struct queueing queueing;
};

/* Forget the epochs before this one. */
void means_set(struct means *m, const struct line *l);

/* Update the variances by an epoch. */
void means_vary(struct means *m, const struct line *l);

/* The variance that a sample of an epoch of n has, if it is compared with others. */
double means_variance(const struct means *m, double n);

/* The slope among an epoch's samples, as the change over a step at their mean. */
struct evidence means_within(const struct line *l, double variance);

/* From the slow means to those of the epoch, as far as the mean latency follows. */
struct evidence means_between(const struct means *m, const struct line *l, double variance);

/* From the lower slot of a probe pair to the upper one, as far as the mean latency follows. */
struct evidence means_probed(const struct means *m, const struct contrast *c, const struct line *l,
			     double variance);

/*
 * Then let the means follow. The further n is from its slow mean, the sooner it replaces that: the
 * mean is of another time.
 */
void means_follow(struct means *m, const struct line *l);

#endif
