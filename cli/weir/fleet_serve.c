/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_serve.c - weir fleet serve: runs weir-fleet-serve, which is a program of its own as it needs
 * gRPC. The one beside this program is taken, or else the one in the PATH.
 */
#include "fleet.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "name.h"

#define SERVE "weir-fleet-serve"

/* The path of a program in the folder of this one. Returns false if it is too long. */
static bool beside(const char *program, char path[PATH_MAX])
{
	const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (length < 0)
		return false;
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL || (size_t)(slash + 1 - path) + strlen(program) >= PATH_MAX)
		return false;
	memcpy(slash + 1, program, strlen(program) + 1);
	return true;
}

/* The store's options have become environment variables, which that program reads, too. */
int fleet_serve(int argc, char **argv)
{
	char path[PATH_MAX];

	(void)argc;
	if (beside(SERVE, path))
		execv(path, argv);
	execvp(SERVE, argv);
	if (errno == ENOENT)
		name_complain("", "weir-fleet-serve is not installed: it is a package of its own.");
	else
		name_complain(SERVE, strerror(errno));
	return EXIT_FAILURE;
}
