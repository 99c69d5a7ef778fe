/* SPDX-License-Identifier: BSD-2-Clause */
/* From a configuration to a limiter in memory: defaults, checks, layout, lifetime. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/limits.h>
#include <weir/shm.h>

#include "lib/base/bitmap.h"
#include "lib/base/explain.h"
#include "lib/limiter/limiter.h"
#include "lib/limiter/partition.h"

#define STRIPES_MAX 256
#define TRACK_MAX   (UINT32_C(1) << 20)

/*
 * The least room, in bytes, for a limit's configuration and for its state. It makes limiters of
 * nearly all algorithms the same size, so one registry can hold limiters of several algorithms.
 */
#define CONFIG_ROOM 128
#define STATE_ROOM  1024

/* Default of sample_rate: at 250 ns for a sample, 1 % of a CPU. */
#define SAMPLE_RATE 40000

/* The longest duration allowed, in ns (36 years): sums of two stay far below 2^63. */
#define DUR_MAX ((weir_dur)1 << 60)

void weir_config_init_sized(struct weir_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
	return value != 0 ? value : otherwise;
}

static uint32_t stripes_for(uint32_t wanted)
{
	long online = wanted != 0 ? (long)wanted : sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t stripes = 1;

	while (stripes < online && stripes < STRIPES_MAX)
		stripes *= 2;
	return stripes;
}

/*
 * Fill in what the configuration leaves open: the limit's preferences, else the general defaults.
 */
static void complete_window(struct weir_config *c, const struct weir_limit_ops *ops)
{
	static const struct weir_sampling any = {.windowing = WEIR_WINDOW_DEFAULT};
	const struct weir_sampling *preferred = ops->sampling != NULL ? ops->sampling : &any;

	if (c->windowing == WEIR_WINDOW_DEFAULT)
		c->windowing = preferred->windowing;
	if (c->sparse == WEIR_SPARSE_DEFAULT)
		c->sparse = preferred->sparse;
	if (c->rtt == WEIR_RTT_DEFAULT)
		c->rtt = preferred->rtt;
	if (c->quantile == 0)
		c->quantile = preferred->quantile == 0 ? 0.5 : preferred->quantile;
	c->window_min = or_default(c->window_min, or_default(preferred->window_min, 100 * WEIR_MS));
	c->window_max = or_default(c->window_max, or_default(preferred->window_max, WEIR_S));
	c->window_samples = (uint32_t)or_default(c->window_samples,
						 or_default(preferred->window_samples, 10));
}

/*
 * Whether every call is a sample. With a clock of its own, a limiter may be in a simulation, where
 * a sample costs nothing that matters.
 */
static bool samples_all(const struct weir_config *c, const struct weir_limit_ops *ops)
{
	return c->sample_rate == WEIR_SAMPLE_ALL || (c->sample_rate == 0 && c->clock != NULL) ||
	       (ops->flags & WEIR_LIMIT_EVERY_CALL) != 0;
}

static int check_window(struct weir_config *c, struct settings *settings, char *why,
			size_t why_size)
{
	struct sampler_config *s = &settings->sampler;

	complete_window(c, settings->ops);
	*s = (struct sampler_config){
		.window_min = c->window_min,
		.window_max = c->window_max,
		.rtt_threshold = c->rtt_threshold,
		.window_samples = c->window_samples,
		.stripes = stripes_for(c->stripes),
		.each_sample = c->windowing == WEIR_WINDOW_SAMPLE,
		.discard = c->sparse == WEIR_SPARSE_DISCARD,
		.rtt = c->rtt,
		.quantile = c->quantile,
		.rtt_smoothing = c->rtt_smoothing == 0 ? 1 : c->rtt_smoothing,
		.thins_given = c->sample_rate != 0,
	};
	if (!samples_all(c, settings->ops))
		s->interval = WEIR_S / or_default(c->sample_rate, SAMPLE_RATE);
	if ((unsigned)c->windowing > WEIR_WINDOW_SAMPLE)
		return refuse(why, why_size, "windowing has an unknown value.");
	if ((unsigned)c->sparse > WEIR_SPARSE_DISCARD)
		return refuse(why, why_size, "sparse has an unknown value.");
	if ((unsigned)c->rtt > WEIR_RTT_QUANTILE)
		return refuse(why, why_size, "rtt is not a known statistic.");
	if (s->window_min > s->window_max)
		return refuse(why, why_size, "window_min is above window_max.");
	if (s->window_max > DUR_MAX || s->rtt_threshold > DUR_MAX)
		return refuse(why, why_size, "A window or threshold is longer than 36 years.");
	if (!(s->quantile > 0 && s->quantile < 1))
		return refuse(why, why_size, "quantile is %g, not between 0 and 1.", s->quantile);
	if (!(s->rtt_smoothing > 0 && s->rtt_smoothing <= 1))
		return refuse(why, why_size, "rtt_smoothing is %g, not above 0 and up to 1.",
			      s->rtt_smoothing);
	if (c->stripes > STRIPES_MAX)
		return refuse(why, why_size, "stripes is %u, above %u.", (unsigned)c->stripes,
			      (unsigned)STRIPES_MAX);
	return 0;
}

