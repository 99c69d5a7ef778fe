#include "output.h"

#include <errno.h>
#include <string.h>

static void complain(const char *path)
{
	fprintf(stderr, "weir-sim: %s: %s\n", path, strerror(errno));
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
	bool good = file == NULL || (ferror(file) == 0 && fflush(file) == 0);

	if (file != NULL && file != stdout)
		good &= fclose(file) == 0;
	if (!good)
		complain(path);
	return good;
}
