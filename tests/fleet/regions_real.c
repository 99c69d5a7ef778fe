/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regions_real KIND: two regions below a store of that kind, over real stores, with processes as
 * members and as leaders.
 *
 * etcd:  Redis and etcd below
 * redis: two shared memory stores below
 *
 * Leaders are killed and stopped, and stores are stopped and emptied. Meanwhile members are asked
 * for their units, and the sum never exceeds the limit at the store above. Nothing depends on
 * timing, except on leases, which end.
 */

#include <errno.h>
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
#include "server.h"

#define REGIONS   2
#define EACH      2 /* members, and leaders, of a region */
#define ALL       (REGIONS * EACH)
#define CAPACITY  240
#define GREEDY    1000
#define TIMEOUT   (500 * WEIR_MS)
#define LEASE     (2 * WEIR_S)    /* above: etcd's minimum */
#define REFRESH   (200 * WEIR_MS) /* below */
#define AT_ONCE   (REFRESH / 2)   /* no share changes twice within this time */
#define TRIES_MAX 30              /* repetitions of a case that a busy machine may disturb */

/* Shared by all processes. */
struct board {
	_Atomic uint64_t round;
	struct {
		_Atomic uint64_t wants, units, answered;
	} members[ALL];
	_Atomic bool is_leader[ALL];
	_Atomic uint64_t refreshes[ALL];
};

struct site {
	bool remote;
	struct server server;
	char address[128];
	weir_dur lease; /* of its members */
	struct weir_store *store;
};

struct rig {
	struct site above, below[REGIONS];
	pid_t members[ALL], leaders[ALL];
	pthread_t checker;
	_Atomic bool ending;
	_Atomic uint64_t most;           /* the highest sum allowed */
	_Atomic uint64_t least[REGIONS]; /* lowest sum of each region */
	_Atomic unsigned checks;
};

static struct board *board;
static int board_fd;

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static void map_board(int fd)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(board != MAP_FAILED);
}

static struct weir_store_config store_at(const char *address)
{
	struct weir_store_config config;

	weir_store_config_init(&config);
	config.address = address;
	config.timeout = TIMEOUT;
	return config;
}

static struct weir_fleet_config fleet_over(const struct weir_store_config *store)
{
	struct weir_fleet_config config;

	weir_fleet_config_init(&config);
	config.store_config = store;
	config.learning = LEASE;
	return config;
}

/* member FD INDEX LEASE ADDRESS: reports its units when asked. */
static _Noreturn void be_member(char **argv)
{
	const unsigned index = (unsigned)atoi(argv[3]);
	const struct weir_store_config store = store_at(argv[5]);
	struct weir_fleet_config config = fleet_over(&store);
	struct weir_share_config limit;
	struct weir_fleet *fleet;
	struct weir_share *share;

	config.lease = strtoull(argv[4], NULL, 10);
	config.refresh = REFRESH;
	while (weir_fleet_open(&config, &fleet, NULL, 0) != 0)
		sleep_ms(20); /* the store may be late, on a busy machine */
	weir_share_config_init(&limit);
	limit.name = "limit";
	CHECK(weir_share_join(fleet, &limit, &share, NULL, 0) == 0);
	for (;;) {
		const uint64_t round = atomic_load(&board->round);

		CHECK(weir_share_demand_set(share, atomic_load(&board->members[index].wants)) == 0);
		atomic_store(&board->members[index].units, weir_share_units(share));
		atomic_store(&board->members[index].answered, round);
		sleep_ms(1);
	}
}

/* leader FD INDEX ABOVE BELOW: reports whether it is the leader. */
static _Noreturn void be_leader(char **argv)
{
	const unsigned index = (unsigned)atoi(argv[3]);
	const struct weir_store_config stores[] = {store_at(argv[4]), store_at(argv[5])};
	struct weir_fleet_config above = fleet_over(&stores[0]), below = fleet_over(&stores[1]);
	struct weir_share_config limit;
	struct weir_region_config config;
	struct weir_share_info info;
	struct weir_region *region;

	above.lease = LEASE;
	weir_share_config_init(&limit);
	limit.name = "limit";
	limit.capacity = CAPACITY;
	weir_region_config_init(&config);
	config.above = &above;
	config.below = &below;
	config.limit = &limit;
	while (weir_region_open(&config, &region, NULL, 0) != 0)
		sleep_ms(20);
	for (;;) {
		weir_share_info_init(&info);
		weir_share_info_take(weir_region_share(region), &info);
		atomic_store(&board->is_leader[index],
			     info.state != WEIR_SHARE_LOCAL && info.state != WEIR_SHARE_LOST);
		atomic_store(&board->refreshes[index], info.refreshes);
		sleep_ms(5);
	}
}

