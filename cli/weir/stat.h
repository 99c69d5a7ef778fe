/*
 * stat.h - the numbers of limiters as JSON.
 */
#ifndef STAT_H
#define STAT_H

#include "limiters.h"

#include <stdio.h>

/* One object; on one line, if it is one of several. False: there is no memory. */
bool stat_json(FILE *out, const struct limiters *l, bool one_line);

#endif
