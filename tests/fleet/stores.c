/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stores KIND: what every store must do, with one of that kind.
 *
 * Kinds are those of store_rig.h. Servers are killed, stopped and cut off. Nothing here depends on
 * timing, except on what a time to live promises: a session is alive until its time is over, and ends
 * some time after.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store.h>

#include "../stress/check.h"
#include "store_rig.h"

static struct weir_store_write put(const char *key, const char *value)
{
	return (struct weir_store_write){key, WEIR_STORE_WRITE_PUT, value, strlen(value)};
}

static struct weir_store_write erase(const char *key)
{
	return (struct weir_store_write){key, WEIR_STORE_WRITE_ERASE, NULL, 0};
}

static struct weir_store_write bind_to(const char *key, const char *value)
{
	return (struct weir_store_write){key, WEIR_STORE_WRITE_BIND, value, strlen(value)};
}

static struct weir_store_check absent(const char *key)
{
	return (struct weir_store_check){key, WEIR_STORE_CHECK_ABSENT, 0};
}

static struct weir_store_check at_version(const char *key, uint64_t version)
{
	return (struct weir_store_check){key, WEIR_STORE_CHECK_VERSION, version};
}

static struct weir_store_check made_by(const char *key, uint64_t version)
{
	return (struct weir_store_check){key, WEIR_STORE_CHECK_MADE, version};
}

/* A row, as it was found. */
struct found {
	const char *key;
	unsigned rows;
	char value[64];
	size_t size;
	uint64_t version, made;
};

static bool find(void *arg, const struct weir_store_row *row)
{
	struct found *f = arg;

	f->rows++;
	if (strcmp(row->key, f->key) == 0) {
		f->size = row->size;
		memcpy(f->value, row->value, row->size < 63 ? row->size : 63);
		f->version = row->version;
		f->made = row->made;
	}
	return true;
}

static struct found look(struct weir_store *store, const char *prefix, const char *key)
{
	struct found f = {.key = key};
	unsigned tries = 0;

	while (weir_store_read(store, &prefix, 1, find, &f, NULL) != 0) {
		CHECK(++tries < 200); /* a busy machine may be late */
		f = (struct found){.key = key};
	}
	return f;
}

static uint64_t commit(struct weir_store *store, const struct weir_store_check *check,
		       const struct weir_store_write *write, int expected)
{
	uint64_t version = 0;
	const int r = weir_store_commit(store, 0, check, check != NULL, write, 1, &version);

	if (r != expected)
		fprintf(stderr, "%s: %d, not %d\n", write->key, r, expected);
	CHECK(r == expected);
	return version;
}

static void rows(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const struct weir_store_write one = put("a/1", "one"), two = put("a/1", "two"),
				      other = put("a/2", "other"), far = put("ab/1", "far"),
				      gone = {"a/1", WEIR_STORE_WRITE_ERASE, NULL, 0};
	const struct weir_store_check no = absent("a/1");
	struct weir_store_check check;
	struct found f;
	uint64_t v1, v2;

	v1 = commit(s, &no, &one, 0);
	CHECK(v1 > 0);
	commit(s, &no, &one, -EAGAIN);
	f = look(s, "a/", "a/1");
	CHECK(f.rows == 1 && strcmp(f.value, "one") == 0 && f.version == v1 && f.made == v1);
	check = at_version("a/1", v1 + 1000000);
	commit(s, &check, &two, -EAGAIN);
	check = at_version("a/1", v1);
	v2 = commit(s, &check, &two, 0);
	CHECK(v2 > v1);
	commit(s, &check, &two, -EAGAIN);
	f = look(s, "a/", "a/1");
	CHECK(strcmp(f.value, "two") == 0 && f.version == v2 && f.made == v1);
	check = made_by("a/1", v1);
	commit(s, &check, &other, 0);
	commit(s, NULL, &far, 0);
	CHECK(look(s, "a/", "a/2").rows == 2 && look(s, "ab/", "ab/1").rows == 1);
	CHECK(look(s, "a/2", "a/2").rows == 1 && look(s, "none/", "").rows == 0);
	commit(s, NULL, &gone, 0);
	commit(s, NULL, &gone, 0);
	commit(s, &check, &other, -EAGAIN);
	v2 = commit(s, &no, &one, 0);
	CHECK(look(s, "a/", "a/1").made == v2);
}

static bool stop_at_first(void *arg, const struct weir_store_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return false;
}

