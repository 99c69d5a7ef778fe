/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir_outcome code ... outcome: the outcome of a request, by its status.
 *
 * Only statuses that depend on load may count. A missing page is answered fast, a bad gateway even
 * faster; as samples their latencies would suggest free capacity. Requests that the upstream sheds,
 * or does not answer in time, show overload.
 */
#include "module.h"

enum { UNSET = 0xff };

static const struct {
	const char *name;
	enum weir_outcome outcome;
} names[] = {
	{"success", WEIR_SUCCESS},     {"ignored", WEIR_IGNORE},      {"dropped", WEIR_DROPPED},
	{"timed_out", WEIR_TIMED_OUT}, {"cancelled", WEIR_CANCELLED}, {"failed", WEIR_FAILED},
};

/* The default outcome of a status. */
static enum weir_outcome usual(ngx_uint_t status)
{
	switch (status) {
	case NGX_HTTP_TOO_MANY_REQUESTS:
	case NGX_HTTP_SERVICE_UNAVAILABLE:
		return WEIR_DROPPED;
	case NGX_HTTP_GATEWAY_TIME_OUT:
		return WEIR_TIMED_OUT;
	case NGX_HTTP_REQUEST_TIME_OUT:
	case NGX_HTTP_CLIENT_CLOSED_REQUEST:
		return WEIR_CANCELLED;
	default:
		break;
	}
	if (status >= 500)
		return WEIR_FAILED;
	return status >= 200 && status < 400 ? WEIR_SUCCESS : WEIR_IGNORE;
}

/* Whether the client has disconnected, or reads no more. */
static bool client_is_gone(const ngx_http_request_t *r)
{
	return r->connection->error || r->connection->timedout;
}

/* Whether the upstream's response was truncated after its status had been sent. */
static bool is_cut(const ngx_http_request_t *r)
{
	const ngx_http_upstream_t *u = r->upstream;
	const ngx_event_pipe_t *pipe;

	if (u == NULL)
		return false;
	pipe = u->pipe;
	if (!u->buffering || pipe == NULL)
		return u->length > 0;
	return pipe->upstream_error ||
	       (pipe->upstream_eof && !pipe->upstream_done && pipe->length > 0);
}

enum weir_outcome outcome_of(const struct guarded *guarded)
{
	const ngx_http_request_t *r = guarded->request;
	const struct outcomes *outcomes = guarded->location->outcomes;
	const ngx_uint_t status = r->headers_out.status;

	if (client_is_gone(r))
		return WEIR_CANCELLED;
	if (is_cut(r))
		return WEIR_FAILED;
	if (outcomes != NULL && status < sizeof(outcomes->of) && outcomes->of[status] != UNSET)
		return (enum weir_outcome)outcomes->of[status];
	return usual(status);
}

/* "503", "500-599" or "5xx". */
static bool read_codes(const ngx_str_t *text, ngx_int_t *first, ngx_int_t *last)
{
	const u_char *s = text->data;

	if (text->len == 3 && s[1] == 'x' && s[2] == 'x') {
		*first = (ngx_int_t)(s[0] - '0') * 100;
		*last = *first + 99;
	} else if (text->len == 7 && s[3] == '-') {
		*first = ngx_atoi(text->data, 3);
		*last = ngx_atoi(text->data + 4, 3);
	} else {
		*first = *last = ngx_atoi(text->data, text->len);
	}
	return *first >= 100 && *first <= *last && *last <= 599;
}

static char *set(ngx_conf_t *cf, struct outcomes *outcomes, const ngx_str_t *codes,
		 enum weir_outcome outcome)
{
	ngx_int_t first, last;

	if (!read_codes(codes, &first, &last))
		return REFUSE(cf, "\"%V\" is not a status: 100 to 599, 500-504, or 5xx", codes);
	for (ngx_int_t status = first; status <= last; status++) {
		if (outcomes->of[status] != UNSET)
			return REFUSE(cf, "status %i already has an outcome", status);
		outcomes->of[status] = (u_char)outcome;
	}
	return NGX_CONF_OK;
}

static struct outcomes *outcomes_in(ngx_conf_t *cf, struct location *location)
{
	if (location->outcomes != NGX_CONF_UNSET_PTR)
		return location->outcomes;
	location->outcomes = ngx_palloc(cf->pool, sizeof(struct outcomes));
	if (location->outcomes != NULL)
		ngx_memset(location->outcomes->of, UNSET, sizeof(location->outcomes->of));
	return location->outcomes;
}

char *outcome_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	const ngx_str_t *words = cf->args->elts, *name = &words[cf->args->nelts - 1];
	struct outcomes *outcomes = outcomes_in(cf, conf);
	char *r = NGX_CONF_OK;
	size_t i = 0;

	(void)command;
	if (outcomes == NULL)
		return NGX_CONF_ERROR;
	while (i < sizeof(names) / sizeof(names[0]) && ngx_strcmp(name->data, names[i].name) != 0)
		i++;
	if (i == sizeof(names) / sizeof(names[0]))
		return REFUSE(cf,
			      "\"%V\" is not an outcome: success, ignored, dropped, timed_out, "
			      "cancelled, failed",
			      name);
	for (ngx_uint_t at = 1; r == NGX_CONF_OK && at + 1 < cf->args->nelts; at++)
		r = set(cf, outcomes, &words[at], names[i].outcome);
	return r;
}
