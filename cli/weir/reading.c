/* SPDX-License-Identifier: BSD-2-Clause */
#include "reading.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the file is truncated while it is read, this ends the reading instead of the program. */
static sigjmp_buf cut;

static void jump(int number)
{
	(void)number;
	siglongjmp(cut, 1);
}

static bool take_parts(struct reading *r, const struct weir_limiter *limiter)
{
	const unsigned count = weir_partition_count(limiter);

	r->parts = count > 0 ? calloc(count, sizeof(*r->parts)) : NULL;
	if (count > 0 && r->parts == NULL)
		return false;
	for (unsigned i = 0; i < count; i++) {
		struct part_reading *part = &r->parts[i];

		weir_partition_snapshot_init(&part->s);
		if (weir_partition_snapshot_take(limiter, i, &part->s) != 0)
			return false;
		snprintf(part->name, sizeof(part->name), "%s", part->s.name);
		part->s.name = NULL;
		r->part_count++;
	}
	return true;
}

static bool take_member(void *arg, const struct weir_shm_member *member)
{
	struct reading *r = arg;

	/* Room for all now attached. A process that attaches meanwhile is in the next reading. */
	if (r->member_count == r->info.members)
		return false;
	r->members[r->member_count++] = *member;
	return true;
}

static int take(void *arg, const struct weir_limiter *limiter)
{
	struct reading *r = arg;
	int error;

	r->at = weir_now();
	weir_snapshot_init(&r->s);
	weir_snapshot_take(limiter, &r->s);
	weir_shm_info_init(&r->info);
	error = weir_shm_info_take(limiter, &r->info);
	if (error != 0)
		return error;
	weir_limiter_format(limiter, r->algorithm, sizeof(r->algorithm));
	if (strncmp(r->algorithm, r->info.limit, strlen(r->info.limit)) != 0)
		memcpy(r->algorithm, r->info.limit, sizeof(r->info.limit));
	r->members = calloc(r->info.members, sizeof(*r->members));
	if (r->members == NULL || !take_parts(r, limiter))
		return -ENOMEM;
	weir_shm_visit(limiter, take_member, r);
	return 0;
}

static int look_and_use(const struct name *name,
			int (*use)(void *arg, const struct weir_limiter *limiter), void *arg,
			char *why, size_t why_size)
{
	struct weir_limiter *limiter;
	char text[128];
	int error = weir_shm_open_observer_of(name->text, name->owner, &limiter, why, why_size);

	if (error != 0)
		return error;
	error = use(arg, limiter);
	weir_shm_detach(limiter);
	if (error != 0)
		snprintf(why, why_size, "It cannot be read: %s.",
			 strerror_r(-error, text, sizeof(text)));
	return error;
}

int reading_use(const struct name *name, int (*use)(void *arg, const struct weir_limiter *limiter),
		void *arg, char *why, size_t why_size)
{
	const struct sigaction jumps = {.sa_handler = jump};
	struct sigaction before;
	int error;

	sigaction(SIGBUS, &jumps, &before);
	if (sigsetjmp(cut, 1) == 0) {
		error = look_and_use(name, use, arg, why, why_size);
	} else {
		/* The mapping stays: it happens at most once per file. */
		error = -EPROTO;
		snprintf(why, why_size, "It was truncated while it was read.");
	}
	sigaction(SIGBUS, &before, NULL);
	return error;
}

int reading_take(struct reading *r, const struct name *name, char *why, size_t why_size)
{
	int error;

	*r = (struct reading){.at = 0};
	error = reading_use(name, take, r, why, why_size);
	if (error != 0)
		reading_free(r);
	return error;
}

void reading_free(struct reading *r)
{
	free(r->parts);
	free(r->members);
	*r = (struct reading){.at = 0};
}

const struct part_reading *reading_part(const struct reading *r, const char *name)
{
	for (size_t i = 0; r != NULL && i < r->part_count; i++)
		if (strcmp(r->parts[i].name, name) == 0)
			return &r->parts[i];
	return NULL;
}

uint32_t reading_part_most(const struct reading *r, const struct part_reading *part)
{
	const uint32_t all = r->s.limit + r->s.burst;

	return part->s.cap < all ? part->s.cap : all;
}

/* A total may seem to shrink by calls that were in progress at the first reading. */
static double rate(uint64_t before, uint64_t now, weir_dur passed)
{
	return now > before && passed > 0 ? (double)(now - before) * (double)WEIR_S / (double)passed
					  : 0;
}

/* The number of windows never shrinks: if it does, this is another limiter. */
static bool same_limiter(const struct reading *before, const struct reading *now)
{
	return before != NULL && before->s.windows <= now->s.windows &&
	       strcmp(before->algorithm, now->algorithm) == 0;
}

struct rates reading_rates(const struct reading *before, const struct reading *now)
{
	const struct weir_snapshot *a, *b = &now->s;
	weir_dur passed;

	if (!same_limiter(before, now))
		return (struct rates){.admitted = 0};
	a = &before->s;
	passed = now->at - before->at;
	return (struct rates){
		.admitted = rate(a->admitted, b->admitted, passed),
		.rejected = rate(a->rejected + a->abandoned, b->rejected + b->abandoned, passed),
		.dropped = rate(a->dropped + a->timed_out, b->dropped + b->timed_out, passed),
	};
}

struct rates reading_part_rates(const struct reading *before, const struct reading *now,
				const struct part_reading *part)
{
	const struct part_reading *then = reading_part(before, part->name);
	weir_dur passed;

	if (then == NULL || !same_limiter(before, now))
		return (struct rates){.admitted = 0};
	passed = now->at - before->at;
	return (struct rates){
		.admitted = rate(then->s.admitted, part->s.admitted, passed),
		.rejected = rate(then->s.rejected + then->s.abandoned,
				 part->s.rejected + part->s.abandoned, passed),
		.dropped = rate(then->s.dropped, part->s.dropped, passed),
	};
}
