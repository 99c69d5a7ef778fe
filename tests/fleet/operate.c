/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on a limit from outside, case by case, in simulated time. */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <weir/fleet_metrics.h>
#include <weir/work.h>

#include "world.h"

#define LEASE   (20 * WEIR_S)
#define REFRESH (5 * WEIR_S)
#define ROUNDS  (3 * REFRESH) /* each has refreshed twice */

static struct world w;

static void begin(unsigned count, uint64_t reserved)
{
	world_begin(&w, 100, LEASE, REFRESH);
	w.limit.reserved = reserved;
	w.limit.members = reserved > 0 ? 4 : 0;
	for (unsigned i = 0; i < count; i++)
		world_enter(&w, i, 100);
	world_run(&w, ROUNDS);
}

static void end(void)
{
	CHECK(w.over == 0);
	world_end(&w);
}

static struct weir_share_info info_of(unsigned member)
{
	struct weir_share_info info;

	weir_share_info_init(&info);
	weir_share_info_take(w.actors[member].share, &info);
	return info;
}

/* What is searched for, and what was seen. */
struct seen {
	uint64_t fence, id;
	unsigned drained, absent;
};

static bool see(void *arg, const struct weir_fleet_member *m)
{
	struct seen *s = arg;

	if (m->fence == s->fence)
		s->id = m->id;
	s->drained += m->drained;
	s->absent += m->fence == 0;
	CHECK(m->drained == 0 || m->grant == 0 || m->wants > 0);
	return true;
}

static struct seen look(uint64_t fence)
{
	struct weir_fleet_limit limit;
	struct seen s = {.fence = fence};

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, see, &s) == 0);
	return s;
}

static uint64_t id_of(unsigned member)
{
	return look(info_of(member).fence).id;
}

/*
 * A drained member gives back what it holds, and what is reserved; others get that, and it gets it
 * back when undrained.
 */
static void drained(uint64_t reserved)
{
	uint64_t id;

	begin(2, reserved);
	CHECK(world_units(&w, 0) > 0 && world_sum(&w) == 100 - 2 * reserved);
	id = id_of(0);
	CHECK(weir_fleet_drain(w.store, "limit", id, true) == 0);
	CHECK(weir_fleet_drain(w.store, "limit", id, true) == 0);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 0 && info_of(0).state == WEIR_SHARE_DRAINED);
	CHECK(world_units(&w, 1) == 100 - 3 * reserved && look(0).drained == 1);
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 0) == 0);
	CHECK(weir_fleet_drain(w.store, "limit", id, false) == 0);
	CHECK(weir_fleet_drain(w.store, "limit", id, false) == 0);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 50 - reserved && world_units(&w, 1) == 50 - reserved);
	CHECK(info_of(0).state == WEIR_SHARE_LEASED && look(0).drained == 0);
	end();
}

/*
 * Its session ends, and it comes back with another number: it is still drained, even if it was cut
 * off before it had read of that.
 */
static void comes_back(bool informed, bool undrained)
{
	uint64_t id;

	begin(2, 5);
	id = id_of(0);
	if (!informed)
		w.actors[0].manner = UNREACHABLE;
	CHECK(weir_fleet_drain(w.store, "limit", id, true) == 0);
	world_run(&w, ROUNDS);
	w.actors[0].manner = UNREACHABLE;
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 0) == (informed ? 0 : 5) && look(1).absent == 1);
	CHECK(world_units(&w, 1) == 85);
	if (undrained)
		CHECK(weir_fleet_drain(w.store, "limit", id, false) == 0);
	w.actors[0].manner = ANSWERS;
	world_run(&w, ROUNDS);
	CHECK(id_of(0) != id && look(1).absent == 0);
	CHECK(look(0).drained == !undrained);
	CHECK(world_units(&w, 0) == (undrained ? 45 : 0));
	CHECK(weir_fleet_drain(w.store, "limit", id, false) == -ESRCH);
	CHECK(weir_fleet_drain(w.store, "limit", id_of(0), false) == 0);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 45);
	end();
}

/* A process with another label than all others. */
static void enter_labelled(unsigned member, const char *label)
{
	w.actors[member].label = label;
	world_enter(&w, member, 100);
}

/*
 * By its label, a member stays drained when its process is restarted, at once or after its lease,
 * and a process that was never there is drained too.
 */
