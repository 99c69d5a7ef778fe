/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_balance [KIND]: the division of partitions by itself, against what is published about other
 * balancers, each case by its number; and the same cases as a member finds them in a store, which
 * is in memory or of that kind.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/work.h>

#include "fleet/work/balance.h"
#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)

/* How many each owns; 0: of owners that are not present. me: the one that decides, once. */
struct rule {
	const char *id;
	uint32_t has[9];
	size_t members;
	uint32_t unowned;
	size_t me;
	bool balanced;
	uint32_t takes, requests; /* expected */
	size_t from;              /* the owner that is asked */
	uint32_t weights[9];      /* 0: 1 */
};

static const struct rule rules[] = {
	{"EG1", {2, 0}, 2, 2, 1, false, 2, 0, 0, {0}},
	{"EG2", {2, 0}, 2, 2, 1, true, 1, 0, 0, {0}},
	{"EG2 second", {2, 1}, 2, 1, 1, true, 1, 0, 0, {0}},
	{"EG3", {5, 0}, 2, 0, 1, false, 0, 2, 0, {0}},
	{"EG4 greedy", {2, 2}, 2, 1, 1, false, 1, 0, 0, {0}},
	{"EG4 balanced", {2, 2}, 2, 1, 1, true, 1, 0, 0, {0}},
	{"EG5", {3, 2}, 2, 0, 1, false, 0, 0, 0, {0}},
	{"EG5 other", {3, 2}, 2, 0, 0, false, 0, 0, 0, {0}},
	{"EG5b", {2, 2}, 2, 0, 0, false, 0, 0, 0, {0}},
	{"EG6", {2, 2}, 2, 1, 1, false, 1, 0, 0, {0}},
	{"EG7 lots", {3, 1}, 2, 0, 0, false, 0, 0, 0, {0}},
	{"EG7 little", {3, 1}, 2, 0, 1, false, 0, 1, 0, {0}},
	{"EG9", {0}, 1, 3, 0, false, 3, 0, 0, {0}},
	{"EG10", {1, 1}, 2, 1, 1, false, 1, 0, 0, {0}},
	{"EG10 over", {2, 1}, 2, 0, 0, false, 0, 0, 0, {0}},
	{"EN1", {0}, 1, 3, 0, false, 3, 0, 0, {0}},
	{"EN2", {3}, 1, 0, 0, false, 0, 0, 0, {0}},
	{"EN3", {4, 4, 0}, 3, 4, 2, false, 4, 0, 0, {0}},
	{"EN3 balanced", {4, 4, 0}, 3, 4, 2, true, 1, 0, 0, {0}},
	{"EN3 last", {4, 4, 3}, 3, 1, 2, true, 1, 0, 0, {0}},
	{"EN3 over", {4, 4, 4}, 3, 0, 2, true, 0, 0, 0, {0}},
	{"EN4", {4, 4, 4}, 3, 1, 2, true, 1, 0, 0, {0}},
	{"EN4 over", {4, 4, 5}, 3, 0, 2, true, 0, 0, 0, {0}},
	{"EN5", {4, 4, 4}, 3, 1, 0, false, 1, 0, 0, {0}},
	{"EN6", {4, 4, 6}, 3, 0, 0, true, 0, 1, 2, {0}},
	{"EN7", {3, 4, 5}, 3, 0, 0, true, 0, 1, 2, {0}},
	{"EN8", {9}, 1, 0, 0, false, 0, 0, 0, {0}},
	{"EN9", {1, 1, 1, 1, 0}, 5, 0, 4, false, 0, 0, 0, {0}},
	{"EN10 a", {2, 2, 2}, 3, 0, 0, false, 0, 0, 0, {0}},
	{"EN10 b", {2, 2, 3}, 3, 0, 0, false, 0, 0, 0, {0}},
	{"EN10 c", {10, 10, 11}, 3, 0, 1, false, 0, 0, 0, {0}},
	{"EJ1", {0}, 1, 3, 0, true, 1, 0, 0, {0}},
	{"EJ1 second", {1}, 1, 2, 0, true, 1, 0, 0, {0}},
	{"EJ1 third", {2}, 1, 1, 0, true, 1, 0, 0, {0}},
	{"EJ2 first", {0, 0}, 2, 3, 0, true, 1, 0, 0, {0}},
	{"EJ2 third", {1, 1}, 2, 1, 1, true, 1, 0, 0, {0}},
	{"EJ3", {3, 0}, 2, 0, 1, true, 0, 1, 0, {0}},
	{"EJ4", {1, 1, 1, 0}, 4, 0, 3, true, 0, 0, 0, {0}},
	{"stuck elsewhere", {4, 4, 2}, 3, 0, 2, true, 0, 1, 0, {0}},
	{"stuck elsewhere too", {3, 3, 1}, 3, 0, 2, false, 0, 1, 0, {0}},
	{"twice as many", {0, 0}, 2, 12, 0, false, 8, 0, 0, {2, 1}},
	{"half as many", {0, 0}, 2, 12, 1, false, 4, 0, 0, {2, 1}},
	{"a heavy newcomer", {12, 0}, 2, 0, 1, false, 0, 8, 0, {1, 2}},
	{"a light newcomer", {10, 0}, 2, 0, 1, false, 0, 2, 0, {4, 1}},
	{"as is due", {8, 4}, 2, 0, 1, false, 0, 0, 0, {2, 1}},
	{"due to the light one", {9, 3}, 2, 0, 1, false, 0, 1, 0, {2, 1}},
	{"due to the heavy one", {7, 5}, 2, 0, 0, false, 0, 1, 1, {2, 1}},
	{"rounded up for either", {3, 7}, 2, 1, 0, false, 1, 0, 0, {1, 2}},
	{"too light for any", {5, 5, 0}, 3, 0, 2, false, 0, 0, 0, {10, 10, 1}},
};

