/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Saving what a limiter has learned, and loading it. saved_state.h has the format.
 *
 * The state belongs to the window's owner, so it is read and replaced by owning the window for a
 * short time; samples that arrive meanwhile stay in the stripes. A new limit is stored in that time
 * too, so that it matches the state, but put into force afterwards: that may run callbacks of
 * waiters, which can take any time.
 *
 * A saved state is checked before anything is changed. The state belongs to the algorithm, and lib/
 * knows none. But a state that shows a number that is NaN is refused: otherwise a limit that was
 * lost once would be lost again after every restart.
 */

#include "lib/limiter/saved_state.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/explain.h"
#include "lib/limiter/limiter.h"
#include "lib/limiter/params.h"
#include "lib/process/owner_wait.h"

/* Shows the layout of structures. */
struct probe {
	char byte;
	double real;
};

/*
 * What machines must have in common: the byte order, which would put the last of these first, and
 * the layout of structures.
 */
#define LAYOUT                                                                                     \
	((uint32_t)(1u << 24 | sizeof(void *) << 16 | offsetof(struct probe, real) << 8 |          \
		    sizeof(enum weir_scale_kind)))

_Static_assert(sizeof(struct saved_head) == 80, "no padding");
_Static_assert(sizeof(struct saved_head) + WEIR_LIMIT_STATE_MAX + sizeof(uint64_t) <=
		       WEIR_SAVED_MAX,
	       "the largest fits");

/* A saved state that has been checked. */
struct saved {
	struct saved_head head;
	_Alignas(16) unsigned char state[WEIR_LIMIT_STATE_MAX];
};

/* Fields are hashed one by one: there may be padding in between. */
static uint64_t hash_param(uint64_t hash, const struct weir_param *param, const unsigned char *at)
{
	struct weir_step step;

	switch (param->type) {
	case WEIR_PARAM_U32:
		return saved_hash(hash, at, sizeof(uint32_t));
	case WEIR_PARAM_DOUBLE:
		return saved_hash(hash, at, sizeof(double));
	case WEIR_PARAM_DUR:
		return saved_hash(hash, at, sizeof(weir_dur));
	case WEIR_PARAM_SCALE:
		return saved_hash(hash, at, sizeof(struct weir_scale));
	case WEIR_PARAM_STEP:
		memcpy(&step, at, sizeof(step));
		hash = saved_hash(hash, &step.kind, sizeof(step.kind));
		return saved_hash(hash, &step.by, sizeof(step.by));
	}
	return hash;
}

/*
 * Covers everything that a state depends on: the algorithm's parameters, and the configuration of
 * windows, since a baseline of means is not one of medians. The number of stripes makes no
 * difference.
 */
uint64_t limit_digest(const struct weir_limit_ops *ops, const struct sampler_config *s,
		      const void *limit_config)
{
	const uint64_t whole[] = {
		s->window_min, s->window_max, s->rtt_threshold, s->window_samples, s->each_sample,
		s->discard,    s->rtt};
	const double real[] = {s->quantile, s->rtt_smoothing};
	uint64_t hash = SAVED_HASH_BEGIN;

	hash = saved_hash(hash, whole, sizeof(whole));
	hash = saved_hash(hash, real, sizeof(real));
	for (uint32_t i = 0; i < ops->param_count; i++) {
		const struct weir_param *param = &ops->params[i];

		hash = saved_hash(hash, param->name, strlen(param->name));
		hash = hash_param(hash, param, (const unsigned char *)limit_config + param->offset);
	}
	return hash;
}

static uint64_t hash_parameters(const struct weir_limiter *l)
{
	return limit_digest(l->ops, &l->sampling.config, l->limit_config);
}

/* Whether the bytes are a complete saved state: 0, or -EINVAL and a sentence. */
static int check_bytes(const unsigned char *bytes, size_t size, struct saved_head *head, char *why,
		       size_t why_size)
{
	uint64_t check;

	if (bytes == NULL || size < sizeof(*head) + sizeof(check))
		return refuse(why, why_size, "%zu bytes are too few for a saved state.", size);
	memcpy(head, bytes, sizeof(*head));
	if (memcmp(head->magic, SAVED_MAGIC, sizeof(head->magic)) != 0)
		return refuse(why, why_size, "These bytes are not the saved state of a limiter.");
	if (head->layout != LAYOUT)
		return refuse(why, why_size, "The state was saved on another kind of machine.");
	if (head->format != SAVED_FORMAT)
		return refuse(why, why_size,
			      "The saved state has format %u, and only %d is supported.",
			      (unsigned)head->format, SAVED_FORMAT);
	if (head->size != size)
		return refuse(why, why_size, "The saved state is damaged: it has %zu of %u bytes.",
			      size, (unsigned)head->size);
	memcpy(&check, bytes + size - sizeof(check), sizeof(check));
	if (check != saved_hash(SAVED_HASH_BEGIN, bytes, size - sizeof(check)))
		return refuse(why, why_size, "The saved state is damaged: its checksum is wrong.");
	return 0;
}

