/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bytes.h - how much memory a limiter takes.
 */
#ifndef BYTES_H
#define BYTES_H

/* Print a table of configurations, and the size of a limiter of each in bytes. */
void bytes_print(void);

#endif
