/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorman's seven scenarios, in simulated time, with the library's own code. A capacity of 500;
 * leases of 60 s and refreshes every 5 s, as in Doorman. docs/fleet-design.md has the results of
 * Doorman's own simulation; here the sum must never exceed the capacity, and there is no phase
 * without any.
 *
 * Where Doorman's servers lose and win mastership, the store here is unreachable.
 */

#include <string.h>

#include "world.h"

#define CAPACITY 500

struct scenario {
	const char *name;
	unsigned clients;
	uint64_t wants;
	uint64_t reserved;
	unsigned seconds;
	unsigned down_from, down_to; /* when the store is down, in seconds; 0: never */
	unsigned spike_at;           /* in seconds; two clients want 1000 */
	unsigned mishaps;            /* mean seconds between mishaps */
	/* share of min(wanted, capacity) that must be used after the start */
	double used;
	uint64_t least; /* in any second after the start */
};

static const struct scenario scenarios[] = {
	{"scenario 1", 5, 110, 0, 300, 0, 0, 0, 0, 1, CAPACITY},
	{"scenario 2", 5, 110, 0, 300, 120, 140, 0, 0, 1, CAPACITY},
	{"scenario 3", 5, 110, 50, 300, 120, 190, 0, 0, 0.97, 250},
	{"scenario 4", 5, 100, 0, 300, 0, 0, 0, 0, 1, CAPACITY},
	{"scenario 5", 45, 15, 0, 300, 0, 0, 0, 0, 1, CAPACITY},
	{"scenario 6", 45, 15, 0, 300, 0, 0, 150, 0, 0.99, 400},
	{"scenario 7", 45, 15, 5, 3600, 0, 0, 0, 60, 0.93, 150},
};

/*
 * The same mishaps as Doorman's: a spike, a client that is gone for a while, a server that is gone.
 */
static void mishap(struct world *w, const struct scenario *s, unsigned second)
{
	const unsigned one = (unsigned)(draw(&w->chance) % s->clients);

	w->down = false;
	for (unsigned i = 0; i < s->clients; i++) {
		if (w->actors[i].fleet == NULL)
			world_enter(w, i, s->wants);
		world_want(w, i, s->wants);
		w->actors[i].manner = ANSWERS;
	}
	switch (draw(&w->chance) % 6) {
	case 0:
		world_want(w, one, 100 + draw(&w->chance) % 900);
		break;
	case 1:
		world_want(w, one, 0);
		break;
	case 2:
		world_kill(w, one);
		break;
	case 3:
		w->actors[one].manner = UNREACHABLE;
		break;
	case 4:
		w->actors[one].manner = LOSES;
		break;
	default:
		w->down = true;
		break;
	}
	(void)second;
}

static void happen(struct world *w, const struct scenario *s, unsigned second)
{
	if (s->down_to > 0)
		w->down = second >= s->down_from && second < s->down_to;
	if (s->spike_at > 0 && second == s->spike_at) {
		world_want(w, 3, 1000);
		world_want(w, 7, 1000);
	}
	if (s->mishaps > 0 && second % s->mishaps == 0 && second > 0)
		mishap(w, s, second);
}

static void play(const struct scenario *s, uint64_t seed)
{
	static struct world w;
	double used;

	world_begin(&w, CAPACITY, 60 * WEIR_S, 5 * WEIR_S);
	w.chance += seed * 7919;
	w.limit.reserved = s->reserved;
	w.limit.members = s->reserved > 0 ? s->clients : 0;
	for (unsigned i = 0; i < s->clients; i++)
		world_enter(&w, i, s->wants);
	/* Before any refresh, only what is reserved is used. Then each has refreshed twice. */
	CHECK(world_sum(&w) == s->reserved * s->clients);
	world_run(&w, 14 * WEIR_S);
	CHECK(w.over == 0 && world_sum(&w) == CAPACITY);
	w.samples = 0;
	w.sum = w.most = 0;
	w.least = UINT64_MAX;
	for (unsigned second = 14; second < s->seconds; second++) {
		happen(&w, s, second);
		world_run(&w, WEIR_S);
	}
	used = (double)w.sum / w.samples / CAPACITY;
	printf("%s, seed %u: %.2f %% used, least %llu, most %llu, over in %u of %u, %u commits\n",
	       s->name, (unsigned)seed, 100 * used, (unsigned long long)w.least,
	       (unsigned long long)w.most, w.over, w.samples, w.commits);
	fflush(stdout);
	CHECK(w.over == 0 && w.most <= CAPACITY);
	CHECK(used >= s->used);
	CHECK(w.least >= s->least);
	world_end(&w);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		for (uint64_t seed = 1; seed <= (scenarios[i].mishaps > 0 ? 5 : 1); seed++)
			play(&scenarios[i], seed);
	return 0;
}
