/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "limits/common.h"
#include "dither.h"

/* Length of a slot, in latencies: most of a slot must show the effect of its beginning. */
#define SLOT 6

/* The finalizer of MurmurHash3: a bijection that spreads every bit. */
static uint64_t scramble(uint64_t a)
{
	a = (a ^ (a >> 33)) * UINT64_C(0xff51afd7ed558ccd);
	a = (a ^ (a >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
	return a ^ (a >> 33);
}

/* A number as a fraction in [0, 1). */
static double fraction(uint64_t number)
{
	return (double)(number >> 11) * 0x1p-53;
}

/*
 * A slot lasts a power of two of nanoseconds. The ideal length lies between two powers; a pair is
 * then either one of the shorter ones or a part of a longer one, as the hash of the shorter pair
 * decides. So limiters that see slightly different latencies agree on nearly all pairs.
 */
struct dither dither_at(weir_time now, double ln_latency)
{
	const double exact = clamp(log2(SLOT) + ln_latency / log(2), 1, 50);
	uint32_t bits = (uint32_t)exact;
	uint64_t pair = now >> (bits + 1), number;

	if (fraction(scramble(pair << 7 | bits << 1)) < exact - bits) {
		bits += 1;
		pair >>= 1;
	}
	number = scramble(pair << 7 | bits << 1 | 1);
	return (struct dither){
		.pair = pair << 7 | bits << 1 | 1,
		.direction = (now >> bits & 1) == (number & 1) ? 1 : -1,
		.chance = fraction(number),
	};
}

bool probe_pair_add(struct probe_pair *p, const struct dither *dither, double n, double x, double y,
		    struct contrast *c)
{
	const bool another = dither->pair != p->pair;
	const bool complete = another && p->down.n > 0 && p->up.n > 0;
	struct probe *probe;

	if (complete) {
		*c = (struct contrast){
			.down = p->down.x / p->down.n,
			.up = p->up.x / p->up.n,
			.rise = p->up.y / p->up.n - p->down.y / p->down.n,
			.n = 1 / (1 / p->down.n + 1 / p->up.n),
		};
	}
	if (another)
		*p = (struct probe_pair){.pair = dither->pair};
	probe = dither->direction > 0 ? &p->up : &p->down;
	probe->n += n;
	probe->x += n * x;
	probe->y += n * y;
	return complete;
}
