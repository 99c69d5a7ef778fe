/* SPDX-License-Identifier: BSD-2-Clause */
/* Templates of limits: which one is taken, when, and what is wrong with some; case by case. */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fleet/protocol/pattern.h"
#include "fleet/protocol/templates.h"
#include "shares_rig.h"

#define CASES 200000

#define UNREAD "The templates could not be read"

/* Matching, against the plainest matcher there is. */

/* NOLINTNEXTLINE(misc-no-recursion) */
static bool plainly_matches(const char *pattern, const char *name)
{
	if (*pattern == '\0')
		return *name == '\0';
	if (*pattern == '*')
		return plainly_matches(pattern + 1, name) ||
		       (*name != '\0' && plainly_matches(pattern, name + 1));
	return *name != '\0' && (*pattern == '?' || *pattern == *name) &&
	       plainly_matches(pattern + 1, name + 1);
}

static void draw_text(uint64_t *chance, const char *characters, size_t most, char *text)
{
	const size_t length = draw(chance) % most + 1;

	for (size_t i = 0; i < length; i++)
		text[i] = characters[draw(chance) % strlen(characters)];
	text[length] = '\0';
}

static void matching(void)
{
	uint64_t chance = 2463534242u;
	unsigned matches = 0;
	char pattern[16], name[16];

	for (unsigned i = 0; i < CASES; i++) {
		draw_text(&chance, "aab*?", 8, pattern);
		draw_text(&chance, "ab", 10, name);
		CHECK(pattern_matches(pattern, name) == plainly_matches(pattern, name));
		matches += pattern_matches(pattern, name);
	}
	CHECK(matches > CASES / 50 && matches < CASES / 2);
}

/* A pattern on which a matcher that tries all possibilities would not come to an end. */
static void matching_ends(void)
{
	char pattern[WEIR_FLEET_PATTERN_MAX + 1], name[WEIR_SHARE_NAME_MAX + 1];

	for (size_t i = 0; i < WEIR_FLEET_PATTERN_MAX; i++)
		pattern[i] = i % 2 == 0 ? '*' : 'a';
	pattern[WEIR_FLEET_PATTERN_MAX - 1] = 'b';
	pattern[WEIR_FLEET_PATTERN_MAX] = '\0';
	memset(name, 'a', WEIR_SHARE_NAME_MAX);
	name[WEIR_SHARE_NAME_MAX] = '\0';
	CHECK(is_pattern(pattern) && !pattern_matches(pattern, name));
}

static void patterns(void)
{
	static const char *const bad[] = {"", "a b", "a/b", "a\n", "a[bc]", "a\\*", "\xc3\xa4*"};
	char text[WEIR_FLEET_PATTERN_MAX + 2];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!is_pattern(bad[i]));
	memset(text, '*', sizeof(text));
	text[WEIR_FLEET_PATTERN_MAX + 1] = '\0';
	CHECK(!is_pattern(text) && !is_pattern(NULL));
	text[WEIR_FLEET_PATTERN_MAX] = '\0';
	CHECK(is_pattern(text) && is_pattern("a-_.:@9?"));
}

/* Of those that match, each is taken before the next one. */
static void order(void)
{
	static const char *const by_order[] = {"web-7", "*web-7", "web-7*", "web-?",
					       "we?-?", "web*",   "*eb-?*", "*-7",
					       "*e*",   "*",      "?*",     "**"};
	const size_t count = sizeof(by_order) / sizeof(by_order[0]);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++) {
			const int wanted = i < k ? -1 : i > k;
			const int r = pattern_order(by_order[i], by_order[k]);

			CHECK((r > 0) - (r < 0) == wanted);
		}
}

/* Through the store. */

static struct weir_fleet_limit limit_of(uint64_t capacity)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	limit.capacity = capacity;
	limit.lease = LEASE;
	return limit;
}

