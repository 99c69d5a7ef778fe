/*
 * weir/registry.h - a limiter for each key: for each upstream host, each endpoint.
 *
 *	if (weir_registry_get(registry, host, strlen(host), &limiter) != 0)
 *		return reject(request);
 *	if (weir_try_acquire(limiter, &token) == 0) {
 *		error = call(host, request);
 *		weir_release(limiter, &token, outcome_of(error));
 *	}
 *	weir_registry_put(registry, limiter);
 *
 * A limiter is made when its key is first asked for. When the registry is full, an idle limiter
 * makes room for it: one that is not pinned, in which no call is in flight, with a permit or let
 * through, and in whose queue no call has a place, waiting or granted. If there are several, one is
 * chosen that was not asked for lately, if possible. What it had learned is forgotten.
 *
 * Pins. weir_registry_get() and weir_registry_find() pin the limiter, and each pin is undone by one
 * weir_registry_put(). Use a limiter only while you have it pinned. A token, or a place in the
 * queue, may outlast the pin: the limiter stays until the token is released, or the waiter has been
 * polled or cancelled to its end, and the same key gets the same limiter again, to do so.
 *
 * Thread safety. Every function here may be called from any thread at any time,
 * except those that say otherwise. To get a limiter that is there, to find one and to put one
 * takes no lock, allocates nothing and makes no system call; these may be called from signal
 * handlers, weir_registry_get() only if the limiter is there. To make one takes a mutex.
 *
 * Ownership. All limiters are the registry's, in memory that it has reserved from the
 * beginning: max * limiter_size bytes, more or less, of which those become resident that were used.
 *
 * Fork. As with a limiter: a child must not use its parent's registry. It may
 * make one of its own.
 */
#ifndef WEIR_REGISTRY_H
#define WEIR_REGISTRY_H

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_registry;

#define WEIR_KEY_MAX      255                 /* bytes of a key at most */
#define WEIR_REGISTRY_MAX (UINT32_C(1) << 20) /* limiters of a registry at most */

/*
 * How a registry is to be. weir_registry_config_init() first, then what should differ;
 * zero always means the default. A null pointer in place of all of it means all defaults.
 */
struct weir_registry_config {
	size_t size; /* set by weir_registry_config_init() */

	/*
	 * How each limiter is to be; NULL: all defaults. Copied, and its limit_config with it; all
	 * else that it points to must outlive the registry. An observer in it is told by several
	 * threads at once. A random source may not be in it, since it serves one limiter only.
	 */
	const struct weir_config *limiter;

	/*
	 * Change the configuration for one key, or refuse the key: 0, or a negative errno that
	 * weir_registry_get() then answers. *config is a copy of limiter, and what it points to
	 * need only last until this limiter is made, but for what a limiter keeps. Called
	 * before a limiter is made, with no lock held, perhaps by several threads at once and
	 * perhaps in vain, when another thread makes it first. NULL: all are alike.
	 */
	int (*customize)(void *arg, const void *key, size_t key_len, struct weir_config *config);
	void *arg;

	uint32_t max; /* 1024; 1 to WEIR_REGISTRY_MAX: limiters at once */

	/* What limiter needs; bytes for each limiter, if customize() asks for bigger ones. */
	size_t limiter_size;
};

#define weir_registry_config_init(config)                                                          \
	weir_registry_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_registry_config_init_sized(struct weir_registry_config *config, size_t size);

/*
 * Check a configuration. 0 if a registry can be made of it, else -EINVAL and one sentence in why
 * (may be NULL).
 */
WEIR_API int weir_registry_config_check(const struct weir_registry_config *config, char *why,
					size_t why_size);

/*
 * Make a registry without limiters. 0; -EINVAL: the configuration is no good; -ENOMEM; or what
 * getentropy() says, from which the hash has its key. End with weir_registry_destroy().
 */
WEIR_API WEIR_MUST_CHECK int weir_registry_create(const struct weir_registry_config *config,
						  struct weir_registry **registry);

/*
 * End a registry and all its limiters. No call on it or them may be going on; tokens still
 * out are forgotten. 0; -EBUSY: a limiter is still pinned, which is a bug of the
 * program: nothing was freed, and all is as before. NULL is allowed.
 */
WEIR_API int weir_registry_destroy(struct weir_registry *registry);

/*
 * Get and pin the limiter of a key: found, or made. The key is any key_len bytes; key_len may
 * be 0. It is copied. 0; -EINVAL: key_len is above WEIR_KEY_MAX, or customize() made a
 * configuration that is no good or needs more than limiter_size; -ENOSPC: there are max limiters,
 * and none is idle; -EOVERFLOW: it has 2^24 - 1 pins; -ENOMEM; or what customize() answered. On
 * failure *limiter is NULL.
 */
WEIR_API WEIR_MUST_CHECK int weir_registry_get(struct weir_registry *registry, const void *key,
					       size_t key_len, struct weir_limiter **limiter);

/* The same, but none is made. -ENOENT: there is none. */
WEIR_API WEIR_MUST_CHECK int weir_registry_find(struct weir_registry *registry, const void *key,
						size_t key_len, struct weir_limiter **limiter);

/*
 * Unpin a limiter: undo one pin. For a limiter that nobody has pinned, or that is not one of this
 * registry's (any more, NULL too), it does nothing but count (weir_registry_stats.bad_puts).
 */
WEIR_API void weir_registry_put(struct weir_registry *registry, struct weir_limiter *limiter);

/*
 * Visit every limiter: once each of those that are there all the time, perhaps one that comes
 * or goes meanwhile. Each is pinned while it is visited, and is not used by that: visits keep no
 * limiter from making room later. key is good until visit() returns. No lock is held: visit() may
 * call all functions but weir_registry_destroy(). Stops early if it answers false. The number
 * visited.
 */
WEIR_API size_t weir_registry_visit(struct weir_registry *registry,
				    bool (*visit)(void *arg, const void *key, size_t key_len,
						  struct weir_limiter *limiter),
				    void *arg);

/* Numbers of a registry, of which all but limiters only grow. */
struct weir_registry_stats {
	size_t size;       /* set by weir_registry_stats_init() */
	uint32_t limiters; /* there now */
	uint64_t made;     /* since the registry was */
	uint64_t evicted;  /* to make room */
	uint64_t refused;  /* gets without a limiter, for a reason other than key_len */
	uint64_t bad_puts; /* bugs of the program, caught */
};

#define weir_registry_stats_init(stats) weir_registry_stats_init_sized((stats), sizeof(*(stats)))
WEIR_API void weir_registry_stats_init_sized(struct weir_registry_stats *stats, size_t size);

/* Fill stats that weir_registry_stats_init() has prepared. Takes the mutex. Any thread. */
WEIR_API void weir_registry_stats_take(struct weir_registry *registry,
				       struct weir_registry_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
