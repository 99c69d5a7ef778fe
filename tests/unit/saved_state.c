/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Saved states: a limiter continues where it was, older states weigh less, and bytes that differ
 * from what was saved are refused.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rig.h"

#include "lib/limiter/saved_state.h"

#define HOUR WEIR_SAVED_HALF_LIFE
#define OLD  (1000 * HOUR)

struct blob {
	unsigned char bytes[WEIR_SAVED_MAX];
	size_t size;
};

static struct weir_config config_for(const struct weir_limit_ops *ops)
{
	struct weir_config config;

	weir_config_init(&config);
	config.limit = ops;
	config.windowing = WEIR_WINDOW_SAMPLE;
	return config;
}

static struct weir_limiter *make(const struct weir_config *config)
{
	struct weir_limiter *limiter;

	cr_assert_eq(weir_limiter_create(config, &limiter), 0);
	return limiter;
}

/* A limiter whose limit is given as text, and for which each sample is a window. */
static struct weir_limiter *make_from(const char *text)
{
	_Alignas(max_align_t) unsigned char limit_config[WEIR_LIMIT_CONFIG_MAX];
	struct weir_config config = config_for(NULL);
	char why[200];

	cr_assert_eq(weir_limit_from_text(text, &config.limit, limit_config, why, sizeof(why)), 0,
		     "%s", why);
	config.limit_config = limit_config;
	return make(&config);
}

static struct blob save(struct weir_limiter *l)
{
	struct blob blob;
	int size = weir_limiter_save(l, blob.bytes, sizeof(blob.bytes));

	cr_assert(size > 0 && (size_t)size <= sizeof(blob.bytes), "%d", size);
	blob.size = (size_t)size;
	return blob;
}

static struct saved_head head_of(const struct blob *blob)
{
	struct saved_head head;

	memcpy(&head, blob->bytes, sizeof(head));
	return head;
}

/* The state of a limiter that was just made, and is destroyed. */
static struct blob state_of(const char *text)
{
	struct weir_limiter *l = make_from(text);
	struct blob blob = save(l);

	weir_limiter_destroy(l);
	return blob;
}

static void take_up(struct weir_limiter *l, const struct blob *blob, weir_dur age)
{
	char why[200] = "";

	cr_assert_eq(weir_limiter_load(l, blob->bytes, blob->size, age, why, sizeof(why)), 0, "%s",
		     why);
}

/* Refused with one sentence that contains this text, and the limiter is unchanged. */
static void assert_refused(struct weir_limiter *l, const void *bytes, size_t size, weir_dur age,
			   const char *says)
{
	const struct blob before = save(l);
	struct blob after;
	char why[200] = "";

	cr_assert_eq(weir_limiter_load(l, bytes, size, age, why, sizeof(why)), -EINVAL, "%s", says);
	cr_assert_neq(strstr(why, says), NULL, "the sentence is \"%s\"", why);
	cr_assert_eq(strchr(why, '.'), why + strlen(why) - 1, "%s", why);
	cr_assert_eq(weir_limiter_load(l, bytes, size, age, NULL, 0), -EINVAL);
	after = save(l);
	cr_assert_eq(after.size, before.size);
	cr_assert_eq(memcmp(after.bytes + sizeof(struct saved_head),
			    before.bytes + sizeof(struct saved_head),
			    before.size - sizeof(struct saved_head) - sizeof(uint64_t)),
		     0);
	cr_assert_eq(head_of(&after).limit, head_of(&before).limit);
}

/* A sample, which is a window, of any kind; the same for the same i. */
static void feed(struct weir_limiter *l, unsigned i)
{
	static const enum weir_outcome outcomes[] = {WEIR_SUCCESS,   WEIR_SUCCESS, WEIR_DROPPED,
						     WEIR_SUCCESS,   WEIR_SUCCESS, WEIR_TIMED_OUT,
						     WEIR_CANCELLED, WEIR_SUCCESS, WEIR_SUCCESS};
	const weir_time end = WEIR_S + i * 10 * WEIR_MS;
	const weir_dur rtt = 2 * WEIR_MS + (i * 7919u % 1000) * WEIR_US;

	struct weir_token token;

	cr_assert_eq(weir_try_acquire_at(l, end, &token), 0);
	weir_queued(l, &token, i * 7919u % 1000 * 10 * WEIR_US);
	weir_release_at(l, end, &token, WEIR_IGNORE);
	weir_sample_at(l, end - rtt, end, 5 + i * 31 % 300, outcomes[i % 17 % 9]);
}