static uint32_t weight_of(const struct rule *r, size_t member)
{
	return r->weights[member] > 0 ? r->weights[member] : 1;
}

static void check_rule(const struct rule *r)
{
	uint64_t owners[64] = {0}, requesters[64] = {0};
	struct balance_member members[9];
	struct moves moves;
	struct balance b = {
		.owners = owners,
		.requesters = requesters,
		.members = members,
		.count = r->members,
		.self = r->me + 1,
		.greedy = !r->balanced,
		.chance = 12345,
	};

	for (size_t i = 0; i < r->members; i++) {
		members[i] = (struct balance_member){i + 1, weight_of(r, i)};
		for (uint32_t j = 0; j < r->has[i]; j++)
			owners[b.partitions++] = i + 1;
	}
	b.partitions += r->unowned;
	balance(&b, &moves);
	if (moves.takes != r->takes || moves.requests != r->requests || moves.withdrawals != 0) {
		fprintf(stderr, "%s: takes %u, asks for %u\n", r->id, moves.takes, moves.requests);
		abort();
	}
	for (uint32_t i = 0; i < moves.takes; i++)
		CHECK(owners[moves.take[i]] == 0);
	for (uint32_t i = 0; i < moves.requests; i++)
		CHECK(owners[moves.request[i]] == r->from + 1);
}

/*
 * From any beginning, with all deciding one after the other until none does anything: the result is
 * even, and no more has moved than necessary.
 */
