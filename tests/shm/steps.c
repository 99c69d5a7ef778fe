/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process is killed, by ptrace(), after each single instruction of an operation on a shared
 * limiter, and reaped. After whichever instruction that was, nothing is lost: all permits are back,
 * no waiter is counted that does not exist, waiters are served, the limit holds, and the limiter
 * works.
 *
 *	steps [STRIDE [SCENE]]	each STRIDE-th instruction only, of one scene only
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/weir.h>

#include "traced.h"

#define LIMIT   4
#define MEMBERS 6
#define OFTEN   6 /* reapings after a death: an audit takes several */

/* Long paths are not tried at every instruction. */
#define LONG 41

struct scene;

/* What the victim holds. */
struct victim {
	struct weir_limiter *limiter;
	struct weir_token token[LIMIT];
	struct weir_wait wait;
	void *block;
	size_t size;
};

struct scene {
	const char *name;
	void (*configure)(struct weir_config *config);
	void (*meet)(struct weir_limiter *own);      /* before: done by the survivor */
	void (*prepare)(struct victim *v);           /* then: done by the victim */
	void (*meanwhile)(struct weir_limiter *own); /* then: done by the survivor */
	void (*act)(struct victim *v);               /* where the victim dies */
	void (*end)(struct weir_limiter *own);       /* after the reaping */
	bool detached;                               /* the victim does not attach first */
	unsigned stride;
};

static struct weir_fixed_config four = {.limit = LIMIT};
static struct weir_settable_config some = {.initial = LIMIT};
static const struct weir_partition halves[] = {
	{.name = "live", .share = 0.5, .reject_delay = WEIR_MS}, {.name = "batch", .share = 0.25}};
static struct weir_token held[LIMIT + 2];
static struct weir_wait waiting;
static unsigned number_held;

static void fixed(struct weir_config *config)
{
	config->limit = &weir_fixed;
	config->limit_config = &four;
	config->queue = 3;
	config->stripes = 1;
}

static void settable(struct weir_config *config)
{
	fixed(config);
	config->limit = &weir_settable;
	config->limit_config = &some;
}

static void parted(struct weir_config *config)
{
	fixed(config);
	config->partitions = halves;
	config->partition_count = 2;
	config->partition_hold = 1; /* reservations lapse by the next request */
}

/* Each sample is a window; the limit stays. */
static void learning(struct weir_config *config)
{
	fixed(config);
	config->limit = &weir_elastic;
	config->limit_config = NULL;
	config->limit_min = config->limit_max = LIMIT;
}

/* The limit stays, and detached calls raise it. */
static void on_top(struct weir_config *config)
{
	static const struct weir_elastic_config stays = {
		.initial = LIMIT, .min = LIMIT, .max = LIMIT};

	fixed(config);
	config->limit = &weir_elastic;
	config->limit_config = &stays;
}

static void ranked(struct weir_config *config)
{
	fixed(config);
	config->shed = 1;
}

/* The first attempt may only let a reservation lapse. */
static void take(struct weir_limiter *own, unsigned count)
{
	for (unsigned i = number_held; i < number_held + count; i++)
		CHECK(weir_try_acquire(own, &held[i]) == 0 || weir_try_acquire(own, &held[i]) == 0);
	number_held += count;
}

static void give_back(struct weir_limiter *own)
{
	while (number_held > 0)
		weir_release(own, &held[--number_held], WEIR_SUCCESS);
}

static void take_all(struct weir_limiter *own)
{
	take(own, LIMIT);
}

static void take_some(struct weir_limiter *own)
{
	take(own, LIMIT - 1);
}

static void take_one(struct weir_limiter *own)
{
	take(own, 1);
}

/* One call is detached, and all others find room on top of it. */
static void detach_one(struct weir_limiter *own)
{
	take_one(own);
	CHECK(weir_detach(own, &held[number_held - 1]) == 0);
}

static void detach_one_of_all(struct weir_limiter *own)
{
	detach_one(own);
	take_some(own);
}

static void wait_in_line(struct weir_limiter *own)
{
	CHECK(weir_enqueue(own, NULL, NULL, &waiting) == 0);
	CHECK(weir_poll(own, &waiting, &held[number_held]) == -EAGAIN);
}