static pid_t spawn(char *const argv[])
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	return pid;
}

static void spawn_member(struct rig *rig, unsigned index)
{
	struct site *in = &rig->below[index / EACH];
	char number[16], fd[16], lease[32];
	char *argv[] = {"fleet-regions_real", "member", fd, number, lease, in->address, NULL};

	(void)snprintf(number, sizeof(number), "%u", index);
	(void)snprintf(fd, sizeof(fd), "%d", board_fd);
	(void)snprintf(lease, sizeof(lease), "%llu", (unsigned long long)in->lease);
	atomic_store(&board->members[index].wants, GREEDY);
	rig->members[index] = spawn(argv);
}

static void spawn_leader(struct rig *rig, unsigned index)
{
	char number[16], fd[16];
	char *argv[] = {"fleet-regions_real",
			"leader",
			fd,
			number,
			rig->above.address,
			rig->below[index / EACH].address,
			NULL};

	(void)snprintf(number, sizeof(number), "%u", index);
	(void)snprintf(fd, sizeof(fd), "%d", board_fd);
	atomic_store(&board->is_leader[index], false);
	rig->leaders[index] = spawn(argv);
}

static void kill_process(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* The units that each reported in a round, and the time of the round. */
struct round {
	weir_time began;
	uint64_t most;
	uint64_t units[ALL];
};

static void ask_all(struct rig *rig, struct round *r)
{
	const uint64_t number = atomic_load(&board->round) + 1;

	*r = (struct round){.began = now(), .most = atomic_load(&rig->most)};
	atomic_store(&board->round, number);
	for (unsigned i = 0; i < ALL; i++) {
		while (atomic_load(&board->members[i].answered) != number &&
		       !atomic_load(&rig->ending))
			sleep_ms(1);
		r->units[i] = atomic_load(&board->members[i].units);
	}
}

/*
 * If the second round ended soon after the first one began, each had at least the lesser of both
 * values when the one ended and the other began: so values read one after the other existed at the
 * same time.
 */
static void compare(struct rig *rig, const struct round *a, const struct round *b)
{
	const uint64_t most = a->most > b->most ? a->most : b->most;
	uint64_t of[REGIONS] = {0}, sum = 0;

	for (unsigned i = 0; i < ALL; i++)
		of[i / EACH] += a->units[i] < b->units[i] ? a->units[i] : b->units[i];
	for (unsigned i = 0; i < REGIONS; i++) {
		sum += of[i];
		if (of[i] < atomic_load(&rig->least[i]))
			atomic_store(&rig->least[i], of[i]);
	}
	if (sum > most)
		fprintf(stderr, "%llu and %llu are more than %llu\n", (unsigned long long)of[0],
			(unsigned long long)of[1], (unsigned long long)most);
	CHECK(sum <= most);
	atomic_fetch_add(&rig->checks, 1);
}

static void *check_repeatedly(void *arg)
{
	struct rig *rig = arg;
	struct round last, next;

	ask_all(rig, &last);
	while (!atomic_load(&rig->ending)) {
		ask_all(rig, &next);
		if (now() - last.began < AT_ONCE && !atomic_load(&rig->ending))
			compare(rig, &last, &next);
		last = next;
		sleep_ms(2);
	}
	return NULL;
}

/* Wait until each member of the first region has that many units, and each of the second. */
static void wait_for(uint64_t first, uint64_t second, const char *what)
{
	for (unsigned tries = 0;; tries++) {
		bool all = true;

		for (unsigned i = 0; i < ALL; i++)
			all &= atomic_load(&board->members[i].units) == (i < EACH ? first : second);
		if (all)
			break;
		if (tries == 150000) {
			for (unsigned i = 0; i < ALL; i++)
				fprintf(stderr, "%llu ",
					(unsigned long long)atomic_load(&board->members[i].units));
			fprintf(stderr, "timed out: %s\n", what);
			abort();
		}
		sleep_ms(2);
	}
	printf("%s\n", what);
	fflush(stdout);
}

static void want(unsigned region, uint64_t units)
{
	for (unsigned i = 0; i < EACH; i++)
		atomic_store(&board->members[region * EACH + i].wants, units);
}

static void set_capacity(const struct rig *rig, uint64_t capacity)
{
	unsigned tries = 0;

	while (weir_fleet_change(rig->above.store, "limit", capacity) != 0) {
		CHECK(++tries < 4000);
		sleep_ms(50);
	}
}

/* Wait until a check has begun after this call. */
static void wait_for_checks(const struct rig *rig)
{
	const unsigned before = atomic_load(&rig->checks);

	while (atomic_load(&rig->checks) < before + 3)
		sleep_ms(1);
}

static void watch(struct rig *rig)
{
	wait_for_checks(rig);
	for (unsigned i = 0; i < REGIONS; i++)
		atomic_store(&rig->least[i], UINT64_MAX);
}

static unsigned wait_for_leader(void)
{
	for (unsigned tries = 0;; tries++) {
		for (unsigned i = 0; i < EACH; i++)
			if (atomic_load(&board->is_leader[i]))
				return i;
		CHECK(tries < 60000);
		sleep_ms(5);
	}
}

/* Wait until members know what a leader has written after it has taken over. */
static void wait_for_refreshes(unsigned leader)
{
	const uint64_t before = atomic_load(&board->refreshes[leader]);

	for (unsigned tries = 0; atomic_load(&board->refreshes[leader]) < before + 3; tries++) {
		CHECK(tries < 60000);
		sleep_ms(5);
	}
}

/*
 * A leader is killed: another takes over what the region holds, without effect on members. If a
 * lease is lost because the machine is busy, the case is repeated.
 */
static void leader_dies(struct rig *rig, uint64_t first, uint64_t second)
{
	unsigned tries = 0;
	bool noticed;

	do {
		const unsigned leader = wait_for_leader();
		unsigned other;

		CHECK(++tries <= TRIES_MAX);
		watch(rig);
		kill_process(rig->leaders[leader]);
		atomic_store(&board->is_leader[leader], false);
		other = wait_for_leader();
		CHECK(other != leader);
		wait_for_refreshes(other);
		noticed = atomic_load(&rig->least[0]) < EACH * first;
		spawn_leader(rig, leader);
		wait_for(first, second, "a leader was killed: another one took over");
	} while (noticed);
}

/*
 * Without any leader: members keep their units to the end of the region's lease, and then the
 * others have them.
 */
static void leaders_stop(const struct rig *rig)
{
	want(1, GREEDY);
	for (unsigned i = 0; i < EACH; i++)
		kill(rig->leaders[i], SIGSTOP);
	wait_for(0, CAPACITY / EACH, "leaders were stopped: the other region has it all");
	for (unsigned i = 0; i < EACH; i++)
		kill(rig->leaders[i], SIGCONT);
	wait_for(CAPACITY / ALL, CAPACITY / ALL, "they went on");
}

/* Its members' leases end, and then the region's: the others have what it held. */
static void below_stops(const struct rig *rig)
{
	want(1, GREEDY);
	server_pause(&rig->below[0].server);
	wait_for(0, CAPACITY / EACH, "a region's store was stopped: the other region has it all");
	server_resume(&rig->below[0].server);
	wait_for(CAPACITY / ALL, CAPACITY / ALL, "it went on");
}

static void above_stops(const struct rig *rig)
{
	server_pause(&rig->above.server);
	wait_for(0, 0, "the store above was stopped: all leases ended");
	server_resume(&rig->above.server);
	wait_for(CAPACITY / ALL, CAPACITY / ALL, "it went on");
}

/* Wait until as much as before is granted to the members present. */
static void wait_for_claims(const struct site *s, uint64_t granted)
{
	struct weir_fleet_limit limit;

	for (unsigned tries = 0;; tries++) {
		weir_fleet_limit_init(&limit);
		if (weir_fleet_inspect(s->store, "limit", &limit, NULL, NULL) == 0 &&
		    limit.granted == granted)
			return;
		CHECK(tries < 15000);
		sleep_ms(20);
	}
}

/*
 * A store is emptied: members keep what they hold. If a lease ends because the machine is busy, the
 * case is repeated.
 */
static void forget(struct rig *rig, struct site *s, uint64_t granted, const char *what)
{
	unsigned tries = 0;
	bool noticed;

	do {
		CHECK(++tries <= TRIES_MAX);
		watch(rig);
		server_kill(&s->server);
		server_restart(&s->server);
		wait_for_claims(s, granted);
		noticed = atomic_load(&rig->least[0]) < CAPACITY / REGIONS;
		wait_for(CAPACITY / ALL, CAPACITY / ALL, what);
	} while (noticed);
}

/* Demand moves units between the regions as before. */
static void demand_moves(void)
{
	want(1, 10);
	wait_for(CAPACITY / EACH - 10, 10, "one region wants less: the other has it");
}

/* The first region has the less of what the other one leaves. */
static void cut(struct rig *rig)
{
	set_capacity(rig, CAPACITY / 2);
	wait_for(CAPACITY / 2 / EACH - 10, 10, "the capacity above was cut");
	atomic_store(&rig->most, CAPACITY / 2);
	wait_for_checks(rig);
}

static void open_site(struct site *s)
{
	const struct weir_store_config config = store_at(s->address);
	unsigned tries = 0;
	char why[256];

	/* A server that listens need not be ready. */
	while (weir_store_open(&config, &s->store, why, sizeof(why)) != 0) {
		if (++tries == 1000) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
		sleep_ms(100);
	}
}

static void set_up_site(struct site *s, const char *kind, unsigned number)
{
	*s = (struct site){.lease = kind[0] == 'e' ? 2 * WEIR_S : WEIR_S};
	if (strcmp(kind, "shm") == 0) {
		(void)snprintf(s->address, sizeof(s->address), "shm:/weir-region-%d-%u",
			       (int)getpid(), number);
		(void)shm_unlink(s->address + 4);
	} else {
		server_start(&s->server, kind[0] == 'e' ? SERVER_ETCD : SERVER_REDIS);
		s->remote = true;
		(void)snprintf(s->address, sizeof(s->address), "%s://127.0.0.1:%u", kind,
			       s->server.port);
	}
	open_site(s);
}

static void tear_down_site(struct site *s)
{
	weir_store_close(s->store);
	if (s->remote)
		server_end(&s->server);
	else
		CHECK(shm_unlink(s->address + 4) == 0);
}

static void set_up(struct rig *rig, bool etcd)
{
	set_up_site(&rig->above, etcd ? "etcd" : "redis", 0);
	set_up_site(&rig->below[0], etcd ? "redis" : "shm", 1);
	set_up_site(&rig->below[1], etcd ? "etcd" : "shm", 2);
	board_fd = memfd_create("board", 0);
	CHECK(board_fd >= 0 && ftruncate(board_fd, sizeof(*board)) == 0);
	map_board(board_fd);
	atomic_store(&rig->most, CAPACITY);
	for (unsigned i = 0; i < ALL; i++) {
		spawn_member(rig, i);
		spawn_leader(rig, i);
	}
	CHECK(pthread_create(&rig->checker, NULL, check_repeatedly, rig) == 0);
	wait_for(CAPACITY / ALL, CAPACITY / ALL, "all have the same");
}

static void tear_down(struct rig *rig)
{
	atomic_store(&rig->ending, true);
	CHECK(pthread_join(rig->checker, NULL) == 0);
	for (unsigned i = 0; i < ALL; i++) {
		kill_process(rig->members[i]);
		kill_process(rig->leaders[i]);
	}
	tear_down_site(&rig->above);
	for (unsigned i = 0; i < REGIONS; i++)
		tear_down_site(&rig->below[i]);
	CHECK(atomic_load(&rig->checks) > 100);
	printf("never above the capacity, in %u checks of all members\n",
	       atomic_load(&rig->checks));
}

int main(int argc, char **argv)
{
	static struct rig rig;
	bool etcd;

	if (argc == 6) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		map_board(atoi(argv[2]));
		if (strcmp(argv[1], "member") == 0)
			be_member(argv);
		be_leader(argv);
	}
	CHECK(argc == 2);
	etcd = strcmp(argv[1], "etcd") == 0;
	set_up(&rig, etcd);
	demand_moves();
	leader_dies(&rig, CAPACITY / EACH - 10, 10);
	if (etcd)
		below_stops(&rig);
	else
		leaders_stop(&rig);
	above_stops(&rig);
	if (etcd)
		forget(&rig, &rig.below[0], CAPACITY / REGIONS, "a region's store forgot all");
	else
		forget(&rig, &rig.above, CAPACITY, "the store above forgot all");
	demand_moves();
	cut(&rig);
	tear_down(&rig);
	return 0;
}
