#include <math.h>

#include "posterior.h"
#include "limits/common.h"

/* The slope goes from 0 to 1 within 1 / SHARP of ln n: as n doubles. */
#define SHARP 1.5F

/* Variance of slopes that is no noise: knees of other shapes. It bounds what one epoch can say. */
#define BLUR 0.05F

/* Noise has tails, as Student's t with so many degrees of freedom. */
#define TAILS 3.0F

/* What is less likely above the beginning, for each unit of ln n. */
#define FADES 0.2

/* Evidence of less weight says nothing. */
#define NOTHING 1e-8F

/* Width of "near", in ln n. */
#define NEAR 1.0F

static uint32_t step_of(double x)
{
	return (uint32_t)clamp(x / BELIEF_STEP + 0.5, 0, BELIEF_STEPS - 1);
}

static float ln_of(uint32_t step)
{
	return (float)step * (float)BELIEF_STEP;
}

/* What is left of it adds up to 1 again; nothing at all, or a forged one, is no belief. */
static void normalise(struct posterior *b)
{
	float sums[4] = {0}, sum,
	      least = 0; /* four sums, as each addition waits for the one before */

	for (int i = 0; i < BELIEF_STEPS; i += 4) {
		for (int j = 0; j < 4; j++) {
			sums[j] += b->of[i + j];
			least = b->of[i + j] < least ? b->of[i + j] : least;
		}
	}
	sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
	if (least < 0 || !(sum > 0 && sum < 1e30F)) {
		for (int i = 0; i < BELIEF_STEPS; i++)
			b->of[i] = 1.0F / BELIEF_STEPS;
		return;
	}
	sum = 1 / sum;
	for (int i = 0; i < BELIEF_STEPS; i++)
		b->of[i] *= sum;
}

void posterior_init(struct posterior *b, double least, double most, double from, double slope)
{
	*b = (struct posterior){
		.least = step_of(least),
		.most = step_of(most),
		.slope = (float)slope,
	};
	for (uint32_t i = b->least; i <= b->most; i++)
		b->of[i] = (float)exp(-FADES * fmax(0, i * BELIEF_STEP - from));
	normalise(b);
}

void posterior_loosen(struct posterior *b, double near, double part)
{
	if (part <= 0)
		return;
	for (uint32_t i = b->least; i <= b->most && i < BELIEF_STEPS; i++) {
		const float far = (ln_of(i) - (float)near) / NEAR;

		b->of[i] += (float)part / (1 + far * far);
	}
	normalise(b);
}

/* Of that slope, where another is expected. */
static float likelihood(float slope, float expected, float weight)
{
	const float off = slope - expected;
	const float odd = 1 + off * off * weight;

	return 1 / (odd * odd);
}

bool posterior_judge(struct posterior *b, const struct evidence *seen)
{
	const float weight = 1 / (((float)seen->variance + BLUR) * TAILS);
	const float x = (float)seen->x, slope = (float)seen->slope;
	const float steep = likelihood(slope, 1, weight), level = likelihood(slope, 0, weight);
	/* The first knees at which the slope would be below 1, and 0. */
	const uint32_t bend = step_of(seen->x - (1 - (double)b->slope) / SHARP);
	const uint32_t flat = step_of(seen->x + (double)b->slope / SHARP + BELIEF_STEP);
	uint32_t i = 0;

	if (weight < NOTHING)
		return false;
	while (i < bend)
		b->of[i++] *= steep;
	for (; i < flat; i++) {
		const float expected = b->slope + (x - ln_of(i)) * SHARP;

		b->of[i] *= likelihood(slope, fminf(fmaxf(expected, 0), 1), weight);
	}
	while (i < BELIEF_STEPS)
		b->of[i++] *= level;
	normalise(b);
	return true;
}

double posterior_quantile(const struct posterior *b, double probability)
{
	double below = 0;

	for (int i = 0; i < BELIEF_STEPS; i++) {
		const double here = (double)b->of[i];

		if (below + here >= probability && here > 0)
			return BELIEF_STEP * (i + (probability - below) / here - 0.5);
		below += here;
	}
	return BELIEF_STEP * (BELIEF_STEPS - 1);
}
