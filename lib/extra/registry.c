/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry: a hash map from keys to slots, each with a limiter in it.
 *
 * word            written by                        order    pairs with
 * --------------  --------------------------------  -------  ------------------------------------
 * word            fill: store, generation odd       release  compare, pin: the limiter and its key
 * word            pin: CAS, pins + 1, USED,         acquire  fill, and put: all that had it pinned
 *                 not CLAIMED
 * word            put: CAS, pins - 1                release  evict, pin
 * word            evict: CAS, CLAIMED, not USED     acquire  put: what is in flight is seen, and
 *                                                            no thread has the limiter
 * word            evict: CAS, generation even       relaxed  nothing: no pin since CLAIMED
 * word            vacate: CAS, not USED             relaxed  nothing: a hint
 * hash, size,     fill: store                       release  compare: a reader that sees a later
 * key[i]                                                     use's sees the generation moved on
 * refused,        any thread: add                   relaxed  nothing: numbers
 * bad_puts
 *
 * fill(), evict() and vacate() run under the mutex, in a thread that creates a limiter. Every
 * change of the word is a read-modify-write, except the store in fill(), before which no other
 * thread may change it. So a pin continues the release sequence that fill() began, and the next one
 * still pairs with fill().
 *
 * Slots stay where they are while the registry exists, and are reused. So there is no memory to
 * reclaim: a thread that looks at a slot that has just got another key reads memory that is still a
 * slot, and detects the change by the generation. The map (Concurrency Kit's ck_hs: one writer,
 * lock-free readers) only proposes a slot. compare() notes the word, then compares the key; pin()
 * succeeds only on a word of the same generation, hence on a slot that has had this key, and no
 * other, since before the comparison. Of ck's memory ordering only one thing is required: a slot
 * that is in the map all the time is found.
 *
 * Why no limiter is evicted under a caller. A pinned limiter is not claimed. A limiter that is
 * claimed is not pinned at that instant, so no thread is in a call of it. Whether a call is in
 * flight, was let through, or has an entry in the queue, which evict() checks next, is changed only
 * by threads that pin it, and a pin clears CLAIMED: then the second CAS fails. No other thread ever
 * sets CLAIMED. So at the second CAS no thread had the limiter pinned, and it was idle.
 *
 * Recency is one bit of the word that a pin writes anyway, so it costs nothing. A thread that needs
 * room runs the clock algorithm: it passes over the slots, clears the bit where it is set, and
 * evicts the first idle limiter without it. A limiter used since then is evicted only after a full
 * round.
 */

#include <weir/registry.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ck_hs.h>

#include <weir/limits.h>

#include "lib/base/cancel.h"
#include "lib/base/explain.h"
#include "lib/base/layout.h"
#include "lib/base/siphash.h"
#include "lib/limiter/idle.h"

#define MAX_DEFAULT 1024
#define STRIPES_MAX 256 /* of weir_config.stripes */

/*
 * Map entries for each limiter. ck_hs probes at least 64 entries before it gives up, and deleted
 * entries are reused, so an entry is missing with a probability of 1 in 4^64.
 */
#define SPREAD 4

/* The word of a slot, from bit 0: pins:24 | used:1 | claimed:1 | generation:38, odd while taken. */
#define PINS       UINT64_C(0xffffff)
#define USED       (UINT64_C(1) << 24)
#define CLAIMED    (UINT64_C(1) << 25)
#define GENERATION (UINT64_C(1) << 26)

#define KEY_WORDS ((WEIR_KEY_MAX + 7) / 8)

/* A key that is looked up. */
struct wanted {
	const unsigned char *bytes; /* never NULL: see compare() */
	size_t size;
	uint64_t hash;
	uint64_t *seen; /* the word of the slot found, read before its key was compared */
};

