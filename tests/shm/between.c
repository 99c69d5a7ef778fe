/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One process is stopped by ptrace() after each single instruction of an operation on a shared
 * limiter, and continues after another process has changed something. After whichever instruction
 * that was, the results that it gets are true: it holds what they say, and nothing else is in
 * flight.
 *
 *	between [STRIDE [SCENE]]	after each STRIDE-th instruction only, and only of the scenes
 *					whose names begin with SCENE
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/weir.h>

#include "traced.h"

#define LIMIT   4
#define MEMBERS 3

/* State of a token that holds a permit, beside flags: beyond what weir/limiter.h documents. */
#define HELD  1
#define FLAGS 0xff00

static bool is_held(const struct weir_token *token)
{
	return (token->state & ~FLAGS) == HELD;
}

/* State of the stopped process; visible to both. */
struct actor {
	struct weir_limiter *limiter;
	struct weir_token token;
	int answer;
};

struct scene {
	const char *name;
	uint32_t partitions;
	uint32_t others;                             /* permits that the other process holds */
	void (*before)(struct weir_limiter *own);    /* what the other process does first */
	void (*act)(struct actor *a);                /* where this process is stopped */
	void (*meanwhile)(struct weir_limiter *own); /* what the other process does then */
	void (*check)(const struct actor *a);        /* tests the results of this process */
	void (*after)(struct weir_limiter *own);     /* restores the initial state */
};

static struct weir_token held[LIMIT];

static struct {
	void *block;
	size_t size;
	struct weir_limiter *auditor;
} shared;

static void cap_at(struct weir_limiter *own, uint32_t most)
{
	CHECK(weir_limit_cap(own, most) == 0);
}

static void close_it(struct weir_limiter *own)
{
	cap_at(own, 0);
}

static void halve_it(struct weir_limiter *own)
{
	cap_at(own, LIMIT / 2);
}

static void open_it(struct weir_limiter *own)
{
	cap_at(own, LIMIT);
}

/* One call is in flight, more than the limit. */
static void close_with_one(struct weir_limiter *own)
{
	open_it(own);
	CHECK(weir_try_acquire(own, &held[0]) == 0);
	close_it(own);
}

static void release_one(struct weir_limiter *own)
{
	weir_release(own, &held[0], WEIR_SUCCESS);
}

static void acquire_costly(struct actor *a)
{
	const struct weir_call call = {.partition = weir_partition_find(a->limiter, "live"),
				       .cost = LIMIT - 1};

	a->answer = weir_try_acquire_for(a->limiter, &call, &a->token);
}

static void wait_costly(struct actor *a)
{
	const struct weir_call call = {.partition = weir_partition_find(a->limiter, "live"),
				       .cost = LIMIT - 1};

	a->answer = weir_acquire_for(a->limiter, &call, weir_now() + 10 * WEIR_US, &a->token);
}

static void refused_or_whole(const struct actor *a)
{
	if (a->answer == 0)
		CHECK(is_held(&a->token) && a->token.cost == LIMIT - 1);
	else
		CHECK(a->answer == -EAGAIN || a->answer == -ETIMEDOUT);
}

static void all_there_is(const struct actor *a)
{
	CHECK(a->answer == 0 && is_held(&a->token));
	CHECK(a->token.cost == LIMIT / 2 || a->token.cost == LIMIT - 1);
}

static void fill_in_shadow(struct weir_limiter *own)
{
	weir_shadow_set(own, true);
	for (unsigned i = 0; i < LIMIT; i++)
		CHECK(weir_try_acquire(own, &held[i]) == 0 && is_held(&held[i]));
}

static void end_shadow(struct weir_limiter *own)
{
	weir_shadow_set(own, false);
}

static void empty(struct weir_limiter *own)
{
	for (unsigned i = 0; i < LIMIT; i++)
		weir_release(own, &held[i], WEIR_SUCCESS);
}

static void acquire(struct actor *a)
{
	a->answer = weir_acquire(a->limiter, weir_now() + 10 * WEIR_US, &a->token);
}

/* The queue has room, so no other result is right. */
static void passed_or_waited(const struct actor *a)
{
	if (a->answer == 0)
		CHECK(!is_held(&a->token) && a->token.cost == 0);
	else
		CHECK(a->answer == -ETIMEDOUT);
}

