/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of a shared block: made by one process, and checked by each that attaches.
 *
 * A process that attaches trusts nothing. The head is copied, so that it cannot change between
 * check and use. Then its checksum is checked, and also all numbers in it from which addresses
 * follow, since a checksum is not a signature. A failure is -EPROTO, with a sentence.
 */

#include "lib/shm/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/limits.h>

#include "lib/limiter/saved_state.h"
#include "lib/base/explain.h"
#include "lib/process/proc.h"

/* Stands for an algorithm that is unknown here; shown without its numbers. */
static double unknown_init(void *state, const void *config, double random)
{
	(void)state;
	(void)config;
	(void)random;
	return 1;
}

static double unknown_update(void *state, const struct weir_window *w)
{
	(void)state;
	return w->limit;
}

static const struct weir_limit_ops unknown = {
	.size = sizeof(unknown),
	.name = "unknown",
	.init = unknown_init,
	.update = unknown_update,
};

/* Covers everything that processes must agree on: the layout of shared structures. */
static uint64_t layout_signature(void)
{
	const size_t sizes[] = {
		LINE,
		sizeof(struct shm_head),
		sizeof(struct shm_constants),
		offsetof(struct shm_constants, sampler),
		sizeof(struct lease),
		offsetof(struct lease, detached),
		offsetof(struct lease, bell),
		sizeof(struct holding),
		offsetof(struct holding, delayed),
		sizeof(struct audit),
		offsetof(struct audit, since),
		sizeof(struct gate),
		sizeof(struct room),
		offsetof(struct room, ceiling),
		offsetof(struct room, detached),
		offsetof(struct room, extra_out),
		offsetof(struct room, resume),
		sizeof(struct part),
		offsetof(struct part, reject_delay),
		sizeof(struct part_totals),
		sizeof(struct arrivals),
		sizeof(struct ranking),
		sizeof(struct steering),
		sizeof(struct limit_runtime),
		sizeof(struct published),
		sizeof(struct weir_report),
		sizeof(struct sampler),
		sizeof(struct stripe),
		offsetof(struct stripe, total),
		sizeof(struct lane),
		sizeof(struct pool),
		sizeof(struct queue),
		sizeof(struct slot),
		offsetof(struct slot, park),
		sizeof(struct row),
		sizeof(struct cache_mode),
		TOTALS,
		PART_TOTALS,
		NEWS_PART,
	};
	static const char order[] = "2";

	return saved_hash(saved_hash(SAVED_HASH_BEGIN, sizes, sizeof(sizes)), order, 2) ^
	       WEIR_VERSION_HEX;
}

void explain_proc(int error, char *why, size_t why_size)
{
	char text[128];

	explain(why, why_size, "/proc cannot be read: %s.", strerror_r(-error, text, sizeof(text)));
}

/*
 * Times are comparable between processes of one boot and one time namespace. Returns 0, or a
 * negative errno: that cannot be determined for now.
 */
static int clock_signature(uint64_t *signature)
{
	char text[64];
	uint64_t hash = SAVED_HASH_BEGIN, space;
	int r = proc_read("/proc/sys/kernel/random/boot_id", text, sizeof(text));

	if (r == 0)
		r = proc_namespace("/proc/self/ns/time", &space);
	if (r != 0)
		return r;
	hash = saved_hash(hash, text, strlen(text));
	*signature = saved_hash(hash, &space, sizeof(space));
	return 0;
}

struct places places_in(const struct settings *s)
{
	const size_t stride = lease_stride(s->parts) * sizeof(struct holding);
	struct places p;

	p.leases = round_up_to_line(sizeof(struct shm_head));
	p.holdings = p.leases + s->members * sizeof(struct lease);
	p.audit = p.holdings + s->members * stride;
	p.limiter = p.audit + round_up_to_line(sizeof(struct audit));
	p.size = p.limiter + limiter_block_size(s);
	return p;
}

int settings_for(struct settings *s, const struct weir_config *config, uint32_t members, char *why,
		 size_t why_size)
{
	int r = settings_from(s, config, why, why_size);

	if (r != 0)
		return r;
	if (s->clock != NULL)
		return refuse(why, why_size, "A shared limiter cannot have a clock of its own.");
	if (members == 0 || members > LEASES_MAX)
		return refuse(why, why_size, "members is %u, not from 1 to %u.", (unsigned)members,
			      (unsigned)LEASES_MAX);
	s->members = members;
	return 0;
}

