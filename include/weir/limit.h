/*
 * weir/limit.h - for those who write a limit algorithm.
 *
 * A limit is a deterministic function from (state, window) to a number. It
 * reads no clock, draws no random number, takes no lock and allocates nothing,
 * so that the same code runs under a server, in a simulator and in a test.
 * docs/writing-a-limit.md walks through one.
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_LIMIT_STATE_MAX  2048 /* bytes of private state at most */
#define WEIR_LIMIT_CONFIG_MAX 512  /* bytes of configuration at most */
#define WEIR_NUMBERS_MAX      8    /* named numbers that a limit may show */

/* No limiter holds more than this in flight, whatever its limit algorithm answers. */
#define WEIR_LIMIT_MAX UINT32_C(0x7fffff)

/*
 * One closed window of samples. A sample is a call that ended as WEIR_SUCCESS,
 * WEIR_DROPPED or WEIR_TIMED_OUT; every sample is counted in exactly one window.
 * Latencies are in nanoseconds and zero when count is zero. What is in flight is
 * counted in permits, as the limit is.
 */
struct weir_window {
	weir_time start;    /* when the first sample could have been counted, if that is known */
	weir_time end;      /* when it was closed */
	uint32_t count;     /* samples that carried a latency */
	uint32_t dropped;   /* samples reported as dropped, with or without a latency */
	uint32_t timed_out; /* the same of timed out: a latency of theirs is a lower bound */
	uint32_t cancelled; /* calls, no samples, that their caller gave up */
	uint32_t failed;    /* calls, no samples, that failed fast */
	/*
	 * Most in flight that a sample found, itself included. Below half the limit it may be too
	 * much, but not half the limit, unless this was asked for: WEIR_LIMIT_INFLIGHT. Without what
	 * is detached now, if that was asked for: WEIR_LIMIT_DETACHED.
	 */
	uint32_t inflight_max;
	uint32_t limit;  /* in force when it was closed, without any burst and what is detached */
	double rtt;      /* the statistic the limiter is configured for: read this one */
	double rtt_mean; /* in whole nanoseconds */
	double rtt_min;  /* the lowest latency */
	double rtt_max;  /* the highest */
	double random;   /* uniform in [0, 1), from the limiter's seed: the only source of chance */

	/* What a limit must ask for, by a flag of its ops; else zero. */
	uint32_t queued; /* WEIR_LIMIT_QUEUE: calls that told how long the callee let them wait */
	uint32_t inflight_now; /* WEIR_LIMIT_NOW: after its samples, and without what is detached */
	double queue_min;      /* WEIR_LIMIT_QUEUE: the shortest of these waits, in nanoseconds */
	double cpu; /* WEIR_LIMIT_CPU: how busy the processors are, 0 to 1; 0: not known */
};

/* What a window's rtt is. */
enum weir_rtt {
	WEIR_RTT_DEFAULT,  /* what the limit is made for, or else the mean */
	WEIR_RTT_MEAN,     /* of all its latencies */
	WEIR_RTT_MIN,      /* the lowest of them */
	WEIR_RTT_QUANTILE, /* a quantile of the window's latencies */
};

/* What becomes of a window that is due with too few samples. */
enum weir_sparse {
	WEIR_SPARSE_DEFAULT, /* what the limit is made for, or else to extend it */
	WEIR_SPARSE_EXTEND,  /* it stays open until it has enough, or for window_max at most */
	WEIR_SPARSE_DISCARD, /* it is thrown away, drops and all, as in Netflix's WindowedLimit */
};

/* When samples go to the limit. */
enum weir_windowing {
	WEIR_WINDOW_DEFAULT, /* as the limit is made for, or else in windows of time */
	WEIR_WINDOW_TIME,    /* in windows of time, as configured */
	WEIR_WINDOW_SAMPLE,  /* each by itself; those that collide go together */
};

/*
 * The windows that a limit is made for: it gets them unless weir_config, whose fields
 * these are, asks for others. Zero means the library's default. The limit must bear any others.
 */
struct weir_sampling {
	enum weir_windowing windowing;
	weir_dur window_min, window_max;
	uint32_t window_samples;
	enum weir_sparse sparse;
	enum weir_rtt rtt;
	double quantile;
};

/* A value derived from the limit: an allowance of queue, a threshold. */
enum weir_scale_kind {
	WEIR_SCALE_DEFAULT,    /* the parameter's default */
	WEIR_SCALE_CONST,      /* k */
	WEIR_SCALE_LOG10,      /* k * L, with L = max(1, floor(log10(limit))) */
	WEIR_SCALE_LOG10_PLUS, /* L + k */
	WEIR_SCALE_SQRT,       /* max(k, floor(sqrt(limit))) */
	WEIR_SCALE_PERCENT,    /* max(k, limit * percent / 100), rounded down */
};

/* A value by its kind. As text: "const:4", "log10:3", "log10plus:2", "sqrt:4", "percent:3:10". */
struct weir_scale {
	enum weir_scale_kind kind; /* how k is meant */
	uint32_t k;                /* the value, or its factor */
	uint32_t percent;          /* with WEIR_SCALE_PERCENT only */
};

/* One move of the limit. */
enum weir_step_kind {
	WEIR_STEP_DEFAULT,   /* the parameter's default */
	WEIR_STEP_ADD,       /* limit + by */
	WEIR_STEP_ADD_LOG10, /* limit + by * L */
	WEIR_STEP_MUL,       /* limit * by */
};

/* A move by its kind. As text: "add:1", "sub:1", "add_log10:1", "sub_log10:1", "mul:1.02". */
struct weir_step {
	enum weir_step_kind kind; /* how by is meant */
	double by;                /* below zero, or below one as a factor: downwards */
};

