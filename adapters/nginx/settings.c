/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir_zone name parameter=value ...: the configuration of a zone's limiter.
 *
 * Single values are checked here, and their combinations by the library. In both cases nginx
 * rejects the configuration with one sentence and the line.
 */
#include "module.h"

enum {
	ZONE_NAME_MAX = 63,
	WORKERS = 256,          /* attached at once, including old workers after a reload */
	TIME_MAX = 3600 * 1000, /* in milliseconds */
	SHED_STRICT = 2,
};

enum kind {
	KIND_COUNT,
	KIND_TIME,
	KIND_RATIO,
	KIND_WORD,
};

struct word {
	const char *name;
	uint32_t value;
};

/* A parameter with one value, at an offset in struct zone. */
struct parameter {
	const char *name;
	enum kind kind;
	size_t offset;
	double min, max;
	const struct word *words; /* NULL at the end */
	const char *needs;        /* another parameter that this one requires */
};

static const struct word orders[] = {
	{"fifo", WEIR_FIFO},
	{"lifo", WEIR_LIFO},
	{"adaptive", WEIR_ADAPTIVE},
	{NULL, 0},
};

static const struct word windowings[] = {
	{"time", WEIR_WINDOW_TIME},
	{"sample", WEIR_WINDOW_SAMPLE},
	{NULL, 0},
};

static const struct word sparses[] = {
	{"extend", WEIR_SPARSE_EXTEND},
	{"discard", WEIR_SPARSE_DISCARD},
	{NULL, 0},
};

static const struct word statistics[] = {
	{"mean", WEIR_RTT_MEAN},
	{"min", WEIR_RTT_MIN},
	{"quantile", WEIR_RTT_QUANTILE},
	{NULL, 0},
};

static const struct word sheds[] = {
	{"off", 0},
	{"on", 1},
	{"strict", SHED_STRICT},
	{NULL, 0},
};

#define AT(field) offsetof(struct zone, field)

static const struct parameter parameters[] = {
	{"limit_min", KIND_COUNT, AT(config.limit_min), 1, WEIR_LIMIT_MAX, NULL, NULL},
	{"limit_max", KIND_COUNT, AT(config.limit_max), 1, WEIR_LIMIT_MAX, NULL, NULL},
	{"burst", KIND_COUNT, AT(config.burst), 0, WEIR_LIMIT_MAX, NULL, NULL},
	{"queue", KIND_COUNT, AT(config.queue), 0, 65535, NULL, NULL},
	{"order", KIND_WORD, AT(config.order), 0, 0, orders, "queue"},
	{"queue_stand", KIND_TIME, AT(config.queue_stand), 1, TIME_MAX, NULL, "queue"},
	{"partition_hold", KIND_TIME, AT(config.partition_hold), 1, TIME_MAX, NULL, "partition"},
	{"delayed_max", KIND_COUNT, AT(config.delayed_max), 1, 1000000, NULL, "partition"},
	{"shed", KIND_WORD, AT(config.shed), 0, 0, sheds, NULL},
	{"shed_floor", KIND_RATIO, AT(config.shed_floor), 0.001, 1, NULL, "shed=on"},
	{"windowing", KIND_WORD, AT(config.windowing), 0, 0, windowings, NULL},
	{"window_min", KIND_TIME, AT(config.window_min), 1, TIME_MAX, NULL, NULL},
	{"window_max", KIND_TIME, AT(config.window_max), 1, TIME_MAX, NULL, NULL},
	{"window_samples", KIND_COUNT, AT(config.window_samples), 1, 1000000, NULL, NULL},
	{"sparse", KIND_WORD, AT(config.sparse), 0, 0, sparses, NULL},
	{"statistic", KIND_WORD, AT(config.rtt), 0, 0, statistics, NULL},
	{"quantile", KIND_RATIO, AT(config.quantile), 0.001, 0.999, NULL, "statistic=quantile"},
	{"rtt_threshold", KIND_TIME, AT(config.rtt_threshold), 1, TIME_MAX, NULL, NULL},
	{"rtt_smoothing", KIND_RATIO, AT(config.rtt_smoothing), 0.001, 1, NULL, NULL},
	{"workers", KIND_COUNT, AT(workers), 1, WEIR_SHM_MEMBERS_MAX, NULL, NULL},
};

enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]) };

/* Drop the full stop of the library's sentence, since nginx appends to it. */
static char *refuse_why(ngx_conf_t *cf, const struct zone *zone, char *why)
{
	size_t length = ngx_strlen(why);

	if (length > 0 && why[length - 1] == '.')
		why[length - 1] = '\0';
	return REFUSE(cf, "zone \"%V\": %s", &zone->name, why);
}

static bool is_name(const ngx_str_t *name, size_t max)
{
	for (size_t i = 0; i < name->len; i++) {
		const u_char c = name->data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '.'))
			return false;
	}
	return name->len > 0 && name->len <= max;
}

static char *read_count(ngx_conf_t *cf, const struct parameter *p, ngx_str_t *value, uint32_t *to)
{
	const ngx_int_t n = ngx_atoi(value->data, value->len);

	if (n == NGX_ERROR || (double)n < p->min || (double)n > p->max)
		return REFUSE(cf, "\"%s\" must be a whole number from %.0f to %.0f, not \"%V\"",
			      p->name, p->min, p->max, value);
	*to = (uint32_t)n;
	return NGX_CONF_OK;
}

static char *read_time(ngx_conf_t *cf, const struct parameter *p, ngx_str_t *value, weir_dur *to)
{
	const ngx_int_t ms = ngx_parse_time(value, 0);

	if (ms == NGX_ERROR || (double)ms < p->min || (double)ms > p->max)
		return REFUSE(cf, "\"%s\" must be a time from 1ms to 1h, not \"%V\"", p->name,
			      value);
	*to = (weir_dur)ms * WEIR_MS;
	return NGX_CONF_OK;
}

static char *read_ratio(ngx_conf_t *cf, const struct parameter *p, ngx_str_t *value, double *to)
{
	char *end;

	*to = strtod((char *)value->data, &end);
	if (value->len == 0 || *end != '\0' || !(*to >= p->min && *to <= p->max))
		return REFUSE(cf, "\"%s\" must be a number from %.3f to %.3f, not \"%V\"", p->name,
			      p->min, p->max, value);
	return NGX_CONF_OK;
}

static char *read_word(ngx_conf_t *cf, const struct parameter *p, ngx_str_t *value, uint32_t *to)
{
	u_char known[128], *end = known;

	for (const struct word *word = p->words; word->name != NULL; word++) {
		if (ngx_strcmp(value->data, word->name) == 0) {
			*to = word->value;
			return NGX_CONF_OK;
		}
		end = ngx_snprintf(end, (size_t)(known + sizeof(known) - end), "%s%s",
				   word == p->words ? "" : " or ", word->name);
	}
	return REFUSE(cf, "\"%s\" must be %*s, not \"%V\"", p->name, (size_t)(end - known), known,
		      value);
}

static char *read_parameter(ngx_conf_t *cf, struct zone *zone, const struct parameter *p,
			    ngx_str_t *value)
{
	void *to = (u_char *)zone + p->offset;

	switch (p->kind) {
	case KIND_COUNT:
		return read_count(cf, p, value, to);
	case KIND_TIME:
		return read_time(cf, p, value, to);
	case KIND_RATIO:
		return read_ratio(cf, p, value, to);
	case KIND_WORD:
		return read_word(cf, p, value, to);
	}
	return NGX_CONF_ERROR;
}

static char *read_limit(ngx_conf_t *cf, struct zone *zone, const ngx_str_t *value)
{
	char why[WHY_MAX];

	if (zone->limit.len > 0)
		return REFUSE(cf, "zone \"%V\": \"limit\" is given twice", &zone->name);
	if (value->len == 0)
		return REFUSE(cf, "zone \"%V\": \"limit\" is empty", &zone->name);
	if (weir_limit_from_text((char *)value->data, &zone->config.limit, zone->limit_config, why,
				 sizeof(why)) != 0)
		return refuse_why(cf, zone, why);
	zone->limit = *value;
	return NGX_CONF_OK;
}

