/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/curl.h - adaptive concurrency limits for libcurl transfers, one limiter per origin.
 *
 *	weir_curl_create(NULL, &guard);
 *	weir_curl_multi_create(guard, &multi);
 *	...
 *	call.deadline = weir_now() + 100 * WEIR_MS;
 *	error = weir_curl_multi_add(multi, easy, &call);
 *	...
 *	do {
 *		weir_curl_multi_perform(multi, &running);
 *		while (weir_curl_multi_done(multi, &done))
 *			finish(done.easy, done.error, done.result);
 *		weir_curl_multi_poll(multi, NULL, 0, 1000, NULL);
 *	} while (running > 0);
 *
 * A transfer acquires a permit from the limiter of its origin: scheme://host:port, in lower case,
 * with the scheme's default port filled in. The caller may give another key. A transfer without a
 * permit is not sent: it waits in the limiter's queue, outside of libcurl, until its deadline. Each
 * transfer holds one permit, also with HTTP/2, where several transfers share a connection.
 *
 * Samples. A transfer's latency is CURLINFO_TOTAL_TIME minus CURLINFO_PRETRANSFER_TIME: from the
 * moment at which its request could be sent to the end of the response. Name resolution, connecting
 * and handshakes do not count. They are needed by transfers that find no idle connection, which are
 * more frequent under load, so they would look like a backend that slows down. The time that
 * libcurl itself lets a transfer wait for a connection (as with CURLMOPT_MAX_HOST_CONNECTIONS) does
 * count, since the transfer holds its permit meanwhile. The outcome is that of weir_curl_outcome(),
 * or of a function of the caller.
 *
 * Redirects that libcurl follows (CURLOPT_FOLLOWLOCATION) hold the permit of the first origin. If
 * the last origin is another one, the transfer is not a sample. To limit each step by its own
 * origin, follow redirects one by one with CURLINFO_REDIRECT_URL.
 *
 * Retry-After. A 429 or 503 response with Retry-After closes its origin for that time, at most for
 * retry_after_max: no permits are given out, and nothing is sent. The origin opens again when the
 * time has passed, or when a transfer that was in progress succeeds, since the origin then refused
 * single calls only.
 *
 * Thread safety. Any number of threads may use a guard. A multi may be used by one thread at a
 * time, as a multi handle of libcurl. The program calls curl_global_init().
 *
 * Fork. As with a limiter, a child must not use objects that its parent created.
 */
#ifndef WEIR_CURL_H
#define WEIR_CURL_H

#include <curl/curl.h>

#include <weir/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A guard: the limiters by origin, and the origins that are closed. */
struct weir_curl;

/*
 * The configuration of a guard. Call weir_curl_config_init(), then set the fields that should
 * differ. Zero always means the default. A null pointer instead of a configuration means all
 * defaults.
 */
struct weir_curl_config {
	size_t size; /* set by weir_curl_config_init() */

	/* The registry of the limiters; must outlive the guard. NULL: the guard creates one. */
	struct weir_registry *registry;
	/* For limiters of a registry that the guard creates. NULL: defaults, and a queue of 256. */
	const struct weir_config *limiter;

	/*
	 * Decides the outcome of a transfer instead of weir_curl_outcome(), which it may call. It
	 * is called once for each transfer, in the thread that performed it.
	 */
	enum weir_outcome (*outcome)(void *arg, CURL *easy, CURLcode result);
	void *arg;

	weir_dur retry_after_max; /* the longest time that an origin is closed; 1 minute */
};

#define weir_curl_config_init(config) weir_curl_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_curl_config_init_sized(struct weir_curl_config *config, size_t size);

/*
 * Create a guard; config may be NULL. Free it with weir_curl_destroy(). Returns 0, or:
 * -ENOMEM: out of memory
 * -EINVAL: both a registry and a limiter are given, or the limiter's configuration is invalid
 *          (weir_config_check() has a sentence)
 * Other errors are those of weir_registry_create().
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_create(const struct weir_curl_config *config,
					      struct weir_curl **guard);

/*
 * Free a guard. NULL is allowed. Returns 0, or:
 * -EBUSY: it has transfers or multis; nothing was done
 */
WEIR_API int weir_curl_destroy(struct weir_curl *guard);

/* The guard's registry, for metrics and inspection. Ownership does not change. */
WEIR_API struct weir_registry *weir_curl_registry(const struct weir_curl *guard);

/*
 * The outcome of a transfer, by its result and its response:
 *
 *	WEIR_SUCCESS    a status below 400; CURLE_OK without an HTTP status
 *	WEIR_DROPPED    429, 503; the connection was refused
 *	WEIR_TIMED_OUT  504; CURLE_OPERATION_TIMEDOUT; a connect that timed out
 *	WEIR_IGNORE     other statuses from 400: the request was refused early or failed after part
 *			of the work, so its latency is not that of the work; errors of the program
 *	WEIR_CANCELLED  a callback of the program ended it
 *	WEIR_FAILED     502; all other errors: no such host, no route, a broken connection
 *
 * If a 404 response takes as much work as others, count it: see weir_curl_config.outcome.
 */
WEIR_API enum weir_outcome weir_curl_outcome(CURL *easy, CURLcode result);

/* How to admit a transfer. All zero, or a null pointer: an ordinary call that does not wait. */
struct weir_curl_call {
	struct weir_call call; /* partition, priority, cost; or WEIR_CALL_BYPASS: not limited */
	/*
	 * The key of the limiter, at most WEIR_KEY_MAX bytes. NULL: the origin of
	 * CURLINFO_EFFECTIVE_URL, which is the URL that was set. Set the URL again on a handle that
	 * was redirected. A handle with CURLOPT_CURLU needs a key.
	 */
	const char *key;
	/*
	 * Wait for a permit until then, on weir_now()'s clock; the limiter needs a queue. 0: do not
	 * wait.
	 */
	weir_time deadline;
};

