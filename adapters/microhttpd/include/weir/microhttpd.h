/*
 * weir/microhttpd.h - a limiter before the handler of a libmicrohttpd daemon.
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
 * A request asks for a permit when its headers are there, before its body is read. If it gets one,
 * the handler is called as ever; if not, the request is answered by 503 and Retry-After, and the
 * handler does not hear of it. The permit is given back when libmicrohttpd has done with the
 * request, however that came about: answered, broken off, timed out, or the daemon was stopped.
 *
 * Waiting. With weir_microhttpd_config.wait a request may wait in the queue of the limiter:
 *   - in a daemon started with MHD_ALLOW_SUSPEND_RESUME it is suspended, and no thread waits,
 *     however the daemon runs: a thread or a pool, by select, poll or epoll, or in your own loop;
 *   - with MHD_USE_THREAD_PER_CONNECTION its thread sleeps;
 *   - in any other daemon it does not wait: there is nobody who could.
 * A limiter without a queue lets nobody wait: no guard is made with both.
 *
 * A suspended request whose client has closed its end when the permit comes is not served. Over TCP
 * that is also a client who has only said that it will send no more, by shutdown(), since it cannot
 * be told from one who left; over a local socket it can, and is served.
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

/* A guard: what stands before the handler of one daemon. */
struct weir_microhttpd;

/*
 * What kind of call a request is. *call is an ordinary one; change what should differ. False: the
 * request is let through without asking the limiter, as a health check may be. Called by any of
 * the daemon's threads, once a request.
 */
typedef bool weir_microhttpd_classify_fn(void *arg, struct MHD_Connection *connection,
					 const char *url, const char *method,
					 struct weir_call *call);

/* weir_microhttpd_config_init() first, then what should differ. Zero means the default. */
struct weir_microhttpd_config {
	size_t size; /* set by weir_microhttpd_config_init() */

	struct weir_limiter *limiter;      /* required; must outlive the guard */
	MHD_AccessHandlerCallback handler; /* required */
	void *handler_arg;                 /* for the handler */
	/* Called for each request that the handler was called for, before its permit goes back. */
	MHD_RequestCompletedCallback completed; /* none */
	void *completed_arg;                    /* for completed */

	/* How long a request may wait for a permit; the limiter needs a queue. 0: not at all. */
	weir_dur wait;
	weir_microhttpd_classify_fn *classify; /* all are ordinary calls */
	void *classify_arg;                    /* for classify */

	/*
	 * For a daemon in a loop of your own: called when a connection was resumed, by any thread,
	 * which should do no more than wake the loop; then MHD_run(), or what you use, is due.
	 */
	void (*resumed)(void *arg); /* none */
	void *resumed_arg;          /* for resumed */

	unsigned retry_after; /* 1; seconds, what a refusal advises */
	/*
	 * Body and headers of refusals, in place of a short text. It stays yours, and must outlive
	 * the guard; retry_after is not added to it.
	 */
	struct MHD_Response *refusal;
};

/* Zero *config and note its size, so that a newer library knows what an older program does not. */
#define weir_microhttpd_config_init(config)                                                        \
	weir_microhttpd_config_init_sized((config), sizeof(*(config)))
WEIR_API void weir_microhttpd_config_init_sized(struct weir_microhttpd_config *config, size_t size);

/*
 * Check a configuration. 0 if a guard can be made of it, else -EINVAL and one sentence in why (may
 * be NULL), cut at why_size.
 */
WEIR_API int weir_microhttpd_config_check(const struct weir_microhttpd_config *config, char *why,
					  size_t why_size);

/*
 * Make a guard. The configuration is copied. 0; -EINVAL, as above; -ENOMEM; -EAGAIN: a thread could
 * not be started (there is one, which sleeps, if requests may wait).
 */
WEIR_API WEIR_MUST_CHECK int weir_microhttpd_create(const struct weir_microhttpd_config *config,
						    struct weir_microhttpd **guard);

/*
 * For MHD_start_daemon(): the handler and, with MHD_OPTION_NOTIFY_COMPLETED, what is called when a
 * request has ended; the guard is the argument of both. Without the latter each request leaks
 * its permit. With MHD_OPTION_URI_LOG_CALLBACK, that callback must return NULL.
 */
WEIR_API enum MHD_Result weir_microhttpd_handle(void *guard, struct MHD_Connection *connection,
						const char *url, const char *method,
						const char *version, const char *upload_data,
						size_t *upload_data_size, void **state);
WEIR_API void weir_microhttpd_completed(void *guard, struct MHD_Connection *connection,
					void **state, enum MHD_RequestTerminationCode end);

/*
 * The token of the request that the handler was called for, by the state that it was given; while
 * the request lasts. It may be detached, or released before the request ends: when the work is
 * done and the rest is sending, or with an outcome of your own. Otherwise the outcome is that of
 * the status: WEIR_DROPPED for 429 and 503, WEIR_FAILED for 502, WEIR_TIMED_OUT for 504,
 * WEIR_SUCCESS below 400, WEIR_IGNORE else; WEIR_CANCELLED if the client or the daemon broke it
 * off, WEIR_IGNORE if the connection timed out or failed.
 */
WEIR_API struct weir_token *weir_microhttpd_token(void **state);

/*
 * Before MHD_stop_daemon(): whoever waits is refused, and nobody waits any more. libmicrohttpd
 * does not allow that a daemon is stopped while connections are suspended.
 */
WEIR_API void weir_microhttpd_stop(struct weir_microhttpd *guard);

/* After MHD_stop_daemon(): free the guard. NULL is allowed. */
WEIR_API void weir_microhttpd_destroy(struct weir_microhttpd *guard);

#ifdef __cplusplus
}
#endif
#endif
