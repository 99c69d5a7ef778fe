/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protego: grow while more load brings more throughput, and shrink otherwise.
 *
 * After the admission control of Protego (I. Cho, A. Saeed, S. Park, M. Alizadeh, A. Belay,
 * "Protego: Overload Control for Applications with Unpredictable Lock Contention", NSDI 2023). With
 * n the limit and X the throughput of a measurement, and n', X' those of the one before, the limit
 * grows by a step if
 *
 *     n >= n', X > X' and (X - X') / X' >= efficiency * (n - n') / n', or
 *     n < n', X < X' and (X' - X) / X' > efficiency * (n' - n) / n',
 *
 * and shrinks by a step if not, if it was not reached, or if too many calls were dropped. After
 * each step it waits for settle latencies, in which calls that began before the step end, and then
 * measures for measure latencies.
 *
 * Of the code are the two cases, the comparison with the measurement before and with no other,
 * that nothing is smoothed, that a pool which is not used up shrinks, steps of one (for up to a
 * thousand clients), and waiting as long as measuring. The code is srpc_update_credit_pool() of
 * breakwater/src/bw2_server.c, in a copy of the authors' file (ppppaidy/Caladan-Adapted). Of the
 * paper, as others describe it, are efficiency, a tenth, and that a large fraction of drops shrinks
 * the limit. Published configurations of the code have a quarter and a tenth; it counts drops, and
 * does not use the count. What fraction is large could not be found: drops is a tenth here, as
 * efficiency is. The paper is said to shrink by a factor, which could not be found either: decrease
 * may be one.
 *
 * What had to be translated:
 *   - The pool of credits, which a server hands to its clients, is the limit. A credit that an idle
 *     client holds is used up there. Here only a call in flight is, so the limit sinks in calm
 *     times, in which the pool would not. The pool is at least one credit a core, and ten at first;
 *     here that is min and initial.
 *   - Load is n here. There it is the number of requests that came in, and a slope is what ended
 *     over what came. A limiter sees no difference between them: whatever it admits ends, so that
 *     slope is 1 in a queue of any length. (There a server drops requests that wait for too long;
 *     they came in, and are not throughput.) Calls in flight and calls a second differ in unit, so
 *     both changes are relative.
 *   - Waiting and measuring take 100 us each there, a configured 99th percentile of latency. Here
 *     they take 5 mean latencies, which is that percentile of exponential work. 100 us are some
 *     dozens of requests: here calls is the least.
 *   - Without any request the pool grows there, as clients wait for credits. Here no call needs to
 *     be invited, and the measurement goes on until there are calls.
 *
 * What has no counterpart is the other half of the paper, active synchronization queue management.
 * It drops a request in front of a lock if the wait there would exceed what is left of the
 * request's budget. That is in the middle of a call, and a limit acts before the beginning. A
 * program that gives up at a lock can report WEIR_DROPPED: such calls are no throughput.
 *
 * What it cannot do: tell a gain from chance. A step of one call changes the throughput by less
 * than chance does in so short a measurement. So the limit walks at random, with a drift upwards
 * below the knee and hardly any above it: under lasting overload it wanders off. It needs ten
 * latencies for one call, and does not find a large capacity. In calm times it sinks to what is in
 * flight.
 *
 * Outcomes: dropped and timed out calls are load, and no throughput; cancelled, failed and ignored
 * calls are not seen.
 */

#include <stddef.h>

#include <weir/limits.h>

#include "common.h"

struct protego {
	double limit;        /* with its fraction */
	double load;         /* of the last measurement, calls; 0: there is none */
	double throughput;   /* of the last measurement, calls served a second */
	double gain;         /* relative change of throughput over that of load, at the last */
	double settling;     /* bool: calls from before the last step are ending */
	struct gathered now; /* since the last step, or since calls have settled */
	double min, max, efficiency, drops, settle, measure, calls;
	struct weir_step increase, decrease, unused;
};

static const char *protego_check(const void *config)
{
	const struct weir_protego_config *c = config;

	if (c->min > c->max)
		return "min is above max";
	if (c->decrease.kind == WEIR_STEP_MUL ? c->decrease.by > 1 : c->decrease.by > 0)
		return "decrease does not decrease";
	if (c->increase.kind == WEIR_STEP_MUL ? c->increase.by < 1 : c->increase.by < 0)
		return "increase does not increase";
	return NULL;
}

static double protego_init(void *state, const void *config, double random)
{
	const struct weir_protego_config *c = config;
	struct protego *p = state;

	(void)random;
	*p = (struct protego){
		.limit = c->initial,
		.settling = 1,
		.min = c->min,
		.max = c->max,
		.efficiency = c->efficiency,
		.drops = c->drops,
		.settle = c->settle,
		.measure = c->measure,
		.calls = c->calls,
		.increase = c->increase,
		.decrease = c->decrease,
		.unused = c->unused,
	};
	return p->limit;
}

/* Whether these calls are enough to go on: to the measurement, or to the next step. */
static bool is_complete(const struct protego *p)
{
	const struct gathered *now = &p->now;
	const double latency = now->count > 0 ? now->sum / now->count : 0;

	if (p->settling > 0)
		return now->calls > 0 && now->lasted >= p->settle * latency;
	return now->calls >= p->calls && now->lasted >= p->measure * latency;
}

/* Whether the throughput followed the load since the measurement before. */
static bool follows(const struct protego *p, double load, double throughput)
{
	const double gained = throughput - p->throughput;
	const double due = p->efficiency * p->throughput * (load - p->load) / fmax(1, p->load);

	if (load >= p->load)
		return gained > 0 && gained >= due;
	return gained < 0 && gained < due;
}

static const struct weir_step *next_step(const struct protego *p, double load, double throughput)
{
	if (p->now.overload > p->drops * p->now.calls)
		return &p->decrease;
	if (p->now.inflight_max < load)
		return &p->unused;
	return follows(p, load, throughput) ? &p->increase : &p->decrease;
}

static double gain_since(const struct protego *p, double load, double throughput)
{
	if (load == p->load || p->load == 0 || p->throughput == 0)
		return 0;
	return (throughput / p->throughput - 1) / (load / p->load - 1);
}

static void step(struct protego *p, double load)
{
	const double served = p->now.calls - p->now.overload;
	const double throughput = 1e9 * served / fmax(1, p->now.lasted);
	const struct weir_step *next = next_step(p, load, throughput);

	p->gain = gain_since(p, load, throughput);
	p->load = load;
	p->throughput = throughput;
	p->limit = clamp(step_from(next, p->limit), p->min, p->max);
}

static double protego_update(void *state, const struct weir_window *w)
{
	struct protego *p = state;

	/* The limiter has bounds of its own, and drops the fraction; keep within them. */
	if (floor(p->limit) != w->limit)
		p->limit = clamp(w->limit, p->min, p->max);
	gather(&p->now, w);
	if (!is_complete(p))
		return p->limit;
	if (!(p->settling > 0))
		step(p, w->limit);
	p->settling = !(p->settling > 0);
	p->now = (struct gathered){.lasted = 0};
	return p->limit;
}

static const char *const protego_numbers[] = {"estimate", "gain", "throughput", "settling", NULL};

static void protego_observe(const void *state, double *values)
{
	const struct protego *p = state;

	values[0] = p->limit;
	values[1] = p->gain;
	values[2] = p->throughput;
	values[3] = p->settling;
}

#define OFFSET(field) offsetof(struct weir_protego_config, field)

static const struct weir_param protego_params[] = {
	{"initial", WEIR_PARAM_U32, OFFSET(initial), 1, LIMIT_TOP, "20", "limit at first"},
	{"min", WEIR_PARAM_U32, OFFSET(min), 1, LIMIT_TOP, "1", "lowest limit"},
	{"max", WEIR_PARAM_U32, OFFSET(max), 1, LIMIT_TOP, "1000", "highest limit"},
	{"efficiency", WEIR_PARAM_DOUBLE, OFFSET(efficiency), 1e-6, 1, "0.1",
	 "fraction of a change of load by which throughput must follow"},
	{"drops", WEIR_PARAM_DOUBLE, OFFSET(drops), 1e-6, 1, "0.1",
	 "fraction of dropped and timed out calls above which it shrinks"},
	{"settle", WEIR_PARAM_DOUBLE, OFFSET(settle), 0.01, 1e6, "5",
	 "mean latencies that it waits after a step"},
	{"measure", WEIR_PARAM_DOUBLE, OFFSET(measure), 0.01, 1e6, "5",
	 "mean latencies that a measurement takes"},
	{"calls", WEIR_PARAM_U32, OFFSET(calls), 1, 1e9, "50", "calls that it has at least"},
	{"increase", WEIR_PARAM_STEP, OFFSET(increase), -LIMIT_TOP, LIMIT_TOP, "add:1", "step up"},
	{"decrease", WEIR_PARAM_STEP, OFFSET(decrease), -LIMIT_TOP, LIMIT_TOP, "sub:1",
	 "step down"},
	{"unused", WEIR_PARAM_STEP, OFFSET(unused), -LIMIT_TOP, LIMIT_TOP, "sub:1",
	 "step after a measurement in which the limit was not reached"},
};

_Static_assert(sizeof(struct protego) <= WEIR_LIMIT_STATE_MAX, "the state fits");

static const struct weir_sampling protego_sampling = {
	.window_min = 10 * WEIR_MS,
	.window_max = 10 * WEIR_MS,
	.window_samples = 1,
};

const struct weir_limit_ops weir_protego = {
	.size = sizeof(struct weir_limit_ops),
	.name = "protego",
	.about =
		"Grows while more load brings more throughput: for comparison; it walks at random.",
	.version = 1,
	.state_size = sizeof(struct protego),
	.config_size = sizeof(struct weir_protego_config),
	.params = protego_params,
	.param_count = sizeof(protego_params) / sizeof(protego_params[0]),
	.check = protego_check,
	.init = protego_init,
	.update = protego_update,
	.numbers = protego_numbers,
	.observe = protego_observe,
	.sampling = &protego_sampling,
};
