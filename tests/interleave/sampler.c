/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampler (lib/sample/sampler.h): threads record samples and close windows. What the owner of
 * the window learns is a plain variable here: a race on it is reported.
 */

#include <string.h>

#include "lib/sample/sampler.h"
#include "tests/interleave/explore.h"

#define STRIPES 2
#define RTT     64 /* of each sample, in nanoseconds */

#define RELAXED memory_order_relaxed

/* A stripe's word that must be put aside with one more sample; and with two more. */
#define FULL_COUNT 5
#define FULL_SUM   ((UINT64_C(1) << 43) - RTT / 2)
#define FULL       ((uint64_t)FULL_COUNT << 44 | FULL_SUM)
#define NEARLY     (FULL - RTT)

static struct sampler sampler;
static struct stripe stripes[STRIPES];
static _Atomic uintptr_t closing[SCENE_THREADS];
static struct sampling views[SCENE_THREADS]; /* of each thread's process */
static uint64_t learned;                     /* the owner's */
static _Atomic uint32_t left_gate;           /* 1: the first thread's call has ended */

static struct ghost ticks;    /* what time it is */
static struct ghost owners;   /* threads between close and open */
static struct ghost recorded; /* samples that threads have begun to record */
static struct ghost windowed, summed, dropped, queued, others; /* in closed windows */

static void begin(uint32_t count, struct sampler_config config)
{
	config.window_min = 1;
	config.window_max = 4;
	config.rtt_smoothing = 0.5;
	config.stripes = count;
	for (unsigned i = 0; i < SCENE_THREADS; i++) {
		atomic_init(&closing[i], 0);
		views[i] = (struct sampling){
			.config = config,
			.owner = PRIVATE,
			.closing = &closing[0],
			.sampler = &sampler,
			.stripes = stripes,
		};
	}
	sampler_init(&views[0]);
	learned = 0;
	atomic_init(&left_gate, 0);
	ticks = owners = recorded = (struct ghost){0};
	windowed = summed = dropped = queued = others = (struct ghost){0};
	explore_name(&sampler.due, "due");
	explore_name(&sampler.left, "left");
	explore_name(&closing[0], "closing 0");
	explore_name(&closing[1], "closing 1");
	explore_name(&closing[2], "closing 2");
	explore_name(&stripes[0].packed, "packed 0");
	explore_name(&stripes[1].packed, "packed 1");
	explore_name(&stripes[0].spilled[0], "spilled 0");
	explore_name(&stripes[0].wide_count, "wide count 0");
	explore_name(&stripes[0].total[TOTAL_COLLECTED], "collected 0");
	explore_name(&stripes[0].queue, "queue 0");
}

static void setup_windows(void)
{
	begin(1, (struct sampler_config){.window_samples = 1});
}

/* A window needs two samples. */
static void setup_extended(void)
{
	begin(1, (struct sampler_config){.window_samples = 2});
}

static void setup_discarded(void)
{
	begin(1, (struct sampler_config){.window_samples = 2, .discard = 1});
}

static void setup_full(void)
{
	setup_windows();
	atomic_init(&stripes[0].packed, FULL);
}

static void setup_nearly_full(void)
{
	setup_windows();
	atomic_init(&stripes[0].packed, NEARLY);
}

/* The word is full, and there is no room left to put it aside. */
static void setup_wide(void)
{
	setup_full();
	for (unsigned i = 0; i < SPILLS; i++)
		atomic_init(&stripes[0].spilled[i], FULL);
}

static void setup_each(void)
{
	begin(STRIPES, (struct sampler_config){.each_sample = 1});
}

/* The first two threads are of one process. */
static void setup_shared(void)
{
	setup_windows();
	for (unsigned i = 0; i < SCENE_THREADS; i++) {
		views[i].owner = i < 2 ? 1 : i;
		views[i].closing = &closing[i < 2 ? 0 : i];
	}
}

/* Each thread is a process. */
static void setup_processes(void)
{
	setup_windows();
	for (unsigned i = 0; i < SCENE_THREADS; i++) {
		views[i].owner = i + 1;
		views[i].closing = &closing[i];
	}
}

static const struct sampling *view(void)
{
	return &views[explore_self()];
}

/* Each look at the clock finds the window's time over. */
static weir_time tick(void)
{
	return 1000 + 10 * (weir_time)ghost_add(&ticks, 1);
}

/* Learn from a window that the thread owns. */
static void learn(const struct weir_window *w)
{
	require(ghost_add(&owners, 1) == 1);
	ghost_add(&windowed, (long)w->count);
	ghost_add(&summed, (long)(w->rtt_mean * w->count));
	ghost_add(&dropped, (long)w->dropped);
	ghost_add(&queued, (long)w->queued);
	ghost_add(&others, (long)w->others);
	learned += w->count;
	ghost_add(&owners, -1);
}

