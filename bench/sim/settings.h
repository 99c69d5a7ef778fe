/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings.h - read libconfig settings by tables, which give the kind, the range and the
 * destination of each setting.
 *
 * Functions that return an int return 0, or -EINVAL with "NAME:LINE: what is wrong" in why.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "scenario.h"

#include <libconfig.h>

#define DURATION_MAX (10000 * 3600e9)

/* What is read, and where the error message goes. */
struct reader {
	const char *name;
	const char *folder; /* of the file, for relative names in it; "": the current folder */
	char *why;
	size_t why_size;
};

enum kind {
	KEY_TEXT,     /* char[TEXT_SIZE] */
	KEY_NAME,     /* char[NAME_SIZE] */
	KEY_NUMBER,   /* double */
	KEY_COUNT,    /* unsigned */
	KEY_DURATION, /* weir_dur, from text */
	KEY_LAW,      /* struct law, from text; its mean within DURATION_MAX */
	KEY_FLAG,     /* bool */
	KEY_WORD,     /* unsigned: index of one of the words */
	KEY_RANGE,    /* double[2]: a number, or a pair */
	KEY_SHARES,   /* double[CLASSES_MAX] */
	KEY_OTHER,    /* read elsewhere */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	double min, max;
	const char *const *words;
};

/* Write what is wrong with a setting to r->why. Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int settings_fail(const struct reader *r,
							const config_setting_t *at,
							const char *format, ...);

/* Read every setting of a group by a table, which ends with an entry without a name. */
int settings_read(const struct reader *r, const config_setting_t *group, const struct key *keys,
		  void *base);

/* Read a law whose name is not in a table. */
int settings_read_law(const struct reader *r, const config_setting_t *from, const char *name,
		      struct law *to);

/* Check for a list of 1 to max groups, or a single group in its place. */
int settings_check_list(const struct reader *r, const config_setting_t *list, unsigned max);

/* An element of such a list; NULL past the last. */
const config_setting_t *settings_element(const config_setting_t *list, unsigned index);

bool settings_has(const config_setting_t *group, const char *name);

/* The name of a setting; "this" if it has none. */
const char *settings_name(const config_setting_t *setting);

/* Extend a digest by settings: their values and order, but neither the layout nor the file. */
uint64_t settings_digest(uint64_t digest, const config_setting_t *setting);

/* Extend a digest by bytes. FNV-1a. */
uint64_t settings_digest_bytes(uint64_t digest, const void *data, size_t size);

#endif
