/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guard a handler with as little code as possible, on libmicrohttpd.
 *
 *	example-handler [PORT]
 *
 * serves on that port of this machine (0: any, printed) until end of input.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)text,
									MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result = MHD_queue_response(connection, status, response);

	MHD_destroy_response(response);
	return result;
}

static bool work(void)
{
	return nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL) == 0;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **state)
{
	struct weir_limiter *limiter = arg;
	struct weir_token token;
	bool done;

	(void)url, (void)method, (void)version, (void)body, (void)body_size, (void)state;
	if (weir_try_acquire(limiter, &token) != 0)
		return respond(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "busy\n");
	done = work();
	weir_release(limiter, &token, done ? WEIR_SUCCESS : WEIR_IGNORE);
	return respond(connection, MHD_HTTP_OK, "done\n");
}

int main(int argc, char **argv)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct weir_limiter *limiter;
	struct MHD_Daemon *daemon;

	if (weir_limiter_create(NULL, &limiter) != 0)
		return EXIT_FAILURE;
	daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION,
				  0, NULL, NULL, handle, limiter, MHD_OPTION_SOCK_ADDR, &address,
				  MHD_OPTION_END);
	if (!daemon)
		return EXIT_FAILURE;
	printf("listening on 127.0.0.1:%u\n",
	       MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	fflush(stdout);
	while (getchar() != EOF)
		;
	MHD_stop_daemon(daemon);
	printf("in flight %u\n", weir_inflight(limiter));
	weir_limiter_destroy(limiter);
	return EXIT_SUCCESS;
}
