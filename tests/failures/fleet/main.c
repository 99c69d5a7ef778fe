/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of libweir-fleet that allocates, maps, opens, sends or starts a thread. The argument
 * is the kind of store: memory, shm, redis or etcd; with the latter two, the store's own functions.
 */
#include <stdio.h>

#include "../../fleet/server.h"
#include "../../fleet/test_store.h"
#include "fleet.h"

const char *kind;
bool remote;

/* Of stores without a server. */
static const struct failure_table *const local_failures[] = {
	&share_failures, &limit_failures,   &region_failures,
	&work_failures,  &batcher_failures, &metrics_failures,
};

/* Only a store in memory needs nothing, and only a server is without an answer. */
static void adapt(const struct failure_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		if (strcmp(kind, "memory") != 0)
			table->cases[i].quiet = false;
		for (struct instead *at = table->cases[i].instead; at->kinds != 0; at++)
			if (at->kinds == CLIENT && !remote)
				*at = (struct instead)UNEXAMINED;
	}
}

static void run(const struct failure_table *table, int argc, char **argv)
{
	adapt(table);
	(void)cases_run(table->cases, table->count, argc, argv);
}

static void run_local(int argc, char **argv)
{
	for (size_t i = 0; i < COUNT(local_failures); i++)
		run(local_failures[i], argc, argv);
}

static int list_all(int argc, char **argv)
{
	(void)cases_run(store_failures.cases, store_failures.count, argc, argv);
	for (size_t i = 0; i < COUNT(local_failures); i++)
		(void)cases_run(local_failures[i]->cases, local_failures[i]->count, argc, argv);
	return 0;
}

static void start(struct server *server)
{
	server_start(server, kind[0] == 'e' ? SERVER_ETCD : SERVER_REDIS);
	(void)snprintf(address, sizeof(address), "%s://127.0.0.1:%u", kind, server->port);
	new_name();
	while (open_store() != 0)
		sleep_ms(20);
	end_store();
}

int main(int argc, char **argv)
{
	static struct server server;

	if (argc > 1 && strcmp(argv[1], "--list") == 0)
		return list_all(argc, argv);
	CHECK(argc > 1);
	kind = argv[1];
	remote = strcmp(kind, "redis") == 0 || strcmp(kind, "etcd") == 0;
	/* hiredis aborts without memory. */
	if (strcmp(kind, "redis") == 0)
		fault_only_in("libweir");
	/* Its requests make hundreds of allocations, and it syncs its file for each commit. */
	if (strcmp(kind, "etcd") == 0)
		cases_only_single();
	if (remote)
		start(&server);
	run(&store_failures, argc - 1, argv + 1);
	if (strcmp(kind, "shm") == 0)
		run(&existing_store_failures, argc - 1, argv + 1);
	if (remote)
		server_end(&server);
	else
		run_local(argc - 1, argv + 1);
	return 0;
}
