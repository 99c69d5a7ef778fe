/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limiter from the command line.
 */
#ifndef HTTPD_GATE_H
#define HTTPD_GATE_H

#include <weir/weir.h>

/*
 * text: "vegas", "vegas:max=200,alpha=log10:2", or "none". NULL on failure, after an error message.
 * Free with weir_limiter_destroy().
 */
struct weir_limiter *gate_create(const char *text, unsigned queue);

#endif
