/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The API: takes records over HTTP and puts them into the durable queue as fast as they arrive. A
 * 202 answer means that the records are in the queue. The API does not depend on the database or
 * its limit.
 */
#include "http.h"
#include "options.h"
#include "streams.h"

#include <string.h>

struct api {
	const char *redis;
	unsigned port;
	struct streams streams;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct api *api = state->input;

	switch (key) {
	case 'p':
		api->port = option_number(arg, 0, UINT16_MAX, state);
		return 0;
	case 'r':
		api->redis = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void read_options(struct api *api, int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"port", 'p', "N", 0, "Listen on 127.0.0.1:N (0: any free port, printed)", 0},
		{"redis", 'r', "HOST:PORT", 0, "Address of the queue (127.0.0.1:6379)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.doc = "Take records over HTTP, one per line, and put them into a durable queue.",
	};

	argp_parse(&argp, argc, argv, 0, NULL, api);
}

static void serve(void *arg, const struct http_request *request, struct http_answer *answer)
{
	struct api *api = arg;

	if (strcmp(request->url, "/records") != 0 || strcmp(request->method, "POST") != 0)
		answer->status = 404;
	else if (!records_are_valid(request->body))
		answer->status = 400;
	else if (streams_add(&api->streams, request->body) == 0)
		answer->status = 202;
	else
		*answer = (struct http_answer){.status = 503, .retry_after = 1};
}

int main(int argc, char **argv)
{
	struct api api = {.redis = "127.0.0.1:6379"};
	int error;

	read_options(&api, argc, argv);
	if (streams_open(&api.streams, api.redis, NULL) != 0)
		return EXIT_FAILURE;
	error = http_run(api.port, serve, &api);
	streams_close(&api.streams);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
