/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pauses (lib/admission/admission.h): a limit asks for a time in which no call is admitted, while
 * calls wait, or come when it is over. Nothing but these calls notices that it is over. A waiter that
 * is forgotten sleeps for ever, which the explorer reports.
 */

#include <errno.h>

#include <weir/weir.h>

#include "lib/limiter/limiter.h"
#include "lib/wait/slots.h"
#include "tests/interleave/explore.h"

#define PAUSE 1000

static _Alignas(128) unsigned char memory[1 << 16];
static struct weir_limiter *limiter;
static struct weir_token kept[2]; /* held since before the threads began */

/* What update() returns for the first window, the second, and so on; then the last again. */
static const double *answers;

static double pausing_init(void *state, const void *config, double random)
{
	(void)config;
	(void)random;
	*(uint32_t *)state = 0;
	return 2;
}

static double pausing_update(void *state, const struct weir_window *w)
{
	uint32_t *next = state;
	const double answer = answers[*next];

	(void)w;
	if (answers[*next + 1] != 0)
		(*next)++;
	return answer;
}

static const struct weir_limit_ops pausing = {
	.size = sizeof(struct weir_limit_ops),
	.flags = WEIR_LIMIT_PAUSES,
	.name = "pausing",
	.about = "Returns what the scene says.",
	.version = 1,
	.state_size = sizeof(uint32_t),
	.init = pausing_init,
	.update = pausing_update,
};

static void begin(unsigned held, const double *returned)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = &pausing;
	config.queue = 2;
	config.stripes = 1;
	config.windowing = WEIR_WINDOW_TIME;
	config.window_samples = 1;
	config.window_min = config.window_max = 1;
	answers = returned;
	require(weir_limiter_size(&config) > 0 && weir_limiter_size(&config) <= sizeof(memory));
	require(weir_limiter_init(memory, sizeof(memory), &config, &limiter) == 0);
	explore_name(&limiter->admission.gate->word, "gate");
	explore_name(&limiter->admission.room->resume, "resume");
	explore_name(&limiter->admission.room->learned, "learned");
	explore_name(&limiter->admission.room->retuning, "retuning");
	explore_name(&limiter->queueing.queue->pending, "pending");
	for (unsigned i = 0; i < held; i++)
		require(weir_try_acquire(limiter, &kept[i]) == 0);
	explore_pass(10);
}

/* A call ends in time: it closes a window. */

static void end_kept(void)
{
	weir_release(limiter, &kept[0], WEIR_SUCCESS);
}

static void end_kept_too(void)
{
	weir_release(limiter, &kept[1], WEIR_SUCCESS);
}

static void acquire(void)
{
	struct weir_token token;

	require(weir_acquire(limiter, WEIR_FOREVER, &token) == 0);
	weir_release(limiter, &token, WEIR_IGNORE);
}

/* When the pause is over, if there was one, a call comes. */
static void call_late(void)
{
	struct weir_token token;

	explore_pass(PAUSE);
	if (weir_try_acquire(limiter, &token) == 0)
		weir_release(limiter, &token, WEIR_IGNORE);
}

static void check_over(void)
{
	struct weir_token token;

	require(weir_inflight(limiter) == 0 && queue_is_empty(&limiter->queueing));
	require(gate_waiters(gate_read(limiter->admission.gate)) == 0);
	explore_pass(2 * PAUSE);
	require(weir_try_acquire(limiter, &token) == 0);
	weir_release(limiter, &token, WEIR_IGNORE);
	require(weir_limit(limiter) > 0);
	require(gate_limit(gate_read(limiter->admission.gate)) == weir_limit(limiter));
}

/* pause.wait */

static const double pause_only[] = {-PAUSE, 0};

static void setup_pause(void)
{
	begin(2, pause_only);
}

/* pause.two, pause.call */

static void setup_one_held(void)
{
	begin(1, pause_only);
}

/* pause.end: another call that ends meanwhile ends the pause, or the pause begins after it. */

static const double pause_and_limit[] = {-PAUSE, 2, 0};

static void setup_end(void)
{
	begin(2, pause_and_limit);
}

/* pause.over, pause.over.end: the pause began before. */

static void setup_over(void)
{
	begin(1, pause_only);
	end_kept();
	require(weir_limit(limiter) == 0);
}

static void setup_over_end(void)
{
	begin(2, pause_and_limit);
	end_kept();
	require(weir_limit(limiter) == 0);
}

static const struct scene scenes[] = {
	{
		.name = "pause.wait",
		.claim = "threads that wait when a pause begins, or later, are admitted after it",
		.setup = setup_pause,
		.threads = {end_kept, end_kept_too, acquire},
		.check = check_over,
		.no_stale = true, /* pause.begin has them */
	},
	{
		.name = "pause.two",
		.claim = "so are two of them",
		.setup = setup_one_held,
		.threads = {end_kept, acquire, acquire},
		.check = check_over,
		.preemptions = 1,
		.no_stale = true,
	},
	{
		.name = "pause.call",
		.claim =
			"a call that comes when it is over does not keep a waiter from being admitted",
		.setup = setup_one_held,
		.threads = {end_kept, acquire, call_late},
		.check = check_over,
		.no_stale = true,
	},
	{
		.name = "pause.end",
		.claim = "a window that ends the pause admits those that wait",
		.setup = setup_end,
		.threads = {end_kept, end_kept_too, acquire},
		.check = check_over,
		.no_stale = true,
	},
	{
		.name = "pause.begin",
		.claim = "a thread that begins to wait at that moment learns of the pause",
		.setup = setup_one_held,
		.threads = {end_kept, acquire},
		.check = check_over,
		.stale = 2,
	},
	{
		.name = "pause.over",
		.claim = "the first call that comes when it is over ends it",
		.setup = setup_over,
		.threads = {call_late, call_late},
		.check = check_over,
	},
	{
		.name = "pause.over.end",
		.claim =
			"threads that notice that a pause is over, and one that ends it, all agree",
		.setup = setup_over_end,
		.threads = {end_kept_too, call_late, call_late},
		.check = check_over,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
