/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a permit in libuv: an async handle that a grant signals, and a timer.
 *
 *	example-libuv [PORT]
 *
 * serves on that port of this machine (0: any, printed) until SIGTERM. The limited work takes 5 ms
 * of a thread of libuv's pool, which releases the permit when it is done, so grants come from these
 * threads. A request without a free permit waits for up to 50 ms. The HTTP is minimal: a request
 * has no body.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include <weir/wait.h>
#include <weir/weir.h>

#define PATIENCE_MS 50

static char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";
static char busy[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
		     "Content-Length: 5\r\n\r\nbusy\n";

struct server {
	struct weir_limiter *limiter;
	uv_loop_t loop;
	uv_tcp_t listener;
	uv_signal_t ending;
	uv_async_t wake;        /* a waiting client was granted a permit */
	struct client *clients; /* all of them */
	bool ended;
};

enum state { READING, WAITING, WORKING };

struct client {
	struct server *server;
	struct client *next, *prev;
	uv_tcp_t tcp;
	uv_timer_t deadline;
	uv_work_t work;
	uv_write_t write;
	enum state state;
	int handles; /* that are not closed */
	bool gone;   /* freed when no thread works for it */
	struct weir_wait wait;
	struct weir_token token;
	size_t got;
	char text[4096];
};

/* The end of a client. */

static void free_if_unused(struct client *client)
{
	if (!client->gone || client->handles > 0 || client->state == WORKING)
		return;
	*(client->prev ? &client->prev->next : &client->server->clients) = client->next;
	if (client->next)
		client->next->prev = client->prev;
	free(client);
}

static void closed(uv_handle_t *handle)
{
	struct client *client = handle->data;

	client->handles--;
	free_if_unused(client);
}

static void hang_up(struct client *client)
{
	struct weir_limiter *limiter = client->server->limiter;

	if (client->gone)
		return;
	client->gone = true;
	if (client->state == WAITING &&
	    weir_cancel(limiter, &client->wait, &client->token) == -EALREADY)
		weir_release(limiter, &client->token, WEIR_CANCELLED);
	if (client->state == WAITING)
		client->state = READING;
	uv_close((uv_handle_t *)&client->deadline, closed);
	uv_close((uv_handle_t *)&client->tcp, closed);
}

static void written(uv_write_t *write, int status)
{
	if (status != 0)
		hang_up(write->data);
}

static void answer(struct client *client, char *text)
{
	uv_buf_t buffer = uv_buf_init(text, (unsigned)strlen(text));

	client->state = READING;
	client->got = 0;
	if (client->gone)
		free_if_unused(client);
	else if (uv_write(&client->write, (uv_stream_t *)&client->tcp, &buffer, 1, written) != 0)
		hang_up(client);
}

/* The work. */

/* A thread of libuv's pool. */
static void work(uv_work_t *request)
{
	struct client *client = request->data;

	nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
	weir_release(client->server->limiter, &client->token, WEIR_SUCCESS);
}

static void worked(uv_work_t *request, int status)
{
	(void)status;
	answer(request->data, done);
}

static void begin(struct client *client)
{
	client->state = WORKING;
	uv_timer_stop(&client->deadline);
	uv_queue_work(&client->server->loop, &client->work, work, worked);
}

/* Waiting. */

/* Runs in the thread that releases a permit. Only wakes the loop. */
static void granted(void *arg)
{
	struct server *server = arg;

	uv_async_send(&server->wake);
}

/* After a wakeup, each waiting client polls for its permit. */
static void poll_waiting(uv_async_t *wake)
{
	struct server *server = wake->data;

	for (struct client *client = server->clients; client; client = client->next)
		if (client->state == WAITING &&
		    weir_poll(server->limiter, &client->wait, &client->token) == 0)
			begin(client);
}

/* The deadline, or the end. A permit that arrived at the last moment is used. */
static void give_up(uv_timer_t *deadline)
{
	struct client *client = deadline->data;

	if (weir_cancel(client->server->limiter, &client->wait, &client->token) == -EALREADY)
		begin(client);
	else
		answer(client, busy);
}

static void ask(struct client *client)
{
	struct server *server = client->server;
	int error = server->ended ? -ESHUTDOWN
				  : weir_acquire_or_enqueue(server->limiter, NULL, granted, server,
							    &client->wait, &client->token);

	if (error == 0) {
		begin(client);
	} else if (error == -EINPROGRESS) {
		client->state = WAITING;
		uv_timer_start(&client->deadline, give_up, PATIENCE_MS, 0);
	} else {
		answer(client, busy);
	}
}

/* The loop. */

static void provide(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct client *client = handle->data;

	(void)suggested;
	*buffer = uv_buf_init(client->text + client->got,
			      (unsigned)(sizeof(client->text) - 1 - client->got));
}

static void read_some(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct client *client = stream->data;

	(void)buffer;
	if (n < 0) {
		hang_up(client); /* in any state */
		return;
	}
	client->got += (size_t)n;
	client->text[client->got] = '\0';
	if (client->state == READING && strstr(client->text, "\r\n\r\n"))
		ask(client);
}

static void accept_client(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;
	struct client *client = status == 0 ? calloc(1, sizeof(*client)) : NULL;

	if (!client)
		return;
	client->server = server;
	client->tcp.data = client->deadline.data = client->work.data = client->write.data = client;
	client->next = server->clients;
	if (client->next)
		client->next->prev = client;
	server->clients = client;
	client->handles = 2;
	uv_tcp_init(&server->loop, &client->tcp);
	uv_timer_init(&server->loop, &client->deadline);
	if (uv_accept(listener, (uv_stream_t *)&client->tcp) != 0 ||
	    uv_read_start((uv_stream_t *)&client->tcp, provide, read_some) != 0)
		hang_up(client);
}

/* Close all clients; work that has begun is finished. */
static void end(uv_signal_t *ending, int number)
{
	struct server *server = ending->data;
	struct client *client, *next;

	(void)number;
	server->ended = true;
	uv_close((uv_handle_t *)&server->listener, NULL);
	uv_close((uv_handle_t *)&server->ending, NULL);
	uv_unref((uv_handle_t *)&server->wake);
	for (client = server->clients; client; client = next) {
		next = client->next;
		hang_up(client);
	}
}

static bool start(struct server *server, int port)
{
	struct sockaddr_in address;
	int size = sizeof(address);

	uv_ip4_addr("127.0.0.1", port, &address);
	if (uv_loop_init(&server->loop) != 0 ||
	    uv_tcp_init(&server->loop, &server->listener) != 0 ||
	    uv_tcp_bind(&server->listener, (struct sockaddr *)&address, 0) != 0 ||
	    uv_async_init(&server->loop, &server->wake, poll_waiting) != 0 ||
	    uv_signal_init(&server->loop, &server->ending) != 0)
		return false;
	server->listener.data = server->wake.data = server->ending.data = server;
	if (uv_listen((uv_stream_t *)&server->listener, 4096, accept_client) != 0 ||
	    uv_signal_start(&server->ending, end, SIGTERM) != 0 ||
	    uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &size) != 0)
		return false;
	printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
	fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	struct server server = {.ended = false};
	struct weir_config config;

	signal(SIGPIPE, SIG_IGN);
	weir_config_init(&config);
	config.queue = 100;
	if (weir_limiter_create(&config, &server.limiter) != 0 ||
	    !start(&server, argc > 1 ? atoi(argv[1]) : 0))
		return EXIT_FAILURE;
	uv_run(&server.loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&server.wake, NULL);
	uv_run(&server.loop, UV_RUN_DEFAULT);
	uv_loop_close(&server.loop);
	printf("in flight %u\n", weir_inflight(server.limiter));
	weir_limiter_destroy(server.limiter);
	return EXIT_SUCCESS;
}
