/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * etcd keeps all revisions of all rows until it is compacted, and refuses writes once its file has
 * reached its quota.
 *
 * Compaction affects the whole cluster, and other clients may read old revisions, so it happens
 * only where it was configured. The handles that have configured it take turns, which are counted
 * by a row, //compact. In each interval one of them writes the row, with a check that its version
 * is the one seen last. The handle that has written it compacts what was written before its last
 * turn, so that a revision is kept for an interval at least.
 */

#include "fleet/store/etcd_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define STATUS_INTERVAL (600 * WEIR_S)
#define LARGE           ((uint64_t)256 << 20) /* bytes; an eighth of etcd's default quota */
#define TURNS           "/compact"

static weir_time now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (weir_time)t.tv_sec * WEIR_S + (weir_time)t.tv_nsec;
}

static void compact(struct etcd_link *link, uint64_t revision)
{
	json_t *answer;

	if (revision == 0)
		return;
	(void)!etcd_ask(link, "/v3/kv/compaction",
			json_pack("{s:o}", "revision", etcd_text_of(revision)), true, &answer);
	json_decref(answer);
}

static json_t *turn_request(const struct etcd *e)
{
	return json_pack("{s:[{s:o, s:s, s:s, s:o}], s:[{s:{s:o, s:s}}], s:[{s:{s:o}}]}", "compare",
			 "key", etcd_key(e, TURNS), "result", "EQUAL", "target", "VERSION",
			 "version", etcd_text_of(e->space.turn), "success", "request_put", "key",
			 etcd_key(e, TURNS), "value", "", "failure", "request_range", "key",
			 etcd_key(e, TURNS));
}

/* How often the row was written, from the answer to a handle that came too late. */
static uint64_t turns_of(const json_t *answer)
{
	const json_t *first = json_array_get(json_object_get(answer, "responses"), 0);
	const json_t *range = json_object_get(first, "response_range");
	uint64_t turns;

	return etcd_number(json_array_get(json_object_get(range, "kvs"), 0), "version", &turns)
		       ? turns
		       : 0;
}

/*
 * If there is no space, the row cannot be written; compact anyway, since compaction is what frees
 * space.
 */
static void take_turn(struct etcd *e, uint64_t revision)
{
	struct etcd_space *s = &e->space;
	json_t *answer;
	const int r = etcd_ask(e->link, "/v3/kv/txn", turn_request(e), false, &answer);

	if (r == 0 && json_is_true(json_object_get(answer, "succeeded"))) {
		compact(e->link, s->revision);
		s->turn++;
	} else if (r == 0) {
		s->turn = turns_of(answer);
	} else if (r == -ENOSPC) {
		compact(e->link, s->revision);
	}
	if (r == 0 || r == -ENOSPC)
		s->revision = revision;
	json_decref(answer);
}

static bool has_alarm(const json_t *status)
{
	const json_t *errors = json_object_get(status, "errors"), *error;
	size_t i;

	json_array_foreach(errors, i, error)
	{
		if (json_is_string(error) && strstr(json_string_value(error), "NOSPACE") != NULL)
			return true;
	}
	return false;
}

/* Whether the first revision is still there, so the cluster was never compacted. */
static bool keeps_all(const struct etcd *e)
{
	json_t *answer;
	const int r = etcd_ask(e->link, "/v3/kv/range",
			       json_pack("{s:o, s:s, s:b}", "key", etcd_key(e, TURNS), "revision",
					 "1", "count_only", 1),
			       true, &answer);

	json_decref(answer);
	return r == 0;
}

/* A client without permission to ask for the status gets no warnings. */
static void examine(struct etcd *e)
{
	struct etcd_space *s = &e->space;
	json_t *status;
	uint64_t size;
	const int r = etcd_ask(e->link, "/v3/maintenance/status", json_object(), true, &status);

	s->note[0] = '\0';
	if (r == 0 && has_alarm(status))
		(void)snprintf(s->note, sizeof(s->note),
			       "etcd refuses writes: its space is used up (alarm NOSPACE). Compact "
			       "it, defragment it, and disarm the alarm.");
	else if (r == 0 && etcd_number(status, "dbSize", &size) && size > LARGE &&
		 s->interval == 0 && keeps_all(e))
		(void)snprintf(s->note, sizeof(s->note),
			       "etcd has never been compacted, has grown to %llu MB, and refuses "
			       "writes at its quota: see --auto-compaction-retention.",
			       (unsigned long long)(size >> 20));
	json_decref(status);
}

void etcd_space_step(struct etcd *e, uint64_t version)
{
	struct etcd_space *s = &e->space;
	const weir_time at = now();
	char sentence[WHY_SIZE];

	if (at < s->status_due && (s->interval == 0 || at < s->due))
		return;
	/* An error here is not an error of the call. */
	etcd_link_save(e->link, sentence);
	if (at >= s->status_due) {
		s->status_due = at + STATUS_INTERVAL;
		examine(e);
	}
	if (s->interval != 0 && at >= s->due) {
		s->due = at + s->interval;
		take_turn(e, version - e->base);
	}
	etcd_link_restore(e->link, sentence);
}
