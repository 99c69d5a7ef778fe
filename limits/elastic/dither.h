/*
 * swings.h - when a limit swings up and down, and what that shows.
 *
 * Limiters that share a callee each move but a part of its queue: what n does of itself, latency
 * hardly follows. So they swing together. Which way is a matter of the time alone, in slots of some
 * latencies, and latency is what all of them see alike. Nothing is sent from one to another; the
 * clock is that of the machine. Slots come in pairs, up and down or down and up, so that what
 * drifts slowly cancels between the arms of a pair. The slope between these is that of all.
 */
#ifndef WEIR_LIMITS_SWINGS_H
#define WEIR_LIMITS_SWINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/base.h>

/* Of a moment. */
struct dither {
	uint64_t pair;    /* a number for its pair of slots; 0: none */
	double direction; /* 1, up, or -1 */
	double chance;    /* from 0 to 1, the same in both slots of the pair */
};

/* Sums over the samples of one arm of a pair. */
struct arm {
	double n, x, y;
};

/* What both arms have shown, of the last pair; all zero at first. */
struct arms {
	uint64_t pair;
	struct arm down, up;
};

/* The slope between arms, and the sum of squares that it is known by. */
struct contrast {
	double x, xx, xy;
};

struct dither dither_at(weir_time now, double ln_latency);

/*
 * Adds n samples with these means, seen in a swing. True if that begins another pair, and the one
 * before had both arms: *c is what it showed.
 */
bool arms_add(struct arms *a, const struct dither *swing, double n, double x, double y,
	      struct contrast *c);

#endif