/* A slot for a limiter, which follows it in memory. All zero: empty. */
struct slot {
	_Alignas(LINE) const unsigned char *bytes; /* NULL: see compare() */
	_Atomic uint64_t word;
	_Atomic uint64_t hash;
	_Atomic uint64_t size;
	_Atomic uint64_t key[KEY_WORDS]; /* in the byte order of siphash.h */
};

/* Fields that are written come first; those that every look-up reads come last, lines apart. */
struct weir_registry {
	/* Guarded by the mutex. */
	pthread_mutex_t mutex;
	uint64_t made, evicted;
	uint32_t hand;

	_Atomic uint64_t refused, bad_puts;

	/* Constant. */
	_Alignas(16) unsigned char limit_config[WEIR_LIMIT_CONFIG_MAX];
	struct weir_config limiter;
	int (*customize)(void *arg, const void *key, size_t key_len, struct weir_config *config);
	void *arg;
	size_t limiter_size;
	size_t mapped; /* bytes of the whole mapping */
	struct ck_malloc map_memory;
	ck_hs_t map;
	struct siphash_key hash_key;
	char *slots;
	size_t stride; /* from slot to slot, in bytes */
	uint32_t max;
};

static bool taken(uint64_t word)
{
	return (word & GENERATION) != 0;
}

static struct slot *slot_at(const struct weir_registry *r, uint32_t i)
{
	return (struct slot *)(void *)(r->slots + i * r->stride);
}

/* weir_limiter_init() puts the limiter at the beginning of its memory. */
static struct weir_limiter *limiter_in(struct slot *slot)
{
	return (struct weir_limiter *)(void *)(slot + 1);
}

/* NULL: not a limiter of this registry, whatever it is. */
static struct slot *slot_of(const struct weir_registry *r, const struct weir_limiter *limiter)
{
	size_t offset = (uintptr_t)limiter - (uintptr_t)limiter_in(slot_at(r, 0));

	if (offset >= r->max * r->stride || offset % r->stride != 0)
		return NULL;
	return (struct slot *)(void *)(r->slots + offset);
}

static void add_one(_Atomic uint64_t *number)
{
	atomic_fetch_add_explicit(number, 1, memory_order_relaxed);
}

/*
 * ck_hs's comparison of a slot in the map with the object looked up. That object is a struct
 * wanted; but when a slot is put into the map or removed it is the slot itself, which is equal only
 * to itself, and ck_hs has tested that before. Both begin with a pointer, which distinguishes them.
 */
static bool compare(const void *in_map, const void *looked_for)
{
	const unsigned char *const *bytes = looked_for;
	const struct slot *slot = in_map;
	const struct wanted *wanted = looked_for;
	size_t i;

	if (*bytes == NULL)
		return false;
	*wanted->seen = atomic_load_explicit(&slot->word, memory_order_acquire);
	if (!taken(*wanted->seen) ||
	    atomic_load_explicit(&slot->hash, memory_order_acquire) != wanted->hash ||
	    atomic_load_explicit(&slot->size, memory_order_acquire) != wanted->size)
		return false;
	for (i = 0; i < wanted->size / 8; i++)
		if (atomic_load_explicit(&slot->key[i], memory_order_acquire) !=
		    word_at(wanted->bytes + 8 * i))
			return false;
	return wanted->size % 8 == 0 || atomic_load_explicit(&slot->key[i], memory_order_acquire) ==
						word_at_end(wanted->bytes, wanted->size);
}

/* For ck_hs, which calls it when it grows: never. */
static unsigned long hash_of(const void *slot, unsigned long seed)
{
	(void)seed;
	return (unsigned long)atomic_load_explicit(&((const struct slot *)slot)->hash,
						   memory_order_relaxed);
}

static void *map_malloc(size_t size)
{
	return malloc(size);
}

/* A map that grew would free the old one, in which other threads may be looking. */
static void *map_malloc_no_more(size_t size)
{
	(void)size;
	return NULL;
}