static void assert_the_same(const struct weir_limiter *a, const struct weir_limiter *b)
{
	const struct weir_snapshot s = rig_snapshot(a), t = rig_snapshot(b);

	cr_assert_eq(s.limit, t.limit);
	cr_assert_eq(s.last.limit, t.last.limit);
	cr_assert_eq(s.last.window.rtt, t.last.window.rtt);
	cr_assert_eq(s.last.window.random, t.last.window.random);
	for (unsigned i = 0; i < s.last.count; i++)
		cr_assert_eq(s.last.numbers[i], t.last.numbers[i], "%s", s.last.names[i]);
}

#define BEFORE 700
#define AFTER  700

/* Enough samples that limits move and probe, before and after. */
static const struct {
	const struct weir_limit_ops *ops;
	const char *text;
} lively[] = {
	{&weir_vegas, "probe=2"},
	{&weir_gradient, "probe=20"},
	{&weir_gradient2, "tolerance=1"},
	{&weir_bbr, "window=20ms,resolution=1ns"},
	{&weir_cautious, "backoff=0.99"},
	{&weir_hillclimb, "sample_error=10"},
	{&weir_brpc, "min=1,samples_min=10,samples_max=20,punish=1000"},
	{&weir_envoy, "probe_interval=1s"},
	{&weir_elastic, "target=0.6"},
};

static double show_busy(const struct weir_gauge *self)
{
	(void)self;
	return 0.9;
}

static const struct weir_gauge busy = {.read = show_busy};

static void assert_goes_on(const struct weir_limit_ops *ops)
{
	_Alignas(max_align_t) unsigned char limit_config[WEIR_LIMIT_CONFIG_MAX] = {0};
	struct weir_config config = config_for(ops);
	struct weir_limiter *l, *again;
	struct blob blob;
	bool moved = false;

	for (size_t i = 0; i < sizeof(lively) / sizeof(lively[0]); i++)
		if (lively[i].ops == ops)
			cr_assert_eq(weir_limit_parse(ops, limit_config, lively[i].text, NULL, 0),
				     0);
	config.limit_config = limit_config;
	config.rtt_smoothing = 0.3;
	config.seed = 42;
	config.cpu = &busy;
	l = make(&config);
	again = make(&config);
	if ((ops->flags & WEIR_LIMIT_SETTABLE) != 0)
		cr_assert_eq(weir_limit_set(l, 77), 0);
	for (unsigned i = 0; i < BEFORE; i++)
		feed(l, i);
	blob = save(l);
	feed(again, BEFORE - 1); /* its next window begins then, too */
	take_up(again, &blob, 0);
	cr_assert_eq(weir_limit(again), weir_limit(l));
	for (unsigned i = BEFORE; i < BEFORE + AFTER; i++) {
		const uint32_t limit = weir_limit(l);

		feed(l, i);
		feed(again, i);
		assert_the_same(l, again);
		moved |= weir_limit(l) != limit;
	}
	if (ops != &weir_fixed && ops != &weir_settable)
		cr_assert(moved, "%s: the test shows nothing", ops->name);
	weir_limiter_destroy(l);
	weir_limiter_destroy(again);
}

Test(saved_state, every_limit_continues_where_it_was)
{
	const struct weir_limit_ops *ops;

	for (unsigned i = 0; (ops = weir_limit_at(i)) != NULL; i++)
		assert_goes_on(ops);
}

