/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread is cancelled before it calls a function of the library. None is a cancellation point, so
 * each function returns, and the thread ends after it. What it would leave behind otherwise (a
 * reaper's word, a window, a drain, a pin) is free for the next one.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../stress/cancelled.h"

#define MEMBERS 4

static struct weir_config config;
static struct weir_limiter *limiter;
static void *block;
static size_t block_size;
static unsigned called;

/* A cancellation point, such as a program's callback may contain. */
static void call(void *arg)
{
	(void)arg;
	called++;
	pthread_testcancel();
}

static void see_window(void *arg, const struct weir_report *report)
{
	(void)report;
	call(arg);
}

static double read_gauge(const struct weir_gauge *gauge)
{
	(void)gauge;
	call(NULL);
	return 0.5;
}

static const struct weir_gauge gauge = {.read = read_gauge};

static void set_up(void)
{
	static const struct weir_fixed_config one = {.limit = 1};
	static const struct weir_observer observer = {.window = see_window};
	static struct weir_limit_ops fixed;

	fixed = weir_fixed;
	fixed.flags |= WEIR_LIMIT_CPU;
	weir_config_init(&config);
	config.limit = &fixed;
	config.limit_config = &one;
	config.queue = 2;
	config.windowing = WEIR_WINDOW_SAMPLE;
	config.cpu = &gauge;
	config.observer = &observer;
	block_size = weir_shm_size(&config, MEMBERS);
	block = mmap(NULL, block_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(block_size > 0 && block != MAP_FAILED);
	CHECK(weir_shm_init(block, block_size, &config, MEMBERS, NULL, 0) == 0);
}

static void attach(void)
{
	CHECK(weir_shm_attach(block, block_size, &config, &limiter, NULL, 0) == 0);
}

static void detach(void)
{
	weir_shm_detach(limiter);
}

/* A process dies with a permit, which only a reaping returns. */
static void die_with_permit(void)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		struct weir_token token;

		attach();
		_exit(weir_try_acquire(limiter, &token));
	}
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK(weir_inflight(limiter) == 1);
}

static void reap(void)
{
	CHECK(weir_shm_reap(limiter, NULL) == 0);
}

static bool see_member(void *arg, const struct weir_shm_member *member)
{
	(void)arg;
	return member->number != 0;
}

static void visit(void)
{
	CHECK(weir_shm_visit(limiter, see_member, NULL) == 1);
}

static struct weir_token token, other;

static void acquire(void)
{
	CHECK(weir_acquire(limiter, weir_now() + WEIR_S, &token) == 0);
}

static void wait_until_deadline(void)
{
	CHECK(weir_acquire(limiter, weir_now() + 10 * WEIR_MS, &other) == -ETIMEDOUT);
}

static void release(void)
{
	weir_release(limiter, &token, WEIR_SUCCESS);
}

static void listen(void)
{
	CHECK(weir_shm_listen(limiter, weir_now() + 10 * WEIR_MS) == -ETIMEDOUT);
}

static void check_members(void)
{
	cancelled_in(attach);
	die_with_permit();
	cancelled_in(reap);
	CHECK(weir_inflight(limiter) == 0);
	reap();
	cancelled_in(visit);
	cancelled_in(acquire);
	cancelled_in(wait_until_deadline);
	CHECK(weir_waiting(limiter) == 0);
	cancelled_in(listen);
}

/* Callbacks that run in the thread that releases: an observer, a gauge, a waiter's. */
static void check_callbacks(void)
{
	struct weir_snapshot snapshot;
	struct weir_wait wait;

	CHECK(weir_enqueue(limiter, call, NULL, &wait) == 0);
	called = 0;
	cancelled_in(release);
	CHECK(called == 3);
	CHECK(weir_poll(limiter, &wait, &token) == 0);
	release();
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
	CHECK(snapshot.windows == 2);
	cancelled_in(detach);
}

static char name[64];

