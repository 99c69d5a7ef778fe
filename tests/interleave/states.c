/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open addressing in memory from the kernel: the explored code's allocator is another one.
 */

#include "tests/interleave/states.h"

#include <err.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INITIAL (UINT64_C(1) << 16)

static uint64_t *table;
static uint64_t room, count;

static uint64_t *table_new(uint64_t size)
{
	/* Not by mmap() and munmap(), which here are the explored code's. */
	const long memory = syscall(SYS_mmap, NULL, size * sizeof(uint64_t), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == -1)
		err(2, "no memory for the states");
	return (uint64_t *)memory;
}

/* digest is not 0, which marks a free place. */
static bool insert(uint64_t digest)
{
	uint64_t i = digest & (room - 1);

	for (; table[i] != 0; i = (i + 1) & (room - 1))
		if (table[i] == digest)
			return false;
	table[i] = digest;
	count++;
	return true;
}

static void grow(void)
{
	uint64_t *old = table;
	const uint64_t before = room;

	room = room > 0 ? room * 2 : INITIAL;
	table = table_new(room);
	count = 0;
	for (uint64_t i = 0; i < before; i++)
		if (old[i] != 0)
			insert(old[i]);
	if (old != NULL)
		syscall(SYS_munmap, old, before * sizeof(uint64_t));
}

bool states_add(uint64_t digest)
{
	if (count * 2 >= room)
		grow();
	return insert(digest != 0 ? digest : 1);
}

uint64_t states_count(void)
{
	return count;
}

void states_reset(void)
{
	if (table != NULL)
		syscall(SYS_munmap, table, room * sizeof(uint64_t));
	table = NULL;
	room = count = 0;
}
