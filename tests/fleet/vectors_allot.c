/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of sharing against what is published about Doorman, and what follows from it; each
 * case by its number: by itself, and by members that share a limit in a store. Numbers with
 * fractions are in units of a ten-thousandth.
 *
 * Doorman answers clients that ask one after the other, and so do these cases: each member sees
 * what all want, as far as they have asked, and takes its share of what no other member holds.
 */

#include "vectors.h"

#include <errno.h>
#include <string.h>

#include "fleet/protocol/allot.h"
#include "fleet/protocol/demand.h"
#include "world.h"

#define MEMBERS 9
#define ASKS    12
#define FINE    10000

/* A member's request, and the expected grant. */
struct ask {
	unsigned member;
	double wants, gets;
};

struct sharing {
	const char *id;
	enum weir_allotment how;
	double capacity;
	bool known;               /* all wants are known before the first request */
	double fine;              /* fractions of a unit; 0: 1 */
	double held[MEMBERS];     /* before the first request */
	uint32_t weight[MEMBERS]; /* 0: 1 */
	struct ask asks[ASKS];
	unsigned count;
};

#define ASKED(...)                                                                                 \
	.asks = {__VA_ARGS__}, .count = sizeof((struct ask[]){__VA_ARGS__}) / sizeof(struct ask)

