/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weights.h - weights of a new value in the means that the parts of elastic keep, and a number of
 * calls that may be chance.
 */
#ifndef WEIR_LIMITS_WEIGHTS_H
#define WEIR_LIMITS_WEIGHTS_H

/* Ten values: what later ones are compared with. */
#define SLOW 0.1
/* Five values: what each epoch shows well. */
#define QUICK 0.2
/* About three values: load and calls that go on for long, which should be known soon. */
#define RECENT 0.3
/* Fifty values: what each of them shows with much noise. */
#define LASTING 0.02

/*
 * Calls. A line through fewer shows no slope; fewer that do not end may be slow ones. That many times
 * as many as usual, of which none is served, are not chance: e^-8.
 */
#define FEW 8

/*
 * Covariances with what moves n, over the variance of a sample: what is expected of chance alone. It
 * counts as what is assumed until latency shows something else.
 */
#define RISE_PRIOR 0.05

#endif
