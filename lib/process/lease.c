/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify the processes that share a limiter, and detect their death. lease.h has the ledger.
 *
 * A process is identified by its pid, its pid namespace and its start time, because pids are
 * reused. Some low bits of the latter two are enough, and all fits one word, so a lease is taken
 * either together with its owner's identity or not at all. If the bits of two processes coincide
 * (the start time wraps after hours, and the pid must match too), a dead process counts as alive as
 * long as the new one of that pid lives.
 *
 * In doubt a process counts as alive. Without /proc, or if it is hidden, the pid alone decides.
 * Nothing is known of another pid namespace. A process that cannot read /proc for the moment does
 * not get an identity: with half of one it would count as alive for good, or as foreign.
 */

#include "lib/process/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/process/proc.h"

#define BEGAN_BITS 21
#define SPACE_BITS 20
#define PID_SHIFT  (BEGAN_BITS + SPACE_BITS)

#define BEGAN_MASK ((UINT64_C(1) << BEGAN_BITS) - 1)
#define SPACE_MASK ((UINT64_C(1) << SPACE_BITS) - 1)

uint32_t lease_stride(uint32_t parts)
{
	const size_t line = round_up_to_line(parts * sizeof(struct holding));

	return (uint32_t)(line / sizeof(struct holding));
}

/* The fields of /proc/PID/stat that are used. */
struct process_stat {
	char state;
	long threads;
	uint64_t began; /* clock ticks since boot */
};

/* The text after that many blanks; NULL: there are fewer. */
static const char *after(const char *text, unsigned blanks)
{
	for (; blanks > 0 && text != NULL; blanks--) {
		text = strchr(text, ' ');
		text = text != NULL ? text + 1 : NULL;
	}
	return text;
}

/*
 * The second field is the name of the program in parentheses, and may itself contain parentheses
 * and blanks. The third is the state, the 20th the number of threads, the 22nd the start time.
 */
static bool parse(const char *text, struct process_stat *s)
{
	const char *name_end = strrchr(text, ')');
	const char *began = after(name_end, 20);

	if (began == NULL)
		return false;
	s->state = *after(name_end, 1);
	s->threads = strtol(after(name_end, 18), NULL, 10);
	s->began = strtoull(began, NULL, 10);
	return true;
}

/* Fills in *s. Returns 0; -ESRCH if nothing is known of that process; or as proc_read(). */
static int read_stat(int32_t pid, struct process_stat *s)
{
	char path[32], text[1024];
	int r;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/stat", pid);
	r = proc_read(path, text, sizeof(text));
	if (r != 0)
		return r;
	return parse(text, s) ? 0 : -ESRCH;
}

/*
 * When this process began; 0 if that is not known. If /proc belongs to another pid namespace, its
 * pids are those of other processes.
 */
static int find_beginning(int32_t pid, uint64_t *began)
{
	struct process_stat seen;
	char target[32], own[32];
	int r = proc_link("/proc/self", target, sizeof(target));

	*began = 0;
	snprintf(own, sizeof(own), "%" PRId32, pid);
	if (r != 0 || strcmp(target, own) != 0)
		return r;
	r = read_stat(pid, &seen);
	if (r == 0)
		*began = seen.began;
	return r != -ESRCH ? r : 0;
}

int lease_identify(uint64_t *identity)
{
	const int32_t pid = (int32_t)getpid();
	uint64_t began, space;
	int r = find_beginning(pid, &began);

	if (r == 0)
		r = proc_namespace("/proc/self/ns/pid", &space);
	if (r == 0)
		*identity = (uint64_t)(uint32_t)pid << PID_SHIFT |
			    (space & SPACE_MASK) << BEGAN_BITS | (began & BEGAN_MASK);
	return r;
}

int32_t lease_pid(uint64_t identity)
{
	return (int32_t)(identity >> PID_SHIFT);
}

/* A thread group leader that has exited is a zombie while its other threads run. */
static bool has_ended(const struct process_stat *s)
{
	return (s->state == 'Z' || s->state == 'X') && s->threads <= 1;
}

enum fate lease_fate(uint64_t identity, uint64_t self)
{
	const int32_t pid = lease_pid(identity);
	struct process_stat seen;

	if (((identity ^ self) >> BEGAN_BITS & SPACE_MASK) != 0)
		return FOREIGN;
	if (kill(pid, 0) != 0 && errno == ESRCH)
		return DEAD;
	/* Without /proc, then or now, nothing more is known. */
	if ((self & BEGAN_MASK) == 0 || read_stat(pid, &seen) != 0)
		return ALIVE;
	if (has_ended(&seen))
		return DEAD;
	if ((identity & BEGAN_MASK) == 0)
		return ALIVE;
	return (seen.began & BEGAN_MASK) == (identity & BEGAN_MASK) ? ALIVE : DEAD;
}

static bool take(struct lease *lease, uint64_t identity)
{
	uint64_t none = 0;

	return atomic_load_explicit(&lease->identity, memory_order_relaxed) == 0 &&
	       atomic_compare_exchange_strong_explicit(&lease->identity, &none, identity,
						       memory_order_acquire, memory_order_relaxed);
}

bool lease_join(struct leasing *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct lease *lease = &l->leases[i];
		uint32_t generation;

		if (!take(lease, l->self))
			continue;
		generation = atomic_fetch_add_explicit(&lease->generation, 1, memory_order_relaxed);
		l->number = i + 1;
		l->mark = generation << 16 | l->number;
		l->mine = lease_holdings(l, l->number);
		return true;
	}
	return false;
}

void lease_ring(struct lease *leases, uint32_t count, uint32_t number)
{
	if (number >= 1 && number <= count)
		park_wake(&leases[number - 1].bell);
}
