/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate.c - members of a limit in simulated time, with one store or with regions. A request
 * takes 2 ms to reach its store while others go on, so 2 ms pass between a read and its commit. All
 * members change their demand at each refresh, and the capacity is enough for all.
 *
 * Each member is a coroutine, so the fleet's own code runs unchanged.
 *
 * With an allocator, members also ask between their refreshes, as they do with threads of their own.
 */
#include "commands.h"
#include "meter.h"
#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define QUESTION  (2 * WEIR_MS)
#define REFRESH   (5 * WEIR_S)  /* interval of members, with leases of 15 s */
#define REGION    (60 * WEIR_S) /* the lease of a region, which refreshes each 10 s */
#define WARM_UP   (25 * WEIR_S)
#define MEASURED  (20 * WEIR_S)
#define WANTS_MAX 20
#define STACK     ((size_t)256 << 10)

/* A stack, free or in use by a coroutine. */
struct stack {
	struct stack *next;
	ucontext_t context;
	char *bytes;
};

struct actor {
	struct meter at, below; /* a member's store; a region's store, and the one below it */
	struct weir_fleet *fleet;
	struct weir_share *share; /* NULL: a region */
	struct weir_region *region;
	struct stack *stack;   /* NULL: not in a refresh */
	weir_time due, redraw; /* redraw: of what it wants */
	uint64_t wants;
	unsigned place; /* index in the heap */
	bool done;
};

static struct simulation {
	struct weir_clock clock; /* must be the first member */
	weir_time now;
	uint64_t chance;
	struct actor *actors;
	struct actor **heap;
	unsigned count, members;
	bool allocated;
	struct actor *acting;
	ucontext_t scheduler;
	struct stack *stacks;
	struct weir_store **stores;
	unsigned store_count;
	struct count top, low; /* of the upper or only store, and of those of regions */
	uint64_t refreshes_top, refreshes_low, had, wanted, most;
} sim;

static weir_time tell_time(const struct weir_clock *clock)
{
	return ((const struct simulation *)clock)->now;
}

/* S. Vigna's splitmix64, public domain. */
static uint64_t draw(uint64_t most)
{
	uint64_t z = sim.chance += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % most;
}

static void swap(unsigned a, unsigned b)
{
	struct actor *x = sim.heap[a];

	sim.heap[a] = sim.heap[b];
	sim.heap[b] = x;
	sim.heap[a]->place = a;
	sim.heap[b]->place = b;
}

/* The time of the heap's first actor has increased: move it down. */
static void sink(void)
{
	unsigned at = 0;

	for (;;) {
		unsigned least = at;

		for (unsigned i = 2 * at + 1; i <= 2 * at + 2 && i < sim.count; i++)
			if (sim.heap[i]->due < sim.heap[least]->due)
				least = i;
		if (least == at)
			return;
		swap(at, least);
		at = least;
	}
}

