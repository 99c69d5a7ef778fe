/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct weir_curl *make_guard(uint32_t limit, uint32_t queue)
{
	const struct weir_fixed_config fixed = {.limit = limit};
	struct weir_curl_config config;
	struct weir_config limiter;
	struct weir_curl *guard;

	weir_config_init(&limiter);
	limiter.limit = &weir_fixed;
	limiter.limit_config = &fixed;
	limiter.queue = queue;
	weir_curl_config_init(&config);
	config.limiter = &limiter;
	CHECK(weir_curl_create(&config, &guard) == 0);
	return guard;
}

struct weir_limiter *limiter_of(const struct weir_curl *guard, uint16_t port)
{
	struct weir_registry *registry = weir_curl_registry(guard);
	struct weir_limiter *limiter;
	char key[64];
	int length = snprintf(key, sizeof(key), "http://127.0.0.1:%u", port);

	if (weir_registry_find(registry, key, (size_t)length, &limiter) != 0)
		return NULL;
	weir_registry_put(registry, limiter);
	return limiter;
}

struct weir_snapshot snapshot_of(const struct weir_curl *guard, uint16_t port)
{
	struct weir_snapshot now;

	weir_snapshot_init(&now);
	CHECK(limiter_of(guard, port) != NULL);
	weir_snapshot_take(limiter_of(guard, port), &now);
	return now;
}

static bool is_idle(void *arg, const void *key, size_t key_size, struct weir_limiter *limiter)
{
	struct weir_snapshot now;

	(void)arg;
	(void)key;
	(void)key_size;
	weir_snapshot_init(&now);
	weir_snapshot_take(limiter, &now);
	CHECK(now.inflight == 0);
	CHECK(now.waiting == 0);
	CHECK(now.double_released == 0);
	return true;
}

void check_idle(const struct weir_curl *guard)
{
	weir_registry_visit(weir_curl_registry(guard), is_idle, NULL);
}

static size_t discard(char *data, size_t size, size_t count, void *arg)
{
	(void)data;
	(void)arg;
	return size * count;
}

CURL *make_easy(uint16_t port, const char *path)
{
	CURL *easy = curl_easy_init();
	char url[256];

	CHECK(easy != NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", port, path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	return easy;
}

struct weir_curl_call patient(void)
{
	return (struct weir_curl_call){.deadline = weir_now() + 300 * WEIR_S};
}

void wait_busy(const struct server *server, unsigned count)
{
	while (server_busy(server) != count)
		usleep(1000);
}

static int watch(CURL *easy, curl_socket_t socket, int what, void *arg, void *known)
{
	struct loop *loop = arg;
	struct epoll_event event = {.data.fd = socket};

	(void)easy;
	if ((what & CURL_POLL_IN) != 0)
		event.events |= EPOLLIN;
	if ((what & CURL_POLL_OUT) != 0)
		event.events |= EPOLLOUT;
	if (what == CURL_POLL_REMOVE)
		epoll_ctl(loop->epoll, EPOLL_CTL_DEL, socket, NULL);
	else if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, socket, &event) != 0)
		epoll_ctl(loop->epoll, EPOLL_CTL_ADD, socket, &event);
	if (known == NULL)
		weir_curl_multi_assign(loop->multi, socket, loop);
	return 0; /* below 0 would end all transfers */
}

static int set_alarm(CURLM *curl, long timeout_ms, void *arg)
{
	struct loop *loop = arg;

	(void)curl;
	loop->alarm = timeout_ms < 0 ? WEIR_FOREVER : weir_now() + (weir_time)timeout_ms * WEIR_MS;
	return 0;
}

void loop_open(struct loop *loop, struct weir_curl *guard, bool events)
{
	*loop = (struct loop){.epoll = -1, .alarm = WEIR_FOREVER};
	CHECK(weir_curl_multi_create(guard, &loop->multi) == 0);
	if (!events)
		return;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK(weir_curl_multi_sockets(loop->multi, watch, loop, set_alarm, loop) == 0);
	CHECK(weir_curl_multi_sockets(loop->multi, watch, loop, set_alarm, loop) == -EINVAL);
}

void loop_close(struct loop *loop)
{
	weir_curl_multi_destroy(loop->multi);
	if (loop->epoll >= 0)
		close(loop->epoll);
}

static int events_of(const struct epoll_event *event)
{
	int events = 0;

	if ((event->events & EPOLLIN) != 0)
		events |= CURL_CSELECT_IN;
	if ((event->events & EPOLLOUT) != 0)
		events |= CURL_CSELECT_OUT;
	if ((event->events & (EPOLLERR | EPOLLHUP)) != 0)
		events |= CURL_CSELECT_ERR;
	return events;
}

/* The longest it sleeps is long enough for a test to be stuck if a wake is lost. */
static int sleep_ms(const struct loop *loop)
{
	const weir_time now = weir_now();

	if (loop->alarm <= now)
		return 0;
	return loop->alarm - now < 300 * WEIR_S ? (int)((loop->alarm - now) / WEIR_MS) + 1 : 300000;
}

static void act(struct loop *loop, curl_socket_t socket, int events, int *running)
{
	CHECK(weir_curl_multi_socket_action(loop->multi, socket, events, running) == CURLM_OK);
}

static void turn_events(struct loop *loop, int *running)
{
	struct epoll_event events[16];
	int count = epoll_wait(loop->epoll, events, 16, sleep_ms(loop));

	for (int i = 0; i < count; i++)
		act(loop, events[i].data.fd, events_of(&events[i]), running);
	if (loop->alarm <= weir_now()) {
		loop->alarm = WEIR_FOREVER;
		act(loop, CURL_SOCKET_TIMEOUT, 0, running);
	}
}

unsigned loop_run(struct loop *loop, unsigned enough, void (*on_end)(struct weir_curl_done *done))
{
	struct weir_curl_done done;
	unsigned ended = 0;
	int running = 1;

	while (running > 0 && ended < enough) {
		if (loop->epoll >= 0)
			turn_events(loop, &running);
		else
			CHECK(weir_curl_multi_perform(loop->multi, &running) == CURLM_OK);
		while (weir_curl_multi_done(loop->multi, &done)) {
			on_end(&done);
			ended++;
		}
		if (loop->epoll < 0 && running > 0 && ended < enough)
			CHECK(weir_curl_multi_poll(loop->multi, NULL, 0, 300000, NULL) == CURLM_OK);
	}
	CHECK(weir_curl_multi_lost(loop->multi) == 0);
	return ended;
}

void expect_ok(struct weir_curl_done *done)
{
	long status = 0;

	CHECK(done->error == 0);
	CHECK(done->result == CURLE_OK);
	curl_easy_getinfo(done->easy, CURLINFO_RESPONSE_CODE, &status);
	CHECK(status == 200);
	curl_easy_cleanup(done->easy);
}
