/* SPDX-License-Identifier: BSD-2-Clause */
/* The storage space of an etcd cluster: warnings, and compaction. */
#ifndef WEIR_FLEET_ETCD_SPACE_H
#define WEIR_FLEET_ETCD_SPACE_H

#include "fleet/store/store.h"

struct etcd_space {
	weir_dur interval;    /* of compaction; 0: disabled */
	weir_time due;        /* of the next turn */
	weir_time status_due; /* of the next status request */
	uint64_t turn;        /* how often NAME//compact has been written, as last seen */
	uint64_t revision;    /* the revision at that time; 0: there was no turn yet */
	char note[WHY_SIZE];
};

#endif