static void set(const char *pattern, uint64_t capacity)
{
	const struct weir_fleet_limit limit = limit_of(capacity);
	char why[200];

	CHECK(weir_fleet_template_set(w.store, pattern, &limit, why, sizeof(why)) == 0);
	CHECK(why[0] == '\0');
}

/* The capacity that a limit of that name would be made with; 0: no template matches. */
static uint64_t would_have(const char *name)
{
	struct weir_fleet_limit limit = limit_of(0);
	const int r = weir_fleet_template_match(w.store, name, NULL, &limit);

	CHECK(r == 0 || r == -ENOENT);
	return r == 0 ? limit.capacity : 0;
}

static struct weir_fleet_limit limit_now(const char *name)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, name, &limit, NULL, NULL) == 0);
	return limit;
}

static bool note(void *arg, const char *pattern, const struct weir_fleet_limit *limit)
{
	char *text = arg;

	(void)snprintf(text + strlen(text), 100, "%s %u, ", pattern, (unsigned)limit->capacity);
	CHECK(limit->version != 0);
	return strcmp(pattern, "stop") != 0;
}

static bool are(const char *wanted)
{
	char text[500] = "";

	CHECK(weir_fleet_template_list(w.store, note, text) == 0);
	return strcmp(text, wanted) == 0;
}

static void listed(void)
{
	struct weir_fleet_limit limit = limit_of(0);
	char pattern[WEIR_FLEET_PATTERN_MAX + 1] = "";

	begin(100);
	CHECK(are("") && would_have("web-7") == 0);
	CHECK(weir_fleet_template_get(w.store, "*", &limit) == -ENOENT && limit.version == 0);
	CHECK(weir_fleet_template_remove(w.store, "*") == -ENOENT);
	CHECK(weir_fleet_template_remove(w.store, NULL) == -ENOENT);
	set("web-*", 20);
	set("*", 10);
	set("web-7", 30);
	CHECK(are("* 10, web-* 20, web-7 30, "));
	CHECK(would_have("db") == 10 && would_have("web-6") == 20 && would_have("web-7") == 30);
	set("web-*", 21);
	CHECK(are("* 10, web-* 21, web-7 30, "));
	CHECK(weir_fleet_template_match(w.store, "web-6", pattern, &limit) == 0);
	CHECK(strcmp(pattern, "web-*") == 0 && limit.capacity == 21 && limit.lease == LEASE);
	CHECK(weir_fleet_template_get(w.store, "web-*", &limit) == 0 && limit.capacity == 21);
	CHECK(weir_fleet_template_get(w.store, "web", &limit) == -ENOENT);
	CHECK(limit.version != 0 && limit.capacity == 0);
	set("stop", 1);
	CHECK(are("* 10, stop 1, "));
	CHECK(weir_fleet_template_remove(w.store, "stop") == 0);
	CHECK(weir_fleet_template_remove(w.store, "*") == 0);
	CHECK(are("web-* 21, web-7 30, ") && would_have("db") == 0);
	CHECK(weir_fleet_template_remove(w.store, NULL) == 0 && are(""));
	/* It is no limit, nor anything else that is listed. */
	CHECK(weir_fleet_template_match(w.store, "a/b", NULL, &limit) == -EINVAL);
	CHECK(weir_fleet_template_get(w.store, "a/b", &limit) == -EINVAL);
	CHECK(weir_fleet_template_remove(w.store, "a/b") == -EINVAL);
	end();
}

/* Whether a limit has an allocator. */
static void allocated(void)
{
	struct weir_fleet_limit limit = limit_of(1000), after = limit_of(0);

	begin(100);
	limit.allocated = 1;
	CHECK(weir_fleet_template_set(w.store, "l*", &limit, NULL, 0) == 0);
	CHECK(weir_fleet_template_get(w.store, "l*", &after) == 0 && after.allocated == 1);
	enter(1, 10);
	CHECK(limit_now("limit").allocated == 1);
	end();
}

