/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All the ways in which a transfer can begin and end, and the release of its permit after each.
 */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int perform(struct weir_curl *guard, uint16_t port, const char *path, weir_dur patience,
		   CURLcode *result)
{
	const struct weir_curl_call call = {.deadline = patience > 0 ? weir_now() + patience : 0};
	CURL *easy = make_easy(port, path);
	int error = weir_curl_perform(guard, easy, &call, result);

	curl_easy_cleanup(easy);
	return error;
}

/* The outcome of each status. */
static void counts_outcomes(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(10, 10);
	const unsigned codes[] = {200, 204, 302, 400, 404, 500, 502, 429, 503, 504};
	struct weir_snapshot now;
	char path[64];
	CURLcode result;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		snprintf(path, sizeof(path), "/status?code=%u", codes[i]);
		CHECK(perform(guard, port, path, 0, &result) == 0);
		CHECK(result == CURLE_OK);
	}
	now = snapshot_of(guard, port);
	CHECK(now.succeeded == 3);
	CHECK(now.ignored == 3);
	CHECK(now.failed == 1);
	CHECK(now.dropped == 2);
	CHECK(now.timed_out == 1);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static size_t refuse_data(char *data, size_t size, size_t count, void *arg)
{
	(void)data;
	(void)size;
	(void)count;
	(void)arg;
	return 0;
}

static void counts_errors_of_the_program(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(10, 10);
	CURL *easy = make_easy(port, "/ok");
	CURLcode result;

	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, refuse_data);
	CHECK(weir_curl_perform(guard, easy, NULL, &result) == 0);
	CHECK(result == CURLE_WRITE_ERROR);
	CHECK(snapshot_of(guard, port).cancelled == 1);
	curl_easy_cleanup(easy);
	CHECK(weir_curl_destroy(guard) == 0);
}

static void counts_timeouts(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(10, 10);
	CURL *easy = make_easy(port, "/hang");
	CURLcode result;

	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30L);
	CHECK(weir_curl_perform(guard, easy, NULL, &result) == 0);
	CHECK(result == CURLE_OPERATION_TIMEDOUT);
	CHECK(snapshot_of(guard, port).timed_out == 1);
	curl_easy_cleanup(easy);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* A listening socket; its port is free again when it is closed. */
