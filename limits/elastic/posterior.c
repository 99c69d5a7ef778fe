/* SPDX-License-Identifier: BSD-2-Clause */
#include <float.h>
#include <math.h>

#include "posterior.h"
#include "limits/common.h"

/* How steep the ramp of slopes is: they go from 0 to 1 within 1 / SHARP of ln n, as n doubles. */
#define SHARP 1.5F

/* Variance of a slope that is not noise: real knees are no ramps. */
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

void posterior_loosen(struct posterior *p, double near, double part, double most)
{
	if (part <= 0)
		return;
	for (uint32_t i = p->least; i <= p->most && i < POSTERIOR_STEPS; i++) {
		const float far = ln_of(i) - (float)near;

		if (ln_of(i) > (float)most)
			break;
		p->of[i] += (float)part / (1 + far * far);
	}
	normalise(p);
}

/* What the ramp of slopes adds to ln R, at a distance in ln n from where it begins. */
static double ramp_rise(double distance)
{
	if (distance <= 0)
		return 0;
	return distance < 1 / (double)SHARP ? distance * distance * (double)SHARP / 2
					    : distance - 1 / (2 * (double)SHARP);
}

/* Where the ramp of a knee begins, in ln n. */
static double ramp_start(const struct posterior *p, double knee)
{
	return knee - (double)p->slope / (double)SHARP;
}

double posterior_rise(const struct posterior *p, double knee, double x)
{
	return ramp_rise(x - ramp_start(p, knee));
}

/* Likelihood of a change where another is expected: Student's t, not normalised. */
static float likelihood(float change, float expected, float weight)
{
	const float off = change - expected;
	const float odd = 1 + off * off * weight;

	return 1 / (odd * odd);
}

/*
 * The change that a knee would produce. The mean of ln R over several n is above ln R at their mean,
 * as the slope grows with n: two points stand for them, one deviation below their mean and one above.
 */
static float expected(const struct posterior *p, const struct evidence *seen, uint32_t step)
{
	const double start = ramp_start(p, (double)ln_of(step));
	const double low = ramp_rise(seen->from - seen->spread - start);
	const double high = ramp_rise(seen->from + seen->spread - start);

	return (float)(ramp_rise(seen->to - start) - (low + high) / 2);
}

bool posterior_update(struct posterior *p, const struct evidence *seen)
{
	const float way = (float)(seen->to - seen->from), change = (float)seen->change;
	const float weight = 1 / (((float)seen->variance + BLUR * way * way) * TAILS);
	const float steep = likelihood(change, way, weight);
	const float level = likelihood(change, 0, weight);
	const double low = fmin(seen->from - seen->spread, seen->to);
	const double high = fmax(seen->from + seen->spread, seen->to);
	/* The first knees for which the lowest n is not past the ramp, and the highest before it. */
	const uint32_t bend = step_of(low - (1 - (double)p->slope) / (double)SHARP);
	const uint32_t flat = step_of(high + (double)p->slope / (double)SHARP + POSTERIOR_STEP);
	uint32_t i = 0;

	if (!(weight * (float)(high - low) * (float)(high - low) > FLT_EPSILON))
		return false; /* the likelihood is nearly 1 everywhere */
	while (i < bend)
		p->of[i++] *= steep;
	for (; i < flat; i++)
		p->of[i] *= likelihood(change, expected(p, seen, i), weight);
	while (i < POSTERIOR_STEPS)
		p->of[i++] *= level;
	normalise(p);
	return true;
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
