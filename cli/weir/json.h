/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - what all JSON output has in common.
 */
#ifndef JSON_H
#define JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

json_t *json_count(uint64_t n);

/*
 * Print an object with the time, and with all under that name; on one line if one_line. Consumes
 * all, which is NULL if memory ran out. False if memory ran out.
 */
bool json_print(FILE *out, const char *name, json_t *all, bool one_line);

#endif
