/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request and its permit.
 *
 * A request is decided on once, in the phase of limit_conn and limit_req. The decision is kept over
 * internal redirects, so that the error page of a refused request is served, and no request takes
 * two permits. Subrequests belong to their main request.
 *
 * The permit is released when nginx frees the request. nginx does this exactly once, however the
 * request ends, and by then all its results are known. Only with the latency of the upstream is
 * that too late: see filter.c.
 */
#include "module.h"

#include <errno.h>

static void forget(void *data);

/* An internal redirect clears the contexts of a request, but not its clean-up handlers. */
static struct guarded *find_cleanup(const ngx_http_request_t *r)
{
	for (ngx_pool_cleanup_t *cleanup = r->pool->cleanup; cleanup != NULL;
	     cleanup = cleanup->next)
		if (cleanup->handler == forget)
			return cleanup->data;
	return NULL;
}

struct guarded *request_guarded(ngx_http_request_t *r)
{
	struct guarded *guarded = ngx_http_get_module_ctx(r, ngx_http_weir_module);

	if (guarded == NULL && (r->internal || r->filter_finalize)) {
		guarded = find_cleanup(r);
		ngx_http_set_ctx(r, guarded, ngx_http_weir_module);
	}
	return guarded;
}

static struct guarded *guard(ngx_http_request_t *r, struct location *location)
{
	ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(struct guarded));
	struct guarded *guarded;

	if (cleanup == NULL)
		return NULL;
	guarded = cleanup->data;
	ngx_memzero(guarded, sizeof(*guarded));
	guarded->request = r;
	guarded->location = location;
	guarded->zone = location->zone;
	guarded->status = NGX_DECLINED;
	cleanup->handler = forget;
	ngx_http_set_ctx(r, guarded, ngx_http_weir_module);
	return guarded;
}

static void log_bad_value(ngx_http_request_t *r, const char *name, ngx_str_t *text)
{
	ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "weir: \"%V\" is not a valid %s", text,
		      name);
}

static ngx_int_t find_partition(ngx_http_request_t *r, struct guarded *guarded,
				struct weir_call *call)
{
	ngx_str_t text;
	ngx_int_t place;

	if (guarded->location->partition == NULL)
		return NGX_OK;
	if (ngx_http_complex_value(r, guarded->location->partition, &text) != NGX_OK)
		return NGX_ERROR;
	place = zone_partition(guarded->zone, &text);
	if (place != NGX_DECLINED)
		call->partition = guarded->zone->indices[place];
	guarded->partition = call->partition;
	return NGX_OK;
}

static ngx_int_t find_priority(ngx_http_request_t *r, const struct location *location,
			       struct weir_call *call)
{
	ngx_str_t text;

	if (location->priority == NULL)
		return NGX_OK;
	if (ngx_http_complex_value(r, location->priority, &text) != NGX_OK)
		return NGX_ERROR;
	if (text.len > 0 && !word_is_priority(&text, &call->priority))
		log_bad_value(r, "priority", &text);
	return NGX_OK;
}

static ngx_int_t find_cost(ngx_http_request_t *r, const struct location *location,
			   struct weir_call *call)
{
	ngx_str_t text;

	if (location->cost == NULL)
		return NGX_OK;
	if (ngx_http_complex_value(r, location->cost, &text) != NGX_OK)
		return NGX_ERROR;
	if (text.len > 0 && !word_is_cost(&text, &call->cost))
		log_bad_value(r, "cost", &text);
	return NGX_OK;
}

/* True for any value other than the empty one and "0", as elsewhere in nginx. */
static ngx_int_t find_bypass(ngx_http_request_t *r, const struct location *location,
			     struct weir_call *call)
{
	ngx_str_t text;

	if (location->bypass == NULL)
		return NGX_OK;
	if (ngx_http_complex_value(r, location->bypass, &text) != NGX_OK)
		return NGX_ERROR;
	if (text.len > 0 && !word_is(&text, "0"))
		call->flags = WEIR_CALL_BYPASS;
	return NGX_OK;
}

