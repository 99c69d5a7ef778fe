/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ceiling.h - how far above the knee room may reach, once throughput was lost there.
 *
 * What brings a server down that slows down by more than its calls grow in number is often not the
 * knee but the room above it. Once such a server has recovered, the limit is hardly reached, so
 * room would soon be as large as before, until the server collapses again. So room stays below the
 * limit under which throughput was lost. That ceiling rises in each epoch that reaches the limit,
 * and half as fast each time that room has reached it and the server has collapsed again.
 */
#ifndef WEIR_LIMITS_CEILING_H
#define WEIR_LIMITS_CEILING_H

#include <stdbool.h>
#include <stdint.h>

struct ceiling {
	float most;   /* ln n: room ends there */
	float step;   /* by which it rises in an epoch */
	uint32_t met; /* bool: room has reached it since it was lowered */
};

/* top: the highest knee, in ln n. */
void ceiling_init(struct ceiling *c, double top);

/* An epoch has reached the limit. knee, top: in ln n. */
void ceiling_raise(struct ceiling *c, double knee, double top);

/* Throughput was lost above `most`, in ln n. Returns false if the ceiling is as low already. */
bool ceiling_lower(struct ceiling *c, double most);

/*
 * The server has collapsed above `most`. If room had reached the ceiling again, that rises half as
 * fast from now on, by `least` at least.
 */
void ceiling_remember(struct ceiling *c, double most, double least);

/* The part of the room above the knee that is below the ceiling; negative if the knee is above it. */
double ceiling_bound(struct ceiling *c, double knee, double room);

#endif
