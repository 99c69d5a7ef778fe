/* SPDX-License-Identifier: BSD-2-Clause */
/* From a configuration to a rate: defaults, checks, creation and end. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/explain.h"
#include "lib/rate/rate.h"

#define QUEUE_MAX 65535

/*
 * Slots in a period by default, and the bounds of a default slot: a second has five slots of 200
 * ms, and longer periods have slots of 200 ms too.
 */
#define PIECES   5
#define SLOT_MIN WEIR_MS
#define SLOT_MAX (200 * WEIR_MS)

#define RECOVERY     (5 * WEIR_S)
#define RECOVERY_MAX (UINT64_C(1) << 60)

void weir_rate_config_init_sized(struct weir_rate_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
	return value != 0 ? value : otherwise;
}

int rate_check_quota(const struct weir_quota *q, unsigned index, char *why, size_t why_size)
{
	const uint64_t period = or_default(q->period, WEIR_S);

	if ((q->flags & ~(uint32_t)WEIR_QUOTA_UNLIMITED) != 0 || q->reserved != 0)
		return refuse(why, why_size, "Quota %u has unknown flags.", index);
	if (period > PERIOD_MAX)
		return refuse(why, why_size, "Quota %u has a period longer than 52 days.", index);
	if (q->units > WEIR_UNITS_MAX || q->burst > WEIR_UNITS_MAX)
		return refuse(why, why_size, "Quota %u has more than 2^53 units or burst.", index);
	if (q->units / UNITS_PER_NS > period ||
	    (q->units / UNITS_PER_NS == period && q->units % UNITS_PER_NS != 0))
		return refuse(why, why_size, "Quota %u has more than 64 units a nanosecond.",
			      index);
	return 0;
}

static uint64_t shortest_period(const struct weir_rate_config *c)
{
	uint64_t shortest = PERIOD_MAX;

	for (unsigned i = 0; i < c->quota_count; i++) {
		const uint64_t period = or_default(c->quotas[i].period, WEIR_S);

		shortest = period < shortest ? period : shortest;
	}
	return shortest;
}

static uint64_t slot_for(uint64_t period)
{
	uint64_t slot = period / PIECES;

	slot = slot > SLOT_MIN ? slot : SLOT_MIN;
	slot = slot < SLOT_MAX ? slot : SLOT_MAX;
	return slot < period ? slot : period;
}

static int complete(struct weir_rate_config *c, char *why, size_t why_size)
{
	c->quota_count = (uint32_t)or_default(c->quota_count, 1);
	c->recovery = or_default(c->recovery, RECOVERY);
	if (c->quota_count > WEIR_QUOTAS_MAX)
		return refuse(why, why_size, "quota_count is %u, above %u.",
			      (unsigned)c->quota_count, (unsigned)WEIR_QUOTAS_MAX);
	for (unsigned i = 0; i < c->quota_count; i++)
		if (rate_check_quota(&c->quotas[i], i, why, why_size) != 0)
			return -EINVAL;
	c->slot = or_default(c->slot, slot_for(shortest_period(c)));
	if (c->slot > shortest_period(c))
		return refuse(why, why_size, "A slot is longer than the shortest period.");
	if (c->queue > QUEUE_MAX)
		return refuse(why, why_size, "queue is %u, above %u.", (unsigned)c->queue,
			      (unsigned)QUEUE_MAX);
	if (c->recovery > RECOVERY_MAX)
		return refuse(why, why_size, "recovery is longer than 36 years.");
	return 0;
}

int rate_check(const struct weir_rate_config *config, struct weir_rate_config *c, char *why,
	       size_t why_size)
{
	if (config == NULL || config->size < offsetof(struct weir_rate_config, queue))
		return refuse(why, why_size,
			      "weir_rate_config_init() was not called for this configuration.");
	if (config->size > sizeof(*c))
		return refuse(why, why_size, "The program was built for a newer library.");
	memset(c, 0, sizeof(*c));
	memcpy(c, config, config->size);
	return complete(c, why, why_size);
}

int weir_rate_config_check(const struct weir_rate_config *config, char *why, size_t why_size)
{
	struct weir_rate_config complete_one;

	return rate_check(config, &complete_one, why, why_size);
}

/* Everything was zeroed. The origin is one slot before the first. */
static void begin(struct weir_rate *r, const struct weir_rate_config *c)
{
	r->quotas = c->quota_count;
	r->seats = c->queue;
	r->clock = c->clock;
	r->sooner = c->sooner;
	r->sooner_arg = c->sooner_arg;
	r->slot = c->slot;
	r->recovery = c->recovery;
	r->terms.accrual = (struct accrual){
		.slot = c->slot,
		.percent = FULL_PACE,
		.step = c->recovery / c->slot > 0 ? c->recovery / c->slot : 1,
		.origin = rate_now(r) - c->slot,
	};
	for (unsigned i = 0; i < c->quota_count; i++) {
		r->terms.quota[i] = quota_from(&c->quotas[i], c->slot);
		r->value[i] = c->quotas[i];
	}
	pthread_mutex_init(&r->lock, NULL);
	line_init(r);
	rate_publish(r);
}

int weir_rate_create(const struct weir_rate_config *config, struct weir_rate **rate)
{
	struct weir_rate_config c;
	struct weir_rate *r;
	size_t size;

	*rate = NULL;
	if (rate_check(config, &c, NULL, 0) != 0)
		return -EINVAL;
	size = round_up_to_line(sizeof(*r) + c.queue * sizeof(r->seat[0]));
	r = aligned_alloc(LINE, size);
	if (r == NULL)
		return -ENOMEM;
	memset(r, 0, size);
	begin(r, &c);
	*rate = r;
	return 0;
}

void weir_rate_destroy(struct weir_rate *r)
{
	if (r == NULL)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}
