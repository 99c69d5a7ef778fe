/*
 * Parameters of limits by name; and refusing a configuration, with one sentence for the person
 * who wrote it.
 */
#ifndef WEIR_LIB_PARAMS_H
#define WEIR_LIB_PARAMS_H

#include <errno.h>

#include <weir/limit.h>

/* Write the sentence to why, if there is such a place. */
void explain(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, and the answer: for checkers, which see no other file, not to doubt it. */
#define refuse(...) (explain(__VA_ARGS__), -EINVAL)

/* NULL: there is none. */
const struct weir_param *param_by_name(const struct weir_limit_ops *ops, const char *name);

#endif
