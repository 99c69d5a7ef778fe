/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of the states of shares are reported in order, with their reasons and without a lock: in
 * simulated time, and by a thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <weir/fleet_metrics.h>

#include "server.h"
#include "shares_rig.h"

/* What one member has reported, as "from>to ", and the last change. */
static char heard[512];
static struct weir_share_change last;
static char reason[256];

static void hear(void *arg, const struct weir_share_change *change)
{
	const size_t used = strlen(heard);

	if (arg != &w.actors[0])
		return;
	CHECK(strcmp(change->name, "limit") == 0);
	CHECK(used == 0 || change->from == last.to);
	(void)snprintf(heard + used, sizeof(heard) - used, "%s>%s ",
		       weir_share_state_name(change->from), weir_share_state_name(change->to));
	(void)snprintf(reason, sizeof(reason), "%s", change->reason);
	last = *change;
}

static void begin_hearing(void)
{
	begin(100);
	w.on_change = hear;
	heard[0] = '\0';
}

/* What was heard since the last call. */
static bool heard_only(const char *what)
{
	const bool good = strcmp(heard, what) == 0;

	if (!good)
		fprintf(stderr, "heard \"%s\"\n", heard);
	heard[0] = '\0';
	return good;
}

static void without_a_store(void)
{
	begin_hearing();
	w.limit.reserved = 5;
	w.limit.members = 4;
	enter(1, 50);
	CHECK(heard_only("local>leased ") && last.units == 50 && reason[0] == '\0');
	w.down = true;
	world_run(&w, REFRESH * 2);
	CHECK(heard_only("leased>holding ") && last.units == 50);
	CHECK(strcmp(reason, "A simulated failure.") == 0);
	world_run(&w, 2 * LEASE);
	CHECK(heard_only("holding>lost ") && last.units == 5);
	w.down = false;
	world_run(&w, ROUNDS);
	CHECK(heard_only("lost>leased ") && last.units == 50 && last.missed == 0);
	CHECK(last.time < w.now && last.time > 1000 * WEIR_S);
	end();
}

/* A member that never reached the store is what it was. */
static void never_there(void)
{
	begin_hearing();
	w.down = true;
	enter(1, 50);
	CHECK(heard_only(""));
	w.down = false;
	world_run(&w, ROUNDS);
	CHECK(heard_only("local>leased "));
	end();
}

static void refused(void)
{
	begin_hearing();
	enter(2, 100);
	heard[0] = '\0';
	w.full = true;
	world_want(&w, 0, 10);
	world_run(&w, ROUNDS);
	CHECK(heard_only("leased>frozen ") && reason[0] != '\0');
	w.full = false;
	world_run(&w, ROUNDS);
	CHECK(heard_only("frozen>leased ") && reason[0] == '\0');
	end();
}

static bool see(void *arg, const struct weir_fleet_member *m)
{
	if (m->fence == info_of(0).fence)
		*(uint64_t *)arg = m->id;
	return true;
}

static void drained(void)
{
	struct weir_fleet_limit limit;
	uint64_t id = 0;

	begin_hearing();
	enter(2, 100);
	heard[0] = '\0';
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, see, &id) == 0);
	CHECK(weir_fleet_drain(w.store, "limit", id, true) == 0);
	world_run(&w, ROUNDS);
	CHECK(heard_only("leased>drained ") && last.units == 0);
	CHECK(strcmp(reason, "An operator has drained this member.") == 0);
	CHECK(weir_fleet_drain(w.store, "limit", id, false) == 0);
	world_run(&w, ROUNDS);
	CHECK(heard_only("drained>leased "));
	end();
}

static void forgotten(void)
{
	begin_hearing();
	enter(1, 100);
	heard[0] = '\0';
	world_forget(&w, w.now);
	world_run(&w, REFRESH * 2);
	CHECK(heard_only("leased>learning ") && last.units == 100 && reason[0] != '\0');
	world_run(&w, 2 * LEASE);
	CHECK(heard_only("learning>leased "));
	end();
}

static void too_many(void)
{
	begin_hearing();
	w.limit.reserved = 10;
	w.limit.members = 2;
	world_enter(&w, 1, 100);
	world_enter(&w, 2, 100);
	world_run(&w, ROUNDS);
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	CHECK(heard_only("local>surplus ") && strstr(reason, "3 members") != NULL);
	world_kill(&w, 1);
	world_run(&w, 2 * LEASE);
	CHECK(heard_only("surplus>leased "));
	end();
}

/* Also where only the configuration begins or ceases to differ. */
static void configured_differently(void)
{
	begin_hearing();
	enter(1, 50);
	heard[0] = '\0';
	CHECK(weir_fleet_change(w.store, "limit", 80) == 0);
	world_run(&w, ROUNDS);
	CHECK(heard_only("leased>leased ") && strstr(reason, "where the limit has capacity 80"));
	CHECK(weir_fleet_change(w.store, "limit", 60) == 0);
	world_run(&w, ROUNDS);
	CHECK(heard_only(""));
	CHECK(weir_fleet_change(w.store, "limit", 100) == 0);
	world_run(&w, ROUNDS);
	CHECK(heard_only("leased>leased ") && reason[0] == '\0');
	end();
}

