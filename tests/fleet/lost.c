/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lost [KIND]: a store that has lost data is never taken for the same store. In memory: partitions
 * after a loss, in simulated time. shm: a file that is removed. etcd, redis: servers that are
 * emptied, restored to an earlier state, restarted with other settings, or replaced by a replica.
 */

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weir/work.h>

#include "proxy.h"
#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUND   (REFRESH * 13 / 10)

/* A member that takes part in partitions, and what it owns. */
struct owner {
	struct weir_fleet *fleet;
	struct weir_work *work;
	uint64_t fence;
};

static void gained(void *arg, uint32_t partition, uint64_t fence)
{
	(void)partition;
	((struct owner *)arg)->fence = fence;
}

static void own(struct owner *o)
{
	struct weir_work_config config;

	weir_work_config_init(&config);
	config.name = "work";
	config.count = 1;
	config.on_gain = gained;
	config.arg = o;
	CHECK(weir_work_open(o->fleet, &config, &o->work, NULL, 0) == 0);
}

static bool has(const struct owner *o)
{
	return weir_work_fence(o->work, 0) != 0;
}

/*
 * The store has forgotten the owner of the partition, and the owner cannot learn of that: until its
 * lease has ended no other member owns the partition.
 */
static void forgotten_partitions(struct test_store *test_store)
{
	struct world w;
	struct owner a = {.fence = 0}, b = {.fence = 0};
	unsigned rounds = 0;

	world_use(test_store);
	world_begin(&w, 100, LEASE, REFRESH);
	world_enter(&w, 0, 0);
	a.fleet = w.actors[0].fleet;
	own(&a);
	world_run(&w, 3 * ROUND);
	CHECK(has(&a));
	w.actors[0].manner = UNREACHABLE;
	world_forget(&w, w.now);
	world_enter(&w, 1, 0);
	b.fleet = w.actors[1].fleet;
	own(&b);
	while (!has(&b)) {
		CHECK(++rounds < 200);
		world_run(&w, ROUND / 10);
		CHECK(!has(&a) || !has(&b));
	}
	CHECK(b.fence != 0 && !has(&a));
	world_end(&w);
}

/* A server, a proxy in front of it, and a client that has rows there, and a session. */
struct rig {
	struct server server;
	struct proxy proxy;
	char address[64];
	struct weir_store *store;
	uint64_t session, kept, fence;
	struct weir_store_view before;
	weir_time gone; /* a moment before the loss */
};

static weir_time boot_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static struct weir_store *open_at(const char *address)
{
	struct weir_store_config config;
	struct weir_store *store;
	unsigned tries = 0;

	weir_store_config_init(&config);
	config.address = address;
	config.timeout = 10 * WEIR_S;
	while (weir_store_open(&config, &store, NULL, 0) != 0) {
		CHECK(++tries < 100);
		sleep_ms(100);
	}
	return store;
}

struct seen {
	const char *key;
	uint64_t made;
	unsigned rows;
};

static bool see(void *arg, const struct weir_store_row *row)
{
	struct seen *s = arg;

	s->rows++;
	if (strcmp(row->key, s->key) == 0)
		s->made = row->made;
	return true;
}

static struct seen look(struct weir_store *store, const char *key, struct weir_store_view *view)
{
	const char *prefix = "row/";
	struct seen s = {.key = key};
	unsigned tries = 0;

	while (weir_store_read(store, &prefix, 1, see, &s, view) != 0) {
		CHECK(++tries < 600);
		sleep_ms(50);
		s = (struct seen){.key = key};
	}
	return s;
}

static uint64_t write_row(struct weir_store *store, const char *key)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, "x", 1};
	uint64_t version;

	CHECK(weir_store_commit(store, 0, NULL, 0, &write, 1, &version) == 0);
	return version;
}

static void rig_fill(struct rig *r)
{
	const struct weir_store_write bound = {"row/bound", WEIR_STORE_WRITE_BIND, "x", 1};
	weir_dur granted;

	r->store = open_at(r->address);
	CHECK(weir_store_begin(r->store, 600 * WEIR_S, &r->session, &granted) == 0);
	r->kept = write_row(r->store, "row/kept");
	CHECK(weir_store_commit(r->store, r->session, NULL, 0, &bound, 1, &r->fence) == 0);
}

static void rig_begin(struct rig *r, enum server_kind kind)
{
	memset(r, 0, sizeof(*r));
	server_start(&r->server, kind);
	proxy_start(&r->proxy, r->server.port);
	(void)snprintf(r->address, sizeof(r->address), "%s://127.0.0.1:%u",
		       kind == SERVER_ETCD ? "etcd" : "redis", r->proxy.port);
	rig_fill(r);
}

