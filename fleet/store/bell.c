/* SPDX-License-Identifier: BSD-2-Clause */
#include "fleet/store/bell.h"

#include <stdio.h>

#include "fleet/store/futex.h"

uint32_t bell_look(const struct bell *b)
{
	return atomic_load_explicit(&b->rings, memory_order_relaxed);
}

void bell_sleep(const struct bell *b, uint32_t seen, weir_time until)
{
	futex_sleep(&b->rings, seen, until);
}

void bell_wake(struct bell *b)
{
	atomic_fetch_add_explicit(&b->rings, 1, memory_order_relaxed);
	futex_wake(&b->rings);
}

uint64_t bell_count(const struct bell *b)
{
	return atomic_load_explicit(&b->count, memory_order_acquire);
}

void bell_note(struct bell *b, const char *key, uint64_t version)
{
	const uint64_t count = bell_count(b);
	struct notice *note = &b->notes[count % BELL_NOTES];

	note->version = version;
	(void)snprintf(note->key, sizeof(note->key), "%s", key);
	atomic_store_explicit(&b->count, count + 1, memory_order_release);
}

/* A copy, as another process may change it at any time, that ends at its end. */
static void list_note(const struct bell *b, uint64_t index, const struct watched *watched,
		      struct notices *notices)
{
	struct notice note = b->notes[index % BELL_NOTES];

	note.key[WEIR_STORE_KEY_MAX] = '\0';
	if (note.key[0] == '\0')
		notices_any(notices);
	else if (watched_has(watched, note.key))
		notices_add(notices, note.key, note.version);
}

void bell_list(const struct bell *b, uint64_t from, const struct watched *watched,
	       struct notices *notices)
{
	const uint64_t count = bell_count(b);

	/* The oldest one may have been overwritten by a process that died then. */
	if (count - from >= BELL_NOTES)
		notices_any(notices);
	else
		for (uint64_t i = from; i != count; i++)
			list_note(b, i, watched, notices);
}
