/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reference.h - whether throughput has grown with n.
 *
 * Limiters that share a server each see that more calls of their own bring more throughput, while
 * they take it from each other. So when they grow together, none of them sees a knee. But each sees
 * that its throughput has not grown with n since the last point at which it did: the reference
 * point. What throughput lacks since then, in ln X, is what the limit has to take back.
 */
#ifndef WEIR_LIMITS_REFERENCE_H
#define WEIR_LIMITS_REFERENCE_H

#include <stdbool.h>

/* A point that is compared with later ones: ln n, ln R, and the samples that it is known by. */
struct reference {
	double x, y, n;
};

/* What is known at the end of an epoch. */
struct reference_epoch {
	double x, y;   /* slow means of ln n and ln R */
	double part;   /* of ln R that all calls follow: others.h */
	double n;      /* samples of the epoch */
	double sigma2; /* variance of a sample's ln R around a line */
	double target; /* growth of ln X that a growth of ln n by 1 must bring */
	double stride; /* the most that others can have added to ln n at once */
	bool used;     /* the limit is reached more than rarely in the long run */
	bool unused;   /* it is reached rarely, and was not in this epoch */
};

/* Since the reference point. */
struct growth {
	double x, y;  /* of ln n and ln R */
	double lacks; /* throughput, in ln X, beyond chance; 0: none */
};

/* What has grown since the reference point, which follows then. */
struct growth reference_check(struct reference *r, const struct reference_epoch *e);

#endif