/* Set the partition, priority and cost of the call; most requests have none. */
static ngx_int_t classify(struct guarded *guarded, struct weir_call *call)
{
	ngx_http_request_t *r = guarded->request;

	*call = (struct weir_call){.cost = 1};
	if (find_partition(r, guarded, call) != NGX_OK ||
	    find_priority(r, guarded->location, call) != NGX_OK ||
	    find_cost(r, guarded->location, call) != NGX_OK ||
	    find_bypass(r, guarded->location, call) != NGX_OK)
		return NGX_ERROR;
	return NGX_OK;
}

static void detach_later(ngx_event_t *timer)
{
	request_detach((struct guarded *)((u_char *)timer - offsetof(struct guarded, timer)));
}

/* Called when the request holds its permit. */
void request_admitted(struct guarded *guarded, enum decision decision)
{
	const ngx_msec_t after = guarded->location->detach_after;

	guarded->decision = decision;
	guarded->status = NGX_DECLINED;
	guarded->admitted = ngx_current_msec;
	guarded->inflight = guarded->token.inflight;
	if (after == 0 || guarded->token.cost == 0)
		return;
	guarded->timer = (ngx_event_t){
		.handler = detach_later,
		.data = &no_connection,
		.log = guarded->request->connection->log,
	};
	ngx_add_timer(&guarded->timer, after);
}

static void add_retry_after(ngx_http_request_t *r, ngx_int_t seconds)
{
	ngx_table_elt_t *header = ngx_list_push(&r->headers_out.headers);
	u_char *text = ngx_pnalloc(r->pool, NGX_INT_T_LEN);

	if (header == NULL)
		return;
	*header = (ngx_table_elt_t){.hash = text != NULL};
	if (text == NULL)
		return;
	ngx_str_set(&header->key, "Retry-After");
	header->value.data = text;
	header->value.len = (size_t)(ngx_sprintf(text, "%i", seconds) - text);
}

static void log_refusal(const struct guarded *guarded)
{
	ngx_http_request_t *r = guarded->request;

	ngx_log_error(guarded->location->log_level, r->connection->log, 0,
		      "limiting requests%s by weir zone \"%V\": limit %uD, in flight %uD",
		      guarded->decision == DECISION_SHADOW ? ", shadow" : "", &guarded->zone->name,
		      guarded->limit, guarded->inflight);
}

void request_refused(struct guarded *guarded, enum decision decision)
{
	const struct location *location = guarded->location;

	guarded->decision = decision;
	guarded->status = (ngx_int_t)location->status;
	guarded->limit = weir_limit(guarded->zone->limiter);
	guarded->inflight = weir_inflight(guarded->zone->limiter);
	log_refusal(guarded);
	if (location->retry_after > 0)
		add_retry_after(guarded->request, location->retry_after);
}

/* Admit it without a permit. */
static void pass_in_shadow(struct guarded *guarded, struct weir_call *call)
{
	call->flags = WEIR_CALL_BYPASS;
	if (weir_try_acquire_for_at(guarded->zone->limiter, call, weir_now(), &guarded->token) != 0)
		return;
	request_admitted(guarded, DECISION_SHADOW);
	guarded->inflight = weir_inflight(guarded->zone->limiter);
	log_refusal(guarded);
}

static ngx_int_t decide(struct guarded *guarded)
{
	const struct location *location = guarded->location;
	struct weir_limiter *limiter = guarded->zone->limiter;
	struct weir_call call;
	bool bypass;

	if (classify(guarded, &call) != NGX_OK)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	bypass = call.flags != 0;
	guarded->limit = weir_limit(limiter);
	if (location->wait > 0 && !location->shadow && !bypass)
		return waiting_begin(guarded, &call);
	/* With the time, as the token's is also used for $weir_rtt: so each request is a sample. */
	if (weir_try_acquire_for_at(limiter, &call, weir_now(), &guarded->token) == 0)
		request_admitted(guarded, bypass ? DECISION_BYPASSED : DECISION_PASSED);
	else if (location->shadow)
		pass_in_shadow(guarded, &call);
	else if (waiting_delay(guarded))
		return NGX_AGAIN;
	else
		request_refused(guarded, DECISION_REJECTED);
	return guarded->status;
}

