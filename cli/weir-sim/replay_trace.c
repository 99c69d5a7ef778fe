/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay_trace.c - read line by line, then sort, as logs are rarely in the order that is needed.
 */
#include "replay_trace.h"

#include "bench/sim/alloc_or_abort.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS_MAX 100000000

/* Nanoseconds, ten years: a longer log must have a wrong unit. */
#define LENGTH_MAX ((weir_dur)10 * 366 * 86400 * WEIR_S)

/* Known columns; the last three are alternatives. */
enum column { START, END, RTT, INFLIGHT, OUTCOME, STATUS, DID_DROP, COLUMNS };

static const char *const column_names[COLUMNS] = {"start",   "end",    "rtt",     "inflight",
						  "outcome", "status", "did_drop"};

struct reader {
	const char *name;
	size_t line;
	char *why;
	size_t why_size;
	char separator;
	int place[COLUMNS];     /* index of the field; negative: absent */
	uint64_t unit[COLUMNS]; /* nanoseconds */
	struct trace *trace;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static bool fail(const struct reader *r, const char *format,
						       ...)
{
	int begun = snprintf(r->why, r->why_size, "%s:%zu: ", r->name, r->line);
	va_list args;

	va_start(args, format);
	if (begun >= 0 && (size_t)begun < r->why_size)
		vsnprintf(r->why + begun, r->why_size - (size_t)begun, format, args);
	va_end(args);
	return false;
}

static char *trimmed(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* Cut off the next field; *rest is what follows, or NULL. A quoted field may contain anything. */
static char *next_field(char **rest, char separator)
{
	char *field = *rest, *end = field;

	if (*field == '"') {
		end = strchr(++field, '"');
		while (end != NULL && end[1] == '"')
			end = strchr(end + 2, '"');
		if (end != NULL)
			*end++ = '\0';
	}
	end = end == NULL ? NULL : strchr(end, separator);
	*rest = end == NULL ? NULL : end + 1;
	if (end != NULL)
		*end = '\0';
	return trimmed(field);
}

/*
 * Digits with an optional fraction, times the unit in nanoseconds. Exact, since seconds since 1970
 * with microseconds have too many digits for a double.
 */
static const char *digits_read(const char *text, uint64_t unit, uint64_t *to)
{
	uint64_t whole = 0, part = 0, worth = unit;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++) {
		if (whole >= (uint64_t)INT64_MAX / unit / 10 - 1)
			return NULL;
		whole = whole * 10 + (uint64_t)(*text - '0');
	}
	if (*text == '.')
		text++;
	for (; isdigit((unsigned char)*text); text++) {
		worth /= 10;
		part += worth * (uint64_t)(*text - '0');
	}
	*to = whole * unit + part;
	return text;
}

static bool duration_of(const char *text, uint64_t unit, uint64_t *to)
{
	const char *end = digits_read(text, unit, to);
	char *behind;
	double number;

	if (end == NULL || (*end != 'e' && *end != 'E'))
		return end != NULL && *end == '\0';
	number = strtod(text, &behind) * (double)unit;
	if (*behind != '\0' || !(number >= 0 && number < 9e18))
		return false;
	*to = (uint64_t)number;
	return true;
}

/* One digit or two, and step over them. */
static bool two_digits_read(const char **text, unsigned *to)
{
	const char *at = *text;

	for (*to = 0; at < *text + 2 && *at >= '0' && *at <= '9'; at++)
		*to = 10 * *to + (unsigned)(*at - '0');
	if (at == *text)
		return false;
	*text = at;
	return true;
}

/* "Z", "+01:00", "-0530" or nothing, to the seconds to subtract. */
static bool zone_read(const char *text, int64_t *seconds)
{
	unsigned hours, minutes;
	const char *at = text + 1;

	*seconds = 0;
	if (strcmp(text, "Z") == 0 || *text == '\0')
		return true;
	if (*text != '+' && *text != '-')
		return false;
	if (!two_digits_read(&at, &hours))
		return false;
	at += *at == ':';
	if (!two_digits_read(&at, &minutes))
		return false;
	*seconds = (int64_t)(hours * 3600 + minutes * 60) * (*text == '-' ? -1 : 1);
	return *at == '\0';
}

static bool date_read(const char *text, uint64_t *to)
{
	struct tm parts = {.tm_isdst = 0};
	const char *behind = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
	uint64_t fraction = 0;
	int64_t seconds, zone;

	if (behind == NULL)
		behind = strptime(text, "%Y-%m-%d %H:%M:%S", &parts);
	if (behind != NULL && *behind == '.') {
		uint64_t worth = WEIR_S;

		for (behind++; isdigit((unsigned char)*behind); behind++) {
			worth /= 10;
			fraction += worth * (uint64_t)(*behind - '0');
		}
	}
	if (behind == NULL || !zone_read(behind, &zone))
		return false;
	seconds = (int64_t)timegm(&parts) - zone;
	if (seconds < 0 || seconds > INT64_MAX / (int64_t)WEIR_S - 1)
		return false;
	*to = (uint64_t)seconds * WEIR_S + fraction;
	return true;
}

/* Read the time in a column. */
static bool time_read(const struct reader *r, char **fields, enum column column, int64_t *to)
{
	const char *text = fields[column];
	uint64_t time = 0;
	bool good = duration_of(text, r->unit[column], &time);

	if (!good && column != RTT)
		good = strchr(text, '-') != NULL && date_read(text, &time);
	*to = (int64_t)time;
	return good || fail(r, "%s \"%.40s\" is not a %s.", column_names[column], text,
			    column == RTT ? "duration" : "time");
}

static bool count_read(const struct reader *r, const char *text, uint32_t *to)
{
	uint64_t count;

	if (!duration_of(text, 1, &count) || text[strspn(text, "0123456789")] != '\0' ||
	    count == 0 || count > WEIR_LIMIT_MAX)
		return fail(r, "inflight \"%.40s\" is not from 1 (the call itself) to %u.", text,
			    (unsigned)WEIR_LIMIT_MAX);
	*to = (uint32_t)count;
	return true;
}

static bool outcome_read(const struct reader *r, const char *text, enum weir_outcome *to)
{
	static const char *const names[] = {
		[WEIR_SUCCESS] = "success",     [WEIR_IGNORE] = "ignored",
		[WEIR_DROPPED] = "dropped",     [WEIR_TIMED_OUT] = "timed_out",
		[WEIR_CANCELLED] = "cancelled", [WEIR_FAILED] = "failed",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], text) == 0) {
			*to = (enum weir_outcome)i;
			return true;
		}
	return fail(r,
		    "outcome \"%.40s\" is not success, ignored, dropped, timed_out, cancelled or "
		    "failed.",
		    text);
}

