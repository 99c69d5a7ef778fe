/* SPDX-License-Identifier: BSD-2-Clause */
/* batcher_create.c - creation and destruction of a batcher, and its thread. */
#include "fleet/batcher/batcher.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/cancel.h"

#define BUFFER         10000
#define BATCHES        1024
#define BATCHES_MAX    65535
#define FLUSH_INTERVAL (100 * WEIR_MS)
#define WANTS_INTERVAL (100 * WEIR_MS)
#define AUDIT_INTERVAL (10 * WEIR_S)
#define TIME_MAX       (60 * WEIR_S)
#define PAUSE          (500 * WEIR_MS)

static void *run(void *arg)
{
	struct weir_batcher *b = arg;
	bool stopped = false;

	while (!stopped) {
		const weir_time next = weir_batcher_turn(b);

		pthread_mutex_lock(&b->lock);
		while (!b->kicked && !b->stopped && batcher_wait(b, &b->work, next))
			;
		b->kicked = false;
		stopped = b->stopped;
		pthread_mutex_unlock(&b->lock);
	}
	return NULL;
}

void weir_batcher_config_init_sized(struct weir_batcher_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static void explain(char *why, size_t why_size, const char *format, ...)
{
	va_list args;

	if (why_size == 0 || why == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(why, why_size, format, args);
	va_end(args);
}

/* A macro, so that static analysers see the value returned. */
#define refuse(...) (explain(__VA_ARGS__), -EINVAL)

static void complete_duration(weir_dur *duration, weir_dur otherwise)
{
	if (*duration == 0)
		*duration = otherwise;
}

static int check(const struct weir_batcher_config *config, struct weir_batcher_config *c, char *why,
		 size_t why_size)
{
	if (config == NULL || config->size < offsetof(struct weir_batcher_config, buffer))
		return refuse(why, why_size,
			      "weir_batcher_config_init() was not called for this configuration.");
	if (config->size > sizeof(*c))
		return refuse(why, why_size, "The program was built for a newer library.");
	memset(c, 0, sizeof(*c));
	memcpy(c, config, config->size);
	if (c->rate == NULL)
		return refuse(why, why_size, "rate must not be NULL.");
	if (c->batches > BATCHES_MAX)
		return refuse(why, why_size, "batches is %u, more than %u.", (unsigned)c->batches,
			      (unsigned)BATCHES_MAX);
	if (c->by_hand > 1 || c->reserved != 0)
		return refuse(why, why_size, "by_hand must be 0 or 1, and reserved 0.");
	if (c->clock != NULL && c->by_hand == 0)
		return refuse(why, why_size, "A clock other than the default requires by_hand.");
	c->buffer = c->buffer != 0 ? c->buffer : BUFFER;
	c->batches = c->batches != 0 ? c->batches : BATCHES;
	complete_duration(&c->flush_interval, FLUSH_INTERVAL);
	complete_duration(&c->wants_interval, WANTS_INTERVAL);
	complete_duration(&c->audit_interval, AUDIT_INTERVAL);
	complete_duration(&c->time_max, TIME_MAX);
	complete_duration(&c->pause, PAUSE);
	if (c->flush_interval > DURATION_MAX)
		return refuse(why, why_size, "flush_interval is longer than 36 years.");
	return 0;
}

int weir_batcher_config_check(const struct weir_batcher_config *config, char *why, size_t why_size)
{
	struct weir_batcher_config complete;

	return check(config, &complete, why, why_size);
}

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* Everything must be zero before. */
static void set_up(struct weir_batcher *b, const struct weir_batcher_config *c)
{
	struct weir_rate_snapshot rate;
	weir_time now;

	weir_rate_snapshot_init(&rate);
	weir_rate_snapshot_take(c->rate, &rate);
	b->config = *c;
	b->quotas = rate.quota_count;
	b->end = &b->first;
	for (uint32_t i = 0; i < c->batches; i++)
		b->batches[i].next = i + 1 < c->batches ? i + 1 : NIL;
	now = time_now(b);
	b->released = now;
	b->next_flush = now + c->flush_interval;
	b->next_audit = after(now, c->audit_interval);
	b->next_wants = now;
	pthread_mutex_init(&b->lock, NULL);
	cond_init(&b->room);
	cond_init(&b->idle);
	cond_init(&b->work);
}

int weir_batcher_create(const struct weir_batcher_config *config, struct weir_batcher **batcher)
{
	struct weir_batcher_config c;
	struct weir_batcher *b;

	*batcher = NULL;
	if (check(config, &c, NULL, 0) != 0)
		return -EINVAL;
	b = calloc(1, sizeof(*b) + c.batches * sizeof(b->batches[0]));
	if (b == NULL)
		return -ENOMEM;
	set_up(b, &c);
	if (c.by_hand == 0) {
		const int error = pthread_create(&b->thread, NULL, run, b);

		if (error != 0) {
			b->config.by_hand = 1;
			(void)weir_batcher_destroy(b);
			return -error;
		}
	}
	*batcher = b;
	return 0;
}

int weir_batcher_destroy(struct weir_batcher *b)
{
	bool idle;
	int cancel;

	if (b == NULL)
		return 0;
	pthread_mutex_lock(&b->lock);
	idle = is_idle(b);
	if (idle) {
		b->stopped = true;
		kick(b);
	}
	pthread_mutex_unlock(&b->lock);
	if (!idle)
		return -EBUSY;
	cancel = cancel_hold();
	if (b->config.by_hand == 0)
		pthread_join(b->thread, NULL);
	cancel_release(cancel);
	pthread_cond_destroy(&b->room);
	pthread_cond_destroy(&b->idle);
	pthread_cond_destroy(&b->work);
	pthread_mutex_destroy(&b->lock);
	free(b);
	return 0;
}
