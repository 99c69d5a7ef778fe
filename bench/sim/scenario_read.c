/*
 * scenario_read.c - by libconfig, and tables that say where each setting goes.
 */
#include "scenario_read.h"

#include "memory.h"
#include "quantity.h"

#include <errno.h>
#include <libconfig.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/limits.h>

#define DURATION_MAX (10000 * 3600e9)
#define TOTAL_MAX    1e18 /* nanoseconds, thirty years: of all rounds */
#define RATE_MAX     1e8
#define REPLAY_MAX   50000000

/* The names of all settings in one place, in a message. */
#define WORDS_SIZE 200

struct reader {
	const char *name;
	const char *folder; /* of the file, for names of others; "": the present one */
	char *why;
	size_t why_size;
};

enum kind {
	TEXT,     /* char[TEXT_SIZE] */
	NAME,     /* char[NAME_SIZE] */
	NUMBER,   /* double */
	COUNT,    /* unsigned */
	DURATION, /* weir_dur, from text */
	LAW,      /* struct law, from text; its mean within DURATION_MAX */
	FLAG,     /* bool */
	WORD,     /* unsigned: which of the words */
	RANGE,    /* double[2]: a number, or two */
	SHARES,   /* double[CLASSES_MAX] */
	OTHER,    /* read by somebody else */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	double min, max;
	const char *const *words;
};

static int fail_at(const struct reader *r, const config_setting_t *at, const char *format,
		   va_list args)
{
	const char *included = config_setting_source_file(at);
	unsigned line = config_setting_source_line(at);
	int begun = snprintf(r->why, r->why_size, "%s:%u: ", included != NULL ? included : r->name,
			     line > 0 ? line : 1);

	if (begun >= 0 && (size_t)begun < r->why_size)
		vsnprintf(r->why + begun, r->why_size - (size_t)begun, format, args);
	return -EINVAL;
}

__attribute__((format(printf, 3, 4))) static int fail(const struct reader *r,
						      const config_setting_t *at,
						      const char *format, ...)
{
	va_list args;
	int error;

	va_start(args, format);
	error = fail_at(r, at, format, args);
	va_end(args);
	return error;
}

static const char *label(const config_setting_t *setting)
{
	const char *name = config_setting_name(setting);

	return name != NULL ? name : "this";
}

static bool is_number(const config_setting_t *setting)
{
	int type = config_setting_type(setting);

	return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64 || type == CONFIG_TYPE_FLOAT;
}

static double number_of(const config_setting_t *setting)
{
	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_INT:
		return config_setting_get_int(setting);
	case CONFIG_TYPE_INT64:
		return (double)config_setting_get_int64(setting);
	default:
		return config_setting_get_float(setting);
	}
}

static int read_number(const struct reader *r, const config_setting_t *from, const struct key *key,
		       double *to)
{
	if (!is_number(from))
		return fail(r, from, "%s is not a number.", key->name);
	*to = number_of(from);
	if (!(*to >= key->min && *to <= key->max))
		return fail(r, from, "%s is %g, not from %g to %g.", key->name, *to, key->min,
			    key->max);
	return 0;
}

