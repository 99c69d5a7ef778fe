/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watches KIND: what a watch of every store must do, with one of that kind: each change that is
 * committed after it was opened is reported, or that any row may have changed. Kinds are those of
 * stores.c. Connections are cut, servers are killed, and what a watch reads is forged. Nothing here
 * depends on timing: a report is waited for, and that nothing is reported is not tested, except where
 * a store promises it.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store.h>

#include "../stress/check.h"
#include "fleet/store/row_table.h"
#include "store_rig.h"

#define SOON (50 * WEIR_MS)

static struct weir_store *watched; /* the same store, through the proxy if it has one */

static uint64_t put(struct weir_store *store, const char *key)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, "value", 5};
	uint64_t version;
	unsigned tries = 0;

	while (weir_store_commit(store, 0, NULL, 0, &write, 1, &version) != 0) {
		CHECK(++tries < 600);
		sleep_ms(100);
	}
	return version;
}

static uint64_t erase(struct weir_store *store, const char *key)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_ERASE, NULL, 0};
	uint64_t version;

	CHECK(weir_store_commit(store, 0, NULL, 0, &write, 1, &version) == 0);
	return version;
}

static struct weir_store_watch *watch(const char *const *prefixes, size_t count)
{
	struct weir_store_watch *w;
	char why[256];
	const int r = weir_store_watch_open(watched, prefixes, count, &w, why, sizeof(why));

	if (r != 0)
		fprintf(stderr, "%d: %s\n", r, why);
	CHECK(r == 0 && w != NULL);
	return w;
}

static struct weir_store_watch *watch_one(const char *prefix)
{
	return watch(&prefix, 1);
}

/* Wait until that version of the row has been reported, and nothing else. */
static void expect(struct weir_store_watch *w, const char *key, uint64_t version)
{
	struct weir_store_change change;
	const int r = weir_store_watch_wait(w, PATIENCE, &change);

	if (r != 0 || strcmp(change.key, key) != 0 || change.version != version)
		fprintf(stderr, "%d: '%s' %llu, not '%s' %llu; %s\n", r, change.key,
			(unsigned long long)change.version, key, (unsigned long long)version,
			change.why);
	CHECK(r == 0 && strcmp(change.key, key) == 0 && change.version == version);
	CHECK(change.why[0] == '\0');
}

static void expect_none(struct weir_store_watch *w)
{
	struct weir_store_change change;

	CHECK(weir_store_watch_wait(w, SOON, &change) == -ETIMEDOUT);
	CHECK(weir_store_watch_wait(w, 0, &change) == -ETIMEDOUT);
}

/* Wait for "any row", after any number of errors. Returns how many there were. */
static unsigned expect_any(struct weir_store_watch *w)
{
	struct weir_store_change change;
	unsigned errors = 0;
	int r;

	while ((r = weir_store_watch_wait(w, PATIENCE, &change)) != 0) {
		CHECK(r == -EIO && change.why[0] != '\0' && ++errors < 1000);
		sleep_ms(20);
	}
	if (change.key[0] != '\0')
		fprintf(stderr, "'%s'\n", change.key);
	CHECK(change.key[0] == '\0' && change.version == 0);
	return errors;
}

/*
 * Change the row until the watch has reported that very change. On a busy machine its connection may
 * fail once more, and "any row" includes what was changed before it.
 */
static void expect_next(struct rig *rig, struct weir_store_watch *w, const char *key)
{
	struct weir_store_change change;
	uint64_t version = put(rig->store, key);
	unsigned failures = 0;

	for (;;) {
		const int r = weir_store_watch_wait(w, PATIENCE, &change);

		CHECK(r == 0 || r == -EIO);
		if (r == 0 && change.key[0] != '\0') {
			CHECK(strcmp(change.key, key) == 0 && change.version <= version);
			if (change.version == version)
				return;
			continue;
		}
		CHECK(++failures < 100);
		sleep_ms(20);
		version = put(rig->store, key);
	}
}

static void expect_error(struct weir_store_watch *w)
{
	struct weir_store_change change;
	const int r = weir_store_watch_wait(w, PATIENCE, &change);

	if (r != -EIO)
		fprintf(stderr, "%d: '%s'\n", r, change.key);
	CHECK(r == -EIO && change.why[0] != '\0' && change.key[0] == '\0');
}

