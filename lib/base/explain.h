/* SPDX-License-Identifier: BSD-2-Clause */
/* Error messages for configurations that are not valid: one sentence for the user. */
#ifndef WEIR_LIB_EXPLAIN_H
#define WEIR_LIB_EXPLAIN_H

#include <errno.h>
#include <stddef.h>

/* Write the sentence to why, which may be NULL, cut at size bytes. */
void explain(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same as an expression of value -EINVAL, so that static analyzers see what is returned. */
#define refuse(...) (explain(__VA_ARGS__), -EINVAL)

#endif
