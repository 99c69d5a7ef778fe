/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system that the explored code runs on. Its own calls bind to these functions, because the
 * program defines them; the C library and the explorer go on with theirs. The heap's functions are
 * replaced by the linker (--wrap), for the same reason.
 */

#include "tests/interleave/system.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/park.h"
#include "tests/interleave/memory.h"
#include "tests/interleave/schedule.h"
#include "tests/interleave/trace.h"

#define PC __builtin_return_address(0)

/* The heap: an arena, from which nothing is used twice in a run. */
#define ARENA (8u << 20)
#define UNIT  64u

struct allocation {
	size_t size;
	bool freed;
};

static _Alignas(4096) char arena[ARENA];
static struct allocation allocations[ARENA / UNIT]; /* by the unit where each begins */
static size_t arena_used;

/* A mutex or condition variable; the program's own memory of it is not used. */
#define LOCKS 128

struct lock {
	const void *address;
	int owner; /* -1: none */
	bool robust;
	bool left; /* by an owner that died; what it protects may be inconsistent */
	bool lost; /* it was unlocked in that state, and is of no use any more */
	struct view view;
	uint64_t last; /* identifies the step that last changed it */
};

static struct lock locks[LOCKS];
static unsigned lock_count;

void *__real_malloc(size_t size);
void __real_free(void *memory);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void __wrap_free(void *memory);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool in_run;

void system_reset(void)
{
	memset(allocations, 0, arena_used / UNIT * sizeof(allocations[0]));
	memset(arena, 0xa5, arena_used);
	arena_used = 0;
	lock_count = 0;
	in_run = true;
}

static bool in_arena(const volatile void *memory)
{
	return (uintptr_t)memory >= (uintptr_t)arena &&
	       (uintptr_t)memory < (uintptr_t)arena + ARENA;
}

static void *take(size_t alignment, size_t size)
{
	const size_t begin = (arena_used + alignment - 1) / alignment * alignment;
	const size_t end = (begin + size + UNIT) / UNIT * UNIT;

	if (end > ARENA)
		explore_fail("the explored code needs more than %u bytes", ARENA);
	arena_used = end;
	allocations[begin / UNIT] = (struct allocation){.size = size};
	return arena + begin;
}

