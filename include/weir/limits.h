/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/limits.h - the limit algorithms that come with the library.
 *
 * Zero a configuration, then set the fields that should differ from their defaults. A null pointer
 * in place of a configuration means all defaults. Field comments give the default, then the range
 * (inclusive unless it says otherwise), then the meaning. initial, min and max range from 1 to
 * 2^31 - 1 in every limit. The unit of every limit and queue is calls in flight.
 *
 * "At least half used" below means that some sample of the window found at least half the limit in
 * flight. If less was in flight, latency carries no information about the limit, and the limit is
 * left alone.
 *
 * "Outcomes" says how each limit treats the outcome of a call, enum weir_outcome.
 */
#ifndef WEIR_LIMITS_H
#define WEIR_LIMITS_H

#include <weir/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Find a built-in limit by name. A null name means the default, elastic. Returns NULL if there is
 * no limit of that name. Any thread.
 */
WEIR_API const struct weir_limit_ops *weir_limit_by_name(const char *name);

/* Enumerate the built-in limits, by index from 0. Returns NULL past the last. Any thread. */
WEIR_API const struct weir_limit_ops *weir_limit_at(unsigned index);

/*
 * Parse a built-in limit and its configuration from a text such as "vegas" or
 * "vegas:alpha=log10:2,max=500". config is a buffer of WEIR_LIMIT_CONFIG_MAX bytes, aligned as for
 * malloc(). On success, point weir_config.limit at *ops and weir_config.limit_config at config.
 * Any thread.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the text is not valid; why, which may be NULL, gets one sentence that says what is wrong
 */
WEIR_API int weir_limit_from_text(const char *text, const struct weir_limit_ops **ops, void *config,
				  char *why, size_t why_size);

/*
 * fixed: a constant. For services whose capacity has been measured, and the baseline that all
 * others are compared with. Outcomes and latencies are ignored.
 */
struct weir_fixed_config {
	uint32_t limit; /* 20; 1 to 2^31 - 1 */
};
WEIR_API extern const struct weir_limit_ops weir_fixed;

/*
 * settable: a constant that the program changes with weir_limit_set(), from any thread. For limits
 * that are decided elsewhere. Outcomes and latencies are ignored.
 */
struct weir_settable_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
};
WEIR_API extern const struct weir_limit_ops weir_settable;

/*
 * aimd: additive increase, multiplicative decrease. The limit grows by one for each window that was
 * at least half used. It is multiplied by backoff when a call was dropped or the latency was above
 * timeout. It needs drops or a timeout: latency below the timeout carries no information for it.
 *
 * Outcomes: dropped and timed out calls are overload; cancelled, failed and ignored calls are not
 * seen.
 *
 * Source: D.-M. Chiu, R. Jain, "Analysis of the Increase and Decrease Algorithms
 * for Congestion Avoidance in Computer Networks", 1989; Netflix's AIMDLimit.
 */
struct weir_aimd_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
	uint32_t min;     /* 20; lowest limit: lower it for a small backend */
	uint32_t max;     /* 200 */
	double backoff;   /* 0.9; 0.5 to below 1; factor on overload */
	weir_dur timeout; /* 5 s; a latency above this counts as a drop */
};
WEIR_API extern const struct weir_limit_ops weir_aimd;

/*
 * vegas: keeps the backend's queue, which it estimates from the lowest latency seen, between alpha
 * and beta calls. A dropped call shrinks the limit at once. About every probe * limit windows the
 * lowest latency is discarded and measured again; where that happens under load, the limit settles
 * somewhat higher.
 *
 * It needs a latency that is steady without load and that rises with load. Where calls differ much
 * from each other, it takes the difference for a queue: it then refuses some calls at half load,
 * and may stay far below a large capacity (see weir-sim run -s healthy,cold-start). In that case
 * raise alpha and beta, or use gradient or aimd.
 *
 * Outcomes: dropped and timed out calls are overload, except in a window that sets the lowest
 * latency, and their latencies count; cancelled, failed and ignored calls are not seen.
 *
 * Source: L. Brakmo, L. Peterson, "TCP Vegas: End to End Congestion Avoidance
 * on a Global Internet", IEEE JSAC 13(8), 1995; Netflix's VegasLimit.
 */
