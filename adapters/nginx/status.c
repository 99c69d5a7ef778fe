/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir_status_page: all zones, for browsers, programs and Prometheus.
 *
 * One address serves all formats. The argument "format" selects one, otherwise the header "Accept":
 * a browser gets a page with plots, Prometheus gets OpenMetrics, and other clients get JSON, which
 * is also the input of the page.
 *
 * Strings in the JSON need no escaping if they are names from the configuration, which consist of
 * letters, digits and a few signs. The text of the algorithm is escaped.
 */
#include "module.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
	ZONE_BYTES = 4096, /* the most that a zone without partitions takes in JSON */
	PARTITION_BYTES = 1024,
};

enum format {
	FORMAT_JSON,
	FORMAT_HTML,
	FORMAT_OPENMETRICS,
	FORMAT_PROMETHEUS,
};

/* Append text to a buffer that is large enough. */
static void put(ngx_buf_t *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(ngx_buf_t *out, const char *format, ...)
{
	const size_t room = (size_t)(out->end - out->last);
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf((char *)out->last, room, format, list);
	va_end(list);
	if (n > 0)
		out->last += (size_t)n < room ? (size_t)n : room - 1;
}

static void put_count(ngx_buf_t *out, const char *name, uint64_t value)
{
	put(out, ",\"%s\":%llu", name, (unsigned long long)value);
}

/* JSON has neither infinity nor NaN. */
static void put_number(ngx_buf_t *out, const char *name, double value)
{
	if (isfinite(value))
		put(out, "\"%s\":%.9g", name, value);
	else
		put(out, "\"%s\":null", name);
}

static void put_escaped(ngx_buf_t *out, const char *name, const ngx_str_t *text)
{
	const uintptr_t more = ngx_escape_json(NULL, text->data, text->len);

	put(out, ",\"%s\":\"", name);
	if (text->len + more < (size_t)(out->end - out->last))
		out->last = (u_char *)ngx_escape_json(out->last, text->data, text->len);
	put(out, "\"");
}

static void put_totals(ngx_buf_t *out, const struct weir_snapshot *s)
{
	put_count(out, "limit", s->limit);
	put_count(out, "burst", s->burst);
	put_count(out, "inflight", s->inflight);
	put_count(out, "waiting", s->waiting);
	put_count(out, "passing", s->passing);
	put_count(out, "admitted", s->admitted);
	put_count(out, "rejected", s->rejected);
	put_count(out, "shed", s->shed);
	put_count(out, "abandoned", s->abandoned);
	put_count(out, "bypassed", s->bypassed);
	put_count(out, "succeeded", s->succeeded);
	put_count(out, "ignored", s->ignored);
	put_count(out, "dropped", s->dropped);
	put_count(out, "timed_out", s->timed_out);
	put_count(out, "cancelled", s->cancelled);
	put_count(out, "failed", s->failed);
	put_count(out, "detached", s->detached);
	put_count(out, "double_released", s->double_released);
	put_count(out, "windows", s->windows);
}

static void put_window(ngx_buf_t *out, const struct weir_report *last)
{
	put(out, ",");
	put_number(out, "rtt_ms", last->window.rtt / 1e6);
	put(out, ",\"numbers\":{");
	for (uint32_t i = 0; i < last->count; i++) {
		put(out, "%s", i > 0 ? "," : "");
		put_number(out, last->names[i], last->numbers[i]);
	}
	put(out, "}");
}

static void put_workers(ngx_buf_t *out, const struct weir_limiter *limiter)
{
	struct weir_shm_info info;

	weir_shm_info_init(&info);
	if (weir_shm_info_take(limiter, &info) != 0)
		return;
	put_count(out, "queue", info.queue);
	put_count(out, "workers", info.attached);
	put_count(out, "deaths", info.deaths);
	put_count(out, "reaped", info.reaped);
}

static void put_partition(ngx_buf_t *out, const struct weir_limiter *limiter, unsigned index)
{
	struct weir_partition_snapshot s;

	weir_partition_snapshot_init(&s);
	if (weir_partition_snapshot_take(limiter, index, &s) != 0)
		return;
	put(out, "%s{\"name\":\"%s\",", index > 0 ? "," : "", s.name);
	put_number(out, "share", s.share);
	put_count(out, "guarantee", s.guarantee);
	put_count(out, "cap", s.cap);
	put_count(out, "inflight", s.inflight);
	put_count(out, "waiting", s.waiting);
	put_count(out, "delayed", s.delayed);
	put_count(out, "admitted", s.admitted);
	put_count(out, "rejected", s.rejected);
	put_count(out, "shed", s.shed);
	put_count(out, "abandoned", s.abandoned);
	put(out, "}");
}

static void put_zone(ngx_buf_t *out, const struct zone *zone)
{
	const unsigned partitions = weir_partition_count(zone->limiter);
	struct weir_snapshot snapshot;

	weir_snapshot_init(&snapshot);
	weir_snapshot_take(zone->limiter, &snapshot);
	put(out, "{\"name\":\"%.*s\"", (int)zone->name.len, zone->name.data);
	put_escaped(out, "algorithm", &zone->limit);
	put_totals(out, &snapshot);
	put_window(out, &snapshot.last);
	put_workers(out, zone->limiter);
	put(out, ",\"partitions\":[");
	for (unsigned i = 0; i < partitions; i++)
		put_partition(out, zone->limiter, i);
	put(out, "]}");
}

static ngx_buf_t *write_json(ngx_http_request_t *r, const struct zones *zones)
{
	struct zone **all = zones->all.elts;
	size_t size = ZONE_BYTES;
	bool first = true;
	ngx_buf_t *out;

	for (ngx_uint_t i = 0; i < zones->all.nelts; i++)
		size += ZONE_BYTES + 2 * all[i]->limit.len +
			((size_t)all[i]->config.partition_count + 1) * PARTITION_BYTES;
	out = ngx_create_temp_buf(r->pool, size);
	if (out == NULL)
		return NULL;
	put(out, "{\"time_ms\":%llu,\"zones\":[", (unsigned long long)(weir_now() / WEIR_MS));
	for (ngx_uint_t i = 0; i < zones->all.nelts; i++) {
		if (all[i]->limiter == NULL)
			continue;
		put(out, "%s", first ? "" : ",");
		put_zone(out, all[i]);
		first = false;
	}
	put(out, "]}\n");
	return out;
}

static struct weir_metrics *collect(const struct zones *zones)
{
	struct zone **all = zones->all.elts;
	struct weir_metrics *metrics;

	if (weir_metrics_create(&metrics) != 0)
		return NULL;
	for (ngx_uint_t i = 0; i < zones->all.nelts; i++) {
		const struct weir_label label = {
			.name = "zone",
			.value = (const char *)all[i]->name.data,
			.length = all[i]->name.len,
		};

		if (all[i]->limiter == NULL ||
		    weir_metrics_add(metrics, all[i]->limiter, &label, 1) == 0)
			continue;
		weir_metrics_destroy(metrics);
		return NULL;
	}
	return metrics;
}

static ngx_buf_t *write_metrics(ngx_http_request_t *r, const struct zones *zones,
				enum weir_metrics_format format)
{
	struct weir_metrics *metrics = collect(zones);
	ngx_buf_t *out = NULL;
	size_t size;

	if (metrics == NULL)
		return NULL;
	size = weir_metrics_text(metrics, format, NULL, 0);
	out = ngx_create_temp_buf(r->pool, size + 1);
	if (out != NULL)
		out->last += weir_metrics_text(metrics, format, (char *)out->pos, size + 1);
	weir_metrics_destroy(metrics);
	return out;
}

static ngx_buf_t *write_page(ngx_http_request_t *r)
{
	ngx_buf_t *out = ngx_calloc_buf(r->pool);

	if (out == NULL)
		return NULL;
	out->pos = out->start = (u_char *)(uintptr_t)status_page;
	out->last = out->end = out->pos + status_page_size;
	out->memory = 1;
	return out;
}

static bool accepts(const ngx_http_request_t *r, const char *type)
{
	const ngx_list_part_t *part = &r->headers_in.headers.part;

	for (; part != NULL; part = part->next) {
		const ngx_table_elt_t *headers = part->elts;

		for (ngx_uint_t i = 0; i < part->nelts; i++)
			if (headers[i].key.len == 6 &&
			    ngx_strncasecmp(headers[i].key.data, (u_char *)"Accept", 6) == 0 &&
			    ngx_strstr(headers[i].value.data, type) != NULL)
				return true;
	}
	return false;
}

/* The requested format; NGX_DECLINED: it does not exist. */
static ngx_int_t wanted(ngx_http_request_t *r)
{
	ngx_str_t name;

	if (ngx_http_arg(r, (u_char *)"format", 6, &name) == NGX_OK) {
		if (word_is(&name, "json"))
			return FORMAT_JSON;
		if (word_is(&name, "html"))
			return FORMAT_HTML;
		if (word_is(&name, "openmetrics"))
			return FORMAT_OPENMETRICS;
		return word_is(&name, "prometheus") ? FORMAT_PROMETHEUS : NGX_DECLINED;
	}
	if (accepts(r, "text/html"))
		return FORMAT_HTML;
	if (accepts(r, "application/openmetrics-text"))
		return FORMAT_OPENMETRICS;
	return FORMAT_JSON;
}

static const char *type_of(ngx_int_t format)
{
	switch (format) {
	case FORMAT_HTML:
		return "text/html; charset=utf-8";
	case FORMAT_OPENMETRICS:
		return weir_metrics_content_type(WEIR_OPENMETRICS);
	case FORMAT_PROMETHEUS:
		return weir_metrics_content_type(WEIR_PROMETHEUS);
	default:
		return "application/json";
	}
}

static ngx_buf_t *write_format(ngx_http_request_t *r, ngx_int_t format)
{
	const struct zones *zones = ngx_http_get_module_main_conf(r, ngx_http_weir_module);

	switch (format) {
	case FORMAT_HTML:
		return write_page(r);
	case FORMAT_OPENMETRICS:
		return write_metrics(r, zones, WEIR_OPENMETRICS);
	case FORMAT_PROMETHEUS:
		return write_metrics(r, zones, WEIR_PROMETHEUS);
	default:
		return write_json(r, zones);
	}
}

static ngx_int_t forbid_caching(ngx_http_request_t *r)
{
	ngx_table_elt_t *header = ngx_list_push(&r->headers_out.headers);

	if (header == NULL)
		return NGX_ERROR;
	*header = (ngx_table_elt_t){.hash = 1};
	ngx_str_set(&header->key, "Cache-Control");
	ngx_str_set(&header->value, "no-store");
	return NGX_OK;
}

static ngx_int_t answer(ngx_http_request_t *r, const char *type, ngx_buf_t *text)
{
	ngx_chain_t out = {.buf = text};
	ngx_int_t rc;

	r->headers_out.status = NGX_HTTP_OK;
	r->headers_out.content_type.data = (u_char *)(uintptr_t)type;
	r->headers_out.content_type.len = ngx_strlen(type);
	r->headers_out.content_type_len = r->headers_out.content_type.len;
	r->headers_out.content_length_n = text->last - text->pos;
	text->last_buf = r == r->main;
	text->last_in_chain = 1;
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return rc;
	return ngx_http_output_filter(r, &out);
}

static ngx_int_t show(ngx_http_request_t *r)
{
	const ngx_int_t format = wanted(r);
	ngx_buf_t *text;
	ngx_int_t rc;

	if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0)
		return NGX_HTTP_NOT_ALLOWED;
	if (format == NGX_DECLINED)
		return NGX_HTTP_BAD_REQUEST;
	rc = ngx_http_discard_request_body(r);
	if (rc != NGX_OK)
		return rc;
	text = write_format(r, format);
	if (text == NULL || forbid_caching(r) != NGX_OK)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	return answer(r, type_of(format), text);
}

char *status_page_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf,
									   ngx_http_core_module);
	struct location *location = conf;
	static char duplicate[] = "is duplicate";

	(void)command;
	if (location->status_page)
		return duplicate;
	if (location->zone != NGX_CONF_UNSET_PTR && location->zone != NULL)
		return REFUSE(cf, "\"weir\" cannot limit a status page");
	location->status_page = 1;
	core->handler = show;
	return NGX_CONF_OK;
}
