/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts threads to sleep and wakes them, with Concurrency Kit's event count.
 *
 * The count orders no data. It only lets a thread sleep without missing a wake-up between its last
 * check and its sleep: read the count, check the condition, then sleep if the count is still the
 * same. So it shares no word with C11 atomics, which are the only ones that race checkers see.
 *
 * A park lives as long as the limiter, never on a waiter's stack, because the waking thread may
 * still touch it after the waiter has gone.
 */
#ifndef WEIR_LIB_PARK_H
#define WEIR_LIB_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/base.h>

/* A ck_ec32_t, whose type stays in park.c. */
struct park {
	_Alignas(8) unsigned char count[8];
};

void park_init(struct park *park);

/* The present count: read it before checking the condition. */
uint32_t park_look(const struct park *park);

/* Sleep until woken after seen was read. False: the deadline passed. Wake-ups may be spurious. */
bool park_sleep(struct park *park, uint32_t seen, weir_time deadline);

void park_wake(struct park *park);

#endif
