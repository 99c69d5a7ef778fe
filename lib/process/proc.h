/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /proc says of this process and of this boot of the machine.
 *
 * Where there is no /proc, or it is hidden, that does not change, and all processes go without. Where
 * it cannot be read for the moment, as without a free file descriptor, a process must not conclude
 * anything: it would differ from the others.
 */
#ifndef WEIR_LIB_PROC_H
#define WEIR_LIB_PROC_H

#include <stddef.h>
#include <stdint.h>

/*
 * Read the beginning of a file into size bytes at text, and end it with a zero byte. text is empty
 * if the file does not exist or is hidden. Returns 0, or a negative errno: not readable for now.
 */
int proc_read(const char *path, char *text, size_t size);

/* Likewise the target of a link. */
int proc_link(const char *path, char *text, size_t size);

/* Likewise the number of a namespace, by its path; 0 if it is hidden. */
int proc_namespace(const char *path, uint64_t *number);

#endif
