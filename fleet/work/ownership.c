/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ownership of partitions, by the owner's own clock.
 *
 * A member owns a partition while three conditions hold, and weir_work_fence() checks all of them
 * at each call: the member has read that a row NAME/partition/I was created for it, its fence; its
 * lease, until, has not ended by its own clock; and neither has end, the time that it was given to
 * finish after another member asked for the partition. None of these checks needs an answer of the
 * store, or a running thread.
 *
 * Why no two members own a partition at the same instant:
 *
 * - The row of a partition is created by a commit that fails if there is one already. So there is
 *   one at a time, and it is bound to its owner's session.
 * - Only two events end a row: the end of its session, and a commit of its owner. No member erases
 *   the row of another, however long it has waited.
 * - The session ends after the owner's lease: the lease counts from before the request that renewed
 *   the session was sent, less a hundredth and 2 ms, for clocks that differ (session.c). And it is
 *   renewed only by an answer that the session was alive.
 * - The owner erases a row only after it has stopped owning the partition locally, and it never
 *   owns the partition again by that row, whose number it remembers, also if it did not own the
 *   partition by it: the commit that erases the row may arrive at any later time. So the next
 *   reading decides about a commit that was not answered, in both cases.
 * - If a commit that was not answered creates a row late, only the session that the row is bound to
 *   owns the partition, once it has read the row.
 * - A store that may have forgotten rows reports for how long it has not (weir_store_view.proven).
 *   As long as that is less than the longest lease and weir_fleet_config.learning, a member keeps
 *   what it owns, and claims nothing: neither a partition without a row, nor a partition by a row
 *   of its own by which it does not own the partition already, as that row may be one that came
 *   back. Such a store has also forgotten how long leases were. So none is longer than learning,
 *   counted from before the request by which the store was last read.
 *
 * A row may be gone all the same, if a store has ended a session too early. A checkpoint detects
 * that, often before the next reading. From then on the member does not own the partition by the
 * number of that row. The same goes for an owner whose checkpoint was set back (work_rewind.c),
 * which then erases the row.
 *
 * A member that asks for a partition waits. The owner bounds that wait: from the reading that shows
 * it the request, it has handover, by its own clock, and after that it no longer owns the partition.
 * If it does not read, its lease ends.
 *
 * The lock owning is held while words are changed and callbacks are called, so callbacks come in
 * order. It is never held while the fleet sends a request to the store, but a callback may send
 * one. The watcher thread ends ownerships when their time is over, and calls the callbacks, while
 * the fleet's thread waits for the store.
 */

#include "fleet/work/work.h"

#include <errno.h>

#define RELAXED memory_order_relaxed

uint64_t weir_work_fence(const struct weir_work *w, uint32_t partition)
{
	weir_time until, end, now;
	uint64_t fence;

	if (partition >= w->slots)
		return 0;
	until = atomic_load_explicit(&w->until, memory_order_acquire);
	end = atomic_load_explicit(&w->partitions[partition].end, memory_order_acquire);
	now = fleet_now(w->fleet);
	if (until == 0 || now >= until || now >= end)
		return 0;
	fence = atomic_load_explicit(&w->partitions[partition].fence, memory_order_acquire);
	return fence != atomic_load_explicit(&w->partitions[partition].refused, RELAXED) ? fence
											 : 0;
}

uint32_t weir_work_owned(const struct weir_work *w)
{
	uint32_t owned = 0;

	for (uint32_t i = 0; i < work_used(w); i++)
		owned += weir_work_fence(w, i) != 0;
	return owned;
}

int weir_work_release(struct weir_work *w, uint32_t partition, uint64_t fence)
{
	if (fence == 0 || weir_work_fence(w, partition) != fence)
		return -ESTALE;
	atomic_store_explicit(&w->partitions[partition].leave, fence, RELAXED);
	atomic_store_explicit(&w->participant.hurry, true, RELAXED);
	fleet_ring(w->fleet);
	return 0;
}

/* Wake the watcher if next is before its next check. */
static void wake_watcher(struct weir_fleet *f, weir_time next)
{
	if (next < f->watch_next)
		pthread_cond_signal(&f->sooner_over);
}