struct weir_vegas_config {
	uint32_t initial;            /* 20; 1 to 2^31 - 1 */
	uint32_t max;                /* 1000; the minimum is 1 */
	double smoothing;            /* 1; above 0, to 1; weight of the new value */
	struct weir_scale alpha;     /* log10:3; queue below which the limit grows */
	struct weir_scale beta;      /* log10:6; queue above which it shrinks; not below alpha */
	struct weir_scale threshold; /* log10:1; queue up to which it grows by beta at once */
	struct weir_step increase;   /* add_log10:1; step up */
	struct weir_step decrease;   /* sub_log10:1; step down */
	uint32_t probe; /* 30; 1 to 2^31 - 1; windows between two probes, for each call of limit */
};
WEIR_API extern const struct weir_limit_ops weir_vegas;

/*
 * gradient: multiplies the limit by the lowest latency over the present latency, and adds an
 * allowance for a queue. After every probe to 2 * probe windows the limit drops to its minimum, to
 * measure the lowest latency again: callers must tolerate refusals then.
 *
 * Outcomes: as for vegas; overload multiplies the limit by backoff.
 *
 * Source: Netflix's GradientLimit (2018).
 */
struct weir_gradient_config {
	uint32_t initial;        /* 50; 1 to 2^31 - 1 */
	uint32_t min;            /* 1 */
	uint32_t max;            /* 1000; takes precedence over queue */
	double smoothing;        /* 0.2; above 0, to 1; applies to decreases only */
	struct weir_scale queue; /* sqrt:4; calls that may wait at the backend */
	double tolerance;        /* 2; 1 to 100; latency may rise to this multiple of the lowest */
	uint32_t probe;          /* 1000 windows; WEIR_NEVER: do not probe */
	double backoff;          /* 0.9; 0.5 to 1; factor on a drop */
};
#define WEIR_NEVER UINT32_MAX
WEIR_API extern const struct weir_limit_ops weir_gradient;

/*
 * gradient2: multiplies the limit by the long-term latency over the present latency, adds an
 * allowance for a queue, and smooths the result. It ignores drops. Under lasting overload the
 * long-term latency comes to include the queue, and the limit drifts up: set a max.
 *
 * Outcomes: dropped and timed out calls count by their latency alone; cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: Netflix's Gradient2Limit (2018).
 */
struct weir_gradient2_config {
	uint32_t initial;        /* 20; 1 to 2^31 - 1 */
	uint32_t min;            /* 20; lowest limit: lower it for a small backend */
	uint32_t max;            /* 200 */
	double smoothing;        /* 0.2; above 0, to 1 */
	struct weir_scale queue; /* const:4; calls that may wait at the backend */
	uint32_t long_window;    /* 600; 1 to 10^9; windows that the long-term latency averages */
	double tolerance; /* 1.5; 1 to 100; latency may rise to this multiple of the long-term */
};
WEIR_API extern const struct weir_limit_ops weir_gradient2;

/*
 * envoy: multiplies the limit by the latency without load over the present latency, and adds the
 * square root of the product. Every probe_interval the limit drops to min for probe_samples calls,
 * to measure the latency without load. For proxies, and for servers whose callers tolerate refusals
 * during a probe.
 *
 * Not for backends that may hang: a probe lasts until its samples have arrived, so min calls that
 * never end are an outage. Not where the limit must hold from the first call of a burst: while the
 * backend is idle, the limit grows to max. When the latency without load has risen, it is measured
 * again after probe_interval, or as soon as five windows in a row ended at min; a high min prevents
 * the latter.
 *
 * Designed for windows of 100 ms with any number of samples, and their median.
 *
 * Outcomes: dropped and timed out calls count by their latency alone; cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: the gradient controller of Envoy's adaptive concurrency filter, gradient_controller.cc.
 */
