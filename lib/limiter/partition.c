/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Partitions as the program sees them: names, settings, numbers, delays. How they admit calls is in
 * lib/admission/admission.c.
 */

#include "lib/limiter/partition.h"

#include <errno.h>
#include <string.h>

#include "lib/base/explain.h"
#include "lib/limiter/limiter.h"
#include "lib/process/owner_wait.h"

#define UNKNOWN "unknown"

/* Shares whose sum exceeds 1 by at most this count as 1: decimal fractions are rarely exact. */
#define SUM_NOISE 1e-9

#define DELAY_MAX (3600 * WEIR_S)

bool partition_is_unknown(const char *name)
{
	return strcmp(name, UNKNOWN) == 0;
}

struct weir_partition partition_defaults(const struct weir_partition *p)
{
	struct weir_partition complete = {.name = UNKNOWN};

	if (p != NULL)
		complete = *p;
	complete.cap = complete.cap == 0 ? 1 : complete.cap;
	complete.max = complete.max == 0 ? WEIR_LIMIT_MAX : complete.max;
	return complete;
}

static int check_name(const struct weir_partition *partitions, uint32_t i, char *why,
		      size_t why_size)
{
	const char *name = partitions[i].name;

	if (name == NULL || name[0] == '\0')
		return refuse(why, why_size, "Partition %u has no name.", (unsigned)i + 1);
	if (strlen(name) > WEIR_PARTITION_NAME_MAX)
		return refuse(why, why_size, "The name of partition %u is longer than %d bytes.",
			      (unsigned)i + 1, WEIR_PARTITION_NAME_MAX);
	for (uint32_t k = 0; k < i; k++)
		if (strcmp(partitions[k].name, name) == 0)
			return refuse(why, why_size, "There are two partitions named %s.", name);
	return 0;
}

int partition_check_names(const struct weir_partition *partitions, uint32_t count, char *why,
			  size_t why_size)
{
	for (uint32_t i = 0; i < count; i++)
		if (check_name(partitions, i, why, why_size) != 0)
			return -EINVAL;
	return 0;
}

static int check_one(const struct weir_partition *p, char *why, size_t why_size)
{
	if (!(p->share >= 0 && p->share <= 1))
		return refuse(why, why_size, "The share of %s is %g, not from 0 to 1.", p->name,
			      p->share);
	if (!(p->cap > 0 && p->cap <= 1))
		return refuse(why, why_size, "The cap of %s is %g, not above 0 and up to 1.",
			      p->name, p->cap);
	if (p->cap < p->share)
		return refuse(why, why_size, "The cap of %s is below its share.", p->name);
	if (p->max > WEIR_LIMIT_MAX)
		return refuse(why, why_size, "The max of %s is %u, above %u.", p->name,
			      (unsigned)p->max, (unsigned)WEIR_LIMIT_MAX);
	if (p->reject_delay > DELAY_MAX)
		return refuse(why, why_size, "The reject_delay of %s is longer than an hour.",
			      p->name);
	return 0;
}

bool partition_is_sound(const struct weir_partition *p)
{
	struct weir_partition named = *p;

	named.name = "";
	return check_one(&named, NULL, 0) == 0;
}

int partition_check(const struct weir_partition *partitions, uint32_t count, char *why,
		    size_t why_size)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (check_one(&partitions[i], why, why_size) != 0)
			return -EINVAL;
		sum += partitions[i].share;
	}
	if (sum > 1 + SUM_NOISE)
		return refuse(why, why_size, "The shares add up to %g, more than 1.", sum);
	return 0;
}

uint16_t weir_partition_find(const struct weir_limiter *l, const char *name)
{
	for (uint32_t i = 0; name != NULL && i < l->admission.count; i++)
		if (strcmp(l->admission.names[i], name) == 0)
			return (uint16_t)i;
	return 0;
}

unsigned weir_partition_count(const struct weir_limiter *l)
{
	return l->admission.count;
}

/* A partition's current settings. */
static struct weir_partition settings_of(const struct admission *a, uint32_t index)
{
	const struct part *part = &a->parts[index];

