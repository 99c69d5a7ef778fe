/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * members KIND: processes that share a limit over a store of that kind, under faults.
 *
 * Processes are killed and stopped, their clocks are set, and the store suffers the same. Meanwhile
 * a thread reads the ledger, and adds up what counts: the sum never exceeds the capacity. Nothing
 * depends on timing, except on leases, which end.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/fleet.h>

#include "../stress/check.h"
#include "fleet/protocol/plan.h"
#include "server.h"
#include "wall_clock.h"

#define MEMBERS  3
#define CAPACITY 120
#define EACH     (CAPACITY / MEMBERS)

#define STOPS      60
#define LONG_EVERY 20
#define WAIT_EVERY 4
#define TRIES_MAX  30 /* repetitions of a case that a busy machine may disturb */

/* The state that a member publishes. */
struct slot {
	_Atomic uint64_t units, loops;
	_Atomic uint64_t eager; /* what it wants changes all the time, and it refreshes as often */
	/* Of its lease: read while it is stopped. */
	struct weir_store_check fence;
	char key[WEIR_SHARE_KEY_SIZE];
};

static struct slot *slots;
static int slots_fd;

struct rig {
	bool remote;
	struct server server;
	char address[128], lease[16];
	struct wall_clock wall;
	pid_t members[MEMBERS];
	pthread_t reader;
	_Atomic bool ending;
	struct weir_store *store;
	unsigned readings;
};

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void map_slots(int fd)
{
	slots = mmap(NULL, sizeof(*slots) * MEMBERS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(slots != MAP_FAILED);
}

static void go_on(struct weir_fleet *fleet, struct weir_share *share, bool eager, uint64_t *chance)
{
	CHECK(weir_share_demand_set(share, eager ? draw(chance) % CAPACITY : 1000) == 0);
	if (eager)
		(void)weir_fleet_refresh(fleet);
	else
		sleep_ms(1);
}

/* member ADDRESS INDEX FD LEASE: reads its units each millisecond, and is eager if told so. */
static int be_member(char **argv)
{
	struct weir_store_config store;
	struct weir_fleet_config config;
	struct weir_share_config share_config;
	struct weir_fleet *fleet;
	struct weir_share *share;
	struct slot *slot;
	uint64_t chance = (uint64_t)atoi(argv[3]) + 1;
	char why[256];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	map_slots(atoi(argv[4]));
	slot = &slots[atoi(argv[3])];
	weir_store_config_init(&store);
	store.timeout = 500 * WEIR_MS;
	weir_fleet_config_init(&config);
	config.store_config = &store;
	config.address = argv[2];
	config.lease = config.learning = (weir_dur)atoi(argv[5]) * WEIR_MS;
	while (weir_fleet_open(&config, &fleet, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		sleep_ms(100);
	}
	weir_share_config_init(&share_config);
	share_config.name = "limit";
	share_config.capacity = CAPACITY;
	CHECK(weir_share_join(fleet, &share_config, &share, why, sizeof(why)) == 0);
	for (;;) {
		/* Only of the first lease. */
		if (slot->fence.version == 0)
			(void)weir_share_fence(share, &slot->fence, slot->key);
		atomic_store_explicit(&slot->units, weir_share_units(share), memory_order_relaxed);
		atomic_fetch_add_explicit(&slot->loops, 1, memory_order_relaxed);
		go_on(fleet, share, load(&slot->eager) != 0, &chance);
	}
}

static void spawn_member(struct rig *rig, unsigned index)
{
	char number[16], fd[16];
	char *argv[] = {"fleet-members", "member", rig->address, number, fd, rig->lease, NULL};

	(void)snprintf(number, sizeof(number), "%u", index);
	(void)snprintf(fd, sizeof(fd), "%d", slots_fd);
	atomic_store_explicit(&slots[index].units, 0, memory_order_relaxed);
	slots[index].fence.version = 0;
	rig->members[index] = fork();
	CHECK(rig->members[index] >= 0);
	if (rig->members[index] == 0) {
		/* The last one's wall clock is set while it runs. */
		if (index == MEMBERS - 1)
			wall_clock_follow(&rig->wall);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
}

static void kill_member(const struct rig *rig, unsigned index)
{
	kill(rig->members[index], SIGKILL);
	CHECK(waitpid(rig->members[index], NULL, 0) == rig->members[index]);
	wall_clock_killed(rig->members[index]);
}

static bool take(void *arg, const struct weir_store_row *row)
{
	return view_take(arg, strchr(row->key, '/') + 1, row);
}

static uint64_t counted(const struct limit_view *v)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->ledger.count; i++)
		for (size_t j = 0; j < v->count; j++)
			if (v->members[j].id == v->ledger.lines[i].id &&
			    v->members[j].made == v->ledger.lines[i].fence)
				sum += v->ledger.lines[i].grant;
	return sum;
}

static void *read_ledger(void *arg)
{
	struct rig *rig = arg;
	struct limit_view view = {.count = 0};
	const char *prefix = "limit/";

	while (!atomic_load(&rig->ending)) {
		view_clear(&view);
		if (weir_store_read(rig->store, &prefix, 1, take, &view, NULL) == 0) {
			CHECK(!view.other_version && counted(&view) <= CAPACITY);
			rig->readings++;
		}
		sleep_ms(3);
	}
	view_free(&view);
	return NULL;
}

/* Wait until each of these members has that many units. */
static void wait_for(unsigned first, unsigned last, uint64_t each, const char *what)
{
	for (unsigned tries = 0;; tries++) {
		bool all = true;

		for (unsigned i = first; i <= last; i++)
			all &= load(&slots[i].units) == each;
		if (all)
			break;
		if (tries == 150000) {
			fprintf(stderr, "%s: %llu %llu %llu\n", what,
				(unsigned long long)load(&slots[0].units),
				(unsigned long long)load(&slots[1].units),
				(unsigned long long)load(&slots[2].units));
			abort();
		}
		sleep_ms(2);
	}
	printf("%s\n", what);
	fflush(stdout);
}

static void wait_for_loops(unsigned index, unsigned loops)
{
	const uint64_t before = load(&slots[index].loops);
	unsigned tries = 0;

	while (load(&slots[index].loops) < before + loops) {
		CHECK(++tries < 300000);
		sleep_ms(1);
	}
}

/* T1 */
static void death(struct rig *rig)
{
	kill_member(rig, 0);
	wait_for(1, 2, CAPACITY / 2, "a member was killed: the others have what it had");
	spawn_member(rig, 0);
	wait_for(0, 2, EACH, "it came back");
}

/* A write guarded by the fence of a stopped member arrives now. */
static int write_late(const struct rig *rig)
{
	const struct weir_store_write write = {"guarded/row", WEIR_STORE_WRITE_PUT, "x", 1};
	struct weir_store_check fence = slots[0].fence;

	fence.key = slots[0].key;
	return weir_store_commit(rig->store, 0, &fence, 1, &write, 1, NULL);
}

static void stop_member(const struct rig *rig, unsigned index)
{
	kill(rig->members[index], SIGSTOP);
	CHECK(waitpid(rig->members[index], NULL, WUNTRACED) == rig->members[index]);
}

/*
 * T2: it has no units when it continues, and gets none as long as it cannot reach the store; and a
 * guarded write is refused.
 */
static void stop(struct rig *rig)
{
	stop_member(rig, 0);
	wait_for(1, 2, CAPACITY / 2, "a member was stopped: the others have what it had");
	CHECK(slots[0].fence.version != 0 && write_late(rig) == -EAGAIN);
	if (rig->remote)
		server_pause(&rig->server);
	atomic_store_explicit(&slots[0].units, 0, memory_order_relaxed);
	kill(rig->members[0], SIGCONT);
	if (rig->remote) {
		for (unsigned i = 0; i < 20; i++) {
			wait_for_loops(0, 2);
			CHECK(load(&slots[0].units) == 0);
		}
		server_resume(&rig->server);
	}
	wait_for(0, 2, EACH, "it went on with nothing, and asked");
}

/* One or two members at once are stopped for a random time, below most ms. */
static void stop_some(const struct rig *rig, unsigned most, bool waits, uint64_t *chance)
{
	const unsigned first = (unsigned)(draw(chance) % MEMBERS);
	const unsigned second = (first + (unsigned)(draw(chance) % 2)) % MEMBERS;

	stop_member(rig, first);
	if (second != first)
		stop_member(rig, second);
	sleep_ms((unsigned)(draw(chance) % most));
	if (waits)
		wait_for_loops((first + 2) % MEMBERS, 1);
	kill(rig->members[first], SIGCONT);
	sleep_ms((unsigned)(draw(chance) % (most / 4)));
	kill(rig->members[second], SIGCONT);
}

static void set_eager(bool eager)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		atomic_store_explicit(&slots[i].eager, eager, memory_order_relaxed);
}

