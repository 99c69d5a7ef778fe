/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/batcher.h - releases queued operations in batches, as fast as a rate allows.
 *
 *	struct record {
 *		struct weir_operation operation;
 *		...
 *	};
 *
 *	static void insert(void *arg, struct weir_batch batch, struct weir_operation *first,
 *			   size_t count)
 *	{
 *		... send them, and when the response has arrived, or never will:
 *		weir_batcher_done(batcher, batch);
 *	}
 *
 *	static const struct weir_batch_handler handler = {.process = insert, .batch_max = 100};
 *
 *	while ((record = next_record()) != NULL) {
 *		record->operation = (struct weir_operation){
 *			.watcher = &handler, .cost = {{10}}, .flags = WEIR_OPERATION_BATCHABLE};
 *		error = weir_batcher_enqueue(batcher, &record->operation, WEIR_FOREVER);
 *		...
 *	}
 *	weir_batcher_drain(batcher, WEIR_FOREVER);
 *
 * For a job processor that takes operations from a durable queue and must not send more of them
 * than the backend allows. The batcher holds some thousands of operations, releases them in order
 * of arrival when the rate has units for their cost (weir/rate.h), groups those that may share a
 * batch, and computes how many units all of them need, so that a process can request its share of a
 * fleet's rate.
 *
 * Ownership. An operation is memory of the caller's, so nothing is allocated for it. The batcher
 * owns it from weir_batcher_enqueue() until it is passed to its handler's process() or returned by
 * weir_batcher_discard(). The program owns it again from then on: process() may free it, or enqueue
 * it again for another attempt. So no operation is ever lost or duplicated.
 *
 * Time. Operations are released by flushes: one per flush_interval while there are any, and one for
 * each weir_batcher_flush(). flush_interval must not exceed the rate's slot
 * (weir_rate_snapshot.slot), or units lapse. The rate should have no other callers that wait for
 * it: while another caller waits, nothing is released here.
 *
 * A batcher has a thread, which flushes, calls process(), and reports events. With
 * weir_batcher_config.by_hand it has none, and the program calls weir_batcher_turn().
 *
 * Thread safety. Every function may be called from any thread at any time, except
 * weir_batcher_destroy(). Callbacks run without a lock. They may call the batcher, but must not
 * wait in it, drain it or destroy it. Not for signal handlers.
 *
 * Fork. A batcher belongs to the process that created it.
 *
 * Cancellation. No function here is a cancellation point.
 */
#ifndef WEIR_BATCHER_H
#define WEIR_BATCHER_H

#include <weir/rate.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_batcher;
struct weir_operation;

/* A batch in progress. A value, which may be copied. */
struct weir_batch {
	uint32_t slot;  /* opaque */
	uint32_t stamp; /* opaque; 0: none */
};

/*
 * Called with each batch: count operations, the oldest first, linked by next. The program owns them
 * from now on. The batch is in progress until weir_batcher_done(). Return quickly, or hand the
 * batch to another thread (weir/executor.h): nothing else is released until this returns.
 */
typedef void weir_process_fn(void *arg, struct weir_batch batch, struct weir_operation *first,
			     size_t count);

/* How operations are processed. Owned by the caller; must outlive them, and must not change. */
struct weir_batch_handler {
	weir_process_fn *process;
	void *arg;
	uint32_t attempts_max; /* attempts allowed for each operation; 0: no bound */
	uint32_t batch_max;    /* operations allowed in a batch; 0: no bound */
	/*
	 * How long a batch counts as in progress at most. 0: weir_batcher_config.time_max.
	 * WEIR_FOREVER: until it is done, or an audit resets it.
	 */
	weir_dur time_max;
};

enum {
	WEIR_OPERATION_BATCHABLE = 1u << 0, /* it may share a batch with others of its handler */
};

/* An operation. All fields are zero except those that the caller sets. */
struct weir_operation {
	const struct weir_batch_handler *watcher;
	struct weir_cost cost;       /* units of each of the rate's quotas; may be 0 */
	uint32_t flags;              /* 0, or WEIR_OPERATION_BATCHABLE */
	uint32_t attempts;           /* times that it was passed to its handler */
	struct weir_operation *next; /* in process(): the next of its batch, or NULL */
	const void *inside;          /* opaque; NULL: the program owns it */
};