/* All settings are kept. */
static void settings(void)
{
	struct weir_fleet_limit limit = limit_of(1000), after = limit_of(0);

	begin(100);
	limit.allotment = WEIR_ALLOT_PROPORTIONAL;
	limit.reserved = 7;
	limit.members_max = 9;
	limit.lease = 3 * WEIR_S;
	limit.learning_period = 4 * WEIR_S;
	CHECK(weir_fleet_template_set(w.store, "l*", &limit, NULL, 0) == 0);
	enter(1, 10);
	after = limit_now("limit");
	CHECK(after.capacity == 1000 && after.allotment == WEIR_ALLOT_PROPORTIONAL);
	CHECK(after.reserved == 7 && after.members_max == 9 && after.lease == 3 * WEIR_S);
	CHECK(after.learning_period == 4 * WEIR_S);
	CHECK(strcmp(info_of(0).mismatch,
		     "Configured with capacity 100, allotment fair, reserved 0, "
		     "members 0, where the limit has capacity 1000, allotment "
		     "proportional, reserved 7, members 9.") == 0);
	CHECK(weir_fleet_template_get(w.store, "l*", &after) == 0);
	CHECK(after.capacity == 1000 && after.allotment == WEIR_ALLOT_PROPORTIONAL);
	CHECK(after.reserved == 7 && after.members_max == 9 && after.lease == 3 * WEIR_S);
	CHECK(after.learning_period == 4 * WEIR_S && after.members == 0 && after.granted == 0);
	/* Without a lease, it is that of a limit which is made. */
	limit = limit_of(5);
	limit.lease = 0;
	CHECK(weir_fleet_template_set(w.store, "m", &limit, NULL, 0) == 0);
	CHECK(weir_fleet_template_get(w.store, "m", &after) == 0 && after.lease == 15 * WEIR_S);
	end();
}

/* A limit that was made beforehand stays as it is, and so does one that was made by a template. */
static void made(void)
{
	struct weir_fleet_limit limit = limit_of(70);

	begin(100);
	set("*", 60);
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	enter(1, 100);
	CHECK(world_units(&w, 0) == 70 && limit_now("limit").capacity == 70);
	world_kill(&w, 0);
	world_run(&w, LEASE);
	CHECK(weir_fleet_remove(w.store, "limit") == 0);
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 60 && limit_now("limit").capacity == 60);
	CHECK(strstr(info_of(0).mismatch, "capacity 100, where the limit has capacity 60") != NULL);
	CHECK(strcmp(info_of(0).reason, info_of(0).mismatch) == 0);
	set("*", 50);
	set("limit", 40);
	world_enter(&w, 1, 100);
	world_run(&w, ROUNDS);
	CHECK(world_sum(&w) == 60 && limit_now("limit").capacity == 60);
	end();
}

/* A member takes a limit as it is, but also as a template says. */
static void taken(void)
{
	begin(100);
	w.limit.capacity = 0;
	set("lim??", 60);
	enter(1, 100);
	CHECK(world_units(&w, 0) == 60 && info_of(0).mismatch[0] == '\0');
	CHECK(info_of(0).reason[0] == '\0');
	end();
}

