/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity of the store in an etcd cluster: detecting that it is no longer the same one.
 *
 * A cluster that has lost its data, and is started again in the same way, has the same id as
 * before, and counts revisions from 1 again. So the store has an identity of its own, a row with a
 * random number drawn when it began. Every transaction checks that row, or that of a session, which
 * contains the same identity. So nothing is written to a store other than the one that it was meant
 * for.
 *
 * A new identity is created where there is none: the data is gone, or never was. It is also created
 * where the row is unchanged, but the cluster is another one or its revision is below what has been
 * seen: a snapshot was restored. A new identity ends all sessions, and nothing that was granted
 * before counts any longer; a member that holds something claims it again.
 *
 * A new identity is also created where a session turns out to be over before its time. A leader of
 * etcd before 3.4.31 and 3.5.13 that was stopped for longer than a lease, and has been replaced
 * meanwhile, ends all leases that it knew when it continues, although the new leader has renewed
 * them. The rows bound to these sessions are gone while their members may go on until their own
 * leases end: the store has lost what it acknowledged.
 *
 * A version is a revision plus a base, which is in the row. The base is chosen so that the first
 * version is not below the microseconds of a wall clock, and above all that its creator has seen.
 * No cluster commits a million times per second for long. So versions rise from one identity to the
 * next as long as no wall clock goes back, and for a process that has seen them, whatever clocks
 * do. They stay below 2^53 for two more centuries.
 *
 * etcd has no clock that clients can read. The processes that use the store measure its age, each
 * from when it first saw the store. They write the age down along with a commit each time it has
 * doubled, so that a later process need not begin at zero. A member grows by a commit once it has
 * waited long enough, so the age has been written down by then.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "fleet/store/etcd_rows.h"

#define TRANSACT  "/v3/kv/txn"
#define HEAD      "weir-store 1 "
#define ATTEMPTS  4
#define AGE_LEAST WEIR_S
/* Twice the longest lease; a higher age is not used. */
#define AGE_MOST (UINT64_C(172800) * WEIR_S)

/* The store as found. */
struct found {
	bool there;
	char identity[IDENTITY_SIZE];
	uint64_t base, cluster, revision;
	weir_dur age;
};

static uint64_t ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * WEIR_S + (uint64_t)t.tv_nsec;
}

weir_time etcd_now(void)
{
	return ns_of(CLOCK_BOOTTIME);
}

/* Less a hundredth, since clocks differ. */
void etcd_note_session(struct etcd *e, uint64_t session, weir_time sent, weir_dur granted)
{
	e->session = session;
	e->session_end = sent + granted - granted / 100;
}

void etcd_forget_session(struct etcd *e, uint64_t session)
{
	if (session == e->session)
		e->session = 0;
}

void etcd_note_over(struct etcd *e, uint64_t session)
{
	if (session == e->session && etcd_now() < e->session_end)
		e->doubted = e->broken = true;
	etcd_forget_session(e, session);
}

static int read_header(struct etcd *e, const json_t *answer, uint64_t *cluster, uint64_t *revision)
{
	const json_t *header = json_object_get(answer, "header");

	if (!etcd_number(header, "cluster_id", cluster) || *cluster == 0 ||
	    !etcd_number(header, "revision", revision) || *revision == 0)
		return etcd_invalid_response(e->link);
	return 0;
}

/* HEAD, the random number, and the base. */
static bool read_identity(struct found *f)
{
	const size_t head = strlen(HEAD);
	char *end;

	if (strncmp(f->identity, HEAD, head) != 0 ||
	    strspn(f->identity + head, "0123456789abcdef") != 32 || f->identity[head + 32] != ' ')
		return false;
	errno = 0;
	f->base = strtoull(f->identity + head + 33, &end, 10);
	return errno == 0 && *end == '\n' && f->base < UINT64_C(1) << 62;
}

static int read_found(struct etcd *e, const json_t *answer, struct found *f)
{
	char text[32];
	int r = read_header(e, answer, &f->cluster, &f->revision);

	if (r != 0)
		return r;
	if (!json_is_object(etcd_response(answer, 0)))
		return etcd_invalid_response(e->link);
	f->there = etcd_value(etcd_response(answer, 0), f->identity, sizeof(f->identity));
	if (f->there && !read_identity(f))
		return store_say(-EPROTO, e->why, "The store in etcd has another format version.");
	if (etcd_value(etcd_response(answer, 1), text, sizeof(text)))
		f->age = strtoull(text, NULL, 10) % (AGE_MOST / WEIR_MS + 1) * WEIR_MS;
	return 0;
}

static int find(struct etcd *e, struct found *f)
{
	json_t *rows = json_pack("[o, o]", etcd_range(e, STORE_KEY, NULL),
				 etcd_range(e, AGE_KEY, NULL));
	json_t *answer;
	int r = etcd_ask(e->link, TRANSACT, etcd_transaction(json_null(), rows, json_null()), true,
			 &answer);

	*f = (struct found){.there = false};
	if (r != 0)
		return r;
	r = read_found(e, answer, f);
	json_decref(answer);
	return r;
}