/* A refusal is answered once; the error page that it leads to is served. */
static ngx_int_t answer(struct guarded *guarded)
{
	const ngx_int_t status = guarded->status;

	guarded->status = NGX_DECLINED;
	return status;
}

ngx_int_t request_preaccess(ngx_http_request_t *r)
{
	struct location *location;
	struct guarded *guarded;
	ngx_int_t rc;

	location = ngx_http_get_module_loc_conf(r, ngx_http_weir_module);
	if (location->zone == NULL || r != r->main)
		return NGX_DECLINED;
	guarded = request_guarded(r);
	if (guarded != NULL)
		return answer(guarded);
	if (location->zone->limiter == NULL)
		return NGX_DECLINED;
	guarded = guard(r, location);
	if (guarded == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	rc = decide(guarded);
	guarded->status = NGX_DECLINED;
	return rc;
}

/* The wait is over: run the phases again, and the phase handler returns the status. */
void request_resume(struct guarded *guarded)
{
	ngx_http_request_t *r = guarded->request;
	ngx_connection_t *c = r->connection;

	ngx_http_set_log_request(c->log, r);
	if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
		ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
	} else {
		r->read_event_handler = ngx_http_block_reading;
		r->write_event_handler = ngx_http_core_run_phases;
		ngx_http_core_run_phases(r);
	}
	ngx_http_run_posted_requests(c);
}

static bool holds(const struct guarded *guarded)
{
	return guarded->token.state != 0 && !guarded->released && guarded->zone->limiter != NULL;
}

void request_detach(struct guarded *guarded)
{
	if (holds(guarded) && !guarded->detached &&
	    weir_detach(guarded->zone->limiter, &guarded->token) == 0)
		guarded->detached = true;
}

/* The time from admission until the upstream was asked, by nginx's clock. */
static weir_dur before_upstream(const struct guarded *guarded)
{
	const ngx_http_request_t *r = guarded->request;
	const ngx_http_upstream_state_t *states = r->upstream_states->elts;
	ngx_msec_int_t before = (ngx_msec_int_t)(r->upstream->start_time - guarded->admitted);

	for (ngx_uint_t i = 0; i + 1 < r->upstream_states->nelts; i++)
		before -= (ngx_msec_int_t)states[i].response_time;
	return before > 0 ? (weir_dur)before * WEIR_MS : 0;
}

static bool was_upstream(const ngx_http_request_t *r)
{
	return r->upstream != NULL && r->upstream_states != NULL && r->upstream_states->nelts > 0;
}

static weir_dur rtt_at(const struct guarded *guarded, weir_time now)
{
	weir_dur rtt = now - guarded->token.start, before;

	if (guarded->location->rtt == RTT_UPSTREAM && was_upstream(guarded->request)) {
		before = before_upstream(guarded);
		rtt -= before < rtt ? before : rtt - 1;
	}
	return rtt;
}

weir_dur request_rtt(const struct guarded *guarded)
{
	return guarded->released ? guarded->rtt : rtt_at(guarded, weir_now());
}

void request_release(struct guarded *guarded, enum weir_outcome outcome)
{
	const bool upstream = guarded->location->rtt == RTT_UPSTREAM;
	weir_time now;

	if (!holds(guarded))
		return;
	if (upstream && !was_upstream(guarded->request))
		outcome = WEIR_IGNORE;
	now = weir_now();
	guarded->rtt = rtt_at(guarded, now);
	guarded->released = true;
	if (guarded->timer.timer_set)
		ngx_del_timer(&guarded->timer);
	/* As if the request had been admitted when it was passed to the upstream. */
	if (upstream)
		guarded->token.start = now - guarded->rtt;
	weir_release_at(guarded->zone->limiter, now, &guarded->token, outcome);
}

static void forget(void *data)
{
	struct guarded *guarded = data;

	waiting_end(guarded);
	request_release(guarded, outcome_of(guarded));
}
