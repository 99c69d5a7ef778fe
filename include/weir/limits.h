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
 * The built-in limit of that name; for NULL the default, elastic; NULL if there is none.
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
 * stay far below a large capacity (see weir-sim run -s healthy,cold-start); raise alpha and beta, or
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

/*
 * envoy: multiplies the limit by latency without load over present latency, and adds its root.
 * Every probe_interval it goes down to min for probe_samples calls, to measure the latency without
 * load: as in Envoy, for proxies and servers whose callers can bear to be turned away then.
 *
 * Not for callees that may hang: a probe lasts until its samples have come, so min calls that do
 * not end are an outage. Not for a limit that must hold at once: while the callee is idle it grows
 * to max. Where latency without load has risen it is measured anew after probe_interval, or as soon
 * as five windows in a row ended at min, which a high min prevents.
 *
 * It is made for windows of 100 ms of any number of samples, and their median.
 *
 * Outcomes: dropped and timed out calls count by their latency alone; cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: the gradient controller of Envoy's adaptive concurrency filter, gradient_controller.cc.
 */
struct weir_envoy_config {
	uint32_t initial; /* 3; 1 to 2^31 - 1; after the first probe, which is at min */
	uint32_t min;     /* 3; 1 to 2^31 - 1; that of probes too */
	uint32_t max;     /* 1000 */
	double buffer;    /* 0.25; above 0, to 100: latency may exceed that without load by it */
	uint32_t probe_samples;  /* 50; 1 to 10^9 */
	weir_dur probe_interval; /* 60 s; from the end of a probe to the next */
	double probe_jitter;     /* 0.15; above 0, to 1: part of the interval that chance may add */
	weir_dur probe_timeout;  /* 10^9 s, as good as none; then the samples there are must do */
	weir_dur rtt_noload;     /* 0: measured; else it is this, and there are no probes */
};
WEIR_API extern const struct weir_limit_ops weir_envoy;

/*
 * brpc: the greatest rate of calls times the lowest latency, which is how many an idle callee
 * has in flight, and explore_min to explore_max of it more. It finds a large capacity within
 * seconds: for servers of many calls a second that are much alike.
 *
 * Not below samples_min calls in round_max: it then learns nothing. Not for small callees: it
 * leaves no room for chance, and refuses some of the calls at half load. Under lasting overload it
 * takes the queue for the callee's latency and climbs, and it has no max of its own: set one.
 *
 * It is made for windows of 20 ms, gathered to rounds of samples_max samples or of round_max.
 *
 * Outcomes: dropped and timed out calls count as not served, and their latency, times punish, is
 * added to that of those served; where none is served the limit is halved. Cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: Apache brpc's auto concurrency limiter, auto_concurrency_limiter.cpp.
 */
struct weir_brpc_config {
	uint32_t initial;     /* 40; 1 to 2^31 - 1 */
	uint32_t min;         /* 9; lower it for a callee that serves fewer at once */
	uint32_t max;         /* 2^31 - 1, which is none */
	double smoothing;     /* 0.1; above 0, to 1: of a lower latency; of a lower rate a tenth */
	double explore_min;   /* 0.06; above 0, to 100 */
	double explore_max;   /* 0.3; not below explore_min; at first it is this */
	double explore_step;  /* 0.02; above 0, to 100; up or down, once a round */
	weir_dur round_max;   /* 1 s */
	uint32_t samples_min; /* 100; 1 to 10^9; a round with fewer is thrown away */
	uint32_t samples_max; /* 200; to 10^9; these end a round; not below samples_min */
	weir_dur probe_interval; /* 50 s at most, half of it at least: then latency is forgotten */
	double reduce;           /* 0.9; above 0, to 1: factor on the limit before that */
	double punish; /* 1; above 0, to 1000: weight of the latency of those not served */
};
WEIR_API extern const struct weir_limit_ops weir_brpc;

/*
 * failsafe: holds the queue at the callee, estimated from recent over lasting latency, between
 * alpha and beta calls, and shrinks as well where what was in flight in the last windows, and
 * how long it took, say that more in flight gets no more done. For callees whose latency changes
 * for reasons other than load: it gets used to that in half a minute.
 *
 * By the same token it gets used to an overload, and then drifts up: give it a max. It moves by a
 * step a second at most, so a large capacity, or a loss of it, takes it minutes.
 *
 * It is made for windows of 50 samples, of 1 s to 30 s, and their 90th percentile.
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
	double factor;    /* 5; 1 to 10^9: the limit is led to so many times the most in flight */
	struct weir_scale alpha; /* log10:3; queue below which the limit grows */
	struct weir_scale beta;  /* log10:6; queue above which it shrinks; not below alpha */
	uint32_t recent;         /* 5; 1 to 10^9: windows that recent latency averages over */
	uint32_t baseline;       /* 10; 1 to 10^9: windows that lasting latency averages over */
	uint32_t history;        /* 50; 10 to 50: windows that are compared for what helps */
};
WEIR_API extern const struct weir_limit_ops weir_failsafe;

