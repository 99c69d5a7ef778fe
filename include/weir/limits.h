/*
 * weir/limits.h - the limit algorithms that come with the library.
 *
 * A configuration is zeroed and then given what should differ from the
 * defaults; a null pointer in its place means all defaults. Ranges are
 * inclusive. The unit of every limit and queue is calls in flight.
 *
 * "At least half used" below means: some sample of the window found at least
 * half the limit in flight. Less than that, and the latency says nothing about
 * the limit, so it is left alone.
 */
#ifndef WEIR_LIMITS_H
#define WEIR_LIMITS_H

#include <weir/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The built-in limit of that name; for NULL the default, vegas; NULL if there is none.
 * Any thread.
 */
WEIR_API const struct weir_limit_ops *weir_limit_by_name(const char *name);

/* The built-in limits, by index from 0; NULL past the last. Any thread. */
WEIR_API const struct weir_limit_ops *weir_limit_at(unsigned index);

/*
 * A built-in limit and its configuration from one text: "vegas", or
 * "vegas:alpha=log10:2,max=500". config is a buffer of WEIR_LIMIT_CONFIG_MAX bytes, aligned
 * as for malloc(). On success *ops and config are what weir_config.limit and limit_config point to.
 * 0; or -EINVAL with one sentence in why (may be NULL). Any thread.
 */
WEIR_API int weir_limit_from_text(const char *text, const struct weir_limit_ops **ops, void *config,
				  char *why, size_t why_size);

/*
 * fixed: a constant. For those who measured their capacity, and the yardstick
 * for all others. Outcomes and latencies mean nothing to it.
 */
struct weir_fixed_config {
	uint32_t limit; /* 20; 1 to 2^31 - 1 */
};
WEIR_API extern const struct weir_limit_ops weir_fixed;

/*
 * settable: a constant that the program changes, from any thread, with
 * weir_limit_set(). For limits decided elsewhere. Outcomes and latencies mean nothing to it.
 */
struct weir_settable_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
};
WEIR_API extern const struct weir_limit_ops weir_settable;

/*
 * aimd: additive increase, multiplicative decrease. One more a window that
 * was at least half used; backoff times the limit when a call was dropped or the
 * latency was above timeout. It needs drops or a timeout to find its way: latency
 * below the timeout tells it nothing.
 *
 * Outcomes: dropped and timed out are overload; cancelled, failed and ignored calls are not seen.
 *
 * Source: D.-M. Chiu, R. Jain, "Analysis of the Increase and Decrease Algorithms
 * for Congestion Avoidance in Computer Networks", 1989; Netflix's AIMDLimit.
 */
struct weir_aimd_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
	uint32_t min;     /* 20; the limit never goes below this: lower it for a small callee */
	uint32_t max;     /* 200 */
	double backoff;   /* 0.9; 0.5 to below 1 */
	weir_dur timeout; /* 5 s; above this a latency counts as a drop */
};
WEIR_API extern const struct weir_limit_ops weir_aimd;

/*
 * vegas: holds the queue at the callee, estimated from the lowest latency
 * seen, between alpha and beta calls. A dropped call makes it shrink at once.
 * The lowest latency is forgotten every probe * limit windows, more or less; where
 * that happens under load, the limit settles somewhat higher.
 *
 * It needs latency that is steady without load, and rises with it. Where calls differ much
 * among themselves it takes that for a queue: it then refuses some even at half load, and may
 * stay far below a large capacity (weir-sim -s healthy, -s cold-start); raise alpha and beta, or
 * use gradient or aimd.
 *
 * Outcomes: dropped and timed out are overload, except in a window that sets the lowest
 * latency, and their latencies count; cancelled, failed and ignored calls are not seen.
 *
 * Source: L. Brakmo, L. Peterson, "TCP Vegas: End to End Congestion Avoidance
 * on a Global Internet", IEEE JSAC 13(8), 1995; Netflix's VegasLimit.
 */
struct weir_vegas_config {
	uint32_t initial;            /* 20; 1 to 2^31 - 1 */
	uint32_t max;                /* 1000; the minimum is 1 */
	double smoothing;            /* 1; above 0, to 1: weight of the new value */
	struct weir_scale alpha;     /* log10:3; queue below which the limit grows */
	struct weir_scale beta;      /* log10:6; queue above which it shrinks; not below alpha */
	struct weir_scale threshold; /* log10:1; queue up to which it grows by beta at once */
	struct weir_step increase;   /* add_log10:1 */
	struct weir_step decrease;   /* sub_log10:1 */
	uint32_t probe; /* 30; 1 to 2^31 - 1: windows a unit of limit between two probes */
};
WEIR_API extern const struct weir_limit_ops weir_vegas;

/*
 * gradient: multiplies the limit by lowest latency over present latency, plus
 * a queue. Every probe windows or twice that it drops to its minimum to measure
 * the lowest latency anew: reject-free only for callers that can bear this.
 *
 * Outcomes: as to vegas; overload multiplies the limit by backoff.
 *
 * Source: Netflix's GradientLimit (2018).
 */
struct weir_gradient_config {
	uint32_t initial;        /* 50; 1 to 2^31 - 1 */
	uint32_t min;            /* 1 */
	uint32_t max;            /* 1000; wins over queue */
	double smoothing;        /* 0.2; above 0, to 1; of decreases only */
	struct weir_scale queue; /* sqrt:4; calls that may wait at the callee */
	double tolerance;        /* 2; 1 to 100: latency may rise to this many times the lowest */
	uint32_t probe;          /* 1000 windows; WEIR_NEVER: do not probe */
	double backoff;          /* 0.9; 0.5 to 1; factor on a drop */
};
#define WEIR_NEVER UINT32_MAX
WEIR_API extern const struct weir_limit_ops weir_gradient;

/*
 * gradient2: multiplies the limit by long-term latency over present latency,
 * plus a queue, smoothed. Drops mean nothing to it. Under lasting overload the
 * long-term latency learns the queue, and the limit drifts up: give it a max.
 *
 * Outcomes: dropped and timed out calls count by their latency alone; cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: Netflix's Gradient2Limit (2018).
 */
struct weir_gradient2_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
	uint32_t min;     /* 20; the limit never goes below this: lower it for a small callee */
	uint32_t max;     /* 200 */
	double smoothing; /* 0.2; above 0, to 1 */
	struct weir_scale queue; /* const:4; calls that may wait at the callee */
	uint32_t long_window;    /* 600; 1 to 10^9: windows the long-term latency averages over */
	double tolerance; /* 1.5; 1 to 100: latency may rise to this many times the long-term */
};
WEIR_API extern const struct weir_limit_ops weir_gradient2;

#ifdef __cplusplus
}
#endif
#endif
