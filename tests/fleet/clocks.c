/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wall clock is set, and the machine is suspended, so that CLOCK_BOOTTIME gets ahead of
 * CLOCK_MONOTONIC. This program has its own clock_gettime(), which the libraries call too.
 *
 * Two members share a limit and partitions of work in one store: the second has threads, and the
 * first does something only when this program says so. Leases are so long that no busy machine
 * loses one.
 */

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/fleet.h>
#include <weir/rate.h>
#include <weir/weir.h>
#include <weir/work.h>

#include "../stress/check.h"

#define CAPACITY 100
#define PARTS    4
#define MINUTE   (60 * WEIR_S)
#define HOUR     (60 * MINUTE)
#define YEAR     (365 * 24 * HOUR)
#define LEASE    (10 * MINUTE)

static _Atomic int64_t suspended; /* how long the machine was, in all */
static _Atomic int64_t wall;      /* by how much the wall clock was set */

struct member {
	struct weir_fleet *fleet;
	struct weir_share *share;
	struct weir_work *work;
};

static struct weir_store *store;
static struct member by_hand, with_threads;

int clock_gettime(clockid_t clock, struct timespec *when)
{
	const int r = (int)syscall(SYS_clock_gettime, clock, when);
	int64_t ns = 0;

	/* A machine that wakes up sets its wall clock by that of the hardware. */
	if (clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME)
		ns = atomic_load(&suspended);
	if (clock == CLOCK_REALTIME)
		ns += atomic_load(&wall);
	ns += when->tv_nsec;
	when->tv_sec += ns / (int64_t)WEIR_S;
	when->tv_nsec = (long)(ns % (int64_t)WEIR_S);
	if (when->tv_nsec < 0) {
		when->tv_sec--;
		when->tv_nsec += (long)WEIR_S;
	}
	return r;
}

static void suspend(weir_dur duration)
{
	atomic_fetch_add(&suspended, (int64_t)duration);
}

static void pause_ms(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	nanosleep(&ms, NULL);
}

static struct member join(const char *address, bool manual)
{
	struct weir_store_config store_config;
	struct weir_fleet_config config;
	struct weir_share_config share;
	struct weir_work_config work;
	struct member m;

	weir_store_config_init(&store_config);
	store_config.timeout = MINUTE;
	weir_fleet_config_init(&config);
	config.store_config = &store_config;
	config.address = address;
	config.lease = config.learning = LEASE;
	config.refresh = 20 * WEIR_MS;
	config.manual = manual;
	CHECK(weir_fleet_open(&config, &m.fleet, NULL, 0) == 0);
	weir_share_config_init(&share);
	share.name = "limit";
	share.capacity = CAPACITY;
	CHECK(weir_share_join(m.fleet, &share, &m.share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(m.share, 2 * CAPACITY) == 0);
	weir_work_config_init(&work);
	work.name = "work";
	work.count = PARTS;
	CHECK(weir_work_open(m.fleet, &work, &m.work, NULL, 0) == 0);
	return m;
}

/* Neither the limit nor a partition is used twice. The first member changes only in this thread. */
static void check_bounds(void)
{
	CHECK(weir_share_units(by_hand.share) + weir_share_units(with_threads.share) <= CAPACITY);
	for (uint32_t part = 0; part < PARTS; part++)
		CHECK(weir_work_fence(by_hand.work, part) == 0 ||
		      weir_work_fence(with_threads.work, part) == 0);
}

static bool has(const struct member *m, uint64_t units, uint32_t parts)
{
	return weir_share_units(m->share) == units && weir_work_owned(m->work) == parts;
}

/* Both go on, until each has half. */
static void wait_for_halves(void)
{
	while (!has(&by_hand, CAPACITY / 2, PARTS / 2) ||
	       !has(&with_threads, CAPACITY / 2, PARTS / 2)) {
		CHECK(weir_fleet_refresh(by_hand.fleet) == 0);
		check_bounds();
		pause_ms();
	}
}

static uint32_t owned_part(const struct member *m)
{
	uint32_t part = 0;

	while (weir_work_fence(m->work, part) == 0)
		CHECK(++part < PARTS);
	return part;
}

/* Write something that only the holder of the lease may write. */
static int write_guarded(const struct weir_store_check *fence)
{
	const struct weir_store_write write = {"guarded/row", WEIR_STORE_WRITE_PUT, "x", 1};

	return weir_store_commit(store, 0, fence, 1, &write, 1, NULL);
}

/* A member has nothing from the moment on at which the machine goes on, and asks by itself. */
static void check_suspended(void)
{
	const uint32_t part = owned_part(&by_hand);
	const uint64_t owner = weir_work_fence(by_hand.work, part);
	char key[WEIR_SHARE_KEY_SIZE];
	struct weir_store_check fence;

	CHECK(weir_share_fence(by_hand.share, &fence, key) == 0);
	CHECK(write_guarded(&fence) == 0);
	suspend(HOUR);
	CHECK(has(&by_hand, 0, 0));
	check_bounds();
	CHECK(weir_share_fence(by_hand.share, &fence, key) == -ESTALE);
	CHECK(weir_work_checkpoint(by_hand.work, part, owner, 1, "x", 1) == -ESTALE);
	while (!has(&with_threads, CAPACITY, PARTS)) {
		check_bounds();
		pause_ms();
	}
	CHECK(write_guarded(&fence) == -EAGAIN);
	wait_for_halves();
	CHECK(write_guarded(&fence) == -EAGAIN);
}

/* For less than what is left of the lease: nothing changes hands. */
static void check_nap(void)
{
	char key[WEIR_SHARE_KEY_SIZE];
	struct weir_store_check fence;

	CHECK(weir_fleet_refresh(by_hand.fleet) == 0);
	CHECK(weir_share_fence(by_hand.share, &fence, key) == 0);
	suspend(LEASE / 2);
	CHECK(has(&by_hand, CAPACITY / 2, PARTS / 2) &&
	      has(&with_threads, CAPACITY / 2, PARTS / 2));
	CHECK(write_guarded(&fence) == 0);
	CHECK(weir_fleet_refresh(by_hand.fleet) == 0);
	CHECK(write_guarded(&fence) == 0);
}

static uint64_t refreshes(const struct member *m)
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(m->share, &info);
	return info.refreshes;
}

