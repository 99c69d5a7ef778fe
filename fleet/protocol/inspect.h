/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading and changing a limit without being a member of it.
 */
#ifndef WEIR_FLEET_INSPECT_H
#define WEIR_FLEET_INSPECT_H

#include "fleet/protocol/plan.h"

#define CHANGES_MAX 8 /* attempts at a change, when others change the same rows */

/*
 * Read all of a limit. The caller frees the view in each case. Returns 0, or a negative errno:
 * -EINVAL: name is not a name
 * -ENOENT: there is no such limit
 * -EPROTO: a row is of a version that is unknown here
 * or the store's error
 */
int view_read(struct weir_store *store, const char *name, struct limit_view *view);

/* Convert a view to the public structure. */
void view_fill(const struct limit_view *view, struct weir_fleet_limit *limit);

/* Check the settings of a limit, whatever its name; convert them. 0, or -EINVAL and a sentence. */
int limit_check_settings(const struct weir_fleet_limit *limit, char *why);
struct limit_record limit_record_of(const struct weir_fleet_limit *limit);

#endif
