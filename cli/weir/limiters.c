/* SPDX-License-Identifier: BSD-2-Clause */
#include "limiters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY_ROOM 512

static void forget(struct watched *w)
{
	reading_free(&w->now);
	reading_free(&w->before);
	free(w->part_past);
}

void past_add(struct past *past, const struct point *point)
{
	past->at[past->count++ % PAST] = *point;
}

const struct point *past_point(const struct past *past, unsigned back)
{
	if (back >= past->count || back >= PAST)
		return NULL;
	return &past->at[(past->count - 1 - back) % PAST];
}

const struct reading *watched_before(const struct watched *w)
{
	return w->twice ? &w->before : NULL;
}

static void remember_parts(struct watched *w)
{
	const struct reading *now = &w->now;

	if (w->part_count != now->part_count) {
		free(w->part_past);
		w->part_past = now->part_count > 0 ? calloc(now->part_count, sizeof(*w->part_past))
						   : NULL;
		w->part_count = now->part_count;
	}
	for (size_t i = 0; i < now->part_count && w->part_past != NULL; i++) {
		const struct part_reading *part = &now->parts[i];

		past_add(&w->part_past[i],
			 &(struct point){
				 .limit = reading_part_most(now, part),
				 .inflight = part->s.inflight,
				 .waiting = part->s.waiting,
				 .rates = reading_part_rates(watched_before(w), now, part),
			 });
	}
}

static void take_over(struct watched *w, const struct reading *reading)
{
	reading_free(&w->before);
	w->twice = w->now.at != 0;
	w->before = w->now;
	w->now = *reading;
	w->seen = true;
	w->rates = reading_rates(watched_before(w), &w->now);
	past_add(&w->past, &(struct point){
				   .limit = w->now.s.limit,
				   .inflight = w->now.s.inflight,
				   .waiting = w->now.s.waiting,
				   .rtt = w->now.s.last.window.rtt,
				   .rates = w->rates,
			   });
	remember_parts(w);
}

static struct watched *watched_named(struct limiters *l, const char *name)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->at[i].name, name) == 0)
			return &l->at[i];
	return NULL;
}

/* Append a limiter that was not there before. */
static struct watched *add(struct limiters *l, const char *name)
{
	struct watched *larger = realloc(l->at, (l->count + 1) * sizeof(*l->at));

	if (larger == NULL)
		return NULL;
	l->at = larger;
	l->at[l->count] = (struct watched){.twice = false};
	snprintf(l->at[l->count].name, sizeof(l->at[0].name), "%s", name);
	return &l->at[l->count++];
}

static int read_one(struct limiters *l, const struct name *name, char *why, size_t why_size)
{
	struct watched *w = watched_named(l, name->text);
	struct reading reading;
	int error = reading_take(&reading, name, why, why_size);

	if (error != 0)
		return error;
	w = w != NULL ? w : add(l, name->text);
	if (w == NULL) {
		reading_free(&reading);
		snprintf(why, why_size, "Out of memory.");
		return -ENOMEM;
	}
	take_over(w, &reading);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct watched *)a)->name, ((const struct watched *)b)->name);
}

/* Drop the limiters that were not read this time. */
static void forget_the_gone(struct limiters *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (l->at[i].seen)
			l->at[kept++] = l->at[i];
		else
			forget(&l->at[i]);
	}
	l->count = kept;
	if (kept > 0)
		qsort(l->at, kept, sizeof(*l->at), by_name);
}

int limiters_look(struct limiters *l,
		  void (*complain)(void *arg, const char *name, const char *why), void *arg)
{
	struct names names;
	char why[WHY_ROOM];
	int complaints = 0;

	for (size_t i = 0; i < l->count; i++)
		l->at[i].seen = false;
	if (names_find(&names, &l->choice, why, sizeof(why)) != 0) {
		complain(arg, "", why);
		complaints = 1;
	}
	for (size_t i = 0; i < names.count; i++) {
		int error = read_one(l, &names.at[i], why, sizeof(why));

		/* A limiter that was listed may be removed at any time. */
		if (error == 0 || (error == -ENOENT && l->choice.count == 0))
			continue;
		complain(arg, names.at[i].text, why);
		complaints |= l->choice.count > 0;
	}
	l->left_out = names.left_out;
	names_free(&names);
	forget_the_gone(l);
	return complaints;
}

void limiters_free(struct limiters *l)
{
	for (size_t i = 0; i < l->count; i++)
		forget(&l->at[i]);
	free(l->at);
	l->at = NULL;
	l->count = 0;
}