static void drained_by_label(bool at_once)
{
	begin(1, 5);
	enter_labelled(1, "web");
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 1) == 45);
	CHECK(weir_fleet_drain_label(w.store, "limit", "web", true) == 0);
	CHECK(weir_fleet_drain_label(w.store, "limit", "web", true) == 0);
	CHECK(weir_fleet_drain_label(w.store, "limit", "later", true) == 0);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 1) == 0 && info_of(1).state == WEIR_SHARE_DRAINED);
	CHECK(world_units(&w, 0) == 85);
	world_kill(&w, 1);
	if (!at_once)
		world_run(&w, 2 * LEASE);
	CHECK(look(1).absent == (at_once ? 1 : 2));
	enter_labelled(1, "web");
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	CHECK(world_units(&w, 1) == 0 && info_of(1).state == WEIR_SHARE_DRAINED);
	enter_labelled(2, "later");
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 1) == 0 && world_units(&w, 2) == 0 && world_units(&w, 0) == 85);
	w.down = true;
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 1) == 0);
	w.down = false;
	world_run(&w, ROUNDS);
	CHECK(weir_fleet_drain(w.store, "limit", id_of(1), false) == -EBUSY);
	CHECK(weir_fleet_drain_label(w.store, "limit", "web", false) == 0);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 1) == 45 && world_units(&w, 2) == 0 && look(1).drained == 1);
	CHECK(weir_fleet_drain_label(w.store, "limit", "later", false) == 0);
	world_run(&w, 3 * ROUNDS);
	CHECK(world_units(&w, 2) >= 31 && world_units(&w, 0) >= 31 && look(1).drained == 0);
	end();
}

/* Of two members with one label, one by its number. */
static void drained_twice(void)
{
	uint64_t id;

	begin(1, 0);
	enter_labelled(1, "web");
	enter_labelled(2, "web");
	world_run(&w, ROUNDS);
	id = id_of(1);
	CHECK(weir_fleet_drain(w.store, "limit", id, true) == 0);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 1) == 0 && world_units(&w, 2) == 50);
	CHECK(weir_fleet_drain_label(w.store, "limit", "web", true) == 0);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 2) == 0 && world_units(&w, 0) == 100);
	CHECK(weir_fleet_drain(w.store, "limit", id, false) == 0);
	CHECK(weir_fleet_drain(w.store, "limit", id, false) == -EBUSY);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 1) == 0);
	CHECK(weir_fleet_drain_label(w.store, "limit", "web", false) == 0);
	CHECK(weir_fleet_drain_label(w.store, "limit", "web", false) == 0);
	CHECK(weir_fleet_drain_label(w.store, "limit", "other", false) == -ESRCH);
	CHECK(weir_fleet_drain_label(w.store, "limit", "a/b", true) == -EINVAL);
	CHECK(weir_fleet_drain_label(w.store, "limit", NULL, true) == -EINVAL);
	CHECK(weir_fleet_drain_label(w.store, "a/b", "web", true) == -EINVAL);
	CHECK(weir_fleet_drain_label(w.store, "other", "web", true) == -ENOENT);
	end();
}

/* Without a store it uses nothing, whatever loss would allow. */
static void drained_and_lost(enum weir_loss loss)
{
	world_begin(&w, 100, LEASE, REFRESH);
	w.limit.loss = loss;
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	CHECK(weir_fleet_drain(w.store, "limit", id_of(0), true) == 0);
	world_run(&w, ROUNDS);
	w.down = true;
	world_run(&w, 2 * LEASE);
	CHECK(world_units(&w, 0) == 0);
	w.down = false;
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 0);
	end();
}

static struct weir_fleet_limit limit_now(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == 0);
	return limit;
}

static void refused(const struct weir_fleet_limit *limit)
{
	char why[256] = "";

	CHECK(weir_fleet_configure(w.store, "limit", limit, why, sizeof(why)) == -EINVAL);
	CHECK(why[0] >= 'A' && why[0] <= 'z' && why[strlen(why) - 1] == '.');
	CHECK(weir_fleet_limit_check("limit", limit, NULL, 0) == -EINVAL);
}

