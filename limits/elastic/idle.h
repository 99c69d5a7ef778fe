/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle.h - how much of a server its limit leaves idle.
 *
 * Calls arrive at random. A limit at the knee refuses calls while it is reached, and a moment
 * later fewer calls than the knee are in flight, and part of the server has nothing to do. With a
 * limit of 1 and twice the load that it can serve, one worker is idle a third of the time. A limit
 * somewhat above the knee keeps calls in reserve for such moments. How far above depends on how
 * much arrivals and work vary. That need not be known: each call sees how much of the knee is free
 * when it is admitted.
 *
 * Idle time counts only if the limit can be its cause: the limit was reached in the same epoch,
 * and in those before and after it. And it counts only where the limiter has its server to itself.
 * In company, others use what its own calls leave free of the knee. Latency tells the two apart:
 * in company it does not follow the limiter's own calls in flight as the knee predicts.
 *
 * Two things show whether it does. One is what calls find in flight. But where a server divides
 * itself among all calls, those that come later slow down earlier ones, and what a call finds hardly
 * matters. The other is the rounding of the limit: as fractions are carried from epoch to epoch, a
 * limit of 1.5 is 1 and 2 in turns. Other limiters take no part in that, and latency does not cause
 * it. It shows much where limits are small, and there idle time matters most. In company, latency
 * follows neither.
 */
#ifndef WEIR_LIMITS_IDLE_H
#define WEIR_LIMITS_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* Sums over the samples of an epoch. */
struct idle_sums {
	float found;  /* in flight besides the call */
	float idle;   /* fraction of the knee that was free */
	float rise;   /* what the knee adds to ln R */
	float rise2;  /* its square */
	float rise_y; /* with y = cbrt R */
};

/* All zero at first. */
struct idle {
	float inflight; /* mean number of calls in flight, of the last epochs */
	float found;    /* mean of what calls found in flight, of the same */
	float limit;    /* mean limit, of the same */
	float fraction; /* of the time that the knee is idle because of the limit */
	float weight;   /* of the last epoch in that mean */
	float pending;  /* that of the last epoch; counts if the next one reaches the limit too */
	float expected; /* variance of the rise that the knee predicts, over the noise of ln R */
	float seen;     /* covariance of that rise with ln R, over the noise of ln R */
	float rounding_expected; /* covariance of the rise with the rounding, over the noise of epochs */
	float rounding_seen; /* covariance of ln R with the rounding, over the noise of epochs */
	uint32_t bound;      /* epochs in a row that reached the limit */
};

/* What was measured in an epoch. */
struct idle_epoch {
	double n;        /* samples */
	double y;        /* their sum of cbrt R */
	double limit;    /* in force */
	double sigma2;   /* variance of ln R around a line */
	double part;     /* of ln R that all calls follow: others.h */
	double rounding; /* ln of the limit in force over the limit before it was rounded */
	double rise; /* what the knee adds to mean ln R, less what it adds at the slow mean of ln n */
	double above; /* mean ln R, less its slow mean */
	double noise; /* variance of that mean */
	bool bound;   /* the limit was reached more than rarely */
};

/* Add n samples that found `inflight` calls with themselves, where the knee is that many calls. */
void idle_add(struct idle_sums *sums, double n, double inflight, double y, double knee,
	      double rise);

/* Take in how many calls were in flight on average, since the last time. */
void idle_inflight(struct idle *i, double inflight);

void idle_update(struct idle *i, const struct idle_sums *sums, const struct idle_epoch *e);

#endif