/* Waiters have been served by now. */
static void be_granted(struct weir_limiter *own)
{
	CHECK(weir_poll(own, &waiting, &held[number_held]) == 0);
	number_held++;
}

static void acquire(struct victim *v)
{
	(void)!weir_try_acquire(v->limiter, &v->token[0]);
}

static void release(struct victim *v)
{
	weir_release(v->limiter, &v->token[0], WEIR_SUCCESS);
}

static void detach_call(struct victim *v)
{
	(void)!weir_detach(v->limiter, &v->token[0]);
}

static void acquire_detached(struct victim *v)
{
	acquire(v);
	detach_call(v);
}

static void acquire_costly(struct victim *v)
{
	const struct weir_call call = {.partition = weir_partition_find(v->limiter, "live"),
				       .cost = 3};

	(void)!weir_try_acquire_for(v->limiter, &call, &v->token[0]);
}

static void acquire_low(struct victim *v)
{
	const struct weir_call call = {.priority = -5};

	(void)!weir_try_acquire_for(v->limiter, &call, &v->token[0]);
}

static void drop(struct victim *v)
{
	weir_release(v->limiter, &v->token[0], WEIR_DROPPED);
}

static void enqueue(struct victim *v)
{
	(void)!weir_enqueue(v->limiter, NULL, NULL, &v->wait);
}

static void poll(struct victim *v)
{
	(void)!weir_poll(v->limiter, &v->wait, &v->token[0]);
}

static void cancel(struct victim *v)
{
	(void)!weir_cancel(v->limiter, &v->wait, &v->token[0]);
}

static void wait_briefly(struct victim *v)
{
	(void)!weir_acquire(v->limiter, weir_now() + 100 * WEIR_US, &v->token[0]);
}

static void raise_limit(struct victim *v)
{
	(void)!weir_limit_set(v->limiter, LIMIT + 1);
}

static void restore_limit(struct weir_limiter *own)
{
	be_granted(own);
	CHECK(weir_limit_set(own, LIMIT) == 0);
}

static void wait_at_limit(struct weir_limiter *own)
{
	take_all(own);
	wait_in_line(own);
}

/* If the limit has been raised, it is in force. */
static void lower_limit(struct weir_limiter *own)
{
	if (weir_limit(own) == LIMIT)
		CHECK(weir_limit_set(own, LIMIT + 1) == 0);
	restore_limit(own);
}

/* The survivor's detached calls raise the limit, and no others do. */
static void stay_on_top(struct weir_limiter *own)
{
	struct weir_token last;

	CHECK(weir_limit(own) == LIMIT + 1);
	take(own, LIMIT + 1 - number_held);
	CHECK(weir_inflight(own) == LIMIT + 1);
	CHECK(weir_try_acquire(own, &last) == -EAGAIN);
}

/* The waiter was served by the raised limit, or is served by the permits of the dead process. */
static void be_granted_on_top(struct weir_limiter *own)
{
	be_granted(own);
	stay_on_top(own);
}

static void delay(struct victim *v)
{
	uint16_t part = weir_partition_find(v->limiter, "live");

	if (weir_delay_begin(v->limiter, part) != 0)
		weir_delay_end(v->limiter, part);
}

static void attach(struct victim *v)
{
	(void)!weir_shm_attach(v->block, v->size, NULL, &v->limiter, NULL, 0);
}

static void detach(struct victim *v)
{
	weir_shm_detach(v->limiter);
}

static void hold_and_wait(struct victim *v)
{
	acquire(v);
	enqueue(v);
}

static void reap_another(struct victim *v)
{
	(void)weir_shm_reap(v->limiter, NULL);
}

/* A child attaches, acquires and dies, and has not been reaped. */
static void see_another_die(struct victim *v)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		struct victim w = {.block = v->block, .size = v->size};

		attach(&w);
		hold_and_wait(&w);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
}

/* The same with a detached call. */
static void see_another_stream_die(struct victim *v)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		struct victim w = {.block = v->block, .size = v->size};

		attach(&w);
		acquire_detached(&w);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
}