static void close_window(void)
{
	struct weir_window w;

	if (!sampler_due(view(), tick()) || !sampler_close(view(), tick(), &w))
		return;
	learn(&w);
	sampler_open(view(), tick());
}

static void record(enum kind kind)
{
	ghost_add(&recorded, 1);
	(void)sampler_record(view(), sampler_stripe(view()), RTT, 1, kind);
}

static void sample(void)
{
	record(SERVED);
	close_window();
}

static void sample_dropped(void)
{
	record(DROPPED);
	close_window();
}

static void only_record(void)
{
	record(SERVED);
}

static void sample_each(void)
{
	const struct sample one = {.rtt = RTT, .inflight = 1, .kind = SERVED};
	struct weir_window w;

	ghost_add(&recorded, 1);
	if (!sampler_close_with(view(), sampler_stripe(view()), tick(), &one, &w))
		return;
	learn(&w);
	sampler_open(view(), tick());
}

static void sample_each_twice(void)
{
	sample_each();
	sample_each();
}

/* A call that is no sample, of which the limit takes notice. */
static void cancel(void)
{
	struct weir_window w;

	sampler_note(view(), sampler_stripe(view()), RTT);
	if (!sampler_close_bare(view(), tick(), &w))
		return;
	require(w.count > 0 || w.others > 0);
	learn(&w);
	sampler_open(view(), tick());
}

static void delay(void)
{
	sampler_queued(view(), sampler_stripe(view()), 7);
}

/* Replace what was learned, unless another thread owns the window. */
static void replace(void)
{
	uint64_t due;
	uint32_t owner;

	if (!sampler_hold(view(), &due, &owner)) {
		require(owner == view()->owner);
		return;
	}
	require(ghost_add(&owners, 1) == 1);
	learned++;
	ghost_add(&owners, -1);
	sampler_let_go(view(), due);
}

/* As a callback does in which the thread owns the window already. */
static void look(void)
{
	uint64_t due;
	uint32_t owner;

	require(sampler_hold(view(), &due, &owner));
	sampler_let_go(view(), due);
}

/* A window whose observer looks at what was learned, twice. */
static void sample_and_look(void)
{
	struct weir_window w;

	record(SERVED);
	if (!sampler_close(view(), tick(), &w))
		return;
	look();
	look();
	learn(&w);
	sampler_open(view(), tick());
}

/* Another process stores that the window is free. It could as well store that it never is. */
static void set_free(void)
{
	atomic_store_explicit(&sampler.due, DUE_AT_ONCE, RELAXED);
}

static void leave_gate_and_record(void)
{
	atomic_store_explicit(&left_gate, 1, RELAXED);
	record(SERVED);
}

/* A snapshot never shows a sample twice, nor one whose call has not left the gate. */
static void count_samples(void)
{
	const uint64_t samples = sampler_samples(view());

	require((long)samples <= FULL_COUNT + ghost_get(&recorded));
	require(samples <= FULL_COUNT || atomic_load_explicit(&left_gate, RELAXED) == 1);
}

/* The same for a reader of collected samples alone. */
static void count_collected(void)
{
	require(sampler_total(view(), TOTAL_COLLECTED) <= FULL_COUNT + 1 ||
		atomic_load_explicit(&left_gate, RELAXED) == 1);
}

/* Take over the window of the first thread's process, if it died with it. */
static void recover_first(void)
{
	explore_await_end(0);
	if (!sampler_recover(view(), 1))
		return;
	require(explore_died(0));
	learned++;
	sampler_open(view(), tick());
}

static long open_samples(void)
{
	return (long)(sampler_samples(&views[0]) - sampler_total(&views[0], TOTAL_COLLECTED));
}

static void check_free(void)
{
	require((atomic_load(&sampler.due) & DUE_BUSY) == 0);
	for (unsigned i = 0; i < SCENE_THREADS; i++)
		require(atomic_load(&closing[i]) == 0 || explore_died(i));
}

/* Each sample is in a closed window or in a stripe. */
static void check_counted(void)
{
	check_free();
	require(ghost_get(&windowed) + open_samples() == ghost_get(&recorded));
	require((long)sampler_samples(&views[0]) == ghost_get(&recorded));
	require(ghost_get(&summed) == RTT * ghost_get(&windowed));
	require(ghost_get(&dropped) + (long)stripes[0].dropped ==
		(long)sampler_total(&views[0], TOTAL_DROPPED));
}

/* The same, where each word that was full in the beginning counts for FULL_COUNT. */
static void check_full(unsigned words)
{
	const long all = words * FULL_COUNT + ghost_get(&recorded);
	const long sum = (long)(words * FULL_SUM) + RTT * ghost_get(&recorded);

	check_free();
	require((long)sampler_samples(&views[0]) == all);
	ghost_add(&ticks, 1);
	record(SERVED);
	close_window();
	require(ghost_get(&windowed) == all + 1);
	/* The mean of each window is rounded down. */
	require(ghost_get(&summed) <= sum + RTT && ghost_get(&summed) > sum + RTT - 2 * all);
}

