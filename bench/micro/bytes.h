/*
 * bytes.h - what a limiter takes of memory.
 */
#ifndef BYTES_H
#define BYTES_H

/* A table: configurations, and the bytes of a limiter of each. */
void bytes_print(void);

#endif