static const struct scene scenes[] = {
	{.name = "acquire", .configure = fixed, .act = acquire, .stride = 1},
	{.name = "be refused", .configure = fixed, .meet = take_all, .act = acquire, .stride = 1},
	{.name = "release", .configure = fixed, .prepare = acquire, .act = release, .stride = 1},
	{.name = "acquire, parted", .configure = parted, .act = acquire_costly, .stride = 1},
	{.name = "release, parted",
	 .configure = parted,
	 .prepare = acquire_costly,
	 .act = drop,
	 .stride = 1},
	{.name = "acquire, ranked", .configure = ranked, .act = acquire_low, .stride = 1},
	{.name = "close a window",
	 .configure = learning,
	 .prepare = acquire,
	 .act = release,
	 .stride = 1},
	{.name = "enqueue", .configure = fixed, .meet = take_all, .act = enqueue, .stride = 3},
	{.name = "enqueue, and be served", .configure = fixed, .act = enqueue, .stride = 3},
	{.name = "enqueue, parted",
	 .configure = parted,
	 .meet = take_all,
	 .act = enqueue,
	 .stride = 7},
	{.name = "poll", .configure = fixed, .prepare = enqueue, .act = poll, .stride = 1},
	{.name = "cancel",
	 .configure = fixed,
	 .meet = take_all,
	 .prepare = enqueue,
	 .act = cancel,
	 .stride = 3},
	{.name = "wait", .configure = fixed, .meet = take_all, .act = wait_briefly, .stride = 7},
	{.name = "serve",
	 .configure = fixed,
	 .meet = take_some,
	 .prepare = acquire,
	 .meanwhile = wait_in_line,
	 .act = release,
	 .end = be_granted,
	 .stride = 1},
	{.name = "serve, parted",
	 .configure = parted,
	 .meet = take_one,
	 .prepare = acquire_costly,
	 .meanwhile = wait_in_line,
	 .act = release,
	 .end = be_granted,
	 .stride = 5},
	{.name = "raise the limit",
	 .configure = settable,
	 .meet = wait_at_limit,
	 .act = raise_limit,
	 .end = lower_limit,
	 .stride = 1},
	{.name = "detach a call",
	 .configure = on_top,
	 .meet = detach_one,
	 .prepare = acquire,
	 .act = detach_call,
	 .end = stay_on_top,
	 .stride = 1},
	{.name = "detach a call, and serve",
	 .configure = on_top,
	 .meet = detach_one_of_all,
	 .prepare = acquire,
	 .meanwhile = wait_in_line,
	 .act = detach_call,
	 .end = be_granted_on_top,
	 .stride = 3},
	{.name = "release a detached call",
	 .configure = on_top,
	 .meet = detach_one,
	 .prepare = acquire_detached,
	 .act = release,
	 .end = stay_on_top,
	 .stride = 1},
	{.name = "delay a refusal", .configure = parted, .act = delay, .stride = 1},
	{.name = "attach",
	 .configure = fixed,
	 .act = attach,
	 .detached = true,
	 .stride = LONG * 97},
	{.name = "detach",
	 .configure = fixed,
	 .meet = take_some,
	 .prepare = hold_and_wait,
	 .act = detach,
	 .stride = LONG},
	{.name = "detach, with a detached call",
	 .configure = on_top,
	 .meet = detach_one,
	 .prepare = acquire_detached,
	 .act = detach,
	 .end = stay_on_top,
	 .stride = LONG},
	{.name = "reap",
	 .configure = fixed,
	 .meet = take_some,
	 .prepare = see_another_die,
	 .act = reap_another,
	 .stride = LONG * 11},
	{.name = "reap a detached call",
	 .configure = on_top,
	 .meet = detach_one,
	 .prepare = see_another_stream_die,
	 .act = reap_another,
	 .end = stay_on_top,
	 .stride = LONG * 3},
};

/* So that the dynamic linker's instructions are not counted. */
static void warm_up(void)
{
	struct weir_limiter *limiter;
	struct weir_config config;
	struct weir_token token;
	struct weir_wait wait;

	weir_config_init(&config);
	config.queue = 1;
	CHECK(weir_limiter_create(&config, &limiter) == 0);
	CHECK(weir_enqueue(limiter, NULL, NULL, &wait) == 0);
	CHECK(weir_poll(limiter, &wait, &token) == 0);
	weir_release(limiter, &token, WEIR_SUCCESS);
	CHECK(weir_try_acquire(limiter, &token) == 0);
	weir_release(limiter, &token, WEIR_SUCCESS);
	weir_limiter_destroy(limiter);
}

