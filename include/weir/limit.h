/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/limit.h - interface for authors of limit algorithms.
 *
 * A limit is a deterministic function of its state and a window of samples that returns a number.
 * It reads no clock, draws no random number, takes no lock and allocates nothing, so the same code
 * runs in a server, in a simulator and in a test. docs/writing-a-limit.md walks through one.
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_LIMIT_STATE_MAX  2304 /* largest private state, in bytes */
#define WEIR_LIMIT_CONFIG_MAX 512  /* largest configuration, in bytes */
#define WEIR_NUMBERS_MAX      8    /* most named numbers that a limit may publish */

/* Most permits that a limiter can have in flight, whatever its algorithm returns. */
#define WEIR_LIMIT_MAX UINT32_C(0x7fffff)

/* Longest pause of a limit, in nanoseconds: a minute (WEIR_LIMIT_PAUSES). */
#define WEIR_PAUSE_MAX UINT64_C(60000000000)

/*
 * One closed window of samples, or with WEIR_LIMIT_CANCELLED perhaps of none. A sample is a call
 * that ended as WEIR_SUCCESS, WEIR_DROPPED or WEIR_TIMED_OUT. Where calls are many, only some of
 * the successes are samples, chosen by chance, and the latency of some drops and timeouts is not
 * known (weir_config.sample_rate). Every sample is counted in exactly one window. Latencies are in
 * nanoseconds, and zero when count is zero. Calls in flight are counted in permits, as the limit
 * is.
 */
struct weir_window {
	weir_time start;    /* when it was opened, or end if that is not known or after end */
	weir_time end;      /* when it was closed */
	uint32_t count;     /* samples with a latency */
	uint32_t dropped;   /* samples reported as dropped, with or without a latency */
	uint32_t timed_out; /* samples that timed out: their latency is a lower bound */
	uint32_t cancelled; /* calls that ended as WEIR_CANCELLED: no samples */
	uint32_t failed;    /* calls that ended as WEIR_FAILED: no samples */
	/*
	 * Most permits in flight that a sample found, its own included. With WEIR_LIMIT_DETACHED it
	 * excludes what is detached now.
	 */
	uint32_t inflight_max;
	uint32_t limit; /* in force when it was closed, without bursts and detached calls */
	/*
	 * Calls that ended without being counted in count, dropped or timed_out: ignored,
	 * cancelled, failed, and served without a latency. They held permits as samples did.
	 */
	uint32_t others;
	double rtt;      /* the configured statistic of the latencies: use this one */
	double rtt_mean; /* the mean latency, in whole nanoseconds */
	double rtt_min;  /* the lowest latency */
	double rtt_max;  /* the highest */
	double random;   /* uniform in [0, 1), from the seed: the only source of randomness */

	/* Set only if the limit asks for it by a flag of its ops; otherwise zero. */
	uint32_t queued; /* WEIR_LIMIT_QUEUE: calls for which a backend queue delay was reported */
	uint32_t inflight_now; /* WEIR_LIMIT_NOW: at the end, without what is detached */
	double queue_min;      /* WEIR_LIMIT_QUEUE: the shortest of these delays, in nanoseconds */
	double cpu;            /* WEIR_LIMIT_CPU: CPU utilization, 0 to 1; 0: not known */

	/*
	 * Sum of the times that others were in flight, in nanoseconds. That of a detached call is
	 * zero. While not every call is a sample, others and this sum are estimates.
	 */
	double others_time;

	/*
	 * Calls that the samples stand for: those that ended as WEIR_SUCCESS, WEIR_DROPPED or
	 * WEIR_TIMED_OUT. As many as there are samples, unless not every call is one. In windows of
	 * samples it is then an estimate. 0 counts as count. A limit that counts calls uses this
	 * field; one that averages latencies has no use for it.
	 */
	double calls;

	/*
	 * WEIR_LIMIT_REAL_TIME: end, in nanoseconds since 1970. Machines that synchronise their
	 * clocks agree on it, so their limits can do something at the same time. It jumps where the
	 * system's clock is set. Otherwise zero.
	 */
	weir_time real;
};

/* The statistic in weir_window.rtt. */
enum weir_rtt {
	WEIR_RTT_DEFAULT,  /* the limit's preference, or else the mean */
	WEIR_RTT_MEAN,     /* the mean of the window's latencies */
	WEIR_RTT_MIN,      /* the lowest latency */
	WEIR_RTT_QUANTILE, /* a quantile of them */
};

/* What happens to a window that is due but has too few samples. */
enum weir_sparse {
	WEIR_SPARSE_DEFAULT, /* the limit's preference, or else WEIR_SPARSE_EXTEND */
	WEIR_SPARSE_EXTEND,  /* it stays open until it has enough, at most for window_max */
	WEIR_SPARSE_DISCARD, /* it is discarded, drops included, as in Netflix's WindowedLimit */
};

