/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_settings.h - build a scenario from libconfig settings.
 */
#ifndef SCENARIO_SETTINGS_H
#define SCENARIO_SETTINGS_H

#include "settings.h"

/* Returns 0, or -EINVAL with a sentence in r->why. Free the scenario with scenario_free(). */
int scenario_from_settings(struct scenario *s, const struct reader *r,
			   const config_setting_t *root);

#endif
