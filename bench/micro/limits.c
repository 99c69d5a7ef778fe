/*
 * limits.c - a pair by limit: in the windows that the limit is made for, and in windows of a
 * single sample, where each release closes one and lets the limit think.
 */
#include "rig.h"

static void *sample_make(const struct subject *self, unsigned threads)
{
	struct weir_config config = roomy(self->limit);

	(void)threads;
	config.windowing = WEIR_WINDOW_SAMPLE;
	return limiter_of(&config);
}

static const struct subject table[] = {
	{
		.group = "limits",
		.name = "limit",
		.about = "a pair; windows as the limit is made for",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = pair_loop,
		.flags = EACH_LIMIT,
	},
	{
		.group = "samples",
		.name = "sample",
		.about = "a pair; each sample is a window",
		.make = sample_make,
		.unmake = limiter_unmake,
		.loop = pair_loop,
		.flags = EACH_LIMIT,
	},
};

void limits_list(struct subjects *subjects)
{
	SUBJECTS_ADD(subjects, table);
}
