/* SPDX-License-Identifier: BSD-2-Clause */
#include "candidate.h"

#include "bench/sim/alloc_or_abort.h"
#include "bench/sim/quantity.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1000

/* A longer list is taken for one without its NULL, or for another object of that name. */
#define LIMITS_MAX 64

/* Characters of a limit's name that cannot be mistaken for separators on a command line. */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_-"

static const struct weir_limit_ops *ops_by_name(const struct plugins *plugins, const char *name)
{
	for (size_t i = 0; i < plugins->count; i++)
		if (strcmp(plugins->limits[i]->name, name) == 0)
			return plugins->limits[i];
	return weir_limit_by_name(name);
}

static bool plugin_check(const struct plugins *plugins, const struct weir_limit_ops *ops, char *why,
			 size_t why_size)
{
	_Alignas(max_align_t) char limit_config[WEIR_LIMIT_CONFIG_MAX];
	struct weir_config config;

	if (weir_limit_complete(ops, NULL, 0, limit_config, why, why_size) != 0)
		return false;
	weir_config_init(&config);
	config.limit = ops;
	if (ops->name[strspn(ops->name, NAME_CHARACTERS)] != '\0')
		snprintf(why, why_size,
			 "The name of a limit contains characters other than a-z, 0-9, _ and -.");
	else if (strcmp(ops->name, "all") == 0 || ops_by_name(plugins, ops->name) != NULL)
		snprintf(why, why_size, "%s: There is a limit of that name already.", ops->name);
	else
		return weir_config_check(&config, why, why_size) == 0;
	return false;
}

static bool plugin_add(struct plugins *plugins, const struct weir_limit_ops *ops, const char *path,
		       char *why, size_t why_size)
{
	char wrong[200];

	if (!plugin_check(plugins, ops, wrong, sizeof(wrong))) {
		snprintf(why, why_size, "%s: %s", path, wrong);
		return false;
	}
	plugins->limits = realloc_or_abort(
		plugins->limits, (plugins->count + 1) * sizeof(const struct weir_limit_ops *));
	plugins->limits[plugins->count++] = ops;
	return true;
}

bool plugin_load(struct plugins *plugins, const char *path, char *why, size_t why_size)
{
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct weir_limit_ops *const *list;

	if (object == NULL) {
		snprintf(why, why_size, "%s%s", dlerror(),
			 strchr(path, '/') == NULL ? " (for a file in the current folder write ./)"
						   : "");
		return false;
	}
	list = dlsym(object, "weir_plugin");
	if (list == NULL || list[0] == NULL) {
		snprintf(why, why_size, "%s: the file has no limits: weir_plugin %s.", path,
			 list == NULL ? "is not defined" : "is empty");
		dlclose(object);
		return false;
	}
	for (unsigned i = 0; list[i] != NULL; i++) {
		if (i == LIMITS_MAX) {
			snprintf(why, why_size, "%s: weir_plugin has no NULL at its end.", path);
			return false;
		}
		if (!plugin_add(plugins, list[i], path, why, why_size))
			return false;
	}
	return true;
}

void plugins_free(struct plugins *plugins)
{
	free(plugins->limits);
	*plugins = (struct plugins){.limits = NULL};
}

static bool set_statistic(struct weir_config *config, const char *value)
{
	char *end;
	double percent;

	if (strcmp(value, "mean") == 0 || strcmp(value, "min") == 0) {
		config->rtt = strcmp(value, "min") == 0 ? WEIR_RTT_MIN : WEIR_RTT_MEAN;
		return true;
	}
	if (value[0] != 'p')
		return false;
	percent = strtod(value + 1, &end);
	config->rtt = WEIR_RTT_QUANTILE;
	config->quantile = percent / 100;
	return end != value + 1 && *end == '\0' && percent > 0 && percent < 100;
}

static bool set_duration(weir_dur *to, const char *value)
{
	double nanoseconds;

	if (!duration_read(value, &nanoseconds) || nanoseconds < 1)
		return false;
	*to = (weir_dur)nanoseconds;
	return true;
}

static bool set_count(uint32_t *to, const char *value)
{
	char *end;
	unsigned long count = strtoul(value, &end, 10);

	*to = (uint32_t)count;
	return isdigit((unsigned char)value[0]) && *end == '\0' && count > 0 && count < UINT32_MAX;
}

/* Returns whether the parameter is about windows; *good: whether its value is valid. */
static bool set_window(struct weir_config *config, const char *name, const char *value, bool *good)
{
	if (strcmp(name, "windowing") == 0) {
		*good = strcmp(value, "sample") == 0 || strcmp(value, "time") == 0;
		config->windowing = strcmp(value, "sample") == 0 ? WEIR_WINDOW_SAMPLE
								 : WEIR_WINDOW_TIME;
	} else if (strcmp(name, "window_min") == 0) {
		*good = set_duration(&config->window_min, value);
	} else if (strcmp(name, "window_max") == 0) {
		*good = set_duration(&config->window_max, value);
	} else if (strcmp(name, "window_samples") == 0) {
		*good = set_count(&config->window_samples, value);
	} else if (strcmp(name, "sample_rate") == 0) {
		*good = set_count(&config->sample_rate, value);
	} else if (strcmp(name, "rtt") == 0) {
		*good = set_statistic(config, value);
	} else {
		return false;
	}
	return true;
}

static bool set_parameter(struct candidate *c, char *parameter, char *why, size_t why_size)
{
	char *equals = strchr(parameter, '='), wrong[200];
	bool good, window;

	if (equals != NULL) {
		*equals = '\0';
		window = set_window(&c->config, parameter, equals + 1, &good);
		*equals = '=';
		if (window && !good)
			snprintf(why, why_size, "%s: %s is not a valid value.", c->text, parameter);
		if (window)
			return good;
	}
	if (weir_limit_parse(c->config.limit, c->limit_config, parameter, wrong, sizeof(wrong)) ==
	    0)
		return true;
	snprintf(why, why_size, "%s: %s", c->text, wrong);
	return false;
}

static bool set_all(struct candidate *c, const struct plugins *plugins, char *text, char *why,
		    size_t why_size)
{
	char *parameters = strchr(text, ':'), *rest = NULL, wrong[200];

	if (parameters != NULL)
		*parameters++ = '\0';
	c->config.limit = ops_by_name(plugins, text);
	if (c->config.limit == NULL) {
		snprintf(why, why_size, "There is no limit \"%s\": see weir-sim list.", text);
		return false;
	}
	for (char *one = parameters == NULL ? NULL : strtok_r(parameters, ",", &rest); one != NULL;
	     one = strtok_r(NULL, ",", &rest))
		if (!set_parameter(c, one, why, why_size))
			return false;
	c->config.limit_config = c->limit_config;
	if (weir_config_check(&c->config, wrong, sizeof(wrong)) == 0)
		return true;
	snprintf(why, why_size, "%s: %s", c->text, wrong);
	return false;
}

bool candidate_read(struct candidate *c, const struct plugins *plugins, const char *text, char *why,
		    size_t why_size)
{
	char copy[TEXT_MAX];

	*c = (struct candidate){.text = strdup_or_abort(text)};
	weir_config_init(&c->config);
	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, why_size, "The text of a limit is longer than %zu bytes.",
			 sizeof(copy) - 1);
		return false;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	return set_all(c, plugins, copy, why, why_size);
}

void candidate_free(struct candidate *c)
{
	free(c->text);
}