size_t weir_shm_size(const struct weir_config *config, uint32_t members)
{
	struct settings settings;

	if (settings_for(&settings, config, members, NULL, 0) != 0)
		return 0;
	return places_in(&settings).size;
}

static void set_partitions(struct shm_constants *c, const struct settings *s)
{
	for (uint32_t i = 0; i < s->parts; i++) {
		const struct weir_partition *p = &s->partitions[i];
		struct shm_partition *to = &c->partitions[i];

		memcpy(to->name, p->name, strlen(p->name) + 1);
		to->share = p->share;
		to->cap = p->cap;
		to->reject_delay = p->reject_delay;
		to->max = p->max;
	}
}

/* Copied field by field into zeros, so that the checksum covers no indeterminate padding. */
static void set_constants(struct shm_constants *c, const struct settings *s, uint64_t clock,
			  size_t size)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->magic, SHM_MAGIC, sizeof(c->magic));
	c->layout = layout_signature();
	c->clock = clock;
	c->size = size;
	c->version = s->ops->version;
	c->state_size = s->state_size;
	c->config_size = s->ops->config_size;
	c->flags = s->ops->flags;
	memcpy(c->limit, s->ops->name, strlen(s->ops->name));
	memcpy(c->limit_config, s->limit_config, sizeof(c->limit_config));
	c->limit_min = s->limit_min;
	c->limit_max = s->limit_max;
	c->members = s->members;
	c->shed = s->shed;
	c->burst = s->burst;
	c->parts = s->parts;
	c->admission_count = s->admission.count;
	c->delayed_max = s->admission.delayed_max;
	c->hold = s->admission.hold;
	c->shed_floor = s->shed_floor;
	c->seed = s->seed;
	c->sampler = s->sampler;
	c->queue = s->queue;
	set_partitions(c, s);
}

/*
 * Make settings of a block's constants, to be checked afterwards. All pointers are this process's
 * own, or NULL.
 */
static void make_settings(struct settings *s, const struct shm_constants *c)
{
	*s = (struct settings){
		.state_size = c->state_size,
		.limit_min = c->limit_min,
		.limit_max = c->limit_max,
		.sampler = c->sampler,
		.queue = c->queue,
		.admission = {.partitions = s->partitions,
			      .count = c->admission_count,
			      .delayed_max = c->delayed_max,
			      .hold = c->hold},
		.parts = c->parts,
		.members = c->members,
		.shed = c->shed,
		.shed_floor = c->shed_floor,
		.burst = c->burst,
		.seed = c->seed,
	};
	memcpy(s->limit_config, c->limit_config, sizeof(s->limit_config));
	for (uint32_t i = 0; i < WEIR_PARTITIONS_MAX + 1; i++) {
		const struct shm_partition *p = &c->partitions[i];

		s->partitions[i] = (struct weir_partition){
			.name = p->name,
			.share = p->share,
			.cap = p->cap,
			.max = p->max,
			.reject_delay = p->reject_delay,
		};
	}
}

void set_up_leases(struct weir_limiter *l, void *block, const struct settings *s)
{
	char *base = block;
	const struct places at = places_in(s);

	l->leasing = (struct leasing){
		.leases = (struct lease *)(void *)(base + at.leases),
		.holdings = (struct holding *)(void *)(base + at.holdings),
		.audit = (struct audit *)(void *)(base + at.audit),
		.count = s->members,
		.stride = lease_stride(s->parts),
	};
	l->queueing.leases = l->leasing.leases;
	l->queueing.lease_count = l->leasing.count;
}

static void begin_leases(const struct leasing *l)
{
	memset(l->leases, 0, l->count * sizeof(*l->leases));
	for (uint32_t i = 0; i < l->count; i++)
		park_init(&l->leases[i].bell);
	memset(l->holdings, 0, (size_t)l->count * l->stride * sizeof(*l->holdings));
	audit_init(l->audit);
}

void *pages(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at != MAP_FAILED ? at : NULL;
}

