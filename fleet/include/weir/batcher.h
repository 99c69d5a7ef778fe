/*
 * weir/batcher.h - operations from a queue of the program's, in batches, at the pace of a rate.
 *
 *	struct record {
 *		struct weir_operation operation;
 *		...
 *	};
 *
 *	static void insert(void *arg, struct weir_batch batch, struct weir_operation *first,
 *			   size_t count)
 *	{
 *		... send them, and when the answer is there, or never will be:
 *		weir_batcher_done(batcher, batch);
 *	}
 *
 *	static const struct weir_batch_handler watcher = {.process = insert, .batch_max = 100};
 *
 *	while ((record = next_record()) != NULL) {
 *		record->operation = (struct weir_operation){
 *			.watcher = &watcher, .cost = {{10}}, .flags = WEIR_OPERATION_BATCHABLE};
 *		error = weir_batcher_enqueue(batcher, &record->operation, WEIR_FOREVER);
 *		...
 *	}
 *	weir_batcher_drain(batcher, WEIR_FOREVER);
 *
 * A job processor takes operations from a durable queue and must not send more of them than the
 * callee allows. The batcher holds those that were taken, some thousands; releases them when the
 * rate has units for their cost (weir/rate.h), in the order in which they came; puts those that
 * may go together into batches; and says how many units all of them need, so that a share of a
 * fleet's rate can be asked for.
 *
 * Whose they are. An operation is memory of the caller's, so nothing is allocated for it. It is the
 * batcher's from weir_batcher_enqueue() until it comes back: to its watcher's process(), or from
 * weir_batcher_discard(). What process() gets is the program's again at once: it may free it, or
 * enqueue it again later, to try once more. So none is ever lost, and none is there twice.
 *
 * Time. Operations are released at flushes: at each flush_interval while there are any, and by
 * weir_batcher_flush(). Let it be no longer than the rate's slot (weir_rate_snapshot.slot) or units
 * lapse. The rate should have no other callers that wait: while somebody waits for it, nothing is
 * released here.
 *
 * A batcher has a thread of its own, which flushes, calls process(), and tells. With
 * weir_batcher_config.by_hand it has none, and somebody calls weir_batcher_turn().
 *
 * Thread safety. Every function may be called from any thread at any time, except
 * weir_batcher_destroy(). Callbacks run without a lock and may call the batcher, but neither
 * wait in it, nor drain, nor destroy it. Not for signal handlers.
 *
 * Fork. A batcher belongs to the process that made it.
 *
 * Cancellation. Nothing here is a cancellation point.
 */
#ifndef WEIR_BATCHER_H
#define WEIR_BATCHER_H

#include <weir/rate.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_batcher;
struct weir_operation;

/* A batch in progress. A value. */
struct weir_batch {
	uint32_t slot;  /* opaque */
	uint32_t stamp; /* opaque; 0: none */
};

/*
 * Called with each batch: count operations, the oldest first, by their next. They are the
 * program's from now on; the batch is in progress until weir_batcher_done(). Be quick, or hand it
 * to a thread of your own (weir/executor.h): while it runs nothing else is released.
 */
typedef void weir_process_fn(void *arg, struct weir_batch batch, struct weir_operation *first,
			     size_t count);

/* Who gets operations, and how. The caller's: must outlive them, and stay as it is. */
struct weir_batch_handler {
	weir_process_fn *process;
	void *arg;
	uint32_t attempts_max; /* 0: no bound; so often an operation may be given to it */
	uint32_t batch_max;    /* 0: no bound; operations in a batch */
	/*
	 * The batcher's; so long a batch counts as in progress at most. WEIR_FOREVER: until it is
	 * done, or an audit resets it.
	 */
	weir_dur time_max;
};

enum {
	WEIR_OPERATION_BATCHABLE = 1u << 0, /* it may share a batch with others of its watcher */
};