Test(saved_state, a_limiter_without_samples_can_be_saved)
{
	const struct blob blob = state_of("vegas");
	struct weir_limiter *l = make_from("vegas"), *other = make_from("vegas");

	take_up(l, &blob, 0);
	for (unsigned i = 0; i < 100; i++) {
		feed(l, i);
		feed(other, i);
		assert_the_same(l, other);
	}
	weir_limiter_destroy(l);
	weir_limiter_destroy(other);
}

/* The limit that results from a saved limit at an age. */
static uint32_t limit_after(const struct blob *blob, const char *text, weir_dur age)
{
	struct weir_limiter *l = make_from(text);
	uint32_t limit;

	take_up(l, blob, age);
	limit = weir_limit(l);
	weir_limiter_destroy(l);
	return limit;
}

Test(saved_state, an_older_state_weighs_less)
{
	static const struct {
		const char *before, *after;
	} limits[] = {
		{"vegas:initial=320", "vegas:initial=20"},
		{"aimd:initial=320,max=1000", "aimd:initial=20,max=1000"},
		{"gradient:initial=320", "gradient:initial=20"},
		{"gradient2:initial=320,max=1000", "gradient2:initial=20,max=1000"},
		{"brpc:initial=320", "brpc:initial=20"},
		{"failsafe:initial=320,max=1000", "failsafe:initial=20,max=1000"},
		{"vector:initial=320,max=1000", "vector:initial=20,max=1000"},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct blob blob = state_of(limits[i].before);
		const char *after = limits[i].after;

		cr_expect_eq(limit_after(&blob, after, 0), 320);
		cr_expect_eq(limit_after(&blob, after, WEIR_SAVED_FRESH), 310);
		cr_expect_eq(limit_after(&blob, after, HOUR), 80);
		cr_expect_eq(limit_after(&blob, after, 2 * HOUR), 40);
		cr_expect_eq(limit_after(&blob, after, 4 * HOUR), 24);
		cr_expect_eq(limit_after(&blob, after, 24 * HOUR), 20);
		cr_expect_eq(limit_after(&blob, after, UINT64_MAX), 20);
	}
}

Test(saved_state, a_lower_limit_weighs_as_much_as_a_higher_one)
{
	const struct blob blob = state_of("vegas:initial=5");

	cr_expect_eq(limit_after(&blob, "vegas:initial=80", 0), 5);
	cr_expect_eq(limit_after(&blob, "vegas:initial=80", HOUR), 20);
	cr_expect_eq(limit_after(&blob, "vegas:initial=80", 2 * HOUR), 40);
	cr_expect_eq(limit_after(&blob, "vegas:initial=80", OLD), 80);
}

/*
 * Up to exactly this age the whole state is restored; one nanosecond later the algorithm restarts.
 */
Test(saved_state, a_fresh_state_is_restored_whole)
{
	struct weir_limiter *l = make_from("vegas"), *fresh = make_from("vegas"),
			    *old = make_from("vegas");
	struct blob blob;

	for (unsigned i = 0; i < BEFORE; i++)
		feed(l, i);
	cr_assert_gt(rig_snapshot(l).last.numbers[3], 0); /* probes */
	blob = save(l);
	take_up(fresh, &blob, WEIR_SAVED_FRESH);
	take_up(old, &blob, WEIR_SAVED_FRESH + 1);
	feed(l, BEFORE);
	feed(fresh, BEFORE);
	feed(old, BEFORE);
	assert_the_same(l, fresh);
	cr_expect_eq(rig_snapshot(old).last.numbers[3], 0);
	cr_expect_eq(rig_snapshot(old).last.numbers[1], rig_snapshot(old).last.window.rtt);
	weir_limiter_destroy(l);
	weir_limiter_destroy(fresh);
	weir_limiter_destroy(old);
}