static void check_nothing_changes(void)
{
	const uint64_t before = refreshes(&with_threads);

	while (refreshes(&with_threads) < before + 3) {
		CHECK(weir_fleet_refresh(by_hand.fleet) == 0);
		CHECK(has(&by_hand, CAPACITY / 2, PARTS / 2) &&
		      has(&with_threads, CAPACITY / 2, PARTS / 2));
		pause_ms();
	}
}

/* The wall clock goes forth and back; leases, sessions and versions do not notice. */
static void check_wall_clock(void)
{
	static const int64_t steps[] = {(int64_t)YEAR, -2 * (int64_t)YEAR, 1, (int64_t)YEAR};
	const struct weir_store_write write = {"some/row", WEIR_STORE_WRITE_PUT, "x", 1};
	uint64_t session, version, last = 0;
	weir_dur granted;
	char key[WEIR_SHARE_KEY_SIZE];
	struct weir_store_check fence;

	CHECK(weir_share_fence(by_hand.share, &fence, key) == 0);
	CHECK(weir_store_begin(store, LEASE, &session, &granted) == 0);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		atomic_fetch_add(&wall, steps[i]);
		check_nothing_changes();
		CHECK(write_guarded(&fence) == 0);
		CHECK(weir_store_keep(store, session, &granted) == 0);
		CHECK(weir_store_commit(store, 0, NULL, 0, &write, 1, &version) == 0);
		CHECK(version > last);
		last = version;
	}
	suspend(2 * LEASE);
	CHECK(weir_store_keep(store, session, &granted) == -ESTALE);
	wait_for_halves();
}

/* A limiter and a rate follow CLOCK_MONOTONIC: to them the machine was not suspended. */
static void check_local(void)
{
	static const struct weir_fixed_config fixed = {.limit = 1};
	struct weir_config config;
	struct weir_rate_config rate_config;
	struct weir_limiter *limiter;
	struct weir_rate *rate;
	struct weir_token token;
	struct weir_snapshot snapshot;
	const weir_time before = weir_now();

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &fixed;
	config.windowing = WEIR_WINDOW_SAMPLE;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	weir_rate_config_init(&rate_config);
	rate_config.quota_count = 1;
	rate_config.quotas[0] = (struct weir_quota){.units = 10, .period = HOUR};
	CHECK(weir_rate_create(&rate_config, &rate) == 0);
	while (weir_rate_try(rate, 1) == 0)
		;
	CHECK(weir_try_acquire(limiter, &token) == 0);
	suspend(24 * HOUR);
	atomic_fetch_add(&wall, (int64_t)YEAR);
	CHECK(weir_rate_try(rate, 1) == -EAGAIN);
	weir_release(limiter, &token, WEIR_SUCCESS);
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	CHECK(snapshot.windows == 1 && snapshot.last.window.rtt < (double)HOUR);
	CHECK(weir_now() - before < HOUR);
	atomic_fetch_sub(&wall, 2 * (int64_t)YEAR);
	CHECK(weir_rate_try(rate, 1) == -EAGAIN);
	weir_rate_destroy(rate);
	weir_limiter_destroy(limiter);
}

static void leave(const struct member *m)
{
	weir_work_close(m->work);
	weir_share_leave(m->share);
	weir_fleet_close(m->fleet);
}

int main(void)
{
	struct weir_store_config config;
	char address[64];

	check_local();
	(void)snprintf(address, sizeof(address), "shm:/weir-clocks-%d", (int)getpid());
	(void)shm_unlink(address + 4);
	weir_store_config_init(&config);
	config.address = address;
	config.timeout = MINUTE;
	CHECK(weir_store_open(&config, &store, NULL, 0) == 0);
	suspend(LEASE); /* a new store might have lost leases that long */
	by_hand = join(address, true);
	with_threads = join(address, false);
	wait_for_halves();
	for (unsigned i = 0; i < 5; i++) {
		check_suspended();
		check_nap();
	}
	check_wall_clock();
	leave(&by_hand);
	leave(&with_threads);
	weir_store_close(store);
	CHECK(shm_unlink(address + 4) == 0);
	return 0;
}
