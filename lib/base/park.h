/*
 * Putting a thread to sleep, and waking it: Concurrency Kit's event count.
 *
 * The count orders no data. It only lets a thread sleep without missing a wake
 * that comes between its last look and its sleep: look at the count, look at what you wait
 * for, then sleep if the count is still the same. So it never shares a word
 * with C11 atomics, of which tools that check for races see only the latter.
 *
 * A parking place lives as long as the limiter, never on a waiter's stack: the
 * waker still touches it after the waiter may have gone.
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

void park_init(struct park *place);

/* The count now: read it before looking at what you wait for. */
uint32_t park_look(const struct park *place);

/* Sleep until woken since seen was read, or until deadline: false. May wake for no reason. */
bool park_sleep(struct park *place, uint32_t seen, weir_time deadline);

void park_wake(struct park *place);

#endif
