/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server for the tests of the adapter for libmicrohttpd.
 *
 *	microhttpd-server MODE QUEUE WAIT_MS LIMIT [IDLE_S]
 *
 * MODE is how the daemon runs: connection, pool, select, poll, epoll, external. / takes 5 ms, of
 * the connection's thread if it has one, else as in a program that answers later. /status?code=N
 * answers with that status, /early?code=N releases first, as a timeout; /health and /stats are not
 * limited; /nonsense is of a partition that does not exist. Connections may idle for IDLE_S, or 60
 * s. It serves until it gets a signal.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <weir/microhttpd.h>
#include <weir/weir.h>

struct mode {
	const char *name;
	unsigned flags;
	unsigned pool;
	bool later;
};

static const struct mode modes[] = {
	{"connection", MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, false},
	{"pool", MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 8,
	 true},
	{"select", MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, true},
	{"poll", MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME, 0,
	 true},
	{"epoll", MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0,
	 true},
	{"external", MHD_ALLOW_SUSPEND_RESUME, 0, true},
};

static const struct timespec work = {.tv_nsec = 5 * 1000 * 1000};

struct server {
	int wake_fd; /* wakes a loop of the program's own */
	sigset_t ending;
	struct weir_limiter *limiter;
	const struct mode *mode;
	atomic_int later; /* requests that a thread processes */
	atomic_bool stopping;
	atomic_ulong completed;
	atomic_ulong handled;
};

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)text,
									MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result = MHD_queue_response(connection, status, response);

	MHD_destroy_response(response);
	return result;
}

static void print_stats(const struct server *server, char *text, size_t size)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(server->limiter, &s);
	snprintf(text, size,
		 "admitted %" PRIu64 "\nrejected %" PRIu64 "\nabandoned %" PRIu64
		 "\nsucceeded %" PRIu64 "\nignored %" PRIu64 "\ndropped %" PRIu64
		 "\ntimed_out %" PRIu64 "\ncancelled %" PRIu64 "\nfailed %" PRIu64
		 "\ndouble_released %" PRIu64 "\nwaiting %" PRIu32 "\nhandled %lu\ncompleted %lu\n"
		 "in flight %" PRIu32 "\n",
		 s.admitted, s.rejected, s.abandoned, s.succeeded, s.ignored, s.dropped,
		 s.timed_out, s.cancelled, s.failed, s.double_released, s.waiting,
		 atomic_load(&server->handled), atomic_load(&server->completed), s.inflight);
}

struct job {
	struct server *server;
	struct MHD_Connection *connection;
};

static void ring(void *arg)
{
	const struct server *server = arg;

	(void)eventfd_write(server->wake_fd, 1);
}

static void *work_later(void *arg)
{
	struct job *job = arg;

	nanosleep(&work, NULL);
	MHD_resume_connection(job->connection);
	ring(job->server);
	atomic_fetch_sub(&job->server->later, 1);
	free(job);
	return NULL;
}

static bool begin_later(struct server *server, struct MHD_Connection *connection)
{
	struct job *job = malloc(sizeof(*job));
	pthread_t thread;

	if (!job)
		return false;
	*job = (struct job){.server = server, .connection = connection};
	MHD_suspend_connection(connection);
	atomic_fetch_add(&server->later, 1);
	if (pthread_create(&thread, NULL, work_later, job) != 0) {
		atomic_fetch_sub(&server->later, 1);
		MHD_resume_connection(connection);
		free(job);
		return false;
	}
	pthread_detach(thread);
	return true;
}

static enum MHD_Result work_on(struct server *server, struct MHD_Connection *connection,
			       void **state)
{
	static char begun;

	if (!server->mode->later) {
		nanosleep(&work, NULL);
		return respond(connection, MHD_HTTP_OK, "done\n");
	}
	if (*state == &begun || atomic_load(&server->stopping))
		return respond(connection, MHD_HTTP_OK, "done\n");
	*state = &begun;
	return begin_later(server, connection) ? MHD_YES : MHD_NO;
}

static unsigned wanted_code(struct MHD_Connection *connection)
{
	const char *code = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "code");

	return code ? (unsigned)strtoul(code, NULL, 10) : MHD_HTTP_OK;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
	static char begun;
	struct server *server = arg;
	char text[1024];

	(void)method, (void)version, (void)body;
	if (!*state) {
		atomic_fetch_add(&server->handled, 1);
		*state = &begun;
		return MHD_YES;
	}
	if (*body_size) {
		*body_size = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/status") == 0)
		return respond(connection, wanted_code(connection), "as you like\n");
	if (strcmp(url, "/early") == 0) {
		weir_release(server->limiter, weir_microhttpd_token(state), WEIR_TIMED_OUT);
		return respond(connection, MHD_HTTP_OK, "early\n");
	}
	if (strcmp(url, "/break") == 0)
		return MHD_NO;
	if (strcmp(url, "/") == 0)
		return work_on(server, connection, state);
	print_stats(server, text, sizeof(text));
	return respond(connection, MHD_HTTP_OK, text);
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode end)
{
	struct server *server = arg;

	(void)connection, (void)state, (void)end;
	atomic_fetch_add(&server->completed, 1);
}

