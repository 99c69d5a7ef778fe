/*
 * The callbacks that a thread is in: a list along its stack.
 */

#include "lib/telling.h"

#include <stddef.h>

#include "lib/cancel.h"

struct telling {
	const struct telling *outer;
	const void *place;
	uint32_t stamp;
};

static _Thread_local const struct telling *innermost;

void telling_run(const void *place, uint32_t stamp, weir_granted_fn *granted, void *arg)
{
	const struct telling it = {.outer = innermost, .place = place, .stamp = stamp};
	const int cancel = cancel_hold();

	innermost = &it;
	granted(arg);
	innermost = it.outer;
	cancel_release(cancel);
}

bool telling_here(const void *place, uint32_t stamp)
{
	for (const struct telling *it = innermost; it != NULL; it = it->outer)
		if (it->place == place && it->stamp == stamp)
			return true;
	return false;
}

bool telling_any(void)
{
	return innermost != NULL;
}
