/* SPDX-License-Identifier: BSD-2-Clause */
/* Which member claims which partition: pure functions. */
#ifndef WEIR_FLEET_BALANCE_H
#define WEIR_FLEET_BALANCE_H

#include <weir/work.h>

/* The distribution, as one member sees it. Numbers of members are above 0. */
struct balance {
	uint32_t partitions;
	const uint64_t *owners;     /* of each partition; 0: none */
	const uint64_t *requesters; /* the member that asks for each partition; 0: none */
	const uint64_t *members;    /* all members, sorted, including this one */
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

/* Whether an owner with that many releases a partition that another member asks for. */
bool balance_yields(uint32_t partitions, size_t members, uint32_t owned);

/* Claim more partitions without an owner, from a random offset on. */
void balance_wanted(const struct balance *balance, uint32_t more, struct moves *moves);

#endif
