/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuring templates of limits: listing, changing and removing them, and finding the one for a
 * name.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fleet/protocol/inspect.h"
#include "fleet/protocol/pattern.h"
#include "fleet/protocol/share.h"
#include "fleet/protocol/templates.h"
#include "fleet/store/store.h"

static void fill(const struct templates *t, const struct limit_record *l,
		 struct weir_fleet_limit *limit)
{
	const size_t size = limit->size;
	struct weir_fleet_limit full = {.size = size, .version = t->version};

	if (l != NULL)
		full = (struct weir_fleet_limit){
			.size = size,
			.capacity = l->capacity,
			.allotment = l->allotment,
			.reserved = l->reserved,
			.members_max = l->members,
			.lease = l->lease * WEIR_MS,
			.version = t->version,
			.learning_period = l->learning * WEIR_MS,
			.allocated = l->allocated,
		};
	memcpy(limit, &full, size < sizeof(full) ? size : sizeof(full));
}

static int check(const char *pattern, const struct weir_fleet_limit *limit, char *why)
{
	if (!is_pattern(pattern))
		return store_say(-EINVAL, why, "A pattern has 1 to %d letters, digits and -_.:@*?.",
				 WEIR_FLEET_PATTERN_MAX);
	return limit_check_settings(limit, why);
}

int weir_fleet_template_check(const char *pattern, const struct weir_fleet_limit *limit, char *why,
			      size_t why_size)
{
	char text[WHY_SIZE] = "";
	int r = check(pattern, limit, text);

	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}

/* Put a template in the place of what was read, unless something else is there by now. */
static int put(struct weir_store *store, const struct template_record *record, uint64_t version,
	       char *why)
{
	struct templates t = {.count = 0};
	int r = templates_read(store, &t);

	if (r == 0 && version != 0 && version != t.version)
		r = -EAGAIN;
	else if (r == 0 && t.count == WEIR_FLEET_TEMPLATES_MAX &&
		 templates_find(&t, record->pattern) == NULL)
		r = store_say(-ENOSPC, why, "There are %d templates, which is the maximum.",
			      WEIR_FLEET_TEMPLATES_MAX);
	else if (r == 0)
		r = templates_put(&t, record) ? templates_write(store, &t) : -ENOMEM;
	templates_free(&t);
	return r;
}

static void explain(struct weir_store *store, int r, char *why)
{
	if (r == 0 || why[0] != '\0')
		return;
	if (r == -EAGAIN)
		(void)store_say(r, why, "The templates have changed since they were read.");
	else if (r == -EPROTO)
		(void)store_say(r, why,
				"The templates have another format version, or are damaged.");
	else if (r == -ENOMEM)
		(void)store_say(r, why, "Out of memory.");
	else
		weir_store_error(store, why, WHY_SIZE);
}

static int set(struct weir_store *store, const char *pattern, const struct weir_fleet_limit *limit,
	       char *why)
{
	struct template_record record;
	int r = check(pattern, limit, why);

	if (r != 0)
		return r;
	record.limit = limit_record_of(limit);
	(void)snprintf(record.pattern, sizeof(record.pattern), "%s", pattern);
	r = -EAGAIN;
	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++) {
		r = put(store, &record, limit->version, why);
		if (limit->version != 0)
			break;
	}
	explain(store, r, why);
	return r;
}

int weir_fleet_template_set(struct weir_store *store, const char *pattern,
			    const struct weir_fleet_limit *limit, char *why, size_t why_size)
{
	char text[WHY_SIZE] = "";
	int r = set(store, pattern, limit, text);

	if (why != NULL && why_size > 0)
		(void)snprintf(why, why_size, "%s", text);
	return r;
}

int weir_fleet_template_get(struct weir_store *store, const char *pattern,
			    struct weir_fleet_limit *limit)
{
	struct templates t = {.count = 0};
	const struct template_record *found;
	int r = is_pattern(pattern) ? templates_read(store, &t) : -EINVAL;

	if (r == 0) {
		found = templates_find(&t, pattern);
		fill(&t, found != NULL ? &found->limit : NULL, limit);
		r = found != NULL ? 0 : -ENOENT;
	}
	templates_free(&t);
	return r;
}

int weir_fleet_template_match(struct weir_store *store, const char *name,
			      char pattern[WEIR_FLEET_PATTERN_MAX + 1],
			      struct weir_fleet_limit *limit)
{
	struct templates t = {.count = 0};
	const struct template_record *found;
	int r = fleet_is_name(name) ? templates_read(store, &t) : -EINVAL;

	if (r == 0) {
		found = templates_match(&t, name);
		fill(&t, found != NULL ? &found->limit : NULL, limit);
		if (found != NULL && pattern != NULL)
			memcpy(pattern, found->pattern, sizeof(found->pattern));
		r = found != NULL ? 0 : -ENOENT;
	}
	templates_free(&t);
	return r;
}

int weir_fleet_template_list(struct weir_store *store,
			     bool (*visit)(void *arg, const char *pattern,
					   const struct weir_fleet_limit *limit),
			     void *arg)
{
	struct templates t = {.count = 0};
	int r = templates_read(store, &t);
	bool more = r == 0;

	for (size_t i = 0; more && i < t.count; i++) {
		struct weir_fleet_limit limit;

		weir_fleet_limit_init(&limit);
		fill(&t, &t.at[i].limit, &limit);
		more = visit(arg, t.at[i].pattern, &limit);
	}
	templates_free(&t);
	return r;
}

/* Whatever the row is, it is there, and goes if nothing has changed it meanwhile. */
static int drop_all(struct weir_store *store, struct templates *t)
{
	t->count = 0;
	return t->version != 0 ? templates_write(store, t) : -ENOENT;
}

static int drop(struct weir_store *store, const char *pattern)
{
	struct templates t = {.count = 0};
	struct template_record *found;
	int r = templates_read(store, &t);

	if (pattern == NULL && (r == 0 || r == -EPROTO)) {
		r = drop_all(store, &t);
	} else if (r == 0) {
		found = templates_find(&t, pattern);
		if (found != NULL)
			templates_drop(&t, found);
		r = found != NULL ? templates_write(store, &t) : -ENOENT;
	}
	templates_free(&t);
	return r;
}

int weir_fleet_template_remove(struct weir_store *store, const char *pattern)
{
	int r = pattern == NULL || is_pattern(pattern) ? -EAGAIN : -EINVAL;

	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++)
		r = drop(store, pattern);
	return r;
}
