/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draining: a member gives back what it holds, and gets nothing until it is undrained. All members
 * read the drain row, and plan as if the drained member wanted nothing, so the others get what it
 * gives up. The drained member gives its units up itself, at its next refresh.
 */

#include "fleet/protocol/drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/protocol/inspect.h"
#include "fleet/protocol/ledger.h"

#define LABELS_HEAD "weir-drained 1\n"

bool drains_add(struct drains *d, const struct drain *drain)
{
	if (d->count == d->room) {
		const size_t room = d->room > 0 ? 2 * d->room : 4;
		struct drain *at = realloc(d->at, room * sizeof(*at));

		if (at == NULL)
			return false;
		d->at = at;
		d->room = room;
	}
	d->at[d->count++] = *drain;
	return true;
}

uint64_t drains_version(const struct drains *d, uint64_t id)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->at[i].id == id)
			return d->at[i].version;
	return 0;
}

bool drains_next_label(const char **at, char label[LABEL_ROOM])
{
	const size_t length = *at != NULL ? strcspn(*at, "\n") : 0;

	if (length == 0 || length >= LABEL_ROOM)
		return false;
	memcpy(label, *at, length);
	label[length] = '\0';
	*at += length + 1;
	return true;
}

/* Whether text is labels, each with a line break. */
static bool are_labels(const char *text)
{
	const char *at = text;
	char label[LABEL_ROOM];

	while (drains_next_label(&at, label))
		if (at[-1] != '\n' || !is_word(label, WEIR_FLEET_LABEL_MAX))
			return false;
	return *at == '\0';
}

int drains_parse(struct drains *d, const struct weir_store_row *row)
{
	const size_t head = strlen(LABELS_HEAD);

	free(d->labels);
	d->labels = NULL;
	d->labels_version = row->version;
	if (row->size < head || memcmp(row->value, LABELS_HEAD, head) != 0)
		return -EPROTO;
	d->labels = strndup((const char *)row->value + head, row->size - head);
	if (d->labels == NULL)
		return -ENOMEM;
	if (strlen(d->labels) == row->size - head && are_labels(d->labels))
		return 0;
	free(d->labels);
	d->labels = NULL;
	return -EPROTO;
}

bool drains_have_label(const struct drains *d, const char *label)
{
	const char *at = d->labels;
	char drained[LABEL_ROOM];

	while (drains_next_label(&at, drained))
		if (strcmp(drained, label) == 0)
			return true;
	return false;
}

bool drains_have(const struct drains *d, uint64_t id, const char *label)
{
	return drains_version(d, id) != 0 || drains_have_label(d, label);
}

void drains_clear(struct drains *d)
{
	free(d->labels);
	d->labels = NULL;
	d->labels_version = 0;
	d->count = 0;
}

void drains_free(struct drains *d)
{
	free(d->labels);
	free(d->at);
	*d = (struct drains){.count = 0};
}

/* Checks the member's row: a drain row of a member that is gone would stay for ever. */
static int drain(struct weir_store *store, const char *name, uint64_t id,
		 const struct limit_view *v)
{
	const struct seen_member *member = view_member(v, id);
	char key[KEY_ROOM], own[KEY_ROOM];
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, DRAIN_TEXT,
					       strlen(DRAIN_TEXT)};
	struct weir_store_check checks[] = {{own, WEIR_STORE_CHECK_MADE, 0},
					    {key, WEIR_STORE_CHECK_ABSENT, 0}};

	if (drains_version(&v->drains, id) != 0)
		return 0;
	if (member == NULL)
		return -ESRCH;
	checks[0].version = member->made;
	member_key(name, "drain", id, key);
	member_key(name, "m", id, own);
	return weir_store_commit(store, 0, checks, 2, &write, 1, NULL);
}