/* Many limits are made in one commit, each by its own template, with rows of all kinds. */
static void many(void)
{
	static struct weir_share *shares[WEIR_FLEET_SHARES_MAX];
	struct weir_fleet_limit limit = limit_of(50);
	struct weir_share_config config = {.size = 0};
	char name[32];

	begin(100);
	limit.learning_period = 30 * WEIR_S;
	CHECK(weir_fleet_template_set(w.store, "many-*", &limit, NULL, 0) == 0);
	set("many-*7", 70);
	world_enter(&w, 0, 100);
	for (unsigned i = 1; i < WEIR_FLEET_SHARES_MAX; i++) {
		weir_share_config_init(&config);
		(void)snprintf(name, sizeof(name), "many-%u", i);
		config.name = name;
		config.capacity = 100;
		CHECK(weir_share_join(w.actors[0].fleet, &config, &shares[i], NULL, 0) == 0);
		CHECK(weir_share_demand_set(shares[i], 100) == 0);
	}
	CHECK(weir_fleet_refresh(w.actors[0].fleet) == 0);
	for (unsigned i = 1; i < WEIR_FLEET_SHARES_MAX; i++)
		CHECK(weir_share_units(shares[i]) == (i % 10 == 7 ? 70 : 50));
	CHECK(limit_now("many-1").learning_period == 30 * WEIR_S);
	CHECK(limit_now("many-255").learning_period == 30 * WEIR_S);
	CHECK(limit_now("many-7").learning_period == 0 && limit_now("limit").capacity == 100);
	end();
}

/* A store in which something happens just before the next commit, and which may deny the templates. */
struct hooked {
	struct weir_store store; /* first */
	void (*hook)(void);
	bool denies;
};

static struct hooked hooked;

static int hooked_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	(void)self;
	return weir_store_begin(w.store, ttl, session, granted);
}

static int hooked_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	(void)self;
	return weir_store_keep(w.store, session, granted);
}

static int hooked_end(struct weir_store *self, uint64_t session)
{
	(void)self;
	return weir_store_end(w.store, session);
}

static int hooked_commit(struct weir_store *self, uint64_t session,
			 const struct weir_store_check *checks, size_t check_count,
			 const struct weir_store_write *writes, size_t write_count,
			 uint64_t *version)
{
	void (*hook)(void) = hooked.hook;

	(void)self;
	hooked.hook = NULL;
	if (hook != NULL)
		hook();
	return weir_store_commit(w.store, session, checks, check_count, writes, write_count,
				 version);
}

static int hooked_read(struct weir_store *self, const char *const *prefixes, size_t count,
		       weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	int r;

	(void)self;
	if (hooked.denies && strcmp(prefixes[0], TEMPLATES_KEY) == 0)
		return -EACCES;
	r = weir_store_read(w.store, prefixes, count, row, arg, view);
	view->proven = WEIR_FOREVER;
	return r;
}

static void hooked_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	(void)self;
	weir_store_caps_take(w.store, caps);
}

static void hooked_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	weir_store_error(w.store, text, size);
}

static const struct weir_store_ops hooked_ops = {
	.size = sizeof(hooked_ops),
	.name = "test",
	.begin = hooked_begin,
	.keep = hooked_keep,
	.end = hooked_end,
	.commit = hooked_commit,
	.read = hooked_read,
	.caps = hooked_caps,
	.error = hooked_error,
};

static struct weir_fleet *open_hooked(void)
{
	struct weir_fleet_config config;
	struct weir_fleet *fleet;

	hooked = (struct hooked){.store = {.ops = &hooked_ops}};
	weir_fleet_config_init(&config);
	config.store = &hooked.store;
	config.manual = 1;
	config.lease = LEASE;
	CHECK(weir_fleet_open(&config, &fleet, NULL, 0) == 0);
	return fleet;
}

static struct weir_share *join(struct weir_fleet *fleet)
{
	struct weir_share *share;

	CHECK(weir_share_join(fleet, &w.limit, &share, NULL, 0) == 0);
	CHECK(weir_share_demand_set(share, 1000) == 0);
	return share;
}

static void add_template(void)
{
	set("lim*", 60);
}

static void change_template(void)
{
	set("lim*", 70);
}

static void remove_template(void)
{
	CHECK(weir_fleet_template_remove(w.store, "lim*") == 0);
}

static void make_limit(void)
{
	const struct weir_fleet_limit limit = limit_of(80);

	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
}

/*
 * The templates change, or the limit is made, after the member has read them and before it makes the
 * limit: it is made by the templates that there are at that moment, if it is not there.
 */