static void map_free(void *memory, size_t size, bool defer)
{
	(void)size;
	(void)defer;
	free(memory);
}

/*
 * Pin the limiter in the slot, if its generation is still the one seen. mark is USED or 0. Returns
 * 0, -ENOENT if the generation has changed, or -EOVERFLOW.
 */
static int pin(struct slot *slot, uint64_t seen, uint64_t mark)
{
	uint64_t word = seen;

	do {
		if ((word ^ seen) >= GENERATION)
			return -ENOENT;
		if ((word & PINS) == PINS)
			return -EOVERFLOW;
	} while (!atomic_compare_exchange_weak_explicit(
		&slot->word, &word, ((word & ~CLAIMED) | mark) + 1, memory_order_acquire,
		memory_order_relaxed));
	return 0;
}

/* If a slot changes after it was found, the key is looked up again: it may be in another slot. */
static int pin_found(struct weir_registry *r, const struct wanted *wanted, struct slot **slot)
{
	int error;

	do {
		*slot = ck_hs_get(&r->map, (unsigned long)wanted->hash, wanted);
		if (*slot == NULL)
			return -ENOENT;
		error = pin(*slot, *wanted->seen, USED);
	} while (error == -ENOENT);
	return error;
}

/* For a word without pins. False: a thread has pinned the limiter, or a call still uses it. */
static bool evict(struct weir_registry *r, struct slot *slot, uint64_t word)
{
	const uint64_t claimed = (word & ~USED) | CLAIMED;

	if (!atomic_compare_exchange_strong_explicit(&slot->word, &word, claimed,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	if (!limiter_is_idle(limiter_in(slot)))
		return false;
	word = claimed;
	if (!atomic_compare_exchange_strong_explicit(&slot->word, &word,
						     (claimed & ~CLAIMED) + GENERATION,
						     memory_order_relaxed, memory_order_relaxed))
		return false;
	ck_hs_remove(&r->map, hash_of(slot, 0), slot);
	r->evicted++;
	return true;
}

/*
 * Find an empty slot, evicting a limiter if necessary. The hand goes round at most twice: in the
 * second round, a slot it has passed counts as unused whatever happened since. NULL: in the second
 * round, each limiter was in use.
 */
static struct slot *vacate(struct weir_registry *r)
{
	for (uint64_t step = 0; step < 2 * (uint64_t)r->max; step++) {
		struct slot *slot = slot_at(r, r->hand);
		uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);

		r->hand = r->hand + 1 < r->max ? r->hand + 1 : 0;
		if (!taken(word))
			return slot;
		if ((word & PINS) != 0)
			continue;
		if ((word & USED) != 0 && step < r->max)
			atomic_compare_exchange_strong_explicit(&slot->word, &word, word & ~USED,
								memory_order_relaxed,
								memory_order_relaxed);
		else if (evict(r, slot, word))
			return slot;
	}
	return NULL;
}

static void write_key(struct slot *slot, const struct wanted *wanted)
{
	size_t i;

	atomic_store_explicit(&slot->hash, wanted->hash, memory_order_release);
	atomic_store_explicit(&slot->size, wanted->size, memory_order_release);
	for (i = 0; i < wanted->size / 8; i++)
		atomic_store_explicit(&slot->key[i], word_at(wanted->bytes + 8 * i),
				      memory_order_release);
	if (wanted->size % 8 != 0)
		atomic_store_explicit(&slot->key[i], word_at_end(wanted->bytes, wanted->size),
				      memory_order_release);
}

/* Put a limiter into an empty slot, pinned. */
static int fill(struct weir_registry *r, struct slot *slot, const struct wanted *wanted,
		const struct weir_config *config)
{
	uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	struct weir_limiter *limiter;
	int error = weir_limiter_init(limiter_in(slot), r->limiter_size, config, &limiter);

	if (error != 0)
		return error;
	write_key(slot, wanted);
	if (!ck_hs_put_unique(&r->map, (unsigned long)wanted->hash, slot))
		return -ENOMEM;
	word = ((word + GENERATION) & ~(GENERATION - 1)) | USED | 1;
	atomic_store_explicit(&slot->word, word, memory_order_release);
	r->made++;
	return 0;
}

/* The configuration for one key. The limit_config of one limit has no meaning for another. */
static int configure(const struct weir_registry *r, const struct wanted *wanted,
		     struct weir_config *config)
{
	size_t size;
	int error;

	*config = r->limiter;
	if (r->customize == NULL)
		return 0;
	error = r->customize(r->arg, wanted->bytes, wanted->size, config);
	if (error != 0)
		return error < 0 ? error : -EINVAL;
	if (config->limit != r->limiter.limit && config->limit_config == r->limiter.limit_config)
		config->limit_config = NULL;
	size = weir_limiter_size(config);
	return size != 0 && size <= r->limiter_size ? 0 : -EINVAL;
}

/* Create the limiter that was not found, unless another thread has created it meanwhile. */
static int make(struct weir_registry *r, const struct wanted *wanted, struct slot **slot)
{
	struct weir_config config;
	int error = configure(r, wanted, &config);

	if (error != 0)
		return error;
	pthread_mutex_lock(&r->mutex);
	error = pin_found(r, wanted, slot);
	if (error == -ENOENT) {
		*slot = vacate(r);
		error = *slot != NULL ? fill(r, *slot, wanted, &config) : -ENOSPC;
	}
	pthread_mutex_unlock(&r->mutex);
	return error;
}

static bool make_wanted(const struct weir_registry *r, const void *key, size_t key_len,
			uint64_t *seen, struct wanted *wanted)
{
	if (key_len > WEIR_KEY_MAX || (key == NULL && key_len > 0))
		return false;
	wanted->bytes = key_len > 0 ? key : (const unsigned char *)"";
	wanted->size = key_len;
	wanted->hash = siphash(&r->hash_key, wanted->bytes, key_len);
	wanted->seen = seen;
	return true;
}

int weir_registry_get(struct weir_registry *r, const void *key, size_t key_len,
		      struct weir_limiter **limiter)
{
	struct wanted wanted;
	struct slot *slot;
	uint64_t seen;
	int error;

	*limiter = NULL;
	if (!make_wanted(r, key, key_len, &seen, &wanted))
		return -EINVAL;
	error = pin_found(r, &wanted, &slot);
	if (UNLIKELY(error == -ENOENT))
		error = make(r, &wanted, &slot);
	if (UNLIKELY(error != 0)) {
		add_one(&r->refused);
		return error;
	}
	*limiter = limiter_in(slot);
	return 0;
}

int weir_registry_find(struct weir_registry *r, const void *key, size_t key_len,
		       struct weir_limiter **limiter)
{
	struct wanted wanted;
	struct slot *slot;
	uint64_t seen;
	int error;

	*limiter = NULL;
	if (!make_wanted(r, key, key_len, &seen, &wanted))
		return -EINVAL;
	error = pin_found(r, &wanted, &slot);
	if (error == 0)
		*limiter = limiter_in(slot);
	return error;
}

void weir_registry_put(struct weir_registry *r, struct weir_limiter *limiter)
{
	struct slot *slot = slot_of(r, limiter);
	uint64_t word;

	if (UNLIKELY(slot == NULL)) {
		add_one(&r->bad_puts);
		return;
	}
	word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	do {
		if (UNLIKELY((word & PINS) == 0)) {
			add_one(&r->bad_puts);
			return;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&slot->word, &word, word - 1, memory_order_release, memory_order_relaxed));
}

/* Read the key of a pinned slot. Returns its size. */
static size_t read_key(const struct slot *slot, unsigned char key[KEY_WORDS * 8])
{
	size_t size = atomic_load_explicit(&slot->size, memory_order_relaxed);

	for (size_t i = 0; i < (size + 7) / 8; i++) {
		uint64_t word = atomic_load_explicit(&slot->key[i], memory_order_relaxed);

		for (unsigned k = 0; k < 8; k++)
			key[8 * i + k] = (unsigned char)(word >> 8 * k);
	}
	return size;
}

size_t weir_registry_visit(struct weir_registry *r,
			   bool (*visit)(void *arg, const void *key, size_t key_len,
					 struct weir_limiter *limiter),
			   void *arg)
{
	const int cancel = cancel_hold();
	unsigned char key[KEY_WORDS * 8];
	size_t visited = 0;
	bool more = true;

	for (uint32_t i = 0; i < r->max && more; i++) {
		struct slot *slot = slot_at(r, i);
		uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);

		if (!taken(word) || pin(slot, word, 0) != 0)
			continue;
		visited++;
		more = visit(arg, key, read_key(slot, key), limiter_in(slot));
		weir_registry_put(r, limiter_in(slot));
	}
	cancel_release(cancel);
	return visited;
}

