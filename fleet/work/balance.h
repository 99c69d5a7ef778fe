/* SPDX-License-Identifier: BSD-2-Clause */
/* Which member claims which partition: pure functions. */
#ifndef WEIR_FLEET_BALANCE_H
#define WEIR_FLEET_BALANCE_H

#include <weir/work.h>

struct balance_member {
	uint64_t id;     /* above 0 */
	uint32_t weight; /* above 0 */
};

/* The distribution, as one member sees it. */
struct balance {
	uint32_t partitions;
	const uint64_t *owners;               /* of each partition; 0: none */
	const uint64_t *requesters;           /* the member that asks for each partition; 0: none */
	const struct balance_member *members; /* all of them, sorted, including this one */
	size_t count;
	uint64_t self;
	bool greedy;
	uint64_t chance; /* random, so that members do not choose the same partition */
};

/* What the member does next. */
struct moves {
	uint32_t take[WEIR_WORK_MAX], request[WEIR_WORK_MAX], withdraw[WEIR_WORK_MAX];
	uint32_t takes, requests, withdrawals;
};

void balance(const struct balance *balance, struct moves *moves);

/* Sort members by their numbers. */
void balance_sort(struct balance_member *members, size_t count);

/* The member of that number; NULL: it is not there. */
const struct balance_member *balance_find(const struct balance_member *members, size_t count,
					  uint64_t id);

/* Whether an owner with that many releases a partition that another member asks for. */
bool balance_yields(uint32_t partitions, const struct balance_member *members, size_t count,
		    uint64_t self, uint32_t owned);

/* Claim more partitions without an owner, from a random offset on. */
void balance_wanted(const struct balance *balance, uint32_t more, struct moves *moves);

#endif