/*
 * T2 again: in the middle of refreshes, most for a moment, some for up to two leases. In some of them
 * another member must go on first, which waits for the store no longer than its timeout.
 */
static void stops(const struct rig *rig)
{
	const unsigned lease = (unsigned)atoi(rig->lease);
	uint64_t chance = UINT64_C(2463534242);

	set_eager(true);
	for (unsigned i = 0; i < STOPS; i++)
		stop_some(rig, i % LONG_EVERY == 0 ? 2 * lease : 8, i % WAIT_EVERY == 0, &chance);
	set_eager(false);
	wait_for(0, 2, EACH, "members were stopped for random times");
}

/* Whether all keep their units for the length of a lease after the clock is set. */
static bool stands(const struct rig *rig, const char *offset)
{
	wall_clock_set(&rig->wall, offset);
	for (unsigned i = 0; i < 40; i++) {
		sleep_ms((unsigned)atoi(rig->lease) / 40);
		for (unsigned j = 0; j < MEMBERS; j++)
			if (load(&slots[j].units) != EACH)
				return false;
	}
	return true;
}

/*
 * T5: setting a wall clock has no effect on any member. If a lease is lost because the machine is
 * busy, the case is repeated.
 */
static void clocks(struct rig *rig)
{
	static const char *const offsets[] = {"+1h", "-1h"};

	if (!wall_clock_can(&rig->wall))
		return;
	for (unsigned i = 0; i < 2; i++) {
		unsigned tries = 0;

		while (!stands(rig, offsets[i])) {
			CHECK(++tries < TRIES_MAX);
			wall_clock_set(&rig->wall, "+0");
			wait_for(0, 2, EACH, "once more");
		}
	}
	printf("a clock was set one hour forward and two hours back\n");
}

