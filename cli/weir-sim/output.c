/* SPDX-License-Identifier: BSD-2-Clause */
#include "output.h"

#include <errno.h>
#include <string.h>

static bool complain(const char *path)
{
	fprintf(stderr, "weir-sim: %s: %s\n", path,
		errno != 0 ? strerror(errno) : "Not all of it could be written");
	return false;
}

FILE *output_open(const char *path)
{
	FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

	if (file == NULL)
		complain(path);
	return file;
}

bool output_close(FILE *file, const char *path)
{
	bool good;

	if (file == NULL || file == stdout)
		return true;
	errno = 0;
	good = fflush(file) == 0 && ferror(file) == 0;
	good &= fclose(file) == 0;
	return good || complain(path);
}