/*
 * A callback that steps its own manual fleet: the changes that this makes are reported after it, and
 * no more of them are kept than there is room for.
 */
#define FLIPS 1000

static unsigned depth, reported;
static uint64_t missed;

static void flip(void *arg, const struct weir_share_change *change)
{
	struct actor *a = arg;

	CHECK(depth == 0);
	depth++;
	reported++;
	missed += change->missed;
	for (unsigned i = 0; reported == 1 && i < FLIPS; i++) {
		w.down = !w.down;
		(void)weir_fleet_refresh(a->fleet);
	}
	depth--;
}

static void nested(void)
{
	begin(100);
	w.on_change = flip;
	for (unsigned i = 0; i < 2; i++) {
		reported = 0;
		missed = 0;
		world_enter(&w, 0, 100);
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
		CHECK(reported == FLIPS + 1 && missed == 0 && !w.down);
		world_kill(&w, 0);
		world_run(&w, 2 * LEASE);
	}
	end();
}

static void flood(void *arg, const struct weir_share_change *change)
{
	struct actor *a = arg;

	reported++;
	missed += change->missed;
	for (unsigned i = 0; reported == 1 && i < 2 * FLIPS; i++) {
		w.down = !w.down;
		(void)weir_fleet_refresh(a->fleet);
	}
}

static void too_many_changes(void)
{
	begin(100);
	w.on_change = flood;
	reported = 0;
	missed = 0;
	world_enter(&w, 0, 100);
	(void)weir_fleet_refresh(w.actors[0].fleet);
	CHECK(reported == 1 + 1024 && missed == 0);
	w.down = true;
	(void)weir_fleet_refresh(w.actors[0].fleet);
	CHECK(reported == 1 + 1024 + 1 && missed == 2 * FLIPS - 1024);
	w.down = false;
	(void)weir_fleet_refresh(w.actors[0].fleet);
	CHECK(reported == 1 + 1024 + 2 && missed == 2 * FLIPS - 1024);
	end();
}

/* A thread of the fleet calls it, and it may call the fleet. */
struct real {
	struct weir_fleet *fleet;
	struct weir_share *share;
	_Atomic int joined, left;
};

static void measure(struct weir_fleet *fleet)
{
	struct weir_metrics *metrics;

	CHECK(weir_metrics_create(&metrics) == 0);
	CHECK(weir_fleet_metrics_add(metrics, fleet, NULL, 0) == 0);
	CHECK(weir_metrics_text(metrics, WEIR_OPENMETRICS, NULL, 0) > 0);
	weir_metrics_destroy(metrics);
}

/* When the first limit is leased, join another one; when that is, leave it. */
static void call_back(void *arg, const struct weir_share_change *change)
{
	struct real *real = arg;
	struct weir_share_info info;
	struct weir_share_config config;

	CHECK(change->from == WEIR_SHARE_LOCAL && change->to == WEIR_SHARE_LEASED);
	measure(real->fleet);
	(void)weir_fleet_refresh(real->fleet);
	if (strcmp(change->name, "first") == 0) {
		weir_share_config_init(&config);
		config.name = "second";
		config.capacity = 10;
		CHECK(weir_share_join(real->fleet, &config, &real->share, NULL, 0) == 0);
		atomic_store(&real->joined, 1);
		return;
	}
	weir_share_info_init(&info);
	weir_share_info_take(real->share, &info);
	weir_share_leave(real->share);
	atomic_store(&real->left, 1);
}

static void by_a_thread(void)
{
	struct real real = {.fleet = NULL};
	struct weir_share_config share_config;
	struct weir_fleet_config config;
	struct weir_share *share;

	alarm(120);
	weir_fleet_config_init(&config);
	config.lease = WEIR_S;
	config.on_change = call_back;
	config.on_change_arg = &real;
	CHECK(weir_fleet_open(&config, &real.fleet, NULL, 0) == 0);
	weir_share_config_init(&share_config);
	share_config.name = "first";
	share_config.capacity = 10;
	CHECK(weir_share_join(real.fleet, &share_config, &share, NULL, 0) == 0);
	while (atomic_load(&real.left) == 0)
		sleep_ms(1);
	CHECK(atomic_load(&real.joined) == 1);
	weir_fleet_close(real.fleet);
}

int main(void)
{
	without_a_store();
	never_there();
	refused();
	drained();
	forgotten();
	too_many();
	configured_differently();
	nested();
	too_many_changes();
	by_a_thread();
	printf("changes are reported\n");
	return 0;
}
