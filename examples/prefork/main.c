/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An HTTP server of several processes that share one limiter. The parent opens a socket, creates
 * the limiter and forks workers; each worker attaches to the limiter (worker.c). The parent serves
 * no requests. It replaces workers that die, and recovers their permits.
 *
 *	weir-prefork --workers 4 --name /frontend
 *	weir top /frontend
 */
#include "worker.h"

#include <argp.h>
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The interval of checks for dead workers. */
#define REAP_EVERY (100 * WEIR_MS)

/* The shortest time between the starts of a worker. */
#define AGAIN_AFTER (100 * WEIR_MS)

/* Bursts wait in the kernel as connections. */
#define BACKLOG 4096

struct child {
	pid_t pid; /* 0: there is none */
	weir_time begun;
};

struct server {
	unsigned workers, rows, port;
	struct worker worker; /* passed to each worker */
	struct weir_config config;
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	struct child children[WORKERS_MAX];
	struct weir_limiter *limiter; /* the parent's handle, for reaping */
	bool ending;
	unsigned deaths, lost;
};

static unsigned number(const char *text, unsigned min, unsigned max, struct argp_state *state)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || *text == '-' || n < min || n > max)
		argp_error(state, "%s is not a number from %u to %u", text, min, max);
	return (unsigned)n;
}

static void set_limit(struct server *server, const char *text, struct argp_state *state)
{
	char why[200];

	if (weir_limit_from_text(text, &server->config.limit, server->limit_config, why,
				 sizeof(why)) != 0)
		argp_error(state, "%s", why);
	server->config.limit_config = server->limit_config;
	server->config.limit_config_size = server->config.limit->config_size;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct server *server = state->input;

	switch (key) {
	case 'p':
		server->port = number(arg, 0, UINT16_MAX, state);
		return 0;
	case 'w':
		server->workers = number(arg, 1, WORKERS_MAX / 2, state);
		return 0;
	case 'n':
		server->worker.name = arg;
		return 0;
	case 'l':
		set_limit(server, arg, state);
		return 0;
	case 'r':
		server->rows = number(arg, 1, 10000000, state);
		return 0;
	case 'q':
		server->config.queue = number(arg, 0, UINT16_MAX, state);
		return 0;
	case 'W':
		server->worker.wait = number(arg, 0, 60000, state) * WEIR_MS;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void read_options(struct server *server, int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"port", 'p', "N", 0, "Listen on 127.0.0.1:N (0: any free port, printed)", 0},
		{"workers", 'w', "N", 0, "Processes that serve (4)", 0},
		{"name", 'n', "NAME", 0, "Name of the shared limiter (/prefork)", 0},
		{"limit", 'l', "LIMIT", 0, "Such as vegas, or vegas:max=200 (elastic)", 0},
		{"queue", 'q', "N", 0, "Requests that may wait for a permit (0)", 0},
		{"wait", 'W', "MS", 0, "Longest wait of a request (100, with a queue)", 0},
		{"rows", 'r', "N", 0, "Rows of the database (400000)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.doc = "Serve sales reports from several processes that share one limiter: GET "
		       "/report, and /report?class=batch for requests that can wait.",
	};

	argp_parse(&argp, argc, argv, 0, NULL, server);
	if (server->config.queue == 0)
		server->worker.wait = 0;
}

/* Each connection needs a descriptor, so the default of 1024 would act as a limit. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* One socket for all: any worker may accept a connection that waits in it. */
static int listen_on(unsigned port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	fprintf(stderr, "weir-prefork: port %u: %s\n", port, strerror(errno));
	return -1;
}

static unsigned port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	return getsockname(fd, (struct sockaddr *)&address, &size) == 0 ? ntohs(address.sin_port)
									: 0;
}

static _Noreturn void be_worker(const struct server *server, unsigned slot)
{
	struct worker worker = server->worker;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	worker.config = &server->config;
	worker.slot = slot;
	exit(worker_run(&worker));
}

