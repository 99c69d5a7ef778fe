/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check PAGE [all] <TRACE: whether each change in a trace (trace.h) is a step that PAGE allows.
 * all: and whether each step of the page is in the trace.
 *
 * PAGE is docs/hand-over.md. Its tables of steps are what is checked, so a step that the page does
 * not have fails, and so does one that happens although a condition of the page does not hold. A
 * change of what a member owns may be several steps, as the trace looks only now and then.
 *
 * Some conditions are facts that the trace has of the member. The others are found here, from the
 * lines before: who owns what, which rows there are, and which fences were given up.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTITIONS 16
#define PROCESSES  16
#define STEPS      64
#define WORDS      24
#define GIVEN      4096
#define MEMBERS    4096
#define STEPS_ONCE 3 /* of one member, between two lines about it */

/* A row of a table of the page. Cells are without backquotes, lists with commas. */
struct step {
	char name[32], row[64], from[64], to[64], by[32], conditions[96];
	unsigned long seen;
};

struct row {
	uint64_t owner, made; /* made 0: there is none */
	char time[24], by[16];
};

struct part {
	char state[16];
	uint64_t fence;
};

struct number {
	uint64_t id;
	unsigned process;
	bool joined, closed;
};

static struct step steps[STEPS];
static unsigned step_count;

static struct scene {
	struct row rows[PARTITIONS], requests[PARTITIONS];
	uint64_t highest[PARTITIONS];              /* fence */
	bool saved[PARTITIONS], noted[PARTITIONS]; /* there is a row */
	uint64_t sequence[PARTITIONS];
	uint64_t set_back[PARTITIONS]; /* the last fence whose checkpoint was set back */
	bool lost[PARTITIONS];         /* the row of the highest fence went with the store's data */
	struct part parts[PROCESSES][PARTITIONS];
	uint64_t given[PARTITIONS][GIVEN];
	unsigned given_count[PARTITIONS];
	struct number numbers[MEMBERS];
	unsigned number_count;
} scene;

/* The line of the trace, in words. */
static char text[512], words[WORDS][40];
static unsigned word_count;
static unsigned long line_number;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fprintf(stderr, "line %lu: ", line_number);
	vfprintf(stderr, format, list);
	fprintf(stderr, "\n  %s", text);
	va_end(list);
	exit(1);
}

/*
 * The page.
 */

/* Copy a cell without backquotes and outer blanks. Returns what follows it, or NULL. */
static const char *read_cell(const char *at, char *cell, size_t size)
{
	size_t n = 0;

	if (*at != '|')
		return NULL;
	for (at++; *at != '|' && *at != '\0' && *at != '\n'; at++)
		if (*at != '`' && (n > 0 || *at != ' ') && n + 1 < size)
			cell[n++] = *at;
	while (n > 0 && cell[n - 1] == ' ')
		n--;
	cell[n] = '\0';
	return *at == '|' ? at : NULL;
}

/* Tables whose first column is "step": of rows with six columns, of members with four. */
static bool read_step(const char *line, bool of_rows, struct step *s)
{
	const char *at = read_cell(line, s->name, sizeof(s->name));

	(void)snprintf(s->row, sizeof(s->row), "part");
	if (at != NULL && of_rows)
		at = read_cell(at, s->row, sizeof(s->row));
	if (at != NULL)
		at = read_cell(at, s->from, sizeof(s->from));
	if (at != NULL)
		at = read_cell(at, s->to, sizeof(s->to));
	if (at != NULL && of_rows)
		at = read_cell(at, s->by, sizeof(s->by));
	return at != NULL && read_cell(at, s->conditions, sizeof(s->conditions)) != NULL;
}

static void read_page(const char *name)
{
	FILE *file = fopen(name, "r");
	bool within = false, of_rows = false;
	char line[1024];

	if (file == NULL) {
		perror(name);
		exit(2);
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "| step |", 8) == 0) {
			within = true;
			of_rows = strstr(line, "| row |") != NULL;
		} else if (line[0] != '|') {
			within = false;
		} else if (within && line[2] != '-' && step_count < STEPS &&
			   read_step(line, of_rows, &steps[step_count])) {
			step_count++;
		}
	}
	fclose(file);
	if (step_count == 0) {
		fprintf(stderr, "%s has no table of steps\n", name);
		exit(2);
	}
}

