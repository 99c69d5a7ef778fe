/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparing a limit with what a process is configured with.
 */

#include "fleet/protocol/mismatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The settings that differ, in two lists: "capacity 500, reserved 5". */
struct lists {
	char own[120], limit[120];
};

static void append(char list[120], const char *name, const char *value)
{
	const size_t used = strlen(list);

	(void)snprintf(list + used, 120 - used, "%s%s %s", used > 0 ? ", " : "", name, value);
}

static void compare(struct lists *lists, const char *name, uint64_t own, uint64_t limit)
{
	char text[24];

	if (own == limit)
		return;
	(void)snprintf(text, sizeof(text), "%" PRIu64, own);
	append(lists->own, name, text);
	(void)snprintf(text, sizeof(text), "%" PRIu64, limit);
	append(lists->limit, name, text);
}

static void compare_allotment(struct lists *lists, enum weir_allotment own,
			      enum weir_allotment limit)
{
	static const char *const names[] = {
		[WEIR_ALLOT_FAIR] = "fair",
		[WEIR_ALLOT_PROPORTIONAL] = "proportional",
		[WEIR_ALLOT_STATIC] = "static",
		[WEIR_ALLOT_NONE] = "none",
	};

	if (own == limit)
		return;
	append(lists->own, "allotment", names[own]);
	append(lists->limit, "allotment", names[limit]);
}

void mismatch_print(const struct limit_record *own, const struct limit_record *limit,
		    char text[MISMATCH_SIZE])
{
	struct lists lists = {.own = ""};

	text[0] = '\0';
	if (own->capacity == 0)
		return;
	compare(&lists, "capacity", own->capacity, limit->capacity);
	compare_allotment(&lists, own->allotment, limit->allotment);
	compare(&lists, "reserved", own->reserved, limit->reserved);
	compare(&lists, "members", own->members, limit->members);
	if (lists.own[0] != '\0')
		(void)snprintf(text, MISMATCH_SIZE, "Configured with %s, where the limit has %s.",
			       lists.own, lists.limit);
}
