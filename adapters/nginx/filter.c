/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Properties of a request that are known only when its response passes.
 *
 * First, that the request is long-lived: its connection is upgraded, or a variable says so, which
 * may depend on the upstream's response. Second, with the latency of the upstream, that the
 * upstream has finished: its last buffer passes here, while a slow client may go on reading for
 * long.
 */
#include "module.h"

static ngx_http_output_header_filter_pt next_header;
static ngx_http_output_body_filter_pt next_body;

static bool becomes_long(struct guarded *guarded)
{
	const struct location *location = guarded->location;
	ngx_http_request_t *r = guarded->request;
	ngx_str_t text;

	if (location->detach_upgraded && r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS)
		return true;
	return location->detach_if != NULL &&
	       ngx_http_complex_value(r, location->detach_if, &text) == NGX_OK && text.len > 0 &&
	       !word_is(&text, "0");
}

static ngx_int_t header(ngx_http_request_t *r)
{
	struct guarded *guarded;

	if (r == r->main) {
		guarded = request_guarded(r);
		if (guarded != NULL && becomes_long(guarded))
			request_detach(guarded);
	}
	return next_header(r);
}

static bool is_last(const ngx_chain_t *in)
{
	for (; in != NULL; in = in->next)
		if (in->buf->last_buf)
			return true;
	return false;
}

static ngx_int_t body(ngx_http_request_t *r, ngx_chain_t *in)
{
	struct guarded *guarded;

	if (r == r->main && r->upstream != NULL && is_last(in)) {
		guarded = request_guarded(r);
		if (guarded != NULL && guarded->location->rtt == RTT_UPSTREAM)
			request_release(guarded, outcome_of(guarded));
	}
	return next_body(r, in);
}

ngx_int_t filter_install(void)
{
	next_header = ngx_http_top_header_filter;
	ngx_http_top_header_filter = header;
	next_body = ngx_http_top_body_filter;
	ngx_http_top_body_filter = body;
	return NGX_OK;
}
