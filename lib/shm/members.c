/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions for the members of a shared limiter, and about them: reaping, listening, visits, info.
 */

#include "lib/shm/shm.h"

#include <errno.h>
#include <string.h>

/* Returns 0 if the handle is a member of a shared limiter, else the reason as a negative errno. */
static int check_member(const struct weir_limiter *l)
{
	if (!l->serves)
		return limiter_denial(l);
	return l->leasing.mine != NULL ? 0 : -ENOTSUP;
}

static int reap_into(struct weir_limiter *l, weir_time now, uint32_t evicted,
		     struct weir_shm_reaped *reaped)
{
	struct weir_shm_reaped unused;

	return reap(l, now, evicted, reaped != NULL ? reaped : &unused);
}

int weir_shm_reap_at(struct weir_limiter *l, weir_time now, struct weir_shm_reaped *reaped)
{
	const int r = check_member(l);

	return r != 0 ? r : reap_into(l, now, 0, reaped);
}

int weir_shm_reap(struct weir_limiter *l, struct weir_shm_reaped *reaped)
{
	return weir_shm_reap_at(l, weir_now(), reaped);
}

static uint64_t identity_of(const struct weir_limiter *l, uint32_t number)
{
	return atomic_load_explicit(&l->leasing.leases[number - 1].identity, memory_order_relaxed);
}

int weir_shm_evict(struct weir_limiter *l, uint32_t number, struct weir_shm_reaped *reaped)
{
	const int r = check_member(l);

	if (r != 0)
		return r;
	if (number == 0 || number > l->leasing.count || number == l->leasing.number ||
	    identity_of(l, number) == 0)
		return -EINVAL;
	return reap_into(l, weir_now(), number, reaped);
}

int weir_shm_listen(struct weir_limiter *l, weir_time deadline)
{
	const int r = check_member(l);
	struct park *bell;
	uint32_t seen;

	if (r != 0)
		return r;
	bell = &l->leasing.leases[l->leasing.number - 1].bell;
	do {
		seen = park_look(bell);
		if (queue_notify(&l->queueing))
			return 0;
	} while (deadline > weir_now() && park_sleep(bell, seen, deadline));
	return queue_notify(&l->queueing) ? 0 : -ETIMEDOUT;
}

static enum weir_shm_life life_of(uint64_t identity, uint64_t self)
{
	switch (lease_fate(identity, self)) {
	case DEAD:
		return WEIR_SHM_DEAD;
	case FOREIGN:
		return WEIR_SHM_FOREIGN;
	case ALIVE:
		break;
	}
	return WEIR_SHM_ALIVE;
}

static struct weir_shm_member member_of(const struct weir_limiter *l, uint32_t number,
					uint64_t identity)
{
	const struct holding *holdings = lease_holdings(&l->leasing, number);
	struct weir_shm_member member = {
		.number = number,
		.pid = lease_pid(identity),
		.life = life_of(identity, l->leasing.self),
		.detached = lease_detached(&l->leasing.leases[number - 1]),
	};

	for (uint32_t i = 0; i < l->queueing.config.rows; i++) {
		const uint64_t held = atomic_load_explicit(&holdings[i].held, memory_order_relaxed);

		member.permits += held_permits(held);
		member.calls += held_calls(held);
	}
	return member;
}

size_t weir_shm_visit(const struct weir_limiter *l,
		      bool (*visit)(void *arg, const struct weir_shm_member *member), void *arg)
{
	size_t visited = 0;

	for (uint32_t number = 1; number <= l->leasing.count; number++) {
		const uint64_t identity = identity_of(l, number);
		struct weir_shm_member member;

		if (identity == 0)
			continue;
		member = member_of(l, number, identity);
		visited++;
		if (!visit(arg, &member))
			break;
	}
	return visited;
}

void weir_shm_info_init_sized(struct weir_shm_info *info, size_t size)
{
	memset(info, 0, size);
	info->size = size;
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

int weir_shm_info_take(const struct weir_limiter *l, struct weir_shm_info *info)
{
	const struct leasing *leasing = &l->leasing;
	struct weir_shm_info now;

	if (l->ops == NULL)
		return -ESTALE;
	if (leasing->leases == NULL)
		return -ENOTSUP;
	now = (struct weir_shm_info){
		.size = info->size,
		.settable = (leasing->flags & WEIR_LIMIT_SETTABLE) != 0,
		.members = leasing->count,
		.number = leasing->number,
		.limit_min = l->limit_min,
		.limit_max = l->limit_max,
		.queue = l->queueing.config.slots,
		.bytes = leasing->block_size,
		.deaths = read_counter(&leasing->audit->deaths),
		.reaped = read_counter(&leasing->audit->reaped),
		.found = read_counter(&leasing->audit->found),
		.overdrawn = read_counter(&leasing->audit->overdrawn),
		.order = l->queueing.config.order,
		.shed = l->shedding.parts > 0,
		.burst = l->runtime->burst.permits,
		.parts = l->admission.count > 0 ? l->admission.count - 1 : 0,
		.window_min = l->sampling.config.window_min,
		.window_max = l->sampling.config.window_max,
	};
	memcpy(now.limit, leasing->limit, sizeof(now.limit));
	for (uint32_t number = 1; number <= leasing->count; number++)
		now.attached += identity_of(l, number) != 0;
	memcpy(info, &now, info->size < sizeof(now) ? info->size : sizeof(now));
	return 0;
}
