/* SPDX-License-Identifier: BSD-2-Clause */
/* redis.lua without its comments, as it is sent. */
#ifndef WEIR_FLEET_REDIS_SCRIPT_H
#define WEIR_FLEET_REDIS_SCRIPT_H

extern const char redis_script[];

#endif
