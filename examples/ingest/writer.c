/* SPDX-License-Identifier: BSD-2-Clause */
#include "writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The timeout of the database. */
#define PATIENCE_MS 5000L

static size_t receive(char *data, size_t size, size_t count, void *arg)
{
	struct writer *writer = arg;
	const size_t room = sizeof(writer->answer) - 1 - writer->answered;
	const size_t taken = size * count < room ? size * count : room;

	memcpy(writer->answer + writer->answered, data, taken);
	writer->answered += taken;
	return size * count;
}

int writer_open(struct writer *writer, const char *url, const char *name)
{
	char path[256];

	*writer = (struct writer){.easy = curl_easy_init()};
	(void)snprintf(path, sizeof(path), "%s/records?from=%s", url, name);
	if (writer->easy && curl_easy_setopt(writer->easy, CURLOPT_URL, path) == CURLE_OK) {
		curl_easy_setopt(writer->easy, CURLOPT_WRITEFUNCTION, receive);
		curl_easy_setopt(writer->easy, CURLOPT_WRITEDATA, writer);
		curl_easy_setopt(writer->easy, CURLOPT_TIMEOUT_MS, PATIENCE_MS);
		curl_easy_setopt(writer->easy, CURLOPT_NOSIGNAL, 1L);
		return 0;
	}
	fprintf(stderr, "%s: cannot initialize libcurl\n", program_invocation_short_name);
	writer_close(writer);
	return -1;
}

void writer_close(struct writer *writer)
{
	curl_easy_cleanup(writer->easy);
	writer->easy = NULL;
}

void writer_add(struct writer *writer, const char *line)
{
	writer->size += (size_t)snprintf(writer->body + writer->size,
					 sizeof(writer->body) - writer->size, "%s\n", line);
	writer->count++;
}

static int perform(struct writer *writer, long *status)
{
	curl_easy_setopt(writer->easy, CURLOPT_POSTFIELDS, writer->body);
	curl_easy_setopt(writer->easy, CURLOPT_POSTFIELDSIZE, (long)writer->size);
	memset(writer->answer, 0, sizeof(writer->answer));
	writer->answered = 0;
	if (curl_easy_perform(writer->easy) != CURLE_OK)
		return -1;
	curl_easy_getinfo(writer->easy, CURLINFO_RESPONSE_CODE, status);
	return *status == 200 || *status == 429 ? 0 : -1;
}

int writer_send(struct writer *writer, struct writer_answer *answer)
{
	const unsigned count = writer->count;
	curl_off_t retry_after = 0;
	long status;
	int error;

	*answer = (struct writer_answer){0};
	error = perform(writer, &status);
	writer->size = 0;
	writer->count = 0;
	if (error != 0 || sscanf(writer->answer, "committed %u", &answer->committed) != 1 ||
	    answer->committed > count) {
		answer->committed = 0;
		return -1;
	}
	curl_easy_getinfo(writer->easy, CURLINFO_RETRY_AFTER, &retry_after);
	answer->throttled = status == 429;
	answer->retry_after = (unsigned)retry_after;
	return 0;
}
