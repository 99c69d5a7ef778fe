/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bytes.h - the memory of a limiter.
 */
#ifndef BYTES_H
#define BYTES_H

/* Print a table of configurations, and the size of a limiter of each in bytes. */
void bytes_print(void);

#endif
