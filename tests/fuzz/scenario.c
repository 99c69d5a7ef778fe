/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.c - arbitrary text as a scenario. If it is a valid and small one, it is run.
 *
 * Phases are shortened and sources thinned so that a run has about a thousand events; a scenario
 * whose sources cannot be made that slow is only parsed. Every run must end with all permits back
 * and no admission above the limit.
 */
#include "fuzz.h"

#include "run.h"
#include "scenario_read.h"

#include <math.h>
#include <string.h>

/* Longer texts only repeat themselves. */
#define TEXT_MAX 4000

/* Nanoseconds of a phase, and events in a whole run. */
#define PHASE_MAX  ((double)WEIR_S)
#define EVENTS_MAX 1500

/* A typical value of a distribution: with a long tail, far below its mean. */
static double usual(const struct law *law)
{
	switch (law->kind) {
	case LAW_LOGNORMAL:
		return law->mean * draw_exp(-law->shape * law->shape / 2 - law->shape);
	case LAW_PARETO:
		return law->mean * (law->shape - 1) / law->shape;
	case LAW_BIMODAL:
		return law->mean / (1 - law->share + law->share * law->factor) *
		       fmin(1, law->factor);
	default:
		return law->mean / 4;
	}
}

/* How often in a second an event of that length can occur. */
static double turns(double nanoseconds)
{
	return 1e9 / (1 + nanoseconds);
}

static double calls_a_second(const struct scenario *s, const struct phase *phase)
{
	const struct arrivals_model *a = &s->arrivals;
	double calls = phase->rate[0] + phase->rate[1] + phase->background;

	if (a->process == ARRIVALS_CLOSED)
		calls += phase->clients * turns(usual(&a->think));
	if (a->process == ARRIVALS_SELFSIMILAR)
		calls *= 1 + a->off.mean / a->on.mean;
	return calls * (1 + s->client.retries) * s->station_count;
}

static double events_a_second(const struct scenario *s, const struct phase *phase)
{
	const struct arrivals_model *a = &s->arrivals;
	double events = calls_a_second(s, phase);

	if (a->process == ARRIVALS_ONOFF)
		events += turns(usual(&a->on) + usual(&a->off));
	if (a->process == ARRIVALS_SELFSIMILAR)
		events += 16 * turns((a->on.mean + a->off.mean) / 4);
	for (unsigned i = 0; i < s->station_count; i++)
		if (s->stations[i].pause_every.mean > 0)
			events += turns(usual(&s->stations[i].pause_every) +
					usual(&s->stations[i].pause_length));
	return events;
}

/* False: it would take too long. */
static bool cut(struct scenario *s)
{
	double events = s->arrivals.batch;

	s->rounds = s->rounds > 2 ? 2 : s->rounds;
	if (s->arrivals.count > 1000)
		s->arrivals.count = 1000;
	for (unsigned i = 0; i < s->phase_count; i++) {
		struct phase *phase = &s->phases[i];
		double each = EVENTS_MAX / (double)(s->phase_count * s->rounds);
		double length = fmin((double)phase->length, PHASE_MAX);

		if (phase->clients > 20)
			phase->clients = 20;
		length = fmin(length, 1e9 * each / (1 + events_a_second(s, phase)));
		phase->length = (weir_dur)length + 1;
		events += events_a_second(s, phase) * length / 1e9;
	}
	return events < 2 * EVENTS_MAX;
}

static void run_once(const struct scenario *s, const struct weir_limit_ops *ops,
		     struct run_result *result)
{
	struct weir_config config;
	struct run_setup setup = {.scenario = s, .limiter = &config, .seed = 1};
	int error;

	weir_config_init(&config);
	config.limit = ops;
	error = run(&setup, result);
	must(error == 0 || error == -EINVAL);
	must(result->above == 0);
}

static void run_all(struct scenario *s)
{
	struct run_result *first = allocate(sizeof(*first)), *again = allocate(sizeof(*again));

	run_once(s, &weir_vegas, first);
	must(first->leaked == 0);
	run_once(s, &weir_vegas, again);
	must(first->hash == again->hash && first->samples == again->samples);
	run_once(s, &weir_gradient, again);
	must(again->leaked == 0);
	free(first);
	free(again);
}

/* When libconfig gives up, it leaks a string that is not closed. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size, TEXT_MAX), why[300];
	struct scenario s;
	int error;

	if (text == NULL)
		return 0;
	/* A file that it names could be any file. */
	if (strstr(text, "file") != NULL || strstr(text, "@include") != NULL) {
		free(text);
		return -1;
	}
	memset(why, 0, sizeof(why));
	error = scenario_from_text(&s, "fuzz", text, why, sizeof(why));
	must(error == 0 || (error == -EINVAL && is_sentence(why)));
	if (error == 0) {
		must(!isnan(scenario_capacity(&s, &s.phases[0])));
		if (cut(&s))
			run_all(&s);
		scenario_free(&s);
	}
	free(text);
	return 0;
}