static void changes(struct rig *rig)
{
	static const char *const prefixes[] = {"a/", "b/x", "b/x/y"};
	struct weir_store_watch *w = watch(prefixes, 3);
	const struct weir_store_write rows[] = {{"a/1", WEIR_STORE_WRITE_PUT, "1", 1},
						{"c/1", WEIR_STORE_WRITE_PUT, "2", 1},
						{"a/2", WEIR_STORE_WRITE_PUT, "", 0}};
	const struct weir_store_check check = {"a/1", WEIR_STORE_CHECK_ABSENT, 0};
	uint64_t version;

	expect_none(w);
	expect(w, "a/1", put(rig->store, "a/1"));
	/* Also one of its own handle. */
	expect(w, "a/1", put(watched, "a/1"));
	(void)put(rig->store, "b/w");
	(void)put(rig->store, "c/a/1");
	expect_none(w);
	expect(w, "b/x/y/z", put(rig->store, "b/x/y/z"));
	expect(w, "a/1", erase(rig->store, "a/1"));
	CHECK(weir_store_commit(rig->store, 0, &check, 1, rows, 3, &version) == 0);
	expect(w, "a/1", version);
	expect(w, "a/2", version);
	CHECK(weir_store_commit(rig->store, 0, &check, 1, rows, 3, &version) == -EAGAIN);
	expect_none(w);
	weir_store_watch_close(w);
}

static void everything(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("");

	expect(w, "z/1", put(rig->store, "z/1"));
	expect(w, "a/1", put(rig->store, "a/1"));
	weir_store_watch_close(w);
}

/* More rows than are listed one by one, while no thread waits. */
static void many(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("many/");
	struct weir_store_change change;
	uint64_t seen[200] = {0}, versions[200];
	unsigned missing = 200;
	bool any = false;
	char key[32];

	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(key, sizeof(key), "many/%u", i);
		versions[i] = put(rig->store, key);
	}
	while (missing > 0 && !any) {
		unsigned i;

		CHECK(weir_store_watch_wait(w, PATIENCE, &change) == 0);
		any = change.key[0] == '\0';
		if (any)
			break;
		CHECK(sscanf(change.key, "many/%u", &i) == 1 && i < 200);
		missing -= seen[i] == 0;
		seen[i] = change.version;
		CHECK(seen[i] == versions[i]);
	}
	/* And goes on. */
	versions[0] = put(rig->store, "many/0");
	do {
		CHECK(weir_store_watch_wait(w, PATIENCE, &change) == 0);
		/* Which includes it, if the server is slow. */
		if (change.key[0] == '\0')
			versions[0] = put(rig->store, "many/0");
	} while (strcmp(change.key, "many/0") != 0 || change.version != versions[0]);
	weir_store_watch_close(w);
}

static void sessions(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("s/");
	const struct weir_store_write row = {"s/1", WEIR_STORE_WRITE_BIND, "1", 1};
	struct weir_store_change change;
	uint64_t session, version;
	weir_dur granted;

	CHECK(weir_store_begin(rig->store, 60 * WEIR_S, &session, &granted) == 0);
	CHECK(weir_store_commit(rig->store, session, NULL, 0, &row, 1, &version) == 0);
	expect(w, "s/1", version);
	CHECK(weir_store_end(rig->store, session) == 0);
	CHECK(weir_store_watch_wait(w, PATIENCE, &change) == 0);
	CHECK(strcmp(change.key, "s/1") == 0 && change.version > version);
	weir_store_watch_close(w);
}

static int refused(struct weir_store *store, const char *const *prefixes, size_t count)
{
	struct weir_store_watch *w = (void *)1;
	char why[256] = "";
	const int r = weir_store_watch_open(store, prefixes, count, &w, why, sizeof(why));

	CHECK(r < 0 && w == NULL && why[0] != '\0');
	return r;
}

static int no_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	(void)self, (void)ttl, (void)session, (void)granted;
	return -EIO;
}

/* What lies behind the end of a shorter table. */
static int unknown(struct weir_store *self, const char *const *prefixes, size_t count,
		   void **watch_of, char *why)
{
	(void)self, (void)prefixes, (void)count, (void)watch_of, (void)why;
	abort();
}