static const struct sharing sharings[] = {
	{"DM1", WEIR_ALLOT_NONE, 0, ASKED({0, 10, 10}, {1, 100, 100})},
	{"DM2", WEIR_ALLOT_STATIC, 100, ASKED({0, 100, 100}, {1, 10, 10}, {2, 120, 100})},
	{"DM3", WEIR_ALLOT_FAIR, 120, true, ASKED({0, 1000, 55}, {1, 60, 55}, {2, 10, 10})},
	{"DM4", WEIR_ALLOT_FAIR, 120, true, ASKED({0, 1000, 60}, {1, 50, 50}, {2, 10, 10})},
	{"DM5", WEIR_ALLOT_FAIR, 120, true, .weight = {6, 4, 2},
	 ASKED({0, 1000, 60}, {1, 500, 40}, {2, 200, 20})},
	{"DM6", WEIR_ALLOT_FAIR, 1000, true, .weight = {10, 10, 30},
	 ASKED({0, 2000, 200}, {1, 500, 200}, {2, 700, 600})},
	{"DM7", WEIR_ALLOT_PROPORTIONAL, 120, true, ASKED({0, 60, 55}, {1, 60, 55}, {2, 10, 10})},
	{"DM8", WEIR_ALLOT_PROPORTIONAL, 120, ASKED({0, 60, 60}, {1, 75, 60}, {2, 10, 0})},
	{"DM9", WEIR_ALLOT_PROPORTIONAL, 120, true, .weight = {3, 2, 1},
	 ASKED({0, 65, 60}, {1, 45, 40}, {2, 20, 20})},
	{"DM10", WEIR_ALLOT_PROPORTIONAL, 120, .weight = {3, 2, 1},
	 ASKED({0, 65, 65}, {1, 45, 45}, {2, 20, 10})},
	{"DM11", WEIR_ALLOT_PROPORTIONAL, 120, true, FINE,
	 ASKED({0, 1000, 69.69072164948454}, {1, 50, 40.30927835051546}, {2, 10, 10})},
	{"DM12", WEIR_ALLOT_FAIR, 120, true, ASKED({0, 1000, 60}, {1, 50, 50}, {2, 10, 10})},
	{"DM13", WEIR_ALLOT_STATIC, 120, ASKED({0, 50, 50}, {1, 200, 120}, {2, 300, 120})},
	{"DM14", WEIR_ALLOT_PROPORTIONAL, 100, false, FINE,
	 ASKED({0, 10, 10}, {1, 10, 10}, {2, 10, 10}, {3, 10, 10}, {4, 500, 60}, {5, 1000, 0},
	       {0, 10, 10}, {1, 10, 10}, {2, 10, 10}, {3, 10, 10}, {4, 500, 25.454545454545457},
	       {5, 1000, 34.54545454545455})},
	{"DM15", WEIR_ALLOT_FAIR, 1000,
	 ASKED({0, 100, 100}, {1, 100, 100}, {2, 100, 100}, {3, 100, 100}, {4, 1000, 600},
	       {5, 2000, 0}, {0, 100, 100}, {1, 100, 100}, {2, 100, 100}, {3, 100, 100},
	       {4, 1000, 300}, {5, 2000, 300})},
	{"DM17 proportional", WEIR_ALLOT_PROPORTIONAL, 100,
	 ASKED({0, 80, 80}, {1, 80, 20}, {0, 80, 50}, {1, 80, 50}, {2, 10, 0}, {0, 80, 45},
	       {1, 80, 45}, {2, 10, 10})},
	{"DM17 fair", WEIR_ALLOT_FAIR, 100,
	 ASKED({0, 80, 80}, {1, 80, 20}, {0, 80, 50}, {1, 80, 50}, {2, 10, 0}, {0, 80, 45},
	       {1, 80, 45}, {2, 10, 10})},
	{"DM18 proportional", WEIR_ALLOT_PROPORTIONAL, 120, .weight = {1, 3},
	 ASKED({0, 200, 120}, {1, 200, 0}, {0, 200, 30}, {1, 200, 90})},
	{"DM18 fair", WEIR_ALLOT_FAIR, 120, .weight = {1, 3},
	 ASKED({0, 200, 120}, {1, 200, 0}, {0, 200, 30}, {1, 200, 90})},
	{"DM19", WEIR_ALLOT_FAIR, 100, false, FINE,
	 ASKED({0, 50, 50}, {1, 50, 50}, {2, 50, 0}, {0, 50, 33.333333333333336},
	       {1, 50, 33.333333333333336}, {2, 50, 33.333333333333314})},
	{"DM20 proportional", WEIR_ALLOT_PROPORTIONAL, 60, .held = {20, 100}, ASKED({0, 100, 0})},
	{"DM20 fair", WEIR_ALLOT_FAIR, 60, .held = {20, 100}, ASKED({0, 100, 0})},
	{"DM21 proportional", WEIR_ALLOT_PROPORTIONAL, 60, true, .held = {60, 60},
	 ASKED({0, 100, 0}, {1, 100, 30}, {0, 100, 30}, {1, 100, 30})},
	{"DM21 fair", WEIR_ALLOT_FAIR, 60, true, .held = {60, 60},
	 ASKED({0, 100, 0}, {1, 100, 30}, {0, 100, 30}, {1, 100, 30})},
	{"DM22", WEIR_ALLOT_FAIR, 120, true, ASKED({0, 5, 5}, {1, 45, 45}, {2, 60, 60})},
	{"DM23", WEIR_ALLOT_FAIR, 100, true,
	 ASKED({0, 47, 33}, {1, 3, 3}, {2, 14, 14}, {3, 5, 5}, {4, 16, 16}, {5, 25, 25},
	       {6, 4, 4})},
	{"DM24", WEIR_ALLOT_FAIR, 100, true, FINE, .weight = {5, 1, 1, 1, 2, 1, 1, 5, 1},
	 ASKED({0, 55.5, 33.3462}, {1, 24.1, 6.6692}, {2, 11.2, 6.6692}, {3, 25, 6.6692},
	       {4, 20.5, 13.3385}, {5, 40.6, 6.6692}, {6, 16.3, 6.6692}, {7, 13.3, 13.3},
	       {8, 20.6, 6.6692})},
	{"DM25", WEIR_ALLOT_PROPORTIONAL, 100, .held = {40},
	 ASKED({1, 500, 60}, {0, 400, 40}, {1, 500, 50}, {0, 400, 50})},
	{"DM26", WEIR_ALLOT_PROPORTIONAL, 100, ASKED({0, 800, 100})},
	{"DM27 fair", WEIR_ALLOT_FAIR, 0, ASKED({0, 10, 0})},
	{"DM27 proportional", WEIR_ALLOT_PROPORTIONAL, 0, ASKED({0, 10, 0})},
	{"DM27 static", WEIR_ALLOT_STATIC, 0, ASKED({0, 10, 0})},
};

/* All members, in the order of their numbers. */
struct sums {
	const struct sharing *v;
	uint64_t capacity;
	uint64_t wants[MEMBERS], held[MEMBERS];
	bool here[MEMBERS];
};

static double fine_of(const struct sharing *v)
{
	return v->fine > 0 ? v->fine : 1;
}

static uint64_t fine_units(const struct sharing *v, double number)
{
	return (uint64_t)(number * fine_of(v) + 0.5);
}

static uint64_t grant(struct sums *w, unsigned member)
{
	struct claim claims[MEMBERS];
	uint64_t target = 0, others = 0;
	size_t count = 0;

	for (unsigned i = 0; i < MEMBERS; i++) {
		if (!w->here[i])
			continue;
		claims[count++] = (struct claim){
			.id = i,
			.wants = w->wants[i],
			.weight = w->v->weight[i] > 0 ? w->v->weight[i] : 1,
		};
		others += i != member ? w->held[i] : 0;
	}
	allot(w->v->how, w->capacity, claims, count);
	for (size_t i = 0; i < count; i++)
		if (claims[i].id == member)
			target = claims[i].target;
	return allot_step(w->v->how, w->capacity, target, others);
}