static int listen_somewhere(uint16_t *port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(bind(fd, (const struct sockaddr *)&address, size) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	*port = ntohs(address.sin_port);
	return fd;
}

/* Bound but not listening: the kernel refuses connections, and the port stays taken. */
static void counts_refused_connections(void)
{
	uint16_t port;
	const int fd = listen_somewhere(&port);
	struct weir_curl *guard = make_guard(10, 10);
	CURLcode result;

	CHECK(perform(guard, port, "/ok", 0, &result) == 0);
	CHECK(result == CURLE_COULDNT_CONNECT);
	CHECK(snapshot_of(guard, port).dropped == 1);
	check_idle(guard);
	close(fd);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* The server accepts, reads, and is killed. */
static void survives_a_killed_server(void)
{
	uint16_t port;
	const int fd = listen_somewhere(&port);
	struct weir_curl *guard = make_guard(4, 100);
	const struct weir_curl_call call = patient();
	struct weir_curl_done done;
	struct loop loop;
	char byte;
	int running = 1, ended = 0, signalled = 0, pipes[2];
	pid_t child;

	CHECK(listen(fd, 100) == 0);
	CHECK(pipe2(pipes, O_NONBLOCK | O_CLOEXEC) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 4; i++)
			if (read(accept(fd, NULL, NULL), &byte, 1) != 1)
				_exit(1);
		if (write(pipes[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(fd);
	loop_open(&loop, guard, false);
	for (int i = 0; i < 8; i++)
		CHECK(weir_curl_multi_add(loop.multi, make_easy(port, "/ok"), &call) == 0);
	while (running > 0) {
		CHECK(weir_curl_multi_perform(loop.multi, &running) == CURLM_OK);
		while (weir_curl_multi_done(loop.multi, &done)) {
			CHECK(done.error == 0);
			CHECK(done.result != CURLE_OK);
			curl_easy_cleanup(done.easy);
			ended++;
		}
		if (signalled == 0 && running > 0) {
			struct curl_waitfd extra = {.fd = pipes[0], .events = CURL_WAIT_POLLIN};

			weir_curl_multi_poll(loop.multi, &extra, 1, 300000, NULL);
			if (extra.revents != 0) {
				CHECK(read(pipes[0], &byte, 1) == 1);
				signalled = 1;
				CHECK(snapshot_of(guard, port).inflight == 4);
				CHECK(snapshot_of(guard, port).waiting == 4);
				kill(child, SIGKILL);
				waitpid(child, NULL, 0);
			}
		} else if (running > 0) {
			weir_curl_multi_poll(loop.multi, NULL, 0, 300000, NULL);
		}
	}
	CHECK(ended == 8);
	CHECK(snapshot_of(guard, port).failed == 4);  /* broken */
	CHECK(snapshot_of(guard, port).dropped == 4); /* refused */
	loop_close(&loop);
	close(pipes[0]);
	close(pipes[1]);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static void refuses_bad_input(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(1, 1);
	struct weir_curl_config config;
	struct weir_curl_call call = {.call = {.partition = 7}};
	struct weir_curl *other;
	CURL *easy = curl_easy_init();
	struct loop loop;
	char text[2 * WEIR_KEY_MAX];
	CURLcode result;

	CHECK(weir_curl_perform(guard, easy, NULL, &result) == -EINVAL);
	curl_easy_setopt(easy, CURLOPT_URL, "http://");
	CHECK(weir_curl_perform(guard, easy, NULL, &result) == -EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	curl_easy_setopt(easy, CURLOPT_URL, text);
	CHECK(weir_curl_perform(guard, easy, NULL, &result) == -ENAMETOOLONG);
	curl_easy_cleanup(easy);

	easy = make_easy(port, "/ok");
	CHECK(weir_curl_perform(guard, easy, &call, &result) == -EINVAL);
	loop_open(&loop, guard, false);
	CHECK(weir_curl_multi_add(loop.multi, easy, &call) == -EINVAL);
	call = patient();
	call.key = text;
	CHECK(weir_curl_multi_add(loop.multi, easy, &call) == -ENAMETOOLONG);
	CHECK(weir_curl_multi_remove(loop.multi, easy) == -ENOENT);
	CHECK(weir_curl_multi_add(loop.multi, easy, NULL) == 0);
	CHECK(weir_curl_multi_add(loop.multi, easy, NULL) == -EEXIST);
	CHECK(weir_curl_destroy(guard) == -EBUSY);
	CHECK(loop_run(&loop, 9, expect_ok) == 1);
	loop_close(&loop);

	weir_curl_config_init(&config);
	config.registry = weir_curl_registry(guard);
	CHECK(weir_curl_create(&config, &other) == 0);
	CHECK(weir_curl_registry(other) == weir_curl_registry(guard));
	CHECK(weir_curl_destroy(other) == 0);
	config.limiter = &(const struct weir_config){.size = sizeof(struct weir_config)};
	CHECK(weir_curl_create(&config, &other) == -EINVAL);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
	CHECK(weir_curl_destroy(NULL) == 0);
	weir_curl_multi_destroy(NULL);
}

/* A deadline without a queue is an error at once, even if a permit is free. */
static void requires_a_queue_for_a_deadline(struct server *server)
{
	struct weir_curl *guard = make_guard(10, 0);
	const struct weir_curl_call call = patient();
	CURL *easy = make_easy(server_port(server), "/ok");
	struct loop loop;
	CURLcode result;

	CHECK(weir_curl_perform(guard, easy, &call, &result) == -EINVAL);
	loop_open(&loop, guard, false);
	CHECK(weir_curl_multi_add(loop.multi, easy, &call) == -EINVAL);
	CHECK(weir_curl_multi_add(loop.multi, easy, NULL) == 0);
	CHECK(loop_run(&loop, 9, expect_ok) == 1);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

struct hanging {
	struct weir_curl *guard;
	uint16_t port;
	pthread_t thread;
};

static void *hang(void *arg)
{
	const struct hanging *h = arg;
	CURLcode result;

	CHECK(perform(h->guard, h->port, "/hang", 0, &result) == 0);
	CHECK(result == CURLE_OK);
	return NULL;
}

/* Another thread holds a permit until the server answers. */
static void begin_hanging(struct hanging *h, struct weir_curl *guard, struct server *server)
{
	*h = (struct hanging){.guard = guard, .port = server_port(server)};
	CHECK(pthread_create(&h->thread, NULL, hang, h) == 0);
	wait_busy(server, 1);
}

static void end_hanging(struct hanging *h, struct server *server)
{
	server_let_go(server);
	pthread_join(h->thread, NULL);
	server_hold_again(server);
}

static void bounds_easy_transfers(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(1, 10);
	const struct weir_curl_call other = {.key = "another"};
	const struct weir_curl_call bypass = {.call = {.flags = WEIR_CALL_BYPASS}};
	struct hanging h;
	CURLcode result;
	CURL *easy;

	begin_hanging(&h, guard, server);
	CHECK(perform(guard, port, "/ok", 0, &result) == -EAGAIN);
	CHECK(perform(guard, port, "/ok", 20 * WEIR_MS, &result) == -ETIMEDOUT);
	easy = make_easy(port, "/ok");
	CHECK(weir_curl_perform(guard, easy, &other, &result) == 0);
	CHECK(weir_curl_perform(guard, easy, &bypass, &result) == 0);
	curl_easy_cleanup(easy);
	CHECK(weir_curl_destroy(guard) == -EBUSY);
	end_hanging(&h, server);
	CHECK(perform(guard, port, "/ok", 0, &result) == 0);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* libcurl does not say what is left of it, so it is not cleaned up. */
static CURL *cancelled;

static void *hang_until_cancelled(void *arg)
{
	CURLcode result;

	CHECK(weir_curl_perform(arg, cancelled, NULL, &result) == 0);
	return NULL;
}

/* A thread that is cancelled during its transfer leaves neither a permit nor a user of the guard. */
static void releases_when_cancelled(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(1, 10);
	pthread_t thread;
	CURLcode result;
	void *end;

	cancelled = make_easy(port, "/hang");
	CHECK(pthread_create(&thread, NULL, hang_until_cancelled, guard) == 0);
	wait_busy(server, 1);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED);
	CHECK(snapshot_of(guard, port).cancelled == 1);
	check_idle(guard);
	server_let_go(server);
	wait_busy(server, 0);
	server_hold_again(server);
	CHECK(perform(guard, port, "/ok", 0, &result) == 0);
	CHECK(weir_curl_destroy(guard) == 0);
}

static void bounds_a_loop(struct server *server, bool events)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(3, 1000);
	const struct weir_curl_call call = patient();
	struct loop loop;

	loop_open(&loop, guard, events);
	for (int i = 0; i < 200; i++)
		CHECK(weir_curl_multi_add(loop.multi, make_easy(port, "/sleep?ms=2"), &call) == 0);
	CHECK(snapshot_of(guard, port).inflight == 3);
	CHECK(loop_run(&loop, 1000, expect_ok) == 200);
	CHECK(server_most(server) <= 3);
	CHECK(snapshot_of(guard, port).succeeded == 200);
	CHECK(snapshot_of(guard, port).rejected == 0);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* Another thread releases the only permit while the loop sleeps. */
static void is_woken_by_another_thread(struct server *server, bool events)
{
	struct weir_curl *guard = make_guard(1, 10);
	const struct weir_curl_call call = patient();
	struct hanging h;
	struct loop loop;

	begin_hanging(&h, guard, server);
	loop_open(&loop, guard, events);
	for (int i = 0; i < 5; i++)
		CHECK(weir_curl_multi_add(loop.multi, make_easy(h.port, "/ok"), &call) == 0);
	CHECK(snapshot_of(guard, h.port).waiting == 5);
	server_let_go(server);
	CHECK(loop_run(&loop, 10, expect_ok) == 5);
	end_hanging(&h, server);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static void expect_timeout(struct weir_curl_done *done)
{
	CHECK(done->error == -ETIMEDOUT);
	curl_easy_cleanup(done->easy);
}

static void ends_waits_at_their_deadlines(struct server *server, bool events)
{
	struct weir_curl *guard = make_guard(1, 5);
	const weir_time now = weir_now();
	struct weir_curl_call call = {0};
	CURL *easy = make_easy(server_port(server), "/ok"), *waiting;
	struct hanging h;
	struct loop loop;
	unsigned added = 0;

	begin_hanging(&h, guard, server);
	loop_open(&loop, guard, events);
	CHECK(weir_curl_multi_add(loop.multi, easy, NULL) == -EAGAIN);
	for (unsigned i = 0; i < 5; i++) {
		call.deadline = now + (500 - 100 * i) * WEIR_MS; /* the last one first */
		waiting = make_easy(h.port, "/ok");
		if (weir_curl_multi_add(loop.multi, waiting, &call) == 0)
			added++;
		else
			curl_easy_cleanup(waiting); /* its deadline has passed already */
	}
	call = patient();
	CHECK(added < 5 || weir_curl_multi_add(loop.multi, easy, &call) == -EAGAIN);
	CHECK(loop_run(&loop, 10, expect_timeout) == added);
	end_hanging(&h, server);
	CHECK(snapshot_of(guard, h.port).waiting == 0);
	loop_close(&loop);
	curl_easy_cleanup(easy);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* Remove a transfer in each of its states. */
static void remove_in_each_state(struct server *server, bool events)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(2, 10);
	const struct weir_curl_call call = patient();
	struct loop loop;
	CURL *easy[6];
	int running;

	loop_open(&loop, guard, events);
	for (int i = 0; i < 6; i++) {
		easy[i] = make_easy(port, "/hang");
		CHECK(weir_curl_multi_add(loop.multi, easy[i], &call) == 0);
	}
	while (server_busy(server) < 2) {
		if (events)
			weir_curl_multi_socket_action(loop.multi, CURL_SOCKET_TIMEOUT, 0, &running);
		weir_curl_multi_perform(loop.multi, &running);
	}
	CHECK(running == 6);
	CHECK(weir_curl_multi_remove(loop.multi, easy[0]) ==
	      0); /* in flight: another gets its permit */
	CHECK(weir_curl_multi_remove(loop.multi, easy[5]) == 0); /* waits */
	CHECK(snapshot_of(guard, port).inflight == 2);
	weir_curl_multi_perform(loop.multi, &running);
	CHECK(running == 4);
	CHECK(snapshot_of(guard, port).cancelled == 1);
	loop_close(&loop); /* two in flight, two wait */
	CHECK(snapshot_of(guard, port).cancelled == 3);
	for (int i = 0; i < 6; i++)
		curl_easy_cleanup(easy[i]);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static void removes_transfers(struct server *server)
{
	remove_in_each_state(server, false);
}

static void removes_transfers_with_events(struct server *server)
{
	remove_in_each_state(server, true);
}

/* libcurl can list its handles. */
#define KNOWS_LOST (LIBCURL_VERSION_NUM >= 0x080400)

/* Handles that are cleaned up or removed by libcurl's own functions. */
static void detects_lost_transfers(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(4, 10);
	const struct weir_curl_call call = patient();
	CURL *easy[4];
	struct loop loop;
	int running;

	loop_open(&loop, guard, false);
	for (int i = 0; i < 4; i++) {
		easy[i] = make_easy(port, "/hang");
		CHECK(weir_curl_multi_add(loop.multi, easy[i], &call) == 0);
	}
	while (server_busy(server) < 4)
		weir_curl_multi_perform(loop.multi, &running);
	curl_easy_cleanup(easy[0]);
	weir_curl_multi_perform(loop.multi, &running);
	CHECK(weir_curl_multi_lost(loop.multi) == 1);
	CHECK(snapshot_of(guard, port).inflight == (KNOWS_LOST ? 3 : 4));
	curl_multi_remove_handle(weir_curl_multi_handle(loop.multi), easy[1]);
	CHECK(weir_curl_multi_add(loop.multi, easy[1], &call) == 0); /* releases its old permit */
	CHECK(snapshot_of(guard, port).inflight == (KNOWS_LOST ? 3 : 4));
	CHECK(weir_curl_multi_lost(loop.multi) >= 1);
	for (int i = 1; i < 4; i++)
		curl_easy_cleanup(easy[i]);
	weir_curl_multi_perform(loop.multi, &running);
	CHECK(running == 0);
	CHECK(weir_curl_multi_lost(loop.multi) == 5);
	check_idle(guard);

	for (int i = 0; i < 4; i++) {
		easy[i] = make_easy(port, "/hang");
		CHECK(weir_curl_multi_add(loop.multi, easy[i], &call) == 0);
	}
	weir_curl_multi_perform(loop.multi, &running);
	for (int i = 0; i < 2; i++)
		curl_easy_cleanup(easy[i]);
	loop_close(&loop);
	for (int i = 2; i < 4; i++)
		curl_easy_cleanup(easy[i]);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static void expect_ok_and_keep(struct weir_curl_done *done)
{
	CHECK(done->error == 0);
	CHECK(done->result == CURLE_OK);
}

static void accepts_handles_again(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(1, 10);
	const struct weir_curl_call call = patient();
	CURL *easy[3];
	struct loop loop;

	for (int i = 0; i < 3; i++)
		easy[i] = make_easy(port, "/ok");
	loop_open(&loop, guard, false);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 3; i++)
			CHECK(weir_curl_multi_add(loop.multi, easy[i], &call) == 0);
		CHECK(loop_run(&loop, 3, expect_ok_and_keep) == 3);
	}
	CHECK(snapshot_of(guard, port).succeeded == 60);
	loop_close(&loop);
	for (int i = 0; i < 3; i++)
		curl_easy_cleanup(easy[i]);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static size_t add_from_within(char *data, size_t size, size_t count, void *arg)
{
	struct loop *loop = arg;
	CURL *easy = curl_easy_init();
	int running;

	(void)data;
	CHECK(weir_curl_multi_add(loop->multi, easy, NULL) == -EDEADLK);
	CHECK(weir_curl_multi_remove(loop->multi, easy) == -EDEADLK);
	CHECK(weir_curl_multi_perform(loop->multi, &running) == CURLM_RECURSIVE_API_CALL);
	curl_easy_cleanup(easy);
	return size * count;
}

static void refuses_to_recurse(struct server *server)
{
	struct weir_curl *guard = make_guard(1, 10);
	CURL *easy = make_easy(server_port(server), "/ok");
	struct loop loop;

	loop_open(&loop, guard, false);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, add_from_within);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &loop);
	CHECK(weir_curl_multi_add(loop.multi, easy, NULL) == 0);
	CHECK(loop_run(&loop, 9, expect_ok) == 1);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static enum weir_outcome add_another(void *arg, CURL *easy, CURLcode result)
{
	struct weir_curl_multi **multi = arg;
	CURL *other = curl_easy_init();

	CHECK(weir_curl_multi_add(*multi, other, NULL) == -EDEADLK);
	CHECK(weir_curl_multi_remove(*multi, easy) == -EDEADLK);
	curl_easy_cleanup(other);
	return weir_curl_outcome(easy, result);
}

static void refuses_to_recurse_in_outcome(struct server *server)
{
	struct weir_curl_config config;
	struct weir_curl *guard;
	struct loop loop;

	weir_curl_config_init(&config);
	config.outcome = add_another;
	config.arg = &loop.multi;
	CHECK(weir_curl_create(&config, &guard) == 0);
	loop_open(&loop, guard, false);
	CHECK(weir_curl_multi_add(loop.multi, make_easy(server_port(server), "/ok"), NULL) == 0);
	CHECK(loop_run(&loop, 9, expect_ok) == 1);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static void redirect(struct weir_curl *guard, uint16_t from, uint16_t to, const char *key)
{
	const struct weir_curl_call call = {.key = key};
	char path[128];
	CURLcode result;
	CURL *easy;

	snprintf(path, sizeof(path), "/redirect?to=http://127.0.0.1:%u/ok", to);
	easy = make_easy(from, path);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	CHECK(weir_curl_perform(guard, easy, &call, &result) == 0);
	CHECK(result == CURLE_OK);
	curl_easy_cleanup(easy);
}

static void counts_redirects_at_the_first_origin(struct server *server)
{
	const uint16_t port = server_port(server);
	struct server *other = server_start();
	struct weir_curl *guard = make_guard(1, 10);

	redirect(guard, port, port, NULL);
	CHECK(snapshot_of(guard, port).succeeded == 1);
	redirect(guard, port, server_port(other), NULL);
	CHECK(snapshot_of(guard, port).succeeded == 1);
	CHECK(snapshot_of(guard, port).ignored == 1);
	CHECK(limiter_of(guard, server_port(other)) == NULL);
	redirect(guard, port, server_port(other), "both");
	CHECK(snapshot_of(guard, port).admitted == 2);
	server_stop(other);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* Different spellings of a URL give the same origin. */
static void names_origins(void)
{
	const char *const same[] = {"http://ExAmple.invalid", "HTTP://example.invalid:80/x?y#z",
				    "http://user:pass@example.invalid/", "example.invalid/a"};
	struct weir_curl *guard = make_guard(1, 10);
	struct weir_limiter *limiter;
	CURL *easy = curl_easy_init();
	CURLcode result;

	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https"); /* so that nothing is sent */
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		curl_easy_setopt(easy, CURLOPT_URL, same[i]);
		CHECK(weir_curl_perform(guard, easy, NULL, &result) == 0);
		CHECK(result == CURLE_UNSUPPORTED_PROTOCOL);
	}
	CHECK(weir_registry_find(weir_curl_registry(guard), "http://example.invalid:80", 25,
				 &limiter) == 0);
	weir_registry_put(weir_curl_registry(guard), limiter);
	curl_easy_cleanup(easy);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* An origin that is closed beyond the deadline refuses the transfer. */
static void refuses_while_closed(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(10, 10);
	CURL *easy = make_easy(port, "/ok");
	struct loop loop;
	CURLcode result;

	CHECK(perform(guard, port, "/status?code=503&retry=600", 0, &result) == 0);
	CHECK(perform(guard, port, "/ok", 0, &result) == -EBUSY);
	CHECK(perform(guard, port, "/ok", WEIR_MS, &result) == -EBUSY);
	loop_open(&loop, guard, false);
	CHECK(weir_curl_multi_add(loop.multi, easy, NULL) == -EBUSY);
	curl_easy_cleanup(easy);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* A transfer is sent when the origin opens again, and not before. */
static void obeys_retry_after(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(10, 10);
	const struct weir_curl_call call = patient();
	struct loop loop;
	CURLcode result;
	weir_time closed;

	loop_open(&loop, guard, false);
	closed = weir_now();
	CHECK(perform(guard, port, "/status?code=503&retry=1", 0, &result) == 0);
	CHECK(weir_curl_multi_add(loop.multi, make_easy(port, "/ok"), &call) == 0);
	CHECK(loop_run(&loop, 9, expect_ok) == 1);
	CHECK(weir_now() - closed >= WEIR_S);
	closed = weir_now();
	CHECK(perform(guard, port, "/status?code=429&retry=1", 0, &result) == 0);
	CHECK(perform(guard, port, "/ok", 100 * WEIR_S, &result) == 0);
	CHECK(weir_now() - closed >= WEIR_S);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* A transfer that was in progress succeeds, so the origin is up and opens again. */
static void reopens_after_a_success(struct server *server)
{
	const uint16_t port = server_port(server);
	struct weir_curl *guard = make_guard(10, 10);
	const struct weir_curl_call call = patient();
	struct hanging h;
	struct loop loop;
	CURLcode result;

	begin_hanging(&h, guard, server);
	CHECK(perform(guard, port, "/status?code=503&retry=600", 0, &result) == 0);
	loop_open(&loop, guard, false);
	CHECK(weir_curl_multi_add(loop.multi, make_easy(port, "/ok"), &call) == 0);
	CHECK(perform(guard, port, "/ok", 0, &result) == -EBUSY);
	end_hanging(&h, server);
	CHECK(loop_run(&loop, 9, expect_ok) == 1);
	CHECK(perform(guard, port, "/ok", 0, &result) == 0);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static curl_socket_t open_slowly(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)arg;
	(void)purpose;
	usleep(200000);
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void note_rtt(void *arg, const struct weir_report *report)
{
	*(double *)arg = report->window.rtt;
}

/* Each sample is a window, so that its latency can be read from the report. */
static void excludes_the_time_to_connect(struct server *server)
{
	double rtt = 0;
	const struct weir_observer observer = {.window = note_rtt, .arg = &rtt};
	struct weir_curl_config config;
	struct weir_config limiter;
	struct weir_curl *guard;
	CURL *easy = make_easy(server_port(server), "/sleep?ms=20");
	curl_off_t total;
	CURLcode result;

	weir_config_init(&limiter);
	limiter.observer = &observer;
	limiter.windowing = WEIR_WINDOW_SAMPLE;
	weir_curl_config_init(&config);
	config.limiter = &limiter;
	CHECK(weir_curl_create(&config, &guard) == 0);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_slowly);
	CHECK(weir_curl_perform(guard, easy, NULL, &result) == 0);
	curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &total);
	CHECK(rtt >= 20e6);
	CHECK(rtt <= (double)total * 1e3 - 200e6);
	curl_easy_cleanup(easy);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* Capacity reserved for a share that was used becomes free by time alone. */
static void polls_for_partitions(struct server *server)
{
	const struct weir_partition partitions[] = {{.name = "live", .share = 0.5}};
	const struct weir_fixed_config fixed = {.limit = 2};
	const uint16_t port = server_port(server);
	struct weir_curl_call call = patient();
	struct weir_curl_config config;
	struct weir_config limiter;
	struct weir_curl *guard;
	struct loop loop;
	CURLcode result;
	CURL *easy;

	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.limit_config = &fixed;
	limiter.queue = 10;
	limiter.partitions = partitions;
	limiter.partition_count = 1;
	weir_curl_config_init(&config);
	config.limiter = &limiter;
	CHECK(weir_curl_create(&config, &guard) == 0);
	easy = make_easy(port, "/ok");
	call.call.partition = 1;
	CHECK(weir_curl_perform(guard, easy, &call, &result) == 0);
	curl_easy_cleanup(easy);
	call.call.partition = 0;
	loop_open(&loop, guard, true);
	easy = make_easy(port, "/hang");
	CHECK(weir_curl_multi_add(loop.multi, easy, &call) == 0);
	CHECK(weir_curl_multi_add(loop.multi, make_easy(port, "/ok"), &call) == 0);
	CHECK(loop_run(&loop, 1, expect_ok) == 1);
	CHECK(weir_curl_multi_remove(loop.multi, easy) == 0);
	curl_easy_cleanup(easy);
	loop_close(&loop);
	check_idle(guard);
	CHECK(weir_curl_destroy(guard) == 0);
}

static enum weir_outcome always_failed(void *arg, CURL *easy, CURLcode result)
{
	CHECK(easy != NULL);
	CHECK(result == CURLE_OK);
	++*(int *)arg;
	return WEIR_FAILED;
}

static void calls_the_outcome_function(struct server *server)
{
	struct weir_curl_config config;
	struct weir_curl *guard;
	CURLcode result;
	int asked = 0;

	weir_curl_config_init(&config);
	config.outcome = always_failed;
	config.arg = &asked;
	CHECK(weir_curl_create(&config, &guard) == 0);
	CHECK(perform(guard, server_port(server), "/ok", 0, &result) == 0);
	CHECK(asked == 1);
	CHECK(snapshot_of(guard, server_port(server)).failed == 1);
	CHECK(weir_curl_destroy(guard) == 0);
}

/* A removed request may reach the server later and hang there until the end. */
static void alone(void (*test)(struct server *server))
{
	struct server *server = server_start();

	CHECK(server != NULL);
	test(server);
	server_stop(server);
}

int main(void)
{
	struct server *server;

	signal(SIGPIPE, SIG_IGN);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	survives_a_killed_server(); /* forks, so it runs before threads exist */
	server = server_start();
	CHECK(server != NULL);
	bounds_a_loop(server, false); /* first, since they check the maximum so far */
	bounds_a_loop(server, true);
	counts_outcomes(server);
	counts_errors_of_the_program(server);
	alone(counts_timeouts);
	counts_refused_connections();
	refuses_bad_input(server);
	requires_a_queue_for_a_deadline(server);
	bounds_easy_transfers(server);
	releases_when_cancelled(server);
	is_woken_by_another_thread(server, false);
	is_woken_by_another_thread(server, true);
	ends_waits_at_their_deadlines(server, false);
	ends_waits_at_their_deadlines(server, true);
	alone(removes_transfers);
	alone(removes_transfers_with_events);
	alone(detects_lost_transfers);
	accepts_handles_again(server);
	refuses_to_recurse(server);
	refuses_to_recurse_in_outcome(server);
	counts_redirects_at_the_first_origin(server);
	names_origins();
	refuses_while_closed(server);
	obeys_retry_after(server);
	reopens_after_a_success(server);
	excludes_the_time_to_connect(server);
	alone(polls_for_partitions);
	calls_the_outcome_function(server);
	server_stop(server);
	curl_global_cleanup();
	return 0;
}
