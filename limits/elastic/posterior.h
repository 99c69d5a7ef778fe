/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * posterior.h - the posterior over the knee: a probability for each step of ln n.
 *
 * A normal distribution, as in a Kalman filter, says that the knee is near its mean and very
 * unlikely to be elsewhere. Here much may be known on one side and nothing on the other: while all
 * n seen were below the knee, the knee can be anywhere above. So the posterior has a number for
 * each step of ln n, and each observation multiplies it by a likelihood.
 */
#ifndef WEIR_LIMITS_POSTERIOR_H
#define WEIR_LIMITS_POSTERIOR_H

#include <stdbool.h>
#include <stdint.h>

/* Number of steps: ln n from 0 to 16, so n up to 2^23, the most that a limiter can hold. */
#define POSTERIOR_STEPS 160
/* Width of a step in ln n: finer than any knee is sharp. */
#define POSTERIOR_STEP (16.0 / POSTERIOR_STEPS)

struct posterior {
	float of[POSTERIOR_STEPS]; /* probability of each step; they add up to 1 */
	uint32_t least, most;      /* steps between which the knee can be */
	float slope;               /* of ln R over ln n, at the knee */
};

/* A measured change of the mean of ln R, while ln n went from one value, or several, to another. */
struct evidence {
	double from, spread; /* ln n before: mean and standard deviation */
	double to;           /* ln n after */
	double change;       /* of ln R */
	double variance;     /* of the change, as far as it is noise */
};

/* Set the prior: all knees between least and most, in ln n, are equally likely. slope is at the knee. */
void posterior_init(struct posterior *p, double least, double most, double slope);

/*
 * Allow for a knee that has moved: add probability `part` everywhere up to `most`, in ln n, by a Cauchy
 * distribution that is a factor of e of n wide.
 */
void posterior_loosen(struct posterior *p, double near, double part, double most);

/* Multiply by the likelihood of this evidence. Returns false if it carries no information. */
bool posterior_update(struct posterior *p, const struct evidence *seen);

/* What a knee adds to ln R at x: the integral of the slopes below x that it would produce. */
double posterior_rise(const struct posterior *p, double knee, double x);

/* The ln n that the knee is below with this probability. */
double posterior_quantile(const struct posterior *p, double probability);

#endif