static void any_beginning(uint64_t *state)
{
	uint64_t owners[40] = {0}, requesters[40] = {0};
	struct balance_member members[9];
	const uint32_t partitions = 1 + (uint32_t)(draw(state) % 40);
	const size_t count = 1 + draw(state) % 9;
	uint32_t before[9] = {0}, after[9] = {0}, moved = 0, needed = 0, weights = 0;
	const bool greedy = draw(state) % 2 == 0, weighted = draw(state) % 2 == 0;
	bool idle = false;

	for (size_t i = 0; i < count; i++) {
		members[i] = (struct balance_member){
			i + 1, weighted ? 1 + (uint32_t)(draw(state) % 5) : 1};
		weights += members[i].weight;
	}
	for (uint32_t i = 0; i < partitions; i++) {
		owners[i] = draw(state) % 3 == 0 ? 0 : 1 + draw(state) % count;
		if (owners[i] > 0)
			before[owners[i] - 1]++;
	}
	for (unsigned round = 0; !idle; round++) {
		CHECK(round < 200);
		idle = true;
		for (size_t i = 0; i < count; i++) {
			const struct balance b = {partitions, owners, requesters, members,
						  count,      i + 1,  greedy,     draw(state)};
			struct moves moves;

			balance(&b, &moves);
			idle &= moves.takes + moves.requests + moves.withdrawals == 0;
			for (uint32_t j = 0; j < moves.takes; j++)
				owners[moves.take[j]] = i + 1;
			for (uint32_t j = 0; j < moves.requests; j++) {
				owners[moves.request[j]] = i + 1;
				moved++;
			}
		}
	}
	for (uint32_t i = 0; i < partitions; i++) {
		CHECK(owners[i] != 0);
		after[owners[i] - 1]++;
	}
	for (size_t i = 0; i < count; i++) {
		const uint32_t product = partitions * members[i].weight;

		CHECK(after[i] >= product / weights);
		CHECK(after[i] <= product / weights + (product % weights > 0));
		needed += before[i] > after[i] ? before[i] - after[i] : 0;
	}
	CHECK(moved == needed);
}

/* Requests are reviewed at each refresh, even while there are partitions without an owner. */
static void stale_requests(void)
{
	/*
	 * Two members own three each, the second one still asks for partition 0, and partition 6 is
	 * free.
	 */
	const uint64_t owners[] = {1, 1, 1, 2, 2, 2, 0};
	const struct balance_member members[] = {{1, 1}, {2, 1}};
	const uint64_t requesters[] = {2, 0, 0, 0, 0, 0, 0};
	/* It owns its full number, and its request is withdrawn. */
	const uint64_t even[] = {0, 1, 2, 2}, asked[] = {2, 0, 0, 0};
	struct balance b = {7, owners, requesters, members, 2, 2, true, 1};
	struct moves moves;

	balance(&b, &moves);
	CHECK(moves.takes == 1 && moves.take[0] == 6);
	CHECK(moves.withdrawals == 1 && moves.withdraw[0] == 0);
	b.partitions = 4;
	b.owners = even;
	b.requesters = asked;
	balance(&b, &moves);
	CHECK(moves.takes == 0 && moves.withdrawals == 1 && moves.withdraw[0] == 0);
}

static struct world w;

/* The other members, which own what a case says, as the store shows it; and what the member did. */
struct scene {
	const struct rule *rule;
	uint64_t self;
	char worker[128]; /* the member's row; the others have the same */
	uint32_t has, requests;
};

static bool see_worker(void *arg, const struct weir_store_row *row)
{
	struct scene *s = arg;

	CHECK(row->size < sizeof(s->worker) && s->self == 0);
	memcpy(s->worker, row->value, row->size);
	s->self = strtoull(strrchr(row->key, '/') + 1, NULL, 16);
	return true;
}

static uint64_t id_of(const struct scene *s, size_t member)
{
	return member == s->rule->me ? s->self : member + 1;
}

/* Its row is as that of the member that it is copied from, but for the weight. */
static size_t print_worker(const struct scene *s, size_t member, char row[160])
{
	const size_t length = strcspn(s->worker + sizeof("weir-worker 1"), " \n");
	const uint32_t weight = weight_of(s->rule, member);
	const int label = (int)(sizeof("weir-worker 1") + length);

	if (weight == 1)
		return (size_t)snprintf(row, 160, "%.*s\n", label, s->worker);
	return (size_t)snprintf(row, 160, "%.*s %u\n", label, s->worker, weight);
}