static void begin_worker(struct server *server, unsigned slot)
{
	struct child *child = &server->children[slot];
	const weir_time now = weir_now();

	if (child->pid != 0 || server->ending ||
	    (child->begun != 0 && now - child->begun < AGAIN_AFTER))
		return;
	child->begun = now;
	fflush(stdout);
	child->pid = fork();
	if (child->pid == 0)
		be_worker(server, slot);
	if (child->pid < 0) {
		fprintf(stderr, "weir-prefork: %s\n", strerror(errno));
		child->pid = 0;
	}
}

static void note_death(struct server *server, unsigned slot, int status)
{
	struct child *child = &server->children[slot];
	const struct slot *had = &server->worker.board->slots[slot];
	const unsigned connections = atomic_load(&had->connections);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		printf("worker %d died, with %u connections and %u requests at work\n",
		       (int)child->pid, connections, atomic_load(&had->at_work));
		server->deaths++;
		server->lost += connections;
	}
	board_clear(server->worker.board, slot);
	child->pid = 0;
}

static void take_note_of_deaths(struct server *server)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < server->workers; i++)
			if (server->children[i].pid == pid)
				note_death(server, i, status);
}

/* Recover what dead workers held; what was in transition when they died follows later. */
static void reap(struct server *server)
{
	struct board *board = server->worker.board;
	struct weir_shm_reaped reaped;

	atomic_store(&board->removing, true);
	if (weir_shm_reap(server->limiter, &reaped) == 0 && reaped.processes + reaped.found > 0)
		printf("reaped %u, with %u permits, and %u lost ones\n", reaped.processes,
		       reaped.permits, reaped.found);
	take_note_of_deaths(server);
	atomic_store(&board->removing, false);
}

static bool has_workers(const struct server *server)
{
	for (unsigned i = 0; i < server->workers; i++)
		if (server->children[i].pid != 0)
			return true;
	return false;
}

static void end_workers(struct server *server)
{
	server->ending = true;
	for (unsigned i = 0; i < server->workers; i++)
		if (server->children[i].pid != 0)
			kill(server->children[i].pid, SIGTERM);
}

static void run(struct server *server, const sigset_t *signals)
{
	const struct timespec every = {.tv_nsec = (long)REAP_EVERY};
	int number;

	do {
		for (unsigned i = 0; i < server->workers; i++)
			begin_worker(server, i);
		number = sigtimedwait(signals, NULL, &every);
		if (number == SIGTERM || number == SIGINT)
			end_workers(server);
		reap(server);
		fflush(stdout);
	} while (!server->ending || has_workers(server));
}

static void say_goodbye(const struct server *server)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(server->limiter, &s);
	printf("%u workers died with %u connections; at most %u requests were at work\n",
	       server->deaths, server->lost, atomic_load(&server->worker.board->most));
	printf("admitted %" PRIu64 ", rejected %" PRIu64 ", in flight %" PRIu32 "\n", s.admitted,
	       s.rejected + s.abandoned, s.inflight);
}

static int serve(struct server *server)
{
	sigset_t signals;
	char why[256];

	if (weir_shm_open(server->worker.name, 0600, &server->config, WORKERS_MAX, &server->limiter,
			  why, sizeof(why)) != 0) {
		fprintf(stderr, "weir-prefork: %s\n", why);
		return EXIT_FAILURE;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	printf("listening on 127.0.0.1:%u\n", port_of(server->worker.listener));
	run(server, &signals);
	say_goodbye(server);
	weir_shm_detach(server->limiter);
	shm_unlink(server->worker.name);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static const struct weir_partition partitions[] = {
		{.name = "live", .share = 0.7},
		{.name = "batch", .share = 0.2, .cap = 0.5},
	};
	static struct server server = {
		.workers = 4,
		.rows = 400000,
		.worker = {.name = "/prefork", .wait = 100 * WEIR_MS},
	};
	int status = EXIT_FAILURE;

	weir_config_init(&server.config);
	server.config.partitions = partitions;
	server.config.partition_count = 2;
	read_options(&server, argc, argv);
	raise_descriptor_limit();
	server.worker.listener = listen_on(server.port);
	if (server.worker.listener < 0)
		return EXIT_FAILURE;
	server.worker.board = board_create();
	server.worker.store = store_create(server.rows);
	if (server.worker.board && server.worker.store)
		status = serve(&server);
	if (server.worker.store)
		store_destroy(server.worker.store);
	close(server.worker.listener);
	return status;
}
