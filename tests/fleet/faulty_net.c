/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "faulty_net.h"

#define TIMEOUT (500 * WEIR_MS)
#define HOUR    (3600 * WEIR_S)

static weir_time store_time(const struct weir_clock *clock)
{
	return ((const struct net *)clock)->now;
}

static weir_time node_time(const struct weir_clock *clock)
{
	const struct node *n = (const struct node *)((const char *)clock -
						     offsetof(struct node, clock));
	const weir_time now = n->net->now;

	return n->offset + now + (weir_time)((int64_t)(now / 1000) * n->millionths / 1000);
}

/* Convert a time of the node's clock, rounded up. */
static weir_time net_time(const struct node *n, weir_time there)
{
	const weir_time now = node_time(&n->clock);

	if (there <= now)
		return n->net->now + 1;
	if (there - now > HOUR)
		return n->net->now + HOUR;
	return n->net->now +
	       (weir_time)((double)(there - now) * 1e6 / (1e6 + (double)n->millionths)) + 1;
}

static void note(struct net *net, const struct node *by, uint64_t fence)
{
	if (net->user->changed != NULL)
		net->user->changed(net, by, fence);
}

/* Wait; a process that is stopped meanwhile waits until it continues. */
static void wait_for(struct node *n, weir_dur time)
{
	net_pass(n->net, n->net->now + time);
	while (n->stopped != 0 && !n->dead)
		net_pass(n->net, n->stopped + TICK);
}

/* The time of a request or an answer on the way. */
static void travel(struct node *n)
{
	wait_for(n, below(n->net, below(n->net, 8) == 0 ? TIMEOUT / 2 : 20 * WEIR_MS));
}

enum fate { FINE, LOST, UNANSWERED, LATE, TWICE };

static enum fate fate_of(struct node *n)
{
	struct net *net = n->net;
	const uint64_t chance = below(net, 1000);

	if (n->dead || n->cut > net->now || net->down > net->now)
		return LOST;
	if (chance >= net->losses)
		return FINE;
	return (enum fate)(LOST + chance % 4);
}

/* Answer a request, or let it time out. */
static int answer(struct node *n, enum fate fate, int r)
{
	if (n->dead)
		return -EIO;
	if (fate == FINE || fate == TWICE) {
		travel(n);
		note(n->net, NULL, 0);
		return n->dead ? -EIO : r;
	}
	n->net->unanswered++;
	wait_for(n, TIMEOUT);
	note(n->net, NULL, 0);
	return -EIO;
}

static struct node *node_of(struct weir_store *store)
{
	return (struct node *)store;
}

static int request_begin(struct weir_store *self, weir_dur ttl, uint64_t *session,
			 weir_dur *granted)
{
	struct node *n = node_of(self);
	const enum fate fate = fate_of(n);
	int r = -EIO;

	if (fate != LOST) {
		travel(n);
		r = weir_store_begin(n->net->store, ttl, session, granted);
		*session += n->net->base;
	}
	return answer(n, fate, r);
}

static bool is_of_this_store(const struct net *net, uint64_t number)
{
	return number > net->base && number - net->base < UINT64_C(1) << 40;
}

static int request_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct node *n = node_of(self);
	const enum fate fate = fate_of(n);
	struct net *net = n->net;
	int r = -EIO;

	if (fate != LOST) {
		travel(n);
		r = is_of_this_store(net, session)
			    ? weir_store_keep(net->store, session - net->base, granted)
			    : -ESTALE;
	}
	return answer(n, fate, r);
}

static int request_end(struct weir_store *self, uint64_t session)
{
	struct node *n = node_of(self);
	const enum fate fate = fate_of(n);
	struct net *net = n->net;
	int r = -EIO;

	if (fate != LOST)
		r = is_of_this_store(net, session) ? weir_store_end(net->store, session - net->base)
						   : 0;
	return answer(n, fate, r);
}

