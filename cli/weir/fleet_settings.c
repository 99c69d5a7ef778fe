/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_settings.c - parse the settings of a limit.
 */
#include "fleet_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *fleet_allotment(enum weir_allotment allotment)
{
	static const char *const names[] = {
		[WEIR_ALLOT_FAIR] = "fair",
		[WEIR_ALLOT_PROPORTIONAL] = "proportional",
		[WEIR_ALLOT_STATIC] = "static",
		[WEIR_ALLOT_NONE] = "none",
	};

	return (unsigned)allotment <= WEIR_ALLOT_NONE ? names[allotment] : "";
}

bool fleet_whole(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value <= max;
}

bool *fleet_setting_given(struct fleet_settings *s, const char *name, size_t length)
{
	const struct {
		const char *name;
		bool *given;
	} known[] = {
		{"capacity", &s->capacity},   {"reserved", &s->reserved},
		{"members", &s->members},     {"allotment", &s->allotment},
		{"lease", &s->lease},         {"learning", &s->learning},
		{"allocated", &s->allocated},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0)
			return known[i].given;
	return NULL;
}

static bool take_whole(const char *text, uint64_t max, uint64_t *value, char *why, size_t why_size)
{
	if (fleet_whole(text, max, value))
		return true;
	snprintf(why, why_size, "not a whole number up to %" PRIu64, max);
	return false;
}

static bool take_allotment(const char *text, enum weir_allotment *allotment, char *why,
			   size_t why_size)
{
	for (enum weir_allotment i = WEIR_ALLOT_FAIR; i <= WEIR_ALLOT_NONE; i++)
		if (strcmp(text, fleet_allotment(i)) == 0) {
			*allotment = i;
			return true;
		}
	snprintf(why, why_size, "not fair, proportional, static or none");
	return false;
}

/* Stores keep milliseconds. */
static bool take_seconds(const char *text, weir_dur *duration, char *why, size_t why_size)
{
	char *end;
	const double value = strtod(text, &end);

	if (end != text && *end == '\0' && value >= 0.02 && value <= 3600) {
		*duration = (weir_dur)(value * 1000 + 0.5) * WEIR_MS;
		return true;
	}
	snprintf(why, why_size, "not a number of seconds from 0.02 to 3600");
	return false;
}

const char *fleet_learning(weir_dur learning, char text[LEARNING_ROOM])
{
	if (learning == 0)
		snprintf(text, LEARNING_ROOM, "own");
	else
		snprintf(text, LEARNING_ROOM, "%.10g", (double)learning / (double)WEIR_S);
	return text;
}

/* "own": each member learns as it is configured. */
static bool take_learning(const char *text, weir_dur *learning, char *why, size_t why_size)
{
	*learning = 0;
	if (strcmp(text, "own") == 0 || take_seconds(text, learning, why, why_size))
		return true;
	snprintf(why, why_size, "not own, nor a number of seconds from 0.02 to 3600");
	return false;
}

bool fleet_setting_take(struct fleet_settings *s, const bool *given, const char *value, char *why,
			size_t why_size)
{
	uint64_t members = 0, allocated = 0;
	bool good;

	if (given == &s->capacity) {
		good = take_whole(value, WEIR_SHARE_UNITS_MAX, &s->to.capacity, why, why_size);
		s->capacity = good;
	} else if (given == &s->reserved) {
		good = take_whole(value, WEIR_SHARE_UNITS_MAX, &s->to.reserved, why, why_size);
		s->reserved = good;
	} else if (given == &s->members) {
		good = take_whole(value, UINT32_MAX, &members, why, why_size);
		s->to.members_max = (uint32_t)members;
		s->members = good;
	} else if (given == &s->allotment) {
		good = take_allotment(value, &s->to.allotment, why, why_size);
		s->allotment = good;
	} else if (given == &s->learning) {
		good = take_learning(value, &s->to.learning_period, why, why_size);
		s->learning = good;
	} else if (given == &s->allocated) {
		good = take_whole(value, 1, &allocated, why, why_size);
		s->to.allocated = (uint32_t)allocated;
		s->allocated = good;
	} else {
		good = take_seconds(value, &s->to.lease, why, why_size);
		s->lease = good;
	}
	return good;
}

void fleet_setting_word(struct fleet_settings *s, const char *word, struct argp_state *state)
{
	const char *value = strchr(word, '=');
	const bool *given;
	char why[80];

	if (value == NULL) {
		argp_error(state, "%s is not SETTING=VALUE", word);
		return;
	}
	given = fleet_setting_given(s, word, (size_t)(value - word));
	if (given == NULL)
		argp_error(state, "%s: there is no such setting", word);
	else if (!fleet_setting_take(s, given, value + 1, why, sizeof(why)))
		argp_error(state, "%s: %s", word, why);
}

bool fleet_settings_any(const struct fleet_settings *s)
{
	return s->capacity || s->reserved || s->members || s->allotment || s->lease ||
	       s->learning || s->allocated;
}

void fleet_settings_apply(const struct fleet_settings *s, struct weir_fleet_limit *limit)
{
	if (s->capacity)
		limit->capacity = s->to.capacity;
	if (s->reserved)
		limit->reserved = s->to.reserved;
	if (s->members)
		limit->members_max = s->to.members_max;
	if (s->allotment)
		limit->allotment = s->to.allotment;
	if (s->lease)
		limit->lease = s->to.lease;
	if (s->learning)
		limit->learning_period = s->to.learning_period;
	if (s->allocated)
		limit->allocated = s->to.allocated;
	if (limit->reserved == 0 && s->reserved)
		limit->members_max = 0;
}
