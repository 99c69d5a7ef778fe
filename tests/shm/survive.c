/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process is killed, or stopped, after single instructions of operations on a shared limiter that
 * one process does at a time. Before any reaping, another process calls each function that needs
 * what the first one had. Each call returns within its share of CPU time, and has done what it
 * reports.
 *
 *	survive [STRIDE [SCENE]]	after each STRIDE-th instruction only, and only of the scenes
 *					whose names begin with SCENE
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <weir/weir.h>

#include "traced.h"

#define LIMIT   4
#define RAISED  6
#define LOWERED 2
#define MEMBERS 12

/* CPU time, in seconds: ten times what everything a survivor does takes. */
#define SECONDS 2

static struct weir_config config;
static void *block;
static size_t block_size;

/* What the victim is doing. */
struct scene {
	const char *name;
	const struct weir_limit_ops *limit;
	bool parted;
	void (*act)(struct weir_limiter *limiter, struct weir_token *token);
	bool late;      /* it begins after the saved state has been read */
	unsigned finer; /* factor for the number of instructions tried, for a short path; 0: 1 */
};

static void set_limit(struct weir_limiter *limiter, struct weir_token *token)
{
	(void)token;
	(void)weir_limit_set(limiter, LIMIT - 1);
}

static void set_parts(struct weir_limiter *limiter, struct weir_token *token)
{
	const struct weir_partition part = {.name = "live", .share = 0.25};

	(void)token;
	(void)weir_partitions_set(limiter, &part, 1, NULL, 0);
}

static void release(struct weir_limiter *limiter, struct weir_token *token)
{
	weir_release(limiter, token, WEIR_SUCCESS);
}

static void stop(void)
{
	CHECK(raise(SIGSTOP) == 0);
}

/* The library calls observe() on the numbers of a saved state before it applies the state. */
static struct weir_limit_ops watched;
static bool stops;

static void stop_and_observe(const void *state, double *numbers)
{
	const bool now = stops;

	stops = false;
	if (now)
		stop();
	weir_elastic.observe(state, numbers);
}

/* Of another limiter of the same configuration, made before. */
static unsigned char saved[WEIR_SAVED_MAX];
static int saved_size;

static void load_saved(struct weir_limiter *limiter, struct weir_token *token)
{
	(void)token;
	(void)!weir_limiter_load(limiter, saved, (size_t)saved_size, 0, NULL, 0);
}

static const struct scene scenes[] = {
	{.name = "set the limit", .limit = &weir_settable, .act = set_limit, .finer = 5},
	{.name = "set partitions", .limit = &weir_settable, .parted = true, .act = set_parts},
	{.name = "close a window", .limit = &weir_elastic, .act = release},
	{.name = "load a saved state", .limit = &watched, .act = load_saved, .late = true},
};

