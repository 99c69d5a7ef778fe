/* SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>

#include "posterior.h"
#include "limits/common.h"

/* How steep the ramp of slopes is: they go from 0 to 1 within 1 / SHARP of ln n, as n doubles. */
#define SHARP 1.5F

/* Variance of a slope that is not noise: real knees are no ramps. Bounds the weight of an epoch. */
#define BLUR 0.05F

/* Degrees of freedom of Student's t: heavy tails, so that no single epoch decides. */
#define TAILS 3.0F

static uint32_t step_of(double x)
{
	return (uint32_t)clamp(x / POSTERIOR_STEP + 0.5, 0, POSTERIOR_STEPS - 1);
}

static float ln_of(uint32_t step)
{
	return (float)step * (float)POSTERIOR_STEP;
}

/*
 * Scale the sum back to 1. If nothing is left, or the state was corrupted (it can be read from a
 * file or shared with other processes), start again from a uniform distribution. Four partial sums
 * avoid waiting for each addition before the next.
 */
static void normalise(struct posterior *p)
{
	float sums[4] = {0}, sum, least = 0;

	for (int i = 0; i < POSTERIOR_STEPS; i += 4) {
		for (int j = 0; j < 4; j++) {
			sums[j] += p->of[i + j];
			least = p->of[i + j] < least ? p->of[i + j] : least;
		}
	}
	sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
	if (least < 0 || !(sum > 0 && sum < 1e30F)) {
		for (int i = 0; i < POSTERIOR_STEPS; i++)
			p->of[i] = 1.0F / POSTERIOR_STEPS;
		return;
	}
	sum = 1 / sum;
	for (int i = 0; i < POSTERIOR_STEPS; i++)
		p->of[i] *= sum;
}

void posterior_init(struct posterior *p, double least, double most, double slope)
{
	*p = (struct posterior){
		.least = step_of(least),
		.most = step_of(most),
		.slope = (float)slope,
	};
	for (uint32_t i = p->least; i <= p->most; i++)
		p->of[i] = 1;
	normalise(p);
}

void posterior_loosen(struct posterior *p, double near, double part)
{
	if (part <= 0)
		return;
	for (uint32_t i = p->least; i <= p->most && i < POSTERIOR_STEPS; i++) {
		const float far = ln_of(i) - (float)near;

		p->of[i] += (float)part / (1 + far * far);
	}
	normalise(p);
}

/* Likelihood of a slope where another is expected: Student's t, not normalised. */
static float likelihood(float slope, float expected, float weight)
{
	const float off = slope - expected;
	const float odd = 1 + off * off * weight;

	return 1 / (odd * odd);
}

bool posterior_update(struct posterior *p, const struct evidence *seen)
{
	const float weight = 1 / (((float)seen->variance + BLUR) * TAILS);
	const float x = (float)seen->x, slope = (float)seen->slope;
	const float steep = likelihood(slope, 1, weight), level = likelihood(slope, 0, weight);
	/* Steps of the first knees at which the expected slope at x is below 1, and is 0. */
	const uint32_t bend = step_of(seen->x - (1 - (double)p->slope) / SHARP);
	const uint32_t flat = step_of(seen->x + (double)p->slope / SHARP + POSTERIOR_STEP);
	uint32_t i = 0;

	if (weight < FLT_EPSILON)
		return false;
	while (i < bend)
		p->of[i++] *= steep;
	for (; i < flat; i++) {
		const float expected = p->slope + (x - ln_of(i)) * SHARP;

		p->of[i] *= likelihood(slope, fminf(fmaxf(expected, 0), 1), weight);
	}
	while (i < POSTERIOR_STEPS)
		p->of[i++] *= level;
	normalise(p);
	return true;
}

double posterior_rise(const struct posterior *p, double knee, double x)
{
	const double ramp = x - knee + (double)p->slope / (double)SHARP;

	if (ramp <= 0)
		return 0;
	return ramp < 1 / (double)SHARP ? ramp * ramp * (double)SHARP / 2
					: ramp - 1 / (2 * (double)SHARP);
}

double posterior_quantile(const struct posterior *p, double probability)
{
	double below = 0;

	for (int i = 0; i < POSTERIOR_STEPS; i++) {
		const double here = (double)p->of[i];

		if (below + here >= probability && here > 0)
			return POSTERIOR_STEP * (i + (probability - below) / here - 0.5);
		below += here;
	}
	return POSTERIOR_STEP * (POSTERIOR_STEPS - 1);
}
