/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of static memory. processes.h says what they are for. */

#include "tests/interleave/processes.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/interleave/explore.h"

#define BLOCK (64u << 10)
#define PAGES (64u << 10) /* for the handles */

/*
 * No process has pids as high as these, so /proc shows nothing of them, and the library goes by
 * kill() alone.
 */
#define FIRST_PID 0x3ffff0

struct weir_limiter *process[PROCESSES];

static _Alignas(4096) char block[BLOCK];
static _Alignas(4096) char own_pages[PAGES];
static size_t used;

static char first_block[BLOCK], first_pages[PAGES]; /* as they were at the first time */
static size_t first_used;
static const struct weir_config *made; /* what first_block was made with */
static uint32_t made_members;

static unsigned attaching; /* the process that attaches in setup */
static bool gone[PROCESSES];

static void make(const struct weir_config *config, uint32_t members)
{
	char why[200] = "";

	used = 0;
	memset(block, 0, sizeof(block));
	if (weir_shm_init(block, sizeof(block), config, members, why, sizeof(why)) != 0)
		explore_fail("%s", why);
	for (attaching = 0; attaching < members; attaching++)
		if (weir_shm_attach(block, sizeof(block), config, &process[attaching], why,
				    sizeof(why)) != 0)
			explore_fail("%s", why);
	memcpy(first_block, block, sizeof(block));
	memcpy(first_pages, own_pages, sizeof(own_pages));
	first_used = used;
	made = config;
	made_members = members;
}

void processes_begin(const struct weir_config *config, uint32_t members)
{
	memset(gone, 0, sizeof(gone));
	if (config != made || members != made_members)
		make(config, members);
	memcpy(block, first_block, sizeof(block));
	memcpy(own_pages, first_pages, sizeof(own_pages));
	used = first_used;
}

void processes_died(unsigned number)
{
	gone[number] = true;
}

pid_t getpid(void)
{
	return (pid_t)(FIRST_PID + attaching);
}

int kill(pid_t pid, int number)
{
	const unsigned thread = (unsigned)pid - FIRST_PID;

	(void)number;
	if (thread < PROCESSES && !gone[thread] && !explore_finds_dead(thread))
		return 0;
	errno = ESRCH;
	return -1;
}

static bool is_own(const void *address)
{
	return (const char *)address >= own_pages && (const char *)address < own_pages + PAGES;
}

/* Handles are small. The explorer's own tables are not, and are the system's business. */
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *at = own_pages + used;

	if (size > PAGES)
		return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
	if (size > PAGES - used)
		explore_fail("the processes need more than %u bytes", PAGES);
	used += (size + 4095) / 4096 * 4096;
	return memset(at, 0, size);
}

int munmap(void *address, size_t size)
{
	return is_own(address) ? 0 : (int)syscall(SYS_munmap, address, size);
}

int madvise(void *address, size_t size, int advice)
{
	return is_own(address) ? 0 : (int)syscall(SYS_madvise, address, size, advice);
}
