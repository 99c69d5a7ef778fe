/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"
#include "late_commit.h"

static void *copy(const void *from, size_t size)
{
	void *to = malloc(size > 0 ? size : 1);

	CHECK(to != NULL);
	return size > 0 ? memcpy(to, from, size) : to;
}

struct late_commit *late_commit_new(uint64_t session, const struct weir_store_check *checks,
				    size_t check_count, const struct weir_store_write *writes,
				    size_t write_count)
{
	const struct late_commit commit = {
		.session = session,
		.checks = copy(checks, check_count * sizeof(*checks)),
		.writes = copy(writes, write_count * sizeof(*writes)),
		.check_count = check_count,
		.write_count = write_count,
	};

	for (size_t i = 0; i < check_count; i++)
		commit.checks[i].key = copy(checks[i].key, strlen(checks[i].key) + 1);
	for (size_t i = 0; i < write_count; i++) {
		commit.writes[i].key = copy(writes[i].key, strlen(writes[i].key) + 1);
		if (writes[i].value != NULL)
			commit.writes[i].value = copy(writes[i].value, writes[i].size);
	}
	return copy(&commit, sizeof(commit));
}

int late_commit_arrive(struct late_commit *commit, struct weir_store *store)
{
	const int r = weir_store_commit(store, commit->session, commit->checks, commit->check_count,
					commit->writes, commit->write_count, NULL);

	late_commit_free(commit);
	return r;
}

void late_commit_free(struct late_commit *commit)
{
	if (commit == NULL)
		return;
	for (size_t i = 0; i < commit->check_count; i++)
		free((void *)commit->checks[i].key);
	for (size_t i = 0; i < commit->write_count; i++) {
		free((void *)commit->writes[i].key);
		free((void *)commit->writes[i].value);
	}
	free(commit->checks);
	free(commit->writes);
	free(commit);
}
