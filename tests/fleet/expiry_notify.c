/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expiry_notify: callbacks report a share's units, and the loss of partitions, when a lease ends,
 * although the fleet's thread is waiting for a store that does not answer; and calls return
 * meanwhile.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <weir/work.h>

#include "../stress/check.h"
#include "server.h"

#define CAPACITY   100
#define PARTITIONS 4

/* A store that hangs while a flag is set. */
struct slow {
	struct weir_store store; /* first */
	struct weir_store *real;
	_Atomic bool hangs, hung;
};

static struct slow *slow_of(struct weir_store *store)
{
	struct slow *slow = (struct slow *)store;

	while (atomic_load(&slow->hangs)) {
		atomic_store(&slow->hung, true);
		sleep_ms(1);
	}
	return slow;
}

static int slow_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	return weir_store_begin(slow_of(self)->real, ttl, session, granted);
}

static int slow_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	return weir_store_keep(slow_of(self)->real, session, granted);
}

static int slow_end(struct weir_store *self, uint64_t session)
{
	return weir_store_end(slow_of(self)->real, session);
}

static int slow_commit(struct weir_store *self, uint64_t session,
		       const struct weir_store_check *checks, size_t check_count,
		       const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	return weir_store_commit(slow_of(self)->real, session, checks, check_count, writes,
				 write_count, version);
}

static int slow_read(struct weir_store *self, const char *const *prefixes, size_t count,
		     weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	return weir_store_read(slow_of(self)->real, prefixes, count, row, arg, view);
}

static void slow_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(slow_of(self)->real, caps);
}

static void slow_error(struct weir_store *self, char *text, size_t size)
{
	weir_store_error(slow_of(self)->real, text, size);
}

static const struct weir_store_ops slow_ops = {
	.size = sizeof(slow_ops),
	.name = "slow",
	.begin = slow_begin,
	.keep = slow_keep,
	.end = slow_end,
	.commit = slow_commit,
	.read = slow_read,
	.caps = slow_caps,
	.error = slow_error,
};

static _Atomic uint64_t units;

static void hear(void *arg, uint64_t new_units)
{
	(void)arg;
	atomic_store(&units, new_units);
}

static _Atomic uint64_t owned;

static void gain(void *arg, uint32_t partition, uint64_t fence)
{
	(void)arg;
	(void)partition;
	(void)fence;
	atomic_fetch_add(&owned, 1);
}

static void lose(void *arg, uint32_t partition, uint64_t fence, bool forced)
{
	(void)arg;
	(void)partition;
	(void)fence;
	CHECK(forced);
	atomic_fetch_sub(&owned, 1);
}

/* Leases that have ended, as changes of state. */
static _Atomic uint64_t lost;

static void change(void *arg, const struct weir_share_change *change)
{
	CHECK(arg == &lost && strcmp(change->name, "limit") == 0 && change->missed == 0);
	if (change->to != WEIR_SHARE_LOST)
		return;
	CHECK(change->units == 0 && change->reason[0] != '\0');
	atomic_fetch_add(&lost, 1);
}

static void wait_for(const _Atomic uint64_t *word, uint64_t expected)
{
	unsigned tries = 0;

	while (atomic_load(word) != expected) {
		CHECK(++tries < 200000);
		sleep_ms(1);
	}
}

static struct weir_work *open_partitions(struct weir_fleet *fleet)
{
	struct weir_work_config config;
	struct weir_work *work;

	weir_work_config_init(&config);
	config.name = "work";
	config.count = PARTITIONS;
	config.on_gain = gain;
	config.on_lost = lose;
	CHECK(weir_work_open(fleet, &config, &work, NULL, 0) == 0);
	return work;
}

/* These calls return while the fleet's thread waits for the store, and the lease has ended. */
static void ask(struct weir_fleet *fleet, struct weir_share *share)
{
	char key[WEIR_SHARE_KEY_SIZE], text[64];
	struct weir_share_info info;
	struct weir_store_check check;

	weir_share_info_init(&info);
	weir_share_info_take(share, &info);
	CHECK(info.state == WEIR_SHARE_LOST && info.units == 0 && info.capacity == CAPACITY);
	CHECK(weir_share_fence(share, &check, key) == -ESTALE);
	weir_fleet_error(fleet, text, sizeof(text));
}

int main(void)
{
	struct slow slow = {.store = {.ops = &slow_ops}};
	struct weir_fleet_config config;
	struct weir_share_config share_config;
	struct weir_fleet *fleet;
	struct weir_work *work;
	struct weir_share *share;

	alarm(120);
	CHECK(weir_store_open(NULL, &slow.real, NULL, 0) == 0);
	weir_fleet_config_init(&config);
	config.store = &slow.store;
	config.lease = 300 * WEIR_MS;
	config.on_change = change;
	config.on_change_arg = &lost;
	CHECK(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	weir_share_config_init(&share_config);
	share_config.name = "limit";
	share_config.capacity = CAPACITY;
	share_config.apply = hear;
	CHECK(weir_share_join(fleet, &share_config, &share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
	work = open_partitions(fleet);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t lost_before;

		wait_for(&units, CAPACITY);
		wait_for(&owned, PARTITIONS);
		lost_before = atomic_load(&lost);
		atomic_store(&slow.hung, false);
		atomic_store(&slow.hangs, true);
		wait_for(&units, 0);
		CHECK(weir_share_units(share) == 0);
		wait_for(&owned, 0);
		CHECK(weir_work_owned(work) == 0);
		while (!atomic_load(&slow.hung))
			sleep_ms(1);
		ask(fleet, share);
		while (atomic_load(&lost) == lost_before)
			sleep_ms(1);
		atomic_store(&slow.hangs, false);
	}
	wait_for(&units, CAPACITY);
	weir_share_leave(share);
	weir_fleet_close(fleet);
	weir_store_close(slow.real);
	printf("notified of the end of each lease\n");
	return 0;
}