static void meet(struct sums *w, unsigned member, double wants)
{
	w->here[member] = true;
	w->wants[member] = fine_units(w->v, wants);
}

static void check_sum(const struct sums *w, uint64_t before, uint64_t after)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		sum += w->held[i];
	if (w->v->how == WEIR_ALLOT_FAIR || w->v->how == WEIR_ALLOT_PROPORTIONAL)
		CHECK(sum <= w->capacity || after <= before);
}

static void check_got(const struct sharing *v, unsigned ask, uint64_t got)
{
	const uint64_t due = fine_units(v, v->asks[ask].gets);

	/* Fractions of a unit may be rounded either way. */
	if (got <= due + (v->fine > 0) && got + (v->fine > 0) >= due)
		return;
	fprintf(stderr, "%s: ask %u gets %llu, not %llu\n", v->id, ask, (unsigned long long)got,
		(unsigned long long)due);
	abort();
}

static void play_sums(const struct sharing *v)
{
	struct sums w = {.v = v, .capacity = fine_units(v, v->capacity)};

	for (unsigned i = 0; i < MEMBERS; i++) {
		w.held[i] = fine_units(v, v->held[i]);
		w.here[i] = w.held[i] > 0;
		w.wants[i] = w.held[i];
	}
	for (unsigned i = 0; v->known && i < v->count; i++)
		meet(&w, v->asks[i].member, v->asks[i].wants);
	for (unsigned i = 0; i < v->count; i++) {
		const struct ask *a = &v->asks[i];
		const uint64_t before = w.held[a->member];
		uint64_t got;

		meet(&w, a->member, a->wants);
		got = grant(&w, a->member);
		w.held[a->member] = got;
		check_sum(&w, before, got);
		check_got(v, i, got);
	}
}

/* A member sets its demand, joins if it is not present, and refreshes. */
static uint64_t ask(struct world *w, const struct sharing *v, unsigned member, double wants)
{
	if (w->actors[member].fleet == NULL) {
		w->actors[member].weight = v->weight[member];
		world_enter(w, member, fine_units(v, wants));
	}
	world_want(w, member, fine_units(v, wants));
	CHECK(weir_fleet_refresh(w->actors[member].fleet) == 0);
	return world_units(w, member);
}

/* Held before: all there is, so that what others want can be known before any of them has units. */
static void begin(struct world *w, const struct sharing *v)
{
	double held = 0;

	for (unsigned i = 0; i < MEMBERS; i++)
		held += v->held[i];
	world_begin(w, fine_units(v, held), 60 * WEIR_S, 5 * WEIR_S);
	w->limit.allotment = v->how;
	for (unsigned i = 0; i < MEMBERS; i++)
		if (v->held[i] > 0)
			CHECK(ask(w, v, i, v->held[i]) == fine_units(v, v->held[i]));
	for (unsigned i = 0; v->known && i < v->count; i++)
		CHECK(ask(w, v, v->asks[i].member, v->asks[i].wants) ==
		      fine_units(v, v->held[v->asks[i].member]));
	w->capacity = fine_units(v, v->capacity);
	if (w->actors[0].fleet != NULL)
		CHECK(weir_fleet_change(w->store, "limit", w->capacity) == 0);
	else
		w->limit.capacity = w->capacity;
}

static void play_members(const struct sharing *v, struct test_store *test_store)
{
	static struct world w;

	world_use(test_store);
	begin(&w, v);
	for (unsigned i = 0; i < v->count; i++)
		check_got(v, i, ask(&w, v, v->asks[i].member, v->asks[i].wants));
	world_end(&w);
}

/* As Doorman's validator would decide, if it were called: negative values are refused. */
static void refuse(const char *id, struct test_store *test_store)
{
	static struct world w;

	world_use(test_store);
	world_begin(&w, 100, 60 * WEIR_S, 5 * WEIR_S);
	world_enter(&w, 0, 40);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	CHECK(weir_share_demand_set(w.actors[0].share, (uint64_t)-1000) == -EINVAL);
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0 && world_units(&w, 0) == 40);
	world_end(&w);
	(void)id;
}