/* When samples are passed to the limit. */
enum weir_windowing {
	WEIR_WINDOW_DEFAULT, /* the limit's preference, or else WEIR_WINDOW_TIME */
	WEIR_WINDOW_TIME,    /* in windows of time */
	WEIR_WINDOW_SAMPLE,  /* each on its own; simultaneous samples may share a window */
};

/*
 * The windows that a limit is designed for. It gets them unless weir_config, whose fields have the
 * same names, asks for others. Zero means the library's default. The limit must cope with any
 * windows.
 */
struct weir_sampling {
	enum weir_windowing windowing;
	weir_dur window_min, window_max;
	uint32_t window_samples;
	enum weir_sparse sparse;
	enum weir_rtt rtt;
	double quantile;
};

/* How a value is derived from the limit, for example a queue allowance or a threshold. */
enum weir_scale_kind {
	WEIR_SCALE_DEFAULT,    /* the parameter's default */
	WEIR_SCALE_CONST,      /* k */
	WEIR_SCALE_LOG10,      /* k * L, with L = max(1, floor(log10(limit))) */
	WEIR_SCALE_LOG10_PLUS, /* L + k */
	WEIR_SCALE_SQRT,       /* max(k, floor(sqrt(limit))) */
	WEIR_SCALE_PERCENT,    /* max(k, limit * percent / 100), rounded down */
};

/* A value derived from the limit. As text: "const:4", "log10:3", "log10plus:2", "sqrt:4",
 * "percent:3:10". */
struct weir_scale {
	enum weir_scale_kind kind; /* what k means */
	uint32_t k;                /* the value, or its factor */
	uint32_t percent;          /* only with WEIR_SCALE_PERCENT */
};

/* How a step changes the limit. */
enum weir_step_kind {
	WEIR_STEP_DEFAULT,   /* the parameter's default */
	WEIR_STEP_ADD,       /* limit + by */
	WEIR_STEP_ADD_LOG10, /* limit + by * L */
	WEIR_STEP_MUL,       /* limit * by */
};

/* A step of the limit. As text: "add:1", "sub:1", "add_log10:1", "sub_log10:1", "mul:1.02". */
struct weir_step {
	enum weir_step_kind kind; /* what by means */
	double by;                /* a negative summand, or a factor below 1, lowers the limit */
};

/* The type of a parameter. */
enum weir_param_type {
	WEIR_PARAM_U32,    /* uint32_t; 0 means the default */
	WEIR_PARAM_DOUBLE, /* double; 0 means the default */
	WEIR_PARAM_DUR,    /* weir_dur; 0 means the default; as text "100ms", "5s", "20us" */
	WEIR_PARAM_SCALE,  /* struct weir_scale */
	WEIR_PARAM_STEP,   /* struct weir_step */
};

/*
 * A parameter of a limit. Defaults, ranges, error messages, command lines and documentation all
 * come from this one table. The library fills in defaults and rejects values out of range (NaN
 * included) before the limit sees them.
 */
struct weir_param {
	const char *name; /* "alpha" */
	enum weir_param_type type;
	uint32_t offset;  /* of the field in the configuration, in bytes */
	double min, max;  /* inclusive; of k for a scale, of by for a step */
	const char *def;  /* the default, as text */
	const char *help; /* one line on what it does */
};

/*
 * A limit algorithm.
 *
 * The limiter calls update() once a window, from whichever thread closed the window, and never
 * concurrently for one state. So a limit uses plain fields and doubles. Its state holds no
 * pointers, as it may be mapped at several addresses, and update() returns in bounded time.
 *
 * The state may contain any bytes, because it is read back from files and may be in shared memory
 * that another process writes. Given bytes that init() and update() never left there, update() and
 * observe() may return anything, but must not access memory outside the state, loop for ever, or
 * do what C leaves undefined, such as converting NaN to an integer.
 */
struct weir_limit_ops {
	uint32_t size;     /* sizeof(struct weir_limit_ops) when the limit was compiled */
	uint32_t flags;    /* 0, or WEIR_LIMIT_... combined with | */
	const char *name;  /* "vegas": lower case, at most 15 characters */
	const char *about; /* one sentence on when to use it */

	uint32_t version;     /* of the state's layout */
	uint32_t state_size;  /* <= WEIR_LIMIT_STATE_MAX */
	uint32_t config_size; /* <= WEIR_LIMIT_CONFIG_MAX; 0: it has no configuration */
	uint32_t param_count; /* entries of params */
	const struct weir_param *params;