/*
 * vector: one more a round trip while the limit is reached and latency is not above its mean;
 * backoff times the limit when calls are dropped, or latency is well above that mean. For clients
 * that send to a service which says when it is full, and that would rather send too little.
 *
 * Without drops it is a poor guard: its mean follows a queue, and it settles somewhere above what
 * the callee can take. A large capacity is far away: 500 round trips for a limit of 500.
 *
 * It is made for windows of 1 ms, gathered to round trips. Its minimum is 1.
 *
 * Outcomes: dropped and timed out are overload, and their latencies count; cancelled, failed and
 * ignored calls are not seen.
 *
 * Source: Vector's adaptive request concurrency, src/sinks/util/adaptive_concurrency.
 */
struct weir_vector_config {
	uint32_t initial;  /* 1; to 2^31 - 1 */
	uint32_t max;      /* 200 */
	double backoff;    /* 0.9; above 0, to below 1; factor on overload */
	double smoothing;  /* 0.4; above 0, to 1: weight of the last round trip in the mean */
	double deviations; /* 2.5; above 0, to 10^9: so many above the mean are overload */
};
WEIR_API extern const struct weir_limit_ops weir_vector;

/*
 * bbr: while the processors are busy, the most calls that ended in a tenth of a second lately,
 * times the lowest latency: what would have been in flight, had both come together. No limit at
 * all while they are not, or are not known to be: it needs weir_config.cpu, as weir/cpu.h
 * provides. For work that is done by this machine's processors; one that waits for others is never
 * limited. It does not probe, so a queue that was there before the processors were seen to be
 * busy is taken for the lowest latency: the limit is then far too high. It never goes below 2.
 * Made for windows of 100 ms.
 *
 * Outcomes: dropped and timed out calls count by their latency, as successes do; cancelled,
 * failed and ignored calls are not seen.
 *
 * Source: kratos (aegis, ratelimit/bbr), 2021; Alibaba Sentinel's system rule. Of TCP's BBR it
 * has the product and the name.
 */
struct weir_bbr_config {
	uint32_t max;     /* 8388607; 1 to 2^31 - 1: highest limit, and that of idle processors */
	double threshold; /* 0.8; 0.01 to 1: busy is from here */
	weir_dur window;  /* 10 s; 1 ms to 1 h: how far back it looks, in 100 buckets */
	weir_dur hold;    /* 1 s; to 1 h: it limits for so long after they were busy, if needed */
	weir_dur resolution; /* 1 ms; to 1 min: the lowest latency is rounded up to multiples */
};
WEIR_API extern const struct weir_limit_ops weir_bbr;

/*
 * cautious: a success that found the limit nearly used adds 1 / limit, so as many as the limit add
 * one; every drop takes a tenth. For clients of a callee that refuses what is too much: it acts on
 * each refusal at once. Latency means nothing to it, so a callee that only gets slow is not
 * noticed: the limit grows to max. Many refusals of one moment count each.
 * Made for windows of single samples; in others all successes count as the one that found
 * the most in flight.
 *
 * Outcomes: dropped and timed out are overload; cancelled, failed and ignored calls are not seen.
 *
 * Source: Palantir's dialogue, CautiousIncreaseAggressiveDecreaseConcurrencyLimiter, 2020.
 */
struct weir_cautious_config {
	uint32_t initial; /* 20; 1 to 2^31 - 1 */
	uint32_t min;     /* 1; 1 to 2^31 - 1 */
	uint32_t max;     /* 1000000; 1 to 2^31 - 1 */
	double backoff;   /* 0.9; 0.1 to 0.99; factor on every drop, rounded down */
	double usage;     /* 0.9; 0.01 to 1: part of the limit a success must find in flight */
};
WEIR_API extern const struct weir_limit_ops weir_cautious;

/*
 * codel: keeps the callee's own queue short, by what the callee tells of it: weir_queued(). If even
 * the shortest wait of an interval was above target, a queue stands, and the limit shrinks in
 * proportion to the excess, to half at most; if not, it grows by increase, if it was at least half
 * used. Without reports it stays as it is. For a service with a queue of its own that can be
 * measured; it needs no latency to compare with, and a service that has become slower is not taken
 * for one with a queue. Made for windows of 100 ms.
 *
 * Outcomes: none is looked at, nor any latency.
 *
 * Source: K. Nichols, V. Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012, as in
 * folly's Codel; the moves: I. Cho et al., "Overload Control for us-scale RPCs with
 * Breakwater", OSDI 2020.
 */