/* A limit is created before its members, which then use it; then it is changed for all. */
static void configured(void)
{
	struct weir_fleet_limit limit, old;
	char why[256];

	begin(0, 0);
	weir_fleet_limit_init(&limit);
	limit.capacity = 60;
	CHECK(weir_fleet_limit_check("limit", &limit, why, sizeof(why)) == 0 && why[0] == '\0');
	CHECK(weir_fleet_configure(w.store, "limit", &limit, why, sizeof(why)) == 0);
	CHECK(limit_now().capacity == 60 && limit_now().lease == 15 * WEIR_S);
	CHECK(weir_fleet_configure(w.store, "limit", &limit, why, sizeof(why)) == -EAGAIN);
	for (unsigned i = 0; i < 3; i++)
		world_enter(&w, i, 100);
	world_run(&w, ROUNDS);
	CHECK(world_sum(&w) == 60);
	limit = old = limit_now();
	limit.reserved = 10;
	limit.members_max = 4;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, why, sizeof(why)) == 0);
	CHECK(weir_fleet_configure(w.store, "limit", &old, why, sizeof(why)) == -EAGAIN);
	world_run(&w, ROUNDS);
	CHECK(world_sum(&w) == 50 && limit_now().granted == 20 && limit_now().wanted == 300);
	limit = limit_now();
	limit.allotment = WEIR_ALLOT_STATIC;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	CHECK(limit_now().allotment == WEIR_ALLOT_STATIC && limit_now().lease == 15 * WEIR_S);
	w.over = 0; /* with WEIR_ALLOT_STATIC each has all of it */
	end();
}

static void bad_input(void)
{
	struct weir_fleet_limit limit;

	begin(1, 0);
	limit = limit_now();
	limit.reserved = 5;
	refused(&limit);
	limit.members_max = 21;
	refused(&limit);
	limit = limit_now();
	limit.capacity = WEIR_SHARE_UNITS_MAX + 1;
	refused(&limit);
	limit = limit_now();
	limit.allotment = (enum weir_allotment)4;
	refused(&limit);
	limit = limit_now();
	limit.lease = 7200 * WEIR_S;
	refused(&limit);
	limit = limit_now();
	limit.size--;
	refused(&limit);
	limit = limit_now();
	CHECK(weir_fleet_configure(w.store, "a/b", &limit, NULL, 0) == -EINVAL);
	CHECK(weir_fleet_limit_check("a/b", &limit, NULL, 0) == -EINVAL);
	CHECK(weir_fleet_drain(w.store, "a/b", 1, true) == -EINVAL);
	CHECK(weir_fleet_drain(w.store, "other", 1, true) == -ENOENT);
	CHECK(weir_fleet_drain(w.store, "limit", 1, true) == -ESRCH);
	CHECK(weir_fleet_drain(w.store, "limit", 1, false) == -ESRCH);
	CHECK(weir_fleet_remove(w.store, "") == -EINVAL);
	CHECK(weir_fleet_remove(w.store, "other") == -ENOENT);
	end();
}

static void write_row(const char *key, const char *value)
{
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, value, strlen(value)};

	CHECK(weir_store_commit(w.store, 0, NULL, 0, &write, 1, NULL) == 0);
}

/* Nothing is changed by what is not a list of labels, and members stay as they are. */
static void damaged_labels(void)
{
	static const char *const bad[] = {"x", "weir-drained 2\na\n", "weir-drained 1\na",
					  "weir-drained 1\na\n\nb\n", "weir-drained 1\na/b\n"};

	begin(1, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_row("limit/drained", bad[i]);
		CHECK(weir_fleet_drain_label(w.store, "limit", "web", true) == -EPROTO);
		CHECK(weir_fleet_refresh(w.actors[0].fleet) == -EPROTO);
		CHECK(world_units(&w, 0) == 100);
	}
	write_row("limit/drained", "weir-drained 1\nmember\n");
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 0);
	end();
}

static bool count_row(void *arg, const struct weir_store_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return true;
}

static unsigned rows_left(void)
{
	static const char *const all[] = {""};
	unsigned count = 0;

	CHECK(weir_store_read(w.store, all, 1, count_row, &count, NULL) == 0);
	return count;
}

