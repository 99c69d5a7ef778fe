/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why nothing is granted, as far as the rows of a limit show it.
 */
#ifndef WEIR_FLEET_REASON_H
#define WEIR_FLEET_REASON_H

#include "fleet/protocol/plan.h"

#define REASON_SIZE sizeof(((struct weir_fleet_limit *)NULL)->reason)

/* How long old leases may still last that the store may have forgotten; 0: it knows all of them. */
weir_dur view_learning(const struct limit_view *view);

/*
 * Write a sentence: why a member holds nothing of what is shared, or why no member does; "" if it,
 * or one, holds some. The view must be sorted.
 */
void reason_of_member(const struct limit_view *view, const struct seen_member *member,
		      char text[REASON_SIZE]);
void reason_of_limit(const struct limit_view *view, char text[REASON_SIZE]);

#endif
