/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files are trusted. The check is on the descriptor and not on the name, which may refer to
 * another file by now.
 */

#include "lib/shm/trust.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <weir/shm.h>

#include "lib/base/explain.h"

struct trust trust_of_mode(uint32_t owner, mode_t mode)
{
	if ((mode & S_IWOTH) != 0)
		return (struct trust){.owner = WEIR_SHM_ANY_USER, .writers = S_IWGRP | S_IWOTH};
	return (struct trust){
		.owner = owner,
		.writers = mode & S_IWGRP,
		.group = (mode & S_IWGRP) != 0,
	};
}

/* The owner has chosen the group, and what its members write is only displayed. */
struct trust trust_of_observer(uint32_t owner)
{
	return (struct trust){
		.owner = owner,
		.writers = owner == WEIR_SHM_ANY_USER ? S_IWGRP | S_IWOTH : S_IWGRP,
	};
}

static bool trusts_owner(const struct trust *trust, const struct stat *file)
{
	return file->st_uid == geteuid() || file->st_uid == 0 ||
	       trust->owner == WEIR_SHM_ANY_USER || trust->owner == file->st_uid ||
	       (trust->group && file->st_gid == getegid());
}

int trust_check(const struct trust *trust, int fd, const char *name, struct stat *file, char *why,
		size_t why_size)
{
	char text[128];
	mode_t others;

	if (fstat(fd, file) != 0) {
		const int error = errno;

		explain(why, why_size, "%s: cannot be examined: %s.", name,
			strerror_r(error, text, sizeof(text)));
		return -error;
	}
	if (!S_ISREG(file->st_mode)) {
		explain(why, why_size,
			"%s: there is no shared limiter: this is not a regular file.", name);
		return -EPROTO;
	}
	if (!trusts_owner(trust, file)) {
		explain(why, why_size,
			"%s: it belongs to user %u, who is not trusted: only user %u and root are.",
			name, (unsigned)file->st_uid, (unsigned)geteuid());
		return -EPERM;
	}
	others = file->st_mode & (S_IWGRP | S_IWOTH) & ~trust->writers;
	if (others == 0)
		return 0;
	if ((others & S_IWOTH) != 0)
		explain(why, why_size,
			"%s: its owner, user %u, lets every user write to it, and not all are "
			"trusted.",
			name, (unsigned)file->st_uid);
	else
		explain(why, why_size,
			"%s: its owner, user %u, lets group %u write to it, which is not trusted.",
			name, (unsigned)file->st_uid, (unsigned)file->st_gid);
	return -EPERM;
}
