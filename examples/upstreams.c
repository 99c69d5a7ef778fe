/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of several services, with one limiter for each: an overloaded service does not delay
 * calls to the others.
 *
 *	example-upstreams
 *
 * The services are functions in this program, each with a fixed capacity. Eight threads call each
 * of them, and a table at the end shows the results.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#define CLIENTS 8   /* threads per service */
#define CALLS   400 /* per thread */

/* A simulated remote service. */
struct upstream {
	const char *host;
	int capacity; /* calls at once; it refuses others */
	long answer_ns;
	uint32_t agreed; /* the agreed number of calls at once; 0: the limit is adaptive */
	_Atomic int busy;
};

enum { SEARCH, IMAGES, GONE, METERED, UPSTREAMS };

static struct upstream upstreams[] = {
	[SEARCH] = {.host = "search.example.net", .capacity = 5, .answer_ns = 1000000},
	[IMAGES] = {.host = "images.example.net", .capacity = 2, .answer_ns = 500000},
	[GONE] = {.host = "gone.example.net", .capacity = 0, .answer_ns = 500000},
	[METERED] = {.host = "metered.example.net",
		     .capacity = 3,
		     .answer_ns = 500000,
		     .agreed = 3},
};

/* One call: 0 after an answer, else an errno. */
static int call(struct upstream *upstream)
{
	const struct timespec answer = {.tv_nsec = upstream->answer_ns};
	int before = atomic_fetch_add(&upstream->busy, 1);

	nanosleep(&answer, NULL);
	atomic_fetch_sub(&upstream->busy, 1);
	return before < upstream->capacity ? 0 : ECONNREFUSED;
}

static int guarded_call(struct weir_registry *registry, struct upstream *upstream)
{
	struct weir_limiter *limiter;
	struct weir_token token;
	int error;

	error = weir_registry_get(registry, upstream->host, strlen(upstream->host), &limiter);
	if (error != 0)
		return -error;
	error = EBUSY; /* not sent: try another service, or later */
	if (weir_try_acquire(limiter, &token) == 0) {
		error = call(upstream);
		weir_release(limiter, &token, error == 0 ? WEIR_SUCCESS : WEIR_DROPPED);
	}
	weir_registry_put(registry, limiter);
	return error;
}

struct client {
	pthread_t thread;
	struct weir_registry *registry;
	struct upstream *upstream;
};

static void *client_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct client *client = arg;

	for (int i = 0; i < CALLS; i++)
		if (guarded_call(client->registry, client->upstream) != 0)
			nanosleep(&pause, NULL); /* a program would try another service */
	return NULL;
}

/* Returns 0 if all threads were started. */
static int call_all(struct weir_registry *registry)
{
	struct client clients[CLIENTS * UPSTREAMS];
	size_t count;

	for (count = 0; count < CLIENTS * UPSTREAMS; count++) {
		clients[count] = (struct client){
			.registry = registry,
			.upstream = &upstreams[count % UPSTREAMS],
		};
		if (pthread_create(&clients[count].thread, NULL, client_main, &clients[count]) != 0)
			break;
	}
	for (size_t i = 0; i < count; i++)
		pthread_join(clients[i].thread, NULL);
	return count < CLIENTS * UPSTREAMS;
}

static const struct upstream *upstream_of(const char *host, size_t host_len)
{
	for (size_t k = 0; k < UPSTREAMS; k++)
		if (strlen(upstreams[k].host) == host_len &&
		    memcmp(upstreams[k].host, host, host_len) == 0)
			return &upstreams[k];
	return NULL;
}

/* With an agreement the limit is fixed. A service that is not known is not called. */
static int customize(void *arg, const void *host, size_t host_len, struct weir_config *config)
{
	const struct upstream *upstream = upstream_of(host, host_len);

	(void)arg;
	if (upstream == NULL)
		return -ENOENT;
	if (upstream->agreed != 0) {
		config->limit_min = upstream->agreed;
		config->limit_max = upstream->agreed;
	}
	return 0;
}

static struct weir_registry *make_registry(void)
{
	struct weir_aimd_config aimd = {.initial = 10, .min = 1};
	struct weir_registry_config config;
	struct weir_registry *registry;
	struct weir_config limiter;
	char why[200];

	weir_config_init(&limiter);
	limiter.limit = &weir_aimd; /* the services refuse calls under overload */
	limiter.limit_config = &aimd;
	limiter.window_min = 5 * WEIR_MS; /* these services are fast, so learn fast */
	weir_registry_config_init(&config);
	config.limiter = &limiter;
	config.customize = customize;
	config.max = 100;
	if (weir_registry_config_check(&config, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		return NULL;
	}
	return weir_registry_create(&config, &registry) == 0 ? registry : NULL;
}

/* Print the results, and check them. */
struct report {
	int wrong;
	uint32_t limit[UPSTREAMS];
};

static void expect(struct report *report, int holds, const char *host, const char *what)
{
	if (holds)
		return;
	report->wrong = 1;
	printf("%s: not true: %s\n", host, what);
}

static bool print_line(void *arg, const void *host, size_t host_len, struct weir_limiter *limiter)
{
	const struct upstream *upstream = upstream_of(host, host_len);
	struct report *report = arg;
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	printf("%-20s %8d %8u %8llu %8llu %8llu\n", upstream->host, upstream->capacity,
	       (unsigned)s.limit, (unsigned long long)s.succeeded, (unsigned long long)s.dropped,
	       (unsigned long long)s.rejected);
	report->limit[upstream - upstreams] = s.limit;
	expect(report, s.inflight == 0, upstream->host, "all calls have ended");
	expect(report, s.succeeded + s.dropped + s.rejected == (uint64_t)CLIENTS * CALLS,
	       upstream->host, "each call is counted once");
	expect(report, upstream->agreed == 0 || s.dropped == 0, upstream->host,
	       "never more calls than agreed");
	return true;
}

static int print_table(struct weir_registry *registry)
{
	struct report report = {.wrong = 0};
	size_t visited;

	printf("%-20s %8s %8s %8s %8s %8s\n", "host", "capacity", "limit", "answered", "refused",
	       "not sent");
	visited = weir_registry_visit(registry, print_line, &report);
	expect(&report, visited == UPSTREAMS, "registry", "a limiter for each service");
	expect(&report, report.limit[GONE] < report.limit[SEARCH], upstreams[GONE].host,
	       "a failed service gets less than one that answers");
	return report.wrong;
}

int main(void)
{
	struct weir_registry *registry = make_registry();
	int wrong;

	if (registry == NULL)
		return EXIT_FAILURE;
	wrong = call_all(registry);
	if (print_table(registry) != 0)
		wrong = 1;
	if (weir_registry_destroy(registry) != 0)
		wrong = 1;
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
