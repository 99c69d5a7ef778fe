#include <math.h>

#include "belief.h"
#include "common.h"

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

/* What is left of it adds up to 1 again; nothing at all, or a forged one, is no belief. */
static void normalise(struct belief *b)
{
	float sum = 0;
	bool sound = true;

	for (int i = 0; i < BELIEF_STEPS; i++) {
		sum += b->of[i];
		sound = sound && b->of[i] >= 0;
	}
	sound = sound && sum > 0 && sum < 1e30F;
	for (uint32_t i = 0; i < BELIEF_STEPS; i++) {
		if (sound)
			b->of[i] /= sum;
		else
			b->of[i] = 1.0F / BELIEF_STEPS;
	}
}

void belief_init(struct belief *b, double least, double most, double from, double slope)
{
	*b = (struct belief){
		.least = step_of(least),
		.most = step_of(most),
		.slope = (float)slope,
	};
	for (uint32_t i = b->least; i <= b->most; i++)
		b->of[i] = (float)exp(-FADES * fmax(0, i * BELIEF_STEP - from));
	normalise(b);
}

void belief_loosen(struct belief *b, double near, double part)
{
	if (part <= 0)
		return;
	for (uint32_t i = b->least; i <= b->most && i < BELIEF_STEPS; i++) {
		const float far = ((float)i * (float)BELIEF_STEP - (float)near) / NEAR;

		b->of[i] += (float)part / (1 + far * far);
	}
	normalise(b);
}

/* A ramp across the knee, where it is the target. */
static float slope_at(const struct belief *b, float above)
{
	return fminf(fmaxf(b->slope + above * SHARP, 0), 1);
}

bool belief_judge(struct belief *b, const struct evidence *seen)
{
	const float weight = 1 / (((float)seen->variance + BLUR) * TAILS);
	const float x = (float)seen->x, slope = (float)seen->slope;

	if (weight < NOTHING)
		return false;
	for (int i = 0; i < BELIEF_STEPS; i++) {
		const float off = slope - slope_at(b, x - (float)i * (float)BELIEF_STEP);
		const float odd = 1 + off * off * weight;

		b->of[i] /= odd * odd;
	}
	normalise(b);
	return true;
}

double belief_quantile(const struct belief *b, double probability)
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
