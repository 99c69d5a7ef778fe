/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations shared by the files of the nginx module.
 *
 *	module.c    the directives, and the hooks that nginx calls at start and exit
 *	settings.c  weir_zone: its parameters and their checks
 *	zone.c      a zone's limiter in shared memory, over reloads and crashes of workers
 *	words.c     parsing of values in directives and variables
 *	location.c  all other directives
 *	outcome.c   the outcome for each status
 *	request.c   a request: its admission, its permit, and its outcome
 *	waiting.c   requests that wait for a permit, or whose refusal is delayed
 *	filter.c    properties of a request that are known only when its response passes
 *	variables.c $weir_...
 *	status.c    the status page
 *
 * A request belongs to one thread, the worker's. State shared with other threads is in waiting.c.
 */
#ifndef WEIR_NGINX_MODULE_H
#define WEIR_NGINX_MODULE_H

#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <weir/weir.h>

extern ngx_module_t ngx_http_weir_module;

#define WHY_MAX 512 /* bytes; the size of an error sentence */

struct waking;

/* A zone: one limiter for all workers. */
struct zone {
	ngx_str_t name;
	ngx_str_t text; /* the parameters; unchanged at a reload: the limiter is kept */
	struct weir_config config;
	alignas(max_align_t) u_char limit_config[WEIR_LIMIT_CONFIG_MAX];
	ngx_str_t limit; /* as configured, for display */
	struct weir_partition partitions[WEIR_PARTITIONS_MAX];
	uint32_t workers;          /* the maximum that can be attached at once */
	const struct zone *before; /* of that name in the configuration before the reload */
	void *block;               /* in shared memory */
	size_t size;               /* of the block, in bytes */

	/* Per worker. */
	struct weir_limiter *limiter; /* NULL: not attached, and nothing is limited */
	struct weir_cpu *cpu;         /* for limits that use CPU utilization */
	uint16_t indices[WEIR_PARTITIONS_MAX];
	ngx_event_t chores;
	struct waking *waking;
	pthread_t listener;
	bool listens;
};

/* All zones, and the state by which waiting requests of a worker are woken. */
struct zones {
	ngx_array_t all; /* of struct zone * */
	struct waking *waking;
};

enum rtt {
	RTT_REQUEST,  /* from admission until nginx has finished the request */
	RTT_UPSTREAM, /* while an upstream processes it */
};

/* The outcome of each status from 0 to 599. */
struct outcomes {
	u_char of[600];
};

/* The settings of a location. */
struct location {
	struct zone *zone; /* NULL: no limit */
	ngx_http_complex_value_t *partition, *priority, *cost, *bypass;
	ngx_msec_t wait; /* in ms; 0: requests do not wait */

	ngx_uint_t status; /* of a refusal */
	ngx_int_t retry_after;
	ngx_uint_t log_level;
	ngx_flag_t shadow;
	ngx_uint_t rtt;
	struct outcomes *outcomes;

	ngx_flag_t detach; /* set by weir_detach, or inherited */
	ngx_flag_t detach_upgraded;
	ngx_msec_t detach_after;
	ngx_http_complex_value_t *detach_if;

	ngx_flag_t status_page;
};

/* The decision on a request. */
enum decision {
	DECISION_NONE,
	DECISION_WAITING, /* in the queue; final if its client disconnects there */
	DECISION_PASSED,
	DECISION_WAITED,   /* admitted after it waited in the queue */
	DECISION_BYPASSED, /* admitted without a limit, as configured */
	DECISION_SHADOW,   /* admitted in shadow mode, where it would have been refused */
	DECISION_REJECTED,
	DECISION_EXPIRED, /* rejected after its time in the queue had passed */
};

/* A request that a limiter handles. Lives until the request's pool is destroyed. */
struct guarded {
	ngx_http_request_t *request;
	struct location *location; /* the first limited location; redirects do not change it */
	struct zone *zone;
	struct weir_token token;
	struct weir_wait wait;
	enum decision decision;
	ngx_int_t status; /* the return value of the phase handler, used once */
	uint16_t partition;
	bool waiting;  /* in the limiter's queue */
	bool delaying; /* refused, and the refusal is delayed */
	bool queued;   /* in waking.granted; under the same lock */
	bool detached;
	bool released;
	uint32_t limit, inflight; /* at the decision */
	weir_time asked;
	weir_dur waited;
	weir_dur rtt;
	ngx_msec_t admitted, deadline; /* by nginx's clock */
	ngx_event_t timer;
	ngx_queue_t link; /* in waking.granted */
};

/* For timers whose data is not a connection: nginx's debug log prints its number. */
extern ngx_connection_t no_connection;

/* Log a configuration error; nginx adds the file and line. */
#define REFUSE(cf, ...) (ngx_conf_log_error(NGX_LOG_EMERG, (cf), 0, __VA_ARGS__), NGX_CONF_ERROR)

/* words.c */
bool word_is(const ngx_str_t *word, const char *text);
bool word_is_named(const ngx_str_t *word, const char *name, ngx_str_t *value); /* name=value */
bool word_is_priority(const ngx_str_t *word, int16_t *priority);
bool word_is_cost(const ngx_str_t *word, uint32_t *cost);

/* settings.c */
char *zone_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf);

/* zone.c */
ngx_int_t zone_share(ngx_conf_t *cf, struct zone *zone);
struct zone *zone_find(struct zones *zones, const ngx_str_t *name);
void zone_attach(struct zone *zone, struct waking *waking, ngx_log_t *log);
void zone_detach(struct zone *zone);
ngx_int_t zone_partition(const struct zone *zone, const ngx_str_t *name);

/* location.c */
void *location_create(ngx_conf_t *cf);
char *location_merge(ngx_conf_t *cf, void *parent, void *child);
char *guard_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf);
char *status_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf);
char *retry_after_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf);
char *detach_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf);

/* outcome.c */
char *outcome_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf);
extern const struct outcomes outcome_defaults;
enum weir_outcome outcome_of(const struct guarded *guarded);

/* request.c */
ngx_int_t request_preaccess(ngx_http_request_t *r);
struct guarded *request_guarded(ngx_http_request_t *r);
void request_admitted(struct guarded *guarded, enum decision decision);
void request_refused(struct guarded *guarded, enum decision decision);
void request_resume(struct guarded *guarded);
void request_detach(struct guarded *guarded);
void request_release(struct guarded *guarded, enum weir_outcome outcome);
weir_dur request_rtt(const struct guarded *guarded);

/* waiting.c */
struct waking *waking_create(ngx_cycle_t *cycle);
void waking_listen(struct zone *zone, ngx_log_t *log);
void waking_stop(struct zone *zone);
ngx_int_t waiting_begin(struct guarded *guarded, const struct weir_call *call);
bool waiting_delay(struct guarded *guarded);
void waiting_end(struct guarded *guarded);

/* filter.c */
ngx_int_t filter_install(void);

/* variables.c */
ngx_int_t variables_add(ngx_conf_t *cf);

/* status.c */
char *status_page_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf);

/* page.c, made of page.html */
extern const char status_page[];
extern const size_t status_page_size;

#endif
