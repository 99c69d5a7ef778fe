/*
 * json.h - what all that is printed as JSON has in common.
 */
#ifndef JSON_H
#define JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

json_t *json_count(uint64_t n);

/*
 * Print an object of the time and all of those, by that name; on one line, if it is one of several.
 * all goes with it; NULL: there was no memory. False: there is none.
 */
bool json_print(FILE *out, const char *name, json_t *all, bool one_line);

#endif