void weir_registry_stats_init_sized(struct weir_registry_stats *stats, size_t size)
{
	memset(stats, 0, size);
	stats->size = size;
}

void weir_registry_stats_take(struct weir_registry *r, struct weir_registry_stats *stats)
{
	struct weir_registry_stats s;

	memset(&s, 0, sizeof(s));
	pthread_mutex_lock(&r->mutex);
	s.limiters = (uint32_t)(r->made - r->evicted);
	s.made = r->made;
	s.evicted = r->evicted;
	pthread_mutex_unlock(&r->mutex);
	s.refused = atomic_load_explicit(&r->refused, memory_order_relaxed);
	s.bad_puts = atomic_load_explicit(&r->bad_puts, memory_order_relaxed);
	s.size = stats->size;
	memcpy(stats, &s, s.size < sizeof(s) ? s.size : sizeof(s));
}

void weir_registry_config_init_sized(struct weir_registry_config *config, size_t size)
{
	memset(config, 0, size);
	config->size = size;
}

/* A complete, checked configuration. */
static int complete(struct weir_registry_config *c, const struct weir_registry_config *config,
		    char *why, size_t why_size)
{
	size_t needed;
	int error;

	weir_registry_config_init(c);
	if (config != NULL && config->size < offsetof(struct weir_registry_config, customize))
		return refuse(why, why_size,
			      "The configuration was not set by weir_registry_config_init().");
	if (config != NULL && config->size > sizeof(*c))
		return refuse(why, why_size, "The program was built for a newer library.");
	if (config != NULL)
		memcpy(c, config, config->size);
	error = weir_config_check(c->limiter, why, why_size);
	if (error != 0)
		return error;
	if (c->limiter != NULL && c->limiter->size >= offsetof(struct weir_config, observer) &&
	    c->limiter->random != NULL)
		return refuse(why, why_size,
			      "One random source cannot serve all limiters: set seed, or "
			      "give each its own in customize().");
	if (c->max > WEIR_REGISTRY_MAX)
		return refuse(why, why_size, "max is %u, above %u.", (unsigned)c->max,
			      (unsigned)WEIR_REGISTRY_MAX);
	needed = weir_limiter_size(c->limiter);
	if (c->limiter_size != 0 && c->limiter_size < needed)
		return refuse(why, why_size, "limiter_size is %zu, but a limiter needs %zu.",
			      c->limiter_size, needed);
	c->max = c->max != 0 ? c->max : MAX_DEFAULT;
	c->limiter_size = c->limiter_size != 0 ? c->limiter_size : needed;
	return 0;
}