static void make_block(const struct scene *scene)
{
	static const struct weir_settable_config settable = {.initial = LIMIT};
	static const struct weir_elastic_config elastic = {.initial = LIMIT, .max = RAISED};
	static const struct weir_partition parts[] = {{.name = "live", .share = 0.5},
						      {.name = "batch", .share = 0.25}};

	weir_config_init(&config);
	config.limit = scene->limit;
	config.limit_config = scene->limit == &weir_settable ? (const void *)&settable : &elastic;
	config.windowing = WEIR_WINDOW_SAMPLE;
	config.queue = 2;
	config.stripes = 1;
	if (scene->parted) {
		config.partitions = parts;
		config.partition_count = 2;
	}
	block_size = weir_shm_size(&config, MEMBERS);
	block = mmap(NULL, block_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(block_size > 0 && block != MAP_FAILED);
}

static void make_saved(void)
{
	struct weir_limiter *other;

	CHECK(weir_limiter_create(&config, &other) == 0);
	saved_size = weir_limiter_save(other, saved, sizeof(saved));
	CHECK(saved_size > 0);
	weir_limiter_destroy(other);
}

static struct weir_limiter *attach(void)
{
	struct weir_limiter *limiter;

	CHECK(weir_shm_attach(block, block_size, &config, &limiter, NULL, 0) == 0);
	return limiter;
}

/* The number of permits that can be acquired; they are returned. */
static uint32_t room(struct weir_limiter *limiter)
{
	struct weir_token token[RAISED + 1];
	uint32_t count = 0;

	while (count < RAISED + 1 && weir_try_acquire(limiter, &token[count]) == 0)
		count++;
	for (uint32_t i = 0; i < count; i++)
		weir_release(limiter, &token[i], WEIR_IGNORE);
	return count;
}

/*
 * What a survivor does. Whatever became of the victim, a limit is in force, and one call of the
 * victim may be in flight. A function that returns -EAGAIN has changed nothing, and none returns it
 * if the victim is dead.
 */
struct deed {
	const char *name;
	void (*act)(struct weir_limiter *limiter, bool dead);
};

static void raise_limit(struct weir_limiter *limiter, bool dead)
{
	const int r = weir_limit_set(limiter, RAISED);

	(void)dead;
	CHECK(r == 0 || r == -ENOTSUP);
	CHECK(r != 0 || (weir_limit(limiter) == RAISED && room(limiter) == RAISED));
}

static void cap_limit(struct weir_limiter *limiter, bool dead)
{
	(void)dead;
	CHECK(weir_limit_cap(limiter, LOWERED) == 0);
	CHECK(weir_limit(limiter) <= LOWERED && room(limiter) <= LOWERED);
	CHECK(weir_limit_cap(limiter, 0) == 0);
	CHECK(room(limiter) == 0);
}

static double share_of_batch(const struct weir_limiter *limiter)
{
	struct weir_partition_snapshot part;

	weir_partition_snapshot_init(&part);
	CHECK(weir_partition_snapshot_take(limiter, weir_partition_find(limiter, "batch"), &part) ==
	      0);
	return part.share;
}

static void set_shares(struct weir_limiter *limiter, bool dead)
{
	const struct weir_partition part = {.name = "batch", .share = 0.125};
	int r;

	if (weir_partition_count(limiter) == 0)
		return;
	r = weir_partitions_set(limiter, &part, 1, NULL, 0);
	CHECK(r == 0 || (r == -EAGAIN && !dead));
	CHECK(share_of_batch(limiter) == (r == 0 ? 0.125 : 0.25));
}

static void save(struct weir_limiter *limiter, bool dead)
{
	unsigned char bytes[WEIR_SAVED_MAX];
	const int size = weir_limiter_save(limiter, bytes, sizeof(bytes));

	CHECK(size > 0 || (size == -EAGAIN && !dead));
}

static void load(struct weir_limiter *limiter, bool dead)
{
	const int r = weir_limiter_load(limiter, saved, (size_t)saved_size, 0, NULL, 0);

	CHECK(r == 0 || (r == -EAGAIN && !dead));
	CHECK(r != 0 || room(limiter) >= LIMIT - 1);
}

/* None of these calls waits for another process. */
static void go_on(struct weir_limiter *limiter, bool dead)
{
	struct weir_snapshot snapshot;
	struct weir_token token;

	(void)dead;
	if (weir_try_acquire(limiter, &token) == 0)
		weir_release(limiter, &token, WEIR_SUCCESS);
	if (weir_acquire(limiter, weir_now() + WEIR_MS, &token) == 0)
		weir_release(limiter, &token, WEIR_DROPPED);
	weir_shadow_set(limiter, true);
	weir_shadow_set(limiter, false);
	weir_snapshot_init(&snapshot);
	weir_snapshot_take(limiter, &snapshot);
}

static const struct deed deeds[] = {
	{"set the limit", raise_limit}, {"cap the limit", cap_limit},
	{"set partitions", set_shares}, {"save the state", save},
	{"load a saved state", load},   {"go on", go_on},
};

/* In a process of its own: the kernel kills a survivor that does not return. */
static void survive(const struct deed *deed, bool dead)
{
	const struct rlimit most = {.rlim_cur = SECONDS, .rlim_max = SECONDS};
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		struct weir_limiter *limiter = attach();

		CHECK(setrlimit(RLIMIT_CPU, &most) == 0);
		deed->act(limiter, dead);
		if (weir_shm_reap(limiter, NULL) == 0)
			weir_shm_detach(limiter); /* waits for a reaper, if there is one */
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "%s: %s %d\n", deed->name,
			WIFSIGNALED(status) ? "killed by signal" : "ended with",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		abort();
	}
}

/* So that the dynamic linker's instructions are not counted. */
static void warm_up(const struct scene *scene)
{
	struct weir_limiter *limiter;
	struct weir_token token;

	CHECK(weir_limiter_create(&config, &limiter) == 0);
	CHECK(weir_try_acquire(limiter, &token) == 0);
	scene->act(limiter, &token);
	weir_limiter_destroy(limiter);
}

