/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/metrics/metrics.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

int weir_metrics_create(struct weir_metrics **metrics)
{
	struct weir_metrics *m = calloc(1, sizeof(*m));

	*metrics = NULL;
	if (m == NULL)
		return -ENOMEM;
	m->end = &m->first;
	m->own_end = &m->own;
	m->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (m->c == (locale_t)0) {
		free(m);
		return -ENOMEM;
	}
	*metrics = m;
	return 0;
}

static void leave(void *source)
{
	(void)source;
}

void weir_metrics_destroy(struct weir_metrics *metrics)
{
	struct source *next;

	if (metrics == NULL)
		return;
	tdestroy(metrics->known, leave);
	tdestroy(metrics->values, leave);
	for (struct own *own = metrics->own, *after; own != NULL; own = after) {
		after = own->next;
		own_free(own);
	}
	for (struct source *source = metrics->first; source != NULL; source = next) {
		next = source->next;
		source_free(source);
	}
	freelocale(metrics->c);
	free(metrics);
}
