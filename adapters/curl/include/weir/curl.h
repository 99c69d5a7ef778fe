/*
 * weir/curl.h - adaptive limits on what libcurl sends: a limiter for each origin.
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
 * A transfer asks for a permit of its origin's limiter, as scheme://host:port, in lower case and
 * with the port that goes without saying, or of the limiter of any key that the caller gives.
 * Without a permit nothing is sent: it waits in the limiter's queue, outside of libcurl, until its
 * deadline. One transfer is one permit, with HTTP/2 too, where many share a connection.
 *
 * What the limiter learns. A transfer's latency is CURLINFO_TOTAL_TIME without
 * CURLINFO_PRETRANSFER_TIME: from when its request could be sent to the end of the answer. To
 * resolve, connect and shake hands is left out: it falls to calls that find no idle connection,
 * most when there are more of them, and would look like a callee that gets slower with load.
 * Where libcurl itself lets a transfer wait for a connection (CURLMOPT_MAX_HOST_CONNECTIONS and
 * the like) that counts: its permit is out meanwhile. How it went is said by weir_curl_outcome(),
 * or by a function of the caller's.
 *
 * Redirects that libcurl follows (CURLOPT_FOLLOWLOCATION) hold the permit of where they began.
 * If that was another origin than where they ended, the transfer is no sample of either. To have
 * each step limited where it goes, follow them one by one: CURLINFO_REDIRECT_URL.
 *
 * Retry-After. An answer of 429 or 503 with Retry-After closes its origin for so long, but for
 * retry_after_max at most: permits are kept, and nothing is sent. It is open again when the time
 * is over, or when a transfer that was still out succeeds: then the origin had refused one call,
 * and is not away.
 *
 * Thread safety. A guard may be used by any number of threads. A multi is one thread's at a time,
 * as curl's. curl_global_init() is the program's business.
 *
 * Fork. As with a limiter: a child must not use what its parent made.
 */
#ifndef WEIR_CURL_H
#define WEIR_CURL_H

#include <curl/curl.h>

#include <weir/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What transfers are guarded with: limiters by origin, and which origins are closed. */
struct weir_curl;

/*
 * How a guard is to be. weir_curl_config_init() first, then what should differ; zero always means
 * the default. A null pointer in place of all of it means all defaults.
 */
struct weir_curl_config {
	size_t size; /* set by weir_curl_config_init() */

	/* Where the limiters are; must outlive the guard. NULL: the guard makes a registry. */
	struct weir_registry *registry;
	/* Of each limiter of that registry. NULL: all defaults, and a queue of 256. */
	const struct weir_config *limiter;

	/*
	 * How a transfer went, in place of weir_curl_outcome(), which it may call. Called once for
	 * each that was performed, in the thread that performed it, with the handle to look at.
	 */
	enum weir_outcome (*outcome)(void *arg, CURL *easy, CURLcode result);
	void *arg;

	weir_dur retry_after_max; /* 1 minute: closed no longer, whatever Retry-After says */
};

#define weir_curl_config_init(config) weir_curl_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_curl_config_init_sized(struct weir_curl_config *config, size_t size);

/*
 * Make a guard; config may be NULL. 0; -ENOMEM; -EINVAL: there is a registry and a limiter, or the
 * limiter is no good (weir_config_check() says why). End with weir_curl_destroy().
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_create(const struct weir_curl_config *config,
					      struct weir_curl **guard);

/*
 * End a guard. 0; -EBUSY: there are transfers or multis of it, and nothing was done. NULL is
 * allowed.
 */
WEIR_API int weir_curl_destroy(struct weir_curl *guard);

/* Its registry, with the limiters by origin: to look at, to show. It stays whose it is. */
WEIR_API struct weir_registry *weir_curl_registry(const struct weir_curl *guard);

/*
 * How a transfer went, by its result and what its handle says of the answer:
 *
 *	WEIR_SUCCESS    an answer below 400; any result CURLE_OK without a status of HTTP's
 *	WEIR_DROPPED    429, 503; the connection was refused
 *	WEIR_TIMED_OUT  504; CURLE_OPERATION_TIMEDOUT; a connect that timed out
 *	WEIR_IGNORE     other answers from 400 on: refused in front, or failed after any part of
 *			the work, they take a time of their own; what the program did wrong
 *	WEIR_CANCELLED  a callback of the program's ended it
 *	WEIR_FAILED     502; all other errors: no name, no route, a connection that broke
 *
 * Where answers of 404 are the work that others are, they had better count: see
 * weir_curl_config.outcome.
 */
WEIR_API enum weir_outcome weir_curl_outcome(CURL *easy, CURLcode result);

