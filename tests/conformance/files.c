/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.c - find the traces in a directory.
 */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add(struct files *files, const char *directory, const char *name)
{
	char **paths = realloc(files->paths, (files->count + 1) * sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	files->paths = paths;
	if (asprintf(&paths[files->count], "%s/%s", directory, name) < 0)
		return -ENOMEM;
	files->count++;
	return 0;
}

static int add_indexed(struct files *files, const char *directory, FILE *index)
{
	char *line = NULL;
	size_t room = 0;
	int error = 0;

	/* The first line names the columns. */
	if (getline(&line, &room, index) < 0)
		error = -EIO;
	while (error == 0 && getline(&line, &room, index) > 0) {
		line[strcspn(line, "\t\n")] = '\0';
		if (line[0] != '\0')
			error = add(files, directory, line);
	}
	free(line);
	return error;
}

static int is_trace(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0;
}

static int add_found(struct files *files, const char *directory)
{
	struct dirent **entries;
	int count = scandir(directory, &entries, is_trace, alphasort), error = 0, i;

	if (count < 0)
		return -errno;
	for (i = 0; i < count; i++) {
		if (error == 0)
			error = add(files, directory, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return error;
}

static int add_directory(struct files *files, const char *directory)
{
	char *path;
	FILE *index;
	int error;

	if (asprintf(&path, "%s/index.tsv", directory) < 0)
		return -ENOMEM;
	index = fopen(path, "r");
	free(path);
	if (!index)
		return errno == ENOENT ? add_found(files, directory) : -errno;
	error = add_indexed(files, directory, index);
	fclose(index);
	return error;
}

int files_add(struct files *files, const char *directory)
{
	struct stat status;
	char *limiter;
	int error;

	error = add_directory(files, directory);
	if (error != 0)
		return error;
	if (asprintf(&limiter, "%s/limiter", directory) < 0)
		return -ENOMEM;
	if (stat(limiter, &status) == 0 && S_ISDIR(status.st_mode))
		error = add_directory(files, limiter);
	free(limiter);
	return error;
}

void files_free(struct files *files)
{
	size_t i;

	for (i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
}
