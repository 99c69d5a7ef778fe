/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A zone's limiter, in nginx's shared memory, where all workers find it.
 *
 * The master creates the limiter, and each worker attaches to it at its start, so that all workers
 * share one limit and one queue, and learn from each other's requests. If its directive is
 * unchanged, the limiter survives a reload. If the directive has changed, a new limiter is created,
 * which starts from the saved state of the old one as far as it can use it. Old workers keep the
 * old limiter until they have served their last request.
 *
 * nginx keeps a zone's memory over a reload if its size is unchanged. Therefore a zone whose
 * directive has changed gets another size.
 */
#include "module.h"

#include <errno.h>

enum {
	REAP_INTERVAL = 200,      /* ms, by all workers together */
	REAP_INTERVAL_MAX = 2000, /* ms, by each worker */
};

static bool is_same(const ngx_str_t *a, const ngx_str_t *b)
{
	return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}

struct zone *zone_find(struct zones *zones, const ngx_str_t *name)
{
	struct zone **all = zones->all.elts;

	for (ngx_uint_t i = 0; i < zones->all.nelts; i++)
		if (is_same(&all[i]->name, name))
			return all[i];
	return NULL;
}

/* The zone of that name in the running configuration. */
static const ngx_shm_zone_t *running_zone(const ngx_conf_t *cf, const ngx_str_t *name)
{
	const ngx_list_part_t *part = &cf->cycle->old_cycle->shared_memory.part;

	for (; part != NULL; part = part->next) {
		const ngx_shm_zone_t *zones = part->elts;

		for (ngx_uint_t i = 0; i < part->nelts; i++)
			if (zones[i].tag == &ngx_http_weir_module &&
			    is_same(&zones[i].shm.name, name))
				return &zones[i];
	}
	return NULL;
}

/* The bytes for the block, plus the pages for the bookkeeping of nginx's allocator. */
static size_t memory_for(size_t block)
{
	const size_t pages = (block + ngx_pagesize - 1) / ngx_pagesize;

	return (pages + pages * sizeof(ngx_slab_page_t) / ngx_pagesize + 8) * ngx_pagesize;
}

static void log_why(const struct zone *zone, ngx_log_t *log, const char *what, const char *why)
{
	ngx_log_error(NGX_LOG_ALERT, log, 0, "weir zone \"%V\": %s: %s", &zone->name, what, why);
}

static void *parameter_of(const struct weir_limit_ops *ops, void *config, const char *name)
{
	for (uint32_t i = 0; i < ops->param_count; i++)
		if (ngx_strcmp(ops->params[i].name, name) == 0 &&
		    ops->params[i].type == WEIR_PARAM_U32)
			return (u_char *)config + ops->params[i].offset;
	return NULL;
}

/* Another algorithm can use only the limit: it starts there, within its own bounds. */
static void start_at(struct zone *zone, uint32_t limit)
{
	const struct weir_limit_ops *ops = zone->config.limit;
	alignas(max_align_t) u_char complete[WEIR_LIMIT_CONFIG_MAX];
	uint32_t *initial = parameter_of(ops, zone->limit_config, "initial"), *bound;

	if (initial == NULL ||
	    weir_limit_complete(ops, zone->limit_config, ops->config_size, complete, NULL, 0) != 0)
		return;
	bound = parameter_of(ops, complete, "min");
	if (bound != NULL && limit < *bound)
		limit = *bound;
	bound = parameter_of(ops, complete, "max");
	if (bound != NULL && limit > *bound)
		limit = *bound;
	*initial = limit;
}

/* The saved state of the previous limiter. */
struct saved {
	int size; /* in bytes; 0: none */
	uint32_t limit;
	u_char state[WEIR_SAVED_MAX];
};

static void save_state(const struct zone *before, struct saved *saved, ngx_log_t *log)
{
	struct weir_limiter *limiter;
	char why[WHY_MAX];

	if (weir_shm_attach(before->block, before->size, &before->config, &limiter, why,
			    sizeof(why)) != 0) {
		log_why(before, log,
			"starts without saved state, since the old limiter cannot be read", why);
		return;
	}
	saved->limit = weir_limit(limiter);
	saved->size = weir_limiter_save(limiter, saved->state, sizeof(saved->state));
	weir_shm_detach(limiter);
}

static void load_state(const struct zone *zone, const struct saved *saved, ngx_log_t *log)
{
	struct weir_limiter *limiter;
	char why[WHY_MAX];

	if (weir_shm_attach(zone->block, zone->size, &zone->config, &limiter, why, sizeof(why)) !=
	    0) {
		log_why(zone, log, "starts without saved state, since it cannot be loaded", why);
		return;
	}
	if (weir_limiter_load(limiter, saved->state, (size_t)saved->size, 0, why, sizeof(why)) != 0)
		ngx_log_error(NGX_LOG_NOTICE, log, 0, "weir zone \"%V\": starts as configured: %s",
			      &zone->name, why);
	weir_shm_detach(limiter);
}

