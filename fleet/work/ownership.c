/*
 * Parts: what is owned, by the owner's own clock.
 *
 * A member owns a part while three things hold, and weir_work_fence() checks all of them at each
 * call: the member has read that a row NAME/part/I was made for it, its fence; its lease, until,
 * has not ended by its own clock; and neither has end, the time that it was given to finish once
 * another member was due the part. None of these checks needs an answer of the store, or a thread
 * that runs.
 *
 * Why no two members own a part at the same instant:
 *
 * - A row of a part is made by a commit that fails if there is one already. So there is one at a
 *   time, and it is bound to its owner's session.
 * - Only two things end a row: the end of its session, and a commit of its owner. No member erases
 *   the row of another, however long it has waited for it.
 * - The session ends after the owner's lease: the lease counts from before the request that renewed
 *   the session was sent, less a hundredth and 2 ms, for clocks that differ (session.c). And it is
 *   renewed only by an answer that the session was there.
 * - The owner erases a row only once it has ceased to own the part here, and by that row, whose
 *   number is gone, it never owns the part again: the commit that erases the row may arrive at any
 *   time later. So the next reading decides about a commit that was not answered, in both cases.
 * - If a commit that was not answered makes a row late, only the session that the row is bound to
 *   owns the part, once it has read the row.
 * - A store that may have forgotten rows says for how long it has not (weir_store_view.proven). As long
 *   as that is less than the longest lease and weir_fleet_config.learning, a member goes on with
 *   what it owns, and takes nothing: neither a part without a row, nor a part by a row of its own
 *   by which it does not own the part already, as that row may be one that came back. Such a store
 *   has also forgotten how long leases were. So none is longer than learning, counted from before
 *   the request by which the store was last read.
 *
 * A member that asks for a part waits. The owner bounds that wait: from the reading on by which it
 * has seen the wish, it has handover, by its own clock, and after that it no longer owns the part.
 * If it does not read, its lease ends.
 *
 * The lock owning is held while words are changed and callbacks are called, so callbacks come in
 * order. It is never held while the fleet asks the store, but a callback may ask the store. The
 * thread that watches ends what is over, and calls the callbacks, while the fleet's thread waits
 * for the store.
 */

#include "fleet/work/work.h"

#include <errno.h>

#define RELAXED memory_order_relaxed

uint64_t weir_work_fence(const struct weir_work *p, uint32_t part)
{
	weir_time until, end, now;

	if (part >= p->config.count)
		return 0;
	until = atomic_load_explicit(&p->until, memory_order_acquire);
	end = atomic_load_explicit(&p->part[part].end, memory_order_acquire);
	now = fleet_now(p->fleet);
	if (until == 0 || now >= until || now >= end)
		return 0;
	return atomic_load_explicit(&p->part[part].fence, RELAXED);
}

uint32_t weir_work_owned(const struct weir_work *p)
{
	uint32_t owned = 0;

	for (uint32_t i = 0; i < p->config.count; i++)
		owned += weir_work_fence(p, i) != 0;
	return owned;
}

int weir_work_release(struct weir_work *p, uint32_t part, uint64_t fence)
{
	if (fence == 0 || weir_work_fence(p, part) != fence)
		return -ESTALE;
	atomic_store_explicit(&p->part[part].leave, fence, RELAXED);
	return 0;
}

/* The watcher is to look sooner. */
static void hasten(struct weir_fleet *f, weir_time next)
{
	if (next < f->watch_next)
		pthread_cond_signal(&f->sooner_over);
}

/* From here on to part_lose() and the like: owning is held. */
static void set_until(struct weir_work *p, weir_time until)
{
	atomic_store_explicit(&p->until, until, memory_order_release);
}

static void set_end(struct part *part, weir_time end)
{
	atomic_store_explicit(&part->end, end, memory_order_release);
}

static void lose(struct weir_work *p, uint32_t i, bool forced)
{
	struct part *part = &p->part[i];
	const uint64_t fence = atomic_load_explicit(&part->fence, RELAXED);

	if (fence == 0)
		return;
	atomic_store_explicit(&part->fence, 0, RELAXED);
	atomic_store_explicit(&part->leave, 0, RELAXED);
	set_end(part, WEIR_FOREVER);
	part->told = 0;
	if (p->config.on_lost != NULL)
		p->config.on_lost(p->config.arg, i, fence, forced);
}

