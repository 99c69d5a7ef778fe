/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries for tokens that are out. track.h has the ledger. */

#include "lib/limiter/track.h"

#include "lib/base/bitmap.h"

void track_init(const struct tracking *t)
{
	bitmap_init(t->free, t->count);
	for (uint32_t i = 0; i < t->count; i++) {
		atomic_init(&t->entries[i].start, 0);
		atomic_init(&t->entries[i].place, 0);
		atomic_init(&t->entries[i].serial, 0);
	}
}

void track_add(const struct tracking *t, struct weir_token *token, const void *place)
{
	uint32_t i = bitmap_take(t->free, t->count, token->inflight);
	struct track_entry *entry;

	if (i == NO_SLOT)
		return;
	entry = &t->entries[i];
	token->track = i + 1;
	token->serial = atomic_load_explicit(&entry->serial, memory_order_relaxed) + 1;
	atomic_store_explicit(&entry->start, token->start, memory_order_release);
	atomic_store_explicit(&entry->place, (uintptr_t)place, memory_order_release);
	atomic_store_explicit(&entry->serial, token->serial, memory_order_release);
}

bool track_remove(const struct tracking *t, const struct weir_token *token)
{
	uint32_t serial = token->serial;

	if (token->track > t->count)
		return false;
	if (!atomic_compare_exchange_strong_explicit(&t->entries[token->track - 1].serial, &serial,
						     serial + 1, memory_order_relaxed,
						     memory_order_relaxed))
		return false;
	bitmap_put(t->free, token->track - 1);
	return true;
}

bool track_read(const struct tracking *t, uint32_t i, weir_time *start, const void **place)
{
	struct track_entry *entry = &t->entries[i];
	uint32_t serial = atomic_load_explicit(&entry->serial, memory_order_acquire);

	if ((serial & 1) == 0)
		return false;
	*start = atomic_load_explicit(&entry->start, memory_order_acquire);
	*place = (const void *)atomic_load_explicit(&entry->place, memory_order_acquire);
	return atomic_load_explicit(&entry->serial, memory_order_relaxed) == serial;
}