/* Whether the whole state, and not only the limit, goes from one limiter to the other. */
static bool goes_whole(const struct weir_config *from, const struct weir_config *to)
{
	struct weir_limiter *l = make(from), *again = make(to);
	struct blob blob;
	bool whole;

	for (unsigned i = 0; i < BEFORE; i++)
		feed(l, i);
	blob = save(l);
	take_up(again, &blob, 0);
	blob = save(again);
	whole = rig_snapshot(l).last.numbers[1] > 0 &&
		memcmp(blob.bytes + sizeof(struct saved_head),
		       save(l).bytes + sizeof(struct saved_head), weir_vegas.state_size) == 0;
	weir_limiter_destroy(l);
	weir_limiter_destroy(again);
	return whole;
}

Test(saved_state, with_other_parameters_only_the_limit_is_used)
{
	struct weir_vegas_config vegas = {.smoothing = 0.5};
	const struct weir_config ours = config_for(&weir_vegas);
	struct weir_config other = ours;

	cr_expect(goes_whole(&ours, &other));
	other.seed = 9;
	other.stripes = 4;
	other.queue = 10;
	other.limit_max = 500;
	cr_expect(goes_whole(&ours, &other), "what a state does not depend on");

	other = ours;
	other.limit_config = &vegas;
	cr_expect_not(goes_whole(&ours, &other));
	other = ours;
	other.rtt = WEIR_RTT_MIN;
	cr_expect_not(goes_whole(&ours, &other));
	other = ours;
	other.rtt_smoothing = 0.5;
	cr_expect_not(goes_whole(&ours, &other));
	other = ours;
	other.window_max = 2 * WEIR_S;
	cr_expect_not(goes_whole(&ours, &other));
}

/* What compilers leave between fields is not a parameter. */
Test(saved_state, padding_is_not_hashed)
{
	struct weir_vegas_config a, b;
	struct weir_config from = config_for(&weir_vegas), to = from;

	memset(&a, 0, sizeof(a));
	a.increase = (struct weir_step){.kind = WEIR_STEP_ADD, .by = 2};
	b = a;
	memset((char *)&b.increase + sizeof(b.increase.kind), 0xa5,
	       offsetof(struct weir_step, by) - sizeof(b.increase.kind));
	from.limit_config = &a;
	to.limit_config = &b;
	cr_expect(goes_whole(&from, &to));
}

Test(saved_state, current_bounds_hold)
{
	const struct blob high = state_of("vegas:initial=320"), low = state_of("vegas:initial=3");
	struct weir_config config = config_for(&weir_vegas);
	const struct blob aimd = state_of("aimd:initial=320,max=1000");
	const struct blob low_aimd = state_of("aimd:initial=3,min=1");
	struct weir_limiter *l;

	config.limit_min = 10;
	config.limit_max = 100;
	l = make(&config);
	take_up(l, &high, 0);
	cr_expect_eq(weir_limit(l), 100);
	take_up(l, &low, 0);
	cr_expect_eq(weir_limit(l), 10);
	weir_limiter_destroy(l);

	cr_expect_eq(limit_after(&aimd, "aimd:max=150", 0), 150);
	cr_expect_eq(limit_after(&low_aimd, "aimd:min=15", 0), 15);
	cr_expect_eq(limit_after(&high, "vegas:max=200", 0), 200);
}

Test(saved_state, a_settable_limit_does_not_age)
{
	struct weir_limiter *l = make_from("settable"), *again = make_from("settable:initial=90");
	struct blob blob;

	cr_assert_eq(weir_limit_set(l, 33), 0);
	blob = save(l);
	take_up(again, &blob, OLD);
	cr_expect_eq(weir_limit(again), 33);
	cr_assert_eq(weir_limit_set(again, 34), 0);
	cr_expect_eq(weir_limit(again), 34);
	weir_limiter_destroy(l);
	weir_limiter_destroy(again);
}

Test(saved_state, without_a_parameter_initial_the_limit_is_not_used)
{
	const struct blob blob = state_of("fixed:limit=7");
	struct weir_limiter *l = make_from("fixed:limit=7"), *other = make_from("fixed:limit=9");

	take_up(l, &blob, WEIR_SAVED_FRESH);
	cr_expect_eq(weir_limit(l), 7);
	assert_refused(l, blob.bytes, blob.size, WEIR_SAVED_FRESH + 1, "fixed");
	assert_refused(other, blob.bytes, blob.size, 0, "fixed");
	cr_expect_eq(weir_limit(other), 9);
	weir_limiter_destroy(l);
	weir_limiter_destroy(other);
}

