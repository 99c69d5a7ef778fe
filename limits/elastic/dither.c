#include <math.h>

#include "limits/common.h"
#include "dither.h"

/* Length of a slot in latencies: what is done at its beginning must have ended in most of it. */
#define SLOT 6

/* Scrambles a number (the finalizer of MurmurHash3). */
static uint64_t scramble(uint64_t a)
{
	a = (a ^ (a >> 33)) * UINT64_C(0xff51afd7ed558ccd);
	a = (a ^ (a >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
	return a ^ (a >> 33);
}

/* In [0, 1). */
static double fraction(uint64_t number)
{
	return (double)(number >> 11) * 0x1p-53;
}

/*
 * A slot is a power of two of nanoseconds. Between two of these, a pair is taken for one of the
 * shorter or is a part of the longer, by its own chance; so limiters that differ a little in the
 * latency they see agree on nearly all of the pairs.
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

bool arms_add(struct arms *a, const struct dither *swing, double n, double x, double y,
	      struct contrast *c)
{
	const bool another = swing->pair != a->pair;
	const bool complete = another && a->down.n > 0 && a->up.n > 0;
	struct arm *arm;

	if (complete) {
		const double down = a->down.x / a->down.n, up = a->up.x / a->up.n;
		const double weight = 1 / (1 / a->down.n + 1 / a->up.n);
		const double rise = a->up.y / a->up.n - a->down.y / a->down.n;

		*c = (struct contrast){
			.x = (down + up) / 2,
			.xx = weight * (up - down) * (up - down),
			.xy = weight * (up - down) * rise,
		};
	}
	if (another)
		*a = (struct arms){.pair = swing->pair};
	arm = swing->direction > 0 ? &a->up : &a->down;
	arm->n += n;
	arm->x += n * x;
	arm->y += n * y;
	return complete;
}
