/*
 * weir/observe.h - look at a limiter: pull a snapshot, or be told of every window.
 */
#ifndef WEIR_OBSERVE_H
#define WEIR_OBSERVE_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One window, and what the limit made of it. numbers are the limit's own, named
 * by names; count of them.
 */
struct weir_report {
	struct weir_window window;
	uint32_t limit;                   /* from now on; window.limit was in force before */
	uint32_t count;                   /* of numbers */
	const char *const *names;         /* of numbers; the algorithm's, so for ever */
	double numbers[WEIR_NUMBERS_MAX]; /* what the limit shows of itself */
};

/*
 * Told of every closed window, by the thread that closed it, one at a time.
 * The thread is one of the program's, in weir_release(): be quick. It may call the
 * limiter, but neither wait in it nor poll or cancel a waiter.
 */
struct weir_observer {
	void (*window)(void *arg, const struct weir_report *report);
	void *arg;
};

/*
 * Totals of calls since the limiter was made, each only ever growing. They are counted
 * without locks: each is right, but they may be some calls apart from each other. (Copies of
 * tokens that are released twice unnoticed count as calls that ended.)
 */
struct weir_snapshot {
	size_t size;       /* set by weir_snapshot_init() */
	uint32_t limit;    /* as weir_limit(): without any burst */
	uint32_t burst;    /* permits above it that are to be had now */
	uint32_t inflight; /* permits out; above zero when idle: a token was never released */
	uint32_t waiting;  /* calls in the queue */
	uint32_t passing;  /* calls let through that have not ended: bypass, shadow mode */
	uint32_t shadow;   /* 1 in shadow mode */

	uint64_t admitted;     /* with those in flight, and waiters whose permit has come */
	uint64_t rejected;     /* refused at once */
	uint64_t shed;         /* of the rejected: for their priority */
	uint64_t abandoned;    /* left the queue without a permit: deadline or cancel */
	uint64_t bypassed;     /* let through for WEIR_CALL_BYPASS */
	uint64_t would_reject; /* let through in shadow mode, in place of a refusal or a wait */

	uint64_t succeeded; /* ended as WEIR_SUCCESS, as the next ones as what they say */
	uint64_t ignored;   /* as WEIR_IGNORE */
	uint64_t dropped;   /* as WEIR_DROPPED */
	uint64_t timed_out; /* as WEIR_TIMED_OUT */
	uint64_t cancelled; /* as WEIR_CANCELLED */
	uint64_t failed;    /* as WEIR_FAILED */

	uint64_t detached;        /* of the admitted */
	uint64_t double_released; /* bugs of the program, caught */
	uint64_t windows;         /* closed and seen by the limit */
	struct weir_report last;  /* the last of them; all zero before the first */
};

#define weir_snapshot_init(snapshot) weir_snapshot_init_sized((snapshot), sizeof(*(snapshot)))
WEIR_API void weir_snapshot_init_sized(struct weir_snapshot *snapshot, size_t size);

/* Fill a snapshot that weir_snapshot_init() has prepared, as often as you like. Any thread. */
WEIR_API void weir_snapshot_take(const struct weir_limiter *limiter,
				 struct weir_snapshot *snapshot);

/*
 * The limiter's algorithm with all its parameters, as text that weir_limit_from_text() takes:
 * "aimd:initial=20,...". Written into size bytes of the caller's, cut there and ended by a
 * zero byte as by snprintf(); text may be NULL if size is 0. The length of the whole text. Any thread.
 */
WEIR_API size_t weir_limiter_format(const struct weir_limiter *limiter, char *text, size_t size);

/* A token that is out, as far as weir_config.track remembers. */
struct weir_outstanding {
	weir_time start;    /* when it was acquired */
	const void *place;  /* the code that called the function which acquired it */
	const char *symbol; /* the function that place is in, if it is known; or NULL */
	const char *module; /* the program or library it is in, or NULL */
	uintptr_t offset;   /* of place in module: addr2line -fe module offset */
};

/*
 * Visit every remembered token that is out; with tokens at idle, these are the
 * leaks. Stops early if visit() answers false. The number visited. Any thread.
 */
WEIR_API size_t weir_outstanding_visit(const struct weir_limiter *limiter,
				       bool (*visit)(void *arg,
						     const struct weir_outstanding *token),
				       void *arg);

#ifdef __cplusplus
}
#endif
#endif
