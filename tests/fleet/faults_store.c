/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store of faults_simulated, as members reach it: requests are lost, late, carried out twice,
 * or carried out without an answer.
 */
#include "faults_simulated.h"

#include <errno.h>
#include <string.h>

static struct member *member_of(struct weir_store *store)
{
	return (struct member *)store;
}

weir_time store_time(const struct weir_clock *clock)
{
	return ((const struct sim *)clock)->now;
}

weir_time member_time(const struct weir_clock *clock)
{
	const struct member *m = (const struct member *)((const char *)clock -
							 offsetof(struct member, clock));
	const weir_time now = m->sim->now;

	return m->offset + now + (weir_time)((int64_t)(now / 1000) * m->millionths / 1000);
}

weir_time world_time(const struct member *m, weir_time there)
{
	const weir_time now = member_time(&m->clock);

	if (there <= now)
		return m->sim->now + 1;
	if (there - now > HOUR)
		return m->sim->now + HOUR;
	return m->sim->now +
	       (weir_time)((double)(there - now) * 1e6 / (1e6 + (double)m->millionths)) + 1;
}

/* Wait; a process that is stopped meanwhile waits until it continues. */
static void wait_for(struct member *m, weir_dur time)
{
	pass(m->sim, m->sim->now + time);
	while (m->stopped != 0 && !m->dead)
		pass(m->sim, m->stopped + TICK);
}

enum fate { FINE, LOST, UNANSWERED, LATE, TWICE };

static enum fate fate_of(struct member *m)
{
	struct sim *s = m->sim;
	const uint64_t chance = below(s, 1000);

	if (m->dead || m->cut > s->now || s->down > s->now)
		return LOST;
	if (chance >= s->losses)
		return FINE;
	return (enum fate)(LOST + chance % 4);
}

/* Answer a request, or let it time out. */
static int answer(struct member *m, enum fate fate, int r)
{
	struct sim *s = m->sim;

	if (m->dead)
		return -EIO;
	if (fate == FINE || fate == TWICE) {
		wait_for(m, below(s, 20 * WEIR_MS));
		return m->dead ? -EIO : r;
	}
	s->unanswered++;
	wait_for(m, TIMEOUT);
	return -EIO;
}

static int net_begin(struct weir_store *self, weir_dur ttl, uint64_t *session, weir_dur *granted)
{
	struct member *m = member_of(self);
	const enum fate fate = fate_of(m);
	int r = -EIO;

	if (fate != LOST) {
		wait_for(m, below(m->sim, 20 * WEIR_MS));
		r = weir_store_begin(m->sim->store, ttl, session, granted);
		*session += m->sim->base;
	}
	return answer(m, fate, r);
}

static bool is_of_this_store(const struct sim *s, uint64_t number)
{
	return number > s->base && number - s->base < UINT64_C(1) << 40;
}

static int net_keep(struct weir_store *self, uint64_t session, weir_dur *granted)
{
	struct member *m = member_of(self);
	const enum fate fate = fate_of(m);
	struct sim *s = m->sim;
	int r = -EIO;

	if (fate != LOST) {
		wait_for(m, below(s, 20 * WEIR_MS));
		r = is_of_this_store(s, session)
			    ? weir_store_keep(s->store, session - s->base, granted)
			    : -ESTALE;
	}
	return answer(m, fate, r);
}

static int net_end(struct weir_store *self, uint64_t session)
{
	struct member *m = member_of(self);
	const enum fate fate = fate_of(m);
	struct sim *s = m->sim;
	int r = -EIO;

	if (fate != LOST)
		r = is_of_this_store(s, session) ? weir_store_end(s->store, session - s->base) : 0;
	return answer(m, fate, r);
}

/* Commit in the current store, which knows nothing of an earlier one. */
static int do_commit(struct sim *s, uint64_t session, const struct weir_store_check *checks,
		     size_t check_count, const struct weir_store_write *writes, size_t write_count,
		     uint64_t *version)
{
	struct weir_store_check here[WEIR_STORE_ROWS_MAX];
	int r;

	if (session != 0 && !is_of_this_store(s, session))
		return -ESTALE;
	for (size_t i = 0; i < check_count; i++) {
		here[i] = checks[i];
		if (here[i].kind == WEIR_STORE_CHECK_ABSENT)
			continue;
		if (!is_of_this_store(s, here[i].version))
			return -EAGAIN;
		here[i].version -= s->base;
	}
	r = weir_store_commit(s->store, session != 0 ? session - s->base : 0, here, check_count,
			      writes, write_count, version);
	if (version != NULL)
		*version += s->base;
	s->commits += r == 0;
	return r;
}