/* Cut the next of several words, separated by colons, off the rest. */
static ngx_str_t next_word(ngx_str_t *rest)
{
	u_char *colon = ngx_strlchr(rest->data, rest->data + rest->len, ':');
	ngx_str_t word = *rest;

	if (colon == NULL) {
		*rest = (ngx_str_t)ngx_null_string;
		return word;
	}
	*colon = '\0';
	word.len = (size_t)(colon - rest->data);
	rest->data += word.len + 1;
	rest->len -= word.len + 1;
	return word;
}

static const struct parameter partition_share = {"share", KIND_RATIO, 0, 0, 1, NULL, NULL};
static const struct parameter partition_cap = {"cap", KIND_RATIO, 0, 0.001, 1, NULL, NULL};
static const struct parameter partition_max = {"max", KIND_COUNT, 0, 1, WEIR_LIMIT_MAX, NULL, NULL};
static const struct parameter partition_delay = {"delay", KIND_TIME, 0, 1, TIME_MAX, NULL, NULL};

static char *read_partition_setting(ngx_conf_t *cf, struct weir_partition *partition,
				    const ngx_str_t *setting)
{
	ngx_str_t value;

	if (word_is_named(setting, partition_share.name, &value))
		return read_ratio(cf, &partition_share, &value, &partition->share);
	if (word_is_named(setting, partition_cap.name, &value))
		return read_ratio(cf, &partition_cap, &value, &partition->cap);
	if (word_is_named(setting, partition_max.name, &value))
		return read_count(cf, &partition_max, &value, &partition->max);
	if (word_is_named(setting, partition_delay.name, &value))
		return read_time(cf, &partition_delay, &value, &partition->reject_delay);
	return REFUSE(cf, "partition \"%s\" has no setting \"%V\"; it has share, cap, max, delay",
		      partition->name, setting);
}

/* name[:share=][:cap=][:max=][:delay=] */
static char *read_partition(ngx_conf_t *cf, struct zone *zone, const ngx_str_t *value)
{
	struct weir_partition *partition = &zone->partitions[zone->config.partition_count];
	ngx_str_t rest = {.len = value->len}, name;
	char *r = NGX_CONF_OK;

	if (zone->config.partition_count == WEIR_PARTITIONS_MAX)
		return REFUSE(cf, "zone \"%V\" has more than %d partitions", &zone->name,
			      WEIR_PARTITIONS_MAX);
	rest.data = ngx_pnalloc(cf->pool, value->len + 1);
	if (rest.data == NULL)
		return NGX_CONF_ERROR;
	ngx_cpystrn(rest.data, value->data, value->len + 1);
	name = next_word(&rest);
	if (!is_name(&name, WEIR_PARTITION_NAME_MAX))
		return REFUSE(cf,
			      "\"%V\" is not a partition name: letters, digits, \"_\", \"-\" and "
			      "\".\", at most %d",
			      &name, WEIR_PARTITION_NAME_MAX);
	partition->name = (char *)name.data;
	while (r == NGX_CONF_OK && rest.len > 0) {
		const ngx_str_t setting = next_word(&rest);

		r = read_partition_setting(cf, partition, &setting);
	}
	zone->config.partition_count++;
	return r;
}

/* Read one name=value argument; seen marks the parameters that have occurred. */
static char *read_argument(ngx_conf_t *cf, struct zone *zone, const ngx_str_t *argument,
			   uint32_t *seen)
{
	ngx_str_t value;

	if (word_is_named(argument, "limit", &value))
		return read_limit(cf, zone, &value);
	if (word_is_named(argument, "partition", &value))
		return read_partition(cf, zone, &value);
	for (unsigned i = 0; i < PARAMETERS; i++) {
		if (!word_is_named(argument, parameters[i].name, &value))
			continue;
		if ((*seen & (1u << i)) != 0)
			return REFUSE(cf, "zone \"%V\": \"%s\" is given twice", &zone->name,
				      parameters[i].name);
		*seen |= 1u << i;
		return read_parameter(cf, zone, &parameters[i], &value);
	}
	if (ngx_strlchr(argument->data, argument->data + argument->len, '=') == NULL)
		return REFUSE(cf, "zone \"%V\": \"%V\" must be name=value", &zone->name, argument);
	return REFUSE(cf, "zone \"%V\" has no parameter \"%V\"", &zone->name, argument);
}