	return (struct weir_partition){
		.name = a->names[index],
		.share = double_of(&part->share),
		.cap = double_of(&part->cap),
		.max = atomic_load_explicit(&part->max, memory_order_relaxed),
		.reject_delay = atomic_load_explicit(&part->reject_delay, memory_order_relaxed),
	};
}

/* A thread sleeps for this long, so a delay that no configuration can have counts as none. */
static weir_dur delay_of(const struct part *part)
{
	const weir_dur delay = atomic_load_explicit(&part->reject_delay, memory_order_relaxed);

	return delay <= DELAY_MAX ? delay : 0;
}

static void set_settings(struct part *part, const struct weir_partition *p)
{
	set_double(&part->share, p->share);
	set_double(&part->cap, p->cap);
	atomic_store_explicit(&part->max, p->max, memory_order_relaxed);
	atomic_store_explicit(&part->reject_delay, p->reject_delay, memory_order_relaxed);
}

/* All settings after the change, in all. Returns 0, or -EINVAL and a sentence. */
static int merge(const struct weir_limiter *l, const struct weir_partition *partitions,
		 uint32_t count, struct weir_partition *all, char *why, size_t why_size)
{
	for (uint32_t i = 0; i < l->admission.count; i++)
		all[i] = settings_of(&l->admission, i);
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_partition *p = &partitions[i];
		uint16_t index = weir_partition_find(l, p->name);

		if (index == 0 && !partition_is_unknown(p->name))
			return refuse(why, why_size, "There is no partition named %s.", p->name);
		all[index] = partition_defaults(p);
	}
	return partition_check(all, l->admission.count, why, why_size);
}

/* False: another process is changing the settings, and makes no progress. */
static bool lock_settings(struct weir_limiter *l)
{
	const struct admission *a = &l->admission;
	struct owner_wait wait = owner_wait_begin();
	uint32_t setter = 0;

	while (!atomic_compare_exchange_strong_explicit(&a->room->setting, &setter, a->owner + 1,
							memory_order_acquire,
							memory_order_relaxed)) {
		if (!owner_wait_longer(l, &wait, setter - 1))
			return false;
		setter = 0;
	}
	return true;
}

static void unlock_settings(const struct admission *a)
{
	atomic_store_explicit(&a->room->setting, 0, memory_order_release);
}

int weir_partitions_set(struct weir_limiter *l, const struct weir_partition *partitions,
			uint32_t count, char *why, size_t why_size)
{
	struct weir_partition all[WEIR_PARTITIONS_MAX + 1];
	int r;

	if (!l->serves)
		return limiter_denial(l);
	if (l->admission.count == 0)
		return refuse(why, why_size, "The limiter was made without partitions.");
	if (partitions == NULL && count > 0)
		return refuse(why, why_size, "count is %u, but there are no partitions.",
			      (unsigned)count);
	if (partition_check_names(partitions, count, why, why_size) != 0)
		return -EINVAL;
	if (!lock_settings(l)) {
		explain(why, why_size,
			"Another process is changing the partitions, and is stopped.");
		return -EAGAIN;
	}
	r = merge(l, partitions, count, all, why, why_size);
	for (uint32_t i = 0; r == 0 && i < l->admission.count; i++)
		set_settings(&l->admission.parts[i], &all[i]);
	unlock_settings(&l->admission);
	if (r == 0)
		limiter_retune(l, limiter_now(l), true);
	return r;
}

void weir_partition_snapshot_init_sized(struct weir_partition_snapshot *snapshot, size_t size)
{
	memset(snapshot, 0, size);
	snapshot->size = size;
}

static uint64_t total_of(const struct weir_limiter *l, unsigned index, enum part_total which)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < l->sampling.config.stripes; k++)
		sum += atomic_load_explicit(
			&l->part_totals[k * l->admission.count + index].total[which],
			memory_order_acquire);
	return sum;
}

int weir_partition_snapshot_take(const struct weir_limiter *l, unsigned index,
				 struct weir_partition_snapshot *snapshot)
{
	struct weir_partition_snapshot s = {.size = snapshot->size};
	const struct part *part;
	uint64_t own;