/* Record what the client knows in the end. */
static void rig_note(struct rig *r)
{
	CHECK(look(r->store, "row/bound", &r->before).made == r->fence);
}

static void rig_end(struct rig *r)
{
	weir_store_close(r->store);
	proxy_end(&r->proxy);
	server_end(&r->server);
}

static void in_folder(const struct server *s, const char *script)
{
	char command[512];
	char *argv[] = {"sh", "-c", command, NULL};

	(void)snprintf(command, sizeof(command), "cd %s && %s", s->folder, script);
	CHECK(run_program(argv) == 0);
}

#define EMPTY "rm -rf data appendonlydir *.aof *.rdb"
#define KEEP                                                                                       \
	"rm -rf kept && mkdir kept && for f in data appendonlydir; do [ ! -e $f ] || cp -r $f kept; done"
#define RESTORE EMPTY " && cp -r kept/* ."

/* Kill the server, run a script on its data, and start it again as that kind. */
static void replace(struct rig *r, const char *script, enum server_kind kind)
{
	r->gone = boot_time();
	server_kill(&r->server);
	in_folder(&r->server, script);
	r->server.kind = kind;
	server_restart(&r->server);
}

/* Commit, repeating until there is an answer. */
static int commit(struct rig *r, uint64_t session, const struct weir_store_check *check)
{
	const struct weir_store_write write = {"row/late", WEIR_STORE_WRITE_PUT, "x", 1};
	unsigned tries = 0;
	int error;

	do {
		error = weir_store_commit(r->store, session, check, check != NULL, &write, 1, NULL);
		CHECK(++tries < 600);
		if (error == -EIO)
			sleep_ms(50);
	} while (error == -EIO);
	return error;
}

/* It is another store, for members that knew the one before, and for new ones. */
static void check_other(struct rig *r)
{
	const struct weir_store_check check = {"row/bound", WEIR_STORE_CHECK_MADE, r->fence};
	struct weir_store *other = open_at(r->address);
	struct weir_store_view view;
	weir_dur granted;

	CHECK(weir_store_keep(r->store, r->session, &granted) == -ESTALE);
	CHECK(commit(r, r->session, NULL) == -ESTALE);
	CHECK(commit(r, 0, &check) == -EAGAIN);
	CHECK(look(r->store, "row/late", &view).made == 0);
	CHECK(view.version > r->before.version && view.proven < boot_time() - r->gone);
	CHECK(look(other, "", &view).rows <= 2 && view.proven < boot_time() - r->gone);
	CHECK(write_row(other, "row/bound") > r->before.version);
	CHECK(commit(r, 0, &check) == -EAGAIN);
	weir_store_close(other);
}

/* It is the same store as before. */
static void check_same(struct rig *r)
{
	const struct weir_store_check check = {"row/bound", WEIR_STORE_CHECK_MADE, r->fence};
	struct weir_store_view view;
	weir_dur granted;

	CHECK(look(r->store, "row/bound", &view).made == r->fence);
	CHECK(view.version >= r->before.version && view.proven >= r->before.proven);
	CHECK(weir_store_keep(r->store, r->session, &granted) == 0);
	CHECK(commit(r, r->session, &check) == 0);
}

/* The first request to an emptied server is a commit without checks: it is refused. */
static void emptied(enum server_kind kind)
{
	struct rig r;

	rig_begin(&r, kind);
	rig_note(&r);
	replace(&r, EMPTY, kind);
	CHECK(commit(&r, 0, NULL) == -EAGAIN);
	CHECK(look(r.store, "", NULL).rows == 0);
	check_other(&r);
	rig_end(&r);
}

/* The server has the data from before the last acknowledged commit. */
static void restored(enum server_kind kind)
{
	struct rig r;

	rig_begin(&r, kind);
	replace(&r, KEEP, kind);
	CHECK(look(r.store, "row/bound", NULL).made == r.fence);
	write_row(r.store, "row/lost");
	rig_note(&r);
	replace(&r, RESTORE, kind);
	CHECK(look(r.store, "row/lost", NULL).made == 0);
	check_other(&r);
	rig_end(&r);
}

static void restarted(enum server_kind kind)
{
	struct rig r;

	rig_begin(&r, kind);
	rig_note(&r);
	replace(&r, "true", kind);
	check_same(&r);
	rig_end(&r);
}

/* The server's current settings say nothing about earlier losses. */
static void made_durable(void)
{
	struct rig r;

	rig_begin(&r, SERVER_REDIS);
	rig_note(&r);
	replace(&r, "true", SERVER_REDIS_DURABLE);
	check_other(&r);
	rig_end(&r);
}

/* Send one command to Redis, and read the beginning of its answer. */
static void say(unsigned port, const char *command, char *answer, size_t size)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(send(fd, command, strlen(command), MSG_NOSIGNAL) == (ssize_t)strlen(command));
	n = recv(fd, answer, size - 1, 0);
	CHECK(n > 0);
	answer[n] = '\0';
	close(fd);
}

