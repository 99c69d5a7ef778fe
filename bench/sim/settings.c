/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings.c - a reader for each kind of setting; tables give the kind and the destination.
 */
#include "settings.h"

#include "quantity.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Size of the list of names in a message. */
#define WORDS_SIZE 200

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

int settings_fail(const struct reader *r, const config_setting_t *at, const char *format, ...)
{
	va_list args;
	int error;

	va_start(args, format);
	error = fail_at(r, at, format, args);
	va_end(args);
	return error;
}

const char *settings_name(const config_setting_t *setting)
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
		return settings_fail(r, from, "%s is not a number.", key->name);
	*to = number_of(from);
	if (!(*to >= key->min && *to <= key->max))
		return settings_fail(r, from, "%s is %g, not from %g to %g.", key->name, *to,
				     key->min, key->max);
	return 0;
}

static int read_text(const struct reader *r, const config_setting_t *from, const struct key *key,
		     char *to, size_t size)
{
	const char *text = config_setting_get_string(from);

	if (text == NULL)
		return settings_fail(r, from, "%s is not a text in quotes.", key->name);
	if (strlen(text) >= size)
		return settings_fail(r, from, "%s is longer than %zu bytes.", key->name, size - 1);
	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ')
			return settings_fail(r, from, "%s contains a tab or a line break.",
					     key->name);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

static int read_duration(const struct reader *r, const config_setting_t *from,
			 const struct key *key, weir_dur *to)
{
	const char *text = config_setting_get_string(from);
	double value;

	if (text == NULL || !duration_read(text, &value))
		return settings_fail(r, from,
				     "%s is not a duration: write \"10ms\", \"2s\", \"1.5h\".",
				     key->name);
	if (value > DURATION_MAX || value < key->min)
		return settings_fail(r, from, "%s is too %s.", key->name,
				     value < key->min ? "short" : "long");
	*to = (weir_dur)value;
	return 0;
}

int settings_read_law(const struct reader *r, const config_setting_t *from, const char *name,
		      struct law *to)
{
	const char *text = config_setting_get_string(from);
	const char *wrong = text == NULL ? "it is not a text in quotes" : law_read(text, to);

	if (wrong != NULL)
		return settings_fail(r, from, "%s: %s.", name, wrong);
	if (to->mean > DURATION_MAX)
		return settings_fail(r, from, "%s is too long.", name);
	return 0;
}

/* Join names by commas, for a message. */
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
	return settings_fail(r, from, "%s must be one of: %s.", key->name, known);
}

/* Read an array of numbers, or a list, which may mix integers and fractions. */
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
		return settings_fail(r, from, "%s is neither a number nor a pair, as in (0, 1.5).",
				     key->name);
	for (unsigned i = 0; i < 2 && error == 0; i++)
		error = read_number(r, config_setting_get_elem(from, i), key, &to[i]);
	return error;
}

static int read_shares(const struct reader *r, const config_setting_t *from, const struct key *key,
		       double *to)
{
	int count = config_setting_length(from), error = 0;

	if (!is_row(from) || count > CLASSES_MAX)
		return settings_fail(r, from,
				     "%s is not a list of up to %d numbers, as in (0.9, 0.1).",
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
	case KEY_TEXT:
		return read_text(r, from, key, to, TEXT_SIZE);
	case KEY_NAME:
		return read_text(r, from, key, to, NAME_SIZE);
	case KEY_NUMBER:
		return read_number(r, from, key, to);
	case KEY_COUNT:
		error = read_number(r, from, key, &number);
		if (error != 0)
			return error;
		if (number != floor(number))
			return settings_fail(r, from, "%s is not a whole number.", key->name);
		*(unsigned *)to = (unsigned)number;
		return 0;
	case KEY_DURATION:
		return read_duration(r, from, key, to);
	case KEY_LAW:
		return settings_read_law(r, from, key->name, to);
	case KEY_FLAG:
		if (config_setting_type(from) != CONFIG_TYPE_BOOL)
			return settings_fail(r, from, "%s is neither true nor false.", key->name);
		*(bool *)to = config_setting_get_bool(from) != 0;
		return 0;
	case KEY_WORD:
		return read_word(r, from, key, to);
	case KEY_RANGE:
		return read_range(r, from, key, to);
	case KEY_SHARES:
		return read_shares(r, from, key, to);
	case KEY_OTHER:
		break;
	}
	return 0;
}

static int fail_unknown(const struct reader *r, const config_setting_t *at, const struct key *keys)
{
	char known[WORDS_SIZE] = "";

	for (; keys->name != NULL; keys++)
		join(known, sizeof(known), keys->name);
	return settings_fail(r, at, "There is no setting \"%s\" here. There are: %s.",
			     settings_name(at), known);
}

int settings_read(const struct reader *r, const config_setting_t *group, const struct key *keys,
		  void *base)
{
	int error = 0;

	if (!config_setting_is_group(group))
		return settings_fail(r, group, "%s is not a group of settings, as in { a = 1; }.",
				     settings_name(group));
	for (int i = 0; i < config_setting_length(group) && error == 0; i++) {
		const config_setting_t *one = config_setting_get_elem(group, (unsigned)i);
		const struct key *key = keys;

		while (key->name != NULL && strcmp(key->name, settings_name(one)) != 0)
			key++;
		if (key->name == NULL)
			return fail_unknown(r, one, keys);
		error = read_key(r, one, key, base);
	}
	return error;
}

const config_setting_t *settings_element(const config_setting_t *list, unsigned index)
{
	if (config_setting_is_group(list))
		return index == 0 ? list : NULL;
	return config_setting_get_elem(list, index);
}

int settings_check_list(const struct reader *r, const config_setting_t *list, unsigned max)
{
	if (!config_setting_is_group(list) && !config_setting_is_list(list))
		return settings_fail(r, list,
				     "%s is not a list of groups, as in ( { ... }, { ... } ).",
				     settings_name(list));
	if (config_setting_is_list(list) && (unsigned)config_setting_length(list) > max)
		return settings_fail(r, list, "%s has more than %u elements.", settings_name(list),
				     max);
	if (settings_element(list, 0) == NULL)
		return settings_fail(r, list, "%s is empty.", settings_name(list));
	return 0;
}

bool settings_has(const config_setting_t *group, const char *name)
{
	return config_setting_get_member(group, name) != NULL;
}

uint64_t settings_digest_bytes(uint64_t digest, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
	return digest;
}

uint64_t settings_digest(uint64_t digest, const config_setting_t *setting)
{
	const char *name = settings_name(setting), *text = config_setting_get_string(setting);
	double number = is_number(setting) ? number_of(setting) : config_setting_get_bool(setting);
	int type = is_number(setting) ? CONFIG_TYPE_FLOAT : config_setting_type(setting);
	int count = config_setting_length(setting);

	digest = settings_digest_bytes(digest, name, strlen(name) + 1);
	digest = settings_digest_bytes(digest, &type, sizeof(type));
	digest = settings_digest_bytes(digest, &number, sizeof(number));
	if (text != NULL)
		digest = settings_digest_bytes(digest, text, strlen(text) + 1);
	for (int i = 0; i < count; i++)
		digest = settings_digest(digest, config_setting_get_elem(setting, (unsigned)i));
	return digest;
}