int weir_shm_init(void *block, size_t size, const struct weir_config *config, uint32_t members,
		  char *why, size_t why_size)
{
	struct shm_head *head = block;
	struct weir_limiter *handle;
	struct settings settings;
	struct places at;
	uint64_t clock;
	int r = settings_for(&settings, config, members, why, why_size);

	if (r != 0)
		return r;
	at = places_in(&settings);
	if (block == NULL || (uintptr_t)block % LINE != 0)
		return refuse(why, why_size, "The block is not aligned to %d bytes.", LINE);
	if (size < at.size)
		return refuse(why, why_size, "The block has %zu bytes, and needs %zu.", size,
			      at.size);
	r = clock_signature(&clock);
	if (r != 0) {
		explain_proc(r, why, why_size);
		return r;
	}
	handle = pages(limiter_own_size(&settings));
	if (handle == NULL) {
		explain(why, why_size, "There is not enough memory for the handle.");
		return -ENOMEM;
	}

	atomic_init(&head->ready, 0);
	set_constants(&head->constants, &settings, clock, at.size);
	head->check = saved_hash(SAVED_HASH_BEGIN, &head->constants, sizeof(head->constants));
	limiter_set_up(handle, (char *)block + at.limiter, &settings);
	set_up_leases(handle, block, &settings);
	begin_leases(&handle->leasing);
	limiter_begin(handle, &settings);
	munmap(handle, limiter_own_size(&settings));
	atomic_store_explicit(&head->ready, SHM_READY, memory_order_release);
	return 0;
}

/*
 * Whether it is a block at all, of this kind of library and machine. Returns 0, -EPROTO, or a
 * negative errno of reading /proc.
 */
static int check_head(const struct shm_head *head, size_t size, struct shm_constants *c, char *why,
		      size_t why_size)
{
	uint64_t clock;
	int r;

	if (size < sizeof(*head))
		return fault(why, why_size, "%zu bytes are too few for a shared limiter.", size);
	if (atomic_load_explicit(&head->ready, memory_order_acquire) != SHM_READY)
		return fault(why, why_size, "There is no shared limiter, or it is not ready.");
	memcpy(c, &head->constants, sizeof(*c));
	if (memcmp(c->magic, SHM_MAGIC, sizeof(c->magic)) != 0)
		return fault(why, why_size, "This is not a shared limiter.");
	if (c->layout != layout_signature())
		return fault(why, why_size,
			     "The shared limiter is of another version of the library, or of "
			     "another kind of machine.");
	if (head->check != saved_hash(SAVED_HASH_BEGIN, c, sizeof(*c)))
		return fault(why, why_size,
			     "The shared limiter is damaged: its checksum is wrong.");
	r = clock_signature(&clock);
	if (r != 0) {
		explain_proc(r, why, why_size);
		return r;
	}
	if (c->clock != clock)
		return fault(why, why_size,
			     "The shared limiter is of another boot of the machine, or of "
			     "another time namespace.");
	return 0;
}

/* Whether all numbers are such as a configuration results in, so that no address lies outside. */
static bool is_sound(const struct shm_constants *c, const struct settings *s)
{
	bool sound = memchr(c->limit, '\0', sizeof(c->limit)) != NULL &&
		     c->config_size <= WEIR_LIMIT_CONFIG_MAX && settings_are_sound(s) &&
		     s->members >= 1 && s->members <= LEASES_MAX;

	for (uint32_t i = 0; sound && i < s->parts; i++)
		sound = memchr(c->partitions[i].name, '\0', sizeof(part_name)) != NULL;
	return sound;
}

static int check_numbers(const struct shm_copy *copy, size_t size, char *why, size_t why_size)
{
	const struct shm_constants *c = &copy->constants;

	if (!is_sound(c, &copy->settings))
		return fault(why, why_size,
			     "The shared limiter is damaged: its numbers are impossible.");
	if (c->size != places_in(&copy->settings).size)
		return fault(why, why_size,
			     "The shared limiter is damaged: its size is impossible.");
	if (c->size > size)
		return fault(why, why_size, "The shared limiter is truncated: %zu of %llu bytes.",
			     size, (unsigned long long)c->size);
	return 0;
}

/* Add this process's pointers. */
static void complete(struct settings *s, const struct weir_limit_ops *ops,
		     const struct settings *mine)
{
	s->ops = ops;
	if (mine == NULL)
		return;
	s->random = mine->random;
	s->cpu = mine->cpu;
	s->observer = mine->observer;
	s->track = mine->track;
}