/* A process dies with a permit, so that an audit for lost permits begins. */
static void open_and_die(struct weir_limiter *own)
{
	struct weir_limiter *limiter;
	struct weir_token token;
	const pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		CHECK(weir_shm_attach(shared.block, shared.size, NULL, &limiter, NULL, 0) == 0);
		CHECK(weir_try_acquire(limiter, &token) == 0);
		CHECK(raise(SIGKILL) == 0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	open_it(own);
}

/* As often and for as long as an audit takes. */
static void reap_for_seconds(struct weir_limiter *own)
{
	static weir_time later;

	if (later < weir_now())
		later = weir_now();
	for (unsigned i = 0; i < 8; i++) {
		later += WEIR_S;
		CHECK(weir_shm_reap_at(own, later, NULL) == 0);
	}
}

/* A permit that the process has, but that its lease does not show yet, is taken as lost. */
static void audit_and_close(struct weir_limiter *own)
{
	reap_for_seconds(own);
	close_it(own);
	shared.auditor = own;
}

/* It is noticed that the permit was not lost. */
static void audited(const struct actor *a)
{
	refused_or_whole(a);
	reap_for_seconds(shared.auditor);
}

static void open_and_try(struct weir_limiter *own)
{
	const struct weir_call call = {.partition = weir_partition_find(own, "live"),
				       .cost = LIMIT};
	struct weir_token token;

	open_it(own);
	CHECK(weir_try_acquire_for(own, &call, &token) == 0 && token.cost == LIMIT);
	weir_release(own, &token, WEIR_SUCCESS);
}

static const struct scene scenes[] = {
	{.name = "try while lost permits are looked for",
	 .before = open_and_die,
	 .act = acquire_costly,
	 .meanwhile = audit_and_close,
	 .check = audited,
	 .after = open_and_try},
	{.name = "try while lost permits are looked for, parted",
	 .partitions = 2,
	 .before = open_and_die,
	 .act = acquire_costly,
	 .meanwhile = audit_and_close,
	 .check = audited,
	 .after = open_and_try},
	{.name = "try while it is closed",
	 .before = open_it,
	 .act = acquire_costly,
	 .meanwhile = close_it,
	 .check = refused_or_whole,
	 .after = open_it},
	{.name = "try while it is opened",
	 .before = close_it,
	 .act = acquire_costly,
	 .meanwhile = open_it,
	 .check = refused_or_whole,
	 .after = open_it},
	{.name = "try while it is opened beside one",
	 .others = 1,
	 .before = close_with_one,
	 .act = acquire_costly,
	 .meanwhile = open_it,
	 .check = refused_or_whole,
	 .after = release_one},
	{.name = "try while it is halved",
	 .before = open_it,
	 .act = acquire_costly,
	 .meanwhile = halve_it,
	 .check = all_there_is,
	 .after = open_it},
	{.name = "wait while it is closed",
	 .before = open_it,
	 .act = wait_costly,
	 .meanwhile = close_it,
	 .check = refused_or_whole,
	 .after = open_it},
	{.name = "wait while it is opened",
	 .before = close_it,
	 .act = wait_costly,
	 .meanwhile = open_it,
	 .check = refused_or_whole,
	 .after = open_it},
	{.name = "wait while it is opened beside one",
	 .others = 1,
	 .before = close_with_one,
	 .act = wait_costly,
	 .meanwhile = open_it,
	 .check = refused_or_whole,
	 .after = release_one},
	{.name = "try while it is closed, parted",
	 .partitions = 2,
	 .before = open_it,
	 .act = acquire_costly,
	 .meanwhile = close_it,
	 .check = refused_or_whole,
	 .after = open_it},
	{.name = "try while it is opened, parted",
	 .partitions = 2,
	 .before = close_it,
	 .act = acquire_costly,
	 .meanwhile = open_it,
	 .check = refused_or_whole,
	 .after = open_it},
	{.name = "try while it is opened, parted, beside one",
	 .partitions = 2,
	 .others = 1,
	 .before = close_with_one,
	 .act = acquire_costly,
	 .meanwhile = open_it,
	 .check = refused_or_whole,
	 .after = release_one},
	{.name = "try while it is halved, parted",
	 .partitions = 2,
	 .before = open_it,
	 .act = acquire_costly,
	 .meanwhile = halve_it,
	 .check = all_there_is,
	 .after = open_it},
	{.name = "wait while shadow mode ends",
	 .others = LIMIT,
	 .before = fill_in_shadow,
	 .act = acquire,
	 .meanwhile = end_shadow,
	 .check = passed_or_waited,
	 .after = empty},
};

static void stop(void)
{
	CHECK(raise(SIGSTOP) == 0);
}

/* So that the dynamic linker's instructions are not counted. */
static void warm_up(struct weir_limiter *limiter)
{
	struct weir_token token;

	(void)!weir_partition_find(limiter, "live");
	if (weir_acquire(limiter, weir_now() + 1, &token) == 0)
		weir_release(limiter, &token, WEIR_IGNORE);
	if (weir_try_acquire(limiter, &token) == 0)
		weir_release(limiter, &token, WEIR_IGNORE);
}

static void run_until_stopped(const struct scene *scene, void *block, size_t size, struct actor *a)
{
	CHECK(weir_shm_attach(block, size, NULL, &a->limiter, NULL, 0) == 0);
	warm_up(a->limiter);
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	stop();
	scene->act(a);
	stop();
	if (a->answer == 0)
		weir_release(a->limiter, &a->token, WEIR_SUCCESS);
	weir_shm_detach(a->limiter);
	_exit(0);
}

static bool is_stopped_by(int status, int signal)
{
	return WIFSTOPPED(status) && WSTOPSIG(status) == signal;
}

/* False: the operation is complete. */
static bool step(pid_t child, unsigned steps)
{
	int status;

	for (unsigned i = 0; i < steps; i++) {
		CHECK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
		CHECK(waitpid(child, &status, 0) == child);
		if (is_stopped_by(status, SIGSTOP))
			return false;
		CHECK(is_stopped_by(status, SIGTRAP));
	}
	return true;
}

static uint32_t inflight_of_partitions(const struct weir_limiter *own)
{
	struct weir_partition_snapshot part;
	uint32_t sum = 0;

	for (unsigned i = 0; i < weir_partition_count(own); i++) {
		weir_partition_snapshot_init(&part);
		CHECK(weir_partition_snapshot_take(own, i, &part) == 0);
		sum += part.inflight;
	}
	return sum;
}

static void check(const struct scene *scene, const struct actor *a, const struct weir_limiter *own)
{
	const uint32_t its = a->answer == 0 ? a->token.cost : 0;

	scene->check(a);
	CHECK(weir_inflight(own) == scene->others + its);
	CHECK(weir_waiting(own) == 0);
	if (scene->partitions > 0)
		CHECK(inflight_of_partitions(own) == scene->others + its);
}

/* False: it ended before that. */
static bool change_after(const struct scene *scene, unsigned steps, void *block, size_t size,
			 struct actor *a, struct weir_limiter *own)
{
	bool going;
	pid_t child;
	int status;

	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		run_until_stopped(scene, block, size, a);
	CHECK(waitpid(child, &status, 0) == child && is_stopped_by(status, SIGSTOP));
	CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL) == 0);
	scene->before(own);
	going = step(child, steps);
	scene->meanwhile(own);
	if (going) {
		CHECK(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
		CHECK(waitpid(child, &status, 0) == child && is_stopped_by(status, SIGSTOP));
	}
	check(scene, a, own);
	CHECK(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	scene->after(own);
	CHECK(weir_inflight(own) == 0 && inflight_of_partitions(own) == 0);
	return going;
}

static void *share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static void play(const struct scene *scene, unsigned stride)
{
	static const struct weir_partition halves[] = {{.name = "live", .share = 0.5},
						       {.name = "batch", .share = 0.25}};
	struct weir_fixed_config four = {.limit = LIMIT};
	struct weir_limiter *own;
	struct weir_config config;
	struct actor *a = share(sizeof(*a));
	unsigned steps = 0;
	size_t size;
	void *block;

	weir_config_init(&config);
	config.limit = &weir_fixed;
	config.limit_config = &four;
	config.queue = 3;
	config.stripes = 1;
	config.partitions = halves;
	config.partition_count = scene->partitions;
	config.partition_hold = 1;
	size = weir_shm_size(&config, MEMBERS);
	CHECK(size > 0);
	block = share(size);
	CHECK(weir_shm_init(block, size, &config, MEMBERS, NULL, 0) == 0);
	shared.block = block;
	shared.size = size;
	CHECK(weir_shm_attach(block, size, &config, &own, NULL, 0) == 0);
	while (change_after(scene, steps, block, size, a, own))
		steps += stride;
	weir_shm_detach(own);
	munmap(block, size);
	munmap(a, sizeof(*a));
	printf("%s: changed after each %u. of %u instructions\n", scene->name, stride, steps);
}

int main(int argc, char **argv)
{
	unsigned stride = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	bool played = false;

	need_ptrace();
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (argc < 3 || strncmp(scenes[i].name, argv[2], strlen(argv[2])) == 0) {
			play(&scenes[i], stride);
			played = true;
		}
	CHECK(played);
	return 0;
}
