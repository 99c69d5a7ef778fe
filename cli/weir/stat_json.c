/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat.h"

#include <inttypes.h>
#include <math.h>

#include "json.h"

/*
 * The text if it is UTF-8, otherwise escaped. jansson's functions fail if a value is NULL, so
 * running out of memory is checked once, at the end.
 */
static json_t *text(const char *raw)
{
	char shown[SHOWN_ROOM];
	json_t *json = json_string(raw);

	return json != NULL ? json : json_string(name_shown(raw, shown, sizeof(shown)));
}

/* JSON has neither infinity nor NaN. */
static json_t *real(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

static json_t *seconds(double ns)
{
	return ns > 0 ? real(ns / (double)WEIR_S) : json_null();
}

static json_t *numbers_of(const struct weir_report *report)
{
	json_t *numbers = json_object();

	for (uint32_t i = 0; i < report->count && report->names != NULL; i++)
		json_object_set_new(numbers, report->names[i], real(report->numbers[i]));
	return numbers;
}

static json_t *rates_of(const struct rates *r)
{
	return json_pack("{s:f,s:f,s:f}", "admitted", r->admitted, "rejected", r->rejected,
			 "dropped", r->dropped);
}

static json_t *part_of(const struct watched *w, const struct part_reading *part)
{
	const struct weir_partition_snapshot *s = &part->s;
	const struct rates rates = reading_part_rates(watched_before(w), &w->now, part);
	json_t *json = json_pack("{s:o,s:f,s:f,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name",
				 text(part->name), "share", s->share, "cap_share", s->cap_share,
				 "max", json_count(s->max), "guarantee", json_count(s->guarantee),
				 "cap", json_count(s->cap), "inflight", json_count(s->inflight),
				 "waiting", json_count(s->waiting), "reserved",
				 json_count(s->reserved), "delayed", json_count(s->delayed));

	json_object_update_new(
		json, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:f}", "admitted",
				json_count(s->admitted), "rejected", json_count(s->rejected),
				"shed", json_count(s->shed), "abandoned", json_count(s->abandoned),
				"succeeded", json_count(s->succeeded), "dropped",
				json_count(s->dropped), "other", json_count(s->other),
				"reject_delay_seconds", (double)s->delay / (double)WEIR_S));
	if (w->twice)
		json_object_set_new(json, "rates", rates_of(&rates));
	return json;
}

static json_t *parts_of(const struct watched *w)
{
	json_t *parts = json_array();

	for (size_t i = 0; i < w->now.part_count; i++)
		json_array_append_new(parts, part_of(w, &w->now.parts[i]));
	return parts;
}

static json_t *members_of(const struct reading *r)
{
	static const char *const lives[] = {
		[WEIR_SHM_ALIVE] = "alive",
		[WEIR_SHM_DEAD] = "dead",
		[WEIR_SHM_FOREIGN] = "foreign",
	};
	json_t *members = json_array();

	for (size_t i = 0; i < r->member_count; i++) {
		const struct weir_shm_member *m = &r->members[i];

		json_array_append_new(members,
				      json_pack("{s:o,s:i,s:s,s:o,s:o,s:o}", "number",
						json_count(m->number), "pid", m->pid, "life",
						lives[m->life], "permits", json_count(m->permits),
						"calls", json_count(m->calls), "detached",
						json_count(m->detached)));
	}
	return members;
}

static json_t *totals_of(const struct weir_snapshot *s)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "admitted",
			 json_count(s->admitted), "rejected", json_count(s->rejected), "shed",
			 json_count(s->shed), "abandoned", json_count(s->abandoned), "bypassed",
			 json_count(s->bypassed), "would_reject", json_count(s->would_reject),
			 "succeeded", json_count(s->succeeded), "ignored", json_count(s->ignored),
			 "dropped", json_count(s->dropped), "timed_out", json_count(s->timed_out),
			 "cancelled", json_count(s->cancelled), "failed", json_count(s->failed),
			 "detached", json_count(s->detached), "double_released",
			 json_count(s->double_released));
}

static json_t *state_of(const struct reading *r)
{
	const struct weir_snapshot *s = &r->s;

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:o,s:o}", "limit", json_count(s->limit),
			 "burst", json_count(s->burst), "inflight", json_count(s->inflight),
			 "waiting", json_count(s->waiting), "passing", json_count(s->passing),
			 "shadow", (int)s->shadow, "windows", json_count(s->windows), "rtt_seconds",
			 seconds(s->last.window.rtt), "numbers", numbers_of(&s->last));
}

/* Its configuration. */
static json_t *making_of(const struct reading *r)
{
	static const char *const orders[] = {
		[WEIR_FIFO] = "fifo",
		[WEIR_LIFO] = "lifo",
		[WEIR_ADAPTIVE] = "adaptive",
	};
	const struct weir_shm_info *i = &r->info;

	return json_pack("{s:s,s:o,s:b,s:o,s:o,s:o,s:s,s:b,s:o,s:f,s:f,s:o,s:o}", "limit", i->limit,
			 "algorithm", text(r->algorithm), "settable", (int)i->settable, "limit_min",
			 json_count(i->limit_min), "limit_max", json_count(i->limit_max), "queue",
			 json_count(i->queue), "order",
			 i->order <= WEIR_ADAPTIVE ? orders[i->order] : "", "shed", (int)i->shed,
			 "burst", json_count(i->burst), "window_min_seconds",
			 (double)i->window_min / (double)WEIR_S, "window_max_seconds",
			 (double)i->window_max / (double)WEIR_S, "members", json_count(i->members),
			 "bytes", json_count(i->bytes));
}

static json_t *reaping_of(const struct weir_shm_info *i)
{
	return json_pack("{s:o,s:o,s:o,s:o}", "deaths", json_count(i->deaths), "permits",
			 json_count(i->reaped), "found", json_count(i->found), "overdrawn",
			 json_count(i->overdrawn));
}

static json_t *limiter_of(const struct watched *w)
{
	json_t *json = json_pack("{s:o,s:o}", "name", text(w->name), "config", making_of(&w->now));

	json_object_update_new(json, state_of(&w->now));
	json_object_set_new(json, "totals", totals_of(&w->now.s));
	if (w->twice)
		json_object_set_new(json, "rates", rates_of(&w->rates));
	json_object_set_new(json, "partitions", parts_of(w));
	json_object_set_new(json, "processes", members_of(&w->now));
	json_object_set_new(json, "reaped", reaping_of(&w->now.info));
	return json;
}

bool stat_json(FILE *out, const struct limiters *l, bool one_line)
{
	json_t *all = json_array();
	bool good = true;

	for (size_t i = 0; i < l->count && good; i++)
		good = json_array_append_new(all, limiter_of(&l->at[i])) == 0;
	return json_print(out, "limiters", all, one_line) && good;
}
