/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An HTTP server that does real work, guarded by a limiter: an example of weir in a program, and
 * the server that scripts/demo overloads.
 *
 * options.c reads the command line, store.c does the work, gate.c creates the limiter, server_mhd.c
 * or server_evhttp.c is the HTTP side, guarded by an adapter, and stats.c writes statistics.
 */
#include "gate.h"
#include "options.h"
#include "server.h"
#include "stats.h"
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { EXIT_USAGE = 2 };

/* Each connection needs a descriptor, so the default of 1024 would act as a limit. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Threads started after this leave the signals to run(). */
static void block_signals(sigset_t *ending)
{
	sigemptyset(ending);
	sigaddset(ending, SIGINT);
	sigaddset(ending, SIGTERM);
	pthread_sigmask(SIG_BLOCK, ending, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static FILE *open_stats(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file) {
		fprintf(stderr, "%s: cannot write %s: %s\n", program_invocation_short_name, path,
			strerror(errno));
		return NULL;
	}
	stats_header(file);
	return file;
}

/* Write a line every 100 ms until a signal ends the program. */
static void run(const sigset_t *ending, const struct server *server,
		const struct weir_limiter *limiter, FILE *stats)
{
	const struct timespec interval = {.tv_nsec = 100 * 1000 * 1000};

	while (sigtimedwait(ending, NULL, &interval) < 0)
		if (stats)
			stats_line(stats, limiter, server_connections(server));
}

static void say_goodbye(const struct weir_limiter *limiter)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	printf("admitted %" PRIu64 ", rejected %" PRIu64 ", in flight %" PRIu32 "\n", s.admitted,
	       s.rejected + s.abandoned, s.inflight);
}

static int serve(const struct options *options, struct weir_limiter *limiter, struct store *store,
		 FILE *stats)
{
	const struct server_config config = {
		.limiter = limiter,
		.store = store,
		.port = options->port,
		.pool = options->pool,
		.wait = options->queue ? options->wait_ms * WEIR_MS : 0,
	};
	struct server *server;
	sigset_t ending;

	block_signals(&ending);
	server = server_start(&config);
	if (!server)
		return EXIT_FAILURE;
	printf("listening on 127.0.0.1:%u\n", server_port(server));
	fflush(stdout);
	run(&ending, server, limiter, stats);
	server_stop(server);
	say_goodbye(limiter);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct weir_limiter *limiter;
	struct options options;
	struct store *store;
	FILE *stats = NULL;
	int status = EXIT_FAILURE;

	options_parse(argc, argv, &options);
	raise_descriptor_limit();
	limiter = gate_create(options.limit, options.queue);
	if (!limiter)
		return EXIT_USAGE;
	store = store_create(options.rows);
	if (options.stats)
		stats = open_stats(options.stats);
	if (store && (stats || !options.stats))
		status = serve(&options, limiter, store, stats);
	if (stats)
		fclose(stats);
	if (store)
		store_destroy(store);
	weir_limiter_destroy(limiter);
	return status;
}