static void give_up(struct weir_work *p, uint32_t i, bool forced)
{
	struct part *part = &p->part[i];

	part->gone = atomic_load_explicit(&part->fence, RELAXED);
	lose(p, i, forced);
}

static void lose_all(struct weir_work *p)
{
	set_until(p, 0);
	for (uint32_t i = 0; i < p->config.count; i++)
		lose(p, i, true);
}

static weir_time end_of(const struct part *part)
{
	return atomic_load_explicit(&part->end, RELAXED);
}

void parts_lapse(struct weir_work *p)
{
	const weir_time now = fleet_now(p->fleet);
	const weir_time until = atomic_load_explicit(&p->until, RELAXED);

	if (until != 0 && now >= until)
		lose_all(p);
	for (uint32_t i = 0; i < p->config.count; i++) {
		if (now < end_of(&p->part[i]))
			continue;
		give_up(p, i, true);
		p->participant.hasty = true;
	}
}

weir_time parts_next(const struct weir_work *p)
{
	const weir_time until = atomic_load_explicit(&p->until, RELAXED);
	weir_time next = until != 0 ? until : WEIR_FOREVER;

	for (uint32_t i = 0; i < p->config.count; i++)
		if (end_of(&p->part[i]) < next)
			next = end_of(&p->part[i]);
	return next;
}

void part_lose(struct weir_work *p, uint32_t i, bool forced)
{
	pthread_mutex_lock(&p->fleet->owning);
	lose(p, i, forced);
	pthread_mutex_unlock(&p->fleet->owning);
}

void part_give_up(struct weir_work *p, uint32_t i, bool forced)
{
	pthread_mutex_lock(&p->fleet->owning);
	if (atomic_load_explicit(&p->part[i].fence, RELAXED) != 0)
		give_up(p, i, forced);
	pthread_mutex_unlock(&p->fleet->owning);
}

void parts_drop(struct weir_work *p)
{
	pthread_mutex_lock(&p->fleet->owning);
	lose_all(p);
	pthread_mutex_unlock(&p->fleet->owning);
}

void parts_keep(struct weir_work *p)
{
	const weir_time until = p->fleet->deadline < p->latest ? p->fleet->deadline : p->latest;

	pthread_mutex_lock(&p->fleet->owning);
	set_until(p, until);
	hasten(p->fleet, until);
	pthread_mutex_unlock(&p->fleet->owning);
}

/*
 * A part whose time ended while the store was asked is not gained: the next reading shows its
 * owner.
 */
void part_gain(struct weir_work *p, uint32_t i, uint64_t fence)
{
	struct part *part = &p->part[i];
	weir_time until;

	pthread_mutex_lock(&p->fleet->owning);
	until = atomic_load_explicit(&p->until, RELAXED);
	if (until != 0 && fleet_now(p->fleet) < until) {
		atomic_store_explicit(&part->fence, fence, RELAXED);
		if (p->config.on_gain != NULL)
			p->config.on_gain(p->config.arg, i, fence);
	}
	pthread_mutex_unlock(&p->fleet->owning);
}

void part_tell_wish(struct weir_work *p, uint32_t i)
{
	struct part *part = &p->part[i];
	const weir_time now = fleet_now(p->fleet);
	uint64_t fence;

	pthread_mutex_lock(&p->fleet->owning);
	fence = atomic_load_explicit(&part->fence, RELAXED);
	if (fence != 0 && part->told != fence) {
		part->told = fence;
		set_end(part, p->config.handover < WEIR_FOREVER - now ? now + p->config.handover
								      : WEIR_FOREVER);
		hasten(p->fleet, end_of(part));
		p->config.on_wish(p->config.arg, i, fence);
	}
	pthread_mutex_unlock(&p->fleet->owning);
}

void part_forget_wish(struct weir_work *p, uint32_t i)
{
	struct part *part = &p->part[i];

	pthread_mutex_lock(&p->fleet->owning);
	if (part->told != 0 && fleet_now(p->fleet) < end_of(part)) {
		part->told = 0;
		set_end(part, WEIR_FOREVER);
	}
	pthread_mutex_unlock(&p->fleet->owning);
}
