/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oracle.c - try limits that grow by half each, until higher limits gain nothing; then, for each
 * phase, bisect between the last limit that is not good enough and the first that is.
 */
#include "oracle.h"

#include "alloc_or_abort.h"
#include "parallel.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Version of the cache: raise it when results of the search or the format change. */
#define VERSION 4

#define TRIED_MAX 160

/* Seeds that no score uses. */
#define SEED_FIRST UINT64_C(1000003)
#define SEEDS_MAX  6

#define LIMIT_LAST 200000

/*
 * With fewer good calls in a phase it is not known whether higher limits gain. Where a limit of LIMIT_KNOWN
 * has no more, the limit is not the reason.
 */
#define FEW         30
#define LIMIT_KNOWN 256

/* Goodput in a phase, in calls a second, below which its logarithm makes no difference. */
#define LEAST 1e-6

struct effort {
	double growth;    /* of the first steps; */
	unsigned in_vain; /* they end after this many that gain in no phase */
	unsigned fine;    /* bisection ends at an interval of 1/fine of the limit */
	uint64_t enough;  /* seeds are added up to this number of calls, or SEEDS_MAX */
};

static const struct effort thorough = {.growth = 1.5, .in_vain = 3, .fine = 32, .enough = 60000};
static const struct effort coarse = {.growth = 2, .in_vain = 2, .fine = 16, .enough = 20000};

/* A trial has the goodput of each phase, and behind the last phase that of the whole scenario. */
struct trial {
	uint32_t limit;
	double good[PHASES_MAX + 1];
	double fewest; /* good calls of the phase with the fewest, of those that count */
};

struct search {
	const struct scenario *scenario;
	const struct effort *effort;
	struct trial trials[TRIED_MAX]; /* sorted by limit */
	unsigned count;
	double best[PHASES_MAX + 1];
};

static uint64_t one_run(const struct scenario *scenario, uint32_t limit, uint64_t seed,
			double *seconds, struct trial *trial)
{
	struct run_result *result = alloc_or_abort(sizeof(*result));
	struct weir_config config;
	uint32_t limits[PHASES_MAX];
	uint64_t offered = 0;

	for (unsigned i = 0; i < PHASES_MAX; i++)
		limits[i] = limit;
	weir_config_init(&config);
	config.limit = &weir_settable;
	if (run(&(struct run_setup){.scenario = scenario,
				    .limiter = &config,
				    .seed = seed,
				    .sweep = true,
				    .limits = limits},
		result) != 0)
		abort();
	for (unsigned i = 0; i < scenario->phase_count; i++) {
		const struct tally *t = &result->phases[i].tally;

		offered += t->offered;
		trial->good[i] += (double)t->good;
		seconds[i] += (double)t->length / (double)WEIR_S;
	}
	free(result);
	return offered;
}

/* The geometric mean over the phases that count, as in a score. */
static double whole(const struct trial *trial, const struct scenario *scenario)
{
	double sum = 0;
	unsigned count = 0;

	for (unsigned i = 0; i < scenario->phase_count; i++) {
		if (!scenario_counts(scenario, i))
			continue;
		sum += draw_ln(fmax(trial->good[i], LEAST));
		count++;
	}
	return count == 0 ? 0 : draw_exp(sum / count);
}

static void measure(struct trial *trial, const struct search *search, uint32_t limit)
{
	const struct scenario *scenario = search->scenario;
	double seconds[PHASES_MAX] = {0};
	uint64_t offered = 0;

	*trial = (struct trial){.limit = limit};
	for (unsigned i = 0; i < SEEDS_MAX && offered < search->effort->enough; i++)
		offered += one_run(scenario, limit, SEED_FIRST + i, seconds, trial);
	trial->fewest = INFINITY;
	for (unsigned i = 0; i < scenario->phase_count; i++) {
		if (scenario_counts(scenario, i))
			trial->fewest = fmin(trial->fewest, trial->good[i]);
		trial->good[i] /= seconds[i];
	}
	trial->good[scenario->phase_count] = whole(trial, scenario);
}

/*
 * Insert in order. Returns whether it is the best in a phase by more than chance, or has too few calls
 * to know: a low limit may be full of calls that take long and are not good, and then seems no better
 * than half of it.
 */
static bool try(struct search *search, uint32_t limit)
{
	unsigned at = search->count;
	struct trial trial;
	bool better;

	measure(&trial, search, limit);
	better = trial.fewest < FEW && limit < LIMIT_KNOWN;
	while (at > 0 && search->trials[at - 1].limit > limit) {
		search->trials[at] = search->trials[at - 1];
		at--;
	}
	search->trials[at] = trial;
	search->count++;
	for (unsigned i = 0; i <= search->scenario->phase_count; i++) {
		better |= i < search->scenario->phase_count &&
			  trial.good[i] > 1.005 * search->best[i];
		search->best[i] = fmax(search->best[i], trial.good[i]);
	}
	return better;
}

static void grow(struct search *search)
{
	const struct effort *effort = search->effort;
	unsigned in_vain = 0;

	for (double limit = 1; limit <= LIMIT_LAST && in_vain < effort->in_vain;
	     limit = fmax(limit + 1, floor(limit * effort->growth)))
		in_vain = try(search, (uint32_t)limit) ? 0 : in_vain + 1;
}

static bool good_enough(const struct search *search, unsigned trial, unsigned phase)
{
	return search->trials[trial].good[phase] >= (1 - ORACLE_WITHIN) * search->best[phase];
}

