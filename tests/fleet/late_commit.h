/* SPDX-License-Identifier: BSD-2-Clause */
/* A copy of a commit that arrives at its store after its sender has given it up. */
#ifndef WEIR_TESTS_FLEET_LATE_COMMIT_H
#define WEIR_TESTS_FLEET_LATE_COMMIT_H

#include <weir/store.h>

struct late_commit {
	uint64_t session;
	struct weir_store_check *checks;
	struct weir_store_write *writes;
	size_t check_count, write_count;
};

struct late_commit *late_commit_new(uint64_t session, const struct weir_store_check *checks,
				    size_t check_count, const struct weir_store_write *writes,
				    size_t write_count);

/* Carry it out, and free it. Returns what weir_store_commit() returned. */
int late_commit_arrive(struct late_commit *commit, struct weir_store *store);

/* NULL: none. */
void late_commit_free(struct late_commit *commit);

#endif
