/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * constants.h - what several parts of elastic have in common: steps in ln n, numbers of calls that
 * may be chance, and the weights of a new value in means.
 */
#ifndef WEIR_LIMITS_CONSTANTS_H
#define WEIR_LIMITS_CONSTANTS_H

/*
 * Largest stride in ln n, from the limit of the epoch: a factor of e. Collapse may be near, so
 * upwards it is made in two steps. A larger loss of throughput, in ln X, may be a collapse.
 */
#define RISE 1.0

/*
 * Height of a bold probe in ln n: a quarter; what it shows grows with the square. Latency that
 * changes by more, in ln R, may have shifted.
 */
#define BOLD 0.25

/* Most room, in ln n, but for bunches that often reach the limit: a factor of 4.5. */
#define ROOM_MOST 1.5

/*
 * Fraction of calls that find the limit reached: overload from there on. The least of bold probes.
 */
#define OFTEN 0.05

/* Weight in a mean of ten values: what later ones are compared with. */
#define SLOW 0.1
/* Five values: what each epoch shows well. */
#define QUICK 0.2
/* About three values: load and calls that go on for long, which should be known soon. */
#define RECENT 0.3
/* Fifty values: what each of them shows with much noise. */
#define LASTING 0.02

/*
 * Calls. A line through fewer shows no slope; fewer that do not end may be slow ones. That many
 * times as many as usual, of which none is served, are not chance: e^-8.
 */
#define FEW 8
/*
 * Samples of an epoch, at least, while little is known of the knee, so that a cold start is fast;
 * later it needs FEW, or more where latency varies much. With fewer than EPOCH_WIDE an epoch is
 * discarded: a line needs more than two.
 */
#define EPOCH_WIDE 4

/*
 * Covariances with what moves n, over the variance of a sample: what is expected of chance alone.
 * It counts as what is assumed until latency shows something else.
 */
#define RISE_PRIOR 0.05

#endif