/* Create the limiter; if one existed before and the zone has changed, start from its state. */
static ngx_int_t begin(struct zone *zone, const struct zone *before, ngx_log_t *log)
{
	struct saved saved = {.size = 0};
	char why[WHY_MAX];

	if (before != NULL && before->block != NULL)
		save_state(before, &saved, log);
	if (saved.size > 0 && before->config.limit != zone->config.limit) {
		start_at(zone, saved.limit);
		saved.size = 0;
	}
	if (weir_shm_init(zone->block, zone->size, &zone->config, zone->workers, why,
			  sizeof(why)) != 0) {
		log_why(zone, log, "cannot create the limiter", why);
		return NGX_ERROR;
	}
	if (saved.size > 0)
		load_state(zone, &saved, log);
	return NGX_OK;
}

/* Called by the master; data is the zone of the running configuration, if its memory is kept. */
static ngx_int_t share(ngx_shm_zone_t *shared, void *data)
{
	struct zone *zone = shared->data;
	const struct zone *same = data, *before = zone->before;

	zone->before = NULL; /* its configuration is freed once this one is in use */
	if (same != NULL) {
		zone->block = same->block;
		ngx_memcpy(zone->limit_config, same->limit_config, sizeof(zone->limit_config));
		return NGX_OK;
	}
	zone->block = ngx_slab_alloc((ngx_slab_pool_t *)(void *)shared->shm.addr, zone->size);
	if (zone->block == NULL)
		return NGX_ERROR;
	return begin(zone, before, shared->shm.log);
}

ngx_int_t zone_share(ngx_conf_t *cf, struct zone *zone)
{
	const ngx_shm_zone_t *running = running_zone(cf, &zone->name);
	ngx_shm_zone_t *shared;
	size_t size;

	zone->size = weir_shm_size(&zone->config, zone->workers);
	size = memory_for(zone->size);
	if (running != NULL) {
		zone->before = running->data;
		if (is_same(&zone->text, &zone->before->text))
			size = running->shm.size;
		else if (size == running->shm.size)
			size += ngx_pagesize;
	}
	shared = ngx_shared_memory_add(cf, &zone->name, size, &ngx_http_weir_module);
	if (shared == NULL)
		return NGX_ERROR;
	shared->init = share;
	shared->data = zone;
	return NGX_OK;
}

static void find_partitions(struct zone *zone)
{
	for (uint32_t i = 0; i < zone->config.partition_count; i++)
		zone->indices[i] = weir_partition_find(zone->limiter, zone->partitions[i].name);
}

/* The index of that partition in the zone; NGX_DECLINED: there is none. */
ngx_int_t zone_partition(const struct zone *zone, const ngx_str_t *name)
{
	for (uint32_t i = 0; i < zone->config.partition_count; i++)
		if (word_is(name, zone->partitions[i].name))
			return (ngx_int_t)i;

	return NGX_DECLINED;
}

static bool attach(struct zone *zone, ngx_log_t *log)
{
	char why[WHY_MAX];

	if ((zone->config.limit->flags & WEIR_LIMIT_CPU) != 0 && zone->cpu == NULL &&
	    weir_cpu_create(NULL, &zone->cpu) == 0)
		zone->config.cpu = weir_cpu_gauge(zone->cpu);
	if (weir_shm_attach(zone->block, zone->size, &zone->config, &zone->limiter, why,
			    sizeof(why)) != 0) {
		log_why(zone, log, "this worker does not limit requests for now", why);
		return false;
	}
	find_partitions(zone);
	if (zone->config.queue > 0)
		waking_listen(zone, log);
	return true;
}

/* The workers take turns, so that all together reap as often as a single worker would. */
static ngx_msec_t reap_interval(void)
{
	const ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(ngx_cycle->conf_ctx,
								      ngx_core_module);
	const ngx_int_t interval = REAP_INTERVAL * core->worker_processes;

	return (ngx_msec_t)(interval < REAP_INTERVAL_MAX ? interval : REAP_INTERVAL_MAX);
}

static void do_chores(ngx_event_t *timer)
{
	struct zone *zone = (struct zone *)((u_char *)timer - offsetof(struct zone, chores));
	struct weir_shm_reaped reaped;

	if (zone->limiter == NULL)
		(void)attach(zone, timer->log);
	else if (weir_shm_reap(zone->limiter, &reaped) == 0 && reaped.processes > 0)
		ngx_log_error(NGX_LOG_NOTICE, timer->log, 0,
			      "weir zone \"%V\": %uD workers died; recovered %uD permits",
			      &zone->name, reaped.processes, reaped.permits);
	ngx_add_timer(timer, reap_interval());
}

void zone_attach(struct zone *zone, struct waking *waking, ngx_log_t *log)
{
	zone->waking = waking;
	(void)attach(zone, log);
	zone->chores = (ngx_event_t){
		.handler = do_chores,
		.data = &no_connection,
		.log = log,
		.cancelable = 1,
	};
	ngx_add_timer(&zone->chores, reap_interval());
}

void zone_detach(struct zone *zone)
{
	if (zone->limiter == NULL)
		return;
	waking_stop(zone);
	weir_shm_detach(zone->limiter);
	zone->limiter = NULL;
	weir_cpu_destroy(zone->cpu);
	zone->cpu = NULL;
}
