/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A database that throttles: it accepts records over HTTP until their cost in this second reaches
 * its capacity, and answers 429 to the rest.
 *
 *	weir-ingest-db --file records.db --capacity 20000
 *	curl --data-binary $'A1 some text\nA2 more\n' http://127.0.0.1:PORT/records?from=me
 *
 * The first records of a request are admitted while units are left in this second. They are
 * committed when the answer "committed N" arrives. The others are refused.
 */
#include "http.h"
#include "options.h"
#include "table.h"
#include "window.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct database {
	const char *file, *log;
	unsigned port, capacity;
	struct window window;
	struct table *table;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct database *db = state->input;

	switch (key) {
	case 'p':
		db->port = option_number(arg, 0, UINT16_MAX, state);
		return 0;
	case 'f':
		db->file = arg;
		return 0;
	case 'c':
		db->capacity = option_number(arg, 1, 1000000000, state);
		return 0;
	case 'l':
		db->log = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void read_options(struct database *db, int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"port", 'p', "N", 0, "Listen on 127.0.0.1:N (0: any free port, printed)", 0},
		{"file", 'f', "FILE", 0, "File of the database (in memory)", 0},
		{"capacity", 'c', "N", 0, "Units per second (20000)", 0},
		{"log", 'l', "FILE", 0, "Log of the units in each second (none)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.doc = "Take records over HTTP, up to a limit per second, refuse the rest.",
	};

	argp_parse(&argp, argc, argv, 0, NULL, db);
}

/* Write the first records while units are left, and refuse the others. Returns the HTTP status. */
static unsigned write_records(struct database *db, struct window_client *client, const char *text,
			      unsigned *committed)
{
	struct record_line line;
	unsigned admitted = 0;
	bool full = false;

	*committed = 0;
	if (table_begin(db->table) != 0)
		return 500;
	while (record_next(&text, &line) > 0) {
		full = full || !window_admit(&db->window, client, line.type->cost);
		if (full)
			window_refuse(&db->window, client, line.type->cost);
		else if (table_put(db->table, &line) != 0)
			return 500;
		else
			admitted++;
	}
	if (table_commit(db->table) != 0)
		return 500;
	*committed = admitted;
	return full ? 429 : 200;
}

static void take(struct database *db, const struct http_request *request,
		 struct http_answer *answer)
{
	struct window_client *client = window_request(&db->window, request->from);
	unsigned committed;

	answer->status = 400;
	if (!client || !records_are_valid(request->body))
		return;
	answer->status = write_records(db, client, request->body, &committed);
	answer->retry_after = answer->status == 429;
	(void)snprintf(answer->text, sizeof(answer->text), "committed %u\n", committed);
}

static void count(const struct database *db, char *text, size_t size)
{
	(void)snprintf(text, size,
		       "records %" PRIu64 "\nduplicates %" PRIu64 "\nsends %" PRIu64
		       "\nrefused %" PRIu64 "\n",
		       table_records(db->table), table_duplicates(db->table),
		       db->window.admitted.records + db->window.refused.records,
		       db->window.refused.records);
}

static void serve(void *arg, const struct http_request *request, struct http_answer *answer)
{
	struct database *db = arg;

	answer->status = 404;
	if (strcmp(request->url, "/records") == 0 && strcmp(request->method, "POST") == 0)
		take(db, request, answer);
	if (strcmp(request->url, "/count") == 0 && strcmp(request->method, "GET") == 0) {
		answer->status = 200;
		count(db, answer->text, sizeof(answer->text));
	}
}

int main(int argc, char **argv)
{
	struct database db = {.file = ":memory:", .log = "/dev/null", .capacity = 20000};
	char text[256];
	FILE *log;
	int error;

	read_options(&db, argc, argv);
	log = fopen(db.log, "we");
	if (!log) {
		fprintf(stderr, "weir-ingest-db: %s: %s\n", db.log, strerror(errno));
		return EXIT_FAILURE;
	}
	window_open(&db.window, db.capacity, log);
	db.table = table_open(db.file);
	if (!db.table) {
		window_close(&db.window);
		return EXIT_FAILURE;
	}
	error = http_run(db.port, serve, &db);
	window_close(&db.window);
	count(&db, text, sizeof(text));
	printf("%smost units in a second %" PRIu64 "\n", text, db.window.most);
	table_close(db.table);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