struct weir_envoy_config {
	uint32_t initial; /* 3; 1 to 2^31 - 1; after the first probe, which runs at min */
	uint32_t min;     /* 3; 1 to 2^31 - 1; also the limit during a probe */
	uint32_t max;     /* 1000 */
	double buffer; /* 0.25; above 0, to 100; fraction by which latency may exceed rtt_noload */
	uint32_t probe_samples;  /* 50; 1 to 10^9 */
	weir_dur probe_interval; /* 60 s; from the end of a probe to the next */
	double probe_jitter;    /* 0.15; above 0, to 1; random addition, fraction of the interval */
	weir_dur probe_timeout; /* 10^9 s, in effect none; a probe ends with the samples it has */
	weir_dur rtt_noload;    /* 0: measured in probes; else this value, and no probes */
};
WEIR_API extern const struct weir_limit_ops weir_envoy;

/*
 * brpc: the highest throughput seen times the lowest latency, which by Little's law is what an idle
 * backend has in flight, and a fraction of explore_min to explore_max more. It finds a large
 * capacity within seconds. For servers with many calls a second that resemble each other.
 *
 * Not for fewer than samples_min calls in round_max: it then learns nothing. Not for small
 * backends: it leaves no room for random bunching, and refuses some calls at half load. Under
 * lasting overload it takes the queue for the backend's own latency and climbs; it has no effective
 * max by default, so set one.
 *
 * Designed for windows of 20 ms, which are gathered to rounds of samples_max samples or of
 * round_max.
 *
 * Outcomes: dropped and timed out calls count as not served, and their latency, times punish, is
 * added to that of the served calls; a round in which none was served halves the limit. Cancelled,
 * failed and ignored calls are not seen.
 *
 * Source: Apache brpc's auto concurrency limiter, auto_concurrency_limiter.cpp.
 */
struct weir_brpc_config {
	uint32_t initial;     /* 40; 1 to 2^31 - 1 */
	uint32_t min;         /* 9; lower it for a backend that serves fewer at once */
	uint32_t max;         /* 2^31 - 1, in effect none */
	double smoothing;     /* 0.1; above 0, to 1; for lower latency; throughput: a tenth of it */
	double explore_min;   /* 0.06; above 0, to 100 */
	double explore_max;   /* 0.3; not below explore_min; also the first value */
	double explore_step;  /* 0.02; above 0, to 100; up or down, once a round */
	weir_dur round_max;   /* 1 s */
	uint32_t samples_min; /* 100; 1 to 10^9; a round with fewer is discarded */
	uint32_t samples_max; /* 200; to 10^9; ends a round; not below samples_min */
	weir_dur probe_interval; /* 50 s; latency is measured again after half of it to all of it */
	double reduce;           /* 0.9; above 0, to 1; factor on the limit before that */
	double punish; /* 1; above 0, to 1000; weight of the latency of calls not served */
};
WEIR_API extern const struct weir_limit_ops weir_brpc;

/*
 * failsafe: keeps the backend's queue, which it estimates from recent over long-term latency,
 * between alpha and beta calls. It also shrinks when the calls in flight and the latencies of the
 * last windows show that more in flight gets no more done. For backends whose latency changes for
 * reasons other than load: it adapts to such a change within half a minute.
 *
 * For the same reason it adapts to an overload, and then drifts up: set a max. It moves by one step
 * a second at most, so a large capacity, or the loss of one, takes it minutes.
 *
 * Designed for windows of 50 samples, of 1 s to 30 s, and their 90th percentile.
 *
 * Outcomes: dropped and timed out calls count by their latency alone; cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: failsafe-go's AdaptiveLimiter, adaptivelimiter.go.
 */
struct weir_failsafe_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
	uint32_t min;     /* 1 */
	uint32_t max;     /* 200 */
	double factor; /* 5; 1 to 10^9; multiple of the most in flight that the limit returns to */
	struct weir_scale alpha; /* log10:3; queue below which the limit grows */
	struct weir_scale beta;  /* log10:6; queue above which it shrinks; not below alpha */
	uint32_t recent;         /* 5; 1 to 10^9; windows that recent latency averages */
	uint32_t baseline;       /* 10; 1 to 10^9; windows that long-term latency averages */
	uint32_t history;        /* 50; 10 to 50; windows that correlations are taken over */
};
WEIR_API extern const struct weir_limit_ops weir_failsafe;

