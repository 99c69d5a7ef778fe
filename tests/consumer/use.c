/* SPDX-License-Identifier: BSD-2-Clause */
/* use.c - the first steps of a program, in C11 and in C++11: use.cpp includes this file. */
#include <stdio.h>
#include <weir/weir.h>

int main(void)
{
	struct weir_vegas_config vegas;
	struct weir_config config;
	struct weir_limiter *limiter;
	struct weir_token token;
	struct weir_snapshot snapshot;
	char why[100];

	if (weir_version() != WEIR_VERSION_HEX)
		return 1;
	if (weir_limit_complete(&weir_vegas, NULL, 0, &vegas, why, sizeof(why)) != 0)
		return 1;
	weir_config_init(&config);
	config.limit = &weir_vegas;
	config.limit_config = &vegas;
	if (weir_limiter_create(&config, &limiter) != 0)
		return 1;
	if (weir_try_acquire(limiter, &token) != 0)
		return 1;
	weir_release(limiter, &token, WEIR_SUCCESS);
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	weir_limiter_destroy(limiter);
	printf("%u of %u\n", (unsigned)snapshot.succeeded, (unsigned)snapshot.admitted);
	return snapshot.succeeded == 1 && snapshot.inflight == 0 ? 0 : 1;
}