static bool status_read(const struct reader *r, const char *text, enum weir_outcome *to)
{
	if (strlen(text) != 3 || text[strspn(text, "0123456789")] != '\0' || text[0] == '0')
		return fail(r, "status \"%.40s\" is not an HTTP status.", text);
	switch (strtol(text, NULL, 10)) {
	case 429:
	case 503:
		*to = WEIR_DROPPED;
		return true;
	case 504:
		*to = WEIR_TIMED_OUT;
		return true;
	case 499: /* nginx: the client closed the connection */
		*to = WEIR_CANCELLED;
		return true;
	case 502:
		*to = WEIR_FAILED;
		return true;
	default:
		*to = text[0] >= '4' ? WEIR_IGNORE : WEIR_SUCCESS;
		return true;
	}
}

static bool drop_read(const struct reader *r, const char *text, enum weir_outcome *to)
{
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return fail(r, "did_drop \"%.40s\" is neither 0 nor 1.", text);
	*to = text[0] == '1' ? WEIR_DROPPED : WEIR_SUCCESS;
	return true;
}

static bool has(const struct reader *r, enum column column)
{
	return r->place[column] >= 0;
}

/* Read the two of start, end and rtt that the trace has. */
static bool times_read(const struct reader *r, char **fields, int64_t *start, int64_t *end)
{
	int64_t rtt = 0;

	if (has(r, START) && !time_read(r, fields, START, start))
		return false;
	if (has(r, END) && !time_read(r, fields, END, end))
		return false;
	if (has(r, RTT) && !time_read(r, fields, RTT, &rtt))
		return false;
	if (has(r, RTT) && (weir_dur)rtt > LENGTH_MAX)
		return fail(r, "The call takes longer than ten years: is the unit right?");
	if (!has(r, START))
		*start = *end - rtt;
	else if (!has(r, END))
		*end = INT64_MAX - rtt < *start ? INT64_MAX : *start + rtt;
	return *end >= *start || fail(r, "The call ends before it starts.");
}