/* All rows are removed, including drains of absent members, and what a region has published. */
static void removed(void)
{
	begin(1, 0);
	CHECK(weir_fleet_drain(w.store, "limit", id_of(0), true) == 0);
	CHECK(weir_fleet_drain_label(w.store, "limit", "web", true) == 0);
	CHECK(weir_fleet_remove(w.store, "limit") == -EBUSY);
	world_kill(&w, 0);
	world_run(&w, 2 * LEASE);
	CHECK(look(1).absent == 2);
	CHECK(limit_now().capacity == 100 && limit_now().carried == 0);
	write_row("limit/up", "weir-up 1 30 1 0 1 1\n");
	CHECK(limit_now().capacity == 130 && limit_now().carried == 30);
	CHECK(weir_fleet_remove(w.store, "limit") == 0);
	CHECK(rows_left() == 0);
	CHECK(weir_fleet_remove(w.store, "limit") == -ENOENT);
	world_enter(&w, 0, 100);
	world_run(&w, ROUNDS);
	CHECK(world_units(&w, 0) == 100 && look(1).absent == 0);
	end();
}

/* A member has joined, and holds units, just before the limit is removed. */
static void removed_too_late(void)
{
	static const char member[] = "weir-member 1 10 1 0 label\n", ledger[] = "weir-ledger 1 7\n";
	const struct weir_store_write join[] = {
		{"limit/m/0000000000000001", WEIR_STORE_WRITE_PUT, member, sizeof(member) - 1},
		{"limit/led", WEIR_STORE_WRITE_PUT, ledger, sizeof(ledger) - 1},
	};
	struct weir_store *store = &w.actors[0].store;

	begin(1, 0);
	world_kill(&w, 0);
	world_run(&w, 2 * LEASE);
	w.actors[0].manner = DELAYS;
	CHECK(weir_store_commit(store, 0, NULL, 0, join, 2, NULL) == -EIO);
	w.actors[0].manner = OVERTAKEN;
	CHECK(weir_fleet_remove(store, "limit") == -EBUSY && rows_left() == 3);
	world_end(&w);
}

/* The request to undrain arrives after the member has been drained once more. */
static void undrained_too_late(void)
{
	uint64_t id;

	begin(2, 0);
	id = id_of(0);
	CHECK(weir_fleet_drain(w.store, "limit", id, true) == 0);
	w.actors[1].manner = DELAYS;
	CHECK(weir_fleet_drain(&w.actors[1].store, "limit", id, false) == -EIO);
	w.actors[1].manner = ANSWERS;
	CHECK(weir_fleet_drain(&w.actors[1].store, "limit", id, false) == 0);
	CHECK(weir_fleet_drain(&w.actors[1].store, "limit", id, true) == 0);
	CHECK(world_deliver(&w) == -EAGAIN && look(0).drained == 1);
	end();
}

struct listed {
	char names[200];
	unsigned most;
};

static bool list(void *arg, const struct weir_fleet_entry *e)
{
	struct listed *l = arg;
	char text[80];

	(void)snprintf(text, sizeof(text), "%s:%d:%u:%u%u%u ", e->name,
		       e->limit != NULL ? (int)e->limit->members : -1, e->other_version, e->workers,
		       e->owned, e->checkpoints);
	strcat(l->names, text);
	return --l->most > 0;
}

static struct listed list_all(unsigned most)
{
	struct listed l = {.most = most};

	CHECK(weir_fleet_list(w.store, list, &l) == 0);
	return l;
}

/* Limits, partitions, both with one name, and foreign data. */
static void listed(void)
{
	begin(0, 0);
	CHECK(strcmp(list_all(9).names, "") == 0);
	world_end(&w);
	begin(2, 0);
	write_row("work/worker/1", "weir-worker 1 worker\n");
	write_row("work/partition/0", "0000000000000001\n");
	write_row("work.checkpoints/0", "weir-checkpoint 1 7\nx");
	write_row("work.checkpoints/1", "weir-checkpoint 1 8\n");
	write_row("limit/partition/0", "0000000000000001\n");
	write_row("a.checkpoints/cfg", "weir-limit 1 5 0 0 0 1000\n");
	write_row("later/cfg", "weir-limit 2\n");
	write_row("some/thing", "else");
	CHECK(strcmp(list_all(9).names, "a.checkpoints:0:0:000 later:-1:1:000 limit:2:0:010 "
					"work:-1:0:112 ") == 0);
	CHECK(strcmp(list_all(1).names, "a.checkpoints:0:0:000 ") == 0);
	end();
}

static bool partition(void *arg, const struct weir_work_partition *p)
{
	struct listed *l = arg;
	char text[80];

	(void)snprintf(text, sizeof(text), "%u:%d:%d:%d:%u:%llu:%zu ", p->partition, (int)p->owner,
		       p->fence != 0, (int)p->requester, p->checkpoints,
		       (unsigned long long)p->sequence, p->size);
	strcat(l->names, text);
	return --l->most > 0;
}

