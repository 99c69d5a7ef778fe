/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP/2: many transfers share one connection, each with a permit.
 *
 *	weir-curl-streams URL
 */
#include "rig.h"

#include <signal.h>

enum { LIMIT = 7, TRANSFERS = 500 };

static unsigned connections;
static struct weir_curl *guard;

static void expect_stream_ok(struct weir_curl_done *done)
{
	long version = 0, made = 0;

	fprintf(stderr, "%d %d\n", done->error, done->result);
	curl_easy_getinfo(done->easy, CURLINFO_HTTP_VERSION, &version);
	curl_easy_getinfo(done->easy, CURLINFO_NUM_CONNECTS, &made);
	CHECK(version == CURL_HTTP_VERSION_2_0);
	connections += (unsigned)made;
	expect_ok(done);
}

static void expect_ok_and_keep(struct weir_curl_done *done)
{
	CHECK(done->error == 0 && done->result == CURLE_OK);
}

static bool add_up(void *arg, const void *key, size_t key_size, struct weir_limiter *limiter)
{
	struct weir_snapshot *all = arg;

	(void)key;
	(void)key_size;
	weir_snapshot_init(all);
	weir_snapshot_take(limiter, all);
	return true;
}

static CURL *make_stream(const char *url)
{
	CURL *easy = make_easy(0, "");

	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	return easy;
}

int main(int argc, char **argv)
{
	const struct weir_curl_call call = patient();
	struct weir_snapshot now;
	struct loop loop;
	CURL *given_up[3];

	CHECK(argc == 2);
	signal(SIGPIPE, SIG_IGN);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	guard = make_guard(LIMIT, 2 * TRANSFERS);
	loop_open(&loop, guard, true);
	for (int i = 0; i < TRANSFERS; i++)
		CHECK(weir_curl_multi_add(loop.multi, make_stream(argv[1]), &call) == 0);
	CHECK(weir_registry_visit(weir_curl_registry(guard), add_up, &now) == 1);
	CHECK(now.inflight == LIMIT);
	CHECK(now.waiting == TRANSFERS - LIMIT);
	CHECK(loop_run(&loop, UINT32_MAX, expect_stream_ok) == TRANSFERS);
	CHECK(connections == 1);

	/* Streams are reset one by one, and with their connection. */
	for (int i = 0; i < 3; i++) {
		given_up[i] = make_stream(argv[1]);
		CHECK(weir_curl_multi_add(loop.multi, given_up[i], &call) == 0);
	}
	CHECK(weir_curl_multi_remove(loop.multi, given_up[0]) == 0);
	CHECK(loop_run(&loop, 1, expect_ok_and_keep) >= 1);
	loop_close(&loop);
	for (int i = 0; i < 3; i++)
		curl_easy_cleanup(given_up[i]);
	check_idle(guard);
	weir_registry_visit(weir_curl_registry(guard), add_up, &now);
	CHECK(now.succeeded >= TRANSFERS + 1);
	CHECK(now.admitted == TRANSFERS + 3);
	CHECK(weir_curl_destroy(guard) == 0);
	curl_global_cleanup();
	return 0;
}