static void open_name(void)
{
	CHECK(weir_shm_open(name, 0600, &config, MEMBERS, &limiter, NULL, 0) == 0);
}

static void observe_name(void)
{
	struct weir_limiter *looker;

	CHECK(weir_shm_open_observer(name, &looker, NULL, 0) == 0);
	weir_shm_detach(looker);
}

static bool see_name(void *arg, const char *at)
{
	(void)arg;
	pthread_testcancel();
	return strcmp(at, name) != 0;
}

static void visit_names(void)
{
	CHECK(weir_shm_names_visit(see_name, NULL) > 0);
}

/* The lowest free descriptor: the same before and after, if nothing was left open. */
static int next_file(void)
{
	const int file = dup(1);

	CHECK(file >= 0 && close(file) == 0);
	return file;
}

static void check_names(void)
{
	const int file = next_file();

	(void)snprintf(name, sizeof(name), "/weir-cancel-%ld", (long)getpid());
	cancelled_in(open_name);
	cancelled_in(observe_name);
	cancelled_in(visit_names);
	cancelled_in(detach);
	CHECK(shm_unlink(name) == 0);
	CHECK(next_file() == file);
}

static struct weir_registry *registry;

static bool see_limiter(void *arg, const void *key, size_t key_len, struct weir_limiter *at)
{
	(void)key;
	(void)key_len;
	(void)at;
	call(arg);
	return true;
}

static void visit_limiters(void)
{
	CHECK(weir_registry_visit(registry, see_limiter, NULL) == 1);
}

/* A registry whose limiters are pinned cannot be ended. */
static void check_registry(void)
{
	struct weir_limiter *one;

	CHECK(weir_registry_create(NULL, &registry) == 0);
	CHECK(weir_registry_get(registry, "one", 3, &one) == 0);
	weir_registry_put(registry, one);
	cancelled_in(visit_limiters);
	CHECK(weir_registry_destroy(registry) == 0);
}

static struct weir_rate *rate;

static void let_all_pass(void)
{
	const struct weir_quota all = {.flags = WEIR_QUOTA_UNLIMITED};

	CHECK(weir_rate_set(rate, 0, &all) == 0);
}

static void take_until_deadline(void)
{
	CHECK(weir_rate_take(rate, 1, weir_now() + 10 * WEIR_MS) == -ETIMEDOUT);
}

/* Both callbacks run: the second after the first, in the thread that is cancelled in the first. */
static void check_rate(void)
{
	const struct weir_cost cost = {.units = {1}};
	struct weir_rate_config how;
	struct weir_wait wait[2];

	weir_rate_config_init(&how);
	how.quotas[0] = (struct weir_quota){.units = 0};
	how.queue = 4;
	CHECK(weir_rate_create(&how, &rate) == 0);
	cancelled_in(take_until_deadline);
	CHECK(weir_rate_enqueue(rate, &cost, call, NULL, &wait[0]) == 0);
	CHECK(weir_rate_enqueue(rate, &cost, call, NULL, &wait[1]) == 0);
	called = 0;
	cancelled_in(let_all_pass);
	CHECK(called == 2);
	CHECK(weir_rate_poll(rate, &wait[0]) == 0 && weir_rate_poll(rate, &wait[1]) == 0);
	weir_rate_destroy(rate);
}

static struct weir_cpu *cpu;

static void make_gauge(void)
{
	CHECK(weir_cpu_create(NULL, &cpu) == 0);
}

static void end_gauge(void)
{
	weir_cpu_destroy(cpu);
}

static void check_gauge(void)
{
	struct weir_cpu *there;

	if (weir_cpu_create(NULL, &there) != 0)
		return; /* this system has no such file */
	weir_cpu_destroy(there);
	cancelled_in(make_gauge);
	cancelled_in(end_gauge);
}

int main(void)
{
	set_up();
	check_members();
	check_callbacks();
	check_names();
	check_registry();
	check_rate();
	check_gauge();
	return 0;
}
