/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/microhttpd.h - a limiter in front of the handler of a libmicrohttpd daemon.
 *
 *	struct weir_microhttpd_config config;
 *
 *	weir_microhttpd_config_init(&config);
 *	config.limiter = limiter;
 *	config.handler = handle;		your MHD_AccessHandlerCallback
 *	weir_microhttpd_create(&config, &guard);
 *	daemon = MHD_start_daemon(flags, port, NULL, NULL, weir_microhttpd_handle, guard,
 *				  MHD_OPTION_NOTIFY_COMPLETED, weir_microhttpd_completed, guard,
 *				  MHD_OPTION_END);
 *	...
 *	weir_microhttpd_stop(guard);
 *	MHD_stop_daemon(daemon);
 *	weir_microhttpd_destroy(guard);
 *
 * A request acquires a permit once its headers have been read, before its body. With a permit, the
 * handler is called. Without one, the request is answered with 503 and Retry-After, and the handler
 * is not called. The permit is released when libmicrohttpd has finished the request: when it was
 * answered, aborted or timed out, or the daemon was stopped.
 *
 * Waiting. With weir_microhttpd_config.wait, a request may wait in the limiter's queue:
 *   - in a daemon started with MHD_ALLOW_SUSPEND_RESUME it is suspended, and no thread waits. This
 *     works with one thread or a pool, with select, poll or epoll, and in a loop of your own;
 *   - with MHD_USE_THREAD_PER_CONNECTION its thread sleeps;
 *   - in any other daemon it does not wait, as waiting would block the daemon.
 * A guard with a wait needs a limiter with a queue.
 *
 * A suspended request whose client has closed the connection by the time its permit is granted is
 * not served. Over TCP, a client that has only shut down its sending side counts as gone, since the
 * two look the same. Over a local socket they can be told apart, and the request is served.
 *
 * Thread safety. weir_microhttpd_handle(), weir_microhttpd_completed() and weir_microhttpd_token()
 * are called by libmicrohttpd's threads, or in its callbacks; weir_microhttpd_stop() by any thread.
 */
#ifndef WEIR_MICROHTTPD_H
#define WEIR_MICROHTTPD_H

#include <microhttpd.h>

#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A guard in front of the handler of one daemon. */
struct weir_microhttpd;

/*
 * Classify a request. *call is an ordinary call on entry; change the fields that should differ.
 * Return false to pass the request through without a permit, as for a health check. Called once per
 * request, by any of the daemon's threads.
 */
typedef bool weir_microhttpd_classify_fn(void *arg, struct MHD_Connection *connection,
					 const char *url, const char *method,
					 struct weir_call *call);

/* Call weir_microhttpd_config_init(), then set what should differ. Zero means the default. */
struct weir_microhttpd_config {
	size_t size; /* set by weir_microhttpd_config_init() */

	struct weir_limiter *limiter;      /* required; must outlive the guard */
	MHD_AccessHandlerCallback handler; /* required */
	void *handler_arg;                 /* for the handler */
	/* Called for each request that reached the handler, before its permit is released. */
	MHD_RequestCompletedCallback completed; /* may be NULL */
	void *completed_arg;                    /* for completed */

	/* How long a request may wait for a permit; the limiter needs a queue. 0: do not wait. */
	weir_dur wait;
	weir_microhttpd_classify_fn *classify; /* NULL: all are ordinary calls */
	void *classify_arg;                    /* for classify */

	/*
	 * For a daemon in a loop of your own: called from any thread when a connection was resumed.
	 * It should only wake the loop, which then calls MHD_run() or its equivalent.
	 */
	void (*resumed)(void *arg); /* may be NULL */
	void *resumed_arg;          /* for resumed */

	unsigned retry_after; /* seconds, of the Retry-After header; 1 */
	/*
	 * The response to refused requests. NULL: a short text. It belongs to the caller and must
	 * outlive the guard. retry_after is not added to it.
	 */
	struct MHD_Response *refusal;
};

/* Zero *config and set its size, by which a newer library recognizes an older program. */
#define weir_microhttpd_config_init(config)                                                        \
	weir_microhttpd_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_microhttpd_config_init_sized(struct weir_microhttpd_config *config, size_t size);

/*
 * Check a configuration. Returns 0 if it is valid, otherwise -EINVAL with one sentence in why,
 * which may be NULL, cut at why_size.
 */
WEIR_API int weir_microhttpd_config_check(const struct weir_microhttpd_config *config, char *why,
					  size_t why_size);

/*
 * Create a guard. The configuration is copied. Returns 0, or:
 * -EINVAL: as above
 * -ENOMEM: out of memory
 * -EAGAIN: the thread could not be started that a guard with a wait needs
 */
WEIR_API WEIR_MUST_CHECK int weir_microhttpd_create(const struct weir_microhttpd_config *config,
						    struct weir_microhttpd **guard);

/*
 * For MHD_start_daemon(): the handler, and the callback of MHD_OPTION_NOTIFY_COMPLETED. The guard
 * is the argument of both. Without the callback each request leaks its permit. A callback of
 * MHD_OPTION_URI_LOG_CALLBACK must return NULL.
 */
WEIR_API enum MHD_Result weir_microhttpd_handle(void *guard, struct MHD_Connection *connection,
						const char *url, const char *method,
						const char *version, const char *upload_data,
						size_t *upload_data_size, void **state);
WEIR_API void weir_microhttpd_completed(void *guard, struct MHD_Connection *connection,
					void **state, enum MHD_RequestTerminationCode end);

/*
 * In the handler: the token of its request, found by the handler's state argument; valid while the
 * request lasts. The token may be detached, or released before the request ends: when the work is
 * done and only sending is left, or with another outcome. Otherwise the outcome depends on the
 * status: WEIR_DROPPED for 429 and 503, WEIR_FAILED for 502, WEIR_TIMED_OUT for 504, WEIR_SUCCESS
 * below 400, otherwise WEIR_IGNORE; WEIR_CANCELLED if the client or the daemon aborted the request,
 * WEIR_IGNORE if the connection timed out or failed.
 */
WEIR_API struct weir_token *weir_microhttpd_token(void **state);

/*
 * Call before MHD_stop_daemon(): all waiting requests are refused, and none waits from then on. A
 * daemon must not be stopped while connections are suspended.
 */
WEIR_API void weir_microhttpd_stop(struct weir_microhttpd *guard);

/* Free the guard, after MHD_stop_daemon(). NULL is allowed. */
WEIR_API void weir_microhttpd_destroy(struct weir_microhttpd *guard);

#ifdef __cplusplus
}
#endif
#endif
