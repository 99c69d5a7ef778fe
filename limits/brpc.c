/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brpc: the highest throughput seen, times the lowest latency, and a fraction more.
 *
 * In the form of the auto concurrency limiter of Apache brpc
 * (src/brpc/policy/auto_concurrency_limiter.cpp). A round gathers samples until there are
 * samples_max, or for round_max if there are at least samples_min by then; a round with fewer is
 * discarded. With l its mean latency and q its successes a second,
 *
 *     l_min goes down towards l, weighted, or stays
 *     q_max goes up to q at once, or down towards q with a tenth of that weight
 *     limit = q_max * l_min * (1 + explore)
 *
 * explore grows by a step while the backend seems to sustain it, that is, while l is near l_min or
 * q is well below q_max; otherwise it shrinks. From time to time l_min is measured again: the limit
 * goes to reduce times the product, and after two mean latencies the next round sets l_min.
 *
 * What it cannot do:
 *   - drain a queue by sending a tenth less: under lasting overload l_min is measured with the
 *     queue in it, and the limit climbs;
 *   - allow for random bunching in a small backend: with a limit a tenth above the mean in flight,
 *     calls that arrive together are refused even at half load;
 *   - learn where fewer than samples_min calls come within round_max;
 *   - notice at once that capacity is lost: q_max forgets one hundredth a round.
 *
 * It differs from the original in these ways:
 *   - the library's windows are gathered to rounds. They last 20 ms, as a round of the original
 *     does at least: it samples at most one call in 0.1 ms, and samples_max is 200. So a round has
 *     samples_max samples or more;
 *   - all samples count, not one in 0.1 ms;
 *   - a failed call's latency is not known apart from the others': punish weights mean latencies;
 *   - there is no error rate below which errors are ignored, and there is a max;
 *   - a round that took no time is not used.
 *
 * Outcomes: a dropped or timed out call counts as not served, and its latency is added to that of
 * the served calls; a round with nothing else halves the limit. Ignored, cancelled and failed calls
 * are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

/* How many times more slowly a lower throughput is learned than a lower latency; from brpc. */
#define FORGET_SLOWER 10

struct brpc {
	double limit;
	double rtt_noload; /* l_min, nanoseconds; 0: to be measured */
	double rate_max;   /* q_max, calls a nanosecond */
	double explore;
	double countdown; /* nanoseconds until l_min is measured again */
	double settle;    /* nanoseconds for which samples are skipped after a reduction; 0: none */
	double probes;
	double min, max, smoothing, explore_min, explore_max, explore_step;
	double round_max, samples_min, samples_max, probe_interval, reduce, punish;
	struct gathered round;
};

static const char *brpc_check(const void *config)
{
	const struct weir_brpc_config *c = config;

	if (c->min > c->max)
		return "min is above max";
	if (c->samples_min > c->samples_max)
		return "samples_min is above samples_max";
	return c->explore_min > c->explore_max ? "explore_min is above explore_max" : NULL;
}

/* Random in [interval / 2, interval), so that the members of a fleet do not probe together. */
static double countdown_from(const struct brpc *b, double random)
{
	return b->probe_interval * (1 + random) / 2;
}

static double brpc_init(void *state, const void *config, double random)
{
	const struct weir_brpc_config *c = config;
	struct brpc *b = state;

	*b = (struct brpc){
		.limit = c->initial,
		.explore = c->explore_max,
		.min = c->min,
		.max = c->max,
		.smoothing = c->smoothing,
		.explore_min = c->explore_min,
		.explore_max = c->explore_max,
		.explore_step = c->explore_step,
		.round_max = (double)c->round_max,
		.samples_min = c->samples_min,
		.samples_max = c->samples_max,
		.probe_interval = (double)c->probe_interval,
		.reduce = c->reduce,
		.punish = c->punish,
	};
	b->countdown = countdown_from(b, random);
	return b->limit;
}

/* Let the calls end that waited when the limit was reduced, to keep them out of the next l_min. */
static void settle(struct brpc *b, const struct weir_window *w)
{
	b->settle -= lasted(w);
	if (b->settle > 0)
		return;
	b->settle = 0;
	b->rtt_noload = 0;
	b->countdown = countdown_from(b, w->random);
}

static void learn(struct brpc *b, double rtt, double rate)
{
	const double forget = b->smoothing / FORGET_SLOWER;

	if (b->rtt_noload == 0)
		b->rtt_noload = rtt;
	else if (rtt < b->rtt_noload)
		b->rtt_noload += b->smoothing * (rtt - b->rtt_noload);

	if (rate >= b->rate_max)
		b->rate_max = rate;
	else
		b->rate_max += forget * (rate - b->rate_max);
}

static double next_explore(const struct brpc *b, double rtt, double rate)
{
	const double near = 1 + b->explore_min;

	if (rtt <= b->rtt_noload * near || rate <= b->rate_max / near)
		return fmin(b->explore_max, b->explore + b->explore_step);
	return fmax(b->explore_min, b->explore - b->explore_step);
}

