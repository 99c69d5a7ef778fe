/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quantity.c - arbitrary text as a duration and as a distribution; a value drawn from one is a
 * duration.
 */
#include "fuzz.h"

#include "quantity.h"

#include <math.h>

#define TEXT_MAX 200

static void draw_some(const struct law *law)
{
	struct rng rng;

	rng_seed(&rng, 1, 1);
	for (unsigned i = 0; i < 100; i++) {
		double drawn = law_draw(law, &rng);

		must(drawn >= 0);
		must(law->mean > 0 || drawn == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size, TEXT_MAX);
	double nanoseconds = -1;
	struct law law;

	if (text == NULL)
		return 0;
	if (duration_read(text, &nanoseconds))
		must(nanoseconds >= 0 && nanoseconds < 9.3e18);
	if (law_read(text, &law) == NULL)
		draw_some(&law);
	free(text);
	return 0;
}