/*
 * vector: grows by one each round trip while the limit is reached and latency is not above its
 * mean; is multiplied by backoff when calls are dropped or latency is well above that mean. For
 * clients of a service that signals overload, where sending too little is the lesser evil.
 *
 * Without drops it protects poorly: its mean follows a queue, so it settles somewhere above what
 * the backend can serve. A large capacity takes long to reach: 500 round trips for a limit of 500.
 *
 * Designed for windows of 1 ms, gathered to round trips. Its minimum is 1.
 *
 * Outcomes: dropped and timed out calls are overload, and their latencies count; cancelled, failed
 * and ignored calls are not seen.
 *
 * Source: Vector's adaptive request concurrency, src/sinks/util/adaptive_concurrency.
 */
struct weir_vector_config {
	uint32_t initial;  /* 1; to 2^31 - 1 */
	uint32_t max;      /* 200 */
	double backoff;    /* 0.9; above 0, to below 1; factor on overload */
	double smoothing;  /* 0.4; above 0, to 1; weight of the last round trip in the mean */
	double deviations; /* 2.5; above 0, to 10^9; deviations above the mean that are overload */
};
WEIR_API extern const struct weir_limit_ops weir_vector;

/*
 * bbr: while the processors are busy, the highest number of calls that ended in a tenth of a second
 * lately, times the lowest latency: by Little's law what would be in flight if both occurred
 * together. There is no limit while the processors are idle, or when their load is not known: it
 * needs weir_config.cpu, as weir/cpu.h provides.
 *
 * For work that this machine's processors do; work that waits for others is never limited. It does
 * not probe, so a queue that existed before the processors were seen to be busy is taken for the
 * lowest latency: the limit is then far too high. It never goes below 2. Designed for windows of
 * 100 ms.
 *
 * Outcomes: dropped and timed out calls count by their latency, as successes do; cancelled,
 * failed and ignored calls are not seen.
 *
 * Source: kratos (aegis, ratelimit/bbr), 2021; Alibaba Sentinel's system rule. It shares the
 * product and the name with TCP's BBR, and nothing else.
 */
struct weir_bbr_config {
	uint32_t max;     /* 8388607; 1 to 2^31 - 1; highest limit, and the limit when not busy */
	double threshold; /* 0.8; 0.01 to 1; CPU use from which the processors are busy */
	weir_dur window;  /* 10 s; 1 ms to 1 h; history that is kept, in 100 buckets */
	weir_dur hold; /* 1 s; to 1 h; it limits this long after they were busy, if reached then */
	weir_dur resolution; /* 1 ms; to 1 min; lowest latency is rounded up to a multiple of it */
};
WEIR_API extern const struct weir_limit_ops weir_bbr;

/*
 * cautious: a success that found the limit nearly used adds 1 / limit, so that as many successes as
 * the limit add one; every drop takes a tenth. For clients of a backend that refuses excess calls:
 * it reacts to each refusal at once. It ignores latency, so it does not notice a backend that only
 * becomes slow: the limit grows to max. Refusals of the same moment count one by one. Designed for
 * windows of single samples; in longer windows every success counts like the one that found the
 * most in flight.
 *
 * Outcomes: dropped and timed out calls are overload; cancelled, failed and ignored calls are not
 * seen.
 *
 * Source: Palantir's dialogue, CautiousIncreaseAggressiveDecreaseConcurrencyLimiter, 2020.
 */
struct weir_cautious_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
	uint32_t min;     /* 1; 1 to 2^31 - 1 */
	uint32_t max;     /* 1000000; 1 to 2^31 - 1 */
	double backoff;   /* 0.9; 0.1 to 0.99; factor on every drop, rounded down */
	double usage;     /* 0.9; 0.01 to 1; fraction of the limit that a success must find used */
};
WEIR_API extern const struct weir_limit_ops weir_cautious;