int etcd_find_base(struct etcd *e, uint64_t *base, uint64_t *revision)
{
	struct found f;
	const int r = find(e, &f);

	*base = f.base;
	*revision = f.revision;
	return r;
}

/*
 * Whether it can contain all that was ever acknowledged to this process. If the identity has
 * changed, another process has replaced it already.
 */
static bool is_whole(const struct etcd *e, const struct found *f)
{
	const bool same = strcmp(f->identity, e->identity) == 0;

	return f->there && f->base + f->revision >= e->seen &&
	       (!same || (f->cluster == e->cluster && !e->broken));
}

static void adopt(struct etcd *e, const struct found *f)
{
	const bool same = strcmp(f->identity, e->identity) == 0;

	e->doubted = e->broken = false;
	e->seen = f->base + f->revision > e->seen ? f->base + f->revision : e->seen;
	if (same)
		return;
	e->session = 0;
	memcpy(e->identity, f->identity, sizeof(e->identity));
	e->cluster = f->cluster;
	e->base = f->base;
	e->age = e->published = f->age;
	e->aged = etcd_now();
}

/* Draw an identity that no store has had. */
static bool draw(const struct etcd *e, struct found *f)
{
	const uint64_t now = ns_of(CLOCK_REALTIME) / WEIR_US;
	const uint64_t least = e->seen < now ? now : e->seen + 1;
	uint64_t bits[2];

	if (getrandom(bits, sizeof(bits), 0) != sizeof(bits))
		return false;
	f->base = least > f->revision ? least - f->revision : 0;
	(void)snprintf(f->identity, sizeof(f->identity),
		       HEAD "%016" PRIx64 "%016" PRIx64 " %" PRIu64 "\n", bits[0], bits[1],
		       f->base);
	return true;
}

/* Replace the identity found, if it is still there. -EAGAIN: it is not. */
static int make(struct etcd *e, struct found *f)
{
	json_t *compare, *success, *answer;
	int r;

	compare = json_pack("[o]", f->there ? etcd_is_text(e, STORE_KEY, f->identity)
					    : etcd_is_absent(e, STORE_KEY));
	if (!draw(e, f)) {
		json_decref(compare);
		return store_say(-EIO, e->why, "getrandom() failed.");
	}
	success = json_pack("[o, o, o]",
			    etcd_put(e, STORE_KEY, f->identity, strlen(f->identity), 0),
			    etcd_erase_all(e, SESSIONS), etcd_erase(e, AGE_KEY));
	r = etcd_ask(e->link, TRANSACT, etcd_transaction(compare, success, json_null()), false,
		     &answer);
	if (r != 0)
		return r;
	r = read_header(e, answer, &f->cluster, &f->revision);
	if (r == 0 && !etcd_has_succeeded(answer))
		r = -EAGAIN;
	json_decref(answer);
	f->age = 0;
	return r;
}

int etcd_identify(struct etcd *e)
{
	int r = -EAGAIN;

	if (e->identity[0] != '\0' && !e->doubted)
		return 0;
	for (unsigned i = 0; i < ATTEMPTS && r == -EAGAIN; i++) {
		struct found f;

		r = find(e, &f);
		if (r == 0 && !is_whole(e, &f))
			r = make(e, &f);
		if (r == 0)
			adopt(e, &f);
	}
	return r == -EAGAIN ? store_say(-EIO, e->why, "etcd has lost its data.") : r;
}

int etcd_verify(struct etcd *e, const json_t *answer, uint64_t *version)
{
	uint64_t cluster = 0, revision = 0;
	int r = read_header(e, answer, &cluster, &revision);

	if (r != 0)
		return r;
	*version = e->base + revision;
	if (cluster == e->cluster && *version >= e->seen) {
		e->seen = *version;
		return 0;
	}
	e->doubted = true;
	return store_say(-EIO, e->why, "etcd has lost acknowledged data.");
}

bool etcd_is_known(struct etcd *e, const json_t *range)
{
	char text[IDENTITY_SIZE];

	if (!etcd_value(range, text, sizeof(text)) || strcmp(text, e->identity) != 0)
		e->doubted = true;
	return !e->doubted;
}

/* Clocks differ: a hundredth of the time measured here is not counted. */
weir_dur etcd_age(const struct etcd *e)
{
	const weir_dur here = etcd_now() - e->aged;

	return e->age + here - here / 100;
}

json_t *etcd_put_age(const struct etcd *e, weir_dur *age)
{
	const weir_dur now = etcd_age(e);
	char text[32];
	size_t size;

	*age = e->published;
	if (now < AGE_LEAST || now < 2 * e->published || e->published >= AGE_MOST / 2)
		return NULL;
	*age = now < AGE_MOST ? now : AGE_MOST;
	size = (size_t)snprintf(text, sizeof(text), "%" PRIu64, *age / WEIR_MS);
	return etcd_put(e, AGE_KEY, text, size, 0);
}
