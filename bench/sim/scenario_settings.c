/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_settings.c - the settings of a scenario, section by section, and the combinations that
 * are not valid.
 */
#include "scenario_settings.h"

#include "alloc_or_abort.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <weir/limits.h>

#define TOTAL_MAX  1e18     /* nanoseconds, thirty years; all rounds together */
#define RATE_MAX   1e8      /* calls a second */
#define REPLAY_MAX 50000000 /* recorded times */

#define AT(type, field) offsetof(struct type, field)

/* Read the time in seconds at the beginning of each line. Returns NULL, or an error message. */
static const char *read_times(FILE *file, struct arrivals_model *to)
{
	double seconds, last = 0;
	size_t room = 0;
	int got;

	while ((got = fscanf(file, "%lf%*[^\n]", &seconds)) == 1) {
		if (!(seconds >= last && seconds * 1e9 <= DURATION_MAX))
			return "The time is before the previous one, or too large";
		if (to->count == REPLAY_MAX)
			return "There are too many times";
		if (to->count == room) {
			room = room == 0 ? 1024 : 2 * room;
			to->times = realloc_or_abort(to->times, room * sizeof(to->times[0]));
		}
		to->times[to->count++] = (weir_time)(seconds * 1e9);
		last = seconds;
	}
	return got == EOF && to->count > 0 ? NULL
					   : "The line does not begin with a time in seconds";
}

static int read_replay(const struct reader *r, const config_setting_t *at,
		       struct arrivals_model *to)
{
	const char *name = config_setting_get_string(at);
	char path[4096];
	const char *wrong;
	FILE *file;

	if (name == NULL)
		return settings_fail(r, at, "file is not a text in quotes.");
	if (snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : r->folder,
		     name[0] == '/' || r->folder[0] == '\0' ? "" : "/", name) >= (int)sizeof(path))
		return settings_fail(r, at, "The name of the file is too long.");
	file = fopen(path, "r");
	if (file == NULL)
		return settings_fail(r, at, "%s: %s.", path, strerror(errno));
	wrong = read_times(file, to);
	fclose(file);
	return wrong == NULL ? 0 : settings_fail(r, at, "%s:%zu: %s.", path, to->count + 1, wrong);
}

