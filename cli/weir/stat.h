/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat.h - the figures of limiters as JSON.
 */
#ifndef STAT_H
#define STAT_H

#include "limiters.h"

#include <stdio.h>

/* Print one JSON object, on one line if one_line. False if memory ran out. */
bool stat_json(FILE *out, const struct limiters *l, bool one_line);

#endif
