/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/libevent.h - a limiter in front of a callback of evhttp, libevent's HTTP server.
 *
 *	struct weir_evhttp_config config;
 *
 *	weir_evhttp_config_init(&config);
 *	config.limiter = limiter;
 *	config.base = base;
 *	config.callback = report;		your callback for evhttp_set_cb()
 *	weir_evhttp_create(&config, &guard);
 *	evhttp_set_cb(http, "/report", weir_evhttp_handle, guard);
 *	...
 *	weir_evhttp_destroy(guard);		before evhttp_free()
 *
 * A request that gets a permit is passed to the callback. Any other request is answered with 503
 * and Retry-After, and the callback is not called. If the callback answers before it returns, the
 * permit is released when it returns. A callback that answers later takes the token, keeps it with
 * the request, and releases it from any thread when the work is done:
 *
 *	job->token = weir_evhttp_take(guard);
 *	...
 *	weir_release(limiter, &job->token, WEIR_SUCCESS);
 *
 * A callback that does all its work before it returns blocks the loop: no more than one request is
 * ever in flight, and a limit has no effect. Limit callbacks that answer later.
 *
 * Waiting. With weir_evhttp_config.wait, a request may wait for a permit in the limiter's queue
 * while the loop goes on. The loop is woken when any thread makes room. A guard with a wait needs a
 * limiter with a queue.
 *
 * A request whose client has closed the connection by the time its permit is granted is not served.
 * Over TCP, a client that has only shut down its sending side counts as gone, since the two look
 * the same. Over a local socket they can be told apart, and the request is served.
 *
 * Thread safety. A guard, and all functions here, belong to the thread of its event base. A server
 * with several loops has a guard in each, and one limiter for all.
 */
#ifndef WEIR_LIBEVENT_H
#define WEIR_LIBEVENT_H

#include <event2/event.h>
#include <event2/http.h>

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A guard in front of one callback. */
struct weir_evhttp;

/* The type of evhttp_set_cb()'s callback. */
typedef void weir_evhttp_fn(struct evhttp_request *request, void *arg);

/*
 * Classify a request. *call is an ordinary call on entry; change the fields that should differ.
 * Return false to pass the request through without a permit, as for a health check.
 */
typedef bool weir_evhttp_classify_fn(struct evhttp_request *request, void *arg,
				     struct weir_call *call);

/* Call weir_evhttp_config_init(), then set what should differ. Zero means the default. */
struct weir_evhttp_config {
	size_t size; /* set by weir_evhttp_config_init() */

	struct weir_limiter *limiter; /* required; must outlive the guard */
	struct event_base *base;      /* required; of the evhttp */
	weir_evhttp_fn *callback;     /* required */
	void *callback_arg;           /* for callback */

	/* How long a request may wait for a permit; the limiter needs a queue. 0: do not wait. */
	weir_dur wait;
	weir_evhttp_classify_fn *classify; /* NULL: all are ordinary calls */
	void *classify_arg;                /* for classify */

	unsigned retry_after; /* seconds, of the Retry-After header; 1 */
	/* Must answer a refused request. NULL: an empty 503 with Retry-After. */
	weir_evhttp_fn *refuse;
	void *refuse_arg; /* for refuse */
};

/* Zero *config and set its size, by which a newer library recognizes an older program. */
#define weir_evhttp_config_init(config) weir_evhttp_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_evhttp_config_init_sized(struct weir_evhttp_config *config, size_t size);

/*
 * Check a configuration. Returns 0 if it is valid, otherwise -EINVAL with one sentence in why,
 * which may be NULL, cut at why_size.
 */
WEIR_API int weir_evhttp_config_check(const struct weir_evhttp_config *config, char *why,
				      size_t why_size);

/*
 * Create a guard. The configuration is copied. Returns 0, -EINVAL as above, -ENOMEM, or a negative
 * errno of eventfd().
 */
WEIR_API WEIR_MUST_CHECK int weir_evhttp_create(const struct weir_evhttp_config *config,
						struct weir_evhttp **guard);

/* For evhttp_set_cb() and evhttp_set_gencb(), with the guard as argument. */
WEIR_API void weir_evhttp_handle(struct evhttp_request *request, void *guard);

/*
 * In the callback: take the permit of its request, to be released by weir_release() when the work
 * is done. A permit that is not taken is released when the callback returns, with an outcome by the
 * status of the answer: WEIR_DROPPED for 429 and 503, WEIR_FAILED for 502, WEIR_TIMED_OUT for 504,
 * WEIR_SUCCESS below 400, WEIR_IGNORE for any other status and for none. The token is empty if the
 * request was passed through without a permit, or if the permit was taken already. A callback that
 * frees its request instead of answering it must take the token first.
 */
WEIR_API struct weir_token weir_evhttp_take(struct weir_evhttp *guard);

/*
 * Refuse all waiting requests, and free the guard. Call it before evhttp_free(), which does not
 * know of waiting requests, and not in the callback. Tokens that were taken stay valid. No request
 * may reach the guard afterwards. NULL is allowed.
 */
WEIR_API void weir_evhttp_destroy(struct weir_evhttp *guard);

#ifdef __cplusplus
}
#endif
#endif
