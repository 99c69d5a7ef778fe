/* Refusing a configuration, with one sentence for the person who wrote it. */
#ifndef WEIR_LIB_EXPLAIN_H
#define WEIR_LIB_EXPLAIN_H

#include <errno.h>
#include <stddef.h>

/* Write the sentence to why, which may be NULL. It is cut at size. */
void explain(char *why, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, as an expression with the value -EINVAL, so that an analyzer knows what is returned. */
#define refuse(...) (explain(__VA_ARGS__), -EINVAL)

#endif