static int undrain(struct weir_store *store, const char *name, uint64_t id,
		   const struct limit_view *v)
{
	char key[KEY_ROOM];
	const struct weir_store_write write = {key, WEIR_STORE_WRITE_ERASE, NULL, 0};
	const struct weir_store_check check = {key, WEIR_STORE_CHECK_VERSION,
					       drains_version(&v->drains, id)};
	const struct seen_member *member = view_member(v, id);

	if (check.version == 0 && member == NULL)
		return -ESRCH;
	if (check.version == 0)
		return drains_have_label(&v->drains, member->record.label) ? -EBUSY : 0;
	member_key(name, "drain", id, key);
	return weir_store_commit(store, 0, &check, 1, &write, 1, NULL);
}

int weir_fleet_drain(struct weir_store *store, const char *name, uint64_t member, bool drained)
{
	int r = -EAGAIN;

	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++) {
		struct limit_view v = {.count = 0};

		r = view_read(store, name, &v);
		if (r == 0)
			r = drained ? drain(store, name, member, &v)
				    : undrain(store, name, member, &v);
		view_free(&v);
	}
	return r;
}

static bool is_label_of_member(const struct limit_view *v, const char *label)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->members[i].record.label, label) == 0)
			return true;
	return false;
}

/* The text of the row with one label more, or without it, which the caller frees; or NULL. */
static char *labels_print(const struct drains *d, const char *label, bool drained)
{
	const char *at = d->labels;
	char *text = NULL, other[LABEL_ROOM];
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool good;

	if (out == NULL)
		return NULL;
	fputs(LABELS_HEAD, out);
	while (drains_next_label(&at, other))
		if (strcmp(other, label) != 0)
			fprintf(out, "%s\n", other);
	if (drained)
		fprintf(out, "%s\n", label);
	good = ferror(out) == 0;
	if (fclose(out) == 0 && good)
		return text;
	free(text);
	return NULL;
}

/* Without a label the row is erased. The limit's row is checked, so that it is not left behind. */
static int write_labels(struct weir_store *store, const char *name, const struct limit_view *v,
			const char *text)
{
	char key[KEY_ROOM], limit_key[KEY_ROOM];
	const uint64_t version = v->drains.labels_version;
	const struct weir_store_check checks[] = {
		{limit_key, WEIR_STORE_CHECK_VERSION, v->limit_version},
		{key, version != 0 ? WEIR_STORE_CHECK_VERSION : WEIR_STORE_CHECK_ABSENT, version},
	};
	struct weir_store_write write = {key, WEIR_STORE_WRITE_PUT, text, strlen(text)};

	if (strcmp(text, LABELS_HEAD) == 0)
		write = (struct weir_store_write){key, WEIR_STORE_WRITE_ERASE, NULL, 0};
	(void)snprintf(key, sizeof(key), "%s/" DRAINED_KEY, name);
	(void)snprintf(limit_key, sizeof(limit_key), "%s/cfg", name);
	return weir_store_commit(store, 0, checks, 2, &write, 1, NULL);
}

static int change_label(struct weir_store *store, const char *name, const char *label, bool drained,
			const struct limit_view *v)
{
	char *text;
	int r;

	if (drains_have_label(&v->drains, label) == drained)
		return drained || is_label_of_member(v, label) ? 0 : -ESRCH;
	text = labels_print(&v->drains, label, drained);
	if (text == NULL)
		return -ENOMEM;
	r = write_labels(store, name, v, text);
	free(text);
	return r;
}

int weir_fleet_drain_label(struct weir_store *store, const char *name, const char *label,
			   bool drained)
{
	int r = is_word(label, WEIR_FLEET_LABEL_MAX) ? -EAGAIN : -EINVAL;

	for (unsigned i = 0; i < CHANGES_MAX && r == -EAGAIN; i++) {
		struct limit_view v = {.count = 0};

		r = view_read(store, name, &v);
		if (r == 0)
			r = change_label(store, name, label, drained, &v);
		view_free(&v);
	}
	return r;
}