/* Whether a list with commas has that item. */
static bool has_item(const char *list, const char *item)
{
	const size_t size = strlen(item);

	for (const char *at = list; at != NULL; at = strchr(at, ',')) {
		at += strspn(at, ", ");
		if (strncmp(at, item, size) == 0 && (at[size] == ',' || at[size] == '\0'))
			return true;
	}
	return false;
}

/*
 * What is known.
 */

static bool owns(const struct part *p)
{
	return strcmp(p->state, "owned") == 0 || strcmp(p->state, "asked") == 0 ||
	       strcmp(p->state, "leaving") == 0;
}

static unsigned owners(uint32_t i)
{
	unsigned count = 0;

	for (unsigned m = 0; m < PROCESSES; m++)
		count += owns(&scene.parts[m][i]);
	return count;
}

static bool is_owned_by(uint32_t i, uint64_t fence)
{
	for (unsigned m = 0; m < PROCESSES; m++)
		if (owns(&scene.parts[m][i]) && scene.parts[m][i].fence == fence)
			return true;
	return false;
}

static bool is_given(uint32_t i, uint64_t fence)
{
	for (unsigned k = 0; k < scene.given_count[i]; k++)
		if (scene.given[i][k] == fence)
			return true;
	return false;
}

static void give(uint32_t i, uint64_t fence)
{
	if (scene.given_count[i] == GIVEN)
		fail("more than %d fences were given up", GIVEN);
	scene.given[i][scene.given_count[i]++] = fence;
}

static struct number *number_of(uint64_t id)
{
	for (unsigned i = scene.number_count; i-- > 0;)
		if (scene.numbers[i].id == id)
			return &scene.numbers[i];
	if (scene.number_count == MEMBERS)
		fail("there are more than %d members", MEMBERS);
	scene.numbers[scene.number_count] = (struct number){.id = id, .process = PROCESSES};
	return &scene.numbers[scene.number_count++];
}

/* A change, as far as conditions ask for it. */
struct change {
	uint32_t partition;
	uint64_t member, fence; /* of a row: the number of the row that is made or gone */
	uint64_t sequence;
	const char *by; /* a process, "operator", "expiry" or "lost" */
};

