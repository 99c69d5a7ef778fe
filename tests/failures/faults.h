/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the n-th allocation or system call of a thread fail, and knows what a process holds.
 *
 * faults.c defines malloc(), mmap(), open() and the others. The definitions of a program come before
 * those of libc for all of its shared libraries too, so each call of weir's libraries arrives there.
 * A call within libc arrives there only if it is an allocation.
 */
#ifndef WEIR_TESTS_FAILURES_FAULTS_H
#define WEIR_TESTS_FAILURES_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

enum fault {
	FAULT_MEMORY,  /* malloc, calloc, realloc, aligned_alloc, posix_memalign, memalign */
	FAULT_MAP,     /* mmap */
	FAULT_ADVISE,  /* madvise */
	FAULT_OPEN,    /* open, openat, shm_open, fopen, opendir */
	FAULT_READ,    /* read, pread, readdir, and reads of what fopen() returned */
	FAULT_WRITE,   /* write */
	FAULT_RESERVE, /* ftruncate, posix_fallocate */
	FAULT_STAT,    /* fstat, stat, readlink */
	FAULT_LINK,    /* linkat */
	FAULT_LOCK,    /* flock */
	FAULT_THREAD,  /* pthread_create */
	FAULT_RANDOM,  /* getrandom, getentropy */
	FAULT_EVENT,   /* eventfd, epoll_create1, pipe2 */
	FAULT_SOCKET,  /* socket */
	FAULT_CONNECT, /* connect */
	FAULT_SEND,    /* send, sendto, sendmsg */
	FAULT_RECEIVE, /* recv, recvfrom, recvmsg */
	FAULT_KINDS,
};

#define FAULT_BIT(kind) (1u << (kind))

/*
 * Let the nth call of that kind that this thread makes fail with that errno; and each one after it,
 * if lasting.
 */
void fault_arm(enum fault kind, unsigned nth, int error, bool lasting);

/*
 * Let only those allocations fail, and count, that libraries make whose names contain that. Others
 * may end the program without memory.
 */
void fault_only_in(const char *library);

/* From now on none fails. Returns whether one has. */
bool fault_disarm(void);

/* What is held: allocations made since holdings_watch(), bytes mapped by mmap(), descriptors. */
struct holdings {
	size_t blocks, mapped, files;
};

/* Forget all allocations up to now, and count those from now on. */
void holdings_watch(void);
struct holdings holdings_take(void);

/* Show which allocation failed, and which are left; addr2line knows the lines. */
void fault_show(void);
void holdings_show(void);

#endif