/* Events of a batcher. The comments say what value is. */
enum weir_batcher_event {
	WEIR_BATCHER_FLUSH,         /* number of operations released */
	WEIR_BATCHER_BATCH,         /* number of its operations; reported before its process() */
	WEIR_BATCHER_TIMED_OUT,     /* number of batches that were not done in time */
	WEIR_BATCHER_PAUSE,         /* length of the pause, in ns */
	WEIR_BATCHER_RESUME,        /* 0 */
	WEIR_BATCHER_AUDIT_PASSED,  /* 0 */
	WEIR_BATCHER_AUDIT_FAILED,  /* number of stale batches in progress, which were reset */
	WEIR_BATCHER_AUDIT_SKIPPED, /* number of operations held, for which there was no audit */
	WEIR_BATCHER_SHUTDOWN,      /* number of operations held when it closed */
};

/*
 * Configuration of a batcher. Call weir_batcher_config_init() first; 0 means the default.
 * Everything except the rate and the clock is copied.
 */
struct weir_batcher_config {
	size_t size; /* set by weir_batcher_config_init() */

	struct weir_rate *rate;  /* required: must outlive the batcher */
	uint32_t buffer;         /* default: 10,000; operations held before their release */
	uint32_t batches;        /* default: 1024; batches in progress at once, at most 65535 */
	weir_dur flush_interval; /* default: 100 ms */
	weir_dur wants_interval; /* default: 100 ms */
	weir_dur audit_interval; /* default: 10 s */
	weir_dur time_max;       /* default: 60 s; for handlers that set none, and for audits */
	weir_dur pause;          /* default: 500 ms; length of weir_batcher_pause() */

	/*
	 * Operations that cost more than this of a quota are refused. The rate allows a cost above
	 * its burst, as debt is paid off over time; this is for operations that would delay all
	 * others for too long. Default: 0, no bound.
	 */
	struct weir_cost cost_max;

	uint32_t by_hand;  /* 0: a thread; 1: the program calls weir_batcher_turn() */
	uint32_t reserved; /* 0 */
	/* Default: CLOCK_MONOTONIC. Any other requires by_hand, and enqueues never wait. */
	const struct weir_clock *clock;

	/*
	 * event() is called for each event. wants() is called with the units of each quota that all
	 * operations held, or in progress, need; once per wants_interval if that has changed. Both
	 * are called by the thread that turns the batcher, or by the one whose call caused the
	 * event. Both may be NULL.
	 */
	void (*event)(void *arg, enum weir_batcher_event event, uint64_t value);
	void (*wants)(void *arg, const struct weir_cost *units);
	void *arg;
};

#define weir_batcher_config_init(config) weir_batcher_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_batcher_config_init_sized(struct weir_batcher_config *config, size_t size);

/*
 * Check a configuration. Returns 0 if a batcher can be created with it, else -EINVAL, and one
 * sentence in why (may be NULL), truncated to why_size.
 */
WEIR_API int weir_batcher_config_check(const struct weir_batcher_config *config, char *why,
				       size_t why_size);

/*
 * Create a batcher, and its thread. End with weir_batcher_destroy().
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid
 * -ENOMEM: out of memory
 * -EAGAIN: no thread could be created
 */
WEIR_API WEIR_MUST_CHECK int weir_batcher_create(const struct weir_batcher_config *config,
						 struct weir_batcher **batcher);

/*
 * Hand an operation to the batcher. While the buffer is full, waits until deadline (on weir_now()'s
 * clock); 0: does not wait.
 *
 * Returns 0 if the batcher owns the operation now. Otherwise the caller still owns it:
 * -EAGAIN: the buffer is full, and deadline is 0 or the batcher has another clock
 * -ETIMEDOUT: the buffer was full until deadline
 * -E2BIG: it costs more than cost_max
 * -ELOOP: it has been attempted attempts_max times
 * -ESHUTDOWN: no more operations are accepted
 * -EBUSY: it is in a batcher already
 * -EINVAL: no operation, handler or process, or a cost above WEIR_UNITS_MAX
 */
