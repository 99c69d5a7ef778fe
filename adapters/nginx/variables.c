/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * $weir_...: the decision on a request and its figures, for logs, headers and conditions. They are
 * unset if no limiter has handled the request.
 */
#include "module.h"

#include <stdio.h>

enum { TEXT_MAX = 32 };

static const char *const decisions[] = {
	[DECISION_NONE] = "",
	[DECISION_WAITING] = "WAITING",
	[DECISION_PASSED] = "PASSED",
	[DECISION_WAITED] = "WAITED",
	[DECISION_BYPASSED] = "BYPASSED",
	[DECISION_SHADOW] = "SHADOW",
	[DECISION_REJECTED] = "REJECTED",
	[DECISION_EXPIRED] = "EXPIRED",
};

static void set_text(ngx_http_variable_value_t *value, const char *text, size_t length)
{
	value->data = (u_char *)(uintptr_t)text;
	value->len = (unsigned)length & 0xfffffffu;
	value->valid = 1;
	value->no_cacheable = 0;
	value->not_found = 0;
}

static struct guarded *decided(ngx_http_request_t *r, ngx_http_variable_value_t *value)
{
	struct guarded *guarded = request_guarded(r->main);

	if (guarded != NULL && guarded->decision != DECISION_NONE)
		return guarded;
	value->not_found = 1;
	return NULL;
}

static ngx_int_t status(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
	const struct guarded *guarded = decided(r, value);
	const char *text;

	(void)data;
	if (guarded == NULL)
		return NGX_OK;
	text = guarded->detached ? "DETACHED" : decisions[guarded->decision];
	set_text(value, text, ngx_strlen(text));
	return NGX_OK;
}

static ngx_int_t zone(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
	const struct guarded *guarded = decided(r, value);

	(void)data;
	if (guarded != NULL)
		set_text(value, (char *)guarded->zone->name.data, guarded->zone->name.len);
	return NGX_OK;
}

static ngx_int_t partition(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
	const struct guarded *guarded = decided(r, value);
	const char *name = "unknown";

	(void)data;
	if (guarded == NULL)
		return NGX_OK;
	if (guarded->zone->config.partition_count == 0) {
		value->not_found = 1;
		return NGX_OK;
	}
	for (uint32_t i = 0; i < guarded->zone->config.partition_count; i++)
		if (guarded->zone->indices[i] == guarded->partition)
			name = guarded->zone->partitions[i].name;
	set_text(value, name, ngx_strlen(name));
	return NGX_OK;
}

static ngx_int_t number(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
	const struct guarded *guarded = decided(r, value);
	u_char *text;

	if (guarded == NULL)
		return NGX_OK;
	text = ngx_pnalloc(r->pool, TEXT_MAX);
	if (text == NULL)
		return NGX_ERROR;
	set_text(value, (char *)text,
		 (size_t)(ngx_sprintf(text, "%uD",
				      *(const uint32_t *)(const void *)((const u_char *)guarded +
									data)) -
			  text));
	return NGX_OK;
}

/* In seconds, as nginx writes times, with microseconds. */
static ngx_int_t put_time(ngx_http_request_t *r, ngx_http_variable_value_t *value, weir_dur time)
{
	char *text = ngx_pnalloc(r->pool, TEXT_MAX);

	if (text == NULL)
		return NGX_ERROR;
	set_text(value, text,
		 (size_t)snprintf(text, TEXT_MAX, "%llu.%06llu",
				  (unsigned long long)(time / WEIR_S),
				  (unsigned long long)(time % WEIR_S / WEIR_US)));
	return NGX_OK;
}

static ngx_int_t waited(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
	const struct guarded *guarded = decided(r, value);

	(void)data;
	return guarded != NULL ? put_time(r, value, guarded->waited) : NGX_OK;
}

static ngx_int_t rtt(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
	const struct guarded *guarded = decided(r, value);

	(void)data;
	if (guarded == NULL)
		return NGX_OK;
	if (guarded->token.state == 0 && !guarded->released) {
		value->not_found = 1;
		return NGX_OK;
	}
	return put_time(r, value, request_rtt(guarded));
}

static const ngx_http_variable_t variables[] = {
	{ngx_string("weir_status"), NULL, status, 0, NGX_HTTP_VAR_NOCACHEABLE, 0},
	{ngx_string("weir_zone"), NULL, zone, 0, NGX_HTTP_VAR_NOCACHEABLE, 0},
	{ngx_string("weir_partition"), NULL, partition, 0, NGX_HTTP_VAR_NOCACHEABLE, 0},
	{ngx_string("weir_limit"), NULL, number, offsetof(struct guarded, limit),
	 NGX_HTTP_VAR_NOCACHEABLE, 0},
	{ngx_string("weir_inflight"), NULL, number, offsetof(struct guarded, inflight),
	 NGX_HTTP_VAR_NOCACHEABLE, 0},
	{ngx_string("weir_waited"), NULL, waited, 0, NGX_HTTP_VAR_NOCACHEABLE, 0},
	{ngx_string("weir_rtt"), NULL, rtt, 0, NGX_HTTP_VAR_NOCACHEABLE, 0},
};

ngx_int_t variables_add(ngx_conf_t *cf)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		ngx_str_t name = variables[i].name;
		ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name,
								      variables[i].flags);

		if (variable == NULL)
			return NGX_ERROR;
		variable->get_handler = variables[i].get_handler;
		variable->data = variables[i].data;
	}
	return NGX_OK;
}