static void work_seen(void)
{
	struct listed l = {.most = 9};
	uint32_t workers = 0;

	begin(0, 0);
	CHECK(weir_work_inspect(w.store, "a/b", NULL, NULL, NULL) == -EINVAL);
	CHECK(weir_work_inspect(w.store, "work", NULL, NULL, NULL) == -ENOENT);
	write_row("work/worker/1", "weir-worker 1 worker\n");
	write_row("work/worker/2", "weir-worker 1 worker\n");
	write_row("work/partition/0", "0000000000000001\n");
	write_row("work/request/0", "0000000000000002\n");
	write_row("work.checkpoints/0", "weir-checkpoint 1 7\nabc");
	write_row("work.checkpoints/12", "weir-checkpoint 1 8\n");
	CHECK(weir_work_inspect(w.store, "work", &workers, partition, &l) == 0 && workers == 2);
	CHECK(strcmp(l.names, "0:1:1:2:1:7:3 12:0:0:0:1:8:0 ") == 0);
	l = (struct listed){.most = 1};
	CHECK(weir_work_inspect(w.store, "work", NULL, partition, &l) == 0 && l.names[14] == '\0');
	write_row("work/partition/4000", "0000000000000001\n");
	CHECK(weir_work_inspect(w.store, "work", NULL, NULL, NULL) == -EPROTO);
	write_row("odd/partition/1", "x\n");
	CHECK(weir_work_inspect(w.store, "odd", NULL, NULL, NULL) == -EPROTO);
	end();
}

/* A fleet's metrics as text, with a label of the caller's. */
static const char *metrics_of(unsigned member)
{
	const struct weir_label zone = {.name = "zone", .value = "a"};
	static char text[1 << 15];
	struct weir_metrics *metrics;

	CHECK(weir_metrics_create(&metrics) == 0);
	CHECK(weir_fleet_metrics_add(metrics, w.actors[member].fleet, &zone, 1) == 0);
	CHECK(weir_fleet_metrics_add(metrics, w.actors[member].fleet, &zone, 1) == -EEXIST);
	CHECK(weir_metrics_text(metrics, WEIR_OPENMETRICS, text, sizeof(text)) < sizeof(text));
	weir_metrics_destroy(metrics);
	return text;
}

static bool has_line(const char *text, const char *line)
{
	char whole[200];

	(void)snprintf(whole, sizeof(whole), "\n%s\n", line);
	return strstr(text, whole) != NULL;
}

#define STORE_UP(n)    "weir_fleet_store_up{zone=\"a\"} " n
#define SHARE(m, n)    "weir_share_" m "{limit=\"limit\",zone=\"a\"} " n
#define STATE(s, n)    "weir_share_state{limit=\"limit\",state=\"" s "\",zone=\"a\"} " n
#define IS_FLEET(m, n) has_line(text, "weir_fleet_" m "{zone=\"a\"} " n)

/* They follow the share: leased, without a store, and after its lease. */
static void measured(void)
{
	const struct weir_label reserved = {.name = "limit", .value = "a"};
	struct weir_metrics *metrics;
	const char *text;

	begin(2, 5);
	world_want(&w, 0, 30);
	world_run(&w, ROUNDS);
	text = metrics_of(0);
	CHECK(has_line(text, SHARE("units", "30")) && has_line(text, SHARE("wants", "30")));
	CHECK(has_line(text, SHARE("capacity", "100")) && has_line(text, SHARE("members", "2")));
	CHECK(has_line(text, STATE("leased", "1")) && has_line(text, STATE("lost", "0")));
	CHECK(has_line(text, STORE_UP("1")) && IS_FLEET("sessions_total", "1"));
	CHECK(IS_FLEET("store_writable", "1") && IS_FLEET("refresh_failures_total", "0"));
	CHECK(!has_line(text, SHARE("lease_seconds", "0")));
	w.down = true;
	world_run(&w, ROUNDS);
	text = metrics_of(0);
	CHECK(has_line(text, STATE("holding", "1")) && has_line(text, STORE_UP("0")));
	CHECK(!IS_FLEET("refresh_failures_total", "0"));
	world_run(&w, 2 * LEASE);
	text = metrics_of(0);
	CHECK(has_line(text, STATE("lost", "1")) && has_line(text, SHARE("units", "5")));
	CHECK(has_line(text, SHARE("lease_seconds", "0")));
	w.down = false;
	world_run(&w, ROUNDS);
	text = metrics_of(0);
	CHECK(has_line(text, STATE("leased", "1")) && IS_FLEET("sessions_total", "2"));
	CHECK(weir_metrics_create(&metrics) == 0);
	CHECK(weir_fleet_metrics_add(metrics, w.actors[0].fleet, &reserved, 1) == -EINVAL);
	weir_metrics_destroy(metrics);
	CHECK(weir_share_state_name((enum weir_share_state)99) == NULL);
	end();
}

