/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/registry.h - one limiter for each key, such as an upstream host or an endpoint.
 *
 *	if (weir_registry_get(registry, host, strlen(host), &limiter) != 0)
 *		return reject(request);
 *	if (weir_try_acquire(limiter, &token) == 0) {
 *		error = call(host, request);
 *		weir_release(limiter, &token, outcome_of(error));
 *	}
 *	weir_registry_put(registry, limiter);
 *
 * A limiter is created when its key is first requested. When the registry is full, an idle limiter
 * is evicted to make room. A limiter is idle if it is not pinned, has no call in flight (with a
 * permit or let through without one), and has no entry in its queue, waiting or granted. Among
 * several, one that has not been requested lately is preferred. What an evicted limiter had learned
 * is lost.
 *
 * Pins. weir_registry_get() and weir_registry_find() pin the limiter. Each pin is undone by one
 * weir_registry_put(). Use a limiter only while you have it pinned. A token or a queue entry may
 * outlast the pin: the limiter stays until the token is released, or until the waiter has been
 * polled or cancelled to its end. To do that, get the limiter again by its key: it is the same one.
 *
 * Thread safety. Every function of this header may be called from any thread at any time, except
 * those that say otherwise. Getting an existing limiter, finding one and putting one takes no lock,
 * allocates nothing and makes no system call. These may be called from signal handlers,
 * weir_registry_get() only if the limiter exists. Creating a limiter takes a mutex.
 *
 * Ownership. All limiters belong to the registry and lie in memory that it reserves when it is
 * created: about max * limiter_size bytes. Only memory of limiters that have been used becomes
 * resident.
 *
 * Fork. As with a limiter, a child must not use its parent's registry. It may create one of its
 * own.
 */
#ifndef WEIR_REGISTRY_H
#define WEIR_REGISTRY_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_registry;

#define WEIR_KEY_MAX      255                 /* the longest key, in bytes */
#define WEIR_REGISTRY_MAX (UINT32_C(1) << 20) /* the most limiters of a registry */

/*
 * Configuration of a registry. Call weir_registry_config_init() first, then set what should differ.
 * Zero always means the default. A null pointer in place of the whole structure means all defaults.
 */
struct weir_registry_config {
	size_t size; /* set by weir_registry_config_init() */

	/*
	 * Configuration of each limiter. NULL: all defaults. It is copied together with its
	 * limit_config; everything else that it points to must outlive the registry. An observer in
	 * it is called by several threads at once. It must not contain a random source, since one
	 * random source serves only one limiter.
	 */
	const struct weir_config *limiter;

	/*
	 * Change the configuration for one key, or refuse the key. Returns 0, or a negative errno
	 * that weir_registry_get() then returns. *config is a copy of limiter. What it points to
	 * need only last until this limiter is created, except what a limiter keeps. Called before
	 * a limiter is created, with no lock held. Several threads may call it at once, and its
	 * result goes unused if another thread creates the limiter first. NULL: all limiters are
	 * configured alike.
	 */
	int (*customize)(void *arg, const void *key, size_t key_len, struct weir_config *config);
	void *arg;

	uint32_t max; /* limiters at once, 1 to WEIR_REGISTRY_MAX; default 1024 */

	/*
	 * Bytes for each limiter; default: what limiter needs. Set it if customize() makes bigger
	 * ones.
	 */
	size_t limiter_size;
};

#define weir_registry_config_init(config)                                                          \
	weir_registry_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_registry_config_init_sized(struct weir_registry_config *config, size_t size);

/*
 * Check a configuration. Returns 0 if a registry can be made of it, else -EINVAL and one sentence
 * in why (may be NULL).
 */
WEIR_API int weir_registry_config_check(const struct weir_registry_config *config, char *why,
					size_t why_size);

/*
 * Create an empty registry. End it with weir_registry_destroy(). Its hash is keyed from
 * getentropy().
 *
 * Returns 0, or a negative errno:
 * -EINVAL: the configuration is invalid.
 * -ENOMEM: out of memory.
 *
 * Other errors are those of getentropy().
 */
WEIR_API WEIR_MUST_CHECK int weir_registry_create(const struct weir_registry_config *config,
						  struct weir_registry **registry);

/*
 * End a registry and all its limiters. No call on the registry or its limiters may be in progress.
 * Tokens still out are forgotten. NULL is allowed.
 *
 * Returns 0, or a negative errno:
 * -EBUSY: a limiter is still pinned, which is a bug in the program, and nothing was freed or
 *   changed.
 */
WEIR_API int weir_registry_destroy(struct weir_registry *registry);

/*
 * Get and pin the limiter of a key, creating it if there is none. The key is any key_len bytes, and
 * is copied; key_len may be 0. On failure *limiter is NULL.
 *
 * Returns 0, or a negative errno:
 * -EINVAL: key_len is above WEIR_KEY_MAX, or customize() made a configuration that is invalid or
 *   needs more than limiter_size bytes.
 * -ENOSPC: there are max limiters, and none is idle.
 * -EOVERFLOW: the limiter has 2^24 - 1 pins.
 * -ENOMEM: out of memory.
 *
 * Other errors are those that customize() returned.
 */
WEIR_API WEIR_MUST_CHECK int weir_registry_get(struct weir_registry *registry, const void *key,
					       size_t key_len, struct weir_limiter **limiter);

/* As weir_registry_get(), but never creates a limiter. Returns -ENOENT if there is none. */
WEIR_API WEIR_MUST_CHECK int weir_registry_find(struct weir_registry *registry, const void *key,
						size_t key_len, struct weir_limiter **limiter);

/*
 * Undo one pin of a limiter. If the limiter is not pinned, is NULL, or is not (or no longer) one of
 * this registry's, nothing happens except that the call is counted (weir_registry_stats.bad_puts).
 */
WEIR_API void weir_registry_put(struct weir_registry *registry, struct weir_limiter *limiter);

/*
 * Visit every limiter. Each one that exists throughout is visited once; one that comes or goes
 * meanwhile may or may not be visited. Each is pinned during its visit. A visit does not count as
 * use, so it does not protect a limiter from later eviction. key is valid until visit() returns. No
 * lock is held: visit() may call every function except weir_registry_destroy(). Stops early if
 * visit() returns false. Returns the number visited.
 */
WEIR_API size_t weir_registry_visit(struct weir_registry *registry,
				    bool (*visit)(void *arg, const void *key, size_t key_len,
						  struct weir_limiter *limiter),
				    void *arg);

/* Numbers of a registry. All but limiters only grow. */
struct weir_registry_stats {
	size_t size;       /* set by weir_registry_stats_init() */
	uint32_t limiters; /* limiters that exist now */
	uint64_t made;     /* limiters created */
	uint64_t evicted;  /* limiters evicted to make room */
	uint64_t refused;  /* gets that failed for a reason other than key_len */
	uint64_t bad_puts; /* invalid weir_registry_put() calls: bugs in the program */
};

#define weir_registry_stats_init(stats) weir_registry_stats_init_sized((stats), sizeof(*(stats)))
WEIR_API void weir_registry_stats_init_sized(struct weir_registry_stats *stats, size_t size);

/* Fill stats, which weir_registry_stats_init() has prepared. Takes the mutex. Any thread. */
WEIR_API void weir_registry_stats_take(struct weir_registry *registry,
				       struct weir_registry_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