/* All rows of an id: each of one kind of sharing. */
static void play(const char *id, struct test_store *test_store)
{
	const size_t length = strlen(id);
	unsigned played = 0;

	for (size_t i = 0; i < sizeof(sharings) / sizeof(sharings[0]); i++) {
		const struct sharing *v = &sharings[i];

		if (strncmp(v->id, id, length) != 0 ||
		    (v->id[length] != '\0' && v->id[length] != ' '))
			continue;
		play_sums(v);
		play_members(v, test_store);
		played++;
	}
	CHECK(played > 0);
	if (strcmp(id, "DM25") == 0 || strcmp(id, "DM26") == 0)
		refuse(id, test_store);
}

/* DL6, and: no requests mean no demand, and steady requests mean exactly that demand. */
static void estimates(void)
{
	uint64_t seconds[DEMAND_SECONDS] = {0};

	CHECK(demand_estimate(seconds) == 0);
	for (unsigned i = 0; i < DEMAND_SECONDS; i++)
		seconds[i] = 9;
	CHECK(demand_estimate(seconds) == 9);
	for (unsigned i = 0; i < DEMAND_SECONDS; i++)
		seconds[i] = UINT64_MAX;
	CHECK(demand_estimate(seconds) == WEIR_SHARE_UNITS_MAX);
	for (unsigned i = 0; i < DEMAND_SECONDS; i++)
		seconds[i] = i == 0 ? 110 : 0;
	CHECK(demand_estimate(seconds) == 20);
}

/* A rise is followed at once, a fall slowly; what was counted is spread over the time that passed. */
static void measures(void)
{
	struct demand demand = {.seen = 0};

	demand_count(&demand, 95, DEMAND_TICKS);
	CHECK(demand_last(&demand) == 95 && demand_wanted(&demand, WEIR_S) == 95);
	CHECK(demand_wanted(&demand, WEIR_S / 10) == 10);
	/* Of a minute, ten seconds are known: the newest weighs most. */
	CHECK(demand_wanted(&demand, 60 * WEIR_S) == 60 * 18);
	demand_count(&demand, 95, DEMAND_TICKS / 2);
	CHECK(demand_last(&demand) == 50);
	demand_count(&demand, 95, DEMAND_TICKS / 2);
	CHECK(demand_last(&demand) == 0 && demand_wanted(&demand, WEIR_S) == 16);
	demand_count(&demand, 95 + 2000, 2000);
	CHECK(demand_wanted(&demand, WEIR_S) == DEMAND_TICKS);
	demand_count(&demand, 95 + 2000, DEMAND_SECONDS * DEMAND_TICKS);
	CHECK(demand_wanted(&demand, WEIR_S) == 0);
}

/*
 * The fair level by search: one unit after the other to the member with the least for its weight.
 */
static void check_fair(const struct claim *claims, size_t count, uint64_t capacity)
{
	uint64_t sum = 0, wanted = 0;

	for (size_t i = 0; i < count; i++) {
		sum += claims[i].target;
		wanted += claims[i].wants;
		CHECK(claims[i].target <= claims[i].wants);
	}
	CHECK(sum == (wanted < capacity ? wanted : capacity));
	/* No member with unmet demand has more than a unit less for its weight than another. */
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			CHECK(claims[i].target == claims[i].wants || claims[j].target == 0 ||
			      (claims[i].target + 1) * claims[j].weight >=
				      (claims[j].target - 1) * claims[i].weight);
}

/* All headroom is half of what is idle, less what cannot be divided into whole units. */
static void check_headroom(enum weir_allotment how, struct claim *claims, size_t count,
			   uint64_t capacity)
{
	uint64_t idle = capacity, headroom = 0;

	allot(how, capacity, claims, count);
	allot_headroom(how, capacity, claims, count);
	for (size_t i = 0; i < count; i++) {
		idle -= claims[i].target;
		headroom += claims[i].headroom;
	}
	CHECK(headroom <= (idle + 1) / 2 && headroom + 2 * count >= (idle + 1) / 2);
}

static void random_cases(void)
{
	uint64_t state = 88172645463325252u;

	for (unsigned i = 0; i < 20000; i++) {
		struct claim claims[MEMBERS];
		const size_t count = 1 + draw(&state) % MEMBERS;
		const uint64_t capacity = draw(&state) % 300;
		uint64_t sum = 0;

		for (size_t j = 0; j < count; j++)
			claims[j] = (struct claim){
				.id = j,
				.wants = draw(&state) % 100,
				.weight = 1 + (uint32_t)(draw(&state) % 7),
			};
		allot(WEIR_ALLOT_FAIR, capacity, claims, count);
		check_fair(claims, count, capacity);
		allot(WEIR_ALLOT_PROPORTIONAL, capacity, claims, count);
		for (size_t j = 0; j < count; j++) {
			CHECK(claims[j].target <= claims[j].wants);
			sum += claims[j].target;
		}
		CHECK(sum <= capacity);
		check_headroom(WEIR_ALLOT_FAIR, claims, count, capacity);
	}
}