static void set_up(const struct scene *s)
{
	char keys[64][32], values[64][24], workers[9][160];
	struct weir_store_write writes[64];
	uint64_t session;
	weir_dur granted;
	size_t count = 0;
	uint32_t partition = 0;

	CHECK(weir_store_begin(w.store, 600 * WEIR_S, &session, &granted) == 0);
	for (size_t i = 0; i < s->rule->members; i++) {
		if (i != s->rule->me) {
			(void)snprintf(keys[count], 32, "work/worker/%016" PRIx64, id_of(s, i));
			writes[count] = (struct weir_store_write){keys[count],
								  WEIR_STORE_WRITE_BIND, workers[i],
								  print_worker(s, i, workers[i])};
			count++;
		}
		for (uint32_t j = 0; j < s->rule->has[i]; j++, count++) {
			(void)snprintf(keys[count], 32, "work/partition/%" PRIu32, partition++);
			(void)snprintf(values[count], 24, "%016" PRIx64 "\n", id_of(s, i));
			writes[count] = (struct weir_store_write){
				keys[count], WEIR_STORE_WRITE_BIND, values[count],
				strlen(values[count])};
		}
	}
	CHECK(count == 0 || weir_store_commit(w.store, session, NULL, 0, writes, count, NULL) == 0);
}

static bool see_partition(void *arg, const struct weir_store_row *row)
{
	struct scene *s = arg;

	s->has += strtoull(row->value, NULL, 16) == s->self;
	return true;
}

/* It must ask for a partition of the expected owner, which owns those before the next one's. */
static bool see_request(void *arg, const struct weir_store_row *row)
{
	struct scene *s = arg;
	const unsigned long partition = strtoul(strrchr(row->key, '/') + 1, NULL, 10);
	unsigned long first = 0;

	for (size_t i = 0; i < s->rule->from; i++)
		first += s->rule->has[i];
	CHECK(strtoull(row->value, NULL, 16) == s->self);
	CHECK(partition >= first && partition < first + s->rule->has[s->rule->from]);
	s->requests++;
	return true;
}

static void look(const char *prefix, weir_store_row_fn *see, struct scene *s)
{
	CHECK(weir_store_read(w.store, &prefix, 1, see, s, NULL) == 0);
}

/* A member that has just joined finds this, and decides once. */
static void play_rule(const struct rule *r)
{
	struct scene s = {.rule = r};
	struct weir_work_config config;
	struct weir_work *work;

	world_begin(&w, 100, LEASE, REFRESH);
	world_enter(&w, 0, 0);
	weir_work_config_init(&config);
	config.name = "work";
	config.count = r->unowned;
	for (size_t i = 0; i < r->members; i++)
		config.count += r->has[i];
	config.strategy = r->balanced ? WEIR_WORK_BALANCED : WEIR_WORK_GREEDY;
	config.weight = r->weights[r->me];
	CHECK(weir_work_open(w.actors[0].fleet, &config, &work, NULL, 0) == 0);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	look("work/worker/", see_worker, &s);
	set_up(&s);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	look("work/partition/", see_partition, &s);
	look("work/request/", see_request, &s);
	if (s.has != r->has[r->me] + r->takes || s.requests != r->requests) {
		fprintf(stderr, "%s: has %u, asks for %u\n", r->id, s.has, s.requests);
		abort();
	}
	world_end(&w);
}

int main(int argc, char **argv)
{
	uint64_t state = 88172645463325252u;
	struct test_store test_store;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		check_rule(&rules[i]);
	for (unsigned i = 0; i < 2000; i++)
		any_beginning(&state);
	stale_requests();
	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		play_rule(&rules[i]);
	test_store_end(&test_store);
	printf("%zu rules, %s\n", sizeof(rules) / sizeof(rules[0]), test_store.kind);
	return 0;
}
