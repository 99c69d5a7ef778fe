/*
 * files.h - which files of a directory are traces.
 */
#ifndef CONFORM_FILES_H
#define CONFORM_FILES_H

#include <stddef.h>

struct files {
	char **paths;
	size_t count;
};

/*
 * The files that directory/index.tsv lists; without one, every *.csv by name.
 * Then those of directory/limiter, if there is one. 0 or a negative errno.
 */
int files_add(struct files *files, const char *directory);
void files_free(struct files *files);

#endif
