/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c - a pair by limit: with the windows that the limit is made for, and with windows of one
 * sample, where each release closes one and runs the limit's update.
 */
#include "rig.h"

static void *sample_make(const struct subject *self, unsigned threads)
{
	struct weir_config config = roomy(self->limit);
	struct weir_limiter *limiter;

	(void)threads;
	config.windowing = WEIR_WINDOW_SAMPLE;
	limiter = limiter_of(&config);
	settle(limiter);
	return limiter;
}

static const struct subject table[] = {
	{
		.group = "limits",
		.name = "limit",
		.about = "a pair, with the windows that the limit is made for",
		.make = plain_make,
		.unmake = limiter_unmake,
		.loop = pair_loop,
		.flags = EACH_LIMIT,
	},
	{
		.group = "samples",
		.name = "sample",
		.about = "a pair, with each sample as a window",
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