void *__wrap_malloc(size_t size)
{
	return take(UNIT, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return memset(take(UNIT, count * size), 0, count * size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
	*memory = take(alignment > UNIT ? alignment : UNIT, size);
	return 0;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return take(alignment > UNIT ? alignment : UNIT, size);
}

void __wrap_free(void *memory)
{
	struct allocation *it;

	if (memory == NULL)
		return;
	if (!in_arena(memory)) {
		__real_free(memory);
		return;
	}
	it = &allocations[((uintptr_t)memory - (uintptr_t)arena) / UNIT];
	if (it->freed)
		explore_fail("%p is freed twice", memory);
	memory_plain(memory, it->size < 64 ? it->size : 64, true, PC);
	it->freed = true;
}

void *__wrap_realloc(void *memory, size_t size)
{
	void *moved = take(UNIT, size);

	if (memory != NULL) {
		const size_t before =
			allocations[((uintptr_t)memory - (uintptr_t)arena) / UNIT].size;

		memcpy(moved, memory, before < size ? before : size);
		__wrap_free(memory);
	}
	return moved;
}

/* What the explored code maps; the explorer asks the kernel itself. Scenes may have their own. */
__attribute__((weak)) void *mmap(void *address, size_t size, int protection, int flags, int fd,
				 off_t offset)
{
	if (in_run)
		return memset(take(4096, size), 0, size);
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

__attribute__((weak)) int munmap(void *memory, size_t size)
{
	if (in_arena(memory))
		return 0;
	return (int)syscall(SYS_munmap, memory, size);
}

int getentropy(void *buffer, size_t size)
{
	memset(buffer, 0x5a, size);
	return 0;
}

void system_touch(void *address, size_t size, const void *pc)
{
	size_t unit;

	(void)size;
	(void)pc;
	if (!in_arena(address))
		return;
	unit = ((uintptr_t)address - (uintptr_t)arena) / UNIT;
	while (unit > 0 && allocations[unit].size == 0)
		unit--;
	if (allocations[unit].freed)
		explore_fail("%p is used after it was freed", address);
}

void system_access(void *address, size_t size, bool writes, const void *pc)
{
	if (!schedule_running() || schedule_is_own(address))
		return;
	if (address == &errno)
		return; /* each thread has one of its own */
	if (writes)
		schedule_store(pc);
	system_touch(address, size, pc);
	memory_plain(address, size, writes, pc);
}

/* Parks: lib/base/park.h, with the barriers that Concurrency Kit's event count has. */

void park_init(struct park *park)
{
	memset(park, 0, sizeof(*park));
}

uint32_t park_look(const struct park *park)
{
	return (uint32_t)memory_load((void *)(uintptr_t)park->count, 4, __ATOMIC_ACQUIRE, PC);
}

bool park_sleep(struct park *park, uint32_t seen, weir_time deadline)
{
	if (memory_newest(park->count, 4, PC) != seen)
		return true;
	return schedule_sleep(park, deadline, PC);
}

void park_wake(struct park *park)
{
	(void)memory_rmw(park->count, 4, RMW_ADD, 1, __ATOMIC_RELEASE, PC);
	schedule_wake(park, true);
}

/* Mutexes and condition variables. */

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

static struct lock *lock_of(const void *address)
{
	unsigned i = 0;

	while (i < lock_count && locks[i].address != address)
		i++;
	if (i == LOCKS)
		explore_fail("more than %d locks", LOCKS);
	if (i == lock_count) {
		locks[lock_count++] = (struct lock){.address = address, .owner = -1};
	}
	return &locks[i];
}

static void note(const char *what, const void *address, const void *pc)
{
	trace_add(&(struct step){
		.thread = schedule_self(), .what = what, .address = address, .pc = pc});
}

static void own(struct lock *lock, const void *pc)
{
	lock->owner = (int)schedule_self();
	memory_acquire(schedule_self(), &lock->view);
	schedule_did('L', lock->last);
	schedule_wrote();
	note("locks", lock->address, pc);
}

static int lock_until(struct lock *lock, uint64_t deadline, const void *pc)
{
	while (lock->owner >= 0) {
		if (lock->owner == (int)schedule_self())
			explore_fail("a thread locks a mutex that it has locked");
		if (!schedule_sleep(lock, deadline, pc) && lock->owner >= 0)
			return ETIMEDOUT;
	}
	if (lock->lost)
		return ENOTRECOVERABLE;
	own(lock, pc);
	return lock->left ? EOWNERDEAD : 0;
}

static int lock_mutex(struct lock *lock, const void *pc)
{
	return lock_until(lock, UINT64_MAX, pc);
}

static void unlock_mutex(struct lock *lock, const void *pc)
{
	if (lock->owner != (int)schedule_self())
		explore_fail("a thread unlocks a mutex that it has not locked");
	lock->owner = -1;
	lock->lost = lock->left;
	memory_release(schedule_self(), &lock->view);
	lock->last = schedule_did('U', lock->last);
	note("unlocks", lock->address, pc);
	schedule_wake(lock, true);
}

void system_died(unsigned thread)
{
	for (unsigned i = 0; i < lock_count; i++)
		if (locks[i].owner == (int)thread && locks[i].robust) {
			locks[i].owner = -1;
			locks[i].left = true;
			memory_leave(thread, &locks[i].view);
			locks[i].last = schedule_did('D', locks[i].last);
			schedule_wake(&locks[i], true);
		}
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	int robust = PTHREAD_MUTEX_STALLED;

	if (attr != NULL)
		pthread_mutexattr_getrobust(attr, &robust);
	if (robust == PTHREAD_MUTEX_ROBUST)
		*lock_of(mutex) = (struct lock){.address = mutex, .owner = -1, .robust = true};
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (!schedule_running())
		return 0;
	schedule_point(PC);
	return lock_mutex(lock_of(mutex), PC);
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	(void)clock;
	if (!schedule_running())
		return 0;
	schedule_point(PC);
	return lock_until(lock_of(mutex), ns_of(until), PC);
}

int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
	struct lock *lock = lock_of(mutex);

	if (!lock->left || lock->owner != (int)schedule_self())
		return EINVAL;
	lock->left = false;
	schedule_did('c', lock->last);
	return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	struct lock *lock;

	if (!schedule_running())
		return 0;
	schedule_point(PC);
	lock = lock_of(mutex);
	if (lock->owner >= 0) {
		schedule_did('B', lock->last);
		return EBUSY;
	}
	return lock_until(lock, 0, PC);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (!schedule_running())
		return 0;
	schedule_point(PC);
	unlock_mutex(lock_of(mutex), PC);
	return 0;
}

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	(void)cond;
	(void)attr;
	return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
	(void)cond;
	return 0;
}

static int wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline, const void *pc)
{
	struct lock *lock = lock_of(mutex);
	bool woken;

	schedule_point(pc);
	unlock_mutex(lock, pc);
	woken = schedule_sleep(cond, deadline, pc);
	(void)lock_mutex(lock, pc);
	return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return wait_for(cond, mutex, UINT64_MAX, PC);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			   const struct timespec *until)
{
	return wait_for(cond, mutex, ns_of(until), PC);
}

