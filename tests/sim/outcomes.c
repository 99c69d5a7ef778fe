/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outcomes.c - calls that end without being samples hold permits as all others do: whatever part of
 * the calls they are, and however long they take, limit and latency stay what they are without them.
 *
 * Each case is compared with the same calls, all reported as successes; bad requests, which do no
 * work, with a run in which they do not come. Bad requests reported as successes would be fast calls.
 */
#include "play.h"

#define WITHIN  0.05 /* of limit and latency without the mix */
#define SEEDS   3
#define WORKERS 16
#define LOAD    2.0

/* How long calls of the second class take, and where. */
struct kind {
	const char *name, *work;
	double mean;    /* milliseconds at the workers; 0: none */
	double seconds; /* long enough for the mean limit to be steady */
};

static const struct kind like = {
	.name = "like the others",
	.work = "workers = \"exponential 10ms\";",
	.mean = 10,
	.seconds = 120,
};
static const struct kind bad = {
	.name = "bad requests",
	.work = "check = \"exponential 20us\";",
	.mean = 0,
	.seconds = 120,
};
static const struct kind longer = {
	.name = "longer",
	.work = "workers = \"exponential 100ms\";",
	.mean = 100,
	.seconds = 3000,
};

static const char *const outcomes[] = {"ignored", "cancelled", "failed"};
static const double parts[] = {0.1, 0.5, 0.9};

struct means {
	double limit, latency;
};

/* The calls of the first class alone have twice the load, unless others need the workers too. */
static struct means run_with(const struct kind *kind, double part, const char *outcome)
{
	static struct run_result result;
	const double all = LOAD * WORKERS * 1000 / ((1 - part) * 10 + part * kind->mean);
	struct means sum = {0, 0};
	char text[1000];

	snprintf(
		text, sizeof(text),
		"name = \"mix\"; server = ( { name = \"workers\"; workers = %d; },"
		"{ name = \"check\"; discipline = \"delay\"; } );"
		"classes = ( { name = \"a\"; share = %g; work = { workers = \"exponential 10ms\"; }; },"
		"{ name = \"b\"; share = %g; served_as = \"%s\"; work = { %s }; },"
		"{ name = \"unused\"; share = 0; work = { check = \"1us\"; }; } );"
		"phases = ( { length = \"20s\"; rate = %g; }, { length = \"%gs\"; rate = %g; } );",
		WORKERS, 1 - part, part, outcome, kind->work, all, kind->seconds, all);
	for (uint64_t seed = 101; seed < 101 + SEEDS; seed++) {
		play_text(&result, "elastic", text, seed);
		sum.limit += tally_limit_mean(&result.phases[1].tally) / SEEDS;
		sum.latency += tally_latency_mean(&result.phases[1].tally) / SEEDS;
	}
	/* Bad requests are answered at once: leave them out of the mean. */
	if (kind->mean == 0)
		sum.latency = (sum.latency - part * 0.02 * MS) / (1 - part);
	return sum;
}

static void expect_like(const struct means *is, const struct means *without,
			const struct kind *kind, double part, const char *outcome)
{
	cr_expect_float_eq(is->limit / without->limit, 1, WITHIN, "%g %s, %s: limit %g, not %g",
			   part, outcome, kind->name, is->limit, without->limit);
	cr_expect_float_eq(is->latency / without->latency, 1, WITHIN,
			   "%g %s, %s: latency %g ms, not %g", part, outcome, kind->name,
			   is->latency / MS, without->latency / MS);
}

static void all_parts(const struct kind *kind)
{
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct means without = kind->mean == 0 ? run_with(kind, 0, "success")
							     : run_with(kind, parts[i], "success");

		for (unsigned k = 0; k < sizeof(outcomes) / sizeof(outcomes[0]); k++) {
			const struct means is = run_with(kind, parts[i], outcomes[k]);

			expect_like(&is, &without, kind, parts[i], outcomes[k]);
		}
	}
}

Test(outcomes, of_calls_like_the_others_do_not_move_the_limit)
{
	all_parts(&like);
}

Test(outcomes, of_bad_requests_do_not_move_the_limit)
{
	all_parts(&bad);
}

Test(outcomes, of_longer_calls_do_not_move_the_limit)
{
	all_parts(&longer);
}