static void meanwhile(void (*before)(void), void (*hook)(void), uint64_t capacity)
{
	struct weir_fleet *fleet;
	struct weir_share *share;

	begin(100);
	if (before != NULL)
		before();
	fleet = open_hooked();
	share = join(fleet);
	hooked.hook = hook;
	CHECK(weir_fleet_refresh(fleet) == 0);
	CHECK(hooked.hook == NULL);
	CHECK(limit_now("limit").capacity == capacity && weir_share_units(share) == capacity);
	weir_fleet_close(fleet);
	end();
}

/* Templates that are set or removed at the same moment are all set or removed. */
static void changed_together(void)
{
	struct weir_fleet_limit limit = limit_of(10);

	begin(100);
	hooked = (struct hooked){.store = {.ops = &hooked_ops}, .hook = add_template};
	CHECK(weir_fleet_template_set(&hooked.store, "a", &limit, NULL, 0) == 0);
	CHECK(are("a 10, lim* 60, "));
	hooked.hook = change_template;
	CHECK(weir_fleet_template_remove(&hooked.store, "a") == 0 && are("lim* 70, "));
	CHECK(weir_fleet_template_get(w.store, "lim*", &limit) == 0);
	hooked.hook = add_template;
	CHECK(weir_fleet_template_set(&hooked.store, "b", &limit, NULL, 0) == -EAGAIN);
	CHECK(are("lim* 60, "));
	end();
}

/* A member that may not read the templates makes the limit as it is configured, and says so. */
static void denied(void)
{
	struct weir_share_info info;
	struct weir_fleet *fleet;
	struct weir_share *share;

	begin(100);
	add_template();
	fleet = open_hooked();
	share = join(fleet);
	hooked.denies = true;
	CHECK(weir_fleet_refresh(fleet) == 0 && weir_share_units(share) == 100);
	weir_share_info_init(&info);
	weir_share_info_take(share, &info);
	CHECK(strncmp(info.reason, UNREAD, strlen(UNREAD)) == 0);
	weir_fleet_close(fleet);
	end();
}

/* What may be in the row, and may not. */

static void write_row(const char *text, size_t size)
{
	const struct weir_store_write write = {TEMPLATES_KEY, WEIR_STORE_WRITE_PUT, text, size};

	CHECK(weir_store_commit(w.store, 0, NULL, 0, &write, 1, NULL) == 0);
}

static bool visit_none(void *arg, const char *pattern, const struct weir_fleet_limit *limit)
{
	(void)arg;
	(void)pattern;
	(void)limit;
	CHECK(false);
	return true;
}

static void is_refused(void)
{
	struct weir_fleet_limit limit = limit_of(1);
	char why[200];

	CHECK(weir_fleet_template_list(w.store, visit_none, NULL) == -EPROTO);
	CHECK(weir_fleet_template_get(w.store, "*", &limit) == -EPROTO);
	CHECK(weir_fleet_template_match(w.store, "limit", NULL, &limit) == -EPROTO);
	CHECK(weir_fleet_template_remove(w.store, "*") == -EPROTO);
	CHECK(weir_fleet_template_set(w.store, "*", &limit, why, sizeof(why)) == -EPROTO);
	CHECK(strcmp(why, "The templates have another format version, or are damaged.") == 0);
}

#define HEAD "weir-templates 1\n"
#define GOOD "* 10 0 0 0 1000 0 0\n"