static int check_queue(const struct weir_config *c, struct queue_config *q, char *why,
		       size_t why_size)
{
	*q = (struct queue_config){
		.slots = c->queue,
		.order = c->order,
		.stand = or_default(c->queue_stand, 100 * WEIR_MS),
		.open = c->shadow != 0,
	};
	if (c->queue > QUEUE_MAX)
		return refuse(why, why_size, "queue is %u, above %u.", (unsigned)c->queue,
			      QUEUE_MAX);
	if ((unsigned)c->order > WEIR_ADAPTIVE)
		return refuse(why, why_size, "order has an unknown value.");
	if (q->stand > DUR_MAX)
		return refuse(why, why_size, "queue_stand is longer than 36 years.");
	return 0;
}

static int check_limit(const struct weir_config *c, struct settings *s, char *why, size_t why_size)
{
	s->ops = c->limit != NULL ? c->limit : weir_limit_by_name(NULL);
	s->state_size = s->ops->state_size;
	s->limit_min = (uint32_t)or_default(c->limit_min, 1);
	s->limit_max = (uint32_t)or_default(c->limit_max, WEIR_LIMIT_MAX);
	if (s->limit_max > WEIR_LIMIT_MAX)
		return refuse(why, why_size, "limit_max is %u, above %u.", (unsigned)s->limit_max,
			      (unsigned)WEIR_LIMIT_MAX);
	if (s->limit_min > s->limit_max)
		return refuse(why, why_size, "limit_min is above limit_max.");
	return weir_limit_complete(s->ops, c->limit_config,
				   or_default(c->limit_config_size, s->ops->config_size),
				   s->limit_config, why, why_size);
}

/* Partition 0 first, then the others in their order. */
static int check_partitions(const struct weir_config *c, struct settings *s, char *why,
			    size_t why_size)
{
	s->parts = 1;
	s->partitions[0] = partition_defaults(NULL);
	if (c->partition_count > WEIR_PARTITIONS_MAX)
		return refuse(why, why_size, "partition_count is %u, above %u.",
			      (unsigned)c->partition_count, (unsigned)WEIR_PARTITIONS_MAX);
	if (c->partition_count > 0 && c->partitions == NULL)
		return refuse(why, why_size, "partition_count is %u, but there are no partitions.",
			      (unsigned)c->partition_count);
	if (partition_check_names(c->partitions, c->partition_count, why, why_size) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < c->partition_count; i++) {
		const struct weir_partition *p = &c->partitions[i];

		s->partitions[partition_is_unknown(p->name) ? 0 : s->parts++] = partition_defaults(
			p);
	}
	s->queue.rows = s->parts;
	s->admission = (struct admission_config){
		.partitions = s->partitions,
		.count = c->partition_count > 0 ? s->parts : 0,
		.delayed_max = (uint32_t)or_default(c->delayed_max, 100),
		.hold = or_default(c->partition_hold, 100 * WEIR_MS),
	};
	if (s->admission.hold > DUR_MAX)
		return refuse(why, why_size, "partition_hold is longer than 36 years.");
	return partition_check(s->partitions, s->parts, why, why_size);
}

static int check_shedding(const struct weir_config *c, struct settings *s, char *why,
			  size_t why_size)
{
	s->shed = c->shed != 0;
	s->shed_floor = c->shed_floor == 0 ? 0.01 : c->shed_floor;
	s->burst = c->burst;
	if (s->shed_floor == WEIR_SHED_STRICT)
		s->shed_floor = 0;
	if (!(s->shed_floor >= 0 && s->shed_floor <= 1))
		return refuse(why, why_size, "shed_floor is %g, neither 0 to 1 nor strict.",
			      s->shed_floor);
	if (s->burst > WEIR_LIMIT_MAX)
		return refuse(why, why_size, "burst is %u, above %u.", (unsigned)s->burst,
			      (unsigned)WEIR_LIMIT_MAX);
	return 0;
}

