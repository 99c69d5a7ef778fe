/* SPDX-License-Identifier: BSD-2-Clause */
#include "board.h"

#include <stddef.h>
#include <sys/mman.h>

struct board *board_create(void)
{
	void *at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at != MAP_FAILED ? at : NULL;
}

void board_begin(struct board *board, unsigned slot)
{
	unsigned now, most = atomic_load(&board->most);

	atomic_fetch_add(&board->slots[slot].at_work, 1);
	now = atomic_fetch_add(&board->at_work, 1) + 1;
	while (now > most && !atomic_load(&board->removing) &&
	       !atomic_compare_exchange_weak(&board->most, &most, now))
		;
}

void board_end(struct board *board, unsigned slot)
{
	atomic_fetch_sub(&board->at_work, 1);
	atomic_fetch_sub(&board->slots[slot].at_work, 1);
}

void board_clear(struct board *board, unsigned slot)
{
	atomic_fetch_sub(&board->at_work, atomic_exchange(&board->slots[slot].at_work, 0));
	atomic_store(&board->slots[slot].connections, 0);
}