/* Limits that start at a number other than a whole one, and without bounds of their own. */

static double start_at(void *state, const void *config, double random)
{
	(void)random;
	*(uint32_t *)state = *(const uint32_t *)config;
	return *(uint32_t *)state;
}

static double start_at_real(void *state, const void *config, double random)
{
	(void)random;
	*(uint32_t *)state = 0;
	return *(const double *)config;
}

static double stay(void *state, const struct weir_window *w)
{
	(void)state;
	return w->limit;
}

Test(saved_state, only_a_whole_parameter_initial_can_be_set)
{
	static const struct weir_param whole = {"initial", WEIR_PARAM_U32, 0, 1, 1000, "20", ""};
	static const struct weir_param real = {"initial", WEIR_PARAM_DOUBLE, 0, 1, 1000, "20", ""};
	struct weir_limit_ops ops = {
		.size = sizeof(ops),
		.name = "own",
		.config_size = sizeof(double),
		.state_size = sizeof(uint32_t),
		.params = &whole,
		.param_count = 1,
		.init = start_at,
		.update = stay,
	};
	const struct weir_config config = config_for(&ops);
	const uint32_t hundred[2] = {100};
	struct weir_config at_hundred = config_for(&ops);
	struct weir_limiter *l, *again;
	struct blob blob;

	at_hundred.limit_config = hundred;
	l = make(&at_hundred);
	again = make(&config);
	blob = save(l);
	cr_assert_eq(weir_limit(again), 20);
	take_up(again, &blob, WEIR_SAVED_FRESH + 1);
	cr_expect_gt(weir_limit(again), 90);
	take_up(again, &blob, OLD);
	cr_expect_eq(weir_limit(again), 20);
	weir_limiter_destroy(l);
	weir_limiter_destroy(again);

	ops.params = &real;
	ops.init = start_at_real;
	l = make(&config);
	blob = save(l);
	assert_refused(l, blob.bytes, blob.size, OLD, "cannot start at a given limit");
	take_up(l, &blob, 0);
	weir_limiter_destroy(l);
}

Test(saved_state, another_algorithm_is_refused)
{
	const struct blob blob = state_of("vegas:initial=100");
	struct weir_limiter *l = make_from("aimd");

	assert_refused(l, blob.bytes, blob.size, 0, "of vegas, and the limit is aimd");
	weir_limiter_destroy(l);
}

Test(saved_state, with_another_version_only_the_limit_is_used)
{
	struct weir_limit_ops ops = weir_vegas;
	struct weir_config newer = config_for(&ops), ours = config_for(&weir_vegas);

	ops.version = 2;
	cr_expect_not(goes_whole(&ours, &newer));
	cr_expect(goes_whole(&newer, &newer));
	ops.version = weir_vegas.version;
	ops.state_size += 8;
	cr_expect_not(goes_whole(&ours, &newer));
}

Test(saved_state, a_short_buffer_is_refused)
{
	struct weir_limiter *l = make_from("gradient2");
	const struct blob blob = save(l);
	unsigned char bytes[WEIR_SAVED_MAX + 1], untouched[WEIR_SAVED_MAX + 1];

	memset(untouched, 0xee, sizeof(untouched));
	memcpy(bytes, untouched, sizeof(bytes));
	cr_assert_eq(weir_limiter_save(l, NULL, 0), -ENOSPC);
	for (size_t size = 0; size < blob.size; size++)
		cr_assert_eq(weir_limiter_save(l, bytes, size), -ENOSPC);
	cr_assert_eq(memcmp(bytes, untouched, sizeof(bytes)), 0);
	cr_assert_eq(weir_limiter_save(l, bytes + 1, blob.size),
		     (int)blob.size); /* any alignment */
	cr_assert_eq(weir_limiter_load(l, bytes + 1, blob.size, 0, NULL, 0), 0);
	cr_assert_eq(bytes[blob.size + 1], 0xee);
	weir_limiter_destroy(l);
}