/* Whether the algorithm is the one that the block was made with. */
static int check_limit(struct shm_copy *copy, const struct weir_limit_ops *ops, char *why,
		       size_t why_size)
{
	const struct shm_constants *c = &copy->constants;

	if (ops == NULL)
		return fault(why, why_size, "The shared limiter's algorithm, %s, is unknown.",
			     c->limit);
	if (strcmp(c->limit, ops->name) != 0)
		return fault(why, why_size, "The shared limiter is of %s, and the limit is %s.",
			     c->limit, ops->name);
	if (c->version != ops->version || c->state_size != ops->state_size ||
	    c->config_size != ops->config_size || c->flags != ops->flags)
		return fault(why, why_size, "The shared limiter is of another version of %s.",
			     ops->name);
	if (weir_limit_complete(ops, c->limit_config, ops->config_size, copy->settings.limit_config,
				why, why_size) != 0)
		return -EPROTO;
	return 0;
}

static bool same_partition(const struct weir_partition *a, const struct weir_partition *b)
{
	return strcmp(a->name, b->name) == 0 && a->share == b->share && a->cap == b->cap &&
	       a->max == b->max && a->reject_delay == b->reject_delay;
}

static uint64_t digest_of(const struct settings *s)
{
	return limit_digest(s->ops, &s->sampler, s->limit_config);
}

/* Whether the settings that a process expects are those that the block was made with. */
static bool same_settings(const struct settings *a, const struct settings *b)
{
	bool same = digest_of(a) == digest_of(b) && a->limit_min == b->limit_min &&
		    a->limit_max == b->limit_max && a->queue.slots == b->queue.slots &&
		    a->queue.order == b->queue.order && a->queue.stand == b->queue.stand &&
		    a->parts == b->parts && a->admission.count == b->admission.count &&
		    a->admission.delayed_max == b->admission.delayed_max &&
		    a->admission.hold == b->admission.hold && a->shed == b->shed &&
		    a->shed_floor == b->shed_floor && a->burst == b->burst &&
		    a->sampler.interval == b->sampler.interval;

	for (uint32_t i = 0; same && i < a->parts; i++)
		same = same_partition(&a->partitions[i], &b->partitions[i]);
	return same;
}

/* Whether the head is valid and its numbers lead to no address outside the block. */
static int check_block(const struct shm_head *head, size_t size, struct shm_copy *copy, char *why,
		       size_t why_size)
{
	int r;

	if (head == NULL || (uintptr_t)head % LINE != 0)
		return refuse(why, why_size, "The block is not aligned to %d bytes.", LINE);
	r = check_head(head, size, &copy->constants, why, why_size);
	if (r != 0)
		return r;
	make_settings(&copy->settings, &copy->constants);
	return check_numbers(copy, size, why, why_size);
}

int read_block(const struct shm_head *head, size_t size, const struct weir_config *config,
	       struct shm_copy *copy, char *why, size_t why_size)
{
	const struct weir_limit_ops *ops;
	struct settings mine;
	int r = config != NULL ? settings_for(&mine, config, 1, why, why_size) : 0;

	if (r == 0)
		r = check_block(head, size, copy, why, why_size);
	if (r != 0)
		return r;
	ops = config != NULL ? mine.ops : weir_limit_by_name(copy->constants.limit);
	r = check_limit(copy, ops, why, why_size);
	if (r != 0)
		return r;
	complete(&copy->settings, ops, config != NULL ? &mine : NULL);
	if (config == NULL)
		return 0;
	if (!same_settings(&copy->settings, &mine))
		return fault(why, why_size,
			     "The shared limiter was made with another configuration.");
	/*
	 * The configuration of a program's own algorithm may contain more than parameters, such as
	 * pointers.
	 */
	memcpy(copy->settings.limit_config, mine.limit_config, sizeof(mine.limit_config));
	return 0;
}

int read_block_to_observe(const struct shm_head *head, size_t size, struct shm_copy *copy,
			  char *why, size_t why_size)
{
	const struct weir_limit_ops *ops;
	int r = check_block(head, size, copy, why, why_size);

	if (r != 0)
		return r;
	ops = weir_limit_by_name(copy->constants.limit);
	complete(&copy->settings, check_limit(copy, ops, NULL, 0) == 0 ? ops : &unknown, NULL);
	return 0;
}