static void stop(void)
{
	CHECK(raise(SIGSTOP) == 0);
}

static void die_in(const struct scene *scene, void *block, size_t size)
{
	struct victim v = {.block = block, .size = size};

	if (!scene->detached)
		CHECK(weir_shm_attach(block, size, NULL, &v.limiter, NULL, 0) == 0);
	warm_up();
	if (scene->prepare != NULL)
		scene->prepare(&v);
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	stop();
	scene->act(&v);
	_exit(0);
}

static void reap_all(struct weir_limiter *own)
{
	const weir_time now = weir_now();

	for (unsigned i = 0; i < OFTEN; i++)
		CHECK(weir_shm_reap_at(own, now + i * 500 * WEIR_MS, NULL) == 0);
}

static void check_partitions(struct weir_limiter *own)
{
	struct weir_partition_snapshot part;

	for (unsigned i = 0; i < weir_partition_count(own); i++) {
		weir_partition_snapshot_init(&part);
		CHECK(weir_partition_snapshot_take(own, i, &part) == 0);
		CHECK(part.inflight == 0 && part.waiting == 0 && part.delayed == 0);
	}
}

/*
 * As good as new: as many calls as the limit allows are admitted, the next ones wait, windows
 * close.
 */
static void check_whole(const struct scene *scene, struct weir_limiter *own)
{
	struct weir_snapshot before, after;
	struct weir_shm_info info;
	struct weir_token last;
	struct timespec pause = {.tv_nsec = 2000};

	if (scene->end != NULL)
		scene->end(own);
	give_back(own);
	CHECK(weir_inflight(own) == 0);
	CHECK(weir_waiting(own) == 0);
	CHECK(weir_limit(own) == LIMIT);
	check_partitions(own);
	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(own, &info) == 0);
	CHECK(info.attached == 1 && info.overdrawn == 0);

	weir_snapshot_init(&before);
	weir_snapshot_take(own, &before);
	take_all(own);
	CHECK(weir_try_acquire(own, &last) == -EAGAIN);
	wait_in_line(own);
	weir_release(own, &held[--number_held], WEIR_IGNORE);
	CHECK(weir_poll(own, &waiting, &held[number_held]) == 0);
	number_held++;
	nanosleep(&pause, NULL);
	give_back(own);
	weir_snapshot_init(&after);
	weir_snapshot_take(own, &after);
	CHECK(scene->configure != learning || after.windows > before.windows);
	CHECK(after.double_released == 0);
}

/* False: the operation ended before that. */
static bool kill_after(const struct scene *scene, unsigned steps, void *block, size_t size,
		       struct weir_limiter *own)
{
	bool going = true;
	pid_t child;
	int status;

	if (scene->meet != NULL)
		scene->meet(own);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		die_in(scene, block, size);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	if (scene->meanwhile != NULL)
		scene->meanwhile(own);
	for (unsigned i = 0; i < steps && going; i++) {
		CHECK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
		CHECK(waitpid(child, &status, 0) == child);
		going = WIFSTOPPED(status);
	}
	if (going) {
		CHECK(kill(child, SIGKILL) == 0);
		CHECK(waitpid(child, &status, 0) == child);
	}
	reap_all(own);
	check_whole(scene, own);
	return going;
}

static void make_block(const struct scene *scene, struct weir_config *config, void **block,
		       size_t *size)
{
	weir_config_init(config);
	scene->configure(config);
	*size = weir_shm_size(config, MEMBERS);
	CHECK(*size > 0);
	*block = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(*block != MAP_FAILED);
	CHECK(weir_shm_init(*block, *size, config, MEMBERS, NULL, 0) == 0);
}

static void play(const struct scene *scene, unsigned stride)
{
	struct weir_limiter *own;
	struct weir_config config;
	unsigned steps = 0;
	size_t size;
	void *block;

	make_block(scene, &config, &block, &size);
	CHECK(weir_shm_attach(block, size, &config, &own, NULL, 0) == 0);
	while (kill_after(scene, steps, block, size, own))
		steps += scene->stride * stride;
	weir_shm_detach(own);
	munmap(block, size);
	printf("%s: killed at each %u. of %u instructions\n", scene->name, scene->stride * stride,
	       steps);
}

