/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measuring demand.
 */

#include "fleet/protocol/demand.h"

#include <string.h>

#include <weir/fleet.h>

#define TICKS (DEMAND_SECONDS * DEMAND_TICKS)

__extension__ typedef unsigned __int128 wide;

static uint64_t bounded(wide units)
{
	return units < WEIR_SHARE_UNITS_MAX ? (uint64_t)units : WEIR_SHARE_UNITS_MAX;
}

void demand_count(struct demand *d, uint64_t counted, uint64_t ticks)
{
	const uint64_t some = counted - d->seen;
	const uint64_t kept = ticks < TICKS ? ticks : TICKS;

	d->seen = counted;
	memmove(d->ticks + kept, d->ticks, (TICKS - kept) * sizeof(d->ticks[0]));
	for (uint64_t i = 0; i < kept; i++)
		d->ticks[i] = some / ticks + (i < some % ticks);
}

static uint64_t second(const struct demand *d, unsigned index)
{
	uint64_t units = 0;

	for (unsigned i = 0; i < DEMAND_TICKS; i++)
		units += d->ticks[index * DEMAND_TICKS + i];
	return units;
}

uint64_t demand_last(const struct demand *d)
{
	return second(d, 0);
}

/* Units per second over the last count seconds, rounded up. */
static uint64_t mean(const uint64_t seconds[DEMAND_SECONDS], unsigned count)
{
	wide sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += seconds[i];
	return bounded((sum + count - 1) / count);
}

uint64_t demand_wanted(const struct demand *d, weir_dur period)
{
	const uint64_t whole = period / WEIR_S;
	const unsigned count = whole < 1                ? 1
			       : whole < DEMAND_SECONDS ? (unsigned)whole
							: DEMAND_SECONDS;
	uint64_t seconds[DEMAND_SECONDS], wanted, recent;

	for (unsigned i = 0; i < DEMAND_SECONDS; i++)
		seconds[i] = second(d, i);
	wanted = demand_estimate(seconds);
	recent = mean(seconds, count);
	if (wanted < recent)
		wanted = recent;
	return bounded(((wide)wanted * period + WEIR_S - 1) / WEIR_S);
}

uint64_t demand_estimate(const uint64_t seconds[DEMAND_SECONDS])
{
	wide sum = 0;

	for (unsigned i = 0; i < DEMAND_SECONDS; i++)
		sum += (wide)seconds[i] * (DEMAND_SECONDS - i);
	return bounded((sum + DEMAND_SECONDS * (DEMAND_SECONDS + 1) / 2 - 1) /
		       (DEMAND_SECONDS * (DEMAND_SECONDS + 1) / 2));
}
