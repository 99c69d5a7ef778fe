/* SPDX-License-Identifier: BSD-2-Clause */
#include "record.h"

#include <string.h>

/* Request units as in the example of the pattern, and a second type with twice the cost. */
const struct record_type record_types[RECORD_TYPES] = {
	{.letter = 'A', .cost = 10, .stream = "ingest:A"},
	{.letter = 'B', .cost = 20, .stream = "ingest:B"},
};

static const struct record_type *type_of(char letter)
{
	for (size_t i = 0; i < RECORD_TYPES; i++)
		if (record_types[i].letter == letter)
			return &record_types[i];
	return NULL;
}

int record_next(const char **text, struct record_line *line)
{
	const size_t digits = **text != '\0' ? strspn(*text + 1, "0123456789") : 0;

	if (**text == '\0')
		return 0;
	*line = (struct record_line){
		.text = *text,
		.length = strcspn(*text, "\n"),
		.id_length = 1 + digits,
		.type = type_of(**text),
	};
	*text += line->length;
	*text += **text == '\n';
	if (!line->type || digits == 0 || digits > 20 || line->length >= RECORD_MAX ||
	    line->text[line->id_length] != ' ')
		return -1;
	return 1;
}

bool records_are_valid(const char *text)
{
	struct record_line line;
	int found;

	do
		found = record_next(&text, &line);
	while (found > 0);
	return found == 0;
}