static void rise(unsigned at)
{
	while (at > 0 && sim.heap[at]->due < sim.heap[(at - 1) / 2]->due) {
		swap(at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

/* The acting coroutine waits for its request to reach the store. */
static void go_there(void)
{
	struct actor *a = sim.acting;

	if (a == NULL)
		return;
	a->due = sim.now + QUESTION;
	swapcontext(&a->stack->context, &sim.scheduler);
}

static void body(void)
{
	for (;;) {
		struct actor *a = sim.acting;

		if (sim.allocated)
			a->due = weir_fleet_step(a->fleet);
		else
			(void)weir_fleet_refresh(a->fleet);
		a->done = true;
		swapcontext(&a->stack->context, &sim.scheduler);
	}
}

static void make_stack(struct stack *const s)
{
	s->bytes = must(malloc(STACK));
	getcontext(&s->context);
	s->context.uc_stack.ss_sp = s->bytes;
	s->context.uc_stack.ss_size = STACK;
	makecontext(&s->context, body, 0);
}

static struct stack *get_stack(void)
{
	struct stack *s = sim.stacks;

	if (s != NULL) {
		sim.stacks = s->next;
		return s;
	}
	s = must(calloc(1, sizeof(*s)));
	make_stack(s);
	return s;
}

static void begin_refresh(struct actor *a)
{
	a->stack = get_stack();
	a->done = false;
	if (a->share == NULL) {
		sim.refreshes_top++;
		return;
	}
	if (sim.allocated && sim.now < a->redraw)
		return;
	a->redraw = sim.now + REFRESH;
	if (sim.store_count > 1)
		sim.refreshes_low++;
	else
		sim.refreshes_top++;
	a->wants = 1 + draw(WANTS_MAX);
	must_do(weir_share_demand_set(a->share, a->wants), "weir_share_demand_set", "");
}

static void end_refresh(struct actor *a)
{
	const weir_dur every = a->share != NULL ? REFRESH : REGION / 6;

	a->stack->next = sim.stacks;
	sim.stacks = a->stack;
	a->stack = NULL;
	if (!sim.allocated)
		a->due = sim.now + every / 10 * 8 + draw(every / 2);
}

static void act(struct actor *a)
{
	if (a->stack == NULL)
		begin_refresh(a);
	sim.acting = a;
	swapcontext(&sim.scheduler, &a->stack->context);
	sim.acting = NULL;
	if (a->done)
		end_refresh(a);
	sink();
}

static void sample(void)
{
	uint64_t had = 0;

	for (unsigned i = 0; i < sim.count; i++) {
		if (sim.actors[i].share == NULL)
			continue;
		had += weir_share_units(sim.actors[i].share);
		sim.wanted += sim.actors[i].wants;
	}
	sim.had += had;
	if (had > sim.most)
		sim.most = had;
}

static void run(weir_dur time)
{
	const weir_time end = sim.now + time;
	weir_time second = sim.now + WEIR_S;

	while (sim.heap[0]->due < end) {
		sim.now = sim.heap[0]->due > sim.now ? sim.heap[0]->due : sim.now;
		for (; second <= sim.now; second += WEIR_S)
			sample();
		act(sim.heap[0]);
	}
	sim.now = end;
}

static struct weir_store *open_store(unsigned members)
{
	struct weir_store_config config;
	char why[256] = "";

	if (sim.allocated)
		return sim.stores[sim.store_count++] = table_open(&sim.clock);
	weir_store_config_init(&config);
	config.clock = &sim.clock;
	config.shm_bytes = ((size_t)128 << 10) + (size_t)members * 4096;
	must_do(weir_store_open(&config, &sim.stores[sim.store_count], why, sizeof(why)), "store",
		why);
	return sim.stores[sim.store_count++];
}

static struct weir_fleet_config fleet_at(struct meter *meter, weir_dur lease)
{
	struct weir_fleet_config config;

	weir_fleet_config_init(&config);
	config.store = &meter->store;
	config.lease = lease;
	config.manual = 1;
	config.clock = &sim.clock;
	config.seed = 1 + draw(UINT64_MAX);
	config.label =
		"payments-1.example:12345"; /* of a realistic length, since bytes are counted */
	return config;
}

static struct actor *add_actor(void)
{
	struct actor *a = &sim.actors[sim.count];

	a->place = sim.count;
	sim.heap[sim.count++] = a;
	a->due = sim.now + draw(REFRESH);
	return a;
}

static void add_member(struct weir_store *store, uint64_t capacity)
{
	struct actor *a = add_actor();
	struct weir_fleet_config fleet;
	struct weir_share_config share;
	char why[256] = "";

	a->at = meter_of(store, sim.store_count > 1 ? &sim.low : &sim.top, go_there);
	fleet = fleet_at(&a->at, 3 * REFRESH);
	must_do(weir_fleet_open(&fleet, &a->fleet, why, sizeof(why)), "weir_fleet_open", why);
	weir_share_config_init(&share);
	share.name = "limit";
	share.capacity = capacity;
	share.allocated = sim.allocated;
	must_do(weir_share_join(a->fleet, &share, &a->share, why, sizeof(why)), "join", why);
	rise(a->place);
}

static void add_region(struct weir_store *above, struct weir_store *store, uint64_t capacity)
{
	struct actor *a = add_actor();
	struct weir_fleet_config over, under;
	struct weir_share_config share;
	struct weir_region_config config;
	char why[256] = "";

	a->at = meter_of(above, &sim.top, go_there);
	a->below = meter_of(store, &sim.low, go_there);
	over = fleet_at(&a->at, REGION);
	under = fleet_at(&a->below, 0);
	weir_share_config_init(&share);
	share.name = "limit";
	share.capacity = capacity;
	weir_region_config_init(&config);
	config.above = &over;
	config.below = &under;
	config.limit = &share;
	must_do(weir_region_open(&config, &a->region, why, sizeof(why)), "weir_region_open", why);
	a->fleet = weir_region_fleet(a->region);
	rise(a->place);
}

static void set_up(unsigned regions, unsigned each, bool allocated)
{
	const unsigned members = (regions > 0 ? regions : 1) * each;
	const uint64_t capacity = (uint64_t)members * WANTS_MAX;
	struct weir_store *root;

	sim = (struct simulation){.clock = {tell_time}, .now = 1000 * WEIR_S, .chance = 1};
	sim.members = members;
	sim.allocated = allocated;
	sim.actors = must(calloc(members + regions + 1, sizeof(*sim.actors)));
	sim.heap = must(calloc(members + regions + 1, sizeof(void *)));
	sim.stores = must(calloc(regions + 1, sizeof(struct weir_store *)));
	root = open_store(regions > 0 ? regions : each);
	for (unsigned i = 0; regions == 0 && i < each; i++)
		add_member(root, capacity);
	for (unsigned i = 0; i < regions; i++) {
		struct weir_store *store = open_store(each);

		add_region(root, store, capacity);
		for (unsigned j = 0; j < each; j++)
			add_member(store, 0);
	}
}

static void tear_down(void)
{
	for (unsigned i = 0; i < sim.count; i++) {
		/* An actor in the middle of a refresh would wait for itself. */
		if (sim.actors[i].stack != NULL)
			continue;
		if (sim.actors[i].region != NULL)
			weir_region_close(sim.actors[i].region);
		else
			weir_fleet_close(sim.actors[i].fleet);
	}
	for (unsigned i = 0; i < sim.store_count; i++)
		weir_store_close(sim.stores[i]);
	free(sim.stores);
	free(sim.heap);
	free(sim.actors);
}

static void clear(void)
{
	count_clear(&sim.top);
	count_clear(&sim.low);
	sim.refreshes_top = sim.refreshes_low = 0;
	sim.had = sim.wanted = 0;
}

/* Print the load on one store, or the mean load on the stores of regions. */
static void print_load(const struct count *c, uint64_t refreshes, unsigned stores)
{
	const double seconds = (double)MEASURED / (double)WEIR_S * stores;

	printf("\t%.3f\t%.1f\t%.1f\t%.1f", (double)c->reads / (double)refreshes,
	       (double)(c->keeps + c->reads + c->commits) / seconds,
	       (double)c->sent / 1e3 / seconds, (double)c->got / 1e3 / seconds);
}

static void simulate(unsigned regions, unsigned each, bool allocated)
{
	set_up(regions, each, allocated);
	run(regions > 0 ? REGION : WARM_UP);
	clear();
	run(MEASURED);
	printf("%u\t%u", sim.members, regions);
	print_load(&sim.top, sim.refreshes_top, 1);
	if (regions > 0)
		print_load(&sim.low, sim.refreshes_low, regions);
	else
		printf("\t-\t-\t-\t-");
	printf("\t%.3f\n", (double)sim.had / (double)sim.wanted);
	fflush(stdout);
	if (sim.most > (uint64_t)sim.members * WANTS_MAX)
		must_do(-ERANGE, "the members use more than the capacity", "");
	tear_down();
}

int simulate_command(int argc, char **argv)
{
	printf("members\tregions\tattempts\trequests_s\tsent_kB_s\tgot_kB_s\tlow_attempts\t"
	       "low_requests_s\tlow_sent_kB_s\tlow_got_kB_s\thad\n");
	for (int i = 0; i < argc; i++) {
		char *end;
		const bool allocated = argv[i][0] == 'a';
		unsigned regions = 0, each = (unsigned)strtoul(argv[i] + allocated, &end, 10);

		if (*end == 'x' && !allocated) {
			regions = each;
			each = (unsigned)strtoul(end + 1, NULL, 10);
		}
		if (each == 0)
			must_do(-EINVAL, argv[i], "is not a number of members");
		simulate(regions, each, allocated);
	}
	return EXIT_SUCCESS;
}
