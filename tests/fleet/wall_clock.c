/* SPDX-License-Identifier: BSD-2-Clause */
#include "wall_clock.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../stress/check.h"

/* Sanitizers must be the first libraries loaded. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAKETIME ""
#else
#define FAKETIME "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
#endif

void wall_clock_begin(struct wall_clock *wall)
{
	*wall = (struct wall_clock){.file = ""};
	if (access(FAKETIME, R_OK) != 0) {
		printf("no libfaketime: no clock is set\n");
		return;
	}
	(void)snprintf(wall->file, sizeof(wall->file), "/tmp/weir-clock-%d", (int)getpid());
	wall_clock_set(wall, "+0");
}

void wall_clock_end(const struct wall_clock *wall)
{
	if (wall_clock_can(wall))
		(void)unlink(wall->file);
}

bool wall_clock_can(const struct wall_clock *wall)
{
	return wall->file[0] != '\0';
}

/* Written atomically: a concurrent reader gets the old offset. */
void wall_clock_set(const struct wall_clock *wall, const char *offset)
{
	char temporary[80];
	FILE *file;

	(void)snprintf(temporary, sizeof(temporary), "%s.new", wall->file);
	file = fopen(temporary, "w");
	CHECK(file != NULL && fputs(offset, file) >= 0 && fclose(file) == 0);
	CHECK(rename(temporary, wall->file) == 0);
}

void wall_clock_follow(const struct wall_clock *wall)
{
	if (!wall_clock_can(wall))
		return;
	setenv("LD_PRELOAD", FAKETIME, 1);
	setenv("FAKETIME_TIMESTAMP_FILE", wall->file, 1);
	setenv("FAKETIME_NO_CACHE", "1", 1);
	setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
	setenv("DONT_FAKE_MONOTONIC", "1", 1);
}

void wall_clock_killed(pid_t program)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/faketime_shm_%d", (int)program);
	(void)shm_unlink(name);
	(void)snprintf(name, sizeof(name), "/faketime_sem_%d", (int)program);
	(void)sem_unlink(name);
}