/* Commits of several rows are atomic; several prefixes are read as of one instant. */
static void batches(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const struct weir_store_write both[] = {put("b/1", "x"), put("c/1", "y")},
				      twice[] = {put("b/1", "x"), put("b/1", "y")};
	const struct weir_store_check checks[] = {absent("b/1"), absent("a/1")},
				      fine[] = {absent("b/1")};
	const char *prefixes[] = {"b/", "c/"}, *within[] = {"b/", "b/1"};
	struct found f = {.key = "c/1"};
	struct weir_store_view before, after;
	unsigned seen = 0;

	CHECK(weir_store_commit(s, 0, checks, 2, both, 2, NULL) == -EAGAIN);
	CHECK(look(s, "b/", "").rows == 0);
	CHECK(weir_store_read(s, prefixes, 2, find, &f, &before) == 0 && f.rows == 0);
	CHECK(weir_store_commit(s, 0, fine, 1, both, 2, NULL) == 0);
	CHECK(weir_store_read(s, prefixes, 2, find, &f, &after) == 0);
	CHECK(f.rows == 2 && strcmp(f.value, "y") == 0 && after.version > before.version);
	CHECK(f.version <= after.version && f.version == look(s, "b/", "b/1").version);
	CHECK(weir_store_read(s, prefixes, 2, stop_at_first, &seen, NULL) == 0 && seen == 1);
	CHECK(weir_store_commit(s, 0, NULL, 0, twice, 2, NULL) == -EINVAL);
	CHECK(weir_store_read(s, within, 2, find, &f, NULL) == -EINVAL);
}

/*
 * A prefix with = at its end is one row. Redis is forbidden to go through all rows meanwhile: its
 * script fails if it tries.
 */
static void single_rows(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const struct weir_store_write writes[] = {put("one/a", "x"), put("one/ab", "y"),
						  put("one/a/b", "z")};
	const char *keys[] = {"one/a=", "one/b=", "one/a/b="}, *twice[] = {"one/a=", "one/a"};
	static const char *const wrong[] = {"=", "a=", "one/=", "one/a==", "one/a=b"};
	const bool redis = rig->remote && rig->server.kind <= SERVER_REDIS_DURABLE;
	struct found f = {.key = "one/a"};

	CHECK(weir_store_commit(s, 0, NULL, 0, writes, 3, NULL) == 0);
	CHECK(!redis || server_tell(&rig->server, "ACL SETUSER default -hgetall\r\n"));
	CHECK(weir_store_read(s, keys, 3, find, &f, NULL) == 0);
	CHECK(f.rows == 2 && strcmp(f.value, "x") == 0);
	CHECK(!redis || weir_store_read(s, twice + 1, 1, find, &f, NULL) != 0);
	CHECK(!redis || server_tell(&rig->server, "ACL SETUSER default +hgetall\r\n"));
	CHECK(look(s, "one/a", "").rows == 3);
	CHECK(weir_store_read(s, twice, 2, find, &f, NULL) == -EINVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(weir_store_read(s, &wrong[i], 1, find, &f, NULL) == -EINVAL);
}

/* The empty prefix matches all rows, but no session. */
static void everything(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const struct weir_store_write both[] = {put("all-a/1", "x"), put("all-b/1", "y")},
				      gone[] = {erase("all-b/1")};
	const char *all[] = {""}, *more[] = {"", "b/"};
	struct found f = {.key = "all-a/1"};
	unsigned before;

	before = look(s, "", "").rows;
	CHECK(weir_store_commit(s, 0, NULL, 0, both, 2, NULL) == 0);
	CHECK(weir_store_read(s, all, 1, find, &f, NULL) == 0);
	CHECK(f.rows == before + 2 && strcmp(f.value, "x") == 0);
	CHECK(weir_store_commit(s, 0, NULL, 0, gone, 1, NULL) == 0);
	CHECK(look(s, "", "").rows == before + 1 && look(s, "", "").rows == before + 1);
	CHECK(weir_store_read(s, more, 2, find, &f, NULL) == -EINVAL);
}

/* Values of arbitrary bytes, of none, and of many. */
static void values(struct rig *rig)
{
	static char large[300000];
	struct weir_store *s = rig->store;
	const struct weir_store_write odd = {"v/odd", WEIR_STORE_WRITE_PUT, "\0\xff\n \"}{", 8},
				      none = {"v/none", WEIR_STORE_WRITE_PUT, "", 0},
				      much = {"v/much", WEIR_STORE_WRITE_PUT, large, sizeof(large)},
				      more = {"v/more", WEIR_STORE_WRITE_PUT, large,
					      WEIR_STORE_VALUE_MAX + 1};
	struct found f;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)(i * 31 % 251);
	commit(s, NULL, &odd, 0);
	commit(s, NULL, &none, 0);
	commit(s, NULL, &much, 0);
	f = look(s, "v/odd", "v/odd");
	CHECK(f.size == 8 && memcmp(f.value, odd.value, 8) == 0);
	f = look(s, "v/none", "v/none");
	CHECK(f.rows == 1 && f.size == 0);
	f = look(s, "v/much", "v/much");
	CHECK(f.size == sizeof(large) && memcmp(f.value, large, 63) == 0);
	commit(s, NULL, &more, -EMSGSIZE);
}