static void send_later(struct sim *s, uint64_t session, const struct weir_store_check *checks,
		       size_t check_count, const struct weir_store_write *writes,
		       size_t write_count)
{
	struct parcel *p = NULL;

	CHECK(check_count <= PARCEL_ROWS && write_count <= PARCEL_ROWS);
	for (unsigned i = 0; i < PARCELS && p == NULL; i++)
		p = s->parcels[i].due == 0 ? &s->parcels[i] : NULL;
	if (p == NULL)
		return; /* no free slot: the commit is lost */
	p->due = s->now + 1 + below(s, 2 * LEASE);
	p->session = session;
	p->check_count = check_count;
	p->write_count = write_count;
	for (size_t i = 0; i < check_count; i++) {
		p->checks[i] = checks[i];
		p->checks[i].key = strcpy(p->keys[i], checks[i].key);
	}
	for (size_t i = 0; i < write_count; i++) {
		CHECK(writes[i].size <= sizeof(p->values[i]));
		p->writes[i] = writes[i];
		p->writes[i].key = strcpy(p->keys[PARCEL_ROWS + i], writes[i].key);
		if (writes[i].value != NULL)
			p->writes[i].value = memcpy(p->values[i], writes[i].value, writes[i].size);
	}
	s->late++;
}

static int net_commit(struct weir_store *self, uint64_t session,
		      const struct weir_store_check *checks, size_t check_count,
		      const struct weir_store_write *writes, size_t write_count, uint64_t *version)
{
	struct member *m = member_of(self);
	struct sim *s = m->sim;
	const enum fate fate = fate_of(m);
	int r = -EIO;

	if (fate == LATE || fate == TWICE)
		send_later(s, session, checks, check_count, writes, write_count);
	if (fate != LOST && fate != LATE) {
		wait_for(m, below(s, 20 * WEIR_MS));
		r = do_commit(s, session, checks, check_count, writes, write_count, version);
	}
	return answer(m, fate, r);
}

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

static int net_read(struct weir_store *self, const char *const *prefixes, size_t count,
		    weir_store_row_fn *row, void *arg, struct weir_store_view *view)
{
	struct member *m = member_of(self);
	struct sim *s = m->sim;
	const enum fate fate = fate_of(m);
	struct reading reading = {row, arg, s->base};
	int r = -EIO;

	if (fate == FINE || fate == TWICE) {
		wait_for(m, below(s, 20 * WEIR_MS));
		reading.base = s->base;
		r = weir_store_read(s->store, prefixes, count, read_row, &reading, view);
		view->version += s->base;
		view->proven = s->proven == 0 ? WEIR_FOREVER : s->now - s->proven;
	}
	return answer(m, fate, r);
}

static void net_caps(struct weir_store *self, struct weir_store_caps *caps)
{
	weir_store_caps_take(member_of(self)->sim->store, caps);
}

static void net_error(struct weir_store *self, char *text, size_t size)
{
	(void)self;
	(void)snprintf(text, size, "A simulated fault.");
}

const struct weir_store_ops net = {
	.size = sizeof(net),
	.name = "faults",
	.begin = net_begin,
	.keep = net_keep,
	.end = net_end,
	.commit = net_commit,
	.read = net_read,
	.caps = net_caps,
	.error = net_error,
};

void open_store(struct sim *s)
{
	struct weir_store_config config;

	weir_store_config_init(&config);
	config.clock = &s->clock;
	config.shm_bytes = 1 << 18;
	CHECK(weir_store_open(&config, &s->store, NULL, 0) == 0);
}

struct parcel *next_parcel(struct sim *s)
{
	struct parcel *first = NULL;

	for (unsigned i = 0; i < PARCELS; i++)
		if (s->parcels[i].due != 0 && (first == NULL || s->parcels[i].due < first->due))
			first = &s->parcels[i];
	return first;
}

void deliver(struct sim *s, struct parcel *p)
{
	p->due = 0;
	if (s->down <= s->now)
		(void)do_commit(s, p->session, p->checks, p->check_count, p->writes, p->write_count,
				NULL);
}