	/*
	 * Returns NULL if the parameters are consistent, or a clause that says what is wrong
	 * ("min is above max"). Each one has been checked against its range before. Optional.
	 */
	const char *(*check)(const void *config);

	/*
	 * Initialize the state, which is zeroed, from a complete and checked configuration. random
	 * is as in struct weir_window. Returns the initial limit. Required.
	 */
	double (*init)(void *state, const void *config, double random);

	/*
	 * Returns the limit from now on. The limiter drops the fraction and clamps the value to
	 * [limit_min, limit_max]. A value that is not a number leaves the limit unchanged. With
	 * WEIR_LIMIT_PAUSES, a negative value is a pause. Required.
	 */
	double (*update)(void *state, const struct weir_window *w);

	/*
	 * Names of up to WEIR_NUMBERS_MAX internal values worth plotting, terminated by NULL, and a
	 * function that returns their present values. Optional, but both or neither.
	 */
	const char *const *numbers;
	void (*observe)(const void *state, double *values);

	/* The windows it is designed for. Optional. */
	const struct weir_sampling *sampling;
};

enum {
	WEIR_LIMIT_SETTABLE = 1u << 0, /* weir_limit_set() moves it; update() is never called */
	WEIR_LIMIT_QUEUE = 1u << 1,    /* it uses weir_window.queued and queue_min */
	WEIR_LIMIT_CPU = 1u << 2,      /* it uses weir_window.cpu */
	/*
	 * Each call must be a sample, whatever weir_config.sample_rate is. A call then costs two
	 * readings of the clock.
	 */
	WEIR_LIMIT_EVERY_CALL = 1u << 3,
	/*
	 * It limits only calls whose latency is measured. The permits of calls that weir_detach()
	 * has taken out come on top of it, up to limit_max, until these calls are released, and are
	 * not part of weir_window.inflight_max: a few hundred streams would hide the few calls
	 * beside them. Without this flag detached calls count as all others do.
	 */
	WEIR_LIMIT_DETACHED = 1u << 4,
	WEIR_LIMIT_NOW = 1u << 5, /* it uses weir_window.inflight_now */
	/*
	 * In a shared limiter, update() works on the shared state directly instead of on a copy
	 * that is made for each window: for limits with a large state and windows of one sample.
	 * The state may then change while update() runs, so an index or a loop count must be read
	 * once and then bounded.
	 */
	WEIR_LIMIT_IN_PLACE = 1u << 6,
	/*
	 * A negative value that update() returns is a pause: the limit is limit_min, but no call is
	 * admitted for as many nanoseconds after the window's end as the value is below zero, at
	 * most WEIR_PAUSE_MAX. What update() returns for a later window replaces it: a limit ends
	 * the pause. For backends that one call at a time would keep overloaded.
	 */
	WEIR_LIMIT_PAUSES = 1u << 7,
	/*
	 * In windows of one sample, a call that ends as WEIR_CANCELLED closes a window too, so that
	 * the limit notices when callers cancel and no call is served any more. Such a window has
	 * no sample: count, dropped and timed_out are zero. Observers and snapshots show it only if
	 * it changes the limit. Where not every call is a sample, some of the cancelled calls close
	 * no window.
	 */
	WEIR_LIMIT_CANCELLED = 1u << 8,
	WEIR_LIMIT_REAL_TIME = 1u << 9, /* it uses weir_window.real */
};

/*
 * What a plugin defines, and the library does not: an array of its limits, terminated by NULL. A
 * plugin is a shared object that a program loads with dlopen(), for example weir-sim --plugin. Its
 * limits are valid while it stays loaded. The library itself loads none.
 *
 *	const struct weir_limit_ops *const weir_plugin[] = {&target, NULL};
 */
WEIR_API extern const struct weir_limit_ops *const weir_plugin[];

/*
 * Complete a configuration: fill in the default of every field that is zero, then run all checks.
 * config may be NULL (all defaults) and may be shorter than the limit's configuration (an older
 * build's). out gets ops->config_size bytes. On failure why (may be NULL) gets one sentence, cut at
 * why_size bytes.
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is not valid.
 */
WEIR_API int weir_limit_complete(const struct weir_limit_ops *ops, const void *config, size_t size,
				 void *out, char *why, size_t why_size);

/*
 * Set parameters of a zeroed configuration by name: "alpha=log10:2,probe=50". Values out of range
 * are rejected, including zero where zero is not in the range. On failure why gets one sentence,
 * and config has the parameters in front of the wrong one.
 * Returns 0, or a negative errno:
 * -EINVAL: the text is not valid.
 */
WEIR_API int weir_limit_parse(const struct weir_limit_ops *ops, void *config, const char *text,
			      char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