static bool count_row(void *arg, const struct weir_store_row *row)
{
	CHECK(strncmp(row->key, "s/", 2) == 0);
	++*(int *)arg;
	return true;
}

/* Reads rows, or returns an error without any row. */
static int keep_and_count(struct weir_store *s, uint64_t session, weir_dur *granted)
{
	static const char *const prefix = "s/";
	struct weir_store_view view = {.version = 0};
	int rows = 0;
	int r = weir_store_keep_and_read(s, session, granted, &prefix, 1, count_row, &rows, &view);

	CHECK(r == 0 ? view.version != 0 && view.proven != 0 : rows == 0);
	return r == 0 ? rows : r;
}

static void bad_input(struct rig *rig)
{
	static const char *const keys[] = {
		"", "a", "/a", "a/", "a//b", "a b/c", "a/\n", "\xc3\xa4/x", "a/b*",
	};
	struct weir_store *s = rig->store;
	char longest[WEIR_STORE_KEY_MAX + 2];
	struct weir_store_write w = put(longest, "x");
	struct weir_store_check check = {"a/1", WEIR_STORE_CHECK_VERSION, 0};
	uint64_t session;
	weir_dur granted;

	memset(longest, 'k', sizeof(longest));
	longest[1] = '/';
	longest[sizeof(longest) - 1] = '\0';
	commit(s, NULL, &w, -EINVAL);
	longest[sizeof(longest) - 2] = '\0';
	commit(s, NULL, &w, 0);
	CHECK(look(s, "k/", longest).version != 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		w = put(keys[i], "x");
		commit(s, NULL, &w, -EINVAL);
	}
	w = bind_to("a/1", "x");
	commit(s, NULL, &w, -EINVAL);
	w = put("a/1", "x");
	commit(s, &check, &w, -EINVAL);
	CHECK(weir_store_begin(s, 0, &session, &granted) == -EINVAL);
	CHECK(weir_store_begin(s, UINT64_MAX, &session, &granted) == -EINVAL);
	CHECK(weir_store_keep(s, 0, &granted) == -EINVAL);
	CHECK(keep_and_count(s, 0, &granted) == -EINVAL);
	CHECK(weir_store_commit(s, 0, NULL, 0, NULL, 0, NULL) == -EINVAL);
}

static uint64_t begin(struct rig *rig, weir_dur ttl)
{
	uint64_t session;
	weir_dur granted;

	CHECK(weir_store_begin(rig->store, ttl, &session, &granted) == 0);
	CHECK(session != 0 && granted >= ttl);
	return session;
}

static int commit_in(struct rig *rig, uint64_t session, const struct weir_store_write *write)
{
	return weir_store_commit(rig->store, session, NULL, 0, write, 1, NULL);
}

static void sessions(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const uint64_t a = begin(rig, 60 * WEIR_S), b = begin(rig, 60 * WEIR_S);
	const struct weir_store_write mine = bind_to("s/a", "a"), loose = put("s/loose", "l"),
				      theirs = bind_to("s/b", "b");
	weir_dur granted = 0;
	uint64_t made;

	CHECK(a != b);
	CHECK(commit_in(rig, a, &mine) == 0 && commit_in(rig, b, &theirs) == 0);
	CHECK(commit_in(rig, a, &loose) == 0);
	made = look(s, "s/", "s/a").made;
	CHECK(weir_store_keep(s, a, &granted) == 0 && granted >= 60 * WEIR_S);
	CHECK(keep_and_count(s, a, &granted) == 3 && granted >= 60 * WEIR_S);
	CHECK(weir_store_end(s, a) == 0 && weir_store_end(s, a) == 0);
	CHECK(look(s, "s/", "s/b").rows == 2 && look(s, "s/a", "s/a").rows == 0);
	CHECK(keep_and_count(s, a, &granted) == -ESTALE && granted == 0);
	CHECK(weir_store_keep(s, a, &granted) == -ESTALE);
	CHECK(commit_in(rig, a, &loose) == -ESTALE && commit_in(rig, a, &mine) == -ESTALE);
	/* A row that is created again has another creator. */
	CHECK(commit_in(rig, b, &mine) == 0 && look(s, "s/a", "s/a").made > made);
	/* A row that is put is not bound any more. */
	CHECK(weir_store_commit(s, 0, NULL, 0,
				&(struct weir_store_write){"s/a", WEIR_STORE_WRITE_PUT, "f", 1}, 1,
				NULL) == 0);
	CHECK(weir_store_end(s, b) == 0);
	CHECK(look(s, "s/a", "s/a").rows == 1 && look(s, "s/b", "s/b").rows == 0);
	CHECK(weir_store_keep(s, UINT64_C(0x123456789), &granted) == -ESTALE);
}