static bool windows_are_sound(const struct sampler_config *w)
{
	return w->stripes >= 1 && w->stripes <= STRIPES_MAX &&
	       (w->stripes & (w->stripes - 1)) == 0 && w->window_min <= w->window_max &&
	       w->window_max <= DUR_MAX && w->rtt_threshold <= DUR_MAX &&
	       w->rtt <= WEIR_RTT_QUANTILE && w->quantile > 0 && w->quantile < 1 &&
	       w->rtt_smoothing > 0 && w->rtt_smoothing <= 1 && w->interval <= WEIR_S &&
	       w->thins_given <= 1;
}

static bool partitions_are_sound(const struct settings *s)
{
	bool sound = s->parts >= 1 && s->parts <= WEIR_PARTITIONS_MAX + 1 &&
		     (s->admission.count == 0 || s->admission.count == s->parts) &&
		     s->admission.hold <= DUR_MAX;

	for (uint32_t i = 0; sound && i < s->parts; i++)
		sound = partition_is_sound(&s->partitions[i]);
	return sound;
}

bool settings_are_sound(const struct settings *s)
{
	return s->state_size <= WEIR_LIMIT_STATE_MAX && s->limit_min >= 1 &&
	       s->limit_min <= s->limit_max && s->limit_max <= WEIR_LIMIT_MAX &&
	       windows_are_sound(&s->sampler) && partitions_are_sound(s) &&
	       s->queue.slots <= QUEUE_MAX && s->queue.rows == s->parts &&
	       s->queue.order <= WEIR_ADAPTIVE && s->queue.stand <= DUR_MAX && s->shed <= 1 &&
	       s->shed_floor >= 0 && s->shed_floor <= 1 && s->burst <= WEIR_LIMIT_MAX;
}

int settings_from(struct settings *settings, const struct weir_config *config, char *why,
		  size_t why_size)
{
	struct weir_config c = {.size = 0};
	int r;

	if (config != NULL && config->size < offsetof(struct weir_config, limit_config))
		return refuse(why, why_size,
			      "The configuration was not set by weir_config_init().");
	if (config != NULL && config->size > sizeof(c))
		return refuse(why, why_size, "The program was built for a newer library.");
	if (config != NULL)
		memcpy(&c, config, config->size);

	*settings = (struct settings){
		.track = c.track,
		.seed = c.seed,
		.clock = c.clock,
		.clock_zero = c.clock_zero,
		.random = c.random,
		.cpu = c.cpu,
	};
	if (c.observer != NULL)
		settings->observer = *c.observer;
	if (c.track > TRACK_MAX)
		return refuse(why, why_size, "track is %u, above %u.", (unsigned)c.track,
			      (unsigned)TRACK_MAX);
	r = check_limit(&c, settings, why, why_size);
	if (r == 0)
		r = check_window(&c, settings, why, why_size);
	if (r == 0)
		r = check_queue(&c, &settings->queue, why, why_size);
	if (r == 0)
		r = check_partitions(&c, settings, why, why_size);
	if (r == 0)
		r = check_shedding(&c, settings, why, why_size);
	return r;
}

int weir_config_check(const struct weir_config *config, char *why, size_t why_size)
{
	struct settings settings;

	return settings_from(&settings, config, why, why_size);
}

/* Lay out one part: returns its place, and advances *end. */
static void *part(char *mem, size_t *end, size_t size)
{
	char *at = mem != NULL ? mem + *end : NULL;

	*end += round_up_to_line(size);
	return at;
}

static size_t at_least(size_t size, size_t least)
{
	return size > least ? size : least;
}

/*
 * Whether stripes may cache permits. With one stripe a cache has no use. In a shared limiter, a
 * process that dies would take the knowledge of its cached permits with it.
 */
static bool caches_permits(const struct settings *s)
{
	return s->sampler.stripes > 1 && s->members == 0;
}

/*
 * Whether the limit works on a copy of its state, so that another process cannot change what the
 * limit has just checked. A limit may declare that it does not need the copy.
 */