int weir_registry_config_check(const struct weir_registry_config *config, char *why,
			       size_t why_size)
{
	struct weir_registry_config c;

	return complete(&c, config, why, why_size);
}

/*
 * The default of weir_config.stripes, read once: it comes from a file, which takes longer than
 * everything else in creating a limiter.
 */
static uint32_t cpus_online(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (online < 1)
		return 1;
	return online < STRIPES_MAX ? (uint32_t)online : STRIPES_MAX;
}

static void copy_limiter(struct weir_registry *r, const struct weir_config *limiter)
{
	struct weir_config *copy = &r->limiter;

	weir_config_init(copy);
	if (limiter != NULL)
		memcpy(copy, limiter, limiter->size);
	if (copy->limit == NULL)
		copy->limit = weir_limit_by_name(NULL);
	if (copy->stripes == 0)
		copy->stripes = cpus_online();
	if (copy->limit_config == NULL)
		return;
	if (copy->limit_config_size == 0 || copy->limit_config_size > copy->limit->config_size)
		copy->limit_config_size = copy->limit->config_size;
	memcpy(r->limit_config, copy->limit_config, copy->limit_config_size);
	copy->limit_config = r->limit_config;
}

/*
 * The size of a slot and its limiter, in bytes: an odd number of lines, so that words at the same
 * offset in each slot do not all fall into the same few sets of the cache.
 */