/* The end of a session erases what is bound to it, whatever was bound to it before. */
static void rebound(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const uint64_t a = begin(rig, 60 * WEIR_S), b = begin(rig, 60 * WEIR_S);
	const struct weir_store_write row = bind_to("rebound/a", "a"), other = bind_to("r/a", "a");
	const bool redis = rig->remote && rig->server.kind <= SERVER_REDIS_DURABLE;

	CHECK(commit_in(rig, a, &row) == 0 && commit_in(rig, b, &row) == 0);
	CHECK(commit_in(rig, a, &other) == 0);
	CHECK(!redis || server_tell(&rig->server, "CONFIG RESETSTAT\r\n"));
	CHECK(weir_store_end(s, a) == 0);
	/* In Redis it does not go through all rows. */
	CHECK(!redis || server_tell(&rig->server,
				    "EVAL \"local s = redis.call('INFO', 'commandstats') "
				    "return redis.status_reply(s:find('_hgetall') and 'many' or "
				    "'OK')\" 0\r\n"));
	CHECK(look(s, "rebound/", "rebound/a").rows == 1 && look(s, "r/", "r/a").rows == 0);
	CHECK(weir_store_end(s, b) == 0);
	CHECK(look(s, "rebound/", "rebound/a").rows == 0);
}

/* A session is alive for its time, and then no longer than the store says. */
static void expiry(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const struct weir_store_write mine = bind_to("e/a", "a");
	uint64_t session;
	weir_dur granted;
	unsigned tries = 0;
	int r;

	/* On a busy machine its time may be over at once. */
	do {
		session = begin(rig, rig->ttl);
		r = commit_in(rig, session, &mine);
	} while (r == -ESTALE);
	CHECK(r == 0);
	while (look(s, "e/", "e/a").rows == 1) {
		CHECK(++tries < 30000);
		sleep_ms(10);
	}
	CHECK(keep_and_count(s, session, &granted) == -ESTALE);
	CHECK(weir_store_keep(s, session, &granted) == -ESTALE);
	CHECK(commit_in(rig, session, &mine) == -ESTALE);
}

/* One of many commits succeeds each time; nothing is counted twice, and nothing is lost. */
#define RACERS 4
#define LAPS   12

struct racer {
	struct rig *rig;
	unsigned conflicts;
};

static void *race(void *arg)
{
	struct racer *racer = arg;
	struct weir_store *s = racer->rig->remote || strcmp(racer->rig->kind, "shm") == 0
				       ? rig_open(racer->rig, racer->rig->direct)
				       : racer->rig->store;

	for (unsigned i = 0; i < LAPS;) {
		const struct found f = look(s, "r/", "r/count");
		const struct weir_store_check check = f.rows > 0 ? at_version("r/count", f.version)
								 : absent("r/count");
		char text[16];
		struct weir_store_write w = {"r/count", WEIR_STORE_WRITE_PUT, text, 0};
		int r;

		(void)snprintf(text, sizeof(text), "%u", f.rows > 0 ? atoi(f.value) + 1 : 1);
		w.size = strlen(text);
		r = weir_store_commit(s, 0, &check, 1, &w, 1, NULL);
		CHECK(r == 0 || r == -EAGAIN);
		i += r == 0;
		racer->conflicts += r != 0;
	}
	if (s != racer->rig->store)
		weir_store_close(s);
	return NULL;
}

static void races(struct rig *rig)
{
	struct racer racers[RACERS];
	struct crew crew;

	for (unsigned i = 0; i < RACERS; i++)
		racers[i] = (struct racer){.rig = rig};
	crew_start(&crew, RACERS, race, (char *)racers, sizeof(racers[0]));
	crew_join(&crew);
	CHECK(atoi(look(rig->store, "r/", "r/count").value) == RACERS * LAPS);
}