/* The lock owning is held from here to next_of(). */
static void set_until(struct weir_work *w, weir_time until)
{
	atomic_store_explicit(&w->until, until, memory_order_release);
}

static void set_end(struct partition *partition, weir_time end)
{
	atomic_store_explicit(&partition->end, end, memory_order_release);
}

static void set_released(struct partition *partition, uint64_t fence)
{
	atomic_store_explicit(&partition->released_fence, fence, RELAXED);
}

static void lose(struct weir_work *w, uint32_t i, bool forced)
{
	struct partition *partition = &w->partitions[i];
	const uint64_t fence = atomic_load_explicit(&partition->fence, RELAXED);

	if (fence == 0)
		return;
	atomic_store_explicit(&partition->fence, 0, RELAXED);
	atomic_store_explicit(&partition->leave, 0, RELAXED);
	set_end(partition, WEIR_FOREVER);
	partition->notified_fence = 0;
	atomic_fetch_add_explicit(&w->lost, 1, RELAXED);
	atomic_fetch_add_explicit(&w->forced, forced, RELAXED);
	if (w->config.on_lost != NULL)
		w->config.on_lost(w->config.arg, i, fence, forced);
}

static void give_up(struct weir_work *w, uint32_t i, bool forced)
{
	struct partition *partition = &w->partitions[i];

	set_released(partition, atomic_load_explicit(&partition->fence, RELAXED));
	lose(w, i, forced);
}

static void lose_all(struct weir_work *w)
{
	set_until(w, 0);
	for (uint32_t i = 0; i < work_used(w); i++)
		lose(w, i, true);
}

/* owning is held. */
static void report_units(struct weir_work *w)
{
	const uint64_t units = weir_work_units(w);

	if (units == w->reported)
		return;
	w->reported = units;
	if (w->config.on_units != NULL)
		w->config.on_units(w->config.arg, units);
}

void work_report_units(struct weir_work *w)
{
	pthread_mutex_lock(&w->fleet->owning);
	report_units(w);
	pthread_mutex_unlock(&w->fleet->owning);
}

void work_note(struct weir_work *w, int result)
{
	const int failure = result == 0 && w->contended ? -EAGAIN : result;

	pthread_mutex_lock(&w->fleet->owning);
	if (failure != w->failure && w->config.on_failure != NULL)
		w->config.on_failure(w->config.arg, failure);
	w->failure = failure;
	pthread_mutex_unlock(&w->fleet->owning);
}

static bool is_refused(const struct partition *partition)
{
	const uint64_t fence = atomic_load_explicit(&partition->fence, RELAXED);

	return fence != 0 && fence == atomic_load_explicit(&partition->refused, RELAXED);
}

static weir_time end_of(const struct partition *partition)
{
	return atomic_load_explicit(&partition->end, RELAXED);
}

void work_lapse(struct weir_work *w)
{
	const weir_time now = fleet_now(w->fleet);
	const weir_time until = atomic_load_explicit(&w->until, RELAXED);

	if (until != 0 && now >= until)
		lose_all(w);
	for (uint32_t i = 0; i < work_used(w); i++) {
		if (is_refused(&w->partitions[i]))
			lose(w, i, true);
		if (now < end_of(&w->partitions[i]))
			continue;
		give_up(w, i, true);
		w->participant.erase_due = true;
	}
	report_units(w);
}

weir_time work_next(const struct weir_work *w)
{
	const weir_time until = atomic_load_explicit(&w->until, RELAXED);
	weir_time next = until != 0 ? until : WEIR_FOREVER;

	for (uint32_t i = 0; i < work_used(w); i++)
		if (end_of(&w->partitions[i]) < next)
			next = end_of(&w->partitions[i]);
	return next;
}

void partition_lose(struct weir_work *w, uint32_t i, bool forced)
{
	pthread_mutex_lock(&w->fleet->owning);
	lose(w, i, forced);
	pthread_mutex_unlock(&w->fleet->owning);
}

