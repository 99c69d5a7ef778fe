/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contest.c - simulated runs one after the other, and several real runs in parallel: their threads
 * sleep most of the time.
 */
#include "contest.h"

#include "bench/sim/alloc_or_abort.h"
#include "real.h"
#include "score.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A real run, in its own thread. */
struct attempt {
	struct run_setup setup;
	struct weir_config limiter;
	struct run_result *result;
	struct tally lateness;
	pthread_t thread;
	int error;
};

static void sum_up(struct figures *figures, const struct contest *c, const struct oracle *oracle,
		   const struct run_result *best, const struct run_result *result)
{
	struct tally *sum = alloc_or_abort(sizeof(*sum));
	struct score score;

	for (unsigned i = 0; i < c->scenario->phase_count; i++)
		if (!c->scenario->phases[i].warm_up)
			tally_add(sum, &result->phases[i].tally);
	score_from(&score, c->scenario, oracle, best, result);
	*figures = (struct figures){
		.good = tally_per_second(sum, sum->good),
		.latency = tally_latency_mean(sum),
		.limit = tally_limit_mean(sum),
		.score = score.power,
	};
	free(sum);
}

/* entrant NULL: the oracle. */
static struct run_setup setup_of(const struct contest *c, const struct entrant *entrant,
				 const struct oracle *oracle, struct weir_config *limiter)
{
	weir_config_init(limiter);
	limiter->limit = entrant == NULL ? &weir_settable : entrant->limit;
	limiter->limit_config = entrant == NULL ? NULL : entrant->config;
	return (struct run_setup){
		.scenario = c->scenario,
		.limiter = limiter,
		.seed = c->seed,
		.limits = entrant == NULL ? oracle->limits : NULL,
	};
}

static void add_seed(const struct contest *c, struct standing *standing, unsigned seed,
		     const struct figures *one)
{
	standing->scores[seed] = one->score;
	standing->sim.good += one->good / c->seeds;
	standing->sim.latency += one->latency / c->seeds;
	standing->sim.limit += one->limit / c->seeds;
	standing->sim.score += one->score / c->seeds;
}

static int simulate_seed(const struct contest *c, const struct oracle *oracle, unsigned seed,
			 struct standing *standings)
{
	struct run_result *best = alloc_or_abort(sizeof(*best));
	struct run_result *result = alloc_or_abort(sizeof(*result));
	int error = 0;

	score_best(best, c->scenario, oracle, c->seed + seed);
	for (unsigned i = 0; i < c->count && error == 0; i++) {
		struct weir_config limiter;
		struct run_setup setup = setup_of(c, &c->entrants[i], oracle, &limiter);
		struct figures one;

		setup.seed += seed;
		error = run(&setup, result);
		sum_up(&one, c, oracle, best, result);
		add_seed(c, &standings[i], seed, &one);
	}
	free(best);
	free(result);
	return error;
}

static void *attempt_run(void *arg)
{
	struct attempt *attempt = arg;

	attempt->error = real_run(&attempt->setup, attempt->result, &attempt->lateness);
	return NULL;
}

static void attempt_start(struct attempt *attempt)
{
	int error = pthread_create(&attempt->thread, NULL, attempt_run, attempt);

	if (error != 0) {
		fprintf(stderr, "Cannot create a thread for a run: %s\n", strerror(error));
		abort();
	}
}

/* Attempt 0 is the oracle's. */
static int go_through(const struct contest *c, struct attempt *attempts, struct tally *lateness)
{
	int error = 0;

	for (unsigned begun = 0, ended = 0; ended <= c->count; ended = begun) {
		for (; begun <= c->count && begun - ended < c->side; begun++) {
			fprintf(stderr, "%s%s", begun == ended ? "\t" : ", ",
				begun == 0 ? "the oracle" : c->entrants[begun - 1].text);
			attempt_start(&attempts[begun]);
		}
		fputc('\n', stderr);
		for (unsigned i = ended; i < begun; i++) {
			pthread_join(attempts[i].thread, NULL);
			tally_add(lateness, &attempts[i].lateness);
			error = attempts[i].error != 0 ? attempts[i].error : error;
		}
	}
	return error;
}

static int try_all(const struct contest *c, const struct oracle *oracle, struct standing *standings,
		   struct tally *lateness)
{
	struct attempt *attempts = alloc_or_abort((c->count + 1) * sizeof(*attempts));
	int error;

	for (unsigned i = 0; i <= c->count; i++) {
		attempts[i].result = alloc_or_abort(sizeof(struct run_result));
		attempts[i].setup = setup_of(c, i == 0 ? NULL : &c->entrants[i - 1], oracle,
					     &attempts[i].limiter);
	}
	error = go_through(c, attempts, lateness);
	for (unsigned i = 0; i < c->count; i++)
		sum_up(&standings[i].real, c, oracle, attempts[0].result, attempts[i + 1].result);
	for (unsigned i = 0; i <= c->count; i++)
		free(attempts[i].result);
	free(attempts);
	return error;
}

int contest(const struct contest *c, struct standing *standings, struct tally *lateness)
{
	struct oracle *oracle = alloc_or_abort(sizeof(*oracle));
	int error = 0;

	memset(standings, 0, c->count * sizeof(*standings));
	oracle_find(oracle, c->scenario);
	for (unsigned seed = 0; seed < c->seeds && error == 0; seed++)
		error = simulate_seed(c, oracle, seed, standings);
	if (error == 0)
		error = try_all(c, oracle, standings, lateness);
	free(oracle);
	return error;
}
