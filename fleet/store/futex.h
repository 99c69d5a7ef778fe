/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping on a word of memory that processes share. The explorer of interleavings has these two in
 * its own way.
 */
#ifndef WEIR_FLEET_FUTEX_H
#define WEIR_FLEET_FUTEX_H

#include <stdint.h>

#include <weir/base.h>

/*
 * Sleep as long as the word is as it was seen, until it is woken, at most until that time of
 * CLOCK_MONOTONIC. It may end early.
 */
void futex_sleep(const _Atomic uint32_t *word, uint32_t seen, weir_time until);

/* Wake all that sleep on the word. Keeps errno. */
void futex_wake(_Atomic uint32_t *word);

#endif
