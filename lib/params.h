/*
 * Refusing a configuration, with one sentence for the person who wrote it.
 */
#ifndef WEIR_LIB_PARAMS_H
#define WEIR_LIB_PARAMS_H

#include <weir/limit.h>

/* Write the sentence to why, if there is such a place, and answer -EINVAL. */
int refuse(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