/* The checksum is right, but are these values that weir_limiter_save() writes? */
static bool is_sound(const struct saved_head *head)
{
	return head->state_size <= WEIR_LIMIT_STATE_MAX &&
	       head->size == sizeof(*head) + head->state_size + sizeof(uint64_t) &&
	       memchr(head->name, '\0', sizeof(head->name)) != NULL && head->limit >= 1 &&
	       head->limit <= WEIR_LIMIT_MAX && head->rtt_smoothed >= 0 &&
	       isfinite(head->rtt_smoothed);
}

static int read_saved(const void *buffer, size_t size, struct saved *saved, char *why,
		      size_t why_size)
{
	const unsigned char *bytes = buffer;
	int r = check_bytes(bytes, size, &saved->head, why, why_size);

	if (r != 0)
		return r;
	if (!is_sound(&saved->head))
		return refuse(why, why_size,
			      "The saved state is damaged: its numbers are impossible.");
	memset(saved->state, 0, sizeof(saved->state));
	memcpy(saved->state, bytes + sizeof(saved->head), saved->head.state_size);
	return 0;
}

/* Own the window. False: another process owns it, and makes no progress. */
static bool own_window(struct weir_limiter *l, uint64_t *due)
{
	struct owner_wait wait = owner_wait_begin();
	uint32_t owner;

	while (!sampler_hold(&l->sampling, due, &owner))
		if (!owner_wait_longer(l, &wait, owner))
			return false;
	return true;
}

static int save(struct weir_limiter *l, void *buffer, size_t size)
{
	unsigned char *bytes = buffer;
	struct saved_head head = {
		.magic = SAVED_MAGIC,
		.layout = LAYOUT,
		.format = SAVED_FORMAT,
		.size = (uint32_t)(sizeof(head) + l->ops->state_size + sizeof(uint64_t)),
		.version = l->ops->version,
		.state_size = l->ops->state_size,
		.saved = clock_real(),
		.parameters = hash_parameters(l),
	};
	uint64_t due, check;

	if (size < head.size)
		return -ENOSPC;
	memcpy(head.name, l->ops->name, strlen(l->ops->name));
	if (!own_window(l, &due))
		return -EAGAIN;
	head.limit = admission_limit(&l->admission);
	head.random = l->runtime->random;
	head.rtt_smoothed = l->sampling.sampler->rtt_smoothed;
	limiter_fetch_state(l);
	memcpy(bytes + sizeof(head), l->state, head.state_size);
	sampler_let_go(&l->sampling, due);

	memcpy(bytes, &head, sizeof(head));
	check = saved_hash(SAVED_HASH_BEGIN, bytes, head.size - sizeof(check));
	memcpy(bytes + head.size - sizeof(check), &check, sizeof(check));
	return (int)head.size;
}

int weir_limiter_save(struct weir_limiter *l, void *buffer, size_t size)
{
	return l->serves ? save(l, buffer, size) : limiter_denial(l);
}

weir_dur weir_saved_age(const void *buffer, size_t size)
{
	const uint64_t now = clock_real();
	struct saved saved;

	if (read_saved(buffer, size, &saved, NULL, 0) != 0)
		return UINT64_MAX;
	return now > saved.head.saved ? now - saved.head.saved : saved.head.saved - now;
}

/* What is used of a saved state. */
enum use {
	USE_WHOLE,
	USE_VALUE, /* the value of a settable limit, and nothing else */
	USE_LIMIT, /* the limit; the algorithm restarts */
};

static enum use use_for(const struct weir_limiter *l, const struct saved_head *head, weir_dur age)
{
	if (age <= WEIR_SAVED_FRESH && head->version == l->ops->version &&
	    head->state_size == l->ops->state_size && head->parameters == hash_parameters(l))
		return USE_WHOLE;
	return (l->ops->flags & WEIR_LIMIT_SETTABLE) != 0 ? USE_VALUE : USE_LIMIT;
}

static int check_numbers(const struct weir_limit_ops *ops, const struct saved *saved, char *why,
			 size_t why_size)
{
	double value[WEIR_NUMBERS_MAX] = {0};

	if (ops->observe == NULL)
		return 0;
	ops->observe(saved->state, value);
	for (int i = 0; i < WEIR_NUMBERS_MAX && ops->numbers[i] != NULL; i++)
		if (isnan(value[i]))
			return refuse(why, why_size, "%s: the saved %s is not a number.", ops->name,
				      ops->numbers[i]);
	return 0;
}

/* A parameter that is a limit. False: there is none of that name. */
static bool limit_param(const struct weir_limiter *l, const char *name, uint32_t *value)
{
	const struct weir_param *param = param_by_name(l->ops, name);

	if (param == NULL || param->type != WEIR_PARAM_U32)
		return false;
	memcpy(value, l->limit_config + param->offset, sizeof(*value));
	return true;
}