struct weir_codel_config {
	uint32_t initial;  /* 20; 1 to 2^31 - 1 */
	uint32_t min;      /* 1; 1 to 2^31 - 1 */
	uint32_t max;      /* 1000; 1 to 2^31 - 1 */
	weir_dur interval; /* 100 ms; 1 us to 1 min: the shortest wait of so much time counts */
	weir_dur target;   /* 5 ms; to 1 min: above this a queue stands */
	double increase;   /* 1; 0.001 to 10^6: calls an interval */
	double decrease;   /* 0.02; 0.001 to 1: part to shrink by for each target of excess */
};
WEIR_API extern const struct weir_limit_ops weir_codel;

/*
 * hillclimb: moves the limit up and down on purpose, by 1 to wave_max calls, and goes where the
 * throughput follows it by more than bias, as far as that is clear of the noise. It needs no
 * latency, no drops and no baseline, and cannot drift. But it is slow, at most
 * change_per_second; and it does not know whether the limit is used: without load the
 * limit sinks, slowly, until calls are refused or wait. So give it a queue (weir_config.queue),
 * or a min. With weir_config.cpu it does not grow while the processors are busy.
 * Made for windows of 10 ms.
 *
 * Outcomes: any call that has a latency was done, dropped and timed out ones too; cancelled,
 * failed and ignored calls are not seen.
 *
 * Source: J. Hellerstein et al., "Optimizing Concurrency Levels in the .NET ThreadPool",
 * FeBID 2008; .NET's PortableThreadPool.HillClimbing.
 */
struct weir_hillclimb_config {
	uint32_t initial;         /* 20; 1 to 2^31 - 1 */
	uint32_t min;             /* 1; 1 to 2^31 - 1 */
	uint32_t max;             /* 1000; 1 to 2^31 - 1 */
	uint32_t period;          /* 4; 2 to 32, even: samples of a wave */
	uint32_t history;         /* 8; 2 to 32: waves it looks at; period * history to 64 */
	double bias;              /* 0.15; 10^-6 to 1: so far throughput must follow the limit */
	double snr;               /* 3; 0.1 to 100: wave over noise for full confidence */
	double magnitude;         /* 1; 0.01 to 100: factor on the wave's height */
	uint32_t wave_max;        /* 20; 1 to 2^31 - 1: greatest height of the wave */
	double change_per_second; /* 4; 0.01 to 10^6 */
	double change_per_sample; /* 20; 0.01 to 10^6 */
	weir_dur sample_min;      /* 10 ms; 1 us to 1 min: a sample lasts this, */
	weir_dur sample_max;      /* 200 ms; 1 us to 1 min: to this, by lot, */
	double sample_error;      /* 0.15; 0.001 to 10^6: or until limit / calls is below this */
	double error_smoothing;   /* 0.01; above 0, to 1: weight of new noise */
	double gain_exponent;     /* 2; 0.5 to 4: of moves, which are below 1 */
	double cpu;               /* 0.95; 0.01 to 1: busier than this it does not grow */
};
WEIR_API extern const struct weir_limit_ops weir_hillclimb;

/*
 * elastic: grows while more calls in flight bring more throughput, and no further. It compares
 * calls that found more in flight with calls of the same moment that found fewer, so it needs no
 * latency of better days: nothing drifts under lasting overload, and nothing is refused when the work
 * has become slower for all. In overload it moves the limit up and down on purpose, at times that all
 * limiters of a machine agree on, so that those who share a callee see what they do together. It
 * learns by calls, not by time: a change takes it some dozens to hundreds of calls. Made for single
 * samples.
 *
 * target is what it is all about: it stops where one percent more in flight brings less than
 * target percent more throughput. Lower is more throughput, higher is less latency.
 *
 * Outcomes: timed out calls count by their latency, and many of them make it shrink; dropped ones
 * only if there is little else; cancelled, failed and ignored calls are not seen. Detached calls
 * come on top of the limit, max included (WEIR_LIMIT_DETACHED).
 *
 * Source: docs/elastic.md.
 */
struct weir_elastic_config {
	uint32_t initial; /* 4; 1 to 2^31 - 1 */
	uint32_t min;     /* 1; 1 to 2^31 - 1 */
	uint32_t max;     /* 100000; 1 to 2^31 - 1 */
	double target;    /* 0.3; 0.05 to 0.9: elasticity to stop at */
};
WEIR_API extern const struct weir_limit_ops weir_elastic;

#ifdef __cplusplus
}
#endif
#endif