/* Permits that leases have. */
static bool add_up(void *arg, const struct weir_shm_member *member)
{
	*(uint32_t *)arg += member->permits;
	return true;
}

static bool is_on_its_way(const struct weir_limiter *own)
{
	uint32_t leased = 0;

	(void)weir_shm_visit(own, add_up, &leased);
	return weir_inflight(own) == 1 && leased == 0;
}

static void acquire_and_stop(struct victim *v)
{
	acquire(v);
	stop();
}

/* A new limiter, and a process that is stopped in the scene as soon as is_so() holds. */
static pid_t stop_where(const struct scene *scene, bool (*is_so)(const struct weir_limiter *own),
			struct weir_limiter **own, void **block, size_t *size)
{
	struct weir_config config;
	pid_t child;
	int status;

	make_block(scene, &config, block, size);
	CHECK(weir_shm_attach(*block, *size, &config, own, NULL, 0) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		die_in(scene, *block, *size);
	CHECK(waitpid(child, &status, 0) == child);
	while (!is_so(*own)) {
		CHECK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
		CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	}
	return child;
}

static void see_one_die(void *block, size_t size)
{
	struct weir_limiter *limiter;
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0)
		_exit(weir_shm_attach(block, size, NULL, &limiter, NULL, 0));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/*
 * The one way to exceed the limit: a process is stopped between the gate and its lease while
 * another one dies, for longer than an audit. Its permit is taken as lost, and this is corrected
 * later.
 */
static void stop_on_the_way(void)
{
	static const struct scene scene = {.configure = fixed, .act = acquire_and_stop};
	struct weir_limiter *own;
	struct weir_shm_info info;
	pid_t child;
	size_t size;
	void *block;
	int status;

	child = stop_where(&scene, is_on_its_way, &own, &block, &size);
	reap_all(own);
	CHECK(weir_inflight(own) == 1); /* no process has died: the permit counts as on its way */
	see_one_die(block, size);
	reap_all(own);
	CHECK(weir_inflight(own) == 0); /* one too few, since it is about to be held */
	CHECK(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	reap_all(own);
	CHECK(weir_inflight(own) == 1);
	weir_shm_info_init(&info);
	CHECK(weir_shm_info_take(own, &info) == 0);
	CHECK(info.found == 1 && info.overdrawn == 1);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	reap_all(own);
	CHECK(weir_inflight(own) == 0);
	weir_shm_detach(own);
	munmap(block, size);
}

static bool add_detached(void *arg, const struct weir_shm_member *member)
{
	*(uint32_t *)arg += member->detached;
	return true;
}

static bool is_on_its_way_up(const struct weir_limiter *own)
{
	uint32_t detached = 0;

	(void)weir_shm_visit(own, add_detached, &detached);
	return weir_limit(own) == LIMIT && detached == 1;
}

static void detach_and_stop(struct victim *v)
{
	detach_call(v);
	stop();
}

/*
 * The same between a lease and the limit: a raise that is about to happen is taken as left undone
 * by a dead process, and the limit is raised twice until the next reaping.
 */
static void stop_on_the_way_up(void)
{
	static const struct scene scene = {
		.configure = on_top, .prepare = acquire, .act = detach_and_stop};
	struct weir_limiter *own;
	pid_t child;
	void *block;
	size_t size;
	int status;

	child = stop_where(&scene, is_on_its_way_up, &own, &block, &size);
	reap_all(own);
	CHECK(weir_limit(own) == LIMIT);
	see_one_die(block, size);
	reap_all(own);
	CHECK(weir_limit(own) == LIMIT + 1);
	CHECK(ptrace(PTRACE_CONT, child, NULL, NULL) == 0);
	CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	CHECK(weir_limit(own) == LIMIT + 2);
	reap_all(own);
	CHECK(weir_limit(own) == LIMIT + 1);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	reap_all(own);
	CHECK(weir_limit(own) == LIMIT && weir_inflight(own) == 0);
	weir_shm_detach(own);
	munmap(block, size);
}

int main(int argc, char **argv)
{
	unsigned stride = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;

	need_ptrace();
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (argc < 3 || strcmp(scenes[i].name, argv[2]) == 0)
			play(&scenes[i], stride);
	stop_on_the_way();
	stop_on_the_way_up();
	return 0;
}