/* A member that is configured with another limit than the store has says so, and is seen. */
static char differing[600];

static bool see_mismatch(void *arg, const struct weir_fleet_member *m)
{
	(void)arg;
	strcat(differing, m->mismatch);
	return true;
}

static const char *mismatches(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	differing[0] = '\0';
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, see_mismatch, NULL) == 0);
	return differing;
}

#define WANTED_123 "Configured with capacity 123, where the limit has capacity 400."

static void configured_differently(void)
{
	struct weir_fleet_limit limit;

	world_begin(&w, 400, LEASE, REFRESH);
	world_enter(&w, 0, 10);
	world_run(&w, ROUNDS);
	CHECK(info_of(0).mismatch[0] == '\0' && mismatches()[0] == '\0');
	w.limit.capacity = 123;
	world_enter(&w, 1, 10);
	CHECK(info_of(1).mismatch[0] == '\0');
	world_run(&w, ROUNDS);
	CHECK(strcmp(info_of(1).mismatch, WANTED_123) == 0 && info_of(1).capacity == 400);
	CHECK(strcmp(info_of(1).reason, WANTED_123) == 0);
	CHECK(info_of(1).state == WEIR_SHARE_LEASED && strcmp(mismatches(), WANTED_123) == 0);
	CHECK(has_line(metrics_of(1), SHARE("mismatch", "1")));
	CHECK(has_line(metrics_of(0), SHARE("mismatch", "0")) && info_of(0).reason[0] == '\0');
	w.limit.capacity = 0;
	world_enter(&w, 2, 10);
	world_run(&w, ROUNDS);
	CHECK(info_of(2).mismatch[0] == '\0' && strcmp(mismatches(), WANTED_123) == 0);
	CHECK(weir_fleet_change(w.store, "limit", 123) == 0);
	world_run(&w, ROUNDS);
	CHECK(info_of(1).mismatch[0] == '\0' && info_of(1).reason[0] == '\0');
	CHECK(strstr(info_of(0).mismatch, "capacity 400, where the limit has capacity 123.") !=
	      NULL);
	limit = limit_now();
	limit.reserved = 10;
	limit.members_max = 5;
	limit.allotment = WEIR_ALLOT_NONE;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	world_run(&w, ROUNDS);
	CHECK(strcmp(info_of(1).mismatch,
		     "Configured with allotment fair, reserved 0, members 0, where the limit has "
		     "allotment none, reserved 10, members 5.") == 0);
	world_end(&w);
}

/* What is said of a limit, and then of its members. */
static char said[1200];

static bool hear(void *arg, const struct weir_fleet_member *m)
{
	(void)arg;
	strcat(said, "|");
	strcat(said, m->reason);
	return true;
}

/* Through the connection of a member, which may be in trouble. */
static const char *listen_to_all(void)
{
	struct weir_store *store = w.actors[0].fleet != NULL ? &w.actors[0].store : w.store;
	struct weir_fleet_limit limit;
	char members[1000];

	weir_fleet_limit_init(&limit);
	said[0] = '\0';
	CHECK(weir_fleet_inspect(store, "limit", &limit, hear, NULL) == 0);
	memcpy(members, said, sizeof(members));
	(void)snprintf(said, sizeof(said), "%s%s", limit.reason, members);
	return said;
}

static bool says(const char *expected)
{
	const bool good = strcmp(listen_to_all(), expected) == 0;

	if (!good)
		fprintf(stderr, "said \"%s\"\n", said);
	return good;
}

