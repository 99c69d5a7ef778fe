/* SPDX-License-Identifier: BSD-2-Clause */
#include "window.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

static int64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

void window_open(struct window *window, uint64_t capacity, FILE *log)
{
	*window = (struct window){.capacity = capacity, .log = log};
	fputs("time_ms\tfrom\tadmitted_units\trefused_units\tadmitted\trefused\n", log);
	fflush(log);
}

static void write_second(const struct window *window, const struct window_client *client)
{
	if (client->admitted.records + client->refused.records == 0)
		return;
	fprintf(window->log,
		"%" PRId64 "\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
		window->began_epoch_ms, client->name, client->admitted.units, client->refused.units,
		client->admitted.records, client->refused.records);
}

static void end_second(struct window *window)
{
	for (unsigned i = 0; i < window->client_count; i++) {
		struct window_client *client = &window->clients[i];

		write_second(window, client);
		client->admitted = (struct window_count){0};
		client->refused = (struct window_count){0};
	}
	fflush(window->log);
	if (window->used > window->most)
		window->most = window->used;
	window->used = 0;
}

void window_close(struct window *window)
{
	end_second(window);
	fclose(window->log);
}

static struct window_client *find_client(struct window *window, const char *name)
{
	struct window_client *client;

	for (unsigned i = 0; i < window->client_count; i++)
		if (strcmp(window->clients[i].name, name) == 0)
			return &window->clients[i];
	if (window->client_count == WINDOW_CLIENTS_MAX || strlen(name) >= WINDOW_NAME_MAX)
		return NULL;
	client = &window->clients[window->client_count++];
	*client = (struct window_client){0};
	memcpy(client->name, name, strlen(name) + 1);
	return client;
}

struct window_client *window_request(struct window *window, const char *name)
{
	const int64_t now = read_clock(CLOCK_MONOTONIC);

	if (window->began == 0 || now - window->began >= SECOND) {
		end_second(window);
		window->began = now;
		window->began_epoch_ms = read_clock(CLOCK_REALTIME) / 1000000;
	}
	return find_client(window, name);
}

static void count(struct window_count *of_client, struct window_count *of_all, unsigned units)
{
	of_client->records++;
	of_client->units += units;
	of_all->records++;
	of_all->units += units;
}

bool window_admit(struct window *window, struct window_client *client, unsigned units)
{
	if (window->used + units > window->capacity)
		return false;
	window->used += units;
	count(&client->admitted, &window->admitted, units);
	return true;
}

void window_refuse(struct window *window, struct window_client *client, unsigned units)
{
	count(&client->refused, &window->refused, units);
}
