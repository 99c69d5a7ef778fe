/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queueing.h - how much of a slope that samples show is one of the mean latency.
 *
 * Little's law holds for the mean latency, and elastic measures the mean of cube roots, as a mean that
 * a few long calls decide is known from thousands of samples only. The two do not move alike. In a
 * queue all calls wait for the same time. That is many times as long as a short call takes, and
 * little beside a long one, so the mean of cube roots rises more steeply than the mean: three times
 * as steeply for exponential work and a short queue. A server that divides itself among its calls slows
 * all of them down by the same factor, and there the two means rise alike.
 *
 * The spread of latencies tells one from the other. Calls that wait for the same time become more
 * alike, while a common factor leaves their relative variance as it is. So this measures by how much
 * latencies become more even while their mean rises with the limit. Both covariances are with the
 * limit, and not with n: where n is below the limit, it grows as calls happen to take long.
 *
 * With v the relative variance of the cube roots, evenness is -1.5 ln(1 + v): the difference of ln R
 * by the mean of cube roots to ln R by the mean of their squares. If latencies are log-normal and all
 * wait for the same time, and evenness rises by a fraction q of what ln R rises by, the mean rises by
 * (1 - q)^2 of it. The square root of that is used, since what is known of q is uncertain, and a
 * limit that takes a server that divides itself for a queue grows far too large.
 */
#ifndef WEIR_LIMITS_QUEUEING_H
#define WEIR_LIMITS_QUEUEING_H

/* All zero at first. */
struct queueing {
	float limit, evenness; /* slow means; of the limit as a logarithm */
	float evened; /* covariance of evenness with the limit, over the variance of a sample */
	float risen;  /* the same of ln R */
};

/* What evenness is at means of cube roots of latencies, and of their squares. */
double queueing_evenness(double root, double square);

/* What an epoch shows. */
struct queueing_epoch {
	double limit, evenness; /* of the limit as a logarithm */
	double above;           /* of ln R over the slow mean of earlier epochs */
	double n, variance;     /* samples, and the variance of ln R of each */
};

void queueing_learn(struct queueing *q, const struct queueing_epoch *e);

/* Then let the slow means follow, by the weight of the epoch. 1: they are of this epoch alone. */
void queueing_follow(struct queueing *q, const struct queueing_epoch *e, double weight);

/* The part of a slope that the mean follows: from what is possible at this evenness to 1. */
double queueing_part(const struct queueing *q);

#endif