static void nothing_wanted(void)
{
	struct weir_fleet_limit limit;

	begin(0, 0);
	weir_fleet_limit_init(&limit);
	limit.capacity = 100;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	CHECK(says("It has no members."));
	world_enter(&w, 0, 0);
	world_run(&w, ROUNDS);
	CHECK(says("No member wants anything.|It wants nothing."));
	world_want(&w, 0, 10);
	world_run(&w, ROUNDS);
	CHECK(says("|"));
	CHECK(weir_fleet_drain(w.store, "limit", id_of(0), true) == 0);
	world_run(&w, ROUNDS);
	CHECK(says("All members are drained.|An operator has drained it."));
	CHECK(weir_fleet_drain(w.store, "limit", id_of(0), false) == 0);
	CHECK(weir_fleet_change(w.store, "limit", 0) == 0);
	world_run(&w, ROUNDS);
	CHECK(says("The capacity is 0.|The capacity is 0."));
	end();
}

static void all_reserved(void)
{
	begin(1, 5);
	world_want(&w, 0, 3);
	world_run(&w, ROUNDS);
	CHECK(says("No member wants more than is reserved for it.|"
		   "It wants no more than is reserved for it."));
	CHECK(weir_fleet_change(w.store, "limit", 20) == 0);
	world_want(&w, 0, 10);
	world_run(&w, ROUNDS);
	CHECK(says("All of the capacity is reserved.|All of the capacity is reserved."));
	CHECK(weir_fleet_change(w.store, "limit", 21) == 0);
	world_run(&w, ROUNDS);
	CHECK(says("|"));
	weir_share_throttled(w.actors[0].share);
	world_run(&w, REFRESH * 3 / 2);
	CHECK(says("The backend throttles, and what is left is reserved.|"
		   "The backend throttles, and what is left is reserved."));
	end();
}

/* All but one of the members say the same; which one comes first is not known. */
static bool one_of(unsigned count, const char *reason)
{
	unsigned seen = 0;

	CHECK(listen_to_all()[0] == '|');
	for (const char *at = said; (at = strstr(at, reason)) != NULL; at++)
		seen++;
	return seen == count;
}

static void others_hold_all(void)
{
	begin(1, 0);
	world_enter(&w, 1, 100);
	CHECK(weir_fleet_refresh(w.actors[1].fleet) == 0);
	CHECK(one_of(1, "Other members hold all 100 units until they refresh."));
	world_run(&w, ROUNDS);
	CHECK(says("||"));
	CHECK(weir_fleet_change(w.store, "limit", 1) == 0);
	world_run(&w, ROUNDS);
	CHECK(one_of(1, "2 members want some of it, and there are fewer units, 1."));
	end();
	world_begin(&w, 100, LEASE, REFRESH);
	w.limit.priority = 1;
	world_enter(&w, 0, 100);
	w.limit.priority = 0;
	world_enter(&w, 1, 100);
	world_run(&w, ROUNDS);
	CHECK(one_of(1, "Members of higher priority hold all 100 units."));
	end();
}

/* Of members that were written by hand, and have taken nothing. */
static void not_taken(void)
{
	begin(0, 0);
	write_row("limit/cfg", "weir-limit 1 100 0 0 0 1000\n");
	write_row("limit/m/1", "weir-member 1 10 1 0 a\n");
	CHECK(says("No member has taken its part yet: each does at its next refresh, unless the "
		   "store refuses writes.|100 units are free: it takes its part at its next "
		   "refresh, unless the store refuses writes."));
	write_row("limit/cfg", "weir-limit 1 100 2 0 0 1000\n");
	CHECK(strstr(listen_to_all(), "|It takes its part at its next refresh") != NULL);
	world_end(&w);
}

/* An allotment that does not exist, in each record that has one. */
static void unknown_allotment(void)
{
	struct weir_fleet_limit limit;

	weir_fleet_limit_init(&limit);
	begin(0, 0);
	write_row("limit/cfg", "weir-limit 1 100 4 0 0 1000\n");
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == -EPROTO);
	write_row("limit/cfg", "weir-limit 1 100 3 0 0 1000\n");
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == 0);
	write_row("limit/m/1", "weir-member 1 10 1 0 a 100 4 0 0 1000\n");
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == -EPROTO);
	write_row("limit/m/1", "weir-member 1 10 1 0 a 100 3 0 0 1000\n");
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == 0);
	world_end(&w);
}