static size_t stride_for(size_t limiter_size)
{
	size_t lines = (sizeof(struct slot) + round_up_to_line(limiter_size)) / LINE;

	return (lines | 1) * LINE;
}

/* Zeroed memory, which the kernel provides as it is touched; NULL: out of memory. */
static struct weir_registry *reserve(const struct weir_registry_config *c)
{
	const size_t head = round_up_to_line(sizeof(struct weir_registry));
	const size_t stride = stride_for(c->limiter_size);
	struct weir_registry *r;
	size_t size;

	if (c->limiter_size > SIZE_MAX / 2 || __builtin_mul_overflow(c->max, stride, &size) ||
	    __builtin_add_overflow(size, head, &size))
		return NULL;
	r = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED)
		return NULL;
	r->slots = (char *)r + head;
	r->stride = stride;
	r->mapped = size;
	return r;
}

static int set_up(struct weir_registry *r, const struct weir_registry_config *c)
{
	const unsigned mode = CK_HS_MODE_SPMC | CK_HS_MODE_OBJECT | CK_HS_MODE_DELETE;

	r->limiter_size = c->limiter_size;
	r->max = c->max;
	r->customize = c->customize;
	r->arg = c->arg;
	copy_limiter(r, c->limiter);
	if (getentropy(&r->hash_key, sizeof(r->hash_key)) != 0)
		return -errno;
	r->map_memory = (struct ck_malloc){.malloc = map_malloc, .free = map_free};
	if (!ck_hs_init(&r->map, mode, hash_of, compare, &r->map_memory,
			(unsigned long)c->max * SPREAD, 0))
		return -ENOMEM;
	r->map_memory.malloc = map_malloc_no_more;
	pthread_mutex_init(&r->mutex, NULL);
	return 0;
}

int weir_registry_create(const struct weir_registry_config *config, struct weir_registry **registry)
{
	struct weir_registry_config c;
	struct weir_registry *r;
	int error = complete(&c, config, NULL, 0);

	*registry = NULL;
	if (error != 0)
		return error;
	r = reserve(&c);
	if (r == NULL)
		return -ENOMEM;
	error = set_up(r, &c);
	if (error != 0) {
		munmap(r, r->mapped);
		return error;
	}
	*registry = r;
	return 0;
}

int weir_registry_destroy(struct weir_registry *r)
{
	if (r == NULL)
		return 0;
	for (uint32_t i = 0; i < r->max; i++)
		if ((atomic_load_explicit(&slot_at(r, i)->word, memory_order_acquire) & PINS) != 0)
			return -EBUSY;
	ck_hs_destroy(&r->map);
	pthread_mutex_destroy(&r->mutex);
	munmap(r, r->mapped);
	return 0;
}