/* Something to be done. All zero but for what it is. */
struct weir_operation {
	const struct weir_batch_handler *watcher;
	struct weir_cost cost;       /* of each of the rate's quotas; nothing is allowed */
	uint32_t flags;              /* 0, or WEIR_OPERATION_BATCHABLE */
	uint32_t attempts;           /* times that it was given to its watcher; counted here */
	struct weir_operation *next; /* in process(): the next of its batch, or NULL */
	const void *inside;          /* opaque; NULL: it is the program's */
};

/* What a batcher tells of. In value, what it is about. */
enum weir_batcher_event {
	WEIR_BATCHER_FLUSH,        /* operations released */
	WEIR_BATCHER_BATCH,        /* operations in it: before its process() */
	WEIR_BATCHER_TIMED_OUT,    /* batches that were not done in time */
	WEIR_BATCHER_PAUSE,        /* nanoseconds */
	WEIR_BATCHER_RESUME,       /* 0 */
	WEIR_BATCHER_AUDIT_PASSED, /* 0 */
	WEIR_BATCHER_AUDIT_FAILED, /* batches that were in progress for no known reason, and are reset */
	WEIR_BATCHER_AUDIT_SKIPPED, /* operations that are there: it is busy */
	WEIR_BATCHER_SHUTDOWN,      /* operations that were there when it closed */
};

/*
 * How a batcher is to be. weir_batcher_config_init() first; zero means the default. Everything but
 * the rate and the clock is copied.
 */
struct weir_batcher_config {
	size_t size; /* set by weir_batcher_config_init() */

	struct weir_rate *rate;  /* required: must outlive the batcher */
	uint32_t buffer;         /* 10,000: operations that it holds before they are released */
	uint32_t batches;        /* 1024: batches in progress at once, at most 65535 */
	weir_dur flush_interval; /* 100 ms */
	weir_dur wants_interval; /* 100 ms */
	weir_dur audit_interval; /* 10 s */
	weir_dur time_max;       /* 60 s: of watchers that say nothing else; and of audits */
	weir_dur pause;          /* 500 ms: how long weir_batcher_pause() lasts */

	/*
	 * None: an operation that costs more of a quota is refused. As debt is paid in time, any
	 * cost can be; this is for those that would hold up all others for too long. 0: no bound.
	 */
	struct weir_cost cost_max;

	uint32_t by_hand;  /* 0: a thread; 1: weir_batcher_turn() is called instead */
	uint32_t reserved; /* 0 */
	const struct weir_clock
		*clock; /* CLOCK_MONOTONIC; another only by hand, and nobody waits */

	/*
	 * Told of events; and, each wants_interval in which that changed, of the units that all
	 * operations need that are here and not done. By the thread that turns the batcher, or
	 * called the function that it tells of. Both may be NULL.
	 */
	void (*event)(void *arg, enum weir_batcher_event event, uint64_t value);
	void (*wants)(void *arg, const struct weir_cost *units);
	void *arg;
};

#define weir_batcher_config_init(config) weir_batcher_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_batcher_config_init_sized(struct weir_batcher_config *config, size_t size);

/*
 * Check a configuration. 0 if a batcher can be made of it, else -EINVAL and one sentence in why
 * (may be NULL), cut at why_size.
 */
WEIR_API int weir_batcher_config_check(const struct weir_batcher_config *config, char *why,
				       size_t why_size);

/*
 * Make a batcher, and its thread. 0; -EINVAL: the configuration is no good; -ENOMEM, -EAGAIN:
 * there is no memory, or no thread. End with weir_batcher_destroy().
 */
WEIR_API WEIR_MUST_CHECK int weir_batcher_create(const struct weir_batcher_config *config,
						 struct weir_batcher **batcher);

/*
 * Hand an operation over. Waits while the buffer is full, until deadline (on weir_now()'s clock);
 * 0: does not wait. 0: it is the batcher's; otherwise it stays the caller's: -EAGAIN: the buffer
 * is full, and deadline is 0, or the batcher has a clock of its own; -ETIMEDOUT: it was full until
 * deadline; -E2BIG: it costs more than cost_max; -ELOOP: it has been tried attempts_max times;
 * -ESHUTDOWN: nothing is accepted any more; -EBUSY: it is in a batcher already; -EINVAL: no
 * operation, watcher or process, or a cost above WEIR_UNITS_MAX.
 */
