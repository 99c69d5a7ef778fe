/* SPDX-License-Identifier: BSD-2-Clause */
#include "fleet/store/bell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t bell_look(const struct bell *b)
{
	return atomic_load_explicit(&b->rings, memory_order_relaxed);
}

/* Without FUTEX_PRIVATE_FLAG, as it is between processes. */
void bell_sleep(const struct bell *b, uint32_t seen, weir_time until)
{
	const struct timespec end = {
		.tv_sec = (time_t)(until / WEIR_S),
		.tv_nsec = (long)(until % WEIR_S),
	};

	(void)syscall(SYS_futex, &b->rings, FUTEX_WAIT_BITSET, seen, &end, NULL,
		      FUTEX_BITSET_MATCH_ANY);
}

void bell_wake(struct bell *b)
{
	const int before = errno;

	atomic_fetch_add_explicit(&b->rings, 1, memory_order_relaxed);
	(void)syscall(SYS_futex, &b->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = before;
}

void bell_note(struct bell *b, const char *key, uint64_t version)
{
	const uint64_t count = atomic_load_explicit(&b->count, memory_order_relaxed);
	struct notice *note = &b->notes[count % BELL_NOTES];

	note->version = version;
	(void)snprintf(note->key, sizeof(note->key), "%s", key);
	atomic_store_explicit(&b->count, count + 1, memory_order_release);
}

uint64_t bell_count(const struct bell *b)
{
	return atomic_load_explicit(&b->count, memory_order_acquire);
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