/* A saved limit within the current bounds of the limiter and of the algorithm. */
static double bounded(const struct weir_limiter *l, uint32_t limit)
{
	const struct weir_param *initial = param_by_name(l->ops, "initial");
	double value = limiter_bound(l, limit);
	uint32_t bound;

	if (limit_param(l, "min", &bound))
		value = fmax(value, bound);
	if (limit_param(l, "max", &bound))
		value = fmin(value, bound);
	return fmax(initial->min, fmin(initial->max, value));
}

/*
 * Interpolate between the saved limit and the configured one, as ratios: four times too much is as
 * wrong as a quarter. The result is below the arithmetic mean, which would be near the greater of
 * the two: where it is unknown how much load is safe, the lower limit is better.
 */
static double weighted(double saved_limit, double configured, weir_dur age)
{
	const double weight = exp2(-(double)age / (double)WEIR_SAVED_HALF_LIFE);

	return configured * pow(saved_limit / configured, weight);
}

/* The configuration to restart with. Returns 0, or -EINVAL and a sentence. */
static int configure_restart(const struct weir_limiter *l, uint32_t saved_limit, weir_dur age,
			     void *config, char *why, size_t why_size)
{
	_Alignas(16) unsigned char patched[WEIR_LIMIT_CONFIG_MAX];
	const struct weir_limit_ops *ops = l->ops;
	uint32_t initial;

	if (!limit_param(l, "initial", &initial))
		return refuse(why, why_size,
			      "%s: it cannot start at a given limit, and its state is not usable.",
			      ops->name);
	initial = (uint32_t)(weighted(bounded(l, saved_limit), fmax(1, initial), age) + 0.5);
	memcpy(patched, l->limit_config, ops->config_size);
	memcpy(patched + param_by_name(ops, "initial")->offset, &initial, sizeof(initial));
	return weir_limit_complete(ops, patched, ops->config_size, config, why, why_size);
}

/* The following are for the window's owner. Each returns the limit from now on. */

static uint32_t restore(struct weir_limiter *l, const struct saved *saved)
{
	state_change_begin(l->runtime);
	memcpy(l->stored_state, saved->state, saved->head.state_size);
	state_change_end(l->runtime);
	l->runtime->random = saved->head.random;
	l->sampling.sampler->rtt_smoothed = saved->head.rtt_smoothed;
	return limiter_bound(l, saved->head.limit);
}

static uint32_t restart(struct weir_limiter *l, const void *config)
{
	double limit;

	/* In place, the state is half changed meanwhile. */
	state_change_begin(l->runtime);
	memset(l->state, 0, l->ops->state_size);
	limit = l->ops->init(l->state, config, limiter_random(l));
	limiter_store_state(l);
	state_change_end(l->runtime);
	return limiter_bound(l, limit);
}

void limiter_recover_state(struct weir_limiter *l)
{
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	uint32_t limit;

	if (atomic_load_explicit(&l->runtime->torn, memory_order_relaxed) == 0)
		return;
	if (configure_restart(l, admission_limit(&l->admission), 0, config, NULL, 0) != 0)
		memcpy(config, l->limit_config, l->ops->config_size);
	limit = restart(l, config);
	if ((l->ops->flags & WEIR_LIMIT_SETTABLE) == 0)
		atomic_store_explicit(&l->admission.room->learned, limit, memory_order_relaxed);
}

static uint32_t apply(struct weir_limiter *l, const struct saved *saved, enum use use,
		      const void *config)
{
	switch (use) {
	case USE_WHOLE:
		return restore(l, saved);
	case USE_LIMIT:
		return restart(l, config);
	case USE_VALUE:
		break;
	}
	return limiter_bound(l, saved->head.limit);
}

static int load(struct weir_limiter *l, const void *buffer, size_t size, weir_dur age, char *why,
		size_t why_size)
{
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	struct saved saved;
	enum use use;
	uint64_t due;
	uint32_t limit;
	int r = read_saved(buffer, size, &saved, why, why_size);

	if (r != 0)
		return r;
	if (strcmp(saved.head.name, l->ops->name) != 0)
		return refuse(why, why_size, "The saved state is of %s, and the limit is %s.",
			      saved.head.name, l->ops->name);
	use = use_for(l, &saved.head, age);
	if (use == USE_WHOLE)
		r = check_numbers(l->ops, &saved, why, why_size);
	if (use == USE_LIMIT)
		r = configure_restart(l, saved.head.limit, age, config, why, why_size);
	if (r != 0)
		return r;

	if (!own_window(l, &due)) {
		explain(why, why_size, "Another process is closing a window, and is stopped.");
		return -EAGAIN;
	}
	limit = apply(l, &saved, use, config);
	atomic_store_explicit(&l->admission.room->learned, limit, memory_order_relaxed);
	sampler_let_go(&l->sampling, due);
	limiter_retune(l, limiter_now(l), true);
	return 0;
}

int weir_limiter_load(struct weir_limiter *l, const void *buffer, size_t size, weir_dur age,
		      char *why, size_t why_size)
{
	return l->serves ? load(l, buffer, size, age, why, why_size) : limiter_denial(l);
}
