/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.c - read the clock, which shares nothing between threads, so it scales if anything does.
 */
#include "probe.h"

#include "team.h"

#include <stddef.h>
#include <weir/base.h>

#define READS 1000000

#define SCALES_MIN 1.8
#define SCALES_MAX 2.2

static uint64_t read_clock(void *arg, unsigned member)
{
	uint64_t sum = 0;

	(void)arg;
	(void)member;
	for (int i = 0; i < READS; i++)
		sum += weir_now();
	return sum;
}

double probe(void)
{
	const struct job job = {.run = read_clock};

	if (team_processors() < 2)
		return 1;
	return 2 * team_run(&job, 1).ns / team_run(&job, 2).ns;
}

bool probe_scales(double ratio)
{
	return ratio >= SCALES_MIN && ratio <= SCALES_MAX;
}
