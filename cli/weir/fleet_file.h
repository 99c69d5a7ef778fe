/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_file.h - limits and templates in a file, a group of settings for each:
 *
 *	# a comment
 *	[payments]
 *	capacity = 500
 *	lease = 15
 *	[template web-*]
 *	capacity = 100
 */
#ifndef FLEET_FILE_H
#define FLEET_FILE_H

#include "fleet_settings.h"

struct file_limit {
	char name[WEIR_SHARE_NAME_MAX + 1]; /* or pattern; may be invalid */
	bool is_template;
	unsigned line; /* where its group begins */
	struct fleet_settings settings;
};

struct limits_file {
	struct file_limit *at; /* in the order of the file */
	size_t count;
	unsigned line; /* that was read last: of an error */
};

/*
 * Read a file to its end. Returns 0, or a negative errno and a sentence. The caller calls
 * limits_file_free() in each case.
 */
int limits_file_read(FILE *in, struct limits_file *file, char *why, size_t why_size);
void limits_file_free(struct limits_file *file);

/* NULL if the file lacks it. */
const struct file_limit *limits_file_find(const struct limits_file *file, const char *name,
					  bool is_template);

/* Print all settings of a limit as such a group, its capacity without what a region carries. */
void limits_file_print(FILE *out, const char *name, const struct weir_fleet_limit *limit);
void limits_file_print_template(FILE *out, const char *pattern,
				const struct weir_fleet_limit *limit);

#endif
