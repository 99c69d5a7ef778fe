/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct server {
	struct MHD_Daemon *daemon;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned busy, most;
	bool let_go;
};

static unsigned number_of(struct MHD_Connection *connection, const char *name)
{
	const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);

	return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static void enter(struct server *s)
{
	pthread_mutex_lock(&s->mutex);
	if (++s->busy > s->most)
		s->most = s->busy;
	pthread_mutex_unlock(&s->mutex);
}

static void leave(struct server *s)
{
	pthread_mutex_lock(&s->mutex);
	s->busy--;
	pthread_mutex_unlock(&s->mutex);
}

static void hang(struct server *s)
{
	pthread_mutex_lock(&s->mutex);
	while (!s->let_go)
		pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status)
{
	const char *to = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "to");
	const char *retry = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "retry");
	struct MHD_Response *response = MHD_create_response_from_buffer(3, (void *)"ok\n",
									MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (to != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, to);
	if (retry != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, retry);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
	struct server *s = arg;
	unsigned status = MHD_HTTP_OK;

	(void)method;
	(void)version;
	(void)body;
	if (*state == NULL) {
		*state = s;
		return MHD_YES;
	}
	*body_size = 0;
	enter(s);
	if (strcmp(url, "/sleep") == 0)
		usleep(number_of(connection, "ms") * 1000);
	else if (strcmp(url, "/hang") == 0)
		hang(s);
	else if (strcmp(url, "/redirect") == 0)
		status = MHD_HTTP_FOUND;
	else if (strcmp(url, "/status") == 0)
		status = number_of(connection, "code");
	leave(s);
	return answer(connection, status);
}

struct server *server_start(void)
{
	struct server *s = calloc(1, sizeof(*s));
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (s == NULL)
		return NULL;
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0,
		NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&address,
		MHD_OPTION_LISTEN_BACKLOG_SIZE, 1024u, MHD_OPTION_CONNECTION_LIMIT, 1024u,
		MHD_OPTION_END);
	if (s->daemon == NULL) {
		free(s);
		return NULL;
	}
	return s;
}

void server_stop(struct server *s)
{
	server_let_go(s);
	MHD_stop_daemon(s->daemon);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

uint16_t server_port(const struct server *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

static unsigned look(const struct server *s, const unsigned *number)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)&s->mutex;
	unsigned now;

	pthread_mutex_lock(mutex);
	now = *number;
	pthread_mutex_unlock(mutex);
	return now;
}

unsigned server_busy(const struct server *s)
{
	return look(s, &s->busy);
}

unsigned server_most(const struct server *s)
{
	return look(s, &s->most);
}

static void set_let_go(struct server *s, bool let_go)
{
	pthread_mutex_lock(&s->mutex);
	s->let_go = let_go;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

void server_let_go(struct server *s)
{
	set_let_go(s, true);
}

void server_hold_again(struct server *s)
{
	set_let_go(s, false);
}
