/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is configured with another limit than the store has. What the store has counts, as
 * all members must agree; but one of the two was not meant.
 */
#ifndef WEIR_FLEET_MISMATCH_H
#define WEIR_FLEET_MISMATCH_H

#include "fleet/protocol/ledger.h"

#define MISMATCH_SIZE sizeof(((struct weir_share_info *)NULL)->mismatch)

/*
 * Write a sentence about how a process is configured, where the limit differs; "" if it does not. A
 * configuration without a capacity takes the limit as it is, and never differs.
 */
void mismatch_print(const struct limit_record *own, const struct limit_record *limit,
		    char text[MISMATCH_SIZE]);

#endif
