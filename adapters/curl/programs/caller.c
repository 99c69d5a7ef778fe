/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls a server on a schedule that does not depend on earlier calls, with or without a limit. Used
 * by the demo, and an example with an event loop.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <weir/curl.h>
#include <weir/weir.h>

#include "plan.h"
#include "stats.h"

static const char usage[] =
	"Usage: weir-curl-caller --plan FILE --requests FILE [OPTION]... URL\n"
	"Call a server by a plan, and write the result of each call.\n"
	"\n"
	"  --plan FILE      phases: name, start (us), seconds, calls per second\n"
	"  --requests FILE  results of calls: phase, start (us), status, latency (us)\n"
	"  --stats FILE     state of the limiter, ten times per second\n"
	"  --limit LIMIT    none, or a limit with parameters (default elastic)\n"
	"  --queue N        calls that may wait (default 256)\n"
	"  --wait MS        the longest wait of a call (default 100)\n"
	"  --patience MS    timeout of a call (default 2000)\n"
	"  --help           print this\n";

#define STATS_EVERY (100 * WEIR_MS)

enum { EVENTS = 64 };

struct options {
	const char *plan, *requests, *stats, *limit, *url;
	long patience_ms;
	weir_dur wait;
	uint32_t queue;
};

struct caller {
	struct options options;
	struct plan *plan;
	struct plan_call next;
	bool more; /* next is valid */
	FILE *requests, *stats;
	weir_time stats_due;

	struct weir_curl *guard;
	struct weir_curl_multi *multi;
	int epoll;
	weir_time alarm;
	int running;
};

static size_t discard(char *data, size_t size, size_t count, void *arg)
{
	(void)data;
	(void)arg;
	return size * count;
}

static int watch(CURL *easy, curl_socket_t socket, int what, void *arg, void *known)
{
	struct caller *c = arg;
	struct epoll_event event = {.data.fd = socket};

	(void)easy;
	(void)known;
	if ((what & CURL_POLL_IN) != 0)
		event.events |= EPOLLIN;
	if ((what & CURL_POLL_OUT) != 0)
		event.events |= EPOLLOUT;
	if (what == CURL_POLL_REMOVE)
		epoll_ctl(c->epoll, EPOLL_CTL_DEL, socket, NULL);
	else if (epoll_ctl(c->epoll, EPOLL_CTL_MOD, socket, &event) != 0)
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, socket, &event);
	return 0; /* below 0 would end all transfers */
}

static int set_alarm(CURLM *curl, long timeout_ms, void *arg)
{
	struct caller *c = arg;

	(void)curl;
	c->alarm = timeout_ms < 0 ? WEIR_FOREVER : weir_now() + (weir_time)timeout_ms * WEIR_MS;
	return 0;
}

static unsigned status_of(CURL *easy, int error, CURLcode result)
{
	long status = 0;

	if (error != 0)
		return PLAN_REFUSED;
	if (result != CURLE_OK)
		return PLAN_UNANSWERED;
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	return (unsigned)status;
}

/* A call without an answer counts with the full timeout, even if it failed earlier. */
static void finish(struct caller *c, CURL *easy, int error, CURLcode result)
{
	const unsigned status = status_of(easy, error, result);
	const uint64_t patience = (uint64_t)c->options.patience_ms * 1000;
	struct plan_call *call = NULL;
	uint64_t latency;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
	latency = plan_now() - call->at;
	plan_report(c->plan, call, status,
		    status == PLAN_UNANSWERED && latency < patience ? patience : latency,
		    c->requests);
	curl_easy_cleanup(easy);
	free(call);
}

static void begin(struct caller *c)
{
	const struct weir_curl_call wanted = {
		.deadline = c->options.queue > 0 ? weir_now() + c->options.wait : 0,
	};
	CURL *easy = curl_easy_init();
	struct plan_call *call = malloc(sizeof(*call));
	int error;

	if (easy == NULL || call == NULL) {
		fprintf(stderr, "weir-curl-caller: out of memory\n");
		exit(EXIT_FAILURE);
	}
	*call = c->next;
	curl_easy_setopt(easy, CURLOPT_URL, c->options.url);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, c->options.patience_ms);
	error = weir_curl_multi_add(c->multi, easy, &wanted);
	if (error != 0)
		finish(c, easy, error, CURLE_OK);
	else
		c->running++;
}

static void begin_due(struct caller *c)
{
	const uint64_t now = plan_now();

	while (c->more && c->next.at <= now) {
		begin(c);
		c->more = plan_next(c->plan, &c->next);
	}
}

static int sleep_ms(const struct caller *c)
{
	const weir_time now = weir_now(), until = c->alarm < c->stats_due ? c->alarm : c->stats_due;
	const uint64_t epoch = plan_now();
	const weir_dur next = c->next.at > epoch ? (c->next.at - epoch) * WEIR_US : 0;
	weir_dur left = until > now ? until - now : 0;

	if (c->more && next < left)
		left = next;
	return (int)((left + WEIR_MS - 1) / WEIR_MS);
}

static int curl_events(uint32_t events)
{
	int all = 0;

	if ((events & EPOLLIN) != 0)
		all |= CURL_CSELECT_IN;
	if ((events & EPOLLOUT) != 0)
		all |= CURL_CSELECT_OUT;
	if ((events & (EPOLLERR | EPOLLHUP)) != 0)
		all |= CURL_CSELECT_ERR;
	return all;
}

static bool show(void *arg, const void *key, size_t key_size, struct weir_limiter *limiter)
{
	struct caller *c = arg;

	(void)key;
	(void)key_size;
	stats_line(c->stats, limiter, (unsigned)c->running);
	return false;
}

