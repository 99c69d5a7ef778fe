/*
 * Who takes which part: pure.
 */
#ifndef WEIR_FLEET_BALANCE_H
#define WEIR_FLEET_BALANCE_H

#include <weir/work.h>

/* What there is, as one member sees it. Numbers of members are above 0. */
struct balance {
	uint32_t parts;
	const uint64_t *owners;  /* of each part; 0: nobody */
	const uint64_t *wishers; /* who asks for it; 0: nobody */
	const uint64_t *members; /* all, in order, with itself */
	size_t count;
	uint64_t self;
	bool greedy;
	uint64_t chance; /* so that two do not want the same */
};

/* What it does next. */
struct moves {
	uint32_t take[WEIR_WORK_MAX], wish[WEIR_WORK_MAX], withdraw[WEIR_WORK_MAX];
	uint32_t takes, wishes, withdrawals;
};

void balance(const struct balance *balance, struct moves *moves);

/* Whether the owner, who has so many, gives up one that another asks for. */
bool balance_yields(uint32_t parts, size_t members, uint32_t owned);

/* So many more of those without owners, from anywhere on. */
void balance_wanted(const struct balance *balance, uint32_t more, struct moves *moves);

#endif
