/*
 * scenario_settings.h - a scenario, of settings.
 */
#ifndef SCENARIO_SETTINGS_H
#define SCENARIO_SETTINGS_H

#include "settings.h"

/* 0; or -EINVAL, after it was said why. What was read is for scenario_free(). */
int scenario_from_settings(struct scenario *s, const struct reader *r,
			   const config_setting_t *root);

#endif
