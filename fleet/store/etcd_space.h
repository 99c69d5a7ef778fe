/* The room that an etcd cluster has: what to say about it, and compaction. */
#ifndef WEIR_FLEET_ETCD_SPACE_H
#define WEIR_FLEET_ETCD_SPACE_H

#include "fleet/store/store.h"

struct etcd_space {
	weir_dur interval; /* of compaction; 0: not here */
	weir_time due;     /* the next turn */
	weir_time look;    /* when the cluster is asked next */
	uint64_t turn;     /* how often the row of turns was written, as last seen */
	uint64_t revision; /* as it was then; 0: there was no turn yet */
	char note[WHY_SIZE];
};

#endif
