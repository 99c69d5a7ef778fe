/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.h - find the traces in a directory.
 */
#ifndef CONFORM_FILES_H
#define CONFORM_FILES_H

#include <stddef.h>

struct files {
	char **paths;
	size_t count;
};

/*
 * Add the files that directory/index.tsv lists or, if there is no index, every *.csv by name.
 * Then add those of directory/limiter, if it exists. Returns 0, or a negative errno.
 */
int files_add(struct files *files, const char *directory);
void files_free(struct files *files);

#endif