/*
 * Acquire a permit, call curl_easy_perform(), release the permit. Returns 0 if the transfer was
 * performed; *result is its result. Otherwise it was not performed:
 * -EAGAIN: the limit is reached and the call does not wait, the queue is full, or its priority is
 *          being shed
 * -ETIMEDOUT: no permit by the deadline
 * -EBUSY: Retry-After closes the origin until after the deadline
 * -EINVAL: there is no URL, the call is invalid, or it has a deadline and the limiter has no queue
 * -ENAMETOOLONG: the key is too long
 * -ENOSPC: the registry is full
 * -ENOMEM: out of memory
 * The handle's own timeouts begin with the transfer and do not bound the wait.
 *
 * curl_easy_perform() has cancellation points. If the thread is cancelled there, the permit is
 * released as WEIR_CANCELLED; the handle must not be used any more, as libcurl does not say what is
 * left of it.
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_perform(struct weir_curl *guard, CURL *easy,
					       const struct weir_curl_call *call, CURLcode *result);

/* A multi handle whose transfers acquire permits. */
struct weir_curl_multi;

/*
 * Create a multi handle. Free it with weir_curl_multi_destroy(), before the guard. Returns 0,
 * -ENOMEM, or a negative errno of eventfd().
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_multi_create(struct weir_curl *guard,
						    struct weir_curl_multi **multi);

/*
 * Remove all transfers, whose permits are released as WEIR_CANCELLED, and free the handle. The easy
 * handles belong to the caller, who may clean them up before or after. NULL is allowed.
 */
WEIR_API void weir_curl_multi_destroy(struct weir_curl_multi *multi);

/*
 * The underlying handle, to set options other than those of weir_curl_multi_sockets(), and for
 * curl_multi_wakeup(). To add, remove, drive and read transfers, use the functions here.
 */
WEIR_API CURLM *weir_curl_multi_handle(const struct weir_curl_multi *multi);

/*
 * Start a transfer, or queue it. Returns 0; weir_curl_multi_done() returns it when it has ended.
 * Otherwise it was not added:
 * -EAGAIN, -EBUSY, -EINVAL, -ENAMETOOLONG, -ENOSPC, -ENOMEM: as for weir_curl_perform()
 * -EEXIST: it is in a multi handle already
 * -EDEADLK: called from a callback of libcurl or from outcome()
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_multi_add(struct weir_curl_multi *multi, CURL *easy,
						 const struct weir_curl_call *call);

/*
 * Remove a transfer, queued or started. Call it before the handle is cleaned up. Its permit is
 * released as WEIR_CANCELLED, and weir_curl_multi_done() does not return it. Returns 0, or:
 * -ENOENT: it is not in this multi
 * -EDEADLK: called from a callback of libcurl or from outcome(); nothing was done
 */
WEIR_API int weir_curl_multi_remove(struct weir_curl_multi *multi, CURL *easy);

/*
 * The number of transfers that were cleaned up or removed by libcurl's own functions instead of the
 * one above, which is a bug of the program. It counts since the multi was created, as of when
 * libcurl last ran. With libcurl 8.4 and later their permits are released when libcurl runs next.
 * An earlier version says how many are missing but not which: their permits are released when a
 * handle of the same address is added, when libcurl's handle is empty, or with the multi. Handles
 * added by curl_multi_add_handle() may hide some.
 */
WEIR_API uint64_t weir_curl_multi_lost(const struct weir_curl_multi *multi);

/* A transfer that has ended. Its handle has been removed and belongs to the caller again. */
struct weir_curl_done {
	CURL *easy;
	int error;       /* 0 if it was performed; otherwise -ETIMEDOUT or -ENOMEM */
	CURLcode result; /* its result, if it was performed */
};

/* The next transfer that has ended. False if there is none now. */
WEIR_API bool weir_curl_multi_done(struct weir_curl_multi *multi, struct weir_curl_done *done);

/*
 * As curl_multi_perform() and curl_multi_poll(), extended to queued transfers: perform starts those
 * that have a permit and ends those whose deadline has passed. *running includes queued transfers.
 * perform releases the permits of transfers that have ended, before weir_curl_multi_done() returns
 * them. poll also returns when a permit is granted or a deadline passes.
 */
WEIR_API CURLMcode weir_curl_multi_perform(struct weir_curl_multi *multi, int *running);
WEIR_API CURLMcode weir_curl_multi_poll(struct weir_curl_multi *multi, struct curl_waitfd *extra,
					unsigned count, int timeout_ms, int *ready);

/*
 * For event loops: set the functions of CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION and
 * their data, before any other call. The socket function is called for one more socket, with a null
 * easy handle, which becomes readable when a permit is granted by another thread. The timer also
 * covers deadlines. socket_action and assign work as libcurl's and handle both. Returns 0, or:
 * -EINVAL: a function is NULL, or they are set already
 */
WEIR_API int weir_curl_multi_sockets(struct weir_curl_multi *multi, curl_socket_callback socket,
				     void *socket_data, curl_multi_timer_callback timer,
				     void *timer_data);
WEIR_API CURLMcode weir_curl_multi_socket_action(struct weir_curl_multi *multi,
						 curl_socket_t socket, int events, int *running);
WEIR_API CURLMcode weir_curl_multi_assign(struct weir_curl_multi *multi, curl_socket_t socket,
					  void *data);

#ifdef __cplusplus
}
#endif
#endif
