/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delays of the backend's own queue, as calls report them. A stripe has their number and the lowest
 * in one word, so a window with delays has exactly their minimum. They belong to no sample, and
 * close no window.
 *
 * word   written by                          order    pairs with
 * -----  ----------------------------------  -------  ------------------
 * queue  queued: CAS; collect: exchange 0    relaxed  nothing: a number
 */
#ifndef WEIR_LIB_QUEUE_DELAY_H
#define WEIR_LIB_QUEUE_DELAY_H

#include "lib/sample/sampling.h"

/* Count a delay, for a call that is still in flight. */
void stripe_queued(struct stripe *stripe, uint64_t delay);

/*
 * Take the delays out of the stripes, and put them into *w. Mostly there are none, as few limits
 * use them.
 */
void sampler_collect_queue(const struct sampling *s, struct weir_window *w);

#endif
