/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits, their templates and their members, from outside. */
#include "fleet.h"

static unsigned seen;

static bool see_member(void *arg, const struct weir_fleet_member *member)
{
	*(struct weir_fleet_member *)arg = *member;
	seen++;
	return true;
}

static int inspect(void)
{
	struct weir_fleet_member last;
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	seen = 0;
	return weir_fleet_inspect(store, "limit", &limit, see_member, &last);
}

static void saw_member(void)
{
	CHECK(seen == 1);
}

static uint64_t capacity(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(store, "limit", &limit, NULL, NULL) == 0);
	return limit.capacity;
}

static int change(void)
{
	return weir_fleet_change(store, "limit", CAPACITY / 2);
}

static void unchanged(void)
{
	CHECK(capacity() == CAPACITY);
}

static void changed(void)
{
	CHECK(capacity() == CAPACITY / 2);
}

static int configure(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	limit.capacity = CAPACITY / 2;
	return weir_fleet_configure(store, "limit", &limit, why, sizeof(why));
}

static void no_limit(void)
{
	CHECK(inspect() == -ENOENT);
}

static void begin_unused(void)
{
	begin_trusted();
	CHECK(configure() == 0);
}

static int remove_limit(void)
{
	return weir_fleet_remove(store, "limit");
}

/* One that has a member is not removed. */
static int remove_used(void)
{
	const int r = remove_limit();

	if (r == 0)
		return -EPERM;
	return r == -EBUSY ? 0 : r;
}

static int set_template(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	limit.capacity = CAPACITY;
	return weir_fleet_template_set(store, "lim*", &limit, why, sizeof(why));
}

static bool see_template(void *arg, const char *pattern, const struct weir_fleet_limit *limit)
{
	(void)arg;
	seen += strcmp(pattern, "lim*") == 0 && limit->capacity == CAPACITY;
	return true;
}

static int list_templates(void)
{
	seen = 0;
	return weir_fleet_template_list(store, see_template, NULL);
}

static void saw_template(void)
{
	CHECK(seen == 1);
}

static void no_template(void)
{
	CHECK(list_templates() == 0 && seen == 0);
}

static void has_template(void)
{
	CHECK(list_templates() == 0 && seen == 1);
}

static void template_not_set(void)
{
	is_explained();
	no_template();
}

static void begin_template(void)
{
	begin_trusted();
	CHECK(set_template() == 0);
}

static int get_template(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	return weir_fleet_template_get(store, "lim*", &limit);
}

static int match_template(void)
{
	char pattern[WEIR_FLEET_PATTERN_MAX + 1];
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	return weir_fleet_template_match(store, "limit", pattern, &limit);
}

static int remove_template(void)
{
	return weir_fleet_template_remove(store, "lim*");
}

/* A limit that the store does not have, and a template for it. */
static void begin_by_template(void)
{
	begin_template();
	CHECK(open_fleet() == 0);
	CHECK(join() == 0);
	CHECK(weir_share_demand_set(share, CAPACITY) == 0);
}

static struct weir_fleet_member member;

static void begin_member(void)
{
	struct weir_fleet_limit limit;

	begin_with_units();
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(store, "limit", &limit, see_member, &member) == 0);
}

static int drain(void)
{
	return weir_fleet_drain(store, "limit", member.id, true);
}

static int drain_label(void)
{
	return weir_fleet_drain_label(store, "limit", "failures", true);
}

static void not_drained(void)
{
	has_units();
}

static void drained(void)
{
	CHECK(refresh() == 0 && refresh() == 0);
	CHECK(weir_share_units(share) == 0);
}

static bool see_entry(void *arg, const struct weir_fleet_entry *entry)
{
	(void)arg;
	seen += strcmp(entry->name, "limit") == 0 && entry->limit != NULL;
	return true;
}

static int list_limits(void)
{
	seen = 0;
	return weir_fleet_list(store, see_entry, NULL);
}

static struct failure_case cases[] = {
	{"weir_fleet_inspect",
	 NULL,
	 begin_with_units,
	 inspect,
	 NULL,
	 saw_member,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_change",
	 NULL,
	 begin_with_units,
	 change,
	 unchanged,
	 changed,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_configure",
	 NULL,
	 begin_trusted,
	 configure,
	 no_limit,
	 changed,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_fleet_remove",
	 NULL,
	 begin_unused,
	 remove_limit,
	 changed,
	 no_limit,
	 end_fleet,
	 {UNEXAMINED},
	 .quiet = true},
	{"weir_fleet_remove",
	 "of a limit with a member",
	 begin_with_units,
	 remove_used,
	 unchanged,
	 unchanged,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_set",
	 NULL,
	 begin_trusted,
	 set_template,
	 template_not_set,
	 has_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_list",
	 NULL,
	 begin_template,
	 list_templates,
	 has_template,
	 saw_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_get",
	 NULL,
	 begin_template,
	 get_template,
	 has_template,
	 has_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_match",
	 NULL,
	 begin_template,
	 match_template,
	 has_template,
	 has_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_template_remove",
	 NULL,
	 begin_template,
	 remove_template,
	 has_template,
	 no_template,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_refresh",
	 "of a limit that is made by a template",
	 begin_by_template,
	 refresh,
	 has_sentence,
	 has_units,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_drain",
	 NULL,
	 begin_member,
	 drain,
	 not_drained,
	 drained,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_drain_label",
	 NULL,
	 begin_member,
	 drain_label,
	 not_drained,
	 drained,
	 end_fleet,
	 {UNEXAMINED}},
	{"weir_fleet_list",
	 NULL,
	 begin_with_units,
	 list_limits,
	 NULL,
	 saw_member,
	 end_fleet,
	 {UNEXAMINED}},
};

const struct failure_table limit_failures = {cases, COUNT(cases)};