static void damaged(void)
{
	static const char *const bad[] = {
		"",
		"x",
		"weir-templates 2\n" GOOD,
		HEAD "* 10 0 0 0 1000 0 0",
		HEAD "* 10 0 0 0 1000 0\n",
		HEAD "* 10 0 0 0 1000 0 0 0\n",
		HEAD "* 10 0 0 0 1000 0 2\n",
		HEAD "* 10 4 0 0 1000 0 0\n",
		HEAD "* 9007199254740993 0 0 0 1000 0 0\n",
		HEAD "* -1 0 0 0 1000 0 0\n",
		HEAD "* 10 0 5 3 1000 0 0\n",
		HEAD "* 10 0 5 0 1000 0 0\n",
		HEAD "* 10 0 0 0 19 0 0\n",
		HEAD "* 10 0 0 0 3600001 0 0\n",
		HEAD "* 10 0 0 0 1000 999 0\n",
		HEAD "* 10 0 0 0 1000 3600001 0\n",
		HEAD "a/b 10 0 0 0 1000 0 0\n",
		HEAD " 10 0 0 0 1000 0 0\n",
		HEAD "\n",
		HEAD GOOD GOOD,
		HEAD "b 10 0 0 0 1000 0 0\na 10 0 0 0 1000 0 0\n",
		HEAD GOOD "x",
	};
	static const char zero[] = HEAD "a\0* 10 0 0 0 1000 0 0\n";

	begin(100);
	write_row(HEAD GOOD, strlen(HEAD GOOD));
	CHECK(are("* 10, "));
	write_row(HEAD, strlen(HEAD));
	CHECK(are(""));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_row(bad[i], strlen(bad[i]));
		is_refused();
	}
	write_row(zero, sizeof(zero) - 1);
	is_refused();
	end();
}

/* A pattern that is longer than any, and more templates than there may be. */
/* A row whose key only begins like that of the templates is not theirs. */
static void neighbour(void)
{
	const char text[] = HEAD "* 10 0 0 0 1000 0 0\n";
	const struct weir_store_write write = {"fleet/templates-old", WEIR_STORE_WRITE_PUT, text,
					       sizeof(text) - 1};

	begin(100);
	CHECK(weir_store_commit(w.store, 0, NULL, 0, &write, 1, NULL) == 0);
	CHECK(are("") && would_have("limit") == 0);
	set("limit", 30);
	CHECK(are("limit 30, "));
	end();
}

static void too_much(void)
{
	const size_t most = WEIR_FLEET_TEMPLATES_MAX;
	struct weir_fleet_limit limit = limit_of(11);
	char *text = calloc(1, 64 * (most + 2)), why[200];
	size_t size = (size_t)sprintf(text, HEAD);

	begin(100);
	CHECK(text != NULL);
	memset(text + size, 'a', WEIR_FLEET_PATTERN_MAX + 1);
	(void)sprintf(text + size + WEIR_FLEET_PATTERN_MAX + 1, " 10 0 0 0 1000 0 0\n");
	write_row(text, strlen(text));
	is_refused();
	write_row(text, size);
	for (size_t i = 0; i < most; i++)
		size += (size_t)sprintf(text + size, "%04zu 10 0 0 0 1000 0 0\n", i);
	write_row(text, size);
	CHECK(would_have("0000") == 10 && would_have("0999") == 10);
	CHECK(weir_fleet_template_set(w.store, "new", &limit, why, sizeof(why)) == -ENOSPC);
	CHECK(strcmp(why, "There are 1000 templates, which is the maximum.") == 0);
	CHECK(weir_fleet_template_set(w.store, "0500", &limit, why, sizeof(why)) == 0);
	CHECK(would_have("0500") == 11 && would_have("new") == 0);
	size += (size_t)sprintf(text + size, "1000 10 0 0 0 1000 0 0\n");
	write_row(text, size);
	is_refused();
	free(text);
	end();
}

/*
 * Damaged templates keep no member from joining: the limit is as it is configured, which it says
 * until the limit is changed. They are repaired by removing all.
 */