/* The time is that of the limit's lease, or of the learning that its members have, if longer. */
static void learning(void)
{
	struct weir_fleet_limit limit;

	begin(1, 0);
	world_forget(&w, w.now);
	world_enter(&w, 1, 100);
	world_run(&w, 8 * WEIR_S);
	CHECK(one_of(1, "The store may have forgotten leases: they end first, within 12.0 s."));
	weir_fleet_limit_init(&limit);
	CHECK(weir_fleet_inspect(&w.actors[0].store, "limit", &limit, NULL, NULL) == 0);
	CHECK(limit.learning == 12 * WEIR_S);
	world_kill(&w, 0);
	world_run(&w, LEASE);
	CHECK(limit_now().learning == 0);
	end();
}

static bool put_row(void *arg, const struct weir_store_row *row)
{
	(void)snprintf(arg, 100, "%.*s", (int)row->size, (const char *)row->value);
	return false;
}

/*
 * Programs of either age read each other's limits. For older ones, the row of the limit is as it
 * always was; and what they write is without the time to learn, rather than with one that was meant
 * for another lease.
 */
static void learning_rows(void)
{
	const char *const prefix = "limit/cfg";
	struct weir_fleet_limit limit;
	char text[100] = "";

	begin(0, 0);
	weir_fleet_limit_init(&limit);
	limit.capacity = 100;
	limit.lease = 2 * WEIR_S;
	limit.learning_period = 3 * WEIR_S;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	CHECK(weir_store_read(w.store, &prefix, 1, put_row, text, NULL) == 0);
	CHECK(strcmp(text, "weir-limit 1 100 0 0 0 2000\n") == 0);
	CHECK(weir_fleet_change(w.store, "limit", 90) == 0);
	CHECK(limit_now().learning_period == 3 * WEIR_S && limit_now().capacity == 90);
	write_row("limit/cfg", "weir-limit 1 80 0 0 0 60000\n");
	CHECK(limit_now().learning_period == 0 && limit_now().lease == 60 * WEIR_S);
	limit = limit_now();
	limit.learning_period = 60 * WEIR_S;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, NULL, 0) == 0);
	CHECK(limit_now().learning_period == 60 * WEIR_S);
	CHECK(weir_fleet_remove(w.store, "limit") == 0);
	write_row("limit/cfg", "weir-limit 1 80 0 0 0 60000\n");
	CHECK(limit_now().learning_period == 0);
	write_row("limit/learning", "weir-learning 1 0\n");
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == -EPROTO);
	write_row("limit/learning", "weir-learning 1 3600001\n");
	CHECK(weir_fleet_inspect(w.store, "limit", &limit, NULL, NULL) == -EPROTO);
	write_row("limit/learning", "weir-learning 1 3600000\n");
	CHECK(limit_now().learning_period == 0);
	world_end(&w);
}

/* A time to learn that a lease could outlast is refused. */
static void learning_refused(void)
{
	struct weir_fleet_limit limit;
	char why[100];

	begin(0, 0);
	weir_fleet_limit_init(&limit);
	limit.capacity = 100;
	limit.learning_period = 14 * WEIR_S;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, why, sizeof(why)) == -EINVAL);
	CHECK(strcmp(why, "learning is shorter than lease: leases could outlast it.") == 0);
	limit.learning_period = 3601 * WEIR_S;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, why, sizeof(why)) == -EINVAL);
	CHECK(strcmp(why, "learning is not from 20 ms to an hour.") == 0);
	limit.lease = 20 * WEIR_MS;
	limit.learning_period = 20 * WEIR_MS;
	CHECK(weir_fleet_configure(w.store, "limit", &limit, why, sizeof(why)) == 0);
	world_end(&w);
}

int main(void)
{
	measured();
	configured_differently();
	nothing_wanted();
	all_reserved();
	others_hold_all();
	not_taken();
	unknown_allotment();
	learning();
	learning_rows();
	learning_refused();
	drained(0);
	drained(5);
	for (unsigned i = 0; i < 4; i++)
		comes_back(i % 2 == 0, i / 2 == 0);
	drained_by_label(true);
	drained_by_label(false);
	drained_twice();
	damaged_labels();
	drained_and_lost(WEIR_LOSS_EVEN);
	drained_and_lost(WEIR_LOSS_HOLD);
	drained_and_lost(WEIR_LOSS_OPEN);
	configured();
	bad_input();
	removed();
	removed_too_late();
	undrained_too_late();
	listed();
	work_seen();
	printf("operations take effect\n");
	return 0;
}