static void bad_input(void)
{
	static const char *const bad[] = {"a", "/a", "a//b", "a/ ", "a/*", "\xff/"};
	static const char *too_many[WEIR_STORE_WATCH_MAX + 1];
	/* A program that was built before there were watches. */
	const struct weir_store_ops older = {
		.size = offsetof(struct weir_store_ops, watch_open),
		.begin = no_begin,
		.watch_open = unknown,
	};
	const struct weir_store_ops without = {.size = sizeof(without), .begin = no_begin};
	struct weir_store custom = {&older};
	const char *const good = "a/";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(refused(watched, &bad[i], 1) == -EINVAL);
	CHECK(refused(watched, &good, 0) == -EINVAL);
	for (size_t i = 0; i < WEIR_STORE_WATCH_MAX + 1; i++)
		too_many[i] = "a/";
	CHECK(refused(watched, too_many, WEIR_STORE_WATCH_MAX + 1) == -EINVAL);
	CHECK(refused(&custom, &good, 1) == -ENOTSUP);
	custom.ops = &without;
	CHECK(refused(&custom, &good, 1) == -ENOTSUP);
	weir_store_watch_close(NULL);
}

/* As many as there may be: a fleet has that many. */
static void wide(struct rig *rig)
{
	static char text[WEIR_STORE_WATCH_MAX][32];
	static const char *prefixes[WEIR_STORE_WATCH_MAX];
	struct weir_store_watch *w;

	for (size_t i = 0; i < WEIR_STORE_WATCH_MAX; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "w%zu/%s", i / 4,
			       i % 4 == 0   ? "a"
			       : i % 4 == 1 ? "b"
			       : i % 4 == 2 ? "c"
					    : "d");
		prefixes[i] = text[i];
	}
	w = watch(prefixes, WEIR_STORE_WATCH_MAX);
	expect(w, "w255/d", put(rig->store, "w255/d"));
	expect(w, "w0/a", put(rig->store, "w0/a"));
	weir_store_watch_close(w);
}

struct waiter {
	struct weir_store_watch *watch;
	_Atomic int result; /* 1: none yet */
	_Atomic bool enters;
	pthread_t thread;
};

static void *wait_for_it(void *arg)
{
	struct waiter *waiter = arg;
	struct weir_store_change change;

	waiter->enters = true;
	waiter->result = weir_store_watch_wait(waiter->watch, WEIR_FOREVER, &change);
	return NULL;
}

static void start(struct waiter *waiter, struct weir_store_watch *w)
{
	waiter->watch = w;
	waiter->result = 1;
	waiter->enters = false;
	CHECK(pthread_create(&waiter->thread, NULL, wait_for_it, waiter) == 0);
	while (!waiter->enters)
		sleep_ms(1);
	sleep_ms(20); /* so that it mostly sleeps by then; either is right */
}

static int end(struct waiter *waiter)
{
	CHECK(pthread_join(waiter->thread, NULL) == 0);
	return waiter->result;
}

static void ends(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");
	struct weir_store_change change;
	struct waiter waiter;

	weir_store_watch_wake(w);
	CHECK(weir_store_watch_wait(w, WEIR_FOREVER, &change) == -ECANCELED);
	expect_none(w);
	for (unsigned i = 0; i < 5; i++) {
		start(&waiter, w);
		CHECK(waiter.result != 1 || weir_store_watch_wait(w, 0, &change) == -EBUSY);
		weir_store_watch_wake(w);
		CHECK(end(&waiter) == -ECANCELED);
	}
	expect(w, "a/1", put(rig->store, "a/1"));
	start(&waiter, w);
	(void)put(rig->store, "a/1");
	CHECK(end(&waiter) == 0);
	start(&waiter, w);
	weir_store_watch_close(w);
	CHECK(end(&waiter) == -ECANCELED);
}

/* Many writers, many watches: after the last change each watch has reported it, or a later one. */
#define COUNTERS 40
#define WRITERS  6
#define WATCHERS 4
#define ROUNDS   100

static _Atomic uint64_t last[COUNTERS];

