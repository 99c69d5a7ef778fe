/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no_fleet.c - weir fleet in a build without libweir-fleet.
 */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>

int command_fleet(int argc, char **argv)
{
	(void)argc;
	fprintf(stderr, "%s: This program was built without libweir-fleet.\n", argv[0]);
	return EXIT_FAILURE;
}