static bool classify(void *arg, struct MHD_Connection *connection, const char *url,
		     const char *method, struct weir_call *call)
{
	(void)arg, (void)connection, (void)method;
	if (strcmp(url, "/nonsense") == 0)
		call->partition = 77;
	return strcmp(url, "/health") != 0 && strcmp(url, "/stats") != 0;
}

static struct weir_limiter *make_limiter(const char *text, unsigned queue)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX] = {0};
	struct weir_limiter *limiter = NULL;
	struct weir_config config;
	char why[200];

	weir_config_init(&config);
	if (weir_limit_from_text(text, &config.limit, limit_config, why, sizeof(why)) != 0)
		return NULL;
	config.limit_config = limit_config;
	config.limit_config_size = config.limit->config_size;
	config.queue = queue;
	/* The oldest waiter polls now and then, so it must not be the one that is granted. */
	config.order = WEIR_LIFO;
	return weir_limiter_create(&config, &limiter) == 0 ? limiter : NULL;
}

static struct MHD_Daemon *start(const struct mode *mode, struct weir_microhttpd *guard,
				unsigned idle)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct MHD_OptionItem pool[] = {
		{mode->pool ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, mode->pool, NULL},
		{MHD_OPTION_END, 0, NULL},
	};

	return MHD_start_daemon(mode->flags, 0, NULL, NULL, weir_microhttpd_handle, guard,
				MHD_OPTION_NOTIFY_COMPLETED, weir_microhttpd_completed, guard,
				MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&address,
				MHD_OPTION_CONNECTION_LIMIT, 900u, MHD_OPTION_CONNECTION_TIMEOUT,
				idle, MHD_OPTION_ARRAY, pool, MHD_OPTION_END);
}

/* One round of the program's own loop. Without a wakeup it would sleep for long. */
static void run_once(struct server *server, struct MHD_Daemon *daemon)
{
	struct timeval patience = {.tv_sec = 60};
	fd_set reading, writing, failing;
	MHD_UNSIGNED_LONG_LONG timeout;
	int max = server->wake_fd;
	eventfd_t rung;

	FD_ZERO(&reading);
	FD_ZERO(&writing);
	FD_ZERO(&failing);
	FD_SET(server->wake_fd, &reading);
	MHD_get_fdset(daemon, &reading, &writing, &failing, &max);
	if (MHD_get_timeout(daemon, &timeout) == MHD_YES && timeout < 60000)
		patience = (struct timeval){.tv_sec = (time_t)(timeout / 1000),
					    .tv_usec = (suseconds_t)(timeout % 1000 * 1000)};
	if (select(max + 1, &reading, &writing, &failing, &patience) < 0)
		return;
	if (FD_ISSET(server->wake_fd, &reading))
		(void)eventfd_read(server->wake_fd, &rung);
	MHD_run_from_select(daemon, &reading, &writing, &failing);
}

static void *end_loop(void *arg)
{
	struct server *server = arg;

	sigwaitinfo(&server->ending, NULL);
	atomic_store(&server->stopping, true);
	ring(server);
	return NULL;
}

static void serve(struct server *server, struct MHD_Daemon *daemon)
{
	pthread_t thread;

	if (server->mode->flags & MHD_USE_INTERNAL_POLLING_THREAD) {
		sigwaitinfo(&server->ending, NULL);
		return;
	}
	if (pthread_create(&thread, NULL, end_loop, server) != 0)
		return;
	while (!atomic_load(&server->stopping))
		run_once(server, daemon);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	struct server server = {.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	struct weir_microhttpd_config config;
	struct weir_microhttpd *guard;
	struct MHD_Daemon *daemon;
	char text[1024];

	if (argc < 5)
		return 2;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			server.mode = &modes[i];
	server.limiter = make_limiter(argv[4], (unsigned)atoi(argv[2]));
	if (!server.mode || !server.limiter)
		return 2;
	sigemptyset(&server.ending);
	sigaddset(&server.ending, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &server.ending, NULL);
	signal(SIGPIPE, SIG_IGN);

	weir_microhttpd_config_init(&config);
	config.limiter = server.limiter;
	config.handler = handle;
	config.handler_arg = &server;
	config.completed = completed;
	config.completed_arg = &server;
	config.classify = classify;
	config.resumed = ring;
	config.resumed_arg = &server;
	config.wait = (weir_dur)atoi(argv[3]) * WEIR_MS;
	if (weir_microhttpd_config_check(&config, text, sizeof(text)) != 0)
		fprintf(stderr, "%s\n", text);
	if (weir_microhttpd_create(&config, &guard) != 0)
		return 1;
	daemon = start(server.mode, guard, argc > 5 ? (unsigned)atoi(argv[5]) : 60);
	if (!daemon)
		return 1;
	printf("listening on 127.0.0.1:%u\n",
	       MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	fflush(stdout);
	serve(&server, daemon);

	atomic_store(&server.stopping, true);
	weir_microhttpd_stop(guard);
	while (atomic_load(&server.later) > 0)
		nanosleep(&work, NULL);
	MHD_stop_daemon(daemon);
	weir_microhttpd_destroy(guard);
	print_stats(&server, text, sizeof(text));
	fputs(text, stdout);
	weir_limiter_destroy(server.limiter);
	close(server.wake_fd);
	return 0;
}