/* Invalid addresses and configurations are refused, with a sentence. */
static void refusals(void)
{
	static const char *const addresses[] = {
		"",
		"redis",
		"http://x",
		"redis:/x",
		"redis://",
		"etcd://:1",
		"etcd://h:0",
		"etcd://h:65536",
		"etcd://h:x",
		"redis://u@h",
		"shm:",
		"shm:x",
		"shm:/a/b",
		"redis://a:%zz@h",
		"redis://a:1,b:2",
		"rediss://h",
		"etcd://[::1",
		"etcd://h h",
		"shm:/",
		"redis://h?",
		"redis://h?x",
		"redis://h?x=y",
		"redis://h?password-file=",
		"redis://h?password-file=a&password-env=b",
		"redis://u:p@h?password-env=b",
		"etcd://u@h?password-file=%00",
		"redis-sentinel://h",
		"redis-sentinel://h/",
		"redis-sentinel://h//0",
	};
	struct weir_store_config config;
	struct weir_store *store;

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		char why[256] = "";
		int r;

		weir_store_config_init(&config);
		config.address = addresses[i];
		r = weir_store_open(&config, &store, why, sizeof(why));
		if (r >= 0 || why[0] == '\0')
			fprintf(stderr, "%s: %d %s\n", addresses[i], r, why);
		CHECK((r == -EINVAL || r == -ENOTSUP) && store == NULL && why[0] != '\0');
	}
	weir_store_config_init(&config);
	config.timeout = 1;
	CHECK(weir_store_open(&config, &store, NULL, 0) == -EINVAL);
	config.timeout = 0;
	config.name = "a/b";
	CHECK(weir_store_open(&config, &store, NULL, 0) == -EINVAL);
	config.name = NULL;
	config.shm_bytes = 1;
	CHECK(weir_store_open(&config, &store, NULL, 0) == -EINVAL);
}

static int open_shm(const struct rig *rig, uint32_t mode, char why[256])
{
	struct weir_store_config config = rig->config;
	struct weir_store *store;
	int r;

	config.address = rig->direct;
	config.shm_mode = mode;
	r = weir_store_open(&config, &store, why, 256);
	weir_store_close(store);
	return r;
}

/* A file with the name that another user has created, or can write to. */
static void untrusted(const struct rig *rig)
{
	const int fd = shm_open(rig->direct + 4, O_RDWR | O_CLOEXEC, 0);
	char why[256];

	CHECK(fd >= 0 && open_shm(rig, 0, why) == 0);
	CHECK(fchmod(fd, 0622) == 0);
	CHECK(open_shm(rig, 0, why) == -EPERM && strstr(why, "untrusted users") != NULL);
	CHECK(open_shm(rig, 0660, why) == -EPERM);
	CHECK(open_shm(rig, 0666, why) == 0);
	CHECK(fchmod(fd, 0600) == 0);
	if (geteuid() == 0) {
		CHECK(fchown(fd, 65534, 65534) == 0);
		CHECK(open_shm(rig, 0, why) == -EPERM && strstr(why, "65534") != NULL);
		CHECK(open_shm(rig, 0660, why) == -EPERM);
		CHECK(open_shm(rig, 0666, why) == 0);
		CHECK(fchown(fd, 0, 0) == 0);
	}
	CHECK(open_shm(rig, 0, why) == 0);
	CHECK(close(fd) == 0);
}

/* No server listens; no server answers. */
static void unreachable(struct rig *rig)
{
	const struct weir_store_write write = put("u/row", "x");
	struct weir_store_config config = rig->config;
	struct weir_store *store;
	char address[64], why[256];
	const unsigned port = free_port();

	config.timeout = 200 * WEIR_MS;
	(void)snprintf(address, sizeof(address), "%.5s://127.0.0.1:%u",
		       rig->kind[0] == 'r' ? "redis" : "etcd", port);
	if (rig->kind[0] == 'e')
		(void)snprintf(address, sizeof(address), "etcd://127.0.0.1:%u", port);
	config.address = address;
	CHECK(weir_store_open(&config, &store, why, sizeof(why)) == -EIO && why[0] != '\0');
	config.lazy = 1;
	CHECK(weir_store_open(&config, &store, why, sizeof(why)) == 0);
	commit(store, NULL, &write, -EIO);
	weir_store_close(store);
}

/*
 * A lost, truncated or corrupted answer says nothing about what happened, and is never taken for
 * anything else; a later read shows it. The next request uses a new connection.
 */