/*
 * codel: keeps the backend's own queue short, by the delays that the program reports with
 * weir_queued(). If even the shortest delay of an interval was above target, there is a standing
 * queue, and the limit shrinks in proportion to the excess, to half at most. Otherwise it grows by
 * increase if it was at least half used. Without reports it stays as it is. For a service whose own
 * queue can be measured. It needs no reference latency, and does not take a service that has become
 * slower for one with a queue. Designed for windows of 100 ms.
 *
 * Outcomes: neither outcomes nor latencies are used.
 *
 * Source: K. Nichols, V. Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012, as in
 * folly's Codel; the steps: I. Cho et al., "Overload Control for us-scale RPCs with
 * Breakwater", OSDI 2020.
 */
struct weir_codel_config {
	uint32_t initial;  /* 20; 1 to 2^31 - 1 */
	uint32_t min;      /* 1; 1 to 2^31 - 1 */
	uint32_t max;      /* 1000; 1 to 2^31 - 1 */
	weir_dur interval; /* 100 ms; 1 us to 1 min; time over which the shortest delay is taken */
	weir_dur target;   /* 5 ms; to 1 min; a shortest delay above this is a standing queue */
	double increase;   /* 1; 0.001 to 10^6; calls an interval */
	double decrease;   /* 0.02; 0.001 to 1; fraction to shrink by, for each target of excess */
};
WEIR_API extern const struct weir_limit_ops weir_codel;

/*
 * hillclimb: moves the limit up and down on purpose, by 1 to wave_max calls, and goes where
 * throughput follows by more than bias, as far as that stands out from the noise. It needs no
 * latency, no drops and no baseline, so it cannot drift. But it is slow, at most change_per_second,
 * and it does not know whether the limit is used: without load the limit sinks slowly, until calls
 * are refused or wait. So set a queue (weir_config.queue) or a min. With weir_config.cpu it does
 * not grow while the processors are busy. Designed for windows of 10 ms.
 *
 * Outcomes: every call that has a latency counts as done, dropped and timed out calls too;
 * cancelled, failed and ignored calls are not seen.
 *
 * Source: J. Hellerstein et al., "Optimizing Concurrency Levels in the .NET ThreadPool",
 * FeBID 2008; .NET's PortableThreadPool.HillClimbing.
 */
struct weir_hillclimb_config {
	uint32_t initial;         /* 20; 1 to 2^31 - 1 */
	uint32_t min;             /* 1; 1 to 2^31 - 1 */
	uint32_t max;             /* 1000; 1 to 2^31 - 1 */
	uint32_t period;          /* 4; 2 to 32, even; samples of a wave */
	uint32_t history;         /* 8; 2 to 32; waves that are kept; period * history: up to 64 */
	double bias;              /* 0.15; 10^-6 to 1; how far throughput must follow the limit */
	double snr;               /* 3; 0.1 to 100; ratio of wave to noise for full confidence */
	double magnitude;         /* 1; 0.01 to 100; factor on the wave's height */
	uint32_t wave_max;        /* 20; 1 to 2^31 - 1; greatest height of the wave, calls */
	double change_per_second; /* 4; 0.01 to 10^6; most calls to move by in a second */
	double change_per_sample; /* 20; 0.01 to 10^6; most calls to move by at once */
	weir_dur sample_min;      /* 10 ms; 1 us to 1 min; shortest sample */
	weir_dur sample_max;    /* 200 ms; 1 us to 1 min; a sample's length is random up to this, */
	double sample_error;    /* 0.15; 0.001 to 10^6; or until limit / calls is below this */
	double error_smoothing; /* 0.01; above 0, to 1; weight of new noise */
	double gain_exponent;   /* 2; 0.5 to 4; exponent on a move, which is below 1 */
	double cpu;             /* 0.95; 0.01 to 1; no growth at a higher CPU use than this */
};
WEIR_API extern const struct weir_limit_ops weir_hillclimb;

