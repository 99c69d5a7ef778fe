/*
 * Saving what a limiter has learned, and taking it up. memory.h has the format.
 *
 * The state is the window's owner's, so it is read and replaced by owning the
 * window for an instant; samples that come meanwhile stay in the stripes. A new limit is noted
 * in that instant too, so that it goes with the state, but put in force after it:
 * that may call back who waited, for as long as he likes.
 *
 * What is taken up is checked before anything is changed. A state is the algorithm's own
 * affair, and lib/ knows none; but one that shows something which is not a number is
 * refused, or a limit that was lost once would be lost over every restart.
 */

#include "lib/limiter/saved_state.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "lib/base/explain.h"
#include "lib/limiter/limiter.h"
#include "lib/limiter/params.h"
#include "lib/process/outwait.h"

/* What a structure is like. */
struct probe {
	char byte;
	double real;
};

/*
 * What machines need to have in common: the order of bytes, which would put the last of these
 * first, and the layout of structures.
 */
#define LAYOUT                                                                                     \
	((uint32_t)(1u << 24 | sizeof(void *) << 16 | offsetof(struct probe, real) << 8 |          \
		    sizeof(enum weir_scale_kind)))

_Static_assert(sizeof(struct saved_head) == 80, "nothing in between that nobody sets");
_Static_assert(sizeof(struct saved_head) + WEIR_LIMIT_STATE_MAX + sizeof(uint64_t) <=
		       WEIR_SAVED_MAX,
	       "the largest fits");

/* A memory that has been found to be one. */
struct memory {
	struct saved_head head;
	_Alignas(16) unsigned char state[WEIR_LIMIT_STATE_MAX];
};

static uint64_t wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * WEIR_S + (uint64_t)now.tv_nsec;
}

/* By their fields: there may be anything in between. */
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
 * Of all that a state depends on: the algorithm's parameters, and what a window is. A baseline
 * of means is none of medians. The number of stripes makes no difference.
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

/* What the bytes are, and whether they are whole: 0, or -EINVAL and a sentence. */
static int check_bytes(const unsigned char *bytes, size_t size, struct saved_head *head, char *why,
		       size_t why_size)
{
	uint64_t check;

	if (bytes == NULL || size < sizeof(*head) + sizeof(check))
		return refuse(why, why_size, "These %zu bytes are too few for a memory.", size);
	memcpy(head, bytes, sizeof(*head));
	if (memcmp(head->magic, SAVED_MAGIC, sizeof(head->magic)) != 0)
		return refuse(why, why_size, "These bytes are no memory of a limiter.");
	if (head->layout != LAYOUT)
		return refuse(why, why_size, "The memory was saved on another kind of machine.");
	if (head->format != SAVED_FORMAT)
		return refuse(why, why_size, "The memory is of format %u, and only %d is known.",
			      (unsigned)head->format, SAVED_FORMAT);
	if (head->size != size)
		return refuse(why, why_size, "The memory is damaged: it has %zu of %u bytes.", size,
			      (unsigned)head->size);
	memcpy(&check, bytes + size - sizeof(check), sizeof(check));
	if (check != saved_hash(SAVED_HASH_BEGIN, bytes, size - sizeof(check)))
		return refuse(why, why_size, "The memory is damaged: its checksum is wrong.");
	return 0;
}

/* The bytes are those that somebody wrote: but are they what weir_limiter_save() writes? */
static bool is_sound(const struct saved_head *head)
{
	return head->state_size <= WEIR_LIMIT_STATE_MAX &&
	       head->size == sizeof(*head) + head->state_size + sizeof(uint64_t) &&
	       memchr(head->name, '\0', sizeof(head->name)) != NULL && head->limit >= 1 &&
	       head->limit <= WEIR_LIMIT_MAX && head->rtt_smoothed >= 0 &&
	       isfinite(head->rtt_smoothed);
}

static int read_memory(const void *buffer, size_t size, struct memory *memory, char *why,
		       size_t why_size)
{
	const unsigned char *bytes = buffer;
	int r = check_bytes(bytes, size, &memory->head, why, why_size);

	if (r != 0)
		return r;
	if (!is_sound(&memory->head))
		return refuse(why, why_size, "The memory is damaged: its numbers make no sense.");
	memset(memory->state, 0, sizeof(memory->state));
	memcpy(memory->state, bytes + sizeof(memory->head), memory->head.state_size);
	return 0;
}

/* Own the window. False: another process owns it, and does not go on. */
static bool hold(struct weir_limiter *l, uint64_t *due)
{
	struct outwait outwait = outwait_begin();
	uint32_t owner;

	while (!sampler_hold(&l->sampling, due, &owner))
		if (!outwait_longer(l, &outwait, owner))
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
		.saved = wall_clock(),
		.parameters = hash_parameters(l),
	};
	uint64_t due, check;

	if (size < head.size)
		return -ENOSPC;
	memcpy(head.name, l->ops->name, strlen(l->ops->name));
	if (!hold(l, &due))
		return -EAGAIN;
	head.limit = admission_limit(&l->admission);
	head.random = l->brain->random;
	head.rtt_smoothed = l->sampling.sampler->rtt_smoothed;
	limiter_bring_state(l);
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
	const uint64_t now = wall_clock();
	struct memory memory;

	if (read_memory(buffer, size, &memory, NULL, 0) != 0)
		return UINT64_MAX;
	return now > memory.head.saved ? now - memory.head.saved : memory.head.saved - now;
}