static void lost_replies(struct rig *rig)
{
	static const enum proxy_mode modes[] = {PROXY_LOSE, PROXY_TRUNCATE, PROXY_GARBAGE,
						PROXY_SWALLOW};
	struct weir_store *s = rig_open(rig, rig->address);
	const uint64_t session = begin(rig, 60 * WEIR_S);

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		const struct found before = look(s, "l/", "l/row");
		const struct weir_store_check check = before.rows > 0
							      ? at_version("l/row", before.version)
							      : absent("l/row");
		const struct weir_store_write w = put("l/row", "new");
		struct found after;
		weir_dur granted;
		char why[256];
		int r;

		rig_set_mode(rig, modes[i]);
		r = weir_store_commit(s, 0, &check, 1, &w, 1, NULL);
		if (r != -EIO)
			fprintf(stderr, "mode %d: %d\n", (int)modes[i], r);
		CHECK(r == -EIO);
		weir_store_error(s, why, sizeof(why));
		CHECK(why[0] != '\0');
		CHECK(weir_store_keep(s, session, &granted) == -EIO);
		CHECK(keep_and_count(s, session, &granted) == -EIO);
		rig_set_mode(rig, PROXY_PASS);
		after = look(s, "l/", "l/row");
		/* It did happen, and once. */
		CHECK(after.rows == 1 && after.version > before.version);
		/*
		 * On a busy machine the answers may be late. Repeating the request changes nothing.
		 */
		do
			r = keep_and_count(s, session, &granted);
		while (r == -EIO);
		CHECK(r >= 0);
		do
			r = weir_store_keep(s, session, &granted);
		while (r == -EIO);
		CHECK(r == 0);
		do
			r = weir_store_commit(s, 0, &check, 1, &w, 1, NULL);
		while (r == -EIO);
		CHECK(r == -EAGAIN);
	}
	weir_store_close(s);
}

/* If a connection that was in use ends without an answer, the request is not repeated. */
static void asked_once(struct rig *rig)
{
	struct weir_store *s = rig_open(rig, rig->address);
	const struct weir_store_write w = put("o/row", "x");
	uint64_t version = commit(s, NULL, &w, 0);

	for (unsigned i = 0; i < 3; i++) {
		rig_set_mode(rig, PROXY_LOSE);
		commit(s, NULL, &w, -EIO);
		rig_set_mode(rig, PROXY_PASS);
		CHECK(look(s, "o/", "o/row").version == ++version);
	}
	weir_store_close(s);
}

/* A request that arrives late is decided by what has happened meanwhile. */
static void late_questions(struct rig *rig)
{
	struct weir_store *s = rig_open(rig, rig->address);
	const struct weir_store_write old = put("d/row", "old"), new = put("d/row", "new");
	const struct weir_store_check no = absent("d/row");

	CHECK(look(s, "d/", "").rows == 0);
	rig_set_mode(rig, PROXY_DELAY);
	commit(s, &no, &old, -EIO);
	CHECK(look(rig->store, "d/", "").rows == 0);
	commit(rig->store, &no, &new, 0);
	rig_set_mode(rig, PROXY_PASS);
	/*
	 * When this is answered, the late one may or may not have arrived: the result is the same.
	 */
	CHECK(strncmp(look(s, "d/", "d/row").value, "new", 3) == 0);
	sleep_ms(100);
	CHECK(strncmp(look(s, "d/", "d/row").value, "new", 3) == 0);
	weir_store_close(s);
}

/* A stopped server does not answer; when it continues, it carries out what it had received. */
static void paused(struct rig *rig)
{
	struct weir_store *s = rig_open(rig, rig->direct);
	const struct weir_store_write w = put("p/row", "x");
	struct found f = {.key = "p/row"};
	const char *prefix = "p/";

	CHECK(look(s, "p/", "").rows == 0);
	server_pause(&rig->server);
	commit(s, NULL, &w, -EIO);
	CHECK(weir_store_read(s, &prefix, 1, find, &f, NULL) == -EIO);
	server_resume(&rig->server);
	while (weir_store_read(s, &prefix, 1, find, &f, NULL) == -EIO)
		sleep_ms(20);
	weir_store_close(s);
}

/*
 * A server that is killed and restarted: versions go on rising; what it has acknowledged is there,
 * or it reports that it does not guarantee that, and since when it has lost nothing.
 */