/* A row that is its own counts as given up also if the member has not owned the partition by it. */
void partition_give_up(struct weir_work *w, uint32_t i, bool forced)
{
	struct partition *partition = &w->partitions[i];

	pthread_mutex_lock(&w->fleet->owning);
	if (atomic_load_explicit(&partition->fence, RELAXED) != 0)
		give_up(w, i, forced);
	else if (partition->owner == w->id)
		set_released(partition, partition->made);
	pthread_mutex_unlock(&w->fleet->owning);
}

void work_drop(struct weir_work *w)
{
	pthread_mutex_lock(&w->fleet->owning);
	lose_all(w);
	report_units(w);
	pthread_mutex_unlock(&w->fleet->owning);
}

void work_keep(struct weir_work *w)
{
	const weir_time until = w->fleet->deadline < w->latest ? w->fleet->deadline : w->latest;

	pthread_mutex_lock(&w->fleet->owning);
	set_until(w, until);
	wake_watcher(w->fleet, until);
	pthread_mutex_unlock(&w->fleet->owning);
}

/* Whether the fence is of no use any more. The watcher may have released it a moment ago. */
static bool is_over(const struct partition *partition, uint64_t fence)
{
	return fence == atomic_load_explicit(&partition->refused, RELAXED) ||
	       fence == atomic_load_explicit(&partition->released_fence, RELAXED);
}

/*
 * A partition whose lease ended during the commit is not gained: the next reading shows its owner.
 * Nor is one whose fence has become void since the row was read, or was released.
 */
void partition_gain(struct weir_work *w, uint32_t i, uint64_t fence, uint64_t units)
{
	struct partition *partition = &w->partitions[i];
	weir_time until;

	pthread_mutex_lock(&w->fleet->owning);
	until = atomic_load_explicit(&w->until, RELAXED);
	if (until != 0 && fleet_now(w->fleet) < until && !is_over(partition, fence)) {
		atomic_fetch_add_explicit(&w->gained, 1, RELAXED);
		atomic_store_explicit(&partition->units, units, RELAXED);
		atomic_store_explicit(&partition->fence, fence, memory_order_release);
		if (partition->held_fence != fence)
			partition->held_since = fleet_now(w->fleet);
		partition->held_fence = fence;
		if (w->config.on_gain != NULL)
			w->config.on_gain(w->config.arg, i, fence);
	}
	pthread_mutex_unlock(&w->fleet->owning);
}

void partition_notify_request(struct weir_work *w, uint32_t i)
{
	struct partition *partition = &w->partitions[i];
	const weir_time now = fleet_now(w->fleet);
	uint64_t fence;

	pthread_mutex_lock(&w->fleet->owning);
	fence = atomic_load_explicit(&partition->fence, RELAXED);
	if (fence != 0 && partition->notified_fence != fence) {
		partition->notified_fence = fence;
		set_end(partition, w->config.handover < WEIR_FOREVER - now
					   ? now + w->config.handover
					   : WEIR_FOREVER);
		wake_watcher(w->fleet, end_of(partition));
		w->config.on_request(w->config.arg, i, fence);
	}
	pthread_mutex_unlock(&w->fleet->owning);
}

void partition_forget_request(struct weir_work *w, uint32_t i)
{
	struct partition *partition = &w->partitions[i];

	pthread_mutex_lock(&w->fleet->owning);
	if (partition->notified_fence != 0 && fleet_now(w->fleet) < end_of(partition)) {
		partition->notified_fence = 0;
		set_end(partition, WEIR_FOREVER);
	}
	pthread_mutex_unlock(&w->fleet->owning);
}

/*
 * The fence is void at once. One of an earlier ownership is not marked: it would replace the mark
 * of the present one. on_lost() is called by the watcher thread or, if owning is held now, by the
 * next refresh: a callback, which owning is held for, may be what wrote the checkpoint.
 */
void partition_refuse(struct weir_work *w, uint32_t i, uint64_t fence)
{
	struct weir_fleet *f = w->fleet;

	if (fence != atomic_load_explicit(&w->partitions[i].fence, RELAXED))
		return;
	atomic_store_explicit(&w->partitions[i].refused, fence, RELAXED);
	if (pthread_mutex_trylock(&f->owning) != 0)
		return;
	pthread_cond_signal(&f->sooner_over);
	pthread_mutex_unlock(&f->owning);
}
