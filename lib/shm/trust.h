/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files are trusted as shared limiters, by their owners and modes. */
#ifndef WEIR_LIB_TRUST_H
#define WEIR_LIB_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What is trusted besides this process's user and root, which always are. */
struct trust {
	uint32_t owner; /* of the file: a user, or WEIR_SHM_ANY_USER */
	mode_t writers; /* S_IWGRP, S_IWOTH: these may write, if the owner allows it */
	bool group;     /* also trust any owner whose file is of this process's group */
};

/* The trust of a caller that would create the file with that mode. */
struct trust trust_of_mode(uint32_t owner, mode_t mode);

/* The trust of an observer. */
struct trust trust_of_observer(uint32_t owner);

/*
 * Whether the file behind a descriptor is a regular one that only trusted users can write to.
 * Returns 0, and fills *file by fstat(); else a negative errno and a sentence, and nothing of the
 * file may be used.
 */
int trust_check(const struct trust *trust, int fd, const char *name, struct stat *file, char *why,
		size_t why_size);

#endif
