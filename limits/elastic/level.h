/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * level.h - whether latency has jumped in a way that no knee explains.
 *
 * The level is where the last ten epochs were: how many calls were in flight, and how long these
 * took. An epoch that is far from it, by more than any plausible slope, says that something other
 * than n has changed: the work, the network, or the server's capacity. And by Little's law, ln X =
 * ln n - ln R, so where n has grown and R by far more, throughput is lost: the server slows down
 * by more than its calls grow in number, or has become slower meanwhile.
 */
#ifndef WEIR_LIMITS_LEVEL_H
#define WEIR_LIMITS_LEVEL_H

#include <stdbool.h>

/* All zero at first. */
struct level {
	double x, y; /* ln n and ln R */
	double n;    /* samples; 0: none yet, and nothing to compare with */
};

/* What an epoch shows. */
struct level_epoch {
	double x, y;      /* means of ln n and ln R */
	double whole;     /* the same of latencies as they were, however long */
	double uncertain; /* variance of whole, by these latencies alone */
	double part;      /* of ln R that all calls follow: others.h */
	double n;         /* samples */
	double sigma2;    /* variance of a sample's ln R around a line */
	double scatter;   /* variance of the means of epochs around what slopes explain */
	bool used;        /* the limit is reached more than rarely in the long run */
	bool reached;     /* the epoch has reached it more than rarely */
};

/* The part of a change of ln R that no plausible slope explains, given the change of ln n. */
double level_surprise(double x, double y);

/*
 * Whether something other than n has changed latency. Not if it rose as n grew: a server that
 * collapses slows down by more than its calls grow in number. But while the limit is hardly ever
 * reached, n grows because calls take longer.
 */
bool level_shifted(const struct level *v, const struct level_epoch *e);

/*
 * Whether so much throughput is lost, although more calls were in flight, that the server may have
 * collapsed. Slow calls may have been missing from the epochs before, so the loss is known no
 * better than from the fewest samples that an epoch has.
 */
bool level_collapsed(const struct level *v, const struct level_epoch *e);

/*
 * Whether more throughput is lost than room can have added, although more calls were in flight.
 * The epoch that shows it may be the last for a long time, so latencies count as they are. Where
 * some of the work takes very long, a few such calls are a loss that they do not show surely.
 */
bool level_lost(const struct level *v, const struct level_epoch *e);

/* Take in an epoch that has not jumped. */
void level_follow(struct level *v, const struct level_epoch *e);

#endif