struct worker {
	struct rig *rig;
	struct weir_store *store;
	struct weir_store_watch *watch;
	uint64_t seen[COUNTERS], chance;
	pthread_t thread;
};

static _Atomic bool over;

static unsigned pick(struct worker *w, unsigned most)
{
	w->chance = w->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(w->chance >> 33) % most;
}

static void raise_to(_Atomic uint64_t *value, uint64_t to)
{
	uint64_t now = *value;

	while (now < to && !atomic_compare_exchange_weak(value, &now, to))
		;
}

static void *write_some(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		const unsigned first = pick(w, COUNTERS), count = 1 + pick(w, 3);
		struct weir_store_write writes[3];
		char keys[3][16];
		uint64_t version;

		for (unsigned j = 0; j < count; j++) {
			const bool put = pick(w, 4) > 0;

			(void)snprintf(keys[j], sizeof(keys[j]), "n%u/%u",
				       (first + j) % COUNTERS % 3, (first + j) % COUNTERS);
			writes[j] = (struct weir_store_write){
				keys[j], put ? WEIR_STORE_WRITE_PUT : WEIR_STORE_WRITE_ERASE,
				put ? "1" : NULL, put ? 1 : 0};
		}
		CHECK(weir_store_commit(w->store, 0, NULL, 0, writes, count, &version) == 0);
		for (unsigned j = 0; j < count; j++)
			if (writes[j].value != NULL) /* no change if there was no row */
				raise_to(&last[(first + j) % COUNTERS], version);
	}
	return NULL;
}

static bool stop(void *arg, const struct weir_store_row *row)
{
	(void)arg, (void)row;
	return false;
}

/* What was committed before this reading is known. */
static void read_anew(struct worker *w)
{
	static const char *const all[] = {"n0/", "n1/", "n2/"};
	struct weir_store_view view;

	CHECK(weir_store_read(w->store, all, 3, stop, NULL, &view) == 0);
	for (unsigned i = 0; i < COUNTERS; i++)
		if (view.version > w->seen[i])
			w->seen[i] = view.version;
}

static bool has_all(const struct worker *w)
{
	for (unsigned i = 0; i < COUNTERS; i++)
		if (w->seen[i] < last[i])
			return false;
	return true;
}

static void *watch_all(void *arg)
{
	struct worker *w = arg;
	struct weir_store_change change;
	unsigned i, waits = 0;
	int r;

	while (!over || !has_all(w)) {
		r = weir_store_watch_wait(w->watch, over ? PATIENCE : WEIR_S, &change);
		if (r == -ETIMEDOUT) {
			CHECK(++waits < PATIENCE / WEIR_S);
			continue;
		}
		CHECK(r == 0);
		waits = 0;
		if (change.key[0] == '\0') {
			read_anew(w);
			continue;
		}
		CHECK(sscanf(change.key, "n%*u/%u", &i) == 1 && i < COUNTERS);
		if (change.version > w->seen[i])
			w->seen[i] = change.version;
		/* Some are slow. */
		if (pick(w, 100) == 0)
			sleep_ms(20);
	}
	return NULL;
}

