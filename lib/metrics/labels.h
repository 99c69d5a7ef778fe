/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels: checked, and as they are written. */
#ifndef WEIR_LIB_METRICS_LABELS_H
#define WEIR_LIB_METRICS_LABELS_H

#include <stdbool.h>

#include <weir/metrics.h>

/* Whether a value is valid UTF-8 without a zero byte. */
bool labels_is_text(const char *value, size_t length);

/* Whether a label or a metric may have that name. */
bool labels_is_name(const char *name);

/* Whether a caller's labels are valid. Returns 0 or -EINVAL. */
int labels_check(const struct weir_label *labels, size_t count);

/*
 * Labels as they are written, in the order of their names, so that equal labels give equal text. To
 * scrapers an empty value is the same as no label. The caller frees *text. Returns 0, -EILSEQ or
 * -ENOMEM.
 */
int labels_write(const struct weir_label *labels, size_t count, char **text);

/* The same for one label. */
int labels_write_one(const char *name, const char *value, char **text);

#endif
