/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directives of http, server and location: which zone limits a request, its class, and how
 * refusals are answered. A setting that a level does not have is inherited from the level above.
 */
#include "module.h"

static char duplicate[] = "is duplicate";

void *location_create(ngx_conf_t *cf)
{
	struct location *location = ngx_pcalloc(cf->pool, sizeof(*location));

	if (location == NULL)
		return NULL;
	location->zone = NGX_CONF_UNSET_PTR;
	location->status = NGX_CONF_UNSET_UINT;
	location->retry_after = NGX_CONF_UNSET;
	location->log_level = NGX_CONF_UNSET_UINT;
	location->shadow = NGX_CONF_UNSET;
	location->rtt = NGX_CONF_UNSET_UINT;
	location->outcomes = NGX_CONF_UNSET_PTR;
	location->detach = NGX_CONF_UNSET;
	return location;
}

static void inherit_guard(struct location *location, const struct location *above)
{
	if (location->status_page) {
		location->zone = NULL; /* the page is needed most when requests are refused */
		return;
	}
	if (location->zone != NGX_CONF_UNSET_PTR)
		return;
	location->zone = above->zone == NGX_CONF_UNSET_PTR ? NULL : above->zone;
	location->partition = above->partition;
	location->priority = above->priority;
	location->cost = above->cost;
	location->bypass = above->bypass;
	location->wait = above->wait;
}

static void inherit_detach(struct location *location, const struct location *above)
{
	if (location->detach != NGX_CONF_UNSET)
		return;
	if (above->detach == NGX_CONF_UNSET) {
		location->detach = 1;
		location->detach_upgraded = 1;
		return;
	}
	location->detach = above->detach;
	location->detach_upgraded = above->detach_upgraded;
	location->detach_after = above->detach_after;
	location->detach_if = above->detach_if;
}

char *location_merge(ngx_conf_t *cf, void *parent, void *child)
{
	const struct location *above = parent;
	struct location *location = child;

	(void)cf;
	inherit_guard(location, above);
	inherit_detach(location, above);
	ngx_conf_merge_uint_value(location->status, above->status, NGX_HTTP_SERVICE_UNAVAILABLE);
	ngx_conf_merge_value(location->retry_after, above->retry_after, 1);
	ngx_conf_merge_uint_value(location->log_level, above->log_level, NGX_LOG_WARN);
	ngx_conf_merge_value(location->shadow, above->shadow, 0);
	ngx_conf_merge_uint_value(location->rtt, above->rtt, RTT_REQUEST);
	ngx_conf_merge_ptr_value(location->outcomes, above->outcomes, NULL);
	return NGX_CONF_OK;
}

/* Read a value with variables; at most once. */
static char *read_value(ngx_conf_t *cf, const char *name, ngx_str_t *value,
			ngx_http_complex_value_t **to)
{
	ngx_http_compile_complex_value_t compile = {.cf = cf, .value = value};

	if (*to != NULL)
		return REFUSE(cf, "\"%s\" is given twice", name);
	if (value->len == 0)
		return REFUSE(cf, "\"%s\" is empty", name);
	*to = ngx_pcalloc(cf->pool, sizeof(**to));
	compile.complex_value = *to;
	if (*to == NULL || ngx_http_compile_complex_value(&compile) != NGX_OK)
		return NGX_CONF_ERROR;
	return NGX_CONF_OK;
}

static char *read_time(ngx_conf_t *cf, const char *name, ngx_str_t *value, ngx_msec_t *to)
{
	const ngx_int_t ms = ngx_parse_time(value, 0);

	if (*to != 0)
		return REFUSE(cf, "\"%s\" is given twice", name);
	if (ms == NGX_ERROR || ms == 0)
		return REFUSE(cf, "\"%s\" must be a time above zero, not \"%V\"", name, value);
	*to = (ngx_msec_t)ms;
	return NGX_CONF_OK;
}

static char *find_zone(ngx_conf_t *cf, struct location *location, const ngx_str_t *name)
{
	struct zones *zones = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);

	if (location->zone != NULL)
		return REFUSE(cf, "\"zone\" is given twice");
	location->zone = zone_find(zones, name);
	if (location->zone == NULL)
		return REFUSE(cf, "there is no zone \"%V\"; a \"weir_zone\" must define it before",
			      name);
	return NGX_CONF_OK;
}

static char *read_argument(ngx_conf_t *cf, struct location *location, const ngx_str_t *argument)
{
	ngx_str_t value;

	if (word_is_named(argument, "zone", &value))
		return find_zone(cf, location, &value);
	if (word_is_named(argument, "partition", &value))
		return read_value(cf, "partition", &value, &location->partition);
	if (word_is_named(argument, "priority", &value))
		return read_value(cf, "priority", &value, &location->priority);
	if (word_is_named(argument, "cost", &value))
		return read_value(cf, "cost", &value, &location->cost);
	if (word_is_named(argument, "bypass", &value))
		return read_value(cf, "bypass", &value, &location->bypass);
	if (word_is_named(argument, "wait", &value))
		return read_time(cf, "wait", &value, &location->wait);
	return REFUSE(cf, "\"weir\" has no parameter \"%V\"", argument);
}