static void killed(struct rig *rig)
{
	struct weir_store *s = rig->store;
	const struct weir_store_write w = put("k/kept", "x"), again = put("k/again", "y");
	struct weir_store_caps caps;
	struct weir_store_view before, after;
	struct found f = {.key = "k/kept"};
	const char *prefix = "k/kept";
	unsigned tries = 0;
	uint64_t version = commit(s, NULL, &w, 0);

	CHECK(weir_store_read(s, &prefix, 1, find, &f, &before) == 0 && f.rows == 1);
	server_kill(&rig->server);
	CHECK(weir_store_read(s, &prefix, 1, find, &f, NULL) == -EIO);
	server_restart(&rig->server);
	f = (struct found){.key = "k/kept"};
	while (weir_store_read(s, &prefix, 1, find, &f, &after) != 0) {
		CHECK(++tries < 10000);
		sleep_ms(20);
	}
	weir_store_caps_take(s, &caps);
	CHECK((caps.durable == 1) == rig->durable);
	CHECK((caps.note[0] == '\0') == rig->durable);
	CHECK(after.version >= before.version);
	if (rig->durable)
		CHECK(f.rows == 1 && f.version == version && after.proven >= before.proven);
	else
		CHECK(f.rows == 0 && after.proven < 60 * WEIR_S);
	CHECK(commit(s, NULL, &again, 0) > version);
}

