/*
 * settings.h - settings as libconfig has read them, by tables that say what each may be and where
 * it goes, and with a sentence about what is wrong.
 *
 * Functions that return an int return 0, or -EINVAL after "NAME:LINE: what is wrong".
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "scenario.h"

#include <libconfig.h>

#define DURATION_MAX (10000 * 3600e9)

/* What is read, and where it is said why it cannot be. */
struct reader {
	const char *name;
	const char *folder; /* of the file, for names of others; "": the present one */
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
	KEY_WORD,     /* unsigned: which of the words */
	KEY_RANGE,    /* double[2]: a number, or two */
	KEY_SHARES,   /* double[CLASSES_MAX] */
	KEY_OTHER,    /* read by somebody else */
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	double min, max;
	const char *const *words;
};

/* Say what is wrong with a setting. Always -EINVAL. */
__attribute__((format(printf, 3, 4))) int settings_fail(const struct reader *r,
							const config_setting_t *at,
							const char *format, ...);

/* Every setting of a group by a table, which ends with one without a name. */
int settings_read(const struct reader *r, const config_setting_t *group, const struct key *keys,
		  void *base);

/* A law whose name is no table's. */
int settings_read_law(const struct reader *r, const config_setting_t *from, const char *name,
		      struct law *to);

/* A list of groups, at least one and at most so many, or one group that stands in its place. */
int settings_check_list(const struct reader *r, const config_setting_t *list, unsigned max);

/* One of its elements; NULL past the last. */
const config_setting_t *settings_element(const config_setting_t *list, unsigned index);

bool settings_has(const config_setting_t *group, const char *name);

/* Its name; "this" if it has none. */
const char *settings_name(const config_setting_t *setting);

/* A digest goes on: with what is set, in that order, from whichever file; not how it is written. */
uint64_t settings_digest(uint64_t digest, const config_setting_t *setting);

/* And with bytes. FNV-1a. */
uint64_t settings_digest_bytes(uint64_t digest, const void *data, size_t size);

#endif
