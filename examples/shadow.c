/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Introduce a limit into a running service, in shadow mode first. The limit is learned and shown,
 * no call is refused, and refusals that would have happened are counted. When the numbers look
 * right, one call starts enforcing the limit.
 *
 * Twelve threads call a function that processes four calls at once. In shadow mode all calls are
 * admitted. Afterwards some are refused, and the others are served faster.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weir/weir.h>

#define THREADS 12
#define PLACES  4

static struct weir_limiter *limiter;
static sem_t places;
static atomic_bool stop;

static void serve(void)
{
	while (sem_wait(&places) != 0)
		;
	nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000}, NULL);
	sem_post(&places);
}

static void *client(void *arg)
{
	struct weir_token token;

	(void)arg;
	while (!atomic_load(&stop)) {
		if (weir_try_acquire(limiter, &token) != 0) {
			nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000}, NULL);
			continue;
		}
		serve();
		weir_release(limiter, &token, WEIR_SUCCESS);
	}
	return NULL;
}

static struct weir_snapshot look(void)
{
	struct weir_snapshot s;

	weir_snapshot_init(&s);
	weir_snapshot_take(limiter, &s);
	return s;
}

/* Half a second; on a busy machine repeated until there are enough calls in flight. */
static struct weir_snapshot watch(const char *when, bool enforcing)
{
	struct weir_snapshot s;

	do {
		nanosleep(&(struct timespec){.tv_nsec = 500 * 1000 * 1000}, NULL);
		s = look();
	} while ((enforcing ? s.rejected : s.would_reject) == 0);
	printf("%s: limit %u, in flight %u and %u beside it, admitted %llu, rejected %llu, "
	       "would have rejected %llu\n",
	       when, s.limit, s.inflight, s.passing, (unsigned long long)s.admitted,
	       (unsigned long long)s.rejected, (unsigned long long)s.would_reject);
	return s;
}

int main(void)
{
	const struct weir_vegas_config vegas = {.initial = 4, .max = 8};
	struct weir_snapshot shadow, enforced;
	struct weir_config config;
	pthread_t thread[THREADS];

	weir_config_init(&config);
	config.limit = &weir_vegas;
	config.limit_config = &vegas;
	config.shadow = 1;
	if (weir_limiter_create(&config, &limiter) != 0 || sem_init(&places, 0, PLACES) != 0)
		return EXIT_FAILURE;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, client, NULL) != 0)
			return EXIT_FAILURE;

	shadow = watch("in shadow mode", false);
	weir_shadow_set(limiter, false);
	enforced = watch("enforcing", true);

	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	shadow.inflight = weir_inflight(limiter);
	weir_limiter_destroy(limiter);
	return shadow.rejected == 0 && shadow.would_reject > 0 && enforced.rejected > 0 &&
			       shadow.inflight == 0
		       ? EXIT_SUCCESS
		       : EXIT_FAILURE;
}
