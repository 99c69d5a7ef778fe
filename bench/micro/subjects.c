/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subjects.c - the list of subjects, collected from all files.
 */
#include "subjects.h"

#include "rig.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/limits.h>

static void add(struct subjects *subjects, const struct subject *subject)
{
	size_t size = (subjects->count + 1) * sizeof(*subject);

	subjects->all = must(realloc(subjects->all, size));
	subjects->all[subjects->count++] = *subject;
}

/* For all limits of the library; none is named here. */
static void add_each_limit(struct subjects *subjects, const struct subject *subject)
{
	for (unsigned i = 0; weir_limit_at(i) != NULL; i++) {
		struct subject of_limit = *subject;

		of_limit.limit = weir_limit_at(i);
		snprintf(of_limit.name, sizeof(of_limit.name), "%.15s-%.15s", subject->name,
			 of_limit.limit->name);
		add(subjects, &of_limit);
	}
}

void subjects_add(struct subjects *subjects, const struct subject *table, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if ((table[i].flags & EACH_LIMIT) != 0)
			add_each_limit(subjects, &table[i]);
		else
			add(subjects, &table[i]);
}

struct subjects subjects_make(void)
{
	struct subjects subjects = {.count = 0};

	baselines_list(&subjects);
	limits_list(&subjects);
	features_list(&subjects);
	halves_list(&subjects);
	refusals_list(&subjects);
	waiting_list(&subjects);
	registry_list(&subjects);
	executor_list(&subjects);
	numbers_list(&subjects);
	windows_list(&subjects);
	shared_list(&subjects);
	rate_list(&subjects);
	return subjects;
}

void subjects_free(struct subjects *subjects)
{
	free(subjects->all);
}

bool subject_matches(const struct subject *subject, const char *pattern)
{
	return pattern == NULL || strcmp(subject->group, pattern) == 0 ||
	       fnmatch(pattern, subject->name, FNM_EXTMATCH) == 0;
}

bool subject_fits(const struct subject *subject, unsigned threads)
{
	if ((subject->flags & ALONE) != 0)
		return threads == 1;
	return (subject->flags & TOGETHER) == 0 || threads > 1;
}