/* Its first line is the password. */
static void write_password(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Opened with what follows the scheme and precedes or follows the host. */
static int open_with(const struct rig *rig, const char *user, const char *rest, char why[256])
{
	struct weir_store_config config = rig->config;
	struct weir_store *store;
	char address[400];
	int r;

	config.address = address;
	(void)snprintf(address, sizeof(address), "%.*s://%s127.0.0.1:%u%s",
		       rig->kind[0] == 'e' ? 4 : 5, rig->kind, user, rig->server.port, rest);
	why[0] = '\0';
	r = weir_store_open(&config, &store, why, 256);
	CHECK((r == 0) == (store != NULL) && (r == 0) == (why[0] == '\0'));
	CHECK(strstr(why, "cret") == NULL);
	weir_store_close(store);
	return r;
}

/* A password that is in a file or in the environment. */
static void password_elsewhere(const struct rig *rig)
{
	const char *user = rig->kind[0] == 'e' ? "root@" : "";
	char path[128], rest[256], why[256], line[400];

	(void)snprintf(path, sizeof(path), "%s/pass@word", rig->server.folder);
	(void)snprintf(rest, sizeof(rest), "?password-file=%s", path);
	CHECK(open_with(rig, user, rest, why) == -EACCES);
	CHECK(strcmp(why, "The password file cannot be read: No such file or directory.") == 0);
	write_password(path, "se cret\nsecond line\n");
	CHECK(open_with(rig, user, rest, why) == 0);
	write_password(path, "se cret");
	CHECK(open_with(rig, user, rest, why) == 0);
	write_password(path, "wrong\n");
	CHECK(open_with(rig, user, rest, why) == -EACCES);
	write_password(path, "\n");
	CHECK(open_with(rig, user, rest, why) == -EACCES && strstr(why, "first line") != NULL);
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	write_password(path, line);
	CHECK(open_with(rig, user, rest, why) == -EACCES && strstr(why, "first line") != NULL);
	CHECK(unlink(path) == 0);
	CHECK(open_with(rig, user, "?password-env=WEIR_TEST_PASSWORD", why) == -EACCES);
	CHECK(strstr(why, "environment variable") != NULL);
	CHECK(setenv("WEIR_TEST_PASSWORD", "se cret", 1) == 0);
	CHECK(open_with(rig, user, "?password-env=WEIR_TEST_PASSWORD", why) == 0);
	CHECK(unsetenv("WEIR_TEST_PASSWORD") == 0);
}

/* The first read may find that the connection is gone. */
static int read_after_loss(struct weir_store *store)
{
	const char *const prefix = "none/";
	struct found f = {.key = ""};
	int r = -EIO;

	for (unsigned tries = 0; r == -EIO && tries < 200; tries++)
		r = weir_store_read(store, &prefix, 1, find, &f, NULL);
	return r;
}

static void redis_cli(const struct rig *rig, char *password, char *const words[4])
{
	char port[8];
	char *argv[] = {"redis-cli", "-p",     port,     "-a",     password,
			words[0],    words[1], words[2], words[3], NULL};

	(void)snprintf(port, sizeof(port), "%u", rig->server.port);
	CHECK(run_program(argv) == 0);
}

/* A handle that is open reads the file again when it logs in again. */
static void password_changed(struct rig *rig)
{
	static char old[] = "se cret", new[] = "other secret";
	char path[128], address[400];
	struct weir_store *s;

	(void)snprintf(path, sizeof(path), "%s/password", rig->server.folder);
	(void)snprintf(address, sizeof(address), "redis://default@127.0.0.1:%u/3?password-file=%s",
		       rig->server.port, path);
	write_password(path, old);
	s = rig_open(rig, address);
	CHECK(look(s, "none/", "").rows == 0);
	redis_cli(rig, old, (char *[]){"config", "set", "requirepass", new});
	write_password(path, new);
	redis_cli(rig, new, (char *[]){"client", "kill", "type", "normal"});
	CHECK(look(s, "none/", "").rows == 0);
	CHECK(unlink(path) == 0);
	redis_cli(rig, new, (char *[]){"client", "kill", "type", "normal"});
	CHECK(read_after_loss(s) == -EACCES);
	write_password(path, new);
	CHECK(look(s, "none/", "").rows == 0);
	redis_cli(rig, new, (char *[]){"config", "set", "requirepass", old});
	weir_store_close(s);
}

static void refused_at(struct rig *rig, const char *user)
{
	struct weir_store_config config = rig->config;
	struct weir_store *store;
	char address[96], why[256] = "";

	config.address = address;
	(void)snprintf(address, sizeof(address), "%.*s://%s127.0.0.1:%u",
		       rig->kind[0] == 'e' ? 4 : 5, rig->kind, user, rig->server.port);
	CHECK(weir_store_open(&config, &store, why, sizeof(why)) == -EACCES);
	CHECK(store == NULL && why[0] != '\0');
}

/* A wrong password, and no password. */
static void guarded(struct rig *rig)
{
	char address[96];

	password_elsewhere(rig);
	refused_at(rig, "");
	if (rig->kind[0] == 'e') {
		refused_at(rig, "root:wrong@");
		refused_at(rig, "user:se%20cret@");
		return;
	}
	refused_at(rig, ":wrong@");
	(void)snprintf(address, sizeof(address), "redis://default:se%%20cret@127.0.0.1:%u/3",
		       rig->server.port);
	weir_store_close(rig_open(rig, address));
	password_changed(rig);
}

/* A certificate that is not trusted, and no client certificate. */
static void certified(struct rig *rig)
{
	struct weir_store_config config = rig->config;
	struct weir_store *store;

	config.address = rig->direct;
	config.tls_ca = NULL;
	CHECK(weir_store_open(&config, &store, NULL, 0) == -EIO);
	config.tls_ca = rig->ca;
	config.tls_cert = config.tls_key = NULL;
	CHECK(weir_store_open(&config, &store, NULL, 0) == -EIO);
}

/* The first of the hosts does not exist. */
static void other_hosts(struct rig *rig)
{
	char address[160];
	struct weir_store *s;

	(void)snprintf(address, sizeof(address), "etcd://127.0.0.1:%u,127.0.0.1:%u", free_port(),
		       rig->server.port);
	s = rig_open(rig, address);
	CHECK(look(s, "none/", "").rows == 0);
	weir_store_close(s);
}

/* Cases for every store. */
static void do_all(struct rig *rig)
{
	if (strcmp(rig->kind, "shm") == 0)
		untrusted(rig);
	rows(rig);
	batches(rig);
	single_rows(rig);
	everything(rig);
	values(rig);
	bad_input(rig);
	sessions(rig);
	rebound(rig);
	races(rig);
	expiry(rig);
}

/* Cases that need a server. */
static void do_failures(struct rig *rig)
{
	asked_once(rig);
	rig->config.timeout = WEIR_S; /* requests without an answer wait for that long */
	unreachable(rig);
	lost_replies(rig);
	late_questions(rig);
	paused(rig);
	killed(rig);
}

int main(int argc, char **argv)
{
	struct rig rig;

	CHECK(argc == 2);
	rig_begin(&rig, argv[1]);
	if (!rig.remote) {
		do_all(&rig);
		refusals();
	} else if (rig.server.kind == SERVER_REDIS_GUARDED) {
		rows(&rig);
		guarded(&rig);
	} else if (rig.server.kind == SERVER_ETCD_GUARDED) {
		rows(&rig);
		sessions(&rig);
		guarded(&rig);
		/* Its token is lost: it logs in again. */
		killed(&rig);
	} else if (rig.server.kind == SERVER_ETCD_TLS) {
		do_all(&rig);
		certified(&rig);
	} else {
		do_all(&rig);
		if (rig.server.kind == SERVER_ETCD)
			other_hosts(&rig);
		do_failures(&rig);
	}
	rig_end(&rig);
	printf("%s behaves as a store must\n", argv[1]);
	return 0;
}