/* What a parameter is. */
enum weir_param_type {
	WEIR_PARAM_U32,    /* uint32_t; 0 means the default */
	WEIR_PARAM_DOUBLE, /* double; 0 means the default */
	WEIR_PARAM_DUR,    /* weir_dur; 0 means the default; as text "100ms", "5s", "20us" */
	WEIR_PARAM_SCALE,  /* struct weir_scale */
	WEIR_PARAM_STEP,   /* struct weir_step */
};

/*
 * A parameter of a limit, so that defaults, ranges, error messages, command
 * lines and documents come from one table. The library fills in defaults and
 * refuses what is out of range (NaN too) before the limit sees anything.
 */
struct weir_param {
	const char *name; /* "alpha" */
	enum weir_param_type type;
	uint32_t offset;  /* in the configuration */
	double min, max;  /* inclusive; of k for a scale, of by for a step */
	const char *def;  /* the default, as text */
	const char *help; /* a line on what it does */
};

/*
 * A limit algorithm.
 *
 * The limiter calls update() once a window, never concurrently for one state,
 * from whichever thread closed the window. So a limit uses plain fields and
 * doubles; it holds no pointer in its state, which may be mapped at several
 * addresses; and it answers in bounded time.
 *
 * The state may hold any bytes. It comes back from files, and lies in shared memory, where another
 * process may have written. Given bytes that init() and update() never left there, update() and
 * observe() may give any answer, but they must not read or write outside the state, loop for ever,
 * or do what C leaves undefined, such as converting a double that is not a number to an integer.
 */
struct weir_limit_ops {
	uint32_t size;     /* sizeof(struct weir_limit_ops) of the author's build */
	uint32_t flags;    /* 0, or WEIR_LIMIT_... together */
	const char *name;  /* "vegas": lower case, at most 15 characters */
	const char *about; /* one sentence: when to use it */

	uint32_t version;     /* of the state's layout */
	uint32_t state_size;  /* <= WEIR_LIMIT_STATE_MAX */
	uint32_t config_size; /* <= WEIR_LIMIT_CONFIG_MAX; 0: it has no configuration */
	uint32_t param_count; /* of params */
	const struct weir_param *params;

	/*
	 * NULL if the parameters go together, else what is wrong, in a clause
	 * ("min is above max"). Each is in its range already. Optional.
	 */
	const char *(*check)(const void *config);

	/*
	 * Set the state, which is zeroed, from a complete and checked
	 * configuration; random is as in struct weir_window. Returns the
	 * initial limit. Required.
	 */
	double (*init)(void *state, const void *config, double random);

	/*
	 * The limit from now on. The limiter drops the fraction and clamps it to
	 * [limit_min, limit_max]; what is not a number leaves the limit as it is.
	 * Required.
	 */
	double (*update)(void *state, const struct weir_window *w);

	/*
	 * Names of up to WEIR_NUMBERS_MAX numbers worth plotting, NULL at the
	 * end, and their present values. Optional, but both or neither.
	 */
	const char *const *numbers;
	void (*observe)(const void *state, double *values);

	/* The windows it is made for. Optional. */
	const struct weir_sampling *sampling;
};

enum {
	WEIR_LIMIT_SETTABLE = 1u << 0, /* weir_limit_set() moves it; update() is never called */
	WEIR_LIMIT_QUEUE = 1u << 1,    /* it wants weir_window.queued and queue_min */
	WEIR_LIMIT_CPU = 1u << 2,      /* it wants weir_window.cpu */
	WEIR_LIMIT_INFLIGHT = 1u << 3, /* it reckons with weir_window.inflight_max: exact */
	/*
	 * It is about calls whose latency counts. Permits of those that weir_detach() has taken out
	 * come on top of it until they are released, at once and up to limit_max, and are no part of
	 * weir_window.inflight_max: a few hundred streams would hide the few calls beside them.
	 * Without this flag they take up room as all others do.
	 */
	WEIR_LIMIT_DETACHED = 1u << 4,
	WEIR_LIMIT_NOW = 1u << 5, /* it wants weir_window.inflight_now */
	/*
	 * In a shared limiter the limit works on the state where it lies, and not on a copy. This
	 * is for a limit that has a large state and looks at each call, as a copy is made for each
	 * window. The state may then change while update() runs, so an index or a loop count must
	 * be read once and bounded after that.
	 */
	WEIR_LIMIT_IN_PLACE = 1u << 6,
};

/*
 * What a plugin defines, and the library does not: its limits, NULL at the end. A plugin is a
 * shared object that a program loads with dlopen(), as weir-sim --plugin does; its limits live as
 * long as it stays loaded. The library itself loads none.
 *
 *	const struct weir_limit_ops *const weir_plugin[] = {&target, NULL};
 */
WEIR_API extern const struct weir_limit_ops *const weir_plugin[];

/*
 * Complete a configuration: defaults for what is zero, then every check there
 * is. config may be NULL (all defaults) and may be shorter than the limit's
 * (an older build's); out gets ops->config_size bytes. 0, or -EINVAL with one
 * sentence in why (may be NULL), which is cut at why_size.
 */
WEIR_API int weir_limit_complete(const struct weir_limit_ops *ops, const void *config, size_t size,
				 void *out, char *why, size_t why_size);

/*
 * Set parameters of a zeroed configuration by name: "alpha=log10:2,probe=50".
 * A value out of range is refused, zero where zero is no value too. 0; or
 * -EINVAL with one sentence in why, and config as far as the text was good.
 */
WEIR_API int weir_limit_parse(const struct weir_limit_ops *ops, void *config, const char *text,
			      char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
