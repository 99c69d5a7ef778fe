/* SPDX-License-Identifier: BSD-2-Clause */
/* weir/observe.h - observe a limiter: take snapshots, or be notified of every window. */
#ifndef WEIR_OBSERVE_H
#define WEIR_OBSERVE_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A closed window, and what the limit made of it. */
struct weir_report {
	struct weir_window window;
	uint32_t limit;                   /* from now on, 0 for a pause; window.limit was before */
	uint32_t count;                   /* entries in names and numbers */
	const char *const *names;         /* of the numbers; static strings of the algorithm */
	double numbers[WEIR_NUMBERS_MAX]; /* internal values that the limit shows */
};

/*
 * Called for every closed window, by the thread that closed it, one window at a time; for a window
 * without a sample (WEIR_LIMIT_CANCELLED) only if it changed the limit. The thread is one of the
 * program's, in weir_release(), so return quickly. The callback may call the limiter, but must not
 * wait in it, nor poll or cancel a waiter.
 */
struct weir_observer {
	void (*window)(void *arg, const struct weir_report *report);
	void *arg;
};

/*
 * Totals of calls since the limiter was created; each only grows. They are counted without locks:
 * each is exact, but they may be a few calls apart from each other. (A copied token whose second
 * release goes unnoticed counts as another call that ended.)
 */
struct weir_snapshot {
	size_t size;       /* set by weir_snapshot_init() */
	uint32_t limit;    /* as weir_limit(): without any burst */
	uint32_t burst;    /* permits above the limit that are available now */
	uint32_t inflight; /* permits out; above zero when idle: a token was never released */
	uint32_t waiting;  /* calls in the queue */
	uint32_t passing;  /* calls let through that have not ended: bypass, shadow mode */
	uint32_t shadow;   /* 1 in shadow mode */

	uint64_t admitted;     /* including calls in flight, and waiters whose permit has come */
	uint64_t rejected;     /* refused at once */
	uint64_t shed;         /* of the rejected: because of their priority */
	uint64_t abandoned;    /* left the queue without a permit: deadline or cancel */
	uint64_t bypassed;     /* let through for WEIR_CALL_BYPASS */
	uint64_t would_reject; /* let through in shadow mode instead of a refusal or a wait */

	uint64_t succeeded; /* ended as WEIR_SUCCESS; the following likewise */
	uint64_t ignored;   /* as WEIR_IGNORE */
	uint64_t dropped;   /* as WEIR_DROPPED */
	uint64_t timed_out; /* as WEIR_TIMED_OUT */
	uint64_t cancelled; /* as WEIR_CANCELLED */
	uint64_t failed;    /* as WEIR_FAILED */

	uint64_t detached;        /* of the admitted: became long-lived calls */
	uint64_t double_released; /* tokens released twice: bugs in the program, caught */
	uint64_t windows;         /* windows that observers are called for */
	struct weir_report last;  /* the last of them; all zero before the first */
	double sample_every;      /* calls for each sample now; 1: all (weir_config.sample_rate) */
};

#define weir_snapshot_init(snapshot) weir_snapshot_init_sized((snapshot), sizeof(*(snapshot)))
WEIR_API void weir_snapshot_init_sized(struct weir_snapshot *snapshot, size_t size);

/* Fill a snapshot, which weir_snapshot_init() has prepared, as often as you like. Any thread. */
WEIR_API void weir_snapshot_take(const struct weir_limiter *limiter,
				 struct weir_snapshot *snapshot);

/*
 * Write the limiter's algorithm with all its parameters, as text that weir_limit_from_text()
 * accepts: "aimd:initial=20,...". Writes size bytes at most, cut there and ended by a zero byte as
 * by snprintf(); text may be NULL if size is 0. Returns the length of the whole text. Any thread.
 */
WEIR_API size_t weir_limiter_format(const struct weir_limiter *limiter, char *text, size_t size);

/* A token that is out, as far as it is tracked (weir_config.track). */
struct weir_outstanding {
	weir_time start;    /* when it was acquired */
	const void *place;  /* the code that called the function that acquired it */
	const char *symbol; /* the function that contains place, or NULL if unknown */
	const char *module; /* the program or library that contains place, or NULL */
	uintptr_t offset;   /* offset of place in module: addr2line -fe module offset */
};

/*
 * Visit every tracked token that is out. Tokens that are out when the program is idle are leaks.
 * Stops early if visit() returns false. Returns the number visited. Any thread.
 */
WEIR_API size_t weir_outstanding_visit(const struct weir_limiter *limiter,
				       bool (*visit)(void *arg,
						     const struct weir_outstanding *token),
				       void *arg);

#ifdef __cplusplus
}
#endif
#endif
