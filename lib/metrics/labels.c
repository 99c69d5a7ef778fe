/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/metrics/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Size of the UTF-8 character that begins here, in bytes; 0 if it is invalid. */
static size_t character(const unsigned char *text, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t code = text[0];
	size_t size;

	if (code < 0x80)
		return code != 0;
	size = code >= 0xf0 ? 4 : code >= 0xe0 ? 3 : 2;
	if (code < 0xc0 || code > 0xf4 || size > left)
		return 0;
	code &= 0x7fu >> size;
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3fu);
	}
	if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return size;
}

bool labels_is_text(const char *value, size_t length)
{
	size_t size;

	for (size_t i = 0; i < length; i += size) {
		size = character((const unsigned char *)value + i, length - i);
		if (size == 0)
			return false;
	}
	return true;
}

bool labels_is_name(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char digits[] = "0123456789";
	const char *rest;

	if (name == NULL || strncmp(name, "__", 2) == 0 || strspn(name, letters) == 0)
		return false;
	for (rest = name; *rest != '\0'; rest++)
		if (strchr(letters, *rest) == NULL && strchr(digits, *rest) == NULL)
			return false;
	return true;
}

/* Reserved for metrics that have more than a limiter's own labels. */
static bool is_taken(const char *name)
{
	return strcmp(name, "number") == 0 || strcmp(name, "partition") == 0 ||
	       strcmp(name, "quota") == 0 || strcmp(name, "status") == 0;
}

static size_t length_of(const struct weir_label *label)
{
	return label->length > 0 ? label->length : strlen(label->value);
}

/* The label whose name follows that of before, or the first; NULL: there is none. */
static const struct weir_label *next_label(const struct weir_label *labels, size_t count,
					   const struct weir_label *before)
{
	const struct weir_label *next = NULL;

	for (size_t i = 0; i < count; i++) {
		if (before != NULL && strcmp(labels[i].name, before->name) <= 0)
			continue;
		if (next == NULL || strcmp(labels[i].name, next->name) < 0)
			next = &labels[i];
	}
	return next;
}

int labels_check(const struct weir_label *labels, size_t count)
{
	const struct weir_label *label = NULL;
	size_t names = 0;

	for (size_t i = 0; i < count; i++)
		if (!labels_is_name(labels[i].name) || is_taken(labels[i].name) ||
		    labels[i].value == NULL)
			return -EINVAL;
	while ((label = next_label(labels, count, label)) != NULL)
		names++;
	return names == count ? 0 : -EINVAL;
}

static char *append_escaped(char *to, const char *value, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (value[i] == '"' || value[i] == '\\' || value[i] == '\n')
			*to++ = '\\';
		*to++ = value[i] == '\n' ? 'n' : value[i];
	}
	return to;
}

int labels_write(const struct weir_label *labels, size_t count, char **text)
{
	const struct weir_label *label = NULL;
	size_t size = 1;
	char *to;

	for (size_t i = 0; i < count; i++) {
		if (!labels_is_text(labels[i].value, length_of(&labels[i])))
			return -EILSEQ;
		size += strlen(labels[i].name) + 2 * length_of(&labels[i]) + strlen("=\"\",");
	}
	*text = to = malloc(size);
	if (to == NULL)
		return -ENOMEM;
	while ((label = next_label(labels, count, label)) != NULL) {
		if (length_of(label) == 0)
			continue;
		to = stpcpy(to, to == *text ? "" : ",");
		to = stpcpy(to, label->name);
		to = stpcpy(to, "=\"");
		to = append_escaped(to, label->value, length_of(label));
		to = stpcpy(to, "\"");
	}
	*to = '\0';
	return 0;
}

int labels_write_one(const char *name, const char *value, char **text)
{
	const struct weir_label label = {.name = name, .value = value};

	return labels_write(&label, 1, text);
}
