/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While a store does not answer, its timeouts follow each other without a pause, and the thread that
 * waits for them has the lock nearly always. All other threads must get their turn nevertheless.
 *
 * Nothing depends on timing: what is counted is how often one thread has its turn while another
 * waits. PATIENCE is far above what is needed, since a busy machine may delay the other one before
 * it waits.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <weir/fleet.h>
#include <weir/work.h>

#include "../stress/check.h"
#include "fleet/fair_lock.h"
#include "server.h"

#define PATIENCE 200
#define TIMEOUT  (20 * WEIR_MS) /* of the store that does not answer */

/* How often the store was asked, and how often since a thread began to wait. */
static _Atomic bool waiting;
static _Atomic unsigned turns, turns_all;

static void count_turn(void)
{
	(void)atomic_fetch_add(&turns_all, 1);
	if (atomic_load(&waiting))
		CHECK(atomic_fetch_add(&turns, 1) < PATIENCE);
}

static void begin_waiting(void)
{
	while (atomic_load(&turns_all) == 0)
		sleep_ms(1);
	atomic_store(&turns, 0);
	atomic_store(&waiting, true);
}

static void end_waiting(const char *what)
{
	atomic_store(&waiting, false);
	printf("%s: after %u questions to the store\n", what, atomic_load(&turns));
}

/* The lock itself: a thread that finds another one waiting never has the next turn. */

#define TAKES 100

static struct fair_lock lock;
static _Atomic bool begun, ending;
static unsigned taken, passed; /* of the lock */

static bool is_next_waiting(void)
{
	if (pthread_mutex_trylock(&lock.turn) != 0)
		return true;
	pthread_mutex_unlock(&lock.turn);
	return false;
}

static void *take_it_all_the_time(void *arg)
{
	fair_lock_take(&lock);
	atomic_store(&begun, true);
	while (!atomic_load(&ending)) {
		const unsigned before = taken;
		bool waits;

		sleep_ms(1);
		waits = is_next_waiting();
		fair_lock_yield(&lock);
		CHECK(!waits || taken != before);
		passed += waits;
	}
	fair_lock_release(&lock);
	return arg;
}

static void check_lock(void)
{
	pthread_t thread;

	fair_lock_init(&lock);
	CHECK(pthread_create(&thread, NULL, take_it_all_the_time, NULL) == 0);
	while (!atomic_load(&begun))
		sleep_ms(1);
	for (unsigned i = 0; i < TAKES; i++) {
		fair_lock_take(&lock);
		taken++;
		fair_lock_release(&lock);
		sleep_ms(1);
	}
	atomic_store(&ending, true);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(passed > 0);
	fair_lock_destroy(&lock);
	printf("a lock: passed on %u times\n", passed);
}

/* A fleet whose store never answers. */

static int time_out(void)
{
	sleep_ms(TIMEOUT / WEIR_MS);
	count_turn();
	return -EIO;
}

static int silent_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	(void)self;
	(void)ttl;
	(void)session;
	(void)granted;
	return time_out();
}

static int silent_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	(void)self;
	(void)session;
	(void)granted;
	return time_out();
}

static int silent_end(struct weir_store *self, uint64_t session)
{
	(void)self;
	(void)session;
	return time_out();
}

static int silent_commit(struct weir_store *self, uint64_t session,
			 const struct weir_store_check *checks, size_t check_count,
			 const struct weir_store_write *writes, size_t write_count,
			 uint64_t *version)
{
	(void)self;
	(void)session;
	(void)checks;
	(void)check_count;
	(void)writes;
	(void)write_count;
	(void)version;
	return time_out();
}

static int silent_read(struct weir_store *self, const char *const *prefixes, size_t count,
		       weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	(void)self;
	(void)prefixes;
	(void)count;
	(void)row;
	(void)arg;
	(void)view;
	return time_out();
}

static void silent_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	(void)self;
	*caps = (struct weir_store_caps){.note = ""};
}

static void silent_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "No answer.");
}

static void silent_close(struct weir_store *self)
{
	(void)self;
}

static const struct weir_store_ops silent_ops = {
	.size = sizeof(silent_ops),
	.name = "silent",
	.begin = silent_begin,
	.keep = silent_keep,
	.end = silent_end,
	.commit = silent_commit,
	.read = silent_read,
	.caps = silent_caps,
	.error = silent_error,
	.close = silent_close,
};

static struct weir_store silent = {.ops = &silent_ops};

/* A quarter of its interval is below the timeout: refreshes that fail follow each other at once. */
static struct weir_fleet *open_fleet(void)
{
	struct weir_fleet_config config;
	struct weir_fleet *fleet;
	char why[256];

	weir_fleet_config_init(&config);
	config.store = &silent;
	config.lease = config.learning = 6 * TIMEOUT;
	config.refresh = 2 * TIMEOUT;
	CHECK(weir_fleet_open(&config, &fleet, why, sizeof(why)) == 0);
	return fleet;
}

static void check_refresh(struct weir_fleet *fleet)
{
	begin_waiting();
	CHECK(weir_fleet_refresh(fleet) == -EIO);
	end_waiting("weir_fleet_refresh()");
}

static void check_share(struct weir_fleet *fleet)
{
	struct weir_share_config config;
	struct weir_share *share;
	char why[256];

	weir_share_config_init(&config);
	config.name = "limit";
	config.capacity = 10;
	begin_waiting();
	CHECK(weir_share_join(fleet, &config, &share, why, sizeof(why)) == 0);
	end_waiting("weir_share_join()");
	begin_waiting();
	weir_share_leave(share);
	end_waiting("weir_share_leave()");
}

static void check_work(struct weir_fleet *fleet)
{
	struct weir_work_config config;
	struct weir_work *work;
	char why[256];

	weir_work_config_init(&config);
	config.name = "work";
	config.count = 4;
	begin_waiting();
	CHECK(weir_work_open(fleet, &config, &work, why, sizeof(why)) == 0);
	end_waiting("weir_work_open()");
	begin_waiting();
	weir_work_close(work);
	end_waiting("weir_work_close()");
}

int main(void)
{
	struct weir_fleet *fleet;

	check_lock();
	fleet = open_fleet();
	check_refresh(fleet);
	check_share(fleet);
	check_work(fleet);
	begin_waiting();
	weir_fleet_close(fleet);
	end_waiting("weir_fleet_close()");
	return 0;
}
