/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads, each with a loop of its own, and one guard. Transfers wait for each other's permits,
 * time out, are removed and end, at random moments. All permits are released at the end.
 *
 *	weir-curl-crowd TRANSFERS THREADS
 */
#include "rig.h"

#include <errno.h>
#include <signal.h>

enum { LIMIT = 3, AT_ONCE = 8 };

struct member {
	struct weir_curl *guard;
	struct server *server;
	unsigned transfers;
	uint64_t chance;
	bool events;
	unsigned served, late; /* of the transfers that ended */
};

static _Thread_local struct member *self;

static void count(struct weir_curl_done *done)
{
	if (done->error == -ETIMEDOUT)
		self->late++;
	else if (done->result == CURLE_OK)
		self->served++;
	else
		CHECK(done->result == CURLE_OPERATION_TIMEDOUT);
	curl_easy_cleanup(done->easy);
}

static CURL *add(struct loop *loop)
{
	const struct weir_curl_call call = {
		.deadline = weir_now() + draw(&self->chance) % (40 * WEIR_MS),
	};
	CURL *easy = make_easy(server_port(self->server),
			       draw(&self->chance) % 2 == 0 ? "/ok" : "/sleep?ms=2");
	int error;

	if (draw(&self->chance) % 8 == 0)
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 2L);
	error = weir_curl_multi_add(loop->multi, easy, &call);
	if (error == 0)
		return easy;
	CHECK(error == -EAGAIN);
	self->late++;
	curl_easy_cleanup(easy);
	return NULL;
}

/* Add some transfers, and perhaps remove one of them before the loop runs. */
static void *work(void *arg)
{
	struct loop loop;
	unsigned done = 0;

	self = arg;
	loop_open(&loop, self->guard, self->events);
	while (done < self->transfers) {
		CURL *easy[AT_ONCE], **given_up = &easy[draw(&self->chance) % AT_ONCE];

		for (int i = 0; i < AT_ONCE; i++)
			easy[i] = add(&loop);
		if (*given_up != NULL && draw(&self->chance) % 2 == 0) {
			CHECK(weir_curl_multi_remove(loop.multi, *given_up) == 0);
			curl_easy_cleanup(*given_up);
		}
		loop_run(&loop, UINT32_MAX, count);
		done += AT_ONCE;
	}
	loop_close(&loop);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct member members[THREADS_MAX];
	struct weir_curl *guard = make_guard(LIMIT, 1000);
	struct server *server = server_start();
	struct weir_snapshot now;
	struct crew crew;
	unsigned threads, served = 0;

	CHECK(argc == 3 && server != NULL);
	signal(SIGPIPE, SIG_IGN);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	threads = (unsigned)atoi(argv[2]);
	for (unsigned i = 0; i < threads; i++)
		members[i] = (struct member){
			.guard = guard,
			.server = server,
			.transfers = (unsigned)atoi(argv[1]) / threads,
			.chance = i + 1,
			.events = i % 2 == 1,
		};
	crew_start(&crew, threads, work, (char *)members, sizeof(members[0]));
	crew_join(&crew);
	check_idle(guard);
	now = snapshot_of(guard, server_port(server));
	for (unsigned i = 0; i < threads; i++)
		served += members[i].served;
	CHECK(served > 0 && now.succeeded == served);
	CHECK(now.admitted == now.succeeded + now.ignored + now.cancelled + now.timed_out);
	CHECK(weir_curl_destroy(guard) == 0);
	server_stop(server);
	curl_global_cleanup();
	printf("%u served, %llu timed out, %llu given up, %llu without a permit\n", served,
	       (unsigned long long)now.timed_out, (unsigned long long)now.cancelled,
	       (unsigned long long)(now.rejected + now.abandoned));
	return 0;
}