static bool call_read(const struct reader *r, char **fields, struct trace_call *to)
{
	int64_t start = 0, end = 0;

	*to = (struct trace_call){.inflight = 1, .outcome = WEIR_SUCCESS};
	if (!times_read(r, fields, &start, &end))
		return false;
	to->start = (weir_time)start;
	to->end = (weir_time)end;
	if (has(r, INFLIGHT) && !count_read(r, fields[INFLIGHT], &to->inflight))
		return false;
	if (has(r, OUTCOME))
		return outcome_read(r, fields[OUTCOME], &to->outcome);
	if (has(r, STATUS))
		return status_read(r, fields[STATUS], &to->outcome);
	return !has(r, DID_DROP) || drop_read(r, fields[DID_DROP], &to->outcome);
}

static bool line_read(struct reader *r, char *line)
{
	struct trace *t = r->trace;
	char *fields[COLUMNS] = {NULL}, *rest = line;

	for (int place = 0; rest != NULL; place++) {
		char *field = next_field(&rest, r->separator);

		for (int i = 0; i < COLUMNS; i++)
			if (r->place[i] == place)
				fields[i] = field;
	}
	for (int i = 0; i < COLUMNS; i++)
		if (r->place[i] >= 0 && fields[i] == NULL)
			return fail(r, "There is no %s: the line has fewer fields than the first.",
				    column_names[i]);
	if (t->count == CALLS_MAX)
		return fail(r, "There are more than %d calls.", CALLS_MAX);
	if (t->count == r->room) {
		r->room = r->room == 0 ? 1024 : 2 * r->room;
		t->calls = realloc_or_abort(t->calls, r->room * sizeof(t->calls[0]));
	}
	return call_read(r, fields, &t->calls[t->count]) && ++t->count > 0;
}

/* The column with that name, and its unit; COLUMNS if it is to be ignored. */
static enum column column_named(const char *name, uint64_t *unit)
{
	static const struct {
		const char *suffix;
		uint64_t unit;
	} units[] = {{"", WEIR_S}, {"_s", WEIR_S}, {"_ms", WEIR_MS}, {"_us", WEIR_US}, {"_ns", 1}};

	for (unsigned c = 0; c < COLUMNS; c++) {
		size_t length = strlen(column_names[c]);

		if (strncmp(name, column_names[c], length) != 0)
			continue;
		for (size_t i = 0; i < (c <= RTT ? sizeof(units) / sizeof(units[0]) : 1); i++)
			if (strcmp(name + length, units[i].suffix) == 0) {
				*unit = units[i].unit;
				return (enum column)c;
			}
	}
	return COLUMNS;
}

static bool head_read(struct reader *r, char *line)
{
	char *rest = line;

	r->separator = strchr(line, '\t') != NULL ? '\t' : ',';
	for (int place = 0; rest != NULL; place++) {
		const char *name = next_field(&rest, r->separator);
		uint64_t unit = 0;
		enum column column = column_named(name, &unit);

		if (column == COLUMNS)
			continue;
		if (has(r, column))
			return fail(r, "The column %s appears twice.", column_names[column]);
		r->place[column] = place;
		r->unit[column] = unit;
	}
	if (has(r, START) + has(r, END) + has(r, RTT) != 2)
		return fail(r,
			    "Two of the columns start, end and rtt are required, with units as in "
			    "start_ms.");
	if (has(r, OUTCOME) + has(r, STATUS) + has(r, DID_DROP) > 1)
		return fail(r,
			    "Only one of the columns outcome, status and did_drop may be given.");
	return true;
}