/* Commit in the current store, which knows nothing of an earlier one. */
static int commit_here(struct net *net, uint64_t session, const struct weir_store_check *checks,
		       size_t check_count, const struct weir_store_write *writes,
		       size_t write_count, uint64_t *version)
{
	struct weir_store_check here[WEIR_STORE_ROWS_MAX];
	int r;

	if (session != 0 && !is_of_this_store(net, session))
		return -ESTALE;
	for (size_t i = 0; i < check_count; i++) {
		here[i] = checks[i];
		if (here[i].kind == WEIR_STORE_CHECK_ABSENT)
			continue;
		if (!is_of_this_store(net, here[i].version))
			return -EAGAIN;
		here[i].version -= net->base;
	}
	r = weir_store_commit(net->store, session != 0 ? session - net->base : 0, here, check_count,
			      writes, write_count, version);
	if (version != NULL)
		*version += net->base;
	net->commits += r == 0;
	return r;
}

static int commit_from(struct net *net, const struct node *from, uint64_t session,
		       const struct weir_store_check *checks, size_t check_count,
		       const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	int r;

	note(net, NULL, 0);
	r = commit_here(net, session, checks, check_count, writes, write_count, version);
	note(net, from, check_count > 0 ? checks[0].version : 0);
	return r;
}

/* Where too many are under way, it is lost. */
static void send_later(const struct node *n, struct late_commit *commit)
{
	struct net *net = n->net;

	for (unsigned i = 0; i < LATE_COMMITS_MAX; i++) {
		if (net->late[i].commit != NULL)
			continue;
		net->late[i].commit = commit;
		net->late[i].from = n;
		net->late[i].due = net->now + 1 +
				   below(net, below(net, 2) == 0 ? 2 * TIMEOUT : 2 * LEASE);
		net->late_count++;
		return;
	}
	late_commit_free(commit);
}

static int request_commit(struct weir_store *self, uint64_t session,
			  const struct weir_store_check *checks, size_t check_count,
			  const struct weir_store_write *writes, size_t write_count,
			  uint64_t *version)
{
	struct node *n = node_of(self);
	const enum fate fate = fate_of(n);
	int r = -EIO;

	note(n->net, NULL, 0);
	if (fate != LOST && fate != LATE) {
		travel(n);
		r = commit_from(n->net, n, session, checks, check_count, writes, write_count,
				version);
	}
	/* The answer is that of the first time: a store promises that what it refuses has not happened. */
	if (fate == LATE || fate == TWICE)
		send_later(n, late_commit_new(session, checks, check_count, writes, write_count));
	return answer(n, fate, r);
}

/* Rows of a reading, with base added to their versions. */
struct reading {
	weir_store_row_fn *row;
	void *arg;
	uint64_t base;
};

static bool read_row(void *arg, const struct weir_store_row *row)
{
	const struct reading *r = arg;
	struct weir_store_row here = *row;

	here.version += r->base;
	here.made += r->base;
	return r->row(r->arg, &here);
}

static int request_read(struct weir_store *self, const char *const *prefixes, size_t count,
			weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct node *n = node_of(self);
	struct net *net = n->net;
	const enum fate fate = fate_of(n);
	int r = -EIO;

	if (fate == FINE || fate == TWICE) {
		struct reading reading = {row, arg, 0};

		travel(n);
		reading.base = net->base;
		r = weir_store_read(net->store, prefixes, count, read_row, &reading, view);
		view->version += net->base;
		view->proven = net->proven == 0 ? WEIR_FOREVER : net->now - net->proven;
	}
	return answer(n, fate, r);
}

static void request_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(node_of(self)->net->store, caps);
}

static void request_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "A simulated fault.");
}

static const struct weir_store_ops requests = {
	.size = sizeof(requests),
	.name = "faults",
	.begin = request_begin,
	.keep = request_keep,
	.end = request_end,
	.commit = request_commit,
	.read = request_read,
	.caps = request_caps,
	.error = request_error,
};

static void open_store(struct net *net)
{
	struct weir_store_config config;

	weir_store_config_init(&config);
	config.clock = &net->clock;
	config.shm_bytes = 1 << 18;
	CHECK(weir_store_open(&config, &net->store, NULL, 0) == 0);
}

void net_begin(struct net *net, const struct net_user *user, uint64_t seed)
{
	*net = (struct net){
		.clock = {store_time},
		.user = user,
		.now = 1000 * WEIR_S,
		.tick = 1000 * WEIR_S,
		.chance = 88172645463325252u + seed * 7919,
	};
	open_store(net);
}

