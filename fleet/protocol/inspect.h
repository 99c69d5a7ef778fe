/*
 * A limit as it is read and changed from outside.
 */
#ifndef WEIR_FLEET_LOOK_H
#define WEIR_FLEET_LOOK_H

#include "fleet/protocol/plan.h"

#define CHANGES_MAX 8 /* whoever is in between, is not so often */

/* All of a limit: 0; -ENOENT, -EPROTO; or as the store has it. Free the view after each. */
int view_read(struct weir_store *store, const char *name, struct limit_view *view);

/* The same, as what is public. */
void view_fill(const struct limit_view *view, struct weir_fleet_limit *limit);

#endif
