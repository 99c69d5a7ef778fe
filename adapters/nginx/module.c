/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nginx module: its directives, and the hooks that nginx calls when a configuration has been
 * read, and when a worker starts and exits.
 */
#include "module.h"

ngx_connection_t no_connection = {.fd = (ngx_socket_t)-1};

static ngx_conf_enum_t log_levels[] = {
	{ngx_string("info"), NGX_LOG_INFO},
	{ngx_string("notice"), NGX_LOG_NOTICE},
	{ngx_string("warn"), NGX_LOG_WARN},
	{ngx_string("error"), NGX_LOG_ERR},
	{ngx_null_string, 0},
};

static ngx_conf_enum_t rtts[] = {
	{ngx_string("request"), RTT_REQUEST},
	{ngx_string("upstream"), RTT_UPSTREAM},
	{ngx_null_string, 0},
};

#define ANYWHERE (NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF)
#define LOCATION NGX_HTTP_LOC_CONF_OFFSET

static ngx_command_t directives[] = {
	{ngx_string("weir_zone"), NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, zone_directive,
	 NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
	{ngx_string("weir"), ANYWHERE | NGX_CONF_1MORE, guard_directive, LOCATION, 0, NULL},
	{ngx_string("weir_status"), ANYWHERE | NGX_CONF_TAKE1, status_directive, LOCATION, 0, NULL},
	{ngx_string("weir_retry_after"), ANYWHERE | NGX_CONF_TAKE1, retry_after_directive, LOCATION,
	 0, NULL},
	{ngx_string("weir_log_level"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot, LOCATION,
	 offsetof(struct location, log_level), log_levels},
	{ngx_string("weir_shadow"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot, LOCATION,
	 offsetof(struct location, shadow), NULL},
	{ngx_string("weir_rtt"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot, LOCATION,
	 offsetof(struct location, rtt), rtts},
	{ngx_string("weir_outcome"), ANYWHERE | NGX_CONF_2MORE, outcome_directive, LOCATION, 0,
	 NULL},
	{ngx_string("weir_detach"), ANYWHERE | NGX_CONF_1MORE, detach_directive, LOCATION, 0, NULL},
	{ngx_string("weir_status_page"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, status_page_directive,
	 LOCATION, 0, NULL},
	ngx_null_command,
};

static void *create_zones(ngx_conf_t *cf)
{
	struct zones *zones = ngx_pcalloc(cf->pool, sizeof(*zones));

	if (zones == NULL ||
	    ngx_array_init(&zones->all, cf->pool, 4, sizeof(struct zone *)) != NGX_OK)
		return NULL;
	return zones;
}

/*
 * nginx runs the handlers of a phase from the last to the first. A request should acquire its
 * permit after limit_req has delayed it, so this handler goes to the front.
 */
static ngx_int_t add_handler(ngx_conf_t *cf)
{
	ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf,
									     ngx_http_core_module);
	ngx_array_t *handlers = &core->phases[NGX_HTTP_PREACCESS_PHASE].handlers;
	ngx_http_handler_pt *first;

	if (ngx_array_push(handlers) == NULL)
		return NGX_ERROR;
	first = handlers->elts;
	ngx_memmove(first + 1, first, (handlers->nelts - 1) * sizeof(*first));
	*first = request_preaccess;
	return NGX_OK;
}

static ngx_int_t has_been_read(ngx_conf_t *cf)
{
	if (add_handler(cf) != NGX_OK)
		return NGX_ERROR;
	return filter_install();
}

/* The cache manager and loader processes serve no requests. */
static bool serves_requests(void)
{
	return ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE;
}

static struct zones *zones_of(const ngx_cycle_t *cycle)
{
	return ngx_http_cycle_get_module_main_conf(cycle, ngx_http_weir_module);
}

static ngx_int_t begin_worker(ngx_cycle_t *cycle)
{
	struct zones *zones = zones_of(cycle);
	struct zone **all;

	if (!serves_requests() || zones == NULL || zones->all.nelts == 0)
		return NGX_OK;
	zones->waking = waking_create(cycle);
	if (zones->waking == NULL)
		return NGX_ERROR;
	all = zones->all.elts;
	for (ngx_uint_t i = 0; i < zones->all.nelts; i++)
		zone_attach(all[i], zones->waking, cycle->log);
	return NGX_OK;
}

static void end_worker(ngx_cycle_t *cycle)
{
	struct zones *zones = zones_of(cycle);
	struct zone **all;

	if (zones == NULL)
		return;
	all = zones->all.elts;
	for (ngx_uint_t i = 0; i < zones->all.nelts; i++)
		zone_detach(all[i]);
}

static ngx_http_module_t context = {
	.preconfiguration = variables_add,
	.postconfiguration = has_been_read,
	.create_main_conf = create_zones,
	.create_loc_conf = location_create,
	.merge_loc_conf = location_merge,
};

ngx_module_t ngx_http_weir_module = {
	NGX_MODULE_V1,
	.ctx = &context,
	.commands = directives,
	.type = NGX_HTTP_MODULE,
	.init_process = begin_worker,
	.exit_process = end_worker,
	NGX_MODULE_V1_PADDING,
};

/* The symbols that nginx looks up in a module file. */
__attribute__((visibility("default"))) ngx_module_t *ngx_modules[] = {&ngx_http_weir_module, NULL};
__attribute__((visibility("default"))) char *ngx_module_names[] = {"ngx_http_weir_module", NULL};
__attribute__((visibility("default"))) char *ngx_module_order[] = {NULL};
