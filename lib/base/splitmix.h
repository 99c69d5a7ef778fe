/* SPDX-License-Identifier: BSD-2-Clause */
/* splitmix64 by S. Vigna (public domain): random numbers from a counter. */
#ifndef WEIR_LIB_SPLITMIX_H
#define WEIR_LIB_SPLITMIX_H

#include <stdint.h>

/* What is added to the counter for the next number. */
#define SPLITMIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The number of that counter, in [0, 1). */
static inline double splitmix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

#endif
