/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The templates of limits, which are one row of the store. So a member that makes a limit checks a
 * single version, which also covers templates that were not there.
 */
#ifndef WEIR_FLEET_TEMPLATES_H
#define WEIR_FLEET_TEMPLATES_H

#include "fleet/protocol/ledger.h"

/*
 * "fleet" may be the name of a limit, too. It has no row of this name, and programs ignore rows of
 * limits that they do not know.
 */
#define TEMPLATES_KEY "fleet/templates"

struct templates {
	struct template_record *at; /* in the order of the bytes of their patterns */
	size_t count, room;
	uint64_t version; /* of the row; 0: there is none */
};

/*
 * Read the templates. The caller frees them in each case. Returns 0, or a negative errno:
 * -EPROTO: the row is damaged, or of a version that is unknown here; version is set
 * -ENOMEM: out of memory
 * or the store's error
 */
int templates_read(struct weir_store *store, struct templates *templates);
void templates_free(struct templates *templates);

/* Write them, if the row is as it was read. Returns 0 or a negative errno. */
int templates_write(struct weir_store *store, const struct templates *templates);

/* Parse the text of the row. Returns 0, -EPROTO or -ENOMEM. */
int templates_parse(const char *text, size_t size, struct templates *templates);

/* The template with that pattern; NULL: there is none. */
struct template_record *templates_find(const struct templates *templates, const char *pattern);

/* The template for a limit of that name; NULL: none matches. */
const struct template_record *templates_match(const struct templates *templates, const char *name);

/* Add a template, or change the one with its pattern. False: out of memory. */
bool templates_put(struct templates *templates, const struct template_record *record);
void templates_drop(struct templates *templates, struct template_record *record);

#endif