WEIR_API WEIR_MUST_CHECK int weir_batcher_enqueue(struct weir_batcher *batcher,
						  struct weir_operation *operation,
						  weir_time deadline);

/*
 * A batch is over, however it went. 0; -ETIMEDOUT: it was not in time and counts as over already;
 * -EINVAL: there is no such batch.
 */
WEIR_API int weir_batcher_done(struct weir_batcher *batcher, struct weir_batch batch);

/* Flush as soon as may be, not at the next interval. */
WEIR_API void weir_batcher_flush(struct weir_batcher *batcher);

/*
 * Release nothing for weir_batcher_config.pause: the callee has trouble. While it is paused this
 * does nothing. weir_batcher_resume() ends it. For a callee that says that there were too
 * many, weir_rate_throttled() is better.
 */
WEIR_API void weir_batcher_pause(struct weir_batcher *batcher);
WEIR_API void weir_batcher_resume(struct weir_batcher *batcher);

/* Units of each quota that all operations need which are here, or in batches that are not done. */
WEIR_API struct weir_cost weir_batcher_needs(struct weir_batcher *batcher);

/*
 * Do what is due: time-outs, a flush, an audit; call back; and tell when to come next. For
 * weir_batcher_config.by_hand; something enqueued, done, flushed, paused or resumed meanwhile may
 * make it sooner.
 */
WEIR_API weir_time weir_batcher_turn(struct weir_batcher *batcher);

/*
 * Accept no more, for good; end the enqueues that wait, with -ESHUTDOWN; wait until all that was
 * accepted has been released, at the rate's pace, and is done. 0; -ETIMEDOUT: not by deadline, and
 * it goes on: call again; -EAGAIN: by hand, and there is still something to be done: turn it, and
 * call again.
 */
WEIR_API int weir_batcher_drain(struct weir_batcher *batcher, weir_time deadline);

/*
 * Accept no more, and give back what has not been released. given is called for each, in this
 * thread, oldest first, and may free it. NULL: they are the program's again all the same. How many.
 */
WEIR_API size_t weir_batcher_discard(struct weir_batcher *batcher,
				     void (*given)(void *context, struct weir_operation *operation),
				     void *context);

/*
 * End a batcher, and its thread. 0; -EBUSY: operations are in it, or batches in progress: drain or
 * discard first. NULL is allowed.
 */
WEIR_API int weir_batcher_destroy(struct weir_batcher *batcher);

/*
 * Numbers of a batcher, all of one instant: accepted == queued + released + discarded, and batches
 * == running + done + timed_out + reset.
 */
struct weir_batcher_stats {
	size_t size;        /* set by weir_batcher_stats_init() */
	uint32_t queued;    /* operations in the buffer */
	uint32_t running;   /* batches in progress */
	uint32_t blocked;   /* enqueues that wait */
	uint32_t paused;    /* 1 while it is */
	uint64_t accepted;  /* operations; as the next five */
	uint64_t full;      /* not accepted: the buffer was full, at once or until the deadline */
	uint64_t too_dear;  /* not accepted: above cost_max */
	uint64_t too_often; /* not accepted: above attempts_max */
	uint64_t released;
	uint64_t discarded;
	uint64_t batches; /* begun */
	uint64_t done;
	uint64_t timed_out;
	uint64_t reset; /* by audits */
	uint64_t flushes;
	uint64_t audits_failed;
	struct weir_cost needs; /* as weir_batcher_needs() */
};

#define weir_batcher_stats_init(stats) weir_batcher_stats_init_sized((stats), sizeof(*(stats)))
WEIR_API void weir_batcher_stats_init_sized(struct weir_batcher_stats *stats, size_t size);

/* Fill stats that weir_batcher_stats_init() has prepared, as often as you like. */
WEIR_API void weir_batcher_stats_take(struct weir_batcher *batcher,
				      struct weir_batcher_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
