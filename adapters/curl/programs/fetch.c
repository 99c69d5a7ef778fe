/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetch URLs, with an adaptive limit on the transfers to each server.
 *
 *	weir-curl-fetch URL...
 *
 * prints a line for each: its status, why it was not sent, or how it failed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/curl.h>

static size_t discard(char *data, size_t size, size_t count, void *arg)
{
	(void)data;
	(void)arg;
	return size * count;
}

static void finish(CURL *easy, int error, CURLcode result)
{
	char *url = NULL;
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (error != 0)
		printf("%s: not sent: %s\n", url,
		       error == -ETIMEDOUT ? "no permit in time" : "busy");
	else if (result != CURLE_OK)
		printf("%s: %s\n", url, curl_easy_strerror(result));
	else
		printf("%s: %ld\n", url, status);
	curl_easy_cleanup(easy);
}

static void begin(struct weir_curl_multi *multi, const char *url)
{
	const struct weir_curl_call call = {.deadline = weir_now() + 10 * WEIR_S};
	CURL *easy = curl_easy_init();
	int error;

	if (easy == NULL)
		return;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 2000L);
	error = weir_curl_multi_add(multi, easy, &call);
	if (error != 0)
		finish(easy, error, CURLE_OK);
}

static void run(struct weir_curl_multi *multi)
{
	struct weir_curl_done done;
	int running = 1;

	while (running > 0) {
		weir_curl_multi_perform(multi, &running);
		while (weir_curl_multi_done(multi, &done))
			finish(done.easy, done.error, done.result);
		if (running > 0)
			weir_curl_multi_poll(multi, NULL, 0, 1000, NULL);
	}
}

int main(int argc, char **argv)
{
	struct weir_curl *guard = NULL;
	struct weir_curl_multi *multi = NULL;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (weir_curl_create(NULL, &guard) != 0 || weir_curl_multi_create(guard, &multi) != 0)
		return EXIT_FAILURE;
	for (int i = 1; i < argc; i++)
		begin(multi, argv[i]);
	run(multi);
	weir_curl_multi_destroy(multi);
	weir_curl_destroy(guard);
	curl_global_cleanup();
	return EXIT_SUCCESS;
}