/* Whether the required parameter is present. */
static bool has(const struct zone *zone, const char *need)
{
	if (ngx_strcmp(need, "queue") == 0)
		return zone->config.queue > 0;
	if (ngx_strcmp(need, "partition") == 0)
		return zone->config.partition_count > 0;
	if (ngx_strcmp(need, "shed=on") == 0)
		return zone->config.shed == 1;
	return zone->config.rtt == WEIR_RTT_QUANTILE;
}

static char *check_needs(ngx_conf_t *cf, const struct zone *zone, uint32_t seen)
{
	for (unsigned i = 0; i < PARAMETERS; i++) {
		const struct parameter *p = &parameters[i];

		if ((seen & (1u << i)) != 0 && p->needs != NULL && !has(zone, p->needs))
			return REFUSE(cf, "zone \"%V\": \"%s\" needs \"%s\"", &zone->name, p->name,
				      p->needs);
	}
	return NGX_CONF_OK;
}

/* The words of the directive, separated by blanks. */
static ngx_int_t keep_text(ngx_conf_t *cf, struct zone *zone)
{
	const ngx_str_t *words = cf->args->elts;
	size_t length = 0;
	u_char *end;

	for (ngx_uint_t i = 1; i < cf->args->nelts; i++)
		length += words[i].len + 1;
	end = ngx_pnalloc(cf->pool, length);
	if (end == NULL)
		return NGX_ERROR;
	zone->text = (ngx_str_t){.len = length, .data = end};
	for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
		end = ngx_cpymem(end, words[i].data, words[i].len);
		*end++ = ' ';
	}
	return NGX_OK;
}

static char *read_arguments(ngx_conf_t *cf, struct zone *zone)
{
	const ngx_str_t *words = cf->args->elts;
	char why[WHY_MAX];
	uint32_t seen = 0;
	char *r = NGX_CONF_OK;

	for (ngx_uint_t i = 2; r == NGX_CONF_OK && i < cf->args->nelts; i++)
		r = read_argument(cf, zone, &words[i], &seen);
	if (r == NGX_CONF_OK)
		r = check_needs(cf, zone, seen);
	if (r != NGX_CONF_OK)
		return r;
	if (zone->config.shed == SHED_STRICT) {
		zone->config.shed = 1;
		zone->config.shed_floor = WEIR_SHED_STRICT;
	}
	if (weir_config_check(&zone->config, why, sizeof(why)) != 0)
		return refuse_why(cf, zone, why);
	return NGX_CONF_OK;
}

static struct zone *make_zone(ngx_conf_t *cf, const ngx_str_t *name)
{
	struct zone *zone = ngx_pmemalign(cf->pool, sizeof(*zone), alignof(struct zone));

	if (zone == NULL)
		return NULL;
	ngx_memzero(zone, sizeof(*zone));
	zone->name = *name;
	zone->workers = WORKERS;
	weir_config_init(&zone->config);
	zone->config.limit = weir_limit_by_name(NULL);
	zone->config.limit_config = zone->limit_config;
	zone->config.partitions = zone->partitions;
	return zone;
}

char *zone_directive(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	struct zones *zones = conf;
	const ngx_str_t *name = (ngx_str_t *)cf->args->elts + 1;
	struct zone *zone, **place;
	char *r;

	(void)command;
	if (!is_name(name, ZONE_NAME_MAX))
		return REFUSE(cf,
			      "\"%V\" is not a zone name: letters, digits, \"_\", \"-\" and \".\", "
			      "at most %d",
			      name, ZONE_NAME_MAX);
	if (zone_find(zones, name) != NULL)
		return REFUSE(cf, "there are two zones \"%V\"", name);
	zone = make_zone(cf, name);
	if (zone == NULL || keep_text(cf, zone) != NGX_OK)
		return NGX_CONF_ERROR;
	r = read_arguments(cf, zone);
	if (r != NGX_CONF_OK)
		return r;
	if (zone->limit.len == 0)
		zone->limit = (ngx_str_t){.len = ngx_strlen(zone->config.limit->name),
					  .data = (u_char *)zone->config.limit->name};
	place = ngx_array_push(&zones->all);
	if (place == NULL || zone_share(cf, zone) != NGX_OK)
		return NGX_CONF_ERROR;
	*place = zone;
	return NGX_CONF_OK;
}