static int read_text(const struct reader *r, const config_setting_t *from, const struct key *key,
		     char *to, size_t size)
{
	const char *text = config_setting_get_string(from);

	if (text == NULL)
		return fail(r, from, "%s is not a text in quotes.", key->name);
	if (strlen(text) >= size)
		return fail(r, from, "%s is longer than %zu bytes.", key->name, size - 1);
	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ')
			return fail(r, from, "%s has a tabulator or line end in it.", key->name);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

static int read_duration(const struct reader *r, const config_setting_t *from,
			 const struct key *key, weir_dur *to)
{
	const char *text = config_setting_get_string(from);
	double value;

	if (text == NULL || !duration_read(text, &value))
		return fail(r, from, "%s is no duration: write \"10ms\", \"2s\", \"1.5h\".",
			    key->name);
	if (value > DURATION_MAX || value < key->min)
		return fail(r, from, "%s is too %s.", key->name,
			    value < key->min ? "short" : "long");
	*to = (weir_dur)value;
	return 0;
}

static int read_law(const struct reader *r, const config_setting_t *from, const char *name,
		    struct law *to)
{
	const char *text = config_setting_get_string(from);
	const char *wrong = text == NULL ? "it is not a text in quotes" : law_read(text, to);

	if (wrong != NULL)
		return fail(r, from, "%s: %s.", name, wrong);
	if (to->mean > DURATION_MAX)
		return fail(r, from, "%s is too long.", name);
	return 0;
}

/* Names one after the other, for a message. */
static void join(char *to, size_t size, const char *name)
{
	size_t used = strlen(to);

	snprintf(to + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

static int read_word(const struct reader *r, const config_setting_t *from, const struct key *key,
		     unsigned *to)
{
	const char *text = config_setting_get_string(from);
	char known[WORDS_SIZE] = "";

	for (unsigned i = 0; text != NULL && key->words[i] != NULL; i++)
		if (strcmp(key->words[i], text) == 0) {
			*to = i;
			return 0;
		}
	for (unsigned i = 0; key->words[i] != NULL; i++)
		join(known, sizeof(known), key->words[i]);
	return fail(r, from, "%s is none of: %s.", key->name, known);
}

/* Numbers in a row: an array, or a list, where whole and broken ones may be mixed. */
static bool is_row(const config_setting_t *setting)
{
	return config_setting_is_array(setting) || config_setting_is_list(setting);
}

static int read_range(const struct reader *r, const config_setting_t *from, const struct key *key,
		      double to[2])
{
	int error = 0;

	if (!is_row(from)) {
		error = read_number(r, from, key, &to[0]);
		to[1] = to[0];
		return error;
	}
	if (config_setting_length(from) != 2)
		return fail(r, from, "%s is neither a number nor two, as in (0, 1.5).", key->name);
	for (unsigned i = 0; i < 2 && error == 0; i++)
		error = read_number(r, config_setting_get_elem(from, i), key, &to[i]);
	return error;
}

static int read_shares(const struct reader *r, const config_setting_t *from, const struct key *key,
		       double *to)
{
	int count = config_setting_length(from), error = 0;

	if (!is_row(from) || count > CLASSES_MAX)
		return fail(r, from, "%s is no list of up to %d numbers, as in (0.9, 0.1).",
			    key->name, CLASSES_MAX);
	for (int i = 0; i < CLASSES_MAX && error == 0; i++) {
		to[i] = 0;
		if (i < count)
			error = read_number(r, config_setting_get_elem(from, (unsigned)i), key,
					    &to[i]);
	}
	return error;
}

static int read_key(const struct reader *r, const config_setting_t *from, const struct key *key,
		    void *base)
{
	void *to = (char *)base + key->offset;
	double number = 0;
	int error;

	switch (key->kind) {
	case TEXT:
		return read_text(r, from, key, to, TEXT_SIZE);
	case NAME:
		return read_text(r, from, key, to, NAME_SIZE);
	case NUMBER:
		return read_number(r, from, key, to);
	case COUNT:
		error = read_number(r, from, key, &number);
		if (error != 0)
			return error;
		if (number != floor(number))
			return fail(r, from, "%s is not a whole number.", key->name);
		*(unsigned *)to = (unsigned)number;
		return 0;
	case DURATION:
		return read_duration(r, from, key, to);
	case LAW:
		return read_law(r, from, key->name, to);
	case FLAG:
		if (config_setting_type(from) != CONFIG_TYPE_BOOL)
			return fail(r, from, "%s is neither true nor false.", key->name);
		*(bool *)to = config_setting_get_bool(from) != 0;
		return 0;
	case WORD:
		return read_word(r, from, key, to);
	case RANGE:
		return read_range(r, from, key, to);
	case SHARES:
		return read_shares(r, from, key, to);
	case OTHER:
		break;
	}
	return 0;
}

static int fail_unknown(const struct reader *r, const config_setting_t *at, const struct key *keys)
{
	char known[WORDS_SIZE] = "";

	for (; keys->name != NULL; keys++)
		join(known, sizeof(known), keys->name);
	return fail(r, at, "There is no setting \"%s\" here. There are: %s.", label(at), known);
}

/* Every setting of a group by a table, which ends with one without a name. */
static int read_group(const struct reader *r, const config_setting_t *group, const struct key *keys,
		      void *base)
{
	int error = 0;

	if (!config_setting_is_group(group))
		return fail(r, group, "%s is no group of settings, as in { a = 1; }.",
			    label(group));
	for (int i = 0; i < config_setting_length(group) && error == 0; i++) {
		const config_setting_t *one = config_setting_get_elem(group, (unsigned)i);
		const struct key *key = keys;

		while (key->name != NULL && strcmp(key->name, label(one)) != 0)
			key++;
		if (key->name == NULL)
			return fail_unknown(r, one, keys);
		error = read_key(r, one, key, base);
	}
	return error;
}

/* The elements of a list, or the one group that stands in its place. */
static const config_setting_t *element(const config_setting_t *list, unsigned index)
{
	if (config_setting_is_group(list))
		return index == 0 ? list : NULL;
	return config_setting_get_elem(list, index);
}

static int check_list(const struct reader *r, const config_setting_t *list, unsigned max)
{
	if (!config_setting_is_group(list) && !config_setting_is_list(list))
		return fail(r, list, "%s is no list of groups, as in ( { ... }, { ... } ).",
			    label(list));
	if (config_setting_is_list(list) && (unsigned)config_setting_length(list) > max)
		return fail(r, list, "%s has more than %u elements.", label(list), max);
	if (element(list, 0) == NULL)
		return fail(r, list, "%s is empty.", label(list));
	return 0;
}

static bool has(const config_setting_t *group, const char *name)
{
	return config_setting_get_member(group, name) != NULL;
}

#define AT(type, field) offsetof(struct type, field)

/* A time in seconds at the beginning of each line; NULL, or what is wrong with the last. */
static const char *read_times(FILE *file, struct arrivals_model *to)
{
	double seconds, last = 0;
	size_t room = 0;
	int got;

	while ((got = fscanf(file, "%lf%*[^\n]", &seconds)) == 1) {
		if (!(seconds >= last && seconds * 1e9 <= DURATION_MAX))
			return "It is before the one before, or far too late";
		if (to->count == REPLAY_MAX)
			return "There are too many times";
		if (to->count == room) {
			room = room == 0 ? 1024 : 2 * room;
			to->times = memory_grow(to->times, room * sizeof(to->times[0]));
		}
		to->times[to->count++] = (weir_time)(seconds * 1e9);
		last = seconds;
	}
	return got == EOF && to->count > 0 ? NULL : "There is no time in seconds";
}

static int read_replay(const struct reader *r, const config_setting_t *at,
		       struct arrivals_model *to)
{
	const char *name = config_setting_get_string(at);
	char path[4096];
	const char *wrong;
	FILE *file;

	if (name == NULL)
		return fail(r, at, "file is not a text in quotes.");
	if (snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : r->folder,
		     name[0] == '/' || r->folder[0] == '\0' ? "" : "/", name) >= (int)sizeof(path))
		return fail(r, at, "The name of the file is too long.");
	file = fopen(path, "r");
	if (file == NULL)
		return fail(r, at, "%s: %s.", path, strerror(errno));
	wrong = read_times(file, to);
	fclose(file);
	return wrong == NULL ? 0 : fail(r, at, "%s:%zu: %s.", path, to->count + 1, wrong);
}

static int read_arrivals(const struct reader *r, const config_setting_t *root,
			 struct arrivals_model *to)
{
	static const char *const processes[] = {"poisson",     "regular", "batches", "onoff",
						"selfsimilar", "closed",  "replay",  NULL};
	static const struct key keys[] = {
		{"process", WORD, AT(arrivals_model, process), 0, 0, processes},
		{"batch", NUMBER, AT(arrivals_model, batch), 1, 1e6, NULL},
		{"on", LAW, AT(arrivals_model, on), 0, 0, NULL},
		{"off", LAW, AT(arrivals_model, off), 0, 0, NULL},
		{"low", NUMBER, AT(arrivals_model, low), 0, 1, NULL},
		{"think", LAW, AT(arrivals_model, think), 0, 0, NULL},
		{"file", OTHER, 0, 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *group = config_setting_get_member(root, "arrivals");
	const config_setting_t *file;
	int error;

	*to = (struct arrivals_model){.batch = 1};
	if (group == NULL)
		return 0;
	error = read_group(r, group, keys, to);
	if (error != 0)
		return error;
	file = config_setting_get_member(group, "file");
	if ((to->process == ARRIVALS_REPLAY) != (file != NULL))
		return fail(r, group,
			    file == NULL ? "A replay needs a file of times."
					 : "Only a replay has a file.");
	if (to->process == ARRIVALS_CLOSED && to->think.mean == 0)
		return fail(r, group, "Closed arrivals need a time to think, above 0.");
	if ((to->process == ARRIVALS_ONOFF || to->process == ARRIVALS_SELFSIMILAR) &&
	    (to->on.mean == 0 || to->off.mean == 0))
		return fail(r, group, "These arrivals need times on and off, above 0.");
	if (to->process == ARRIVALS_SELFSIMILAR &&
	    (to->on.kind != LAW_CONSTANT || to->off.kind != LAW_CONSTANT))
		return fail(r, group,
			    "Selfsimilar arrivals have a law of their own: give on and off "
			    "as mean durations.");
	return file != NULL ? read_replay(r, file, to) : 0;
}

static int read_client(const struct reader *r, const config_setting_t *root,
		       struct client_model *to)
{
	static const struct key keys[] = {
		{"deadline", DURATION, AT(client_model, deadline), 1, 0, NULL},
		{"timeout", DURATION, AT(client_model, timeout), 1, 0, NULL},
		{"retries", COUNT, AT(client_model, retries), 0, 100, NULL},
		{"backoff", LAW, AT(client_model, backoff), 0, 0, NULL},
		{"backoff_growth", NUMBER, AT(client_model, backoff_growth), 1, 10, NULL},
		{"stops_work", FLAG, AT(client_model, stops_work), 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *group = config_setting_get_member(root, "client");

	*to = (struct client_model){.backoff_growth = 1};
	return group == NULL ? 0 : read_group(r, group, keys, to);
}

static int read_station(const struct reader *r, const config_setting_t *group,
			struct station_plan *to)
{
	static const char *const disciplines[] = {"fifo", "shared", "delay", NULL};
	static const struct key keys[] = {
		{"name", NAME, AT(station_plan, name), 0, 0, NULL},
		{"discipline", WORD, AT(station_plan, model.discipline), 0, 0, disciplines},
		{"workers", COUNT, AT(station_plan, model.workers), 1, 1e6, NULL},
		{"speed", NUMBER, AT(station_plan, model.speed), 1e-3, 1000, NULL},
		{"contention", NUMBER, AT(station_plan, model.contention), 0, 1, NULL},
		{"coherency", NUMBER, AT(station_plan, model.coherency), 0, 1, NULL},
		{"second_half", NUMBER, AT(station_plan, model.second_half), 0, 1, NULL},
		{"kept", FLAG, AT(station_plan, kept), 0, 0, NULL},
		{"cpu", FLAG, AT(station_plan, cpu), 0, 0, NULL},
		{"work", LAW, AT(station_plan, work), 0, 0, NULL},
		{"pause_every", LAW, AT(station_plan, pause_every), 0, 0, NULL},
		{"pause_length", LAW, AT(station_plan, pause_length), 0, 0, NULL},
		{.name = NULL},
	};
	int error;

	*to = (struct station_plan){
		.model = {.workers = 1, .speed = 1, .second_half = 1},
		.cpu = true,
	};
	error = read_group(r, group, keys, to);
	if (error != 0)
		return error;
	if (to->name[0] == '\0')
		return fail(r, group, "A station has no name.");
	to->cpu &= !to->kept && to->model.discipline != STATION_DELAY;
	if (to->kept && to->model.discipline != STATION_FIFO)
		return fail(r, group, "Only a fifo station has workers that can be kept.");
	if (to->model.discipline == STATION_DELAY &&
	    (has(group, "workers") || has(group, "contention") || has(group, "coherency") ||
	     has(group, "second_half")))
		return fail(r, group, "A delay station has no workers, and nobody who slows them.");
	if ((to->pause_every.mean == 0) != (to->pause_length.mean == 0))
		return fail(r, group, "pause_every and pause_length go together.");
	return 0;
}

/* Its index; the number of stations if there is none of that name. */
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
	int error = list == NULL ? fail(r, root, "There is no server.")
				 : check_list(r, list, STATIONS_MAX);

	while (error == 0 && (one = element(list, s->station_count)) != NULL) {
		struct station_plan *station = &s->stations[s->station_count];

		error = read_station(r, one, station);
		if (error == 0 && station_named(s, station->name) < s->station_count)
			return fail(r, one, "There are two stations \"%s\".", station->name);
		s->station_count++;
	}
	return error;
}

/* A group of laws by station. */
static int read_work(const struct reader *r, const config_setting_t *group,
		     const struct scenario *s, struct class_model *to)
{
	if (!config_setting_is_group(group))
		return fail(r, group,
			    "work is no group of laws by station, as in { cpu = \"1ms\"; }.");
	for (unsigned i = 0; i < s->station_count; i++)
		to->work[i] = (struct law){.kind = LAW_CONSTANT};
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *one = config_setting_get_elem(group, (unsigned)i);
		unsigned station = station_named(s, label(one));

		if (station == s->station_count)
			return fail(r, one, "There is no station \"%s\".", label(one));
		if (read_law(r, one, label(one), &to->work[station]) != 0)
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
		{"name", NAME, AT(class_model, name), 0, 0, NULL},
		{"share", NUMBER, AT(class_model, share), 0, 1e9, NULL},
		{"work", OTHER, 0, 0, 0, NULL},
		{"cancelled", NUMBER, AT(class_model, cancelled), 0, 1, NULL},
		{"cancel_after", LAW, AT(class_model, cancel_after), 0, 0, NULL},
		{"failing", NUMBER, AT(class_model, failing), 0, 1, NULL},
		{"fail_after", LAW, AT(class_model, fail_after), 0, 0, NULL},
		{"fail_as", WORD, AT(class_model, fail_as), 0, 0, outcomes},
		{"stream", FLAG, AT(class_model, stream), 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *work;
	int error;

	*to = (struct class_model){.name = "all", .share = 1, .fail_as = WEIR_FAILED};
	for (unsigned i = 0; i < s->station_count; i++)
		to->work[i] = s->stations[i].work;
	error = group == NULL ? 0 : read_group(r, group, keys, to);
	if (error != 0 || group == NULL)
		return error;
	if (to->cancelled > 0 && !has(group, "cancel_after"))
		return fail(r, group, "cancelled needs cancel_after.");
	work = config_setting_get_member(group, "work");
	return work == NULL ? 0 : read_work(r, work, s, to);
}

static int check_work(const struct reader *r, const config_setting_t *at, const struct scenario *s,
		      const struct class_model *class)
{
	for (unsigned i = 0; i < s->station_count; i++)
		if (class->work[i].mean > 0)
			return 0;
	return fail(r, at, "Calls of class \"%s\" have no work at any station.", class->name);
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
	error = check_list(r, list, CLASSES_MAX);
	while (error == 0 && (one = element(list, s->class_count)) != NULL) {
		error = read_class(r, one, s, &s->classes[s->class_count]);
		if (error == 0)
			error = check_work(r, one, s, &s->classes[s->class_count]);
		shares += s->classes[s->class_count++].share;
	}
	if (error == 0 && shares == 0)
		return fail(r, list, "All classes have a share of 0.");
	return error;
}

/* Of a station that every call passes by, somebody expects something. */
static int check_stations(const struct reader *r, const config_setting_t *root,
			  const struct scenario *s)
{
	const config_setting_t *list = config_setting_get_member(root, "server");

	for (unsigned i = 0; i < s->station_count; i++) {
		double work = 0;

		for (unsigned c = 0; c < s->class_count; c++)
			work += s->classes[c].work[i].mean;
		if (work == 0)
			return fail(r, element(list, i), "No call has work at station \"%s\".",
				    s->stations[i].name);
	}
	return 0;
}

static int check_limit(const struct reader *r, const config_setting_t *at, const char *text)
{
	_Alignas(max_align_t) char config[WEIR_LIMIT_CONFIG_MAX];
	const struct weir_limit_ops *ops;
	char why[WORDS_SIZE];

	if (weir_limit_from_text(text, &ops, config, why, sizeof(why)) != 0)
		return fail(r, at, "%s: %s", text, why);
	return 0;
}

static int read_groups(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	static const struct key keys[] = {
		{"count", COUNT, AT(limiter_group, count), 1, LIMITERS_MAX, NULL},
		{"start", DURATION, AT(limiter_group, start), 0, 0, NULL},
		{"limit", TEXT, AT(limiter_group, limit), 0, 0, NULL},
		{.name = NULL},
	};
	const config_setting_t *list = config_setting_get_member(root, "limiters");
	const config_setting_t *one;
	int error;

	s->groups[0] = (struct limiter_group){.count = 1};
	s->group_count = list == NULL;
	if (list == NULL)
		return 0;
	error = check_list(r, list, GROUPS_MAX);
	while (error == 0 && (one = element(list, s->group_count)) != NULL) {
		struct limiter_group *group = &s->groups[s->group_count++];

		*group = (struct limiter_group){.count = 1};
		error = read_group(r, one, keys, group);
		if (error == 0 && group->limit[0] != '\0')
			error = check_limit(r, config_setting_get_member(one, "limit"),
					    group->limit);
	}
	if (error == 0 && scenario_limiters(s) > LIMITERS_MAX)
		return fail(r, list, "There are more than %d limiters.", LIMITERS_MAX);
	if (error == 0 && s->groups[0].start != 0)
		return fail(r, list, "The first limiters start later than the calls.");
	return error;
}

/* A phase as it is in the file: loads are not rates yet, and a station is a name. */
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
		return fail(r, group, "A phase has no length.");
	if (open ? has(group, "rate") == has(group, "load")
		 : has(group, "rate") || has(group, "load"))
		return fail(r, group,
			    open ? "A phase needs a rate or a load, and not both."
				 : "These arrivals have neither rate nor load.");
	if ((s->arrivals.process == ARRIVALS_CLOSED) != (phase->clients > 0))
		return fail(r, group, "Closed arrivals, and no others, need clients.");
	if ((has(group, "load") || has(group, "background_load")) && isinf(one))
		return fail(r, group, "A load is of a server with bounds: give a rate.");
	for (int i = 0; i < 2 && has(group, "load"); i++)
		phase->rate[i] = raw->load[i] * one;
	if (has(group, "background_load"))
		phase->background = raw->background_load * one;
	if (phase->rate[0] > RATE_MAX || phase->rate[1] > RATE_MAX)
		return fail(r, group, "More than %g calls a second.", RATE_MAX);
	for (unsigned i = 0; i < s->class_count; i++)
		shares += phase->mix[i];
	if (shares == 0)
		return fail(r, group, "mix gives nothing to any class.");
	return 0;
}

/* Which station changes, and how. */
static int finish_change(const struct reader *r, const config_setting_t *group,
			 const struct scenario *s, struct raw_phase *raw)
{
	struct phase *phase = &raw->phase;

	phase->station = station_named(s, raw->station);
	if (raw->station[0] == '\0')
		phase->station = 0;
	if (phase->station == s->station_count)
		return fail(r, group, "There is no station \"%s\".", raw->station);
	if (has(group, "workers") && phase->workers != floor(phase->workers))
		return fail(r, group, "workers is not a whole number.");
	if (has(group, "workers") && s->stations[phase->station].model.discipline == STATION_DELAY)
		return fail(r, group, "A delay station has no workers.");
	return 0;
}

static int read_phase(const struct reader *r, const config_setting_t *group,
		      const struct scenario *s, struct phase *to)
{
	static const struct key keys[] = {
		{"name", NAME, AT(raw_phase, phase.name), 0, 0, NULL},
		{"length", DURATION, AT(raw_phase, phase.length), 1e6, 0, NULL},
		{"warm_up", FLAG, AT(raw_phase, phase.warm_up), 0, 0, NULL},
		{"rate", RANGE, AT(raw_phase, phase.rate), 0, RATE_MAX, NULL},
		{"load", RANGE, AT(raw_phase, load), 0, 1000, NULL},
		{"background", NUMBER, AT(raw_phase, phase.background), 0, RATE_MAX, NULL},
		{"background_load", NUMBER, AT(raw_phase, background_load), 0, 1000, NULL},
		{"clients", COUNT, AT(raw_phase, phase.clients), 1, 100000, NULL},
		{"slower", RANGE, AT(raw_phase, phase.slower), 1e-6, 1e6, NULL},
		{"station", NAME, AT(raw_phase, station), 0, 0, NULL},
		{"workers", NUMBER, AT(raw_phase, phase.workers), 0, 1e6, NULL},
		{"speed", NUMBER, AT(raw_phase, phase.speed), 0, 1000, NULL},
		{"mix", SHARES, AT(raw_phase, phase.mix), 0, 1e9, NULL},
		{"failing", NUMBER, AT(raw_phase, phase.failing), 0, 1, NULL},
		{"restart", FLAG, AT(raw_phase, phase.restart), 0, 0, NULL},
		{.name = NULL},
	};
	struct raw_phase raw = {
		.phase = {.slower = {1, 1}, .workers = -1, .speed = -1, .failing = -1},
	};
	int error;

	for (unsigned i = 0; i < s->class_count; i++)
		raw.phase.mix[i] = s->classes[i].share;
	error = read_group(r, group, keys, &raw);
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
	int error = list == NULL ? fail(r, root, "There are no phases.")
				 : check_list(r, list, PHASES_MAX);

	while (error == 0 && (one = element(list, s->phase_count)) != NULL) {
		struct phase *phase = &s->phases[s->phase_count++];

		error = read_phase(r, one, s, phase);
		if (error == 0 && phase->name[0] == '\0')
			snprintf(phase->name, sizeof(phase->name), "%u", s->phase_count);
		length += (double)phase->length * s->rounds;
	}
	if (error == 0 && length > TOTAL_MAX)
		return fail(r, list, "All rounds together are longer than thirty years.");
	return error;
}

static int read_root(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	static const struct key keys[] = {
		{"name", NAME, AT(scenario, name), 0, 0, NULL},
		{"family", NAME, AT(scenario, family), 0, 0, NULL},
		{"about", TEXT, AT(scenario, about), 0, 0, NULL},
		{"rounds", COUNT, AT(scenario, rounds), 1, 1e6, NULL},
		{"sweep", DURATION, AT(scenario, sweep), 1e6, 0, NULL},
		{"arrivals", OTHER, 0, 0, 0, NULL},
		{"client", OTHER, 0, 0, 0, NULL},
		{"server", OTHER, 0, 0, 0, NULL},
		{"classes", OTHER, 0, 0, 0, NULL},
		{"limiters", OTHER, 0, 0, 0, NULL},
		{"phases", OTHER, 0, 0, 0, NULL},
		{.name = NULL},
	};
	int error = read_group(r, root, keys, s);

	if (error == 0 && s->name[0] == '\0')
		return fail(r, root, "The scenario has no name.");
	if (error == 0)
		error = read_arrivals(r, root, &s->arrivals);
	if (error == 0)
		error = read_client(r, root, &s->client);
	if (error == 0)
		error = read_stations(r, root, s);
	if (error == 0)
		error = read_classes(r, root, s);
	if (error == 0)
		error = check_stations(r, root, s);
	if (error == 0)
		error = read_groups(r, root, s);
	if (error == 0)
		error = read_phases(r, root, s);
	return error;
}

/* FNV-1a. */
static uint64_t digest_of(uint64_t digest, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
	return digest;
}

/* What is set, in that order, from whichever file: not how it is written, and no comments. */
static uint64_t digest_of_setting(uint64_t digest, const config_setting_t *setting)
{
	const char *name = label(setting), *text = config_setting_get_string(setting);
	double number = is_number(setting) ? number_of(setting) : config_setting_get_bool(setting);
	int type = is_number(setting) ? CONFIG_TYPE_FLOAT : config_setting_type(setting);
	int count = config_setting_length(setting);

	digest = digest_of(digest, name, strlen(name) + 1);
	digest = digest_of(digest, &type, sizeof(type));
	digest = digest_of(digest, &number, sizeof(number));
	if (text != NULL)
		digest = digest_of(digest, text, strlen(text) + 1);
	for (int i = 0; i < count; i++)
		digest = digest_of_setting(digest, config_setting_get_elem(setting, (unsigned)i));
	return digest;
}

static int read_config(const struct reader *r, const config_setting_t *root, struct scenario *s)
{
	const uint64_t basis = UINT64_C(0xcbf29ce484222325);
	int error = read_root(r, root, s);

	if (error == 0)
		s->digest = digest_of(digest_of_setting(basis, root), s->arrivals.times,
				      s->arrivals.count * sizeof(s->arrivals.times[0]));
	return error;
}

static int fail_syntax(const struct reader *r, const config_t *config)
{
	const char *included = config_error_file(config);

	snprintf(r->why, r->why_size, "%s:%d: %s.", included != NULL ? included : r->name,
		 config_error_line(config), config_error_text(config));
	return -EINVAL;
}

static int from_text(struct scenario *s, const struct reader *r, const char *text)
{
	config_t config;
	int error;

	*s = (struct scenario){.rounds = 1};
	config_init(&config);
	config_set_include_dir(&config, r->folder[0] == '\0' ? "." : r->folder);
	if (config_read_string(&config, text) == CONFIG_TRUE)
		error = read_config(r, config_root_setting(&config), s);
	else
		error = fail_syntax(r, &config);
	config_destroy(&config);
	if (error != 0)
		scenario_free(s);
	return error;
}

int scenario_from_text(struct scenario *s, const char *name, const char *text, char *why,
		       size_t why_size)
{
	const struct reader r = {.name = name, .folder = "", .why = why, .why_size = why_size};

	return from_text(s, &r, text);
}

/* All of a file, with a zero at its end and nowhere else. NULL: errno says why. */
static char *whole_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;
	int error = 0;

	if (file == NULL)
		return NULL;
	errno = 0;
	if (getdelim(&text, &size, '\0', file) < 0)
		error = errno != 0 ? errno : ENODATA;
	else if (!feof(file))
		error = EILSEQ;
	fclose(file);
	if (error != 0)
		free(text);
	errno = error;
	return error == 0 ? text : NULL;
}

int scenario_from_file(struct scenario *s, const char *path, char *why, size_t why_size)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash == path ? strdup("/")
				     : strndup(path, slash == NULL ? 0 : (size_t)(slash - path));
	const struct reader r = {.name = path, .folder = folder, .why = why, .why_size = why_size};
	char *text = whole_file(path);
	int error = -errno;

	if (text == NULL)
		snprintf(why, why_size, "%s: %s.", path,
			 error == -ENODATA  ? "It is empty"
			 : error == -EILSEQ ? "It is no text"
					    : strerror(-error));
	else
		error = from_text(s, &r, text);
	free(text);
	free(folder);
	return error;
}

bool scenario_builtin(struct scenario *s, unsigned index)
{
	char why[300];

	if (scenario_text(index) == NULL)
		return false;
	if (scenario_from_text(s, "built-in", scenario_text(index), why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	return true;
}

int scenario_find(struct scenario *s, const char *name, char *why, size_t why_size)
{
	if (strpbrk(name, "/.") != NULL)
		return scenario_from_file(s, name, why, why_size);
	for (unsigned i = 0; scenario_builtin(s, i); i++) {
		if (strcmp(s->name, name) == 0)
			return 0;
		scenario_free(s);
	}
	snprintf(
		why, why_size,
		"There is no scenario \"%s\": see the list; the name of a file has a slash or a dot.",
		name);
	return -ENOENT;
}