static void joined_without(void)
{
	begin(100);
	write_row(HEAD GOOD "x", strlen(HEAD GOOD "x")); /* none of it counts */
	enter(1, 100);
	CHECK(world_units(&w, 0) == 100 && info_of(0).state == WEIR_SHARE_LEASED);
	CHECK(strncmp(info_of(0).reason, UNREAD, strlen(UNREAD)) == 0);
	world_run(&w, ROUNDS);
	CHECK(strncmp(info_of(0).reason, UNREAD, strlen(UNREAD)) == 0);
	CHECK(weir_fleet_change(w.store, "limit", 100) == 0);
	world_run(&w, ROUNDS);
	CHECK(info_of(0).reason[0] == '\0');
	CHECK(weir_fleet_template_remove(w.store, NULL) == 0 && are(""));
	set("*", 60);
	world_kill(&w, 0);
	world_run(&w, 2 * LEASE);
	CHECK(weir_fleet_remove(w.store, "limit") == 0);
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 60);
	end();
}

/* What is not written, and why. */

static void refused(const char *pattern, const struct weir_fleet_limit *limit, int error,
		    const char *sentence)
{
	char why[200] = "", checked[200] = "";

	CHECK(weir_fleet_template_set(w.store, pattern, limit, why, sizeof(why)) == error);
	CHECK(strcmp(why, sentence) == 0);
	if (error != -EINVAL)
		return;
	CHECK(weir_fleet_template_check(pattern, limit, checked, sizeof(checked)) == -EINVAL);
	CHECK(strcmp(checked, sentence) == 0);
}

#define NO_PATTERN "A pattern has 1 to 200 letters, digits and -_.:@*?."

static void bad_input(void)
{
	struct weir_fleet_limit limit = limit_of(10);

	begin(100);
	refused("", &limit, -EINVAL, NO_PATTERN);
	refused("a/*", &limit, -EINVAL, NO_PATTERN);
	refused(NULL, &limit, -EINVAL, NO_PATTERN);
	limit.size--;
	refused("*", &limit, -EINVAL, "The limit has the size of another version.");
	limit = limit_of(10);
	limit.reserved = 5;
	refused("*", &limit, -EINVAL, "reserved and members belong together.");
	limit = limit_of(10);
	limit.lease = 19 * WEIR_MS;
	refused("*", &limit, -EINVAL, "lease is not from 20 ms to an hour.");
	limit = limit_of(10);
	limit.learning_period = LEASE - WEIR_MS;
	refused("*", &limit, -EINVAL, "learning is shorter than lease: leases could outlast it.");
	CHECK(are(""));
	limit = limit_of(10);
	CHECK(weir_fleet_template_check("*", &limit, NULL, 0) == 0 && are(""));
	end();
}

/* A template is changed only if all are as they were read. */
static void changed_meanwhile(void)
{
	struct weir_fleet_limit limit = limit_of(0);

	begin(100);
	set("a", 10);
	CHECK(weir_fleet_template_get(w.store, "a", &limit) == 0);
	set("b", 20);
	limit.capacity = 11;
	refused("a", &limit, -EAGAIN, "The templates have changed since they were read.");
	CHECK(are("a 10, b 20, "));
	CHECK(weir_fleet_template_get(w.store, "a", &limit) == 0);
	limit.capacity = 11;
	CHECK(weir_fleet_template_set(w.store, "a", &limit, NULL, 0) == 0);
	CHECK(are("a 11, b 20, "));
	end();
}

int main(int argc, char **argv)
{
	struct test_store test_store;

	matching();
	matching_ends();
	patterns();
	order();
	test_store_begin(&test_store, argc == 2 ? argv[1] : "memory");
	world_use(&test_store);
	listed();
	settings();
	allocated();
	made();
	taken();
	many();
	meanwhile(NULL, add_template, 60);
	meanwhile(add_template, change_template, 70);
	meanwhile(add_template, remove_template, 100);
	meanwhile(add_template, make_limit, 80);
	changed_together();
	denied();
	damaged();
	neighbour();
	too_much();
	joined_without();
	bad_input();
	changed_meanwhile();
	test_store_end(&test_store);
	printf("limits are made by templates, %s\n", test_store.kind);
	return 0;
}
