/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores and watches of their rows. Each store is a new one. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fleet.h"

#define TTL (60 * WEIR_S)

char address[128], why[256];
struct weir_store_config config;
struct weir_store *store;

static unsigned stores;
static char name[64];
static uint64_t session;
static unsigned seen;

/* What a server or a client library says may end without a full stop. */
void is_explained(void)
{
	CHECK(why[0] != '\0' && (remote || why[strlen(why) - 1] == '.'));
}

void new_name(void)
{
	weir_store_config_init(&config);
	stores++;
	(void)snprintf(name, sizeof(name), "failures-%u", stores);
	if (strcmp(kind, "shm") == 0)
		(void)snprintf(address, sizeof(address), "shm:/weir-failures-%d-%u", (int)getpid(),
			       stores);
	config.name = remote ? name : NULL;
	config.address = strcmp(kind, "memory") != 0 ? address : NULL;
	config.timeout = 10 * WEIR_S;
	config.shm_bytes = (size_t)1 << 18;
}

int open_store(void)
{
	why[0] = '\0';
	return weir_store_open(&config, &store, why, sizeof(why));
}

static void no_store(void)
{
	is_explained();
	CHECK(store == NULL);
}

static bool count_row(void *arg, const struct weir_store_row *row)
{
	(void)arg;
	seen += row->size == 5 && memcmp(row->value, "value", 5) == 0;
	return true;
}

static int read_rows(void)
{
	const char *const prefix = "a/";

	seen = 0;
	return weir_store_read(store, &prefix, 1, count_row, NULL, NULL);
}

static int commit(void)
{
	const struct weir_store_write rows[] = {
		{"a/one", WEIR_STORE_WRITE_PUT, "value", 5},
		{"a/two", WEIR_STORE_WRITE_BIND, "value", 5},
	};

	return weir_store_commit(store, session, NULL, 0, rows, 2, NULL);
}

static int begin_session(void)
{
	weir_dur granted;

	return weir_store_begin(store, TTL, &session, &granted);
}

static int keep(void)
{
	weir_dur granted;

	return weir_store_keep(store, session, &granted);
}

static int keep_and_read(void)
{
	const char *const prefix = "a/";
	weir_dur granted;

	seen = 0;
	return weir_store_keep_and_read(store, session, &granted, &prefix, 1, count_row, NULL,
					NULL);
}

static int end_session(void)
{
	return weir_store_end(store, session);
}

void begin_store(void)
{
	new_name();
	CHECK(open_store() == 0);
}

static void begin_with_session(void)
{
	begin_store();
	CHECK(begin_session() == 0);
}

static void begin_with_rows(void)
{
	begin_with_session();
	CHECK(commit() == 0);
}

static void has_rows(void)
{
	CHECK(read_rows() == 0 && seen == 2);
}

/* Has read them itself. */
static void saw_rows(void)
{
	CHECK(seen == 2);
	has_rows();
}

static void has_session(void)
{
	CHECK(commit() == 0);
	has_rows();
}

static void use_store(void)
{
	CHECK(begin_session() == 0);
	has_session();
}

static void lost_bound_row(void)
{
	CHECK(read_rows() == 0 && seen == 1);
}

void end_store(void)
{
	weir_store_close(store);
	store = NULL;
	session = 0;
	if (strcmp(kind, "shm") == 0)
		CHECK(shm_unlink(address + strlen("shm:")) == 0);
}

/* The same row again: a file that exists, with what is in it. */
static struct weir_store *other;

static void begin_existing(void)
{
	begin_with_rows();
	other = store;
	store = NULL;
}

static void end_existing(void)
{
	weir_store_close(other);
	end_store();
}

static struct weir_store_watch *watch;

static int open_watch(void)
{
	const char *const prefix = "a/";

	why[0] = '\0';
	return weir_store_watch_open(store, &prefix, 1, &watch, why, sizeof(why));
}

static void no_watch(void)
{
	is_explained();
	CHECK(watch == NULL);
}

/* A report, or that any row may have changed. */
static int wait_for_change(void)
{
	struct weir_store_change change;
	const int r = weir_store_watch_wait(watch, 60 * WEIR_S, &change);

	CHECK(r != 0 || change.key[0] == '\0' || strncmp(change.key, "a/", 2) == 0);
	CHECK((r < 0) == (change.why[0] != '\0'));
	return r;
}

static void use_watch(void)
{
	CHECK(commit() == 0);
	CHECK(wait_for_change() == 0);
}

static void begin_changed(void)
{
	begin_with_session();
	CHECK(open_watch() == 0);
	CHECK(commit() == 0);
}

static void end_watch(void)
{
	weir_store_watch_close(watch);
	watch = NULL;
	end_store();
}

static struct failure_case cases[] = {
	{"weir_store_open",
	 NULL,
	 new_name,
	 open_store,
	 no_store,
	 use_store,
	 end_store,
	 {NO_ROOM, UNANSWERED, REPEATED}},
	{"weir_store_begin",
	 NULL,
	 begin_store,
	 begin_session,
	 NULL,
	 has_session,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_keep",
	 NULL,
	 begin_with_session,
	 keep,
	 NULL,
	 has_session,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_commit",
	 NULL,
	 begin_with_session,
	 commit,
	 NULL,
	 has_rows,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_read",
	 NULL,
	 begin_with_rows,
	 read_rows,
	 NULL,
	 saw_rows,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_keep_and_read",
	 NULL,
	 begin_with_rows,
	 keep_and_read,
	 NULL,
	 saw_rows,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_end",
	 NULL,
	 begin_with_rows,
	 end_session,
	 NULL,
	 lost_bound_row,
	 end_store,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
	{"weir_store_watch_open weir_store_watch_close",
	 NULL,
	 begin_with_session,
	 open_watch,
	 no_watch,
	 use_watch,
	 end_watch,
	 {UNANSWERED, REPEATED, UNEXAMINED}},
	{"weir_store_watch_wait",
	 NULL,
	 begin_changed,
	 wait_for_change,
	 NULL,
	 use_watch,
	 end_watch,
	 {UNANSWERED, REPEATED, UNEXAMINED},
	 .quiet = true},
};

const struct failure_table store_failures = {cases, COUNT(cases)};

static struct failure_case existing[] = {
	{"weir_store_open", "that exists", begin_existing, open_store, no_store, has_rows,
	 end_existing},
};

const struct failure_table existing_store_failures = {existing, COUNT(existing)};