/* What becomes of a memory. */
enum use {
	USE_WHOLE,
	USE_VALUE, /* of a settable limit: nothing else */
	USE_LIMIT, /* the algorithm begins anew */
};

static enum use use_of(const struct weir_limiter *l, const struct saved_head *head, weir_dur age)
{
	if (age <= WEIR_SAVED_FRESH && head->version == l->ops->version &&
	    head->state_size == l->ops->state_size && head->parameters == hash_parameters(l))
		return USE_WHOLE;
	return (l->ops->flags & WEIR_LIMIT_SETTABLE) != 0 ? USE_VALUE : USE_LIMIT;
}

static int check_numbers(const struct weir_limit_ops *ops, const struct memory *memory, char *why,
			 size_t why_size)
{
	double value[WEIR_NUMBERS_MAX] = {0};

	if (ops->observe == NULL)
		return 0;
	ops->observe(memory->state, value);
	for (int i = 0; i < WEIR_NUMBERS_MAX && ops->numbers[i] != NULL; i++)
		if (isnan(value[i]))
			return refuse(why, why_size, "%s: the remembered %s is not a number.",
				      ops->name, ops->numbers[i]);
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

/* A remembered limit within the bounds of today, the limiter's and the algorithm's. */
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
 * Between the remembered limit and the configured one. In ratios, since limits are: four times too
 * much is as wrong as a quarter. And it is below the mean of the two, which would be
 * near the greater: where it is not known what can be borne, less is asked for.
 */
static double weighed(double remembered, double configured, weir_dur age)
{
	const double weight = exp2(-(double)age / (double)WEIR_SAVED_HALF_LIFE);

	return configured * pow(remembered / configured, weight);
}

/* The configuration to begin anew with. 0, or -EINVAL and a sentence. */
static int configure_anew(const struct weir_limiter *l, uint32_t remembered, weir_dur age,
			  void *config, char *why, size_t why_size)
{
	_Alignas(16) unsigned char patched[WEIR_LIMIT_CONFIG_MAX];
	const struct weir_limit_ops *ops = l->ops;
	uint32_t initial;

	if (!limit_param(l, "initial", &initial))
		return refuse(why, why_size,
			      "%s: it cannot begin at a limit, and its state is not taken up.",
			      ops->name);
	initial = (uint32_t)(weighed(bounded(l, remembered), fmax(1, initial), age) + 0.5);
	memcpy(patched, l->limit_config, ops->config_size);
	memcpy(patched + param_by_name(ops, "initial")->offset, &initial, sizeof(initial));
	return weir_limit_complete(ops, patched, ops->config_size, config, why, why_size);
}

/* The following are for the window's owner; each returns the limit from now on. */

static uint32_t restore(struct weir_limiter *l, const struct memory *memory)
{
	brain_open(l->brain);
	memcpy(l->kept, memory->state, memory->head.state_size);
	brain_close(l->brain);
	l->brain->random = memory->head.random;
	l->sampling.sampler->rtt_smoothed = memory->head.rtt_smoothed;
	return limiter_bound(l, memory->head.limit);
}

static uint32_t begin_anew(struct weir_limiter *l, const void *config)
{
	double limit;

	/* In place, the state is half changed in between. */
	brain_open(l->brain);
	memset(l->state, 0, l->ops->state_size);
	limit = l->ops->init(l->state, config, limiter_random(l));
	limiter_keep_state(l);
	brain_close(l->brain);
	return limiter_bound(l, limit);
}

void limiter_mend(struct weir_limiter *l)
{
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	uint32_t limit;

	if (atomic_load_explicit(&l->brain->torn, memory_order_relaxed) == 0)
		return;
	if (configure_anew(l, admission_limit(&l->admission), 0, config, NULL, 0) != 0)
		memcpy(config, l->limit_config, l->ops->config_size);
	limit = begin_anew(l, config);
	if ((l->ops->flags & WEIR_LIMIT_SETTABLE) == 0)
		atomic_store_explicit(&l->admission.room->learned, limit, memory_order_relaxed);
}

static uint32_t take_up(struct weir_limiter *l, const struct memory *memory, enum use use,
			const void *config)
{
	switch (use) {
	case USE_WHOLE:
		return restore(l, memory);
	case USE_LIMIT:
		return begin_anew(l, config);
	case USE_VALUE:
		break;
	}
	return limiter_bound(l, memory->head.limit);
}

static int load(struct weir_limiter *l, const void *buffer, size_t size, weir_dur age, char *why,
		size_t why_size)
{
	_Alignas(16) unsigned char config[WEIR_LIMIT_CONFIG_MAX];
	struct memory memory;
	enum use use;
	uint64_t due;
	uint32_t limit;
	int r = read_memory(buffer, size, &memory, why, why_size);

	if (r != 0)
		return r;
	if (strcmp(memory.head.name, l->ops->name) != 0)
		return refuse(why, why_size, "The memory is of %s, and the limit is %s.",
			      memory.head.name, l->ops->name);
	use = use_of(l, &memory.head, age);
	if (use == USE_WHOLE)
		r = check_numbers(l->ops, &memory, why, why_size);
	if (use == USE_LIMIT)
		r = configure_anew(l, memory.head.limit, age, config, why, why_size);
	if (r != 0)
		return r;

	if (!hold(l, &due)) {
		explain(why, why_size, "Another process is closing a window, and is stopped.");
		return -EAGAIN;
	}
	limit = take_up(l, &memory, use, config);
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