/* The first trial that is good enough. There always is one: the best itself. */
static unsigned first_good(const struct search *search, unsigned phase)
{
	unsigned i = 0;

	while (!good_enough(search, i, phase))
		i++;
	return i;
}

/* The next limit to try for the phase; 0 if the result is fine enough. */
static uint32_t between(const struct search *search, unsigned phase)
{
	unsigned i = first_good(search, phase);
	uint32_t high = search->trials[i].limit;
	uint32_t low = i == 0 ? 0 : search->trials[i - 1].limit;
	uint32_t gap = high - low;

	if (gap <= 1 || gap <= high / search->effort->fine || search->count == TRIED_MAX)
		return 0;
	return low + gap / 2;
}

static void bisect(struct search *search, unsigned phase)
{
	uint32_t limit;

	while ((limit = between(search, phase)) != 0)
		try(search, limit);
}

void oracle_find(struct oracle *oracle, const struct scenario *scenario)
{
	struct search *search = alloc_or_abort(sizeof(*search));
	unsigned all = scenario->phase_count;

	search->scenario = scenario;
	search->effort = scenario->coarse ? &coarse : &thorough;
	grow(search);
	for (unsigned i = 0; i < scenario->phase_count; i++)
		bisect(search, i);
	memset(oracle, 0, sizeof(*oracle));
	for (unsigned i = 0; i < scenario->phase_count; i++) {
		oracle->limits[i] = search->trials[first_good(search, i)].limit;
		oracle->best[i] = search->best[i];
	}
	bisect(search, all);
	oracle->single = search->trials[first_good(search, all)].limit;
	oracle->single_best = search->best[all];
	free(search);
}

const char *oracle_cache(char *path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *folder = "";
	int length;

	if (cache == NULL || cache[0] != '/') {
		cache = home;
		folder = "/.cache";
	}
	if (cache == NULL || cache[0] != '/')
		return NULL;
	length = snprintf(path, size, "%s%s", cache, folder);
	if (length < 0 || (size_t)length + sizeof("/weir-sim.oracles") > size)
		return NULL;
	mkdir(path, 0777);
	strcat(path, "/weir-sim.oracles");
	return path;
}

/*
 * A line for each scenario: version, digest, number of phases, each phase's limit and best goodput,
 * those of the whole scenario, and the name, which may contain blanks and is for human readers only.
 */
static bool line_read(const char *line, const struct scenario *scenario, struct oracle *oracle)
{
	unsigned long long digest;
	unsigned version, phases;
	int at = 0;

	if (sscanf(line, "%u %llx %u%n", &version, &digest, &phases, &at) != 3 ||
	    version != VERSION || digest != scenario->digest || phases != scenario->phase_count)
		return false;
	memset(oracle, 0, sizeof(*oracle));
	for (unsigned i = 0; i < phases; i++) {
		int more = 0;

		if (sscanf(line += at, " %u:%la%n", &oracle->limits[i], &oracle->best[i], &more) !=
		    2)
			return false;
		at = more;
	}
	return sscanf(line + at, " %u:%la", &oracle->single, &oracle->single_best) == 2;
}

static bool cached(FILE *cache, const struct scenario *scenario, struct oracle *oracle)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (cache == NULL)
		return false;
	rewind(cache);
	while (!found && getline(&line, &size, cache) > 0)
		found = line_read(line, scenario, oracle);
	free(line);
	return found;
}

static void line_write(FILE *cache, const struct scenario *scenario, const struct oracle *oracle)
{
	fprintf(cache, "%d %llx %u", VERSION, (unsigned long long)scenario->digest,
		scenario->phase_count);
	for (unsigned i = 0; i < scenario->phase_count; i++)
		fprintf(cache, " %u:%la", oracle->limits[i], oracle->best[i]);
	fprintf(cache, " %u:%la %s\n", oracle->single, oracle->single_best, scenario->name);
	fflush(cache);
}

struct finding {
	struct oracle *oracles;
	const struct scenario *scenarios;
	const size_t *which;
	FILE *cache; /* NULL: none */
	pthread_mutex_t lock;
};

/* Each result is saved at once, so an interrupted search loses only the current scenario. */
static void find(void *arg, size_t index)
{
	struct finding *finding = arg;
	size_t i = finding->which[index];

	oracle_find(&finding->oracles[i], &finding->scenarios[i]);
	if (finding->cache == NULL)
		return;
	pthread_mutex_lock(&finding->lock);
	line_write(finding->cache, &finding->scenarios[i], &finding->oracles[i]);
	pthread_mutex_unlock(&finding->lock);
}

void oracles_find(struct oracle *oracles, const struct scenario *scenarios, size_t count,
		  unsigned threads, const char *cache)
{
	FILE *file = cache == NULL ? NULL : fopen(cache, "a+");
	size_t *missing = alloc_or_abort(count * sizeof(*missing)), missing_count = 0;
	struct finding finding = {
		.oracles = oracles,
		.scenarios = scenarios,
		.which = missing,
		.cache = file,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};

	for (size_t i = 0; i < count; i++)
		if (!cached(file, &scenarios[i], &oracles[i]))
			missing[missing_count++] = i;
	parallel_run(&(struct parallel){
		.work = find,
		.arg = &finding,
		.count = missing_count,
		.threads = threads,
		.title = "oracles",
	});
	if (file != NULL)
		fclose(file);
	free(missing);
}