static void show_stats(struct caller *c)
{
	if (weir_now() < c->stats_due)
		return;
	c->stats_due = weir_now() + STATS_EVERY;
	if (c->stats != NULL)
		weir_registry_visit(weir_curl_registry(c->guard), show, c);
}

static void turn(struct caller *c)
{
	struct epoll_event events[EVENTS];
	struct weir_curl_done done;
	int count = epoll_wait(c->epoll, events, EVENTS, sleep_ms(c));

	for (int i = 0; i < count; i++)
		weir_curl_multi_socket_action(c->multi, events[i].data.fd,
					      curl_events(events[i].events), &c->running);
	begin_due(c);
	if (c->alarm <= weir_now()) {
		c->alarm = WEIR_FOREVER;
		weir_curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &c->running);
	}
	while (weir_curl_multi_done(c->multi, &done))
		finish(c, done.easy, done.error, done.result);
	show_stats(c);
}

/* "none" is a limit that is never reached, so that both runs execute the same code. */
static int make_guard(struct caller *c)
{
	const char *text = strcmp(c->options.limit, "none") == 0 ? "fixed:limit=8388607"
								 : c->options.limit;
	alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX] = {0};
	struct weir_curl_config config;
	struct weir_config limiter;
	char why[200];

	weir_config_init(&limiter);
	if (weir_limit_from_text(text, &limiter.limit, limit_config, why, sizeof(why)) != 0) {
		fprintf(stderr, "weir-curl-caller: %s\n", why);
		return -EINVAL;
	}
	limiter.limit_config = limit_config;
	limiter.limit_config_size = limiter.limit->config_size;
	limiter.queue = c->options.queue;
	weir_curl_config_init(&config);
	config.limiter = &limiter;
	return weir_curl_create(&config, &c->guard);
}

static bool open_all(struct caller *c)
{
	c->alarm = WEIR_FOREVER;
	c->plan = plan_read(c->options.plan);
	c->requests = fopen(c->options.requests, "we");
	c->stats = c->options.stats != NULL ? fopen(c->options.stats, "we") : NULL;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->plan == NULL || c->epoll < 0 || make_guard(c) != 0)
		return false;
	if (c->requests == NULL || (c->options.stats != NULL && c->stats == NULL)) {
		perror("weir-curl-caller");
		return false;
	}
	if (c->stats != NULL)
		stats_header(c->stats);
	return weir_curl_multi_create(c->guard, &c->multi) == 0 &&
	       weir_curl_multi_sockets(c->multi, watch, c, set_alarm, c) == 0;
}

static bool add_inflight(void *arg, const void *key, size_t key_size, struct weir_limiter *limiter)
{
	(void)key;
	(void)key_size;
	*(uint32_t *)arg += weir_inflight(limiter);
	return true;
}

static void close_all(struct caller *c)
{
	uint32_t inflight = 0;

	weir_registry_visit(weir_curl_registry(c->guard), add_inflight, &inflight);
	printf("in flight %" PRIu32 "\n", inflight);
	weir_curl_multi_destroy(c->multi);
	weir_curl_destroy(c->guard);
	plan_free(c->plan);
	fclose(c->requests);
	if (c->stats != NULL)
		fclose(c->stats);
	close(c->epoll);
}

static bool read_number(const char *text, uint32_t max, uint32_t *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value > max) {
		fprintf(stderr, "weir-curl-caller: \"%s\" is not a number up to %" PRIu32 "\n",
			text, max);
		return false;
	}
	*number = (uint32_t)value;
	return true;
}

static bool take_option(struct options *options, int option)
{
	uint32_t number = 0;

	if (strchr("qwt", option) != NULL &&
	    !read_number(optarg, option == 'q' ? 65535 : 3600000, &number))
		return false;
	switch (option) {
	case 'p':
		options->plan = optarg;
		return true;
	case 'r':
		options->requests = optarg;
		return true;
	case 's':
		options->stats = optarg;
		return true;
	case 'l':
		options->limit = optarg;
		return true;
	case 'q':
		options->queue = number;
		return true;
	case 'w':
		options->wait = number * WEIR_MS;
		return true;
	case 't':
		options->patience_ms = number;
		return true;
	case 'h':
		fputs(usage, stdout);
		exit(EXIT_SUCCESS);
	default:
		return false;
	}
}

static bool read_options(struct options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"plan", required_argument, NULL, 'p'},
		{"requests", required_argument, NULL, 'r'},
		{"stats", required_argument, NULL, 's'},
		{"limit", required_argument, NULL, 'l'},
		{"queue", required_argument, NULL, 'q'},
		{"wait", required_argument, NULL, 'w'},
		{"patience", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	*options = (struct options){
		.limit = "elastic",
		.patience_ms = 2000,
		.wait = 100 * WEIR_MS,
		.queue = 256,
	};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		if (!take_option(options, option))
			return false;
	if (optind != argc - 1 || options->plan == NULL || options->requests == NULL) {
		fputs(usage, stderr);
		return false;
	}
	options->url = argv[optind];
	return true;
}

int main(int argc, char **argv)
{
	struct caller c = {0};

	if (!read_options(&c.options, argc, argv))
		return 2;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (!open_all(&c))
		return EXIT_FAILURE;
	c.more = plan_next(c.plan, &c.next);
	while (c.more || c.running > 0)
		turn(&c);
	close_all(&c);
	curl_global_cleanup();
	return EXIT_SUCCESS;
}