static int wake(pthread_cond_t *cond, bool all, const void *pc)
{
	struct lock *lock = lock_of(cond);

	if (!schedule_running())
		return 0;
	schedule_point(pc);
	lock->last = schedule_did('C', lock->last);
	note(all ? "broadcasts" : "signals", cond, pc);
	schedule_wake(cond, all);
	return 0;
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	return wake(cond, false, PC);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	return wake(cond, true, PC);
}

/* Semaphores: the first word counts. */

static struct lock *semaphore_of(sem_t *semaphore)
{
	return lock_of(semaphore);
}

int sem_init(sem_t *semaphore, int shared, unsigned value)
{
	(void)shared;
	*(unsigned *)semaphore = value;
	return 0;
}

int sem_destroy(sem_t *semaphore)
{
	(void)semaphore;
	return 0;
}

int sem_post(sem_t *semaphore)
{
	struct lock *lock = semaphore_of(semaphore);

	if (schedule_running()) {
		schedule_point(PC);
		memory_release(schedule_self(), &lock->view);
		lock->last = schedule_did('P', lock->last);
		note("posts", semaphore, PC);
	}
	++*(unsigned *)semaphore;
	schedule_wake(semaphore, true);
	return 0;
}

static bool take_semaphore(sem_t *semaphore, const void *pc)
{
	struct lock *lock = semaphore_of(semaphore);
	unsigned *count = (unsigned *)semaphore;

	lock->last = schedule_did(*count > 0 ? 'D' : 'd', lock->last);
	if (*count == 0)
		return false;
	--*count;
	memory_acquire(schedule_self(), &lock->view);
	schedule_wrote();
	note("takes", semaphore, pc);
	return true;
}

int sem_trywait(sem_t *semaphore)
{
	schedule_point(PC);
	if (take_semaphore(semaphore, PC))
		return 0;
	errno = EAGAIN;
	return -1;
}

static int wait_until(sem_t *semaphore, uint64_t deadline, const void *pc)
{
	schedule_point(pc);
	while (!take_semaphore(semaphore, pc))
		if (!schedule_sleep(semaphore, deadline, pc)) {
			errno = ETIMEDOUT;
			return -1;
		}
	return 0;
}

int sem_wait(sem_t *semaphore)
{
	return wait_until(semaphore, UINT64_MAX, PC);
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
	(void)clock;
	return wait_until(semaphore,
			  (uint64_t)until->tv_sec * UINT64_C(1000000000) + (uint64_t)until->tv_nsec,
			  PC);
}

/* Threads. */

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	(void)attr;
	if (!schedule_running())
		explore_fail("threads are only created while threads run");
	schedule_point(PC);
	*thread = (pthread_t)schedule_spawn(run, arg) + 1;
	return 0;
}

int pthread_join(pthread_t thread, void **result)
{
	if (result != NULL)
		*result = NULL;
	explore_await_end((unsigned)thread - 1);
	return 0;
}

pthread_t pthread_self(void)
{
	return (pthread_t)schedule_self() + 1;
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
	return 0;
}

int pthread_setcancelstate(int state, int *before)
{
	(void)state;
	if (before != NULL)
		*before = PTHREAD_CANCEL_ENABLE;
	return 0;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
	(void)how;
	(void)set;
	if (before != NULL)
		sigemptyset(before);
	return 0;
}

/* CPU and clock. With __rseq_size of 0 the library asks sched_getcpu(). */

extern const unsigned int __rseq_size;
const unsigned int __rseq_size = 0;

int sched_getcpu(void)
{
	return (int)schedule_cpu();
}

int sched_yield(void)
{
	schedule_yield();
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *when)
{
	uint64_t now;

	if (!in_run)
		return (int)syscall(SYS_clock_gettime, clock, when);
	now = explore_now();
	*when = (struct timespec){
		.tv_sec = (time_t)(now / UINT64_C(1000000000)),
		.tv_nsec = (long)(now % UINT64_C(1000000000)),
	};
	return 0;
}

int nanosleep(const struct timespec *duration, struct timespec *rest)
{
	(void)rest;
	explore_pass(ns_of(duration));
	schedule_yield();
	return 0;
}
