/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vectors KIND: runs all cases of this program, over a store of that kind. vectors list SOURCES
 * [REFERENCE]: lists all cases, and where each is tested; checks that the tests named contain them,
 * and that no case of the document REFERENCE is missing. Exits with 77 without REFERENCE.
 */

#include "vectors.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../stress/check.h"

#define SKIPPED  77
#define FAMILIES 4

struct table {
	struct family families[FAMILIES];
};

static struct table all(void)
{
	return (struct table){
		{vectors_allot(), vectors_doorman(), vectors_partitions(), vectors_others()}};
}

static const struct vector *find(const struct table *t, const char *id)
{
	for (unsigned i = 0; i < FAMILIES; i++)
		for (size_t j = 0; j < t->families[i].count; j++)
			if (strcmp(t->families[i].rows[j].id, id) == 0)
				return &t->families[i].rows[j];
	return NULL;
}

static int play_all(const char *kind)
{
	const struct table t = all();
	struct test_store test_store;
	unsigned played = 0;

	test_store_begin(&test_store, kind);
	for (unsigned i = 0; i < FAMILIES; i++) {
		const struct family *f = &t.families[i];

		for (size_t j = 0; j < f->count; j++) {
			if (f->rows[j].play == NULL)
				continue;
			printf("%s\n", f->rows[j].id);
			fflush(stdout);
			f->rows[j].play(f->rows[j].id, &test_store);
			played++;
		}
	}
	test_store_end(&test_store);
	printf("%u cases, %s\n", played, kind);
	return 0;
}

static char *read_all(const char *folder, const char *name)
{
	char path[512], *text = NULL;
	size_t size = 0, some;
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name);
	file = fopen(path, "r");
	if (file == NULL)
		return NULL;
	do {
		text = realloc(text, size + 65537);
		CHECK(text != NULL);
		some = fread(text + size, 1, 65536, file);
		size += some;
	} while (some > 0);
	text[size] = '\0';
	(void)fclose(file);
	return text;
}

/* Whether text contains the id as a whole word. */
static bool has_word(const char *text, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)) != NULL; at += length)
		if (!isalnum((unsigned char)at[length]) &&
		    (at == text || !isalnum((unsigned char)at[-1])))
			return true;
	return false;
}

/* Whether a row is consistent; if it names a test, that must contain the case. */
static bool is_true(const struct vector *v, const char *sources)
{
	char *text;
	bool found;

	if (v->play != NULL)
		return v->in == NULL;
	if (v->in == NULL)
		return v->note != NULL;
	text = read_all(sources, v->in);
	found = text != NULL && has_word(text, v->id);
	free(text);
	if (!found)
		fprintf(stderr, "%s is not in %s\n", v->id, v->in);
	return found;
}

static unsigned list_all(const struct table *t, const char *sources)
{
	unsigned played = 0, elsewhere = 0, wrong = 0;

	for (unsigned i = 0; i < FAMILIES; i++) {
		for (size_t j = 0; j < t->families[i].count; j++) {
			const struct vector *v = &t->families[i].rows[j];

			wrong += !is_true(v, sources) || find(t, v->id) != v;
			played += v->play != NULL;
			elsewhere += v->in != NULL;
			printf("%-18s %s%s%s\n", v->id,
			       v->play != NULL ? "here"
			       : v->in != NULL ? v->in
					       : "no meaning here",
			       v->note != NULL ? ": " : "", v->note != NULL ? v->note : "");
		}
	}
	printf("%u run here over each store, %u in other tests\n", played, elsewhere);
	return wrong;
}

/* The first word of a line, or of a table's row; none if it is not an id. */
static bool id_of(const char *line, char section, unsigned row, char *id, size_t size)
{
	const bool in_table = line[0] == '|' && line[1] == ' ';
	const char *from = in_table ? line + 2 : line;
	const size_t length = strspn(from, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789_-");

	if (section == '3' && in_table && isdigit((unsigned char)from[0]))
		(void)snprintf(id, size, "scenario %.*s", (int)length, from);
	else if (section == '5' && in_table && isdigit((unsigned char)from[0]))
		(void)snprintf(id, size, "PR%u", row + 1);
	else if (section == '7' && !in_table && length > 5 && isalpha((unsigned char)from[0]) &&
		 strchr(" ,:", from[length]) != NULL)
		(void)snprintf(id, size, "%.*s", (int)length, from);
	else if (in_table && length > 2 && isupper((unsigned char)from[0]) &&
		 isupper((unsigned char)from[1]) && isdigit((unsigned char)from[2]))
		(void)snprintf(id, size, "%.*s", (int)length, from);
	else
		return false;
	return true;
}

/* Scenario 5 has more rows than one. Words that begin no case: */
static bool is_prose(const char *id)
{
	static const char *const words[] = {"gubernator", "at-most"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(id, words[i]) == 0)
			return true;
	return false;
}

/* Only the document's section 7. */
static unsigned check_reference(const struct table *t, char *text)
{
	unsigned found = 0, missing = 0, row = 0;
	char section = '\0';

	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		char id[64];

		if (strncmp(line, "## ", 3) == 0 || strncmp(line, "### ", 4) == 0) {
			section = strncmp(line, "### 7.", 6) == 0 ? line[6] : '\0';
			row = 0;
		}
		if (section == '\0' || !id_of(line, section, row, id, sizeof(id)) || is_prose(id))
			continue;
		row++;
		found++;
		if (find(t, id) != NULL)
			continue;
		fprintf(stderr, "%s is in no table\n", id);
		missing++;
	}
	printf("%u cases in the document, %u missing here\n", found, missing);
	CHECK(found > 150);
	return missing;
}

int main(int argc, char **argv)
{
	const struct table t = all();
	char *text;
	unsigned wrong;

	CHECK(argc >= 2);
	if (strcmp(argv[1], "list") != 0)
		return play_all(argv[1]);
	CHECK(argc >= 3);
	wrong = list_all(&t, argv[2]);
	text = argc > 3 ? read_all("", argv[3]) : NULL;
	if (text == NULL) {
		printf("skipped: no document to compare with\n");
		return wrong == 0 ? SKIPPED : 1;
	}
	wrong += check_reference(&t, text);
	free(text);
	return wrong == 0 ? 0 : 1;
}