/* T4: requests continue, the lease ends, and is regained with the store. */
static void store_stops(struct rig *rig)
{
	server_pause(&rig->server);
	wait_for_loops(0, 100);
	wait_for(0, 2, 0, "the store was stopped: the leases ended");
	wait_for_loops(1, 100);
	server_resume(&rig->server);
	wait_for(0, 2, EACH, "the store went on");
}

/* T3 */
static void store_dies(struct rig *rig)
{
	server_kill(&rig->server);
	wait_for_loops(0, 50);
	server_restart(&rig->server);
	sleep_ms((unsigned)atoi(rig->lease));
	wait_for(0, 2, EACH, "the store was killed, and came back");
}

static void set_up_store(struct rig *rig, const char *kind)
{
	struct weir_store_config config;
	unsigned tries = 0;
	char why[256];

	(void)snprintf(rig->lease, sizeof(rig->lease), "2000"); /* etcd's minimum */
	if (strcmp(kind, "shm") == 0) {
		(void)snprintf(rig->address, sizeof(rig->address), "shm:/weir-members-%d",
			       (int)getpid());
		(void)shm_unlink(rig->address + 4);
	} else {
		server_start(&rig->server, strcmp(kind, "etcd") == 0    ? SERVER_ETCD
					   : strcmp(kind, "redis") == 0 ? SERVER_REDIS
									: SERVER_REDIS_DURABLE);
		rig->remote = true;
		(void)snprintf(rig->address, sizeof(rig->address), "%s://127.0.0.1:%u",
			       kind[0] == 'e' ? "etcd" : "redis", rig->server.port);
	}
	weir_store_config_init(&config);
	config.address = rig->address;
	config.timeout = 500 * WEIR_MS;
	/* A server that listens need not be ready. */
	while (weir_store_open(&config, &rig->store, why, sizeof(why)) != 0) {
		if (++tries == 1000) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
		sleep_ms(100);
	}
}

static void set_up(struct rig *rig, const char *kind)
{
	set_up_store(rig, kind);
	slots_fd = memfd_create("slots", 0);
	CHECK(slots_fd >= 0 && ftruncate(slots_fd, sizeof(*slots) * MEMBERS) == 0);
	map_slots(slots_fd);
	wall_clock_begin(&rig->wall);
	for (unsigned i = 0; i < MEMBERS; i++)
		spawn_member(rig, i);
	CHECK(pthread_create(&rig->reader, NULL, read_ledger, rig) == 0);
	wait_for(0, 2, EACH, "all have the same");
}

static void tear_down(struct rig *rig)
{
	atomic_store(&rig->ending, true);
	CHECK(pthread_join(rig->reader, NULL) == 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		kill_member(rig, i);
	weir_store_close(rig->store);
	if (rig->remote)
		server_end(&rig->server);
	else
		CHECK(shm_unlink(rig->address + 4) == 0);
	wall_clock_end(&rig->wall);
	CHECK(rig->readings > 100);
	printf("never above the capacity, in %u readings of the ledger\n", rig->readings);
}

int main(int argc, char **argv)
{
	static struct rig rig;

	if (argc == 6 && strcmp(argv[1], "member") == 0)
		return be_member(argv);
	CHECK(argc == 2);
	set_up(&rig, argv[1]);
	death(&rig);
	stop(&rig);
	stops(&rig);
	clocks(&rig);
	if (rig.remote) {
		store_stops(&rig);
		store_dies(&rig);
	}
	tear_down(&rig);
	return 0;
}