void net_end(struct net *net)
{
	net_clear(net);
	weir_store_close(net->store);
}

void net_forget(struct net *net)
{
	weir_store_close(net->store);
	net->base += UINT64_C(1) << 40;
	net->proven = net->now;
	open_store(net);
}

void net_look(struct net *net, weir_store_row_fn *row, void *arg)
{
	static const char *const all = "";
	struct reading reading = {row, arg, net->base};

	CHECK(weir_store_read(net->store, &all, 1, read_row, &reading, NULL) == 0);
}

void net_clear(struct net *net)
{
	for (unsigned i = 0; i < LATE_COMMITS_MAX; i++) {
		late_commit_free(net->late[i].commit);
		net->late[i].commit = NULL;
	}
}

/* The late commit that arrives next; LATE_COMMITS_MAX: none. */
static unsigned next_late(const struct net *net)
{
	unsigned first = LATE_COMMITS_MAX;

	for (unsigned i = 0; i < LATE_COMMITS_MAX; i++)
		if (net->late[i].commit != NULL &&
		    (first == LATE_COMMITS_MAX || net->late[i].due < net->late[first].due))
			first = i;
	return first;
}

static void arrive(struct net *net, unsigned i)
{
	struct late_commit *c = net->late[i].commit;

	net->late[i].commit = NULL;
	if (net->down <= net->now)
		(void)commit_from(net, net->late[i].from, c->session, c->checks, c->check_count,
				  c->writes, c->write_count, NULL);
	late_commit_free(c);
}

static struct node *next_node(const struct net *net)
{
	struct node *first = NULL;

	for (unsigned i = 0; i < net->node_count; i++) {
		struct node *n = net->nodes[i];

		if (node_runs(n) && !n->busy && (first == NULL || n->next < first->next))
			first = n;
	}
	return first;
}

static void step(struct node *n)
{
	weir_time next;

	n->busy = true;
	next = n->net->user->step(n);
	n->busy = false;
	n->next = net_time(n, next);
}

void net_pass(struct net *net, weir_time until)
{
	for (;;) {
		struct node *n = next_node(net);
		const unsigned late = next_late(net);
		const weir_time due = late < LATE_COMMITS_MAX ? net->late[late].due : WEIR_FOREVER;
		weir_time next = net->tick;

		next = n != NULL && n->next < next ? n->next : next;
		next = due < next ? due : next;
		if (next > until)
			break;
		net->now = next > net->now ? next : net->now;
		if (due <= net->now) {
			arrive(net, late);
		} else if (net->tick <= net->now) {
			net->tick += TICK;
			net->user->tick(net);
		} else {
			step(n);
		}
	}
	net->now = until > net->now ? until : net->now;
}

void node_connect(struct net *net, struct node *node)
{
	*node = (struct node){.store = {&requests}, .clock = {node_time}, .net = net};
}

void node_open(struct net *net, struct node *node, int64_t millionths)
{
	struct weir_fleet_config config;
	char why[256];

	node->store.ops = &requests;
	node->clock.now = node_time;
	node->net = net;
	node->offset = below(net, HOUR);
	node->millionths = millionths;
	node->next = net->now;
	node->dead = node->leaving = false;
	node->back = node->stopped = node->cut = 0;
	weir_fleet_config_init(&config);
	config.store = &node->store;
	config.lease = LEASE;
	config.refresh = REFRESH;
	config.manual = 1;
	config.clock = &node->clock;
	config.seed = draw(&net->chance);
	config.label = "member";
	CHECK(weir_fleet_open(&config, &node->fleet, why, sizeof(why)) == 0);
}

void node_close(struct node *node)
{
	node->busy = node->leaving = true;
	weir_fleet_close(node->fleet);
	node->busy = false;
	node->fleet = NULL;
}

bool node_runs(const struct node *node)
{
	return node->fleet != NULL && !node->dead && !node->leaving && node->stopped == 0;
}

void node_resume(struct node *node)
{
	node->stopped = 0;
	node->next = node->net->now + below(node->net, TICK);
}