/* Start a replica of the server, and wait until it has the same data. */
static void replicate(const struct rig *r, struct server *replica)
{
	char command[64], answer[8192];
	unsigned tries = 0;

	server_start(replica, SERVER_REDIS_DURABLE);
	(void)snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %u\r\n", r->server.port);
	say(replica->port, command, answer, sizeof(answer));
	do {
		CHECK(++tries < 600);
		sleep_ms(50);
		say(replica->port, "INFO replication\r\n", answer, sizeof(answer));
	} while (strstr(answer, "master_link_status:up") == NULL);
}

/* The replica takes over, and has all that was acknowledged, but no member can know that. */
static void promoted(void)
{
	struct server replica;
	struct rig r;
	char answer[256];

	rig_begin(&r, SERVER_REDIS_DURABLE);
	rig_note(&r);
	replicate(&r, &replica);
	r.gone = boot_time();
	server_kill(&r.server);
	say(replica.port, "REPLICAOF NO ONE\r\n", answer, sizeof(answer));
	atomic_store(&r.proxy.to, replica.port);
	check_other(&r);
	rig_end(&r);
	server_end(&replica);
}

/* There is a replica, which might have taken over while the server was down. */
static void replicated(void)
{
	struct server replica;
	struct rig r;

	rig_begin(&r, SERVER_REDIS_DURABLE);
	replicate(&r, &replica);
	rig_note(&r);
	server_end(&replica);
	replace(&r, "true", SERVER_REDIS_DURABLE);
	check_other(&r);
	rig_end(&r);
}

/* The same run of the server, without its data. */
static void flushed(void)
{
	struct rig r;
	char answer[64];

	rig_begin(&r, SERVER_REDIS_DURABLE);
	rig_note(&r);
	r.gone = boot_time();
	say(r.server.port, "FLUSHALL\r\n", answer, sizeof(answer));
	CHECK(commit(&r, 0, NULL) == -EAGAIN);
	check_other(&r);
	rig_end(&r);
}

/* The file is removed, and another one created with its name, before the next request. */
static void removed(void)
{
	struct weir_store *other;
	struct rig r;

	memset(&r, 0, sizeof(r));
	(void)snprintf(r.address, sizeof(r.address), "shm:/weir-lost-%d", (int)getpid());
	rig_fill(&r);
	rig_note(&r);
	r.gone = boot_time();
	CHECK(shm_unlink(r.address + 4) == 0);
	other = open_at(r.address);
	CHECK(commit(&r, 0, NULL) == -EAGAIN);
	check_other(&r);
	weir_store_close(other);
	weir_store_close(r.store);
	CHECK(shm_unlink(r.address + 4) == 0);
}

static struct owner enter(const char *address, weir_dur lease)
{
	struct weir_fleet_config config;
	struct owner o = {.fence = 0};

	weir_fleet_config_init(&config);
	config.address = address;
	config.lease = lease;
	config.manual = 1;
	CHECK(weir_fleet_open(&config, &o.fleet, NULL, 0) == 0);
	return o;
}

static void gain(struct owner *o)
{
	for (unsigned tries = 0; !has(o); tries++) {
		CHECK(tries < 600);
		(void)weir_fleet_refresh(o->fleet);
		sleep_ms(50);
	}
}

/* Repeated until there is an answer, because the previous connection is gone. */
static int checkpoint(const struct owner *o, uint64_t sequence)
{
	int r;

	for (unsigned tries = 0;; tries++) {
		r = weir_work_checkpoint(o->work, 0, o->fence, sequence, "", 0);
		if (r != -EIO)
			return r;
		CHECK(tries < 600);
		sleep_ms(50);
	}
}

/*
 * A member that owned a partition before the store was emptied cannot undo what the new owner has
 * done.
 */
static void late_owner(enum server_kind kind)
{
	struct owner a, b;
	struct rig r;
	uint64_t sequence;
	size_t size = 0;

	rig_begin(&r, kind);
	a = enter(r.address, 2 * WEIR_S);
	own(&a);
	gain(&a);
	CHECK(checkpoint(&a, 100) == 0);
	replace(&r, EMPTY, kind);
	b = enter(r.address, 2 * WEIR_S);
	own(&b);
	gain(&b);
	CHECK(b.fence > a.fence && !has(&a));
	CHECK(checkpoint(&b, 500) == 0);
	CHECK(checkpoint(&a, 101) == -ESTALE);
	CHECK(checkpoint(&a, 501) == -ESTALE);
	CHECK(weir_work_load(b.work, 0, &sequence, NULL, &size) == 0 && sequence == 500);
	weir_fleet_close(a.fleet);
	weir_fleet_close(b.fleet);
	rig_end(&r);
}

