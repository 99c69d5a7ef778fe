/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formatting and parsing the records. Each is a line: a word, a version, numbers, and perhaps a
 * label. A record of another version is not parsed.
 */

#include "fleet/protocol/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 72                         /* bytes of a line of a ledger, at most */
#define LEFT_MAX  (UINT64_C(7200) * 1000000) /* microseconds; no lease is longer */

#define LEASE_LONGEST (3600 * UINT64_C(1000)) /* milliseconds: LEASE_MAX */

static const char word_characters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@";

bool is_word(const char *text, size_t most)
{
	const size_t length = text != NULL ? strnlen(text, most + 1) : 0;

	return length > 0 && length <= most && strspn(text, word_characters) == length;
}

/* The end tells processes on one machine apart, so a long host name is cut instead. */
void label_of_process(const char *host, long pid, char label[LABEL_ROOM])
{
	char end[24];
	const int length = snprintf(end, sizeof(end), ":%ld", pid);

	(void)snprintf(label, LABEL_ROOM, "%.*s%s", WEIR_FLEET_LABEL_MAX - length, host, end);
	for (char *at = label; *at != '\0'; at++)
		if (strchr(word_characters, *at) == NULL)
			*at = '-';
}

void member_key(const char *limit, const char *kind, uint64_t id, char key[KEY_ROOM])
{
	(void)snprintf(key, KEY_ROOM, "%s/%s/%016" PRIx64, limit, kind, id);
}

/* The rest of a text that is being parsed. */
struct reader {
	const char *at, *end;
	bool good;
};

static struct reader reader_of(const char *text, size_t size, const char *head)
{
	const size_t length = strlen(head);
	struct reader r = {text, text + size, size > length && memcmp(text, head, length) == 0};

