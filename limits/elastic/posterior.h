/*
 * belief.h - where the knee may be: a probability for each step of ln n.
 *
 * A normal distribution, as a Kalman filter has, says that the knee is near or very unlikely. Here
 * much may be known on one side and nothing on the other: while all n seen were below the knee, it
 * can be anywhere above. So the belief has a number for each step, and what is seen multiplies it.
 */
#ifndef WEIR_LIMITS_BELIEF_H
#define WEIR_LIMITS_BELIEF_H

#include <stdbool.h>
#include <stdint.h>

/* Steps of ln n, up to 2^23. A step of a tenth is finer than any knee is sharp. */
#define BELIEF_STEPS 160
#define BELIEF_STEP  0.1

struct posterior {
	float of[BELIEF_STEPS];
	uint32_t least, most; /* steps where a knee can be */
	float slope;          /* of ln R over ln n, at the knee */
};

/* A slope of ln R over ln n, seen around x, and the variance of its noise. */
struct evidence {
	double x, slope, variance;
};

/* Knees between ln's least and most; as likely below `from` as at it, and less above. */
void posterior_init(struct posterior *b, double least, double most, double from, double slope);

/* The knee may have moved: a part of the belief goes anywhere, rather near than far. */
void posterior_loosen(struct posterior *b, double near, double part);

/* False if what was seen says nothing. */
bool posterior_judge(struct posterior *b, const struct evidence *seen);

/* ln of the n which the knee is below with this probability. */
double posterior_quantile(const struct posterior *b, double probability);

#endif
