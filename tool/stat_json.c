#include "stat.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <time.h>

/*
 * As it is if it is UTF-8, else as it is shown. jansson takes NULL for a value and then fails, so
 * what memory lacks for is seen at the end, once.
 */
static json_t *text(const char *raw)
{
	char shown[SHOWN_ROOM];
	json_t *json = json_string(raw);

	return json != NULL ? json : json_string(name_shown(raw, shown, sizeof(shown)));
}

static json_t *count(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* JSON has no infinity and nothing that is no number. */
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
	json_t *json = json_pack(
		"{s:o,s:f,s:f,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", text(part->name), "share",
		s->share, "cap_share", s->cap_share, "max", count(s->max), "guarantee",
		count(s->guarantee), "cap", count(s->cap), "inflight", count(s->inflight),
		"waiting", count(s->waiting), "kept", count(s->kept), "delayed", count(s->delayed));

	json_object_update_new(
		json, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:f}", "admitted", count(s->admitted),
				"rejected", count(s->rejected), "shed", count(s->shed), "abandoned",
				count(s->abandoned), "succeeded", count(s->succeeded), "dropped",
				count(s->dropped), "other", count(s->other), "reject_delay_seconds",
				(double)s->delay / (double)WEIR_S));
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

		json_array_append_new(
			members,
			json_pack("{s:o,s:i,s:s,s:o,s:o,s:o}", "number", count(m->number), "pid",
				  m->pid, "life", lives[m->life], "permits", count(m->permits),
				  "calls", count(m->calls), "detached", count(m->detached)));
	}
	return members;
}

static json_t *totals_of(const struct weir_snapshot *s)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "admitted",
			 count(s->admitted), "rejected", count(s->rejected), "shed", count(s->shed),
			 "abandoned", count(s->abandoned), "bypassed", count(s->bypassed),
			 "would_reject", count(s->would_reject), "succeeded", count(s->succeeded),
			 "ignored", count(s->ignored), "dropped", count(s->dropped), "timed_out",
			 count(s->timed_out), "cancelled", count(s->cancelled), "failed",
			 count(s->failed), "detached", count(s->detached), "double_released",
			 count(s->double_released));
}

static json_t *state_of(const struct reading *r)
{
	const struct weir_snapshot *s = &r->s;

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:o,s:o}", "limit", count(s->limit), "burst",
			 count(s->burst), "inflight", count(s->inflight), "waiting",
			 count(s->waiting), "passing", count(s->passing), "shadow", (int)s->shadow,
			 "windows", count(s->windows), "rtt_seconds", seconds(s->last.window.rtt),
			 "numbers", numbers_of(&s->last));
}

/* What it was made with. */
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
			 count(i->limit_min), "limit_max", count(i->limit_max), "queue",
			 count(i->queue), "order",
			 i->order <= WEIR_ADAPTIVE ? orders[i->order] : "", "shed", (int)i->shed,
			 "burst", count(i->burst), "window_min_seconds",
			 (double)i->window_min / (double)WEIR_S, "window_max_seconds",
			 (double)i->window_max / (double)WEIR_S, "members", count(i->members),
			 "bytes", count(i->bytes));
}

static json_t *reaping_of(const struct weir_shm_info *i)
{
	return json_pack("{s:o,s:o,s:o,s:o}", "deaths", count(i->deaths), "permits",
			 count(i->reaped), "found", count(i->found), "overdrawn",
			 count(i->overdrawn));
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

static double wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / (double)WEIR_S;
}

bool stat_json(FILE *out, const struct limiters *l, bool one_line)
{
	json_t *all = json_array(), *root;
	bool good = true;

	for (size_t i = 0; i < l->count && good; i++)
		good = json_array_append_new(all, limiter_of(&l->at[i])) == 0;
	root = json_pack("{s:f,s:o}", "time", wall_clock(), "limiters", all);
	good = good && root != NULL &&
	       json_dumpf(root, out,
			  JSON_REAL_PRECISION(15) | (one_line ? JSON_COMPACT : JSON_INDENT(2))) ==
		       0;
	json_decref(root);
	fputc('\n', out);
	return good;
}