static int read_arrivals(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	static const char *const processes[] = {"poisson",     "regular", "batches", "onoff",
						"selfsimilar", "closed",  "replay",  NULL};
	static const struct key keys[] = {
		{"process", KEY_WORD, AT(arrivals_model, process), 0, 0, processes},
		{"batch", KEY_NUMBER, AT(arrivals_model, batch), 1, 1e6, NULL},
		{"on", KEY_LAW, AT(arrivals_model, on), 0, 0, NULL},
		{"off", KEY_LAW, AT(arrivals_model, off), 0, 0, NULL},
		{"low", KEY_NUMBER, AT(arrivals_model, low), 0, 1, NULL},
		{"think", KEY_LAW, AT(arrivals_model, think), 0, 0, NULL},
		{"file", KEY_OTHER, 0, 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *group = config_setting_get_member(root, "arrivals");
	struct arrivals_model *to = &s->arrivals;
	const config_setting_t *file;
	int error;

	*to = (struct arrivals_model){.batch = 1};
	if (group == NULL)
		return 0;
	error = settings_read(r, group, keys, to);
	if (error != 0)
		return error;
	file = config_setting_get_member(group, "file");
	if ((to->process == ARRIVALS_REPLAY) != (file != NULL))
		return settings_fail(r, group,
				     file == NULL ? "A replay needs a file of times."
						  : "Only a replay has a file.");
	if (to->process == ARRIVALS_CLOSED && to->think.mean == 0)
		return settings_fail(r, group, "Closed arrivals need a think time above 0.");
	if ((to->process == ARRIVALS_ONOFF || to->process == ARRIVALS_SELFSIMILAR) &&
	    (to->on.mean == 0 || to->off.mean == 0))
		return settings_fail(r, group, "These arrivals need on and off times above 0.");
	if (to->process == ARRIVALS_SELFSIMILAR &&
	    (to->on.kind != LAW_CONSTANT || to->off.kind != LAW_CONSTANT))
		return settings_fail(r, group,
				     "Selfsimilar arrivals use a law of their own: give on and off "
				     "as mean durations.");
	return file != NULL ? read_replay(r, file, to) : 0;
}

static int read_client(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	static const struct key keys[] = {
		{"deadline", KEY_DURATION, AT(client_model, deadline), 1, 0, NULL},
		{"timeout", KEY_DURATION, AT(client_model, timeout), 1, 0, NULL},
		{"retries", KEY_COUNT, AT(client_model, retries), 0, 100, NULL},
		{"backoff", KEY_LAW, AT(client_model, backoff), 0, 0, NULL},
		{"backoff_growth", KEY_NUMBER, AT(client_model, backoff_growth), 1, 10, NULL},
		{"stops_work", KEY_FLAG, AT(client_model, stops_work), 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *group = config_setting_get_member(root, "client");

	s->client = (struct client_model){.backoff_growth = 1};
	return group == NULL ? 0 : settings_read(r, group, keys, &s->client);
}

static int read_station(const struct reader *r, const config_setting_t *group,
			struct station_plan *to)
{
	static const char *const disciplines[] = {"fifo", "shared", "delay", NULL};
	static const struct key keys[] = {
		{"name", KEY_NAME, AT(station_plan, name), 0, 0, NULL},
		{"discipline", KEY_WORD, AT(station_plan, model.discipline), 0, 0, disciplines},
		{"workers", KEY_COUNT, AT(station_plan, model.workers), 1, 1e6, NULL},
		{"speed", KEY_NUMBER, AT(station_plan, model.speed), 1e-3, 1000, NULL},
		{"contention", KEY_NUMBER, AT(station_plan, model.contention), 0, 1, NULL},
		{"coherency", KEY_NUMBER, AT(station_plan, model.coherency), 0, 1, NULL},
		{"second_half", KEY_NUMBER, AT(station_plan, model.second_half), 0, 1, NULL},
		{"queue", KEY_COUNT, AT(station_plan, model.queue), 1, 1e6, NULL},
		{"newest_first", KEY_FLAG, AT(station_plan, model.newest_first), 0, 0, NULL},
		{"kept", KEY_FLAG, AT(station_plan, kept), 0, 0, NULL},
		{"cpu", KEY_FLAG, AT(station_plan, cpu), 0, 0, NULL},
		{"work", KEY_LAW, AT(station_plan, work), 0, 0, NULL},
		{"pause_every", KEY_LAW, AT(station_plan, pause_every), 0, 0, NULL},
		{"pause_length", KEY_LAW, AT(station_plan, pause_length), 0, 0, NULL},
		{.name = NULL},
	};
	int error;

	*to = (struct station_plan){
		.model = {.workers = 1, .speed = 1, .second_half = 1},
		.cpu = true,
	};
	error = settings_read(r, group, keys, to);
	if (error != 0)
		return error;
	if (to->name[0] == '\0')
		return settings_fail(r, group, "A station has no name.");
	to->cpu &= !to->kept && to->model.discipline != STATION_DELAY;
	if (to->kept && to->model.discipline != STATION_FIFO)
		return settings_fail(r, group, "Only a fifo station has workers that can be kept.");
	if ((to->model.queue > 0 || to->model.newest_first) && to->model.discipline != STATION_FIFO)
		return settings_fail(r, group, "Only a fifo station has a queue.");
	if (to->model.discipline == STATION_DELAY &&
	    (settings_has(group, "workers") || settings_has(group, "contention") ||
	     settings_has(group, "coherency") || settings_has(group, "second_half")))
		return settings_fail(r, group,
				     "A delay station takes no workers, contention, coherency or "
				     "second_half.");
	if ((to->pause_every.mean == 0) != (to->pause_length.mean == 0))
		return settings_fail(r, group, "pause_every and pause_length go together.");
	return 0;
}

/* The index of a station; station_count if the name is unknown. */
static unsigned station_named(const struct scenario *s, const char *name)
{
	unsigned station = 0;

	while (station < s->station_count && strcmp(s->stations[station].name, name) != 0)
		station++;
	return station;
}

static int read_stations(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	const config_setting_t *list = config_setting_get_member(root, "server");
	const config_setting_t *one;
	int error = list == NULL ? settings_fail(r, root, "There is no server.")
				 : settings_check_list(r, list, STATIONS_MAX);

	while (error == 0 && (one = settings_element(list, s->station_count)) != NULL) {
		struct station_plan *station = &s->stations[s->station_count];

		error = read_station(r, one, station);
		if (error == 0 && station_named(s, station->name) < s->station_count)
			return settings_fail(r, one, "There are two stations \"%s\".",
					     station->name);
		s->station_count++;
	}
	return error;
}

/* Read a group of laws by station. */
static int read_work(const struct reader *r, const config_setting_t *group,
		     const struct scenario *s, struct class_model *to)
{
	if (!config_setting_is_group(group))
		return settings_fail(
			r, group,
			"work is not a group of laws by station, as in { cpu = \"1ms\"; }.");
	for (unsigned i = 0; i < s->station_count; i++)
		to->work[i] = (struct law){.kind = LAW_CONSTANT};
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *one = config_setting_get_elem(group, (unsigned)i);
		unsigned station = station_named(s, settings_name(one));

		if (station == s->station_count)
			return settings_fail(r, one, "There is no station \"%s\".",
					     settings_name(one));
		if (settings_read_law(r, one, settings_name(one), &to->work[station]) != 0)
			return -EINVAL;
	}
	return 0;
}

static int read_class(const struct reader *r, const config_setting_t *group,
		      const struct scenario *s, struct class_model *to)
{
	static const char *const outcomes[] = {"success",   "ignored", "dropped", "timed out",
					       "cancelled", "failed",  NULL};
	static const struct key keys[] = {
		{"name", KEY_NAME, AT(class_model, name), 0, 0, NULL},
		{"share", KEY_NUMBER, AT(class_model, share), 0, 1e9, NULL},
		{"work", KEY_OTHER, 0, 0, 0, NULL},
		{"cancelled", KEY_NUMBER, AT(class_model, cancelled), 0, 1, NULL},
		{"cancel_after", KEY_LAW, AT(class_model, cancel_after), 0, 0, NULL},
		{"failing", KEY_NUMBER, AT(class_model, failing), 0, 1, NULL},
		{"fail_after", KEY_LAW, AT(class_model, fail_after), 0, 0, NULL},
		{"fail_as", KEY_WORD, AT(class_model, fail_as), 0, 0, outcomes},
		{"served_as", KEY_WORD, AT(class_model, served_as), 0, 0, outcomes},
		{"stream", KEY_FLAG, AT(class_model, stream), 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *work;
	int error;

	*to = (struct class_model){.name = "all", .share = 1, .fail_as = WEIR_FAILED};
	for (unsigned i = 0; i < s->station_count; i++)
		to->work[i] = s->stations[i].work;
	error = group == NULL ? 0 : settings_read(r, group, keys, to);
	if (error != 0 || group == NULL)
		return error;
	if (to->cancelled > 0 && !settings_has(group, "cancel_after"))
		return settings_fail(r, group, "cancelled needs cancel_after.");
	work = config_setting_get_member(group, "work");
	return work == NULL ? 0 : read_work(r, work, s, to);
}

static int check_work(const struct reader *r, const config_setting_t *at, const struct scenario *s,
		      const struct class_model *class)
{
	for (unsigned i = 0; i < s->station_count; i++)
		if (class->work[i].mean > 0)
			return 0;
	return settings_fail(r, at, "Calls of class \"%s\" have no work at any station.",
			     class->name);
}

static int read_classes(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	const config_setting_t *list = config_setting_get_member(root, "classes");
	const config_setting_t *one;
	double shares = 0;
	int error;

	if (list == NULL) {
		s->class_count = 1;
		read_class(r, NULL, s, &s->classes[0]);
		return check_work(r, config_setting_get_member(root, "server"), s, &s->classes[0]);
	}
	error = settings_check_list(r, list, CLASSES_MAX);
	while (error == 0 && (one = settings_element(list, s->class_count)) != NULL) {
		error = read_class(r, one, s, &s->classes[s->class_count]);
		if (error == 0)
			error = check_work(r, one, s, &s->classes[s->class_count]);
		shares += s->classes[s->class_count++].share;
	}
	if (error == 0 && shares == 0)
		return settings_fail(r, list, "All classes have a share of 0.");
	return error;
}

/* A station that every call skips is a mistake. */
static int check_stations(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	const config_setting_t *list = config_setting_get_member(root, "server");

	for (unsigned i = 0; i < s->station_count; i++) {
		double work = 0;

		for (unsigned c = 0; c < s->class_count; c++)
			work += s->classes[c].work[i].mean;
		if (work == 0)
			return settings_fail(r, settings_element(list, i),
					     "No call has work at station \"%s\".",
					     s->stations[i].name);
	}
	return 0;
}

static int check_limit(const struct reader *r, const config_setting_t *at, const char *text)
{
	_Alignas(max_align_t) char config[WEIR_LIMIT_CONFIG_MAX];
	const struct weir_limit_ops *ops;
	char why[200];

	if (weir_limit_from_text(text, &ops, config, why, sizeof(why)) != 0)
		return settings_fail(r, at, "%s: %s", text, why);
	return 0;
}

static int read_groups(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	static const struct key keys[] = {
		{"count", KEY_COUNT, AT(limiter_group, count), 1, LIMITERS_MAX, NULL},
		{"start", KEY_DURATION, AT(limiter_group, start), 0, 0, NULL},
		{"clocks", KEY_DURATION, AT(limiter_group, clocks), 0, 0, NULL},
		{"limit", KEY_TEXT, AT(limiter_group, limit), 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *list = config_setting_get_member(root, "limiters");
	const config_setting_t *one;
	int error;

	s->groups[0] = (struct limiter_group){.count = 1};
	s->group_count = list == NULL;
	if (list == NULL)
		return 0;
	error = settings_check_list(r, list, GROUPS_MAX);
	while (error == 0 && (one = settings_element(list, s->group_count)) != NULL) {
		struct limiter_group *group = &s->groups[s->group_count++];

		*group = (struct limiter_group){.count = 1};
		error = settings_read(r, one, keys, group);
		if (error == 0 && group->limit[0] != '\0')
			error = check_limit(r, config_setting_get_member(one, "limit"),
					    group->limit);
	}
	if (error == 0 && scenario_limiters(s) > LIMITERS_MAX)
		return settings_fail(r, list, "There are more than %d limiters.", LIMITERS_MAX);
	if (error == 0 && s->groups[0].start != 0)
		return settings_fail(r, list, "The first limiters start later than the calls.");
	return error;
}

/* A phase as it is in the file: with loads not yet turned into rates, and the station's name. */
struct raw_phase {
	struct phase phase;
	double load[2], background_load;
	char station[NAME_SIZE];
};

static int finish_phase(const struct reader *r, const config_setting_t *group,
			const struct scenario *s, struct raw_phase *raw)
{
	struct phase *phase = &raw->phase;
	double one = scenario_capacity(s, NULL), shares = 0;
	bool open = s->arrivals.process != ARRIVALS_CLOSED &&
		    s->arrivals.process != ARRIVALS_REPLAY;

	if (phase->length == 0)
		return settings_fail(r, group, "A phase has no length.");
	if (open ? settings_has(group, "rate") == settings_has(group, "load")
		 : settings_has(group, "rate") || settings_has(group, "load"))
		return settings_fail(r, group,
				     open ? "A phase needs a rate or a load, and not both."
					  : "These arrivals take neither a rate nor a load.");
	if ((s->arrivals.process == ARRIVALS_CLOSED) != (phase->clients > 0))
		return settings_fail(r, group, "Closed arrivals need clients; others take none.");
	if ((settings_has(group, "load") || settings_has(group, "background_load")) && isinf(one))
		return settings_fail(r, group,
				     "A load needs a server of finite capacity: give a rate.");
	for (int i = 0; i < 2 && settings_has(group, "load"); i++)
		phase->rate[i] = raw->load[i] * one;
	if (settings_has(group, "background_load"))
		phase->background = raw->background_load * one;
	if (phase->rate[0] > RATE_MAX || phase->rate[1] > RATE_MAX)
		return settings_fail(r, group, "More than %g calls a second.", RATE_MAX);
	for (unsigned i = 0; i < s->class_count; i++)
		shares += phase->mix[i];
	if (shares == 0)
		return settings_fail(r, group, "mix gives every class a share of 0.");
	return 0;
}

/* Resolve and check the change of a station. */
static int finish_change(const struct reader *r, const config_setting_t *group,
			 const struct scenario *s, struct raw_phase *raw)
{
	struct phase *phase = &raw->phase;

	phase->station = station_named(s, raw->station);
	if (raw->station[0] == '\0')
		phase->station = 0;
	if (phase->station == s->station_count)
		return settings_fail(r, group, "There is no station \"%s\".", raw->station);
	if (settings_has(group, "workers") && phase->workers != floor(phase->workers))
		return settings_fail(r, group, "workers is not a whole number.");
	if (settings_has(group, "workers") &&
	    s->stations[phase->station].model.discipline == STATION_DELAY)
		return settings_fail(r, group, "A delay station has no workers.");
	return 0;
}

static int read_phase(const struct reader *r, const config_setting_t *group,
		      const struct scenario *s, struct phase *to)
{
	static const struct key keys[] = {
		{"name", KEY_NAME, AT(raw_phase, phase.name), 0, 0, NULL},
		{"length", KEY_DURATION, AT(raw_phase, phase.length), 1e6, 0, NULL},
		{"warm_up", KEY_FLAG, AT(raw_phase, phase.warm_up), 0, 0, NULL},
		{"rate", KEY_RANGE, AT(raw_phase, phase.rate), 0, RATE_MAX, NULL},
		{"load", KEY_RANGE, AT(raw_phase, load), 0, 1000, NULL},
		{"background", KEY_NUMBER, AT(raw_phase, phase.background), 0, RATE_MAX, NULL},
		{"background_load", KEY_NUMBER, AT(raw_phase, background_load), 0, 1000, NULL},
		{"clients", KEY_COUNT, AT(raw_phase, phase.clients), 1, 100000, NULL},
		{"slower", KEY_RANGE, AT(raw_phase, phase.slower), 1e-6, 1e6, NULL},
		{"station", KEY_NAME, AT(raw_phase, station), 0, 0, NULL},
		{"workers", KEY_NUMBER, AT(raw_phase, phase.workers), 0, 1e6, NULL},
		{"speed", KEY_NUMBER, AT(raw_phase, phase.speed), 0, 1000, NULL},
		{"mix", KEY_SHARES, AT(raw_phase, phase.mix), 0, 1e9, NULL},
		{"failing", KEY_NUMBER, AT(raw_phase, phase.failing), 0, 1, NULL},
		{"restart", KEY_FLAG, AT(raw_phase, phase.restart), 0, 0, NULL},
		{.name = NULL},
	};
	struct raw_phase raw = {
		.phase = {.slower = {1, 1}, .workers = -1, .speed = -1, .failing = -1},
	};
	int error;

	for (unsigned i = 0; i < s->class_count; i++)
		raw.phase.mix[i] = s->classes[i].share;
	error = settings_read(r, group, keys, &raw);
	if (error == 0)
		error = finish_phase(r, group, s, &raw);
	if (error == 0)
		error = finish_change(r, group, s, &raw);
	*to = raw.phase;
	return error;
}

static int read_phases(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	const config_setting_t *list = config_setting_get_member(root, "phases");
	const config_setting_t *one;
	double length = 0;
	int error = list == NULL ? settings_fail(r, root, "There are no phases.")
				 : settings_check_list(r, list, PHASES_MAX);

	while (error == 0 && (one = settings_element(list, s->phase_count)) != NULL) {
		struct phase *phase = &s->phases[s->phase_count++];

		error = read_phase(r, one, s, phase);
		if (error == 0 && phase->name[0] == '\0')
			snprintf(phase->name, sizeof(phase->name), "%u", s->phase_count);
		length += (double)phase->length * s->rounds;
	}
	if (error == 0 && length > TOTAL_MAX)
		return settings_fail(r, list, "All rounds together are longer than thirty years.");
	return error;
}

int scenario_from_settings(struct scenario *s, const struct reader *r, const config_setting_t *root)
{
	static const struct key keys[] = {
		{"name", KEY_NAME, AT(scenario, name), 0, 0, NULL},
		{"family", KEY_NAME, AT(scenario, family), 0, 0, NULL},
		{"about", KEY_TEXT, AT(scenario, about), 0, 0, NULL},
		{"rounds", KEY_COUNT, AT(scenario, rounds), 1, 1e6, NULL},
		{"sweep", KEY_DURATION, AT(scenario, sweep), 1e6, 0, NULL},
		{"coarse", KEY_FLAG, AT(scenario, coarse), 0, 0, NULL},
		{"arrivals", KEY_OTHER, 0, 0, 0, NULL},
		{"client", KEY_OTHER, 0, 0, 0, NULL},
		{"server", KEY_OTHER, 0, 0, 0, NULL},
		{"classes", KEY_OTHER, 0, 0, 0, NULL},
		{"limiters", KEY_OTHER, 0, 0, 0, NULL},
		{"phases", KEY_OTHER, 0, 0, 0, NULL},
		{.name = NULL},
	};
	static int (*const parts[])(const struct reader *r, const config_setting_t *root,
				    struct scenario *s) = {
		read_arrivals,  read_client, read_stations, read_classes,
		check_stations, read_groups, read_phases,
	};
	int error = settings_read(r, root, keys, s);

	if (error == 0 && s->name[0] == '\0')
		return settings_fail(r, root, "The scenario has no name.");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && error == 0; i++)
		error = parts[i](r, root, s);
	return error;
}