static void crowd(struct rig *rig)
{
	static const char *const prefixes[] = {"n0/", "n1/", "n2/"};
	static struct worker writers[WRITERS], watchers[WATCHERS];

	over = false;
	for (unsigned i = 0; i < WATCHERS; i++) {
		watchers[i] = (struct worker){.rig = rig, .store = rig->store, .chance = i + 1};
		watchers[i].watch = watch(prefixes, 3);
		CHECK(pthread_create(&watchers[i].thread, NULL, watch_all, &watchers[i]) == 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		/* A store in memory has one handle. */
		struct weir_store *own = rig->store == watched ? rig->store
							       : rig_open(rig, rig->direct);

		writers[i] = (struct worker){.rig = rig, .store = own, .chance = 77 * i + 5};
		CHECK(pthread_create(&writers[i].thread, NULL, write_some, &writers[i]) == 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		CHECK(pthread_join(writers[i].thread, NULL) == 0);
		if (writers[i].store != rig->store)
			weir_store_close(writers[i].store);
	}
	over = true;
	for (unsigned i = 0; i < WATCHERS; i++) {
		CHECK(pthread_join(watchers[i].thread, NULL) == 0);
		weir_store_watch_close(watchers[i].watch);
	}
}

/* Shared memory. */

static struct block *map_block(struct rig *rig, size_t *size)
{
	const int fd = shm_open(rig->direct + 4, O_RDWR, 0);
	struct stat file;
	void *at;

	CHECK(fd >= 0 && fstat(fd, &file) == 0);
	*size = (size_t)file.st_size;
	at = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

/* A process dies after it has made a change, before it has rung. */
static void died(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");
	size_t size;
	struct block *block = map_block(rig, &size);
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(pthread_mutex_lock(&block->lock) == 0 ? 0 : 1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(expect_any(w) == 0);
	expect(w, "a/1", put(rig->store, "a/1"));
	CHECK(munmap(block, size) == 0);
	weir_store_watch_close(w);
}

/* The file is removed, and another one has its name. */
static void removed(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");

	CHECK(shm_unlink(rig->direct + 4) == 0);
	expect_error(w);
	(void)put(rig->store, "a/1");
	(void)expect_any(w);
	expect(w, "a/1", put(rig->store, "a/1"));
	weir_store_watch_close(w);
	weir_store_close(watched);
	watched = rig_open(rig, rig->direct);
}

struct forger {
	struct bell *bell;
	_Atomic bool ends;
};

static void *forge(void *arg)
{
	struct forger *f = arg;
	struct worker w = {.chance = 99};

	while (!f->ends) {
		unsigned char *bytes = (unsigned char *)f->bell;
		const unsigned at = pick(&w, sizeof(*f->bell)), what = pick(&w, 8);

		if (what == 0)
			f->bell->count = pick(&w, 2) * UINT64_MAX - pick(&w, 200);
		else if (what == 1)
			memset(f->bell->notes, (int)pick(&w, 256), sizeof(f->bell->notes));
		else if (what == 2)
			bell_wake(f->bell);
		else
			bytes[at] = (unsigned char)pick(&w, 256);
	}
	return NULL;
}

/* Another process writes into the bell: reports may be wrong or missing, and that is all. */
static void forged(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");
	struct weir_store_change change;
	struct forger forger = {.ends = false};
	size_t size;
	struct block *block = map_block(rig, &size);
	pthread_t thread;

	forger.bell = &block->bell;
	CHECK(pthread_create(&thread, NULL, forge, &forger) == 0);
	for (unsigned i = 0; i < 2000; i++) {
		const int r = weir_store_watch_wait(w, WEIR_MS, &change);

		CHECK(r == 0 || r == -ETIMEDOUT);
		CHECK(r != 0 || strncmp(change.key, "a/", 2) == 0 || change.key[0] == '\0');
		if (i % 100 == 0)
			(void)put(rig->store, "a/1");
	}
	forger.ends = true;
	CHECK(pthread_join(thread, NULL) == 0);
	/* The next change is seen. */
	while (weir_store_watch_wait(w, 0, &change) == 0)
		;
	(void)put(rig->store, "a/1");
	do
		CHECK(weir_store_watch_wait(w, PATIENCE, &change) == 0);
	while (change.key[0] != '\0' && strcmp(change.key, "a/1") != 0);
	CHECK(munmap(block, size) == 0);
	weir_store_watch_close(w);
}

/* Servers. */

/* The connection is cut in the middle of something, in several ways, and made again. */
static void cut(struct rig *rig)
{
	static const enum proxy_mode modes[] = {PROXY_LOSE, PROXY_TRUNCATE, PROXY_GARBAGE};
	struct weir_store_watch *w = watch_one("a/");

	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		expect_next(rig, w, "a/1");
		rig_set_mode(rig, modes[i]);
		(void)put(rig->store, "a/2");
		expect_error(w);
		expect_error(w);
		rig_set_mode(rig, PROXY_PASS);
		(void)expect_any(w);
	}
	expect_next(rig, w, "a/1");
	weir_store_watch_close(w);
}

/* A server that answers nothing any more, and keeps the connection. */
static void silent(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");

	rig_set_mode(rig, PROXY_SWALLOW);
	(void)put(rig->store, "a/2");
	expect_error(w);
	rig_set_mode(rig, PROXY_PASS);
	(void)expect_any(w);
	expect_next(rig, w, "a/1");
	weir_store_watch_close(w);
}

static void restarted(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");

	server_kill(&rig->server);
	expect_error(w);
	server_restart(&rig->server);
	(void)put(rig->store, "a/1");
	(void)expect_any(w);
	/* The store may be another one now, of which the watch learns by a report. */
	for (unsigned i = 0;; i++) {
		struct weir_store_change change;
		const uint64_t version = put(rig->store, "a/1");

		CHECK(i < 1000);
		while (weir_store_watch_wait(w, WEIR_S, &change) == 0 && change.key[0] == '\0')
			;
		if (strcmp(change.key, "a/1") == 0 && change.version == version)
			break;
	}
	weir_store_watch_close(w);
}

static void absent(struct rig *rig)
{
	const char *const prefix = "a/";

	rig_set_mode(rig, PROXY_LOSE);
	CHECK(refused(watched, &prefix, 1) == -EIO);
	rig_set_mode(rig, PROXY_PASS);
}

/* Any client that may publish can say anything. */
static void lied_to(struct rig *rig)
{
	static const char *const lies[] = {
		"PUBLISH {weir}:w:a \"1 a/1 a/../x b/1 /\"\r\n",
		"PUBLISH {weir}:w:a \"18446744073709551616 a/1\"\r\n",
		"PUBLISH {weir}:w:a \"\"\r\n",
		"PUBLISH {weir}:w:a \"12\"\r\n",
		"PUBLISH {weir}:w:a \"-1 a/1\"\r\n",
		"PUBLISH {weir}:w:a \"1  a/\\x00 a//\\xff\"\r\n",
		"PUBLISH {weir}:w: x\r\n",
	};
	struct weir_store_watch *w = watch_one("a/");
	struct weir_store_change change;
	uint64_t version;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		(void)server_tell(&rig->server, lies[i]);
	version = put(rig->store, "a/2");
	do {
		CHECK(weir_store_watch_wait(w, PATIENCE, &change) == 0);
		CHECK(change.key[0] == '\0' || strcmp(change.key, "a/1") == 0 ||
		      strcmp(change.key, "a/2") == 0);
		/* "any row" includes it. */
		if (change.key[0] == '\0')
			version = put(rig->store, "a/2");
	} while (change.version != version);
	weir_store_watch_close(w);
}

/* Its data is erased while it runs: the next request finds another store. */
static void emptied(struct rig *rig)
{
	static const char all[] = "{\"key\":\"d2Vpci8=\",\"range_end\":\"d2VpcjA=\"}";
	struct weir_store_watch *w = watch_one("b/");

	CHECK(rig->server.kind >= SERVER_ETCD
		      ? server_post(&rig->server, "/v3/kv/deleterange", all, NULL)
		      : server_tell(&rig->server, "FLUSHALL\r\n"));
	(void)put(rig->store, "a/1");
	(void)expect_any(w);
	/* The versions of the new store are known. */
	for (unsigned i = 0;; i++) {
		struct weir_store_change change;
		const uint64_t version = put(rig->store, "b/1");

		const int r = weir_store_watch_wait(w, PATIENCE, &change);

		CHECK(i < 1000 && (r == 0 || r == -EIO));
		if (r == 0 && change.key[0] != '\0' && change.version == version)
			break;
	}
	weir_store_watch_close(w);
}

static void compact(struct rig *rig)
{
	static const char revision_is[] = "\"revision\":\"";
	char answer[ANSWER_ROOM], text[64];
	const char *at;

	CHECK(server_post(&rig->server, "/v3/kv/range", "{\"key\":\"YQ==\"}", answer));
	at = strstr(answer, revision_is);
	CHECK(at != NULL);
	(void)snprintf(text, sizeof(text), "{\"revision\":\"%llu\"}",
		       strtoull(at + strlen(revision_is), NULL, 10));
	CHECK(server_post(&rig->server, "/v3/kv/compaction", text, NULL));
}

/* Whether a stream that was silent has begun anew where it was. */
static bool goes_on(struct rig *rig, struct weir_store_watch *w)
{
	struct weir_store_change change;
	uint64_t version;
	int r;

	rig_set_mode(rig, PROXY_SWALLOW);
	version = put(rig->store, "a/1");
	sleep_ms(1000);
	rig_set_mode(rig, PROXY_PASS);
	r = weir_store_watch_wait(w, PATIENCE, &change);
	CHECK(r == 0 || r == -EIO);
	CHECK(r != 0 || change.key[0] == '\0' ||
	      (strcmp(change.key, "a/1") == 0 && change.version == version));
	return r == 0 && change.key[0] != '\0';
}

/*
 * A stream that was silent begins anew where it was; or with any row, if that was compacted, or if
 * a busy machine could not answer in time.
 */
static void slept(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");

	for (unsigned i = 0; !goes_on(rig, w); i++) {
		CHECK(i < 20);
		expect_next(rig, w, "a/1");
	}
	rig_set_mode(rig, PROXY_SWALLOW);
	(void)put(rig->store, "a/1");
	(void)put(rig->store, "a/2");
	compact(rig);
	sleep_ms(1000);
	rig_set_mode(rig, PROXY_PASS);
	(void)expect_any(w);
	expect_next(rig, w, "a/1");
	weir_store_watch_close(w);
}

/* With two addresses, a watch goes on over the other one. */
static void two_hosts(struct rig *rig)
{
	struct weir_store *before = watched;
	struct weir_store_watch *w;
	struct proxy second;
	char address[160];

	proxy_start(&second, rig->server.port);
	(void)snprintf(address, sizeof(address), "etcd://127.0.0.1:%u,127.0.0.1:%u",
		       rig->proxy.port, second.port);
	watched = rig_open(rig, address);
	w = watch_one("a/");
	expect_next(rig, w, "a/1");
	rig_set_mode(rig, PROXY_LOSE);
	(void)put(rig->store, "a/1");
	expect_error(w);
	(void)expect_any(w);
	expect_next(rig, w, "a/1");
	rig_set_mode(rig, PROXY_PASS);
	weir_store_watch_close(w);
	weir_store_close(watched);
	watched = before;
	proxy_end(&second);
}

/* It logs in again. */
static void guarded(struct rig *rig)
{
	struct weir_store_watch *w = watch_one("a/");

	expect_next(rig, w, "a/1");
	server_kill(&rig->server);
	expect_error(w);
	server_restart(&rig->server);
	(void)expect_any(w);
	weir_store_watch_close(w);
}

static void begin(struct rig *rig, const char *kind)
{
	rig_begin(rig, kind);
	watched = rig->remote                ? rig_open(rig, rig->address)
		  : strcmp(kind, "shm") == 0 ? rig_open(rig, rig->direct)
					     : rig->store;
}

static void end_all(struct rig *rig)
{
	if (watched != rig->store)
		weir_store_close(watched);
	rig_end(rig);
}

static void do_all(struct rig *rig)
{
	changes(rig);
	everything(rig);
	many(rig);
	sessions(rig);
	bad_input();
	wide(rig);
	ends(rig);
	crowd(rig);
}

/* Requests without an answer wait for that long; a busy machine has to answer within. */
static void do_failures(struct rig *rig)
{
	weir_store_close(watched);
	rig->config.timeout = 5 * WEIR_S;
	watched = rig_open(rig, rig->address);
	cut(rig);
	absent(rig);
	silent(rig);
	if (rig->server.kind == SERVER_ETCD) {
		slept(rig);
		two_hosts(rig);
	} else {
		lied_to(rig);
	}
	emptied(rig);
	restarted(rig);
}

int main(int argc, char **argv)
{
	struct rig rig;

	CHECK(argc == 2);
	begin(&rig, argv[1]);
	do_all(&rig);
	if (rig.server.kind == SERVER_REDIS_GUARDED || rig.server.kind == SERVER_ETCD_GUARDED)
		guarded(&rig);
	else if (rig.remote && rig.server.kind != SERVER_ETCD_TLS)
		do_failures(&rig);
	if (strcmp(argv[1], "shm") == 0) {
		died(&rig);
		forged(&rig);
		removed(&rig);
	}
	end_all(&rig);
	printf("a watch of %s reports what has changed\n", argv[1]);
	return 0;
}