/*
 * protego: compares the throughput of each measurement with that of the one before, and grows by a
 * step where it followed the limit, by efficiency at least. It shrinks by a step where throughput
 * did not follow, or where too many calls were dropped. It compares no latencies, so it learns no
 * queue. But a step changes throughput by less than chance does: the limit walks at random. It is
 * here for comparison. It moves by one call in some ten latencies, and without load it sinks, until
 * calls are refused or wait. So set a queue (weir_config.queue), a min, or unused. Designed for
 * windows of 10 ms.
 *
 * Outcomes: dropped and timed out calls count as load and not as throughput; cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: I. Cho et al., "Protego: Overload Control for Applications with Unpredictable Lock
 * Contention", NSDI 2023: its admission control, as in bw2_server.c of its code. What the paper
 * does in front of locks has no counterpart in a limit.
 */
struct weir_protego_config {
	uint32_t initial;  /* 20; 1 to 2^31 - 1 */
	uint32_t min;      /* 1; 1 to 2^31 - 1 */
	uint32_t max;      /* 1000; 1 to 2^31 - 1 */
	double efficiency; /* 0.1, the paper's; 10^-6 to 1; how far throughput must follow */
	double drops;      /* 0.1; 10^-6 to 1; fraction of calls lost above which it shrinks */
	double settle;     /* 5; 0.01 to 10^6; mean latencies to wait after a step */
	double measure;    /* 5; 0.01 to 10^6; mean latencies that a measurement takes */
	uint32_t calls;    /* 50; 1 to 10^9; fewest calls of a measurement */
	struct weir_step increase; /* add:1, the code's; step up */
	struct weir_step decrease; /* sub:1, the code's; step down */
	struct weir_step unused;   /* sub:1, the code's; step if the limit was not reached */
};
WEIR_API extern const struct weir_limit_ops weir_protego;

/*
 * elastic: grows while more calls in flight bring more throughput, and no further. It compares
 * calls that found more in flight with calls of the same moment that found fewer, so it needs no
 * remembered latency: nothing drifts under lasting overload, and nothing is refused when all work
 * has become slower. Under overload it moves the limit up and down on purpose, at times that all
 * limiters agree on, so that limiters that share a backend see their joint effect. These are real
 * times: where they run on several machines, the clocks of these must be synchronised. It learns by
 * calls, not by time: adapting to a change takes some dozens to hundreds of calls. Designed for
 * single samples.
 *
 * target is the one parameter that matters: the limit stops where one percent more in flight brings
 * less than target percent more throughput. A lower target gives more throughput, a higher one
 * lower latency.
 *
 * Outcomes: a call that timed out counts by its latency, and lowers the limit by one until another
 * call ends otherwise, as the server may still work on it. Dropped calls do the same, but only those
 * beyond the limit's number in a row. Failed and ignored calls count by the time that they were in
 * flight; cancelled ones make no room for those that timed out. Once eight times as many calls as
 * usual were cancelled and none was served in between, they lower the limit as timeouts do.
 *
 * Pauses: where all calls time out even at the lowest limit, no call is admitted for as long as the
 * last one took, then for twice as long after each call that times out as well, up to `pause` times
 * as long, and for the same time again after one that is cancelled. So a server that keeps working on
 * calls that were given up gets time to finish them. The limit then is 0 (weir_limit()). 0.01 means
 * hardly any pause.
 * The permits of detached calls come on top of the limit, max included (WEIR_LIMIT_DETACHED).
 *
 * Source: docs/elastic.md.
 */
struct weir_elastic_config {
	uint32_t initial; /* 8; 1 to 2^31 - 1 */
	uint32_t min;     /* 1; 1 to 2^31 - 1 */
	uint32_t max;     /* 100000; 1 to 2^31 - 1 */
	double target;    /* 0.25; 0.05 to 0.9; elasticity of throughput at which growth stops */
	double pause;     /* 2; 0.01 to 64; longest pause, in times that a call took to time out */
};
WEIR_API extern const struct weir_limit_ops weir_elastic;

#ifdef __cplusplus
}
#endif
#endif
