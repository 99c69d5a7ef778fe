/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_file.c - limits in a file: read it, print it.
 *
 * The form is that of INI files. libconfig, the form of scenarios, does not fit: it cuts whole
 * numbers to 32 bits without saying so, and has no names like orders:eu.
 */
#include "fleet_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n\v\f"

/* Where a sentence about an error goes. */
struct sentence {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int fail(struct sentence why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why.text, why.size, format, args);
	va_end(args);
	return -EINVAL;
}

/* Without blanks at both ends. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, BLANKS);
	end = text + strlen(text);
	while (end > text && strchr(BLANKS, end[-1]) != NULL)
		end--;
	*end = '\0';
	return text;
}

const struct file_limit *limits_file_find(const struct limits_file *file, const char *name,
					  bool is_template)
{
	for (size_t i = 0; i < file->count; i++)
		if (file->at[i].is_template == is_template && strcmp(file->at[i].name, name) == 0)
			return &file->at[i];
	return NULL;
}

#define TEMPLATE "template"

/* Whether a group is of a template; then name is what follows. */
static bool is_template(char **name)
{
	const size_t length = strlen(TEMPLATE);

	if (strncmp(*name, TEMPLATE, length) != 0 || (*name)[length] == '\0' ||
	    strchr(BLANKS, (*name)[length]) == NULL)
		return false;
	*name = trim(*name + length);
	return true;
}

/* A line [NAME] or [template PATTERN]. */
static int take_group(struct limits_file *file, char *text, struct sentence why)
{
	const size_t length = strlen(text);
	const struct file_limit *same;
	struct file_limit *larger;
	bool template;
	char *name;

	if (text[length - 1] != ']')
		return fail(why, "The name of a limit has no ] behind it.");
	text[length - 1] = '\0';
	name = trim(text + 1);
	template = is_template(&name);
	if (strlen(name) > WEIR_SHARE_NAME_MAX)
		return fail(why, "A name has at most %d characters.", WEIR_SHARE_NAME_MAX);
	same = limits_file_find(file, name, template);
	if (same != NULL)
		return fail(why, "%s is in line %u already.", name, same->line);
	larger = realloc(file->at, (file->count + 1) * sizeof(*larger));
	if (larger == NULL) {
		fail(why, "Out of memory.");
		return -ENOMEM;
	}
	file->at = larger;
	larger[file->count] = (struct file_limit){.line = file->line, .is_template = template};
	memcpy(larger[file->count++].name, name, strlen(name) + 1);
	return 0;
}

/* A line SETTING = VALUE. */
static int take_setting(struct limits_file *file, char *text, struct sentence why)
{
	char *equals = strchr(text, '='), *name, *value, wrong[80];
	struct fleet_settings *settings;
	const bool *given;

	if (equals == NULL)
		return fail(why, "This is neither [LIMIT] nor SETTING = VALUE.");
	if (file->count == 0)
		return fail(why, "There is no [LIMIT] above this setting.");
	*equals = '\0';
	name = trim(text);
	value = trim(equals + 1);
	settings = &file->at[file->count - 1].settings;
	given = fleet_setting_given(settings, name, strlen(name));
	if (given == NULL)
		return fail(why, "%s: There is no such setting.", name);
	if (*given)
		return fail(why, "%s is given twice.", name);
	if (!fleet_setting_take(settings, given, value, wrong, sizeof(wrong)))
		return fail(why, "%s = %s: %s.", name, value, wrong);
	return 0;
}

static int take_line(struct limits_file *file, char *line, struct sentence why)
{
	char *text;

	line[strcspn(line, "#")] = '\0';
	text = trim(line);
	if (text[0] == '\0')
		return 0;
	return text[0] == '[' ? take_group(file, text, why) : take_setting(file, text, why);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): fail() writes to why through the sentence */
int limits_file_read(FILE *in, struct limits_file *file, char *why, size_t why_size)
{
	const struct sentence sentence = {why, why_size};
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int r = 0;

	*file = (struct limits_file){.count = 0};
	errno = 0;
	while (r == 0 && (length = getline(&line, &room, in)) >= 0) {
		file->line++;
		if (strlen(line) != (size_t)length)
			r = fail(sentence, "This is not text.");
		else
			r = take_line(file, line, sentence);
		errno = 0;
	}
	if (r == 0 && !feof(in)) {
		r = errno != 0 ? -errno : -EIO;
		fail(sentence, "%s.", strerror(-r));
	}
	free(line);
	return r;
}

void limits_file_free(struct limits_file *file)
{
	free(file->at);
	*file = (struct limits_file){.count = 0};
}

static void print(FILE *out, const char *kind, const char *name,
		  const struct weir_fleet_limit *limit)
{
	char learning[LEARNING_ROOM];

	fprintf(out, "[%s%s]\ncapacity = %" PRIu64 "\nallotment = %s\n", kind, name,
		limit->capacity - limit->carried, fleet_allotment(limit->allotment));
	fprintf(out, "reserved = %" PRIu64 "\nmembers = %" PRIu32 "\nlease = %.10g\n",
		limit->reserved, limit->members_max, (double)limit->lease / (double)WEIR_S);
	fprintf(out, "learning = %s\n", fleet_learning(limit->learning_period, learning));
	if (limit->allocated != 0)
		fputs("allocated = 1\n", out);
}

void limits_file_print(FILE *out, const char *name, const struct weir_fleet_limit *limit)
{
	print(out, "", name, limit);
}

void limits_file_print_template(FILE *out, const char *pattern,
				const struct weir_fleet_limit *limit)
{
	print(out, TEMPLATE " ", pattern, limit);
}