/* What a transfer asks for. All zero, or a null pointer: an ordinary one, that does not wait. */
struct weir_curl_call {
	struct weir_call call; /* partition, priority, cost; or WEIR_CALL_BYPASS: not limited */
	/*
	 * Of which limiter; at most WEIR_KEY_MAX bytes. NULL: of the origin of
	 * CURLINFO_EFFECTIVE_URL, which is the URL that was set. A handle that was redirected
	 * and is used again wants its URL set again; one with CURLOPT_CURLU wants a key.
	 */
	const char *key;
	/*
	 * To wait for a permit until then, on weir_now()'s clock; the limiter needs a queue. 0:
	 * not at all.
	 */
	weir_time deadline;
};

/*
 * Acquire, curl_easy_perform(), release. 0: it was performed, and *result is what that answered.
 * Else it was not: -EAGAIN: the limit is reached, and nobody may wait, or too many do, or its
 * priority is being shed; -ETIMEDOUT: no permit by the deadline; -EBUSY: the origin is closed by
 * Retry-After until after the deadline; -EINVAL: there is no URL, or the call is not well-formed,
 * or it has a deadline where the limiter has no queue; -ENAMETOOLONG; -ENOSPC: the registry is
 * full; -ENOMEM. The wait is not bounded by the handle's own timeouts, which begin with the
 * transfer.
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_perform(struct weir_curl *guard, CURL *easy,
					       const struct weir_curl_call *call, CURLcode *result);

/* A multi handle whose transfers have permits. */
struct weir_curl_multi;

/*
 * Make a multi handle. 0; -ENOMEM; -EMFILE and the like, from eventfd(). End with
 * weir_curl_multi_destroy(), before the guard.
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_multi_create(struct weir_curl *guard,
						    struct weir_curl_multi **multi);

/*
 * Give up all transfers, whose permits go back as WEIR_CANCELLED, and end the handle. The easy
 * handles are the caller's, and may be ended before or after. NULL is allowed.
 */
WEIR_API void weir_curl_multi_destroy(struct weir_curl_multi *multi);

/*
 * curl's handle: to set options, but for those of weir_curl_multi_sockets(), and to wake it. What
 * is added, removed, driven and read goes through the functions here.
 */
WEIR_API CURLM *weir_curl_multi_handle(const struct weir_curl_multi *multi);

/*
 * Begin a transfer, or let it wait. 0: weir_curl_multi_done() will tell how it ended. Else it was
 * not added: -EAGAIN, -EBUSY, -EINVAL, -ENAMETOOLONG, -ENOSPC, -ENOMEM, as for weir_curl_perform();
 * -EEXIST: it is in a multi handle already; -EDEADLK: this is a callback of curl's or
 * outcome().
 */
WEIR_API WEIR_MUST_CHECK int weir_curl_multi_add(struct weir_curl_multi *multi, CURL *easy,
						 const struct weir_curl_call *call);

/*
 * Give up a transfer, wherever it is; do so before its handle is cleaned up. Its permit goes back
 * as WEIR_CANCELLED, and it will not be told. 0; -ENOENT: it is not here; -EDEADLK: this is a
 * callback of curl's or outcome(), and nothing was done.
 */
WEIR_API int weir_curl_multi_remove(struct weir_curl_multi *multi, CURL *easy);

/*
 * How many transfers were cleaned up, or removed, by curl's own functions in place of the one
 * above: bugs of the program, caught. Since the multi was made, and as of when curl ran last. From
 * libcurl 8.4 on their permits go back when curl runs next. An older one says how many are missing,
 * but not which: there they go back when the address of the handle is added again, when nothing is
 * left in curl's handle, or with the multi. Handles added by curl_multi_add_handle() may hide some.
 */
WEIR_API uint64_t weir_curl_multi_lost(const struct weir_curl_multi *multi);

/* How a transfer ended. Its handle is out of the multi, and the caller's again. */
struct weir_curl_done {
	CURL *easy;
	int error;       /* 0: it was performed; or why not: -ETIMEDOUT, -ENOMEM */
	CURLcode result; /* how it went, if it was performed */
};

/* The next transfer that has ended. False: there is none now. */
WEIR_API bool weir_curl_multi_done(struct weir_curl_multi *multi, struct weir_curl_done *done);

/*
 * As curl_multi_perform() and curl_multi_poll(): with those that wait, which are begun, and end at
 * their deadlines. *running counts them too. Permits of transfers that ended go back in perform,
 * before they are told. poll returns when a permit has come or a deadline has passed.
 */
WEIR_API CURLMcode weir_curl_multi_perform(struct weir_curl_multi *multi, int *running);
WEIR_API CURLMcode weir_curl_multi_poll(struct weir_curl_multi *multi, struct curl_waitfd *extra,
					unsigned count, int timeout_ms, int *ready);

/*
 * For event loops: the functions of CURLMOPT_SOCKETFUNCTION and CURLMOPT_TIMERFUNCTION, and their
 * data. Set them first. One socket more is shown, with a null pointer for its easy handle, by
 * which other threads tell that a permit has come; the timer also runs for deadlines.
 * socket_action and assign are curl's, and know of both. 0; -EINVAL: a function is NULL, or they
 * are set already.
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
