/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dither.h - when a limit moves up and down on purpose, and what the latency then shows.
 *
 * Each of n limiters that share a backend moves only a part of its queue, so latency hardly follows
 * the dither of one of them. Therefore they all move together. The direction depends on the time
 * alone, in slots of a few latencies, and all limiters see about the same latency. The limiters do
 * not communicate. Time is real time, so limiters of several machines move together as well, if the
 * clocks of these differ by less than a latency. Slots come in probe pairs, up then down or down
 * then up, so that a slow drift cancels between the two slots of a pair. The rise between the two is
 * that of all limiters together.
 */
#ifndef WEIR_LIMITS_DITHER_H
#define WEIR_LIMITS_DITHER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/base.h>

/* The dither at one moment. */
struct dither {
	uint64_t pair;    /* identifies the pair of slots; 0: none */
	double direction; /* 1: up; -1: down */
	double chance;    /* uniform in [0, 1); the same in both slots of the pair */
};

/* Sums over the samples of one slot of a pair. */
struct probe {
	double n, x, y;
};

/* The samples of the current probe pair; all zero at first. */
struct probe_pair {
	uint64_t pair;
	struct probe down, up;
};

/* What a complete pair shows: x in each slot, by how much y is higher in the upper one. */
struct contrast {
	double down, up, rise;
	double n; /* samples: the variance of the rise is that of one of them over this */
};

/* The dither at the time now, for a latency given as its logarithm in ln ns. */
struct dither dither_at(weir_time now, double ln_latency);

/*
 * Add n samples with means x and y that were admitted under this dither. Returns true if they begin
 * a new pair and the previous pair had samples in both slots; *c is then what that pair showed.
 */
bool probe_pair_add(struct probe_pair *p, const struct dither *dither, double n, double x, double y,
		    struct contrast *c);

#endif