	if (index >= l->admission.count)
		return -EINVAL;
	part = &l->admission.parts[index];
	s.name = l->admission.names[index];
	s.share = double_of(&part->share);
	s.guarantee = atomic_load_explicit(&part->guarantee, memory_order_relaxed);
	s.reserved = admission_reserved_for(part);
	s.delayed = atomic_load_explicit(&part->delayed, memory_order_relaxed);
	s.rejected = total_of(l, index, PART_REJECTED);
	s.shed = total_of(l, index, PART_SHED);
	s.abandoned = total_of(l, index, PART_ABANDONED);
	s.succeeded = total_of(l, index, PART_SUCCEEDED);
	s.dropped = total_of(l, index, PART_DROPPED);
	s.other = total_of(l, index, PART_OTHER);
	s.cap_share = double_of(&part->cap);
	s.max = atomic_load_explicit(&part->max, memory_order_relaxed);
	s.delay = atomic_load_explicit(&part->reject_delay, memory_order_relaxed);
	own = gate_read(&part->own);
	s.inflight = gate_inflight(own);
	s.cap = gate_limit(own);
	s.waiting = gate_waiters(own);
	s.admitted = total_of(l, index, PART_ADMITTED);
	memcpy(snapshot, &s, snapshot->size < sizeof(s) ? snapshot->size : sizeof(s));
	return 0;
}

/* Add one, unless the count has reached most. */
static bool one_more(_Atomic uint32_t *count, uint32_t most)
{
	uint32_t now = atomic_load_explicit(count, memory_order_relaxed);

	do {
		if (now >= most)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(count, &now, now + 1, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

/* Subtract one, unless the count is zero. */
static bool one_less(_Atomic uint32_t *count)
{
	uint32_t now = atomic_load_explicit(count, memory_order_relaxed);

	do {
		if (now == 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(count, &now, now - 1, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

/* Subtract less, but not below zero. */
static void take_off(_Atomic uint32_t *count, uint32_t less)
{
	uint32_t now = atomic_load_explicit(count, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(count, &now, now > less ? now - less : 0,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/*
 * In a shared limiter, the count of the process itself is the first to rise and the last to fall.
 * If it dies in between, reaping subtracts one too many: the shared counts are too low until no
 * call is delayed any more.
 */
weir_dur weir_delay_begin(struct weir_limiter *l, unsigned index)
{
	struct room *room = l->admission.room;
	struct holding *mine = l->leasing.mine;
	struct part *part;
	weir_dur delay;

	if (index >= l->admission.count || !l->serves)
		return 0;
	part = &l->admission.parts[index];
	delay = delay_of(part);
	if (delay == 0)
		return 0;
	if (mine != NULL)
		atomic_fetch_add_explicit(&mine[index].delayed, 1, memory_order_relaxed);
	if (one_more(&room->delayed, l->admission.delayed_max)) {
		atomic_fetch_add_explicit(&part->delayed, 1, memory_order_relaxed);
		return delay;
	}
	if (mine != NULL)
		(void)one_less(&mine[index].delayed);
	return 0;
}

void weir_delay_end(struct weir_limiter *l, unsigned index)
{
	struct holding *mine = l->leasing.mine;

	if (index >= l->admission.count || !l->serves)
		return;
	if (mine != NULL && atomic_load_explicit(&mine[index].delayed, memory_order_relaxed) == 0)
		return;
	/*
	 * The process's own count says that this delay is counted in both. A reaping may have taken
	 * it off one of them, for a process that died when it had counted in the other alone.
	 */
	if (one_less(&l->admission.parts[index].delayed) || mine != NULL)
		(void)one_less(&l->admission.room->delayed);
	if (mine != NULL)
		(void)one_less(&mine[index].delayed);
}

void limiter_end_delays(const struct weir_limiter *l, uint32_t index, uint32_t count)
{
	if (index >= l->admission.count)
		return;
	take_off(&l->admission.parts[index].delayed, count);
	take_off(&l->admission.room->delayed, count);
}