static void check_spilled(void)
{
	check_full(1);
}

static void check_wide(void)
{
	check_full(1 + SPILLS);
}

/* Windows of discarded samples are not seen. */
static void check_discarded(void)
{
	check_free();
	require((long)sampler_samples(&views[0]) == ghost_get(&recorded));
	require(ghost_get(&windowed) + open_samples() <= ghost_get(&recorded));
}

/* The next sample closes a window with all that was left in the stripes. */
static void check_left(void)
{
	check_free();
	sample_each();
	require(ghost_get(&windowed) == ghost_get(&recorded));
	require((long)sampler_samples(&views[0]) == ghost_get(&recorded));
}

static void check_queued(void)
{
	check_left();
	require(ghost_get(&queued) == 1);
}

static void check_cancelled(void)
{
	check_left();
	require(ghost_get(&others) == 2);
}

/* What the dead process had collected is gone; but windows are closed again. */
static void check_recovered(void)
{
	const long before = ghost_get(&windowed);

	require((atomic_load(&sampler.due) & DUE_BUSY) == 0);
	require(before + open_samples() <= ghost_get(&recorded));
	require(explore_died(0) || before + open_samples() == ghost_get(&recorded));
	atomic_store(&closing[0], 0);
	sample();
	require(ghost_get(&windowed) > before && open_samples() == 0);
}

static const struct scene scenes[] = {
	{
		.name = "sampler.windows",
		.claim = "each sample is counted once, in a window that one thread owns",
		.setup = setup_windows,
		.threads = {sample_dropped, sample_dropped},
		.check = check_counted,
		.preemptions = 3,
	},
	{
		.name = "sampler.extended",
		.claim = "samples of a window that is too small stay for the next thread",
		.setup = setup_extended,
		.threads = {sample, sample_dropped},
		.check = check_counted,
		.preemptions = 3,
	},
	{
		.name = "sampler.discarded",
		.claim = "discarded samples are counted in the total only",
		.setup = setup_discarded,
		.threads = {sample, sample},
		.check = check_discarded,
		.preemptions = 3,
	},
	{
		.name = "sampler.spilled",
		.claim = "a full word is put aside without losing a sample",
		.setup = setup_full,
		.threads = {only_record, only_record, close_window},
		.check = check_spilled,
	},
	{
		.name = "sampler.wide",
		.claim = "a full word for which there is no room loses no sample",
		.setup = setup_wide,
		.threads = {only_record, only_record},
		.check = check_wide,
	},
	{
		.name = "sampler.samples",
		.claim = "a snapshot shows no sample twice, and none whose call is in flight",
		.setup = setup_full,
		.threads = {leave_gate_and_record, close_window, count_samples},
		.check = check_spilled,
	},
	{
		.name = "sampler.collected",
		.claim = "a sample that is shown as collected is of a call that has ended",
		.setup = setup_nearly_full,
		.threads = {leave_gate_and_record, only_record, close_window, count_collected},
	},
	{
		.name = "sampler.left",
		.claim = "what threads leave for the next window is in it",
		.setup = setup_each,
		.threads = {sample_each, sample_each, sample_each_twice},
		.check = check_left,
	},
	{
		.name = "sampler.queued",
		.claim = "a delay that is left is in the next window",
		.setup = setup_each,
		.threads = {sample_each_twice, delay},
		.check = check_queued,
	},
	{
		.name = "sampler.cancelled",
		.claim = "a call that is no sample is in one window, its own or the next",
		.setup = setup_each,
		.threads = {cancel, sample_each, cancel},
		.check = check_cancelled,
	},
	{
		.name = "sampler.hold",
		.claim = "one thread owns the window: to close it, or to replace what was learned",
		.setup = setup_windows,
		.threads = {replace, sample_and_look, replace},
		.check = check_counted,
		.preemptions = 3,
	},
	{
		.name = "sampler.shared",
		.claim = "two threads of a process that shares a limiter own the window in turn",
		.setup = setup_shared,
		.threads = {sample, sample},
		.check = check_counted,
	},
	{
		.name = "sampler.closing",
		.claim = "one thread of a process owns the window, whatever another process stores",
		.setup = setup_shared,
		.threads = {replace, sample_and_look, set_free},
		.preemptions = 3,
	},
	{
		.name = "sampler.recover",
		.claim = "a dead process's window is taken over, and no other one",
		.setup = setup_processes,
		.threads = {sample, recover_first, sample},
		.check = check_recovered,
		.mortal = 1,
	},
};

int main(int argc, char **argv)
{
	return explore(argc, argv, scenes, sizeof(scenes) / sizeof(scenes[0]));
}
