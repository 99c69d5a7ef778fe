/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a permit in an event loop of one's own: epoll, and an eventfd that a grant signals.
 *
 *	example-epoll [PORT]
 *
 * serves on that port of this machine (0: any, printed) until SIGTERM. One thread does all I/O. The
 * limited work takes 5 ms of one of 16 other threads, which release the permit when it is done, so
 * grants come from these threads. A request without a free permit waits for up to 50 ms. The HTTP
 * is minimal: a request has no body, and its answer fits into the socket buffer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <weir/wait.h>
#include <weir/weir.h>

enum { WORKERS = 16, EVENTS = 64 };

#define PATIENCE (50 * WEIR_MS)

static const char done[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";
static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
			   "Content-Length: 5\r\n\r\nbusy\n";

enum state { READING, WAITING, WORKING };

struct client {
	int fd;
	enum state state;
	bool gone; /* closed; freed when no worker uses it */
	struct weir_wait wait;
	struct weir_token token;
	weir_time deadline;
	struct client *next,
		*prev; /* in the list of waiting clients; next also in that of closed ones */
	LIST_ENTRY(client) others;
	size_t got;
	char text[4096];
};

struct loop {
	struct weir_limiter *limiter;
	int epoll, listener, signals;
	int wake;         /* an eventfd: a waiting client was granted a permit */
	int jobs[2];      /* pipes for clients: to the workers, */
	int finished[2];  /* and back */
	unsigned working; /* jobs that have not returned */
	bool ending;
	struct client *oldest, *newest; /* waiting clients, in the order of deadlines */
	struct client *dead;
	LIST_HEAD(, client) clients; /* all of them */
	pthread_t workers[WORKERS];
};

/* The workers. */

static void *work(void *arg)
{
	const struct loop *loop = arg;
	struct client *client;

	while (read(loop->jobs[0], &client, sizeof(client)) == sizeof(client)) {
		nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
		weir_release(loop->limiter, &client->token, WEIR_SUCCESS);
		if (write(loop->finished[1], &client, sizeof(client)) != sizeof(client))
			abort();
	}
	return NULL;
}

/* Clients. */

static void watch(struct loop *loop, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = what};

	epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void list(struct loop *loop, struct client *client)
{
	client->next = NULL;
	client->prev = loop->newest;
	*(loop->newest ? &loop->newest->next : &loop->oldest) = client;
	loop->newest = client;
}

static void unlist(struct loop *loop, struct client *client)
{
	*(client->prev ? &client->prev->next : &loop->oldest) = client->next;
	*(client->next ? &client->next->prev : &loop->newest) = client->prev;
}

static void release(struct client *client)
{
	LIST_REMOVE(client, others);
	if (!client->gone)
		close(client->fd);
	free(client);
}

/* Freed after this round, because remaining events may refer to the client. */
static void bury(struct loop *loop, struct client *client)
{
	client->next = loop->dead;
	loop->dead = client;
}

static void hang_up(struct loop *loop, struct client *client)
{
	if (client->gone)
		return;
	client->gone = true;
	close(client->fd);
	if (client->state == WAITING) {
		unlist(loop, client);
		if (weir_cancel(loop->limiter, &client->wait, &client->token) == -EALREADY)
			weir_release(loop->limiter, &client->token, WEIR_CANCELLED);
	}
	if (client->state != WORKING)
		bury(loop, client);
}

static void answer(struct loop *loop, struct client *client, const char *text)
{
	client->state = READING;
	client->got = 0;
	if (client->gone)
		bury(loop, client);
	else if (send(client->fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		hang_up(loop, client);
}

static void begin(struct loop *loop, struct client *client)
{
	client->state = WORKING;
	loop->working++;
	if (write(loop->jobs[1], &client, sizeof(client)) != sizeof(client))
		abort();
}

/* Waiting. */

/* Runs in the thread that releases a permit. Only wakes the loop. */
static void granted(void *arg)
{
	const struct loop *loop = arg;

	(void)eventfd_write(loop->wake, 1);
}

static void ask(struct loop *loop, struct client *client)
{
	int error = loop->ending ? -ESHUTDOWN
				 : weir_acquire_or_enqueue(loop->limiter, NULL, granted, loop,
							   &client->wait, &client->token);

	if (error == 0) {
		begin(loop, client);
	} else if (error == -EINPROGRESS) {
		client->state = WAITING;
		client->deadline = weir_now() + PATIENCE;
		list(loop, client);
	} else {
		answer(loop, client, busy);
	}
}

/* After a wakeup, each waiting client polls for its permit. */
static void answer_bell(struct loop *loop)
{
	struct client *client, *next;
	eventfd_t rung;

	(void)eventfd_read(loop->wake, &rung);
	for (client = loop->oldest; client; client = next) {
		next = client->next;
		if (weir_poll(loop->limiter, &client->wait, &client->token) != 0)
			continue;
		unlist(loop, client);
		begin(loop, client);
	}
}

/* The deadline, or the end. A permit that arrived at the last moment is used. */
static void give_up(struct loop *loop, struct client *client)
{
	unlist(loop, client);
	if (weir_cancel(loop->limiter, &client->wait, &client->token) == -EALREADY)
		begin(loop, client);
	else
		answer(loop, client, busy);
}

static int ms_to_deadline(const struct loop *loop)
{
	const weir_time now = weir_now();

	if (!loop->oldest)
		return -1;
	if (loop->oldest->deadline <= now)
		return 0;
	return (int)((loop->oldest->deadline - now) / WEIR_MS) + 1;
}

/* The loop. */

static void accept_client(struct loop *loop)
{
	int fd = accept4(loop->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client *client;

	if (fd < 0)
		return;
	client = calloc(1, sizeof(*client));
	if (!client) {
		close(fd);
		return;
	}
	client->fd = fd;
	LIST_INSERT_HEAD(&loop->clients, client, others);
	watch(loop, fd, client);
}

static void read_request(struct loop *loop, struct client *client)
{
	const size_t room = sizeof(client->text) - 1 - client->got;
	ssize_t n = recv(client->fd, client->text + client->got, room, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		hang_up(loop, client);
		return;
	}
	client->got += (size_t)n;
	client->text[client->got] = '\0';
	if (strstr(client->text, "\r\n\r\n"))
		ask(loop, client);
	else if (client->got == sizeof(client->text) - 1)
		hang_up(loop, client);
}

static void answer_finished(struct loop *loop)
{
	struct client *client;

	if (read(loop->finished[0], &client, sizeof(client)) != sizeof(client))
		return;
	loop->working--;
	answer(loop, client, done);
}

static void end(struct loop *loop)
{
	loop->ending = true;
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, loop->signals, NULL);
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, loop->listener, NULL);
	while (loop->oldest)
		give_up(loop, loop->oldest);
}

static void handle(struct loop *loop, const struct epoll_event *event)
{
	void *what = event->data.ptr;
	struct client *client = what;

	if (what == &loop->wake)
		answer_bell(loop);
	else if (what == &loop->finished)
		answer_finished(loop);
	else if (what == &loop->listener)
		accept_client(loop);
	else if (what == &loop->signals)
		end(loop);
	else if (client->gone)
		return;
	else if (client->state == READING)
		read_request(loop, client);
	else if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		hang_up(loop, client);
}

static void run(struct loop *loop)
{
	struct epoll_event events[EVENTS];
	struct client *client;
	int n;

	while (!loop->ending || loop->working > 0) {
		n = epoll_wait(loop->epoll, events, EVENTS, ms_to_deadline(loop));
		for (int i = 0; i < n; i++)
			handle(loop, &events[i]);
		while (loop->oldest && loop->oldest->deadline <= weir_now())
			give_up(loop, loop->oldest);
		while ((client = loop->dead)) {
			loop->dead = client->next;
			release(client);
		}
	}
}

static bool listen_on(struct loop *loop, uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);

	loop->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (loop->listener < 0 || bind(loop->listener, (struct sockaddr *)&address, size) != 0 ||
	    listen(loop->listener, 4096) != 0 ||
	    getsockname(loop->listener, (struct sockaddr *)&address, &size) != 0)
		return false;
	printf("listening on 127.0.0.1:%u\n", ntohs(address.sin_port));
	fflush(stdout);
	return true;
}

static bool start(struct loop *loop, uint16_t port)
{
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	loop->signals = signalfd(-1, &ending, SFD_CLOEXEC);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->signals < 0 || loop->epoll < 0 || loop->wake < 0 ||
	    pipe2(loop->jobs, O_CLOEXEC) != 0 || pipe2(loop->finished, O_CLOEXEC) != 0 ||
	    !listen_on(loop, port))
		return false;
	watch(loop, loop->signals, &loop->signals);
	watch(loop, loop->wake, &loop->wake);
	watch(loop, loop->finished[0], &loop->finished);
	watch(loop, loop->listener, &loop->listener);
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&loop->workers[i], NULL, work, loop) != 0)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct loop loop = {.working = 0};
	struct client *client;
	struct weir_config config;

	weir_config_init(&config);
	config.queue = 100;
	if (weir_limiter_create(&config, &loop.limiter) != 0 ||
	    !start(&loop, (uint16_t)(argc > 1 ? atoi(argv[1]) : 0)))
		return EXIT_FAILURE;
	run(&loop);
	while ((client = LIST_FIRST(&loop.clients)))
		release(client);
	close(loop.jobs[1]); /* ends the workers */
	for (int i = 0; i < WORKERS; i++)
		pthread_join(loop.workers[i], NULL);
	printf("in flight %u\n", weir_inflight(loop.limiter));
	weir_limiter_destroy(loop.limiter);
	return EXIT_SUCCESS;
}
