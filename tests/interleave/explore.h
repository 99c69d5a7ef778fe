/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a scene of the explorer is made of.
 *
 * A scene is a small program of two to four threads over a part of the library. The explorer runs
 * it again and again, each time with another interleaving of its atomic operations and another
 * choice of the values that C11 lets each load return, until all of them within the bounds were
 * tried. The library's sources are the shipped ones: the compiler's own thread sanitizer
 * instrumentation reports each access to memory, and tsan.c passes it on.
 *
 * The threads are fibers of one thread, so a scene needs no locks for its own bookkeeping; but what
 * it changes while threads run, and what its requirements read, must be a ghost (below).
 */
#ifndef WEIR_TESTS_EXPLORE_H
#define WEIR_TESTS_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>

#define SCENE_THREADS 4

struct scene {
	const char *name;
	const char *claim; /* one sentence: what must hold in every interleaving */

	/* Before each run, alone: initializes everything that the threads use. */
	void (*setup)(void);
	void (*threads[SCENE_THREADS])(void);
	/* After each run, alone: requires what must hold in the end. May be NULL. */
	void (*check)(void);

	/* Threads that may die at any step, as a bit mask: each stands for a process. */
	unsigned mortal;
	bool torn; /* they may die before each plain store too, in the middle of what they write */

	/*
	 * Bounds of a run; 0: the default. A preemption takes the CPU from a thread that could go
	 * on. A stale read returns a value that is no longer the newest. A timeout ends a sleep
	 * though another thread could run.
	 */
	unsigned preemptions, stale, timeouts;
	bool no_stale;    /* no stale reads at all: sequential consistency */
	bool no_timeouts; /* sleeps end early only when no thread can run */
};

/* Run the scenes as the command line says; the exit status of main(). */
int explore(int argc, char **argv, const struct scene *scenes, unsigned count);

/* Fail the run, with the interleaving that led here, unless the condition holds. */
#define require(condition)                                                                         \
	((condition) ? (void)0 : explore_fail("%s:%d: not so: %s", __FILE__, __LINE__, #condition))

_Noreturn void explore_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A ghost: a number of the scene's that all threads may change and require something of, in the
 * order in which they run. Changing it is no step of its own: it belongs to the step before it.
 */
struct ghost {
	long value;
};

/* Add n. Returns the new value. */
long ghost_add(struct ghost *ghost, long n);
long ghost_get(const struct ghost *ghost);

/* A step that does nothing: other threads may run between what comes before and after it. */
void explore_step(void);

/* The number of the calling thread, from 0: its place in scene.threads. */
unsigned explore_self(void);

/* Whether a mortal thread has died. */
bool explore_died(unsigned thread);

/*
 * The same as the system tells another process, which has then seen all that the dead one did. A
 * step.
 */
bool explore_finds_dead(unsigned thread);

/*
 * Wait until ready() returns true. It may only read ghosts, the newest value of a word, and
 * explore_died().
 */
void explore_await(bool (*ready)(void));

/* Wait until thread has ended or died. */
void explore_await_end(unsigned thread);

/* The CPU that the calling thread runs on from now on; its own number until then (in setup(): 0). */
void explore_cpu(unsigned cpu);

/* The virtual time, which CLOCK_MONOTONIC tells: it moves only here and when a sleep times out. */
uint64_t explore_now(void);
void explore_pass(uint64_t ns);

/*
 * The newest value of a word. Reading it is no step: it is for requirements, which then hold at the
 * step before, and for what explore_await() calls.
 */
uint64_t explore_newest(const _Atomic uint64_t *word);

/* How the interleaving's table calls the word at that address. text must outlive the run. */
void explore_name(const volatile void *address, const char *text);

#endif