/* Take in a round. Returns the new limit, before bounds. */
static double close_round(struct brpc *b)
{
	const struct gathered *r = &b->round;
	const double served = r->calls - r->overload;
	double rtt, rate;

	if (served == 0)
		return b->limit / 2;

	rtt = r->sum * (1 + (b->punish - 1) * r->overload / r->calls) / served;
	rate = served / r->lasted;
	learn(b, rtt, rate);
	if (b->countdown <= 0) {
		b->settle = 2 * rtt;
		b->probes += 1;
		return ceil(b->rate_max * b->rtt_noload * b->reduce);
	}
	b->explore = next_explore(b, rtt, rate);
	return b->rate_max * b->rtt_noload * (1 + b->explore);
}

static double brpc_update(void *state, const struct weir_window *w)
{
	struct brpc *b = state;
	const struct gathered *r = &b->round;

	if (b->settle > 0) {
		settle(b, w);
		return b->limit;
	}
	gather(&b->round, w);
	b->countdown -= lasted(w);
	if (r->lasted == 0 || (r->lasted < b->round_max && r->calls < b->samples_max))
		return b->limit;

	if (r->calls >= b->samples_min)
		b->limit = clamp(close_round(b), b->min, b->max);
	b->round = (struct gathered){.lasted = 0};
	return b->limit;
}

static const char *const brpc_numbers[] = {"estimate", "rtt_noload", "rate_max", "explore",
					   "settle",   "countdown",  "probes",   NULL};

static void brpc_observe(const void *state, double *values)
{
	const struct brpc *b = state;

	values[0] = b->limit;
	values[1] = b->rtt_noload;
	values[2] = b->rate_max * (double)WEIR_S;
	values[3] = b->explore;
	values[4] = b->settle;
	values[5] = b->countdown;
	values[6] = b->probes;
}

#define OFFSET(field) offsetof(struct weir_brpc_config, field)

static const struct weir_param brpc_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "40", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "9", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "2147483647", "highest limit"},
	{"smoothing", WEIR_PARAM_DOUBLE, OFFSET(smoothing), SMOOTHING_MIN, 1, "0.1",
	 "weight of a lower latency; a lower throughput has a tenth of it"},
	{"explore_min", WEIR_PARAM_DOUBLE, OFFSET(explore_min), SMOOTHING_MIN, 100, "0.06",
	 "lowest fraction above the product"},
	{"explore_max", WEIR_PARAM_DOUBLE, OFFSET(explore_max), SMOOTHING_MIN, 100, "0.3",
	 "highest fraction above the product, and the first"},
	{"explore_step", WEIR_PARAM_DOUBLE, OFFSET(explore_step), SMOOTHING_MIN, 100, "0.02",
	 "step by which that fraction changes"},
	{"round_max", WEIR_PARAM_DUR, OFFSET(round_max), 1, 1e18, "1s", "longest round"},
	{"samples_min", WEIR_PARAM_U32, OFFSET(samples_min), 1, 1e9, "100",
	 "samples below which a round is discarded"},
	{"samples_max", WEIR_PARAM_U32, OFFSET(samples_max), 1, 1e9, "200",
	 "samples that end a round"},
	{"probe_interval", WEIR_PARAM_DUR, OFFSET(probe_interval), 1, 1e18, "50s",
	 "longest time between two measurements of the lowest latency"},
	{"reduce", WEIR_PARAM_DOUBLE, OFFSET(reduce), SMOOTHING_MIN, 1, "0.9",
	 "factor on the product during a measurement"},
	{"punish", WEIR_PARAM_DOUBLE, OFFSET(punish), SMOOTHING_MIN, 1000, "1",
	 "weight of the latency of calls that were not served"},
};

static const struct weir_sampling brpc_sampling = {
	.windowing = WEIR_WINDOW_TIME,
	.window_min = 20 * WEIR_MS,
	.window_max = 20 * WEIR_MS,
	.window_samples = 1,
	.sparse = WEIR_SPARSE_EXTEND,
	.rtt = WEIR_RTT_MEAN,
};

_Static_assert(sizeof(struct brpc) <= WEIR_LIMIT_STATE_MAX, "the state fits");

const struct weir_limit_ops weir_brpc = {
	.size = sizeof(struct weir_limit_ops),
	.name = "brpc",
	.about = "Apache brpc's: highest throughput times lowest latency, for many similar calls.",
	.version = 1,
	.state_size = sizeof(struct brpc),
	.config_size = sizeof(struct weir_brpc_config),
	.params = brpc_params,
	.param_count = sizeof(brpc_params) / sizeof(brpc_params[0]),
	.check = brpc_check,
	.init = brpc_init,
	.update = brpc_update,
	.numbers = brpc_numbers,
	.observe = brpc_observe,
	.sampling = &brpc_sampling,
};
