/*
 * weir/libevent.h - a limiter before a callback of libevent's HTTP server, evhttp.
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
 * A request that gets a permit is given to the callback as ever; any other is answered by 503 and
 * Retry-After, and the callback does not hear of it. A callback that answers before it returns
 * need not know of the guard: the permit goes back as it returns. One that answers later takes the
 * token, keeps it with the request, and releases it, in any thread, when the work is done:
 *
 *	job->token = weir_evhttp_take(guard);
 *	...
 *	weir_release(limiter, &job->token, WEIR_SUCCESS);
 *
 * A callback that does all its work before it returns keeps the loop from everything else: there
 * is never more than one in flight, nor anything that a limit could do about it. Limit what is
 * answered later.
 *
 * Waiting. With weir_evhttp_config.wait a request may wait for a permit in the limiter's queue; the
 * loop goes on meanwhile. Whichever thread makes room, the loop is woken. A limiter without a
 * queue lets nobody wait: no guard is made with both.
 *
 * A request whose client has closed its end when the permit comes is not served. Over TCP that is
 * also a client who has only said that it will send no more, by shutdown(), since it cannot be told
 * from one who left; over a local socket it can, and is served.
 *
 * Thread safety. A guard belongs to the thread of its event base, and all functions here with it. A
 * server with several loops has a guard in each, with one limiter for all.
 */
#ifndef WEIR_LIBEVENT_H
#define WEIR_LIBEVENT_H

#include <event2/event.h>
#include <event2/http.h>

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A guard: what stands before one callback. */
struct weir_evhttp;

/* As evhttp_set_cb() takes it. */
typedef void weir_evhttp_fn(struct evhttp_request *request, void *arg);

/*
 * What kind of call a request is. *call is an ordinary one; change what should differ. False: the
 * request is let through without asking the limiter, as a health check may be.
 */
typedef bool weir_evhttp_classify_fn(struct evhttp_request *request, void *arg,
				     struct weir_call *call);

/* weir_evhttp_config_init() first, then what should differ. Zero means the default. */
struct weir_evhttp_config {
	size_t size; /* set by weir_evhttp_config_init() */

	struct weir_limiter *limiter; /* required; must outlive the guard */
	struct event_base *base;      /* required; of the evhttp */
	weir_evhttp_fn *callback;     /* required */
	void *callback_arg;           /* for callback */

	/* How long a request may wait for a permit; the limiter needs a queue. 0: not at all. */
	weir_dur wait;
	weir_evhttp_classify_fn *classify; /* all are ordinary calls */
	void *classify_arg;                /* for classify */

	unsigned retry_after; /* 1; seconds, what a refusal advises */
	/* Answers those who are refused, in place of a bare 503 with Retry-After. It has to. */
	weir_evhttp_fn *refuse;
	void *refuse_arg; /* for refuse */
};

/* Zero *config and note its size, so that a newer library knows what an older program does not. */
#define weir_evhttp_config_init(config) weir_evhttp_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_evhttp_config_init_sized(struct weir_evhttp_config *config, size_t size);

/*
 * Check a configuration. 0 if a guard can be made of it, else -EINVAL and one sentence in why (may
 * be NULL), cut at why_size.
 */
WEIR_API int weir_evhttp_config_check(const struct weir_evhttp_config *config, char *why,
				      size_t why_size);

/*
 * Make a guard. The configuration is copied. 0; -EINVAL, as above; -ENOMEM; or what eventfd() says.
 */
WEIR_API WEIR_MUST_CHECK int weir_evhttp_create(const struct weir_evhttp_config *config,
						struct weir_evhttp **guard);

/* For evhttp_set_cb() and evhttp_set_gencb(), with the guard as argument. */
WEIR_API void weir_evhttp_handle(struct evhttp_request *request, void *guard);

/*
 * In the callback: the permit of its request, to be released by weir_release() when the work is
 * done. If it is left, it is released as the callback returns, and the outcome is by the status of
 * the answer: WEIR_DROPPED for 429 and 503, WEIR_FAILED for 502, WEIR_TIMED_OUT for 504,
 * WEIR_SUCCESS below 400, WEIR_IGNORE for any other and for none. The token holds nothing if the
 * request was let through, or the permit was taken already. A callback that frees its
 * request in place of answering it must take the token before.
 */
WEIR_API struct weir_token weir_evhttp_take(struct weir_evhttp *guard);

/*
 * Refuse who waits, and free the guard; before evhttp_free(), which knows nothing of those who
 * wait. Tokens that were taken are not concerned. No request may come to the guard any more, and
 * it must not be called in the callback. NULL is allowed.
 */
WEIR_API void weir_evhttp_destroy(struct weir_evhttp *guard);

#ifdef __cplusplus
}
#endif
#endif