static bool works_on_copy(const struct settings *s)
{
	return s->members > 0 && (s->ops->flags & WEIR_LIMIT_IN_PLACE) == 0;
}

/*
 * Compute the addresses of this process's own part, in mem, and of the shared part, in block;
 * neither is accessed. Both return the size. With NULL only the size has a meaning.
 */
static size_t lay_out_own(struct weir_limiter *l, char *mem, const struct settings *s)
{
	size_t end = round_up_to_line(sizeof(*l));

	l->limit_config = part(mem, &end, at_least(s->ops->config_size, CONFIG_ROOM));
	l->shown = part(mem, &end, sizeof(*l->shown));
	l->sampling.closing = mem != NULL ? &l->shown->closing : NULL;
	l->admission.names = part(mem, &end, s->admission.count * sizeof(*l->admission.names));
	l->queueing.callbacks = part(mem, &end, s->queue.slots * sizeof(*l->queueing.callbacks));
	l->tracking.entries = part(mem, &end, s->track * sizeof(*l->tracking.entries));
	l->tracking.free = part(mem, &end, bitmap_words(s->track) * sizeof(uint64_t));
	l->tracking.count = s->track;
	if (s->sampler.rtt == WEIR_RTT_QUANTILE)
		l->sampling.pool = part(mem, &end, pool_size(s->sampler.stripes));
	l->admission.cache.shared = part(mem, &end, sizeof(*l->admission.cache.shared));
	l->state = part(mem, &end, works_on_copy(s) ? s->state_size : 0);
	return end;
}

static size_t lay_out_shared(struct weir_limiter *l, char *block, const struct settings *s)
{
	const uint32_t stripes = s->sampler.stripes, slots = s->queue.slots;
	const uint32_t parts = s->admission.count, shed_parts = s->shed ? s->parts : 0;
	const bool quantile = s->sampler.rtt == WEIR_RTT_QUANTILE;
	size_t end = 0;

	l->admission.gate = part(block, &end, sizeof(*l->admission.gate));
	l->admission.room = part(block, &end, sizeof(*l->admission.room));
	l->admission.parts = part(block, &end, parts * sizeof(*l->admission.parts));
	l->part_totals = part(block, &end, (size_t)stripes * parts * sizeof(*l->part_totals));
	l->shedding.arrivals = part(block, &end,
				    (size_t)stripes * shed_parts * sizeof(*l->shedding.arrivals));
	l->shedding.rankings = part(block, &end, shed_parts * sizeof(*l->shedding.rankings));
	l->shedding.steering = part(block, &end, s->shed ? sizeof(*l->shedding.steering) : 0);
	l->runtime = part(block, &end, sizeof(*l->runtime));
	l->stored_state = part(block, &end, at_least(s->state_size, STATE_ROOM));
	l->published = part(block, &end, sizeof(*l->published));
	l->sampling.sampler = part(block, &end, sizeof(*l->sampling.sampler));
	l->sampling.stripes = part(block, &end, stripes * sizeof(*l->sampling.stripes));
	if (quantile)
		l->sampling.lanes = part(block, &end, stripes * sizeof(*l->sampling.lanes));
	l->queueing.queue = part(block, &end, sizeof(*l->queueing.queue));
	l->queueing.rows = part(block, &end, s->parts * sizeof(*l->queueing.rows));
	l->queueing.slots = part(block, &end, slots * sizeof(*l->queueing.slots));
	l->queueing.free = part(block, &end, bitmap_words(slots) * sizeof(uint64_t));
	l->queueing.fresh = part(block, &end, bitmap_words(slots) * sizeof(uint64_t));
	return end;
}

size_t limiter_own_size(const struct settings *s)
{
	struct weir_limiter nowhere = {.ops = NULL};

	return lay_out_own(&nowhere, NULL, s);
}

size_t limiter_block_size(const struct settings *s)
{
	struct weir_limiter nowhere = {.ops = NULL};

	return lay_out_shared(&nowhere, NULL, s);
}

size_t weir_limiter_size(const struct weir_config *config)
{
	struct settings settings;

	if (settings_from(&settings, config, NULL, 0) != 0)
		return 0;
	return limiter_own_size(&settings) + limiter_block_size(&settings);
}

