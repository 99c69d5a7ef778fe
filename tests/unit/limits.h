/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.h - a limit and its state, for tests that feed windows to it directly.
 */
#ifndef TEST_LIMITS_H
#define TEST_LIMITS_H

#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include <weir/weir.h>

struct subject {
	const struct weir_limit_ops *ops;
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	_Alignas(16) unsigned char state[WEIR_LIMIT_STATE_MAX];
	double limit;
};

/* Initialise a limit that is configured by text, with this random number. */
static inline void start_random(struct subject *s, const struct weir_limit_ops *ops,
				const char *text, double random)
{
	unsigned char config[WEIR_LIMIT_CONFIG_MAX] = {0};
	char why[200] = "";

	*s = (struct subject){.ops = ops};
	cr_assert_eq(weir_limit_parse(ops, config, text, why, sizeof(why)), 0, "%s", why);
	cr_assert_eq(
		weir_limit_complete(ops, config, ops->config_size, s->config, why, sizeof(why)), 0,
		"%s", why);
	s->limit = ops->init(s->state, s->config, random);
}

static inline void start(struct subject *s, const struct weir_limit_ops *ops, const char *text)
{
	start_random(s, ops, text, 0);
}

/* A window with one sample. */
static inline struct weir_window sample(double rtt, uint32_t inflight)
{
	return (struct weir_window){
		.count = 1,
		.inflight_max = inflight,
		.rtt = rtt,
		.rtt_mean = rtt,
		.rtt_min = rtt,
		.rtt_max = rtt,
	};
}

static inline struct weir_window dropped(double rtt, uint32_t inflight)
{
	struct weir_window w = sample(rtt, inflight);

	w.dropped = 1;
	return w;
}

/* A window that was open for `time` and has `count` samples. */
static inline struct weir_window period(weir_dur time, uint32_t count, double rtt,
					uint32_t inflight)
{
	struct weir_window w = sample(rtt, inflight);

	w.end = time;
	w.count = count;
	return w;
}

/* A drop without a latency. */
static inline struct weir_window only_dropped(uint32_t inflight)
{
	return (struct weir_window){.dropped = 1, .inflight_max = inflight};
}

/* Whether update() returned a pause. */
static inline bool is_pause(const struct weir_limit_ops *ops, double returned)
{
	return (ops->flags & WEIR_LIMIT_PAUSES) != 0 && returned < 0;
}

/* During a pause, the limit is the lowest: the next window comes when it is over. */
static inline double feed(struct subject *s, struct weir_window window)
{
	window.limit = (uint32_t)s->limit;
	s->limit = s->ops->update(s->state, &window);
	if (is_pause(s->ops, s->limit))
		s->limit = 1;
	return s->limit;
}

/* Feed a window in which the whole limit was used. */
static inline double feed_busy(struct subject *s, double rtt)
{
	return feed(s, sample(rtt, (uint32_t)s->limit));
}

static inline double number(const struct subject *s, const char *name)
{
	double values[WEIR_NUMBERS_MAX] = {0};
	size_t i;

	s->ops->observe(s->state, values);
	for (i = 0; i < WEIR_NUMBERS_MAX && s->ops->numbers[i]; i++) {
		if (strcmp(s->ops->numbers[i], name) == 0)
			return values[i];
	}
	cr_assert_fail("%s has no number %s", s->ops->name, name);
	return 0;
}

/* Assert that parsing or completing the text fails, with `says` in the error sentence. */
static inline void assert_refused(const struct weir_limit_ops *ops, const char *text,
				  const char *says)
{
	unsigned char config[WEIR_LIMIT_CONFIG_MAX] = {0}, complete[WEIR_LIMIT_CONFIG_MAX];
	char why[200] = "";
	int error = weir_limit_parse(ops, config, text, why, sizeof(why));

	if (error == 0)
		error = weir_limit_complete(ops, config, ops->config_size, complete, why,
					    sizeof(why));
	cr_assert_eq(error, -EINVAL, "%s is accepted", text);
	cr_assert_neq(strstr(why, says), NULL, "%s: the sentence is \"%s\"", text, why);
}

static inline void assert_accepted(const struct weir_limit_ops *ops, const char *text)
{
	struct subject s;

	start(&s, ops, text);
}

/* A limiter that passes each sample to the limit as a window of its own. */
static inline struct weir_limiter *make_limiter(const struct weir_limit_ops *ops)
{
	struct weir_limiter *limiter;
	struct weir_config config;

	weir_config_init(&config);
	config.limit = ops;
	config.windowing = WEIR_WINDOW_SAMPLE;
	cr_assert_eq(weir_limiter_create(&config, &limiter), 0);
	return limiter;
}

#define MS 1e6

#endif
