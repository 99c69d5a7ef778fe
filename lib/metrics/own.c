/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics of the program's own. */

#include "lib/metrics/metrics.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "lib/metrics/labels.h"

/* Whether a metric of this library has that name. */
static bool is_ours(const char *name)
{
	for (size_t i = 0; i < metric_family_count; i++)
		if (strcmp(metric_families[i].name, name) == 0)
			return true;
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), rest = strlen(end);

	return length > rest && strcmp(text + length - rest, end) == 0;
}

static bool is_unit_of(const char *unit, const char *name)
{
	return labels_is_name(unit) && ends_with(name, unit) &&
	       name[strlen(name) - strlen(unit) - 1] == '_';
}

/* Returns 0, -EINVAL or -EILSEQ. */
static int check_metric(const struct weir_metric *metric)
{
	if ((unsigned)metric->kind > WEIR_METRIC_COUNTER || !labels_is_name(metric->name) ||
	    ends_with(metric->name, "_total") || is_ours(metric->name))
		return -EINVAL;
	if (metric->unit != NULL && !is_unit_of(metric->unit, metric->name))
		return -EINVAL;
	if (metric->help == NULL || strpbrk(metric->help, "\"\\\n") != NULL)
		return -EINVAL;
	return labels_is_text(metric->help, strlen(metric->help)) ? 0 : -EILSEQ;
}

static enum kind kind_of(const struct weir_metric *metric)
{
	return metric->kind == WEIR_METRIC_COUNTER ? COUNTER : GAUGE;
}

static bool is_same(const struct family *family, const struct weir_metric *metric)
{
	const char *unit = metric->unit != NULL ? metric->unit : "";

	return family->kind == kind_of(metric) && strcmp(family->help, metric->help) == 0 &&
	       strcmp(family->unit != NULL ? family->unit : "", unit) == 0;
}

static struct own *own_create(const struct weir_metric *metric)
{
	const char *unit = metric->unit != NULL ? metric->unit : "";
	const size_t name_size = strlen(metric->name) + 1, unit_size = strlen(unit) + 1;
	const size_t help_size = strlen(metric->help) + 1;
	struct own *own = calloc(1, sizeof(*own) + name_size + unit_size + help_size);

	if (own == NULL)
		return NULL;
	memcpy(own->text, metric->name, name_size);
	memcpy(own->text + name_size, unit, unit_size);
	memcpy(own->text + name_size + unit_size, metric->help, help_size);
	own->family = (struct family){
		.kind = kind_of(metric),
		.name = own->text,
		.unit = metric->unit != NULL ? own->text + name_size : NULL,
		.help = own->text + name_size + unit_size,
	};
	own->end = &own->first;
	return own;
}

/*
 * The metric of that name, created at the end of the list, where *created is set, if there is none.
 * Returns 0, -EINVAL or -ENOMEM.
 */
static int own_find(struct weir_metrics *metrics, const struct weir_metric *metric,
		    struct own **found, bool *created)
{
	*created = false;
	for (*found = metrics->own; *found != NULL; *found = (*found)->next)
		if (strcmp((*found)->family.name, metric->name) == 0)
			return is_same(&(*found)->family, metric) ? 0 : -EINVAL;
	*found = own_create(metric);
	*created = true;
	return *found != NULL ? 0 : -ENOMEM;
}

static int value_compare(const void *a, const void *b)
{
	const struct value *one = a, *other = b;
	const int r = strcmp(one->metric->family.name, other->metric->family.name);

	return r != 0 ? r : strcmp(one->labels, other->labels);
}

static void value_free(struct value *value)
{
	free(value->labels);
	free(value);
}

/* Returns 0, -EILSEQ, -EEXIST or -ENOMEM; in the latter cases it is freed. */
static int value_register(struct weir_metrics *metrics, struct value *value,
			  const struct weir_label *labels, size_t count)
{
	struct value *const *found = NULL;
	int r = labels_write(labels, count, &value->labels);

	if (r == 0) {
		found = tsearch(value, &metrics->values, value_compare);
		r = found == NULL ? -ENOMEM : *found == value ? 0 : -EEXIST;
	}
	if (r != 0)
		value_free(value);
	return r;
}

static int value_add(struct weir_metrics *metrics, struct own *own, double number,
		     const struct weir_label *labels, size_t count)
{
	struct value *value = malloc(sizeof(*value));
	int r;

	if (value == NULL)
		return -ENOMEM;
	*value = (struct value){.metric = own, .number = number};
	r = value_register(metrics, value, labels, count);
	if (r != 0)
		return r;
	*own->end = value;
	own->end = &value->next;
	return 0;
}

int weir_metrics_add_value(struct weir_metrics *metrics, const struct weir_metric *metric,
			   double value, const struct weir_label *labels, size_t count)
{
	struct own *own = NULL;
	bool created = false;
	int r = check_metric(metric);

	if (r == 0)
		r = labels_check(labels, count);
	if (r == 0)
		r = own_find(metrics, metric, &own, &created);
	if (r == 0)
		r = value_add(metrics, own, value, labels, count);
	if (!created)
		return r;
	if (r != 0) {
		free(own);
		return r;
	}
	*metrics->own_end = own;
	metrics->own_end = &own->next;
	return 0;
}

void own_free(struct own *own)
{
	for (struct value *value = own->first, *next; value != NULL; value = next) {
		next = value->next;
		value_free(value);
	}
	free(own);
}
