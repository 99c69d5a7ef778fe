/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measuring demand.
 */

#include "fleet/protocol/demand.h"

#include <string.h>

#include <weir/fleet.h>

#define TICKS ((size_t)DEMAND_SECONDS * DEMAND_TICKS)

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

static wide divide_up(wide units, uint64_t by)
{
	return (units + by - 1) / by;
}

/* Units per second over the last count seconds, rounded up. */
static uint64_t mean(const uint64_t seconds[DEMAND_SECONDS], uint64_t count)
{
	wide sum = seconds[0];

	for (uint64_t i = 1; i < count; i++)
		sum += seconds[i];
	return bounded(divide_up(sum, count));
}

uint64_t demand_wanted(const struct demand *d, weir_dur period)
{
	const uint64_t whole = period / WEIR_S;
	const uint64_t count = whole < 1 ? 1 : whole < DEMAND_SECONDS ? whole : DEMAND_SECONDS;
	uint64_t seconds[DEMAND_SECONDS], wanted, recent;

	for (unsigned i = 0; i < DEMAND_SECONDS; i++)
		seconds[i] = second(d, i);
	wanted = demand_estimate(seconds);
	recent = mean(seconds, count);
	if (wanted < recent)
		wanted = recent;
	return bounded(divide_up((wide)wanted * period, WEIR_S));
}

uint64_t demand_estimate(const uint64_t seconds[DEMAND_SECONDS])
{
	wide sum = 0;

	for (unsigned i = 0; i < DEMAND_SECONDS; i++)
		sum += (wide)seconds[i] * (DEMAND_SECONDS - i);
	return bounded(divide_up(sum, DEMAND_SECONDS * (DEMAND_SECONDS + 1) / 2));
}