/* Let etcd end a session. False: it is over already. */
static bool end_early(const struct server *server, uint64_t session)
{
	char body[64];

	(void)snprintf(body, sizeof(body), "{\"ID\": \"%" PRIu64 "\"}", session);
	return server_post(server, "/v3/lease/revoke", body, NULL);
}

/*
 * A session that is over before its time proves that rows may be gone whose members still use what
 * they stand for. It is another store from then on, also for members whose sessions still exist. A
 * session that is over in its time, or that its owner has ended, proves nothing.
 */
static void broken(void)
{
	struct weir_store *other;
	struct weir_store_view view;
	uint64_t session;
	weir_dur granted;
	struct rig r;

	rig_begin(&r, SERVER_ETCD);
	rig_note(&r);
	other = open_at(r.address);
	CHECK(weir_store_begin(other, 2 * WEIR_S, &session, &granted) == 0);
	sleep_ms((unsigned)(granted / WEIR_MS));
	(void)end_early(&r.server, session);
	CHECK(weir_store_keep(other, session, &granted) == -ESTALE);
	CHECK(weir_store_begin(other, 60 * WEIR_S, &session, &granted) == 0);
	CHECK(weir_store_end(other, session) == 0);
	CHECK(weir_store_keep(other, session, &granted) == -ESTALE);
	check_same(&r);
	CHECK(weir_store_begin(other, 60 * WEIR_S, &session, &granted) == 0);
	r.gone = boot_time();
	CHECK(end_early(&r.server, session));
	CHECK(weir_store_keep(other, session, &granted) == -ESTALE);
	CHECK(weir_store_begin(other, 60 * WEIR_S, &session, &granted) == 0);
	CHECK(look(other, "", &view).rows > 0 && view.proven < boot_time() - r.gone);
	CHECK(weir_store_keep(r.store, r.session, &granted) == -ESTALE);
	CHECK(look(r.store, "", &view).rows > 0 && view.proven < boot_time() - r.gone);
	CHECK(weir_store_keep(other, session, &granted) == 0);
	weir_store_close(other);
	rig_end(&r);
}

static void end_all_early(const struct server *server)
{
	char answer[ANSWER_ROOM];
	unsigned ended = 0;

	CHECK(server_post(server, "/v3/lease/leases", "{}", answer));
	for (const char *at = answer; (at = strstr(at, "\"ID\":\"")) != NULL; at++)
		ended += end_early(server, strtoull(at + 6, NULL, 10));
	CHECK(ended == 2);
}

/*
 * The owner of a partition does not know yet that its session was ended too early: no other member
 * owns the partition until the owner's lease has ended.
 */
static void session_ended_early(void)
{
	struct server server;
	struct owner a, b;
	char address[64];

	server_start(&server, SERVER_ETCD);
	(void)snprintf(address, sizeof(address), "etcd://127.0.0.1:%u", server.port);
	a = enter(address, 10 * WEIR_S);
	own(&a);
	gain(&a);
	b = enter(address, 10 * WEIR_S);
	own(&b);
	for (unsigned i = 0; i < 10; i++) {
		(void)weir_fleet_refresh(a.fleet);
		(void)weir_fleet_refresh(b.fleet);
	}
	CHECK(has(&a) && !has(&b));
	end_all_early(&server);
	for (unsigned tries = 0; !has(&b); tries++) {
		CHECK(tries < 3000);
		(void)weir_fleet_refresh(b.fleet);
		CHECK(!has(&a) || !has(&b));
		sleep_ms(20);
	}
	CHECK(b.fence > a.fence);
	weir_fleet_close(a.fleet);
	weir_fleet_close(b.fleet);
	server_end(&server);
}

int main(int argc, char **argv)
{
	const char *kind = argc == 2 ? argv[1] : "memory";
	struct test_store test_store;

	if (strcmp(kind, "etcd") == 0) {
		restarted(SERVER_ETCD);
		emptied(SERVER_ETCD);
		restored(SERVER_ETCD);
		late_owner(SERVER_ETCD);
		broken();
		session_ended_early();
	} else if (strcmp(kind, "redis") == 0) {
		restarted(SERVER_REDIS_DURABLE);
		emptied(SERVER_REDIS_DURABLE);
		emptied(SERVER_REDIS);
		restored(SERVER_REDIS_DURABLE);
		made_durable();
		promoted();
		replicated();
		flushed();
		late_owner(SERVER_REDIS_DURABLE);
	} else if (strcmp(kind, "shm") == 0) {
		removed();
	} else {
		test_store_begin(&test_store, kind);
		forgotten_partitions(&test_store);
		test_store_end(&test_store);
	}
	printf("losses of data are detected, %s\n", kind);
	return 0;
}
