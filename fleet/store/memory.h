/* SPDX-License-Identifier: BSD-2-Clause */
/* The store in memory, inside: for its watches (memory_watch.c). */
#ifndef WEIR_FLEET_MEMORY_H
#define WEIR_FLEET_MEMORY_H

#include <sys/types.h>

#include "fleet/store/row_table.h"
#include "fleet/store/store.h"

struct memory {
	struct weir_store store;
	struct block *block;
	size_t size;
	weir_dur timeout;
	const struct weir_clock *clock; /* NULL: CLOCK_BOOTTIME */
	bool shared;
	char why[WHY_SIZE];

	/* If it is shared: the file, and how it is opened. */
	int fd;
	char name[WEIR_STORE_KEY_MAX + 2];
	size_t bytes;
	mode_t mode;
	bool existing;
	uint64_t seen; /* the highest version seen */
};

/* Open and map the file; forget it. */
int memory_open_file(struct memory *memory, char *why);
void memory_unmap(struct memory *memory);

/*
 * Lock the block, of the file that has the name now. *other: it is another store than before, in
 * which no member has a session. Returns 0, or -EIO and a sentence.
 */
int memory_lock(struct memory *memory, bool *other);

/* The operations of watches. */
int memory_watch_open(struct weir_store *self, const char *const *prefixes, size_t count,
		      void **watch, char *why);
int memory_watch_wait(struct weir_store *self, void *watch, weir_dur timeout,
		      struct weir_store_change *change);
void memory_watch_wake(struct weir_store *self, void *watch);
void memory_watch_close(struct weir_store *self, void *watch);

#endif