/* The largest state allowed. */
struct giant {
	double limit[WEIR_LIMIT_STATE_MAX / sizeof(double)];
};

static double giant_init(void *state, const void *config, double random)
{
	struct giant *g = state;

	(void)config;
	for (size_t i = 0; i < sizeof(g->limit) / sizeof(g->limit[0]); i++)
		g->limit[i] = 30 + (double)i;
	return 30 + random;
}

static double giant_update(void *state, const struct weir_window *w)
{
	struct giant *g = state;

	(void)w;
	return g->limit[63] += 1;
}

Test(saved_state, the_largest_state_fits)
{
	static const struct weir_limit_ops giant = {
		.size = sizeof(giant),
		.name = "fifteen-letters",
		.about = "As large as a limit may be.",
		.version = 1,
		.state_size = sizeof(struct giant),
		.init = giant_init,
		.update = giant_update,
	};
	const struct weir_config config = config_for(&giant);
	struct weir_limiter *l = make(&config), *again = make(&config);
	struct blob blob;

	feed(l, 0);
	blob = save(l);
	take_up(again, &blob, 0);
	feed(again, 1);
	cr_expect_eq(weir_limit(again), 95);
	assert_refused(again, blob.bytes, blob.size, OLD, "fifteen-letters");
	weir_limiter_destroy(l);
	weir_limiter_destroy(again);
}

static void note_grant(void *arg)
{
	*(bool *)arg = true;
}

Test(saved_state, a_raised_limit_admits_waiters)
{
	struct weir_vegas_config vegas = {.initial = 1};
	struct weir_config config = config_for(&weir_vegas);
	const struct blob blob = state_of("vegas:initial=3");
	struct weir_token first, second;
	struct weir_limiter *l;
	struct weir_wait wait;
	bool granted = false;

	config.limit_config = &vegas;
	config.queue = 4;
	l = make(&config);
	cr_assert_eq(weir_try_acquire_at(l, 1, &first), 0);
	cr_assert_eq(weir_enqueue_at(l, 2, note_grant, &granted, &wait), 0);
	cr_assert_eq(weir_poll_at(l, 2, &wait, &second), -EAGAIN);
	take_up(l, &blob, 0);
	cr_assert(granted);
	cr_assert_eq(weir_poll_at(l, 3, &wait, &second), 0);
	cr_assert_eq(weir_inflight(l), 2);
	weir_release_at(l, 4, &first, WEIR_SUCCESS);
	weir_release_at(l, 4, &second, WEIR_SUCCESS);
	weir_limiter_destroy(l);
}

Test(saved_state, partitions_share_the_new_limit)
{
	static const struct weir_partition partitions[] = {{.name = "live", .share = 0.5}};
	const struct blob blob = state_of("vegas:initial=300");
	struct weir_config config = config_for(&weir_vegas);
	struct weir_partition_snapshot s;
	struct weir_limiter *l;

	config.partitions = partitions;
	config.partition_count = 1;
	l = make(&config);
	weir_partition_snapshot_init(&s);
	cr_assert_eq(weir_partition_snapshot_take(l, 1, &s), 0);
	cr_expect_eq(s.guarantee, 10);
	take_up(l, &blob, 0);
	cr_assert_eq(weir_partition_snapshot_take(l, 1, &s), 0);
	cr_expect_eq(s.guarantee, 150);
	weir_limiter_destroy(l);
}

/* A window closes, and the limiter learns as before: the window was released. */
Test(saved_state, windows_close_as_before)
{
	struct weir_config config = config_for(&weir_vegas);
	struct weir_limiter *l, *other;

	config.windowing = WEIR_WINDOW_TIME;
	l = make(&config);
	other = make(&config);
	for (unsigned i = 0; i < 500; i++) {
		(void)save(l);
		feed(l, i);
		feed(other, i);
		assert_the_same(l, other);
	}
	cr_assert_gt(rig_snapshot(l).windows, 30);
	weir_limiter_destroy(l);
	weir_limiter_destroy(other);
}

