/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The callbacks that this thread is running: a list through its stack.
 */

#include "lib/base/notify.h"

#include <stddef.h>

#include "lib/base/cancel.h"

struct notifying {
	const struct notifying *outer;
	const void *key;
	uint32_t stamp;
};

static _Thread_local const struct notifying *innermost;

void notify_run(const void *key, uint32_t stamp, weir_granted_fn *granted, void *arg)
{
	const struct notifying it = {.outer = innermost, .key = key, .stamp = stamp};
	const int cancel = cancel_hold();

	innermost = &it;
	granted(arg);
	innermost = it.outer;
	cancel_release(cancel);
}

bool notify_here(const void *key, uint32_t stamp)
{
	for (const struct notifying *it = innermost; it != NULL; it = it->outer)
		if (it->key == key && it->stamp == stamp)
			return true;
	return false;
}

bool notify_any(void)
{
	return innermost != NULL;
}