static void headroom(void)
{
	struct claim claims[4] = {
		{.id = 0, .weight = 1},
		{.id = 1, .weight = 3},
		{.id = 2, .weight = 1, .priority = 7},
		{.id = 3, .weight = 1},
	};

	/* By weight, while nothing is wanted. */
	check_headroom(WEIR_ALLOT_FAIR, claims, 4, 1200);
	for (unsigned i = 0; i < 4; i++)
		CHECK(claims[i].headroom == (claims[i].id == 1 ? 300 : 100));
	/* Half by weight, half in proportion to wants, whatever the priority. */
	for (unsigned i = 0; i < 4; i++)
		claims[i].wants = claims[i].id == 3 ? 300 : claims[i].id == 1 ? 100 : 0;
	check_headroom(WEIR_ALLOT_PROPORTIONAL, claims, 4, 1600);
	for (unsigned i = 0; i < 4; i++) {
		static const uint64_t due[] = {50, 225, 50, 275};

		CHECK(claims[i].headroom == due[claims[i].id]);
	}
	/* None, if everything is wanted. */
	check_headroom(WEIR_ALLOT_FAIR, claims, 4, 400);
	check_headroom(WEIR_ALLOT_FAIR, claims, 4, 100);
	/* The last unit is not kept free. */
	check_headroom(WEIR_ALLOT_FAIR, claims, 1, 1 + claims[0].wants);
	CHECK(claims[0].headroom == (claims[0].wants == 0));
}

/* The largest values allowed. */
static void largest(void)
{
	struct claim claims[3];

	for (unsigned i = 0; i < 3; i++)
		claims[i] = (struct claim){
			.id = i,
			.wants = WEIR_SHARE_UNITS_MAX,
			.weight = WEIR_SHARE_WEIGHT_MAX - i,
		};
	allot(WEIR_ALLOT_FAIR, WEIR_SHARE_UNITS_MAX, claims, 3);
	CHECK(claims[0].target + claims[1].target + claims[2].target == WEIR_SHARE_UNITS_MAX);
	allot(WEIR_ALLOT_PROPORTIONAL, WEIR_SHARE_UNITS_MAX, claims, 3);
	CHECK(claims[0].target + claims[1].target + claims[2].target == WEIR_SHARE_UNITS_MAX);
	for (unsigned i = 0; i < 3; i++)
		claims[i].wants = WEIR_SHARE_UNITS_MAX / 6;
	check_headroom(WEIR_ALLOT_FAIR, claims, 3, WEIR_SHARE_UNITS_MAX);
}

static void sums(const char *id, struct test_store *test_store)
{
	(void)id;
	(void)test_store;
	estimates();
	measures();
	random_cases();
	headroom();
	largest();
}

static const struct vector rows[] = {
	{"DM1", play, NULL, NULL},
	{"DM2", play, NULL, NULL},
	{"DM3", play, NULL, NULL},
	{"DM4", play, NULL, NULL},
	{"DM5", play, NULL, NULL},
	{"DM6", play, NULL, NULL},
	{"DM7", play, NULL, NULL},
	{"DM8", play, NULL, NULL},
	{"DM9", play, NULL, NULL},
	{"DM10", play, NULL, NULL},
	{"DM11", play, NULL, "in whole units of a ten-thousandth"},
	{"DM12", play, NULL, NULL},
	{"DM13", play, NULL, NULL},
	{"DM14", play, NULL, "in whole units of a ten-thousandth"},
	{"DM15", play, NULL, NULL},
	{"DM17", play, NULL, NULL},
	{"DM18", play, NULL, NULL},
	{"DM19", play, NULL, "in whole units of a ten-thousandth"},
	{"DM20", play, NULL, "0 where Doorman's is below it"},
	{"DM21", play, NULL, NULL},
	{"DM22", play, NULL, "never more than is wanted"},
	{"DM23", play, NULL, "max-min, where Doorman's is not"},
	{"DM24", play, NULL, "max-min, where Doorman gives one all of it"},
	{"DM25", play, NULL, "numbers are whole, so none is NaN; what would be one is refused"},
	{"DM26", play, NULL, "what would be negative is refused"},
	{"DM27", play, NULL, NULL},
	{"DL6", sums, NULL, "9, where Doorman has 0.2"},
};

struct family vectors_allot(void)
{
	return (struct family){rows, sizeof(rows) / sizeof(rows[0])};
}