struct diary {
	struct weir_limiter *limiter;
	struct blob blob;
	unsigned entries;
	bool look_back;
};

static void write_down(void *arg, const struct weir_report *report)
{
	struct diary *diary = arg;

	diary->blob = save(diary->limiter);
	diary->entries++;
	cr_assert_eq(head_of(&diary->blob).limit, report->limit);
	if (diary->look_back)
		take_up(diary->limiter, &diary->blob, 0);
}

Test(saved_state, an_observer_may_save_and_load)
{
	struct diary diary = {.look_back = false};
	const struct weir_observer observer = {.window = write_down, .arg = &diary};
	struct weir_config config = config_for(&weir_vegas);
	struct weir_limiter *silent = make(&config), *l;

	config.observer = &observer;
	l = diary.limiter = make(&config);
	for (unsigned i = 0; i < BEFORE; i++) {
		feed(l, i);
		feed(silent, i);
		assert_the_same(l, silent);
		diary.look_back = i > BEFORE / 2;
	}
	cr_assert_eq(diary.entries, rig_snapshot(silent).windows);
	weir_limiter_destroy(l);
	weir_limiter_destroy(silent);
}

static void record_state(void *arg)
{
	struct diary *diary = arg;

	diary->blob = save(diary->limiter);
	take_up(diary->limiter, &diary->blob, 0);
	diary->entries++;
}

/* Of three waiters the last is granted in the middle of a window, by a limit that has risen. */
Test(saved_state, a_grant_callback_may_save_and_load)
{
	struct weir_vegas_config vegas = {.initial = 1};
	struct weir_config config = config_for(&weir_vegas);
	struct diary diary = {.entries = 0};
	struct weir_token token;
	struct weir_wait wait[3];
	struct weir_limiter *l;

	config.limit_config = &vegas;
	config.queue = 4;
	l = diary.limiter = make(&config);
	cr_assert_eq(weir_try_acquire_at(l, 0, &token), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_enqueue_at(l, 1, record_state, &diary, &wait[i]), 0);
	weir_release_at(l, WEIR_MS, &token, WEIR_SUCCESS);
	cr_assert_eq(diary.entries, 1);
	cr_assert_eq(weir_poll_at(l, WEIR_MS, &wait[0], &token), 0);
	weir_release_at(l, 2 * WEIR_MS, &token, WEIR_SUCCESS);
	cr_assert_eq(diary.entries, 3);
	cr_assert_eq(head_of(&diary.blob).limit, 7);
	cr_assert_eq(weir_limit(l), 7);
	cr_assert_eq(weir_inflight(l), 2);
	for (int i = 1; i < 3; i++) {
		cr_assert_eq(weir_poll_at(l, 2 * WEIR_MS, &wait[i], &token), 0);
		weir_release_at(l, 3 * WEIR_MS, &token, WEIR_SUCCESS);
	}
	weir_limiter_destroy(l);
}

/* ---- Bytes that differ from what was saved ---- */

Test(saved_state, every_truncation_is_refused)
{
	struct weir_limiter *l = make_from("vegas");
	struct blob blob;

	for (unsigned i = 0; i < BEFORE; i++)
		feed(l, i);
	blob = save(l);
	for (size_t size = 0; size < blob.size; size++) {
		/* In a buffer of exactly this size, so that a sanitizer detects reads beyond it. */
		unsigned char *cut = malloc(size + 1);

		cr_assert_not_null(cut);
		memcpy(cut + 1, blob.bytes, size);
		assert_refused(l, cut + 1, size, 0, "bytes");
		cr_assert_eq(weir_saved_age(cut + 1, size), UINT64_MAX);
		free(cut);
	}
	assert_refused(l, NULL, 0, 0, "bytes");
	assert_refused(l, blob.bytes, blob.size + 1, 0, "damaged");
	weir_limiter_destroy(l);
}

