/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An example of what not to do: a job processor that sends all records at once, then sends refused
 * records again after the time that the database gives, until none are left. Prints each pass.
 */
#include "options.h"
#include "streams.h"
#include "writer.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

struct naive {
	const char *redis, *database;
	unsigned count;
	struct entry *entries; /* still to be written */
	size_t left;
	struct streams streams;
	struct writer writer;
};

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct naive *naive = state->input;

	switch (key) {
	case 'r':
		naive->redis = arg;
		return 0;
	case 'd':
		naive->database = arg;
		return 0;
	case 'c':
		naive->count = option_number(arg, 1, 1000000, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void read_options(struct naive *naive, int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"redis", 'r', "HOST:PORT", 0, "Address of the queue (127.0.0.1:6379)", 0},
		{"database", 'd', "URL", 0, "URL of the database (http://127.0.0.1:8080)", 0},
		{"count", 'c', "N", 0, "Most records to take of each type (10000)", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.doc = "Write records from the queue to the database, all at once, and again.",
	};

	argp_parse(&argp, argc, argv, 0, NULL, naive);
}

static void take(void *arg, const struct entry *entry)
{
	struct naive *naive = arg;

	if (naive->left < (size_t)naive->count * RECORD_TYPES)
		naive->entries[naive->left++] = *entry;
}

/* Send a request. Written records leave the queue; refused ones are kept for the next pass. */
static int send_some(struct naive *naive, struct entry *first, size_t count, size_t *staying,
		     unsigned *pause)
{
	const struct entry *done[WRITER_RECORDS_MAX];
	struct writer_answer answer;

	for (size_t i = 0; i < count; i++)
		writer_add(&naive->writer, first[i].line);
	if (writer_send(&naive->writer, &answer) != 0)
		return -1;
	if (answer.retry_after > *pause)
		*pause = answer.retry_after;
	for (unsigned type = 0; type < RECORD_TYPES; type++) {
		size_t n = 0;

		for (size_t i = 0; i < answer.committed; i++)
			if (first[i].type == type)
				done[n++] = &first[i];
		if (streams_done(&naive->streams, type, done, n) != 0)
			return -1;
	}
	for (size_t i = answer.committed; i < count; i++)
		naive->entries[(*staying)++] = first[i];
	return 0;
}

/* Send all remaining records once. Returns the seconds to wait; -1: no answer. */
static int pass(struct naive *naive, unsigned number)
{
	const size_t sent = naive->left;
	size_t staying = 0;
	unsigned pause = 0;

	for (size_t at = 0; at < sent; at += WRITER_RECORDS_MAX) {
		const size_t rest = sent - at;

		if (send_some(naive, naive->entries + at,
			      rest < WRITER_RECORDS_MAX ? rest : WRITER_RECORDS_MAX, &staying,
			      &pause) != 0)
			return -1;
	}
	naive->left = staying;
	printf("%u\t%zu\t%zu\t%zu\n", number, sent, sent - staying, staying);
	fflush(stdout);
	return (int)pause;
}

static int run(struct naive *naive)
{
	int pause;

	if (streams_read(&naive->streams, naive->count, take, naive) != 0) {
		fputs("weir-ingest-naive: the queue does not answer\n", stderr);
		return -1;
	}
	printf("pass\tsent\taccepted\trejected\n");
	for (unsigned i = 1; naive->left > 0; i++) {
		pause = pass(naive, i);
		if (pause < 0) {
			fputs("weir-ingest-naive: the database does not answer\n", stderr);
			return -1;
		}
		nanosleep(&(struct timespec){.tv_sec = pause}, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct naive naive = {
		.redis = "127.0.0.1:6379",
		.database = "http://127.0.0.1:8080",
		.count = 10000,
	};
	int error = -1;

	read_options(&naive, argc, argv);
	signal(SIGPIPE, SIG_IGN);
	naive.entries = calloc((size_t)naive.count * RECORD_TYPES, sizeof(*naive.entries));
	if (naive.entries && streams_open(&naive.streams, naive.redis, "naive") == 0 &&
	    writer_open(&naive.writer, naive.database, "naive") == 0) {
		error = run(&naive);
		writer_close(&naive.writer);
		streams_close(&naive.streams);
	}
	free(naive.entries);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