static bool has_word(const char *condition)
{
	char word[40];

	(void)snprintf(word, sizeof(word), "%s", condition);
	for (char *at = word; *at != '\0'; at++)
		if (*at == ' ')
			*at = '-';
	for (unsigned i = 0; i < word_count; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

/* Whether a condition of the page holds for a change. */
static bool holds(const char *condition, const struct change *c)
{
	const uint32_t i = c->partition;
	const struct row *row = &scene.rows[i];

	if (strcmp(condition, "joined") == 0)
		return number_of(c->member)->joined;
	if (strcmp(condition, "unowned") == 0)
		return owners(i) == 0;
	if (strcmp(condition, "not by it") == 0)
		return !is_owned_by(i, c->fence);
	if (strcmp(condition, "rises") == 0)
		return c->fence > scene.highest[i];
	if (strcmp(condition, "its own") == 0)
		return number_of(c->member)->process == (unsigned)atoi(c->by);
	if (strcmp(condition, "given") == 0)
		return is_given(i, c->fence) || number_of(c->member)->closed;
	if (strcmp(condition, "not given") == 0)
		return !is_given(i, c->fence) && !number_of(c->member)->closed;
	if (strcmp(condition, "claimed") == 0)
		return row->made != 0 && strcmp(row->time, words[0]) == 0 &&
		       strcmp(row->by, c->by) == 0;
	if (strcmp(condition, "erased") == 0)
		return row->made == 0 && strcmp(row->time, words[0]) == 0 &&
		       strcmp(row->by, c->by) == 0;
	if (strcmp(condition, "fenced") == 0)
		return row->made != 0 && row->made == c->fence;
	if (strcmp(condition, "no owner") == 0)
		return row->made == 0 && c->fence == 0;
	if (strcmp(condition, "set back") == 0)
		return scene.set_back[i] == c->fence;
	if (strcmp(condition, "not set back") == 0)
		return scene.set_back[i] != c->fence;
	if (strcmp(condition, "not below") == 0)
		return c->sequence >= scene.sequence[i];
	if (strcmp(condition, "row") == 0)
		return (row->made == c->fence && row->owner == c->member) ||
		       (scene.lost[i] && c->fence == scene.highest[i]);
	if (strcmp(condition, "row gone") == 0)
		return row->made != c->fence;
	return has_word(condition);
}

static bool all_hold(const char *conditions, const struct change *c)
{
	char copy[96], *rest = copy, *item;

	(void)snprintf(copy, sizeof(copy), "%s", conditions);
	while ((item = strtok_r(rest, ",", &rest)) != NULL) {
		item += strspn(item, " ");
		if (*item != '\0' && !holds(item, c))
			return false;
	}
	return true;
}

/*
 * Changes.
 */

static void change_row(const char *row, const char *from, const char *to, const struct change *c)
{
	const char *by = c->by[0] >= '0' && c->by[0] <= '9' ? "commit" : c->by;

	for (unsigned i = 0; i < step_count; i++) {
		struct step *s = &steps[i];

		if (!has_item(s->row, row) || !has_item(s->from, from) || !has_item(s->to, to) ||
		    strcmp(s->by, by) != 0 || !all_hold(s->conditions, c))
			continue;
		s->seen++;
		return;
	}
	fail("no step of the page leads a row \"%s\" from \"%s\" to \"%s\" like this", row, from,
	     to);
}

/* Find steps of a member, at most that many, from one state to another. */
static bool walk(const char *from, const char *to, unsigned most, const struct change *c)
{
	for (unsigned i = 0; i < step_count; i++) {
		struct step *s = &steps[i];

		if (strcmp(s->row, "part") != 0 || !has_item(s->from, from) ||
		    !has_item(s->to, to) || !all_hold(s->conditions, c))
			continue;
		s->seen++;
		return true;
	}
	for (unsigned i = 0; i < step_count && most > 1; i++) {
		struct step *s = &steps[i];

		/* A step that leads to several states stays in the one that it was asked for. */
		if (strcmp(s->row, "part") != 0 || !has_item(s->from, from) ||
		    strchr(s->to, ',') != NULL || !all_hold(s->conditions, c) ||
		    !walk(s->to, to, most - 1, c))
			continue;
		s->seen++;
		return true;
	}
	return false;
}

static void need_words(unsigned count)
{
	if (word_count < count)
		fail("too short");
}

static uint32_t partition_of(const char *word)
{
	const unsigned long i = strtoul(word, NULL, 10);

	if (i >= PARTITIONS)
		fail("no such partition");
	return (uint32_t)i;
}

/* TIME part PARTITION PROCESS MEMBER STATE FENCE FACT... */
static void take_part(void)
{
	const unsigned long process = strtoul(words[3], NULL, 10);
	struct change c = {.partition = partition_of(words[2])};
	struct part *p;
	const char *from;

	need_words(7);
	if (process >= PROCESSES)
		fail("no such process");
	p = &scene.parts[process][c.partition];
	c.member = strtoull(words[4], NULL, 16);
	c.fence = strtoull(words[6], NULL, 10);
	from = p->state[0] != '\0' ? p->state : "none";
	if (strcmp(from, "none") != 0 && p->fence != c.fence)
		fail("its fence was %lu", (unsigned long)p->fence);
	if (!walk(from, words[5], STEPS_ONCE, &c))
		fail("no steps of the page lead from \"%s\" to \"%s\" like this", from, words[5]);
	(void)snprintf(p->state, sizeof(p->state), "%.15s", words[5]);
	p->fence = c.fence;
	if (strcmp(words[5], "none") == 0 && (has_word("given up") || has_word("closed")))
		give(c.partition, c.fence);
	if (owners(c.partition) > 1)
		fail("two members own the partition");
}

/* TIME row PARTITION OWNER MADE CAUSE, or request */
static void take_row(struct row *row, const char *what, bool owner)
{
	const bool gone = strcmp(words[3], "-") == 0;
	struct change c = {.partition = partition_of(words[2]), .by = words[5]};

	need_words(6);
	c.fence = strtoull(words[4], NULL, 10);
	c.member = gone ? row->owner : strtoull(words[3], NULL, 16);
	if (gone != (row->made != 0) || (gone && row->made != c.fence))
		fail("there is %s", row->made != 0 ? "another row" : "no row");
	change_row(what, gone ? "there" : "none", gone ? "none" : "there", &c);
	*row = (struct row){.owner = c.member, .made = gone ? 0 : c.fence};
	(void)snprintf(row->time, sizeof(row->time), "%.23s", words[0]);
	(void)snprintf(row->by, sizeof(row->by), "%.15s", words[5]);
	if (!owner)
		return;
	scene.lost[c.partition] = gone && strcmp(words[5], "lost") == 0;
	if (!gone)
		scene.highest[c.partition] = c.fence;
}

/* A row that may be written again while it is there. */
static void put_row(const char *what, bool *there, bool gone, const struct change *c)
{
	change_row(what, *there ? "there" : "none", gone ? "none" : "there", c);
	*there = !gone;
}

/* TIME checkpoint PARTITION SEQUENCE VERSION FENCE CAUSE */
static void take_checkpoint(void)
{
	struct change c = {.partition = partition_of(words[2]), .by = words[6]};

	need_words(7);
	c.sequence = strtoull(words[3], NULL, 10);
	c.fence = strtoull(words[5], NULL, 10);
	put_row("checkpoint", &scene.saved[c.partition], strcmp(words[4], "0") == 0, &c);
	scene.sequence[c.partition] = c.sequence;
	if (strcmp(c.by, "operator") == 0)
		scene.set_back[c.partition] = c.fence;
}

/* TIME rewound PARTITION FENCE VERSION CAUSE */
static void take_rewound(void)
{
	struct change c = {.partition = partition_of(words[2]), .by = words[5]};

	need_words(6);
	c.fence = strtoull(words[3], NULL, 10);
	put_row("rewound", &scene.noted[c.partition], strcmp(words[4], "0") == 0, &c);
}

/* TIME worker MEMBER MADE CAUSE */
static void take_worker(void)
{
	struct change c = {.member = strtoull(words[2], NULL, 16), .by = words[4]};
	const bool gone = strcmp(words[3], "0") == 0;
	struct number *number = number_of(c.member);

	need_words(5);
	if (gone != number->joined)
		fail("the member is %s", number->joined ? "there" : "not there");
	if (!gone)
		number->process = (unsigned)atoi(words[4]);
	change_row("worker", gone ? "there" : "none", gone ? "none" : "there", &c);
	number->joined = !gone;
}

/* TIME closed PROCESS MEMBER, or dead */
static void take_end(void)
{
	need_words(4);
	number_of(strtoull(words[3], NULL, 16))->closed = true;
}

static void split(void)
{
	const char *at = text;
	int used;

	for (word_count = 0; word_count < WORDS; word_count++) {
		if (sscanf(at, "%39s%n", words[word_count], &used) != 1)
			break;
		at += used;
	}
}

static void take_line(void)
{
	split();
	if (strcmp(words[0], "seed") == 0) {
		memset(&scene, 0, sizeof(scene));
		return;
	}
	if (strcmp(words[1], "closed") == 0 || strcmp(words[1], "dead") == 0) {
		take_end();
		return;
	}
	need_words(5);
	if (strcmp(words[1], "part") == 0)
		take_part();
	else if (strcmp(words[1], "row") == 0)
		take_row(&scene.rows[partition_of(words[2])], "partition", true);
	else if (strcmp(words[1], "request") == 0)
		take_row(&scene.requests[partition_of(words[2])], "request", false);
	else if (strcmp(words[1], "checkpoint") == 0)
		take_checkpoint();
	else if (strcmp(words[1], "rewound") == 0)
		take_rewound();
	else if (strcmp(words[1], "worker") == 0)
		take_worker();
	else
		fail("not a line of a trace");
}

int main(int argc, char **argv)
{
	unsigned missing = 0;

	if (argc < 2) {
		fprintf(stderr, "Usage: %s PAGE [all] <TRACE\n", argv[0]);
		return 2;
	}
	read_page(argv[1]);
	while (fgets(text, sizeof(text), stdin) != NULL) {
		line_number++;
		take_line();
	}
	printf("%lu lines are steps of the page:", line_number);
	for (unsigned i = 0; i < step_count; i++) {
		printf(" %s %lu%s", steps[i].name, steps[i].seen, i + 1 < step_count ? "," : "\n");
		missing += steps[i].seen == 0;
	}
	if (line_number == 0 || (argc > 2 && missing > 0)) {
		fprintf(stderr, "%u steps of the page are not in the trace\n", missing);
		return 1;
	}
	return 0;
}