Test(saved_state, every_flipped_bit_is_refused)
{
	struct weir_limiter *l = make_from("vegas");
	struct blob blob;

	for (unsigned i = 0; i < BEFORE; i++)
		feed(l, i);
	blob = save(l);
	for (size_t bit = 0; bit < blob.size * 8; bit++) {
		blob.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_refused(l, blob.bytes, blob.size, 0, "");
		cr_assert_eq(weir_saved_age(blob.bytes, blob.size), UINT64_MAX);
		blob.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	take_up(l, &blob, 0);
	weir_limiter_destroy(l);
}

/* Give the bytes a right checksum, as if they had been saved so. */
static void seal(struct blob *blob, const struct saved_head *head)
{
	const size_t end = blob->size - sizeof(uint64_t);
	uint64_t check;

	memcpy(blob->bytes, head, sizeof(*head));
	check = saved_hash(SAVED_HASH_BEGIN, blob->bytes, end);
	memcpy(blob->bytes + end, &check, sizeof(check));
}

static void assert_head_refused(struct weir_limiter *l, struct blob blob, struct saved_head head,
				const char *says)
{
	seal(&blob, &head);
	assert_refused(l, blob.bytes, blob.size, 0, says);
}

#define WITH(field, value, says)                                                                   \
	do {                                                                                       \
		struct saved_head changed = head;                                                  \
		changed.field = (value);                                                           \
		assert_head_refused(l, blob, changed, says);                                       \
	} while (0)

Test(saved_state, nonsense_with_a_right_checksum_is_refused)
{
	struct weir_limiter *l = make_from("vegas");
	const struct blob blob = save(l);
	const struct saved_head head = head_of(&blob);
	struct saved_head full = head;

	WITH(magic[0], 'W', "not the saved state");
	WITH(layout, __builtin_bswap32(head.layout), "machine");
	WITH(format, 2, "format 2");
	WITH(size, head.size + 1, "bytes");
	WITH(state_size, 0, "impossible");
	WITH(state_size, UINT32_MAX, "impossible");
	WITH(state_size, WEIR_LIMIT_STATE_MAX + 1, "impossible");
	WITH(limit, 0, "impossible");
	WITH(limit, WEIR_LIMIT_MAX + 1, "impossible");
	WITH(rtt_smoothed, NAN, "impossible");
	WITH(rtt_smoothed, INFINITY, "impossible");
	WITH(rtt_smoothed, -1, "impossible");
	WITH(name[0], '\0', "of , and");
	memset(full.name, 'v', sizeof(full.name));
	assert_head_refused(l, blob, full, "impossible");
	weir_limiter_destroy(l);
}

Test(saved_state, a_state_that_shows_nan_is_refused)
{
	struct weir_limiter *l = make_from("vegas");
	struct blob blob = save(l);
	const struct saved_head head = head_of(&blob);
	const double nan = NAN;

	memcpy(blob.bytes + sizeof(head), &nan, sizeof(nan)); /* the limit in vegas's state */
	seal(&blob, &head);
	assert_refused(l, blob.bytes, blob.size, 0, "estimate is not a number");
	take_up(l, &blob, OLD); /* the saved limit was valid */
	cr_expect_eq(weir_limit(l), 20);
	weir_limiter_destroy(l);
}

/* Seconds since 1970, by the system's clock. */
static uint64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * WEIR_S;
}

Test(saved_state, the_age_is_by_the_system_clock)
{
	struct blob blob = state_of("vegas");
	const weir_dur year = 365 * 24 * HOUR;
	struct saved_head head = head_of(&blob);

	head.saved = wall_clock() - 2 * year;
	seal(&blob, &head);
	cr_expect(weir_saved_age(blob.bytes, blob.size) >= 2 * year);
	cr_expect(weir_saved_age(blob.bytes, blob.size) <= 3 * year);
	head.saved = wall_clock() + 2 * year;
	seal(&blob, &head);
	cr_expect(weir_saved_age(blob.bytes, blob.size) >= 1 * year);
	cr_expect(weir_saved_age(blob.bytes, blob.size) <= 2 * year);
}