static bool lines_read(struct reader *r, FILE *in)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	bool good = true, headed = false;

	while (good && (length = getline(&line, &room, in)) >= 0) {
		char *text = line;

		r->line++;
		if (strlen(line) != (size_t)length) {
			good = fail(r, "The line contains a zero byte: the file is not text.");
			break;
		}
		text[strcspn(text, "\r\n")] = '\0';
		if (text[0] == '\0' || text[0] == '#')
			continue;
		good = headed ? line_read(r, text) : head_read(r, text);
		headed = true;
	}
	if (good && ferror(in))
		good = fail(r, "The file cannot be read any further.");
	if (good && r->trace->count == 0)
		good = fail(r, "There is no call%s.", headed ? "" : ", and no line with columns");
	free(line);
	return good;
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* A total order: calls that are equal in all these fields are equal. */
static int by_end(const void *one, const void *other)
{
	const struct trace_call *a = one, *b = other;
	int order = ORDER((int64_t)a->end, (int64_t)b->end);

	if (order == 0)
		order = ORDER((int64_t)a->start, (int64_t)b->start);
	if (order == 0)
		order = ORDER(a->inflight, b->inflight);
	return order != 0 ? order : ORDER(a->outcome, b->outcome);
}

static int by_start(const void *one, const void *other, void *arg)
{
	const struct trace *t = arg;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	int order = ORDER(t->calls[a].start, t->calls[b].start);

	return order != 0 ? order : ORDER(a, b);
}

/* Shift times to begin at 0. False if they are too far apart. */
static bool shift(struct trace *t)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < t->count; i++)
		if ((int64_t)t->calls[i].start < first)
			first = (int64_t)t->calls[i].start;
	t->length = t->calls[t->count - 1].end - (uint64_t)first;
	for (size_t i = 0; i < t->count; i++) {
		t->calls[i].start -= (uint64_t)first;
		t->calls[i].end -= (uint64_t)first;
	}
	return t->length <= LENGTH_MAX;
}

/* A call that ends when another begins is not counted with it. */
static void derive_inflight(struct trace *t)
{
	size_t ended = 0;

	for (size_t i = 0; i < t->count; i++) {
		struct trace_call *call = &t->calls[t->by_start[i]];
		size_t inflight;

		while (ended < t->count && t->calls[ended].end <= call->start)
			ended++;
		inflight = i + 1 > ended ? i + 1 - ended : 1;
		call->inflight = inflight < WEIR_LIMIT_MAX ? (uint32_t)inflight : WEIR_LIMIT_MAX;
	}
}

static bool put_in_order(const struct reader *r, struct trace *t)
{
	qsort(t->calls, t->count, sizeof(t->calls[0]), by_end);
	if (!shift(t))
		return fail(r, "The calls span more than ten years: is the unit right?");
	t->by_start = alloc_or_abort(t->count * sizeof(t->by_start[0]));
	for (size_t i = 0; i < t->count; i++)
		t->by_start[i] = (uint32_t)i;
	qsort_r(t->by_start, t->count, sizeof(t->by_start[0]), by_start, t);
	if (t->derived)
		derive_inflight(t);
	return true;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): fail() writes to why through the reader */
bool trace_read(struct trace *trace, FILE *in, const char *name, char *why, size_t why_size)
{
	struct reader r = {.name = name, .why = why, .why_size = why_size, .trace = trace};
	bool good;

	*trace = (struct trace){.calls = NULL};
	for (int i = 0; i < COLUMNS; i++)
		r.place[i] = -1;
	good = lines_read(&r, in);
	trace->derived = !has(&r, INFLIGHT);
	if (good)
		good = put_in_order(&r, trace);
	if (!good)
		trace_free(trace);
	return good;
}

void trace_free(struct trace *trace)
{
	free(trace->calls);
	free(trace->by_start);
	*trace = (struct trace){.calls = NULL};
}