static void set_up_own(struct weir_limiter *l, const struct settings *s)
{
	part_name *names = (part_name *)(uintptr_t)l->admission.names;

	memcpy(l->limit_config, s->limit_config, s->ops->config_size);
	memset(l->shown, 0, sizeof(*l->shown));
	for (uint32_t i = 0; i < s->admission.count; i++)
		memcpy(names[i], s->partitions[i].name, strlen(s->partitions[i].name) + 1);
	for (uint32_t i = 0; i < s->queue.slots; i++)
		callback_init(&l->queueing.callbacks[i]);
	track_init(&l->tracking);
}

struct weir_limiter *limiter_set_up(void *mem, void *block, const struct settings *s)
{
	struct weir_limiter *l = mem;

	*l = (struct weir_limiter){
		.ops = s->ops,
		.clock = s->clock,
		.clock_zero = s->clock != NULL ? s->clock_zero : clock_zero(),
		.zero_read = clock_monotonic(),
		.random = s->random,
		.cpu = s->cpu,
		.observer = s->observer,
		.limit_min = s->limit_min,
		.limit_max = s->limit_max,
		.plain = s->admission.count == 0 && !s->shed,
		.serves = true,
		.admission = {.count = s->admission.count,
			      .limit_max = s->limit_max,
			      .delayed_max = s->admission.delayed_max,
			      .hold = s->admission.hold},
		.sampling = {.config = s->sampler},
		.queueing = {.config = s->queue},
		.shedding = {.parts = s->shed ? s->parts : 0,
			     .stripes = s->sampler.stripes,
			     .floor = (uint32_t)ceil(s->shed_floor * 65536)},
	};
	lay_out_own(l, mem, s);
	lay_out_shared(l, block, s);
	/* Tracking shows when each token was acquired. Other processes of a block may not track. */
	if (s->track > 0)
		l->sampling.config.interval = 0;
	if (!works_on_copy(s))
		l->state = l->stored_state;
	l->admission.cache.gate = l->admission.gate;
	l->admission.cache.sampling = &l->sampling;
	l->admission.cache.count = caches_permits(s) ? s->sampler.stripes : 0;
	l->queueing.admission = &l->admission;
	set_up_own(l, s);
	return l;
}

void limiter_begin(struct weir_limiter *l, const struct settings *s)
{
	double limit;

	memset(l->runtime, 0, sizeof(*l->runtime));
	memset(l->state, 0, s->ops->state_size);
	memset(l->published, 0, sizeof(*l->published));
	memset(l->part_totals, 0,
	       (size_t)s->sampler.stripes * s->admission.count * sizeof(*l->part_totals));
	l->runtime->random = s->seed;
	l->runtime->burst.permits = s->burst;
	sampler_init(&l->sampling);
	cache_init(&l->admission.cache);
	queue_init(&l->queueing);
	shed_init(&l->shedding);
	limit = s->ops->init(l->state, s->limit_config, limiter_random(l));
	limiter_store_state(l);
	admission_init(&l->admission, &s->admission, limiter_bound(l, limit), s->burst);
}

/* The block follows the handle. */
static struct weir_limiter *set_up(char *mem, const struct settings *s)
{
	struct weir_limiter *l = limiter_set_up(mem, mem + limiter_own_size(s), s);

	limiter_begin(l, s);
	return l;
}

int weir_limiter_init(void *mem, size_t size, const struct weir_config *config,
		      struct weir_limiter **limiter)
{
	struct settings settings;
	int r = settings_from(&settings, config, NULL, 0);

	*limiter = NULL;
	if (r != 0)
		return r;
	if (mem == NULL || (uintptr_t)mem % WEIR_ALIGN != 0)
		return -EINVAL;
	if (size < limiter_own_size(&settings) + limiter_block_size(&settings))
		return -EINVAL;
	*limiter = set_up(mem, &settings);
	return 0;
}

int weir_limiter_create(const struct weir_config *config, struct weir_limiter **limiter)
{
	struct settings settings;
	int r = settings_from(&settings, config, NULL, 0);
	void *mem;

	*limiter = NULL;
	if (r != 0)
		return r;
	mem = aligned_alloc(WEIR_ALIGN,
			    limiter_own_size(&settings) + limiter_block_size(&settings));
	if (mem == NULL)
		return -ENOMEM;
	*limiter = set_up(mem, &settings);
	return 0;
}

void weir_limiter_destroy(struct weir_limiter *limiter)
{
	if (limiter == NULL)
		return;
	if (limiter->ops == NULL || limiter->leasing.leases != NULL)
		weir_shm_detach(limiter);
	else
		free(limiter);
}