	if (r.good)
		r.at += length;
	return r;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Parse a number up to most, and the character after it. */
static uint64_t number(struct reader *r, unsigned base, uint64_t most, char after)
{
	const char *begin = r->at;
	uint64_t value = 0;

	for (; r->good && r->at < r->end && digit(*r->at) < (int)base; r->at++) {
		const unsigned next = (unsigned)digit(*r->at);

		if (next > most || value > (most - next) / base)
			r->good = false;
		value = value * base + next;
	}
	if (r->at == begin || r->at == r->end || *r->at != after)
		r->good = false;
	else
		r->at++;
	return r->good ? value : 0;
}

/* Parse a label, and the character after it. */
static void label(struct reader *r, char text[LABEL_ROOM], char after)
{
	const char *end = r->good ? memchr(r->at, after, (size_t)(r->end - r->at)) : NULL;
	const size_t length = end != NULL ? (size_t)(end - r->at) : LABEL_ROOM;

	r->good = length < LABEL_ROOM;
	if (!r->good)
		return;
	memcpy(text, r->at, length);
	text[length] = '\0';
	r->good = is_word(text, WEIR_FLEET_LABEL_MAX) && strlen(text) == length;
	r->at = end + 1;
}

static bool is_over(const struct reader *r)
{
	return r->good && r->at == r->end;
}

/* Programs that know no allocator refuse version 2, which is a limit that has one. */
size_t limit_print(const struct limit_record *record, char text[RECORD_SIZE])
{
	return (size_t)snprintf(
		text, RECORD_SIZE,
		"weir-limit %u %" PRIu64 " %u %" PRIu64 " %" PRIu32 " %" PRIu64 "\n",
		record->allocated ? 2 : 1, record->capacity, (unsigned)record->allotment,
		record->reserved, record->members, record->lease);
}

/* The settings of a limit, and the character after them. */
static void settings(struct reader *r, struct limit_record *l, char after)
{
	l->learning = 0;
	l->capacity = number(r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	l->allotment = (enum weir_allotment)number(r, 10, WEIR_ALLOT_NONE, ' ');
	l->reserved = number(r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	l->members = (uint32_t)number(r, 10, UINT32_MAX, ' ');
	l->lease = number(r, 10, UINT32_MAX, after);
}

bool limit_parse(const char *text, size_t size, struct limit_record *l)
{
	struct reader r = reader_of(text, size, "weir-limit 2 ");

	l->allocated = r.good;
	if (!r.good)
		r = reader_of(text, size, "weir-limit 1 ");
	settings(&r, l, '\n');
	return is_over(&r);
}

size_t template_print(const struct template_record *record, char text[TEMPLATE_SIZE])
{
	const struct limit_record *l = &record->limit;

	return (size_t)snprintf(text, TEMPLATE_SIZE,
				"%s %" PRIu64 " %u %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64
				" %u\n",
				record->pattern, l->capacity, (unsigned)l->allotment, l->reserved,
				l->members, l->lease, l->learning, l->allocated);
}

bool template_parse(const char *text, size_t size, struct template_record *t)
{
	struct reader r = reader_of(text, size, "");
	const char *end = memchr(text, ' ', size);
	const size_t length = end != NULL ? (size_t)(end - text) : sizeof(t->pattern);

	r.good = r.good && length < sizeof(t->pattern);
	if (!r.good)
		return false;
	memcpy(t->pattern, text, length);
	t->pattern[length] = '\0';
	r.at = end + 1;
	settings(&r, &t->limit, ' ');
	t->limit.learning = number(&r, 10, LEASE_LONGEST, ' ');
	t->limit.allocated = number(&r, 10, 1, '\n') != 0;
	return is_over(&r) && strlen(t->pattern) == length;
}

size_t learning_print(uint64_t learning, char text[RECORD_SIZE])
{
	return (size_t)snprintf(text, RECORD_SIZE, "weir-learning 1 %" PRIu64 "\n", learning);
}

bool learning_parse(const char *text, size_t size, uint64_t *learning)
{
	struct reader r = reader_of(text, size, "weir-learning 1 ");

	*learning = number(&r, 10, LEASE_LONGEST, '\n');
	return is_over(&r) && *learning > 0;
}

size_t member_print(const struct member_record *record, char text[RECORD_SIZE])
{
	const struct limit_record *own = &record->own;
	int length = snprintf(text, RECORD_SIZE,
			      "weir-member %u %" PRIu64 " %" PRIu32 " %" PRIu32 " %s %" PRIu64
			      " %u %" PRIu64 " %" PRIu32 " %" PRIu64,
			      record->allocated ? 2 : 1, record->wants, record->weight,
			      (uint32_t)record->priority, record->label, own->capacity,
			      (unsigned)own->allotment, own->reserved, own->members,
			      record->learning);

	if (record->allocated)
		length += snprintf(text + length, RECORD_SIZE - (size_t)length,
				   " %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32,
				   record->elastic, record->acknowledged, record->uses,
				   record->claim, record->throttled);
	text[length] = '\n';
	return (size_t)length + 1;
}

/* What a member's process is configured with. */
static void own_limit(struct reader *r, struct member_record *m)
{
	m->own.capacity = number(r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	m->own.allotment = (enum weir_allotment)number(r, 10, WEIR_ALLOT_NONE, ' ');
	m->own.reserved = number(r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	m->own.members = (uint32_t)number(r, 10, UINT32_MAX, ' ');
	m->learning = number(r, 10, UINT32_MAX, m->allocated ? ' ' : '\n');
}

static void own_grant(struct reader *r, struct member_record *m)
{
	m->elastic = number(r, 10, 1, ' ') != 0;
	m->acknowledged = number(r, 10, UINT64_MAX, ' ');
	m->uses = number(r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	m->claim = number(r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	m->throttled = (uint32_t)number(r, 10, UINT32_MAX, '\n');
}

bool member_parse(const char *text, size_t size, struct member_record *m)
{
	struct reader r = reader_of(text, size, "weir-member 2 ");
	bool more;

	*m = (struct member_record){.allocated = r.good};
	if (!r.good)
		r = reader_of(text, size, "weir-member 1 ");
	m->wants = number(&r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	m->weight = (uint32_t)number(&r, 10, WEIR_SHARE_WEIGHT_MAX, ' ');
	m->priority = (int32_t)(uint32_t)number(&r, 10, UINT32_MAX, ' ');
	more = r.good && memchr(r.at, ' ', (size_t)(r.end - r.at)) != NULL;
	label(&r, m->label, more ? ' ' : '\n');
	if (more)
		own_limit(&r, m);
	if (m->allocated)
		own_grant(&r, m);
	return is_over(&r) && m->weight > 0;
}

size_t up_print(const struct up_record *record, char text[RECORD_SIZE])
{
	return (size_t)snprintf(
		text, RECORD_SIZE,
		"weir-up 1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 "\n",
		record->carried, record->tick, record->left, record->id, record->session);
}

bool up_parse(const char *text, size_t size, struct up_record *u)
{
	struct reader r = reader_of(text, size, "weir-up 1 ");

	u->carried = number(&r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	u->tick = number(&r, 10, UINT64_MAX, ' ');
	u->left = number(&r, 10, LEFT_MAX, ' ');
	u->id = number(&r, 16, UINT64_MAX, ' ');
	u->session = number(&r, 10, UINT64_MAX, '\n');
	return is_over(&r);
}

/* Whether the next field is the last one of its line. */
static bool is_last(const struct reader *r)
{
	const char *line = r->good ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;

	return line != NULL && memchr(r->at, ' ', (size_t)(line - r->at)) == NULL;
}

/* A weight of 1 is left out. */
size_t worker_print(const struct worker_record *w, char text[RECORD_SIZE])
{
	if (w->weight == 1)
		return (size_t)snprintf(text, RECORD_SIZE, "weir-worker 1 %s\n", w->label);
	return (size_t)snprintf(text, RECORD_SIZE, "weir-worker 1 %s %" PRIu32 "\n", w->label,
				w->weight);
}

bool worker_parse(const char *text, size_t size, struct worker_record *w)
{
	struct reader r = reader_of(text, size, "weir-worker 1 ");
	const bool short_form = is_last(&r);

	label(&r, w->label, short_form ? '\n' : ' ');
	w->weight = short_form ? 1 : (uint32_t)number(&r, 10, WEIR_SHARE_WEIGHT_MAX, '\n');
	return is_over(&r) && (short_form || w->weight > 1);
}

/* The number of changes is left out if there was none. */
size_t work_print(const struct work_record *p, char text[RECORD_SIZE])
{
	int length = snprintf(text, RECORD_SIZE,
			      "weir-parts 1 %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64, p->count,
			      p->capacity, p->factor, p->lease);

	if (p->changes > 0)
		length += snprintf(text + length, RECORD_SIZE - (size_t)length, " %" PRIu64,
				   p->changes);
	text[length] = '\n';
	return (size_t)length + 1;
}

bool work_parse(const char *text, size_t size, struct work_record *p)
{
	struct reader r = reader_of(text, size, "weir-parts 1 ");
	bool short_form;

	p->count = (uint32_t)number(&r, 10, UINT32_MAX, ' ');
	p->capacity = number(&r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	p->factor = number(&r, 10, UINT64_MAX, ' ');
	short_form = is_last(&r);
	p->lease = number(&r, 10, UINT32_MAX, short_form ? '\n' : ' ');
	p->changes = short_form ? 0 : number(&r, 10, UINT64_MAX, '\n');
	return is_over(&r) && (short_form || p->changes > 0);
}

size_t owner_print(const struct owner_record *o, char text[OWNER_SIZE])
{
	if (o->units == 0)
		return (size_t)snprintf(text, OWNER_SIZE, "%016" PRIx64 "\n", o->id);
	return (size_t)snprintf(text, OWNER_SIZE, "%016" PRIx64 " %" PRIu64 " %" PRIu64 "\n", o->id,
				o->from, o->units);
}

bool owner_parse(const char *text, size_t size, struct owner_record *o)
{
	struct reader r = reader_of(text, size, "");
	const bool short_form = is_last(&r);

	o->id = number(&r, 16, UINT64_MAX, short_form ? '\n' : ' ');
	o->from = short_form ? 0 : number(&r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	o->units = short_form ? 0 : number(&r, 10, WEIR_SHARE_UNITS_MAX, '\n');
	return is_over(&r) && o->id != 0 && (short_form || o->units > 0);
}

size_t allocator_print(const struct allocator_record *a, char text[RECORD_SIZE])
{
	return (size_t)snprintf(text, RECORD_SIZE, "weir-allocator 1 %016" PRIx64 " %s\n", a->id,
				a->label);
}

bool allocator_parse(const char *text, size_t size, struct allocator_record *a)
{
	struct reader r = reader_of(text, size, "weir-allocator 1 ");

	a->id = number(&r, 16, UINT64_MAX, ' ');
	label(&r, a->label, '\n');
	return is_over(&r);
}

size_t grants_print(const struct grants_record *g, char text[RECORD_SIZE])
{
	return (size_t)snprintf(text, RECORD_SIZE,
				"weir-grants 1 %" PRIu32 " %" PRIu32 " %" PRIu32 " %u %" PRIu64
				"\n",
				g->throttle, g->epoch, g->members, g->crowded, g->shared);
}

bool grants_parse(const char *text, size_t size, struct grants_record *g)
{
	struct reader r = reader_of(text, size, "weir-grants 1 ");

	g->throttle = (uint32_t)number(&r, 10, THROTTLE_NONE, ' ');
	g->epoch = (uint32_t)number(&r, 10, UINT32_MAX, ' ');
	g->members = (uint32_t)number(&r, 10, UINT32_MAX, ' ');
	g->crowded = number(&r, 10, 1, ' ') != 0;
	g->shared = number(&r, 10, WEIR_SHARE_UNITS_MAX, '\n');
	return is_over(&r) && g->epoch > 0;
}

size_t grant_print(const struct grant_record *g, char text[RECORD_SIZE])
{
	return (size_t)snprintf(text, RECORD_SIZE,
				"weir-grant 1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
				" %u %u\n",
				g->fence, g->number, g->units, g->most, g->seated, g->lacks);
}

bool grant_parse(const char *text, size_t size, struct grant_record *g)
{
	struct reader r = reader_of(text, size, "weir-grant 1 ");

	g->fence = number(&r, 10, UINT64_MAX, ' ');
	g->number = number(&r, 10, UINT64_MAX - 1, ' '); /* the next one is a number too */
	g->units = number(&r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	g->most = number(&r, 10, WEIR_SHARE_UNITS_MAX, ' ');
	g->seated = number(&r, 10, 1, ' ') != 0;
	g->lacks = number(&r, 10, 1, '\n') != 0;
	return is_over(&r) && g->number > 0 && g->most >= g->units;
}

/*
 * Without the second half if it was never set back. The sequence is - if there is no checkpoint.
 */
size_t checkpoint_print(const struct checkpoint_record *c, const void *value, size_t size,
			char *text)
{
	size_t head = (size_t)snprintf(text, CHECKPOINT_HEAD_SIZE, "weir-checkpoint 1 ");

	if (c->none)
		head += (size_t)snprintf(text + head, CHECKPOINT_HEAD_SIZE - head, "-");
	else
		head += (size_t)snprintf(text + head, CHECKPOINT_HEAD_SIZE - head, "%" PRIu64,
					 c->sequence);
	if (c->rewinds > 0)
		head += (size_t)snprintf(text + head, CHECKPOINT_HEAD_SIZE - head,
					 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", c->rewinds,
					 c->when, c->refused, c->who);
	text[head++] = '\n';
	if (size > 0)
		memcpy(text + head, value, size);
	return head + size;
}

bool checkpoint_parse(const char *text, size_t size, struct checkpoint_record *c,
		      const char **value)
{
	struct reader r = reader_of(text, size, "weir-checkpoint 1 ");
	const bool short_form = is_last(&r);

	*c = (struct checkpoint_record){.none = r.good && !short_form && *r.at == '-'};
	if (c->none && r.end - r.at > 2 && r.at[1] == ' ')
		r.at += 2;
	else
		c->sequence = number(&r, 10, UINT64_MAX, short_form ? '\n' : ' ');
	if (!short_form) {
		c->rewinds = number(&r, 10, UINT64_MAX, ' ');
		c->when = number(&r, 10, UINT64_MAX, ' ');
		c->refused = number(&r, 10, UINT64_MAX, ' ');
		label(&r, c->who, '\n');
	}
	*value = r.at;
	return r.good && (short_form || c->rewinds > 0);
}

char *ledger_print(const struct ledger *l, size_t *size)
{
	const size_t room = (l->count + 1) * LINE_SIZE;
	char *text = malloc(room);

	if (text == NULL)
		return NULL;
	*size = (size_t)snprintf(text, room, "weir-ledger 1 %" PRIu32 "\n", l->throttle);
	for (size_t i = 0; i < l->count; i++)
		*size += (size_t)snprintf(text + *size, room - *size,
					  "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", l->lines[i].id,
					  l->lines[i].fence, l->lines[i].grant);
	return text;
}

int ledger_parse(const char *text, size_t size, struct ledger *l)
{
	struct reader r = reader_of(text, size, "weir-ledger 1 ");

	ledger_clear(l);
	l->throttle = (uint32_t)number(&r, 10, THROTTLE_NONE, '\n');
	while (r.good && r.at < r.end) {
		struct ledger_line line;

		line.id = number(&r, 16, UINT64_MAX, ' ');
		line.fence = number(&r, 10, UINT64_MAX, ' ');
		line.grant = number(&r, 10, WEIR_SHARE_UNITS_MAX, '\n');
		if (r.good && !ledger_add(l, &line))
			return -ENOMEM;
	}
	return is_over(&r) ? 0 : -EPROTO;
}

bool ledger_add(struct ledger *l, const struct ledger_line *line)
{
	if (l->count == l->room) {
		const size_t room = l->room > 0 ? 2 * l->room : 16;
		struct ledger_line *lines = realloc(l->lines, room * sizeof(*lines));

		if (lines == NULL)
			return false;
		l->lines = lines;
		l->room = room;
	}
	l->lines[l->count++] = *line;
	return true;
}

void ledger_clear(struct ledger *l)
{
	l->count = 0;
	l->throttle = THROTTLE_NONE;
}

void ledger_free(struct ledger *l)
{
	free(l->lines);
	*l = (struct ledger){.throttle = THROTTLE_NONE};
}
