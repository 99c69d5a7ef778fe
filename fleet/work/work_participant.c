/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work as a participant of its fleet's refreshes.
 */

#include "fleet/work/work.h"

#include <string.h>

static struct weir_work *work_of(struct participant *p)
{
	return (struct weir_work *)p;
}

static int refresh_work(struct participant *p)
{
	return work_refresh(work_of(p));
}

static void lapse_work(struct participant *p)
{
	work_lapse(work_of(p));
}

static weir_time next_of_work(const struct participant *p)
{
	return work_next((const struct weir_work *)p);
}

static void drop_work(struct participant *p)
{
	work_drop(work_of(p));
}

static void rename_work(struct participant *p)
{
	work_rename(work_of(p));
}

static void note_work(struct participant *p, int result)
{
	work_note(work_of(p), result);
}

static int leave_work(struct participant *p)
{
	return work_leave(work_of(p));
}

static void free_work(struct participant *p)
{
	work_free(work_of(p));
}

static double number(const _Atomic uint64_t *word)
{
	return (double)atomic_load_explicit(word, memory_order_relaxed);
}

static void count_work(const struct participant *p, struct participant_numbers *numbers)
{
	const struct weir_work *w = (const struct weir_work *)p;

	*numbers = (struct participant_numbers){
		.partitions = w->config.count,
		.owned = weir_work_owned(w),
		.units = (double)weir_work_units(w),
		.gained = number(&w->gained),
		.lost = number(&w->lost),
		.forced = number(&w->forced),
	};
	memcpy(numbers->name, w->name, sizeof(numbers->name));
}

const struct participant_ops work_ops = {
	.refresh = refresh_work,
	.lapse = lapse_work,
	.next = next_of_work,
	.drop = drop_work,
	.renew = rename_work,
	.note = note_work,
	.leave = leave_work,
	.free = free_work,
	.count = count_work,
};