static bool is_constant(const ngx_http_complex_value_t *value)
{
	return value != NULL && value->lengths == NULL;
}

static char *check_constants(ngx_conf_t *cf, const struct location *location)
{
	const struct zone *zone = location->zone;
	const ngx_http_complex_value_t *value = location->partition;
	int16_t priority;
	uint32_t cost;

	if (is_constant(value) && zone_partition(zone, &value->value) == NGX_DECLINED)
		return REFUSE(cf, "zone \"%V\" has no partition \"%V\"", &zone->name,
			      &value->value);
	value = location->priority;
	if (is_constant(value) && !word_is_priority(&value->value, &priority))
		return REFUSE(cf, "\"priority\" must be from %d to %d, not \"%V\"",
			      WEIR_PRIORITY_MIN, WEIR_PRIORITY_MAX, &value->value);
	value = location->cost;
	if (is_constant(value) && !word_is_cost(&value->value, &cost))
		return REFUSE(cf, "\"cost\" must be from 1 to %d, not \"%V\"", (int)WEIR_LIMIT_MAX,
			      &value->value);
	return NGX_CONF_OK;
}

static char *check_guard(ngx_conf_t *cf, const struct location *location)
{
	const struct zone *zone = location->zone;

	if (zone == NULL)
		return REFUSE(cf, "\"weir\" needs \"zone=\"");
	if (location->wait > 0 && zone->config.queue == 0)
		return REFUSE(cf, "\"wait\" needs a queue, and zone \"%V\" has none", &zone->name);
	if (location->partition != NULL && zone->config.partition_count == 0)
		return REFUSE(cf, "\"partition\" needs partitions, and zone \"%V\" has none",
			      &zone->name);
	if (location->priority != NULL && zone->config.shed == 0)
		return REFUSE(cf, "\"priority\" needs \"shed=on\" of zone \"%V\"", &zone->name);
	return check_constants(cf, location);
}

char *guard_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	const ngx_str_t *words = cf->args->elts;
	struct location *location = conf;
	char *r = NGX_CONF_OK;

	(void)command;
	if (location->zone != NGX_CONF_UNSET_PTR)
		return duplicate;
	location->zone = NULL;
	if (word_is(&words[1], "off")) {
		if (cf->args->nelts > 2)
			return REFUSE(cf, "unexpected \"%V\" after \"weir off\"", &words[2]);
		return NGX_CONF_OK;
	}
	for (ngx_uint_t i = 1; r == NGX_CONF_OK && i < cf->args->nelts; i++)
		r = read_argument(cf, location, &words[i]);
	return r == NGX_CONF_OK ? check_guard(cf, location) : r;
}

char *status_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	const ngx_str_t *words = cf->args->elts;
	const ngx_int_t status = ngx_atoi(words[1].data, words[1].len);
	struct location *location = conf;

	(void)command;
	if (location->status != NGX_CONF_UNSET_UINT)
		return duplicate;
	if (status < 400 || status > 599)
		return REFUSE(cf, "the status of a refusal must be from 400 to 599, not \"%V\"",
			      &words[1]);
	location->status = (ngx_uint_t)status;
	return NGX_CONF_OK;
}

char *retry_after_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	ngx_str_t *words = cf->args->elts;
	struct location *location = conf;

	(void)command;
	if (location->retry_after != NGX_CONF_UNSET)
		return duplicate;
	if (word_is(&words[1], "off")) {
		location->retry_after = 0;
		return NGX_CONF_OK;
	}
	location->retry_after = ngx_parse_time(&words[1], 1);
	if (location->retry_after == NGX_ERROR || location->retry_after == 0)
		return REFUSE(cf, "\"weir_retry_after\" must be a time from 1s, or off, not \"%V\"",
			      &words[1]);
	return NGX_CONF_OK;
}

static char *read_detach(ngx_conf_t *cf, struct location *location, const ngx_str_t *word)
{
	ngx_str_t value;

	if (word_is(word, "upgraded")) {
		location->detach_upgraded = 1;
		return NGX_CONF_OK;
	}
	if (word_is_named(word, "after", &value))
		return read_time(cf, "after", &value, &location->detach_after);
	if (word_is_named(word, "if", &value))
		return read_value(cf, "if", &value, &location->detach_if);
	return REFUSE(cf, "\"weir_detach\" has no parameter \"%V\"; it has upgraded, after, if",
		      word);
}

char *detach_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	const ngx_str_t *words = cf->args->elts;
	struct location *location = conf;
	char *r = NGX_CONF_OK;

	(void)command;
	if (location->detach != NGX_CONF_UNSET)
		return duplicate;
	location->detach = 1;
	if (word_is(&words[1], "off")) {
		location->detach = 0;
		if (cf->args->nelts > 2)
			return REFUSE(cf, "unexpected \"%V\" after \"weir_detach off\"", &words[2]);
		return NGX_CONF_OK;
	}
	for (ngx_uint_t i = 1; r == NGX_CONF_OK && i < cf->args->nelts; i++)
		r = read_detach(cf, location, &words[i]);
	return r;
}