WEIR_API WEIR_MUST_CHECK int weir_batcher_enqueue(struct weir_batcher *batcher,
						  struct weir_operation *operation,
						  weir_time deadline);

/*
 * Report the end of a batch, whatever its outcome.
 *
 * Returns 0, or a negative errno:
 * -ETIMEDOUT: it was not done in time, and had been counted as over
 * -EINVAL: there is no such batch
 */
WEIR_API int weir_batcher_done(struct weir_batcher *batcher, struct weir_batch batch);

/* Flush as soon as possible, without waiting for the next interval. */
WEIR_API void weir_batcher_flush(struct weir_batcher *batcher);

/*
 * Release nothing for weir_batcher_config.pause, for a backend in trouble. A call during a pause
 * has no effect. weir_batcher_resume() ends the pause. For a backend that signals overload,
 * weir_rate_throttled() is better.
 */
WEIR_API void weir_batcher_pause(struct weir_batcher *batcher);
WEIR_API void weir_batcher_resume(struct weir_batcher *batcher);

/*
 * Return the units of each quota that all operations need that are held, or in batches that are not
 * done.
 */
WEIR_API struct weir_cost weir_batcher_needs(struct weir_batcher *batcher);

/*
 * Carry out time-outs, a flush and an audit as far as they are due, run callbacks, and return the
 * time of the next turn. For weir_batcher_config.by_hand. A call of another function in between may
 * make an earlier turn necessary.
 */
WEIR_API weir_time weir_batcher_turn(struct weir_batcher *batcher);

/*
 * Stop accepting operations for good, end pending enqueues with -ESHUTDOWN, and wait until all
 * operations accepted have been released, at the speed that the rate allows, and are done.
 *
 * Returns 0, or a negative errno:
 * -ETIMEDOUT: not until deadline; draining goes on: call again
 * -EAGAIN: by_hand is set, and there is work left: turn the batcher, and call again
 */
WEIR_API int weir_batcher_drain(struct weir_batcher *batcher, weir_time deadline);

/*
 * Stop accepting operations, and return to the program those that have not been released. given is
 * called for each, in this thread, oldest first, and may free it. May be NULL. Returns the number
 * of operations.
 */
WEIR_API size_t weir_batcher_discard(struct weir_batcher *batcher,
				     void (*given)(void *context, struct weir_operation *operation),
				     void *context);

/*
 * Free a batcher, and end its thread. Returns 0, or -EBUSY: it holds operations, or batches are in
 * progress: drain or discard first. NULL is allowed.
 */
WEIR_API int weir_batcher_destroy(struct weir_batcher *batcher);

/*
 * Statistics of a batcher, consistent as of one instant: accepted == queued + released + discarded,
 * and batches == running + done + timed_out + reset.
 */
struct weir_batcher_stats {
	size_t size;        /* set by weir_batcher_stats_init() */
	uint32_t queued;    /* operations held */
	uint32_t running;   /* batches in progress */
	uint32_t blocked;   /* enqueues that wait */
	uint32_t paused;    /* 1: a pause is in effect */
	uint64_t accepted;  /* operations; likewise the next five */
	uint64_t full;      /* refused: the buffer was full, at once or until the deadline */
	uint64_t too_dear;  /* refused: above cost_max */
	uint64_t too_often; /* refused: above attempts_max */
	uint64_t released;
	uint64_t discarded;
	uint64_t batches; /* begun */
	uint64_t done;
	uint64_t timed_out;
	uint64_t reset; /* by audits */
	uint64_t flushes;
	uint64_t audits_failed;
	struct weir_cost needs; /* the same as weir_batcher_needs() */
};

#define weir_batcher_stats_init(stats) weir_batcher_stats_init_sized((stats), sizeof(*(stats)))
WEIR_API void weir_batcher_stats_init_sized(struct weir_batcher_stats *stats, size_t size);

/* Fill in stats, prepared by weir_batcher_stats_init(). May be called any number of times. */
WEIR_API void weir_batcher_stats_take(struct weir_batcher *batcher,
				      struct weir_batcher_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