static void be_victim(const struct scene *scene)
{
	struct weir_limiter *limiter = attach();
	struct weir_token token;

	warm_up(scene);
	if (scene->act == release)
		CHECK(weir_try_acquire(limiter, &token) == 0);
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	stops = scene->late;
	if (!scene->late)
		stop();
	scene->act(limiter, &token);
	stop(); /* it has no more to do, and must not count as dead */
	_exit(0);
}

/* A process that has executed that many instructions of the scene. False: it has executed all. */
static bool step(pid_t child, unsigned steps)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	for (unsigned i = 0; i < steps; i++) {
		CHECK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
		CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			return false;
	}
	return true;
}

/*
 * The stopped process continues to its end: then the value set last is in force, whichever process
 * set it.
 */
static void let_go(pid_t child, struct weir_limiter *own)
{
	int status;

	CHECK(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(weir_limit_cap(own, WEIR_LIMIT_MAX) == 0);
	CHECK(weir_inflight(own) > 0 || room(own) == weir_limit(own));
}

static void end(pid_t child)
{
	CHECK(kill(child, SIGKILL) == 0);
	CHECK(waitpid(child, NULL, 0) == child);
}

static bool play(const struct scene *scene, const struct deed *deed, unsigned steps, bool dead)
{
	struct weir_limiter *own;
	pid_t child;
	bool going;

	CHECK(weir_shm_init(block, block_size, &config, MEMBERS, NULL, 0) == 0);
	own = attach();
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		be_victim(scene);
	going = step(child, steps);
	if (dead)
		end(child);
	survive(deed, dead);
	if (!dead) {
		if (going)
			let_go(child, own);
		end(child);
	}
	CHECK(weir_shm_reap(own, NULL) == 0);
	weir_shm_detach(own);
	return going;
}

static void play_all(const struct scene *scene, unsigned stride)
{
	unsigned steps = 0;
	bool going = true;

	if (scene->finer > 1)
		stride = stride / scene->finer + 1;
	make_block(scene);
	make_saved();
	for (; going; steps += stride)
		for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
			going = play(scene, &deeds[i], steps, true);
			(void)play(scene, &deeds[i], steps, false);
		}
	printf("%s: killed, and stopped, at each %u. of %u instructions\n", scene->name, stride,
	       steps);
	munmap(block, block_size);
}

/* A reaper that is stopped keeps its word: no process reaps, and everything else works. */
static void reap(struct weir_limiter *limiter, struct weir_token *token)
{
	pid_t child = fork();

	(void)token;
	if (child == 0)
		_exit(attach() == NULL);
	CHECK(waitpid(child, NULL, 0) == child);
	(void)weir_shm_reap(limiter, NULL);
}

static void stop_a_reaper(void)
{
	static const struct scene scene = {
		.name = "reap", .limit = &weir_settable, .parted = true, .act = reap};
	struct weir_limiter *own;
	unsigned steps = 0;
	pid_t child;
	int status;

	make_block(&scene);
	make_saved();
	CHECK(weir_shm_init(block, block_size, &config, MEMBERS, NULL, 0) == 0);
	own = attach();
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		be_victim(&scene);
	CHECK(waitpid(child, &status, 0) == child);
	while (weir_shm_reap(own, NULL) == 0) {
		for (unsigned i = 0; i < 50; i++) {
			CHECK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
			CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		}
		CHECK(++steps < 100000);
	}
	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		survive(&deeds[i], true);
		CHECK(weir_limit_cap(own, WEIR_LIMIT_MAX) == 0);
	}
	CHECK(weir_shm_reap(own, NULL) == -EAGAIN);
	end(child);
	CHECK(weir_shm_reap(own, NULL) == 0);
	weir_shm_detach(own);
	munmap(block, block_size);
}

int main(int argc, char **argv)
{
	const unsigned stride = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	bool played = false;

	need_ptrace();
	watched = weir_elastic;
	watched.observe = stop_and_observe;
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (argc < 3 || strncmp(scenes[i].name, argv[2], strlen(argv[2])) == 0) {
			play_all(&scenes[i], stride);
			played = true;
		}
	CHECK(played);
	stop_a_reaper();
	return 0;
}
