/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of the example server.
 */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include <stdint.h>

struct options {
	uint16_t port;     /* 0: any that is free */
	const char *limit; /* "none", or a limit's name with or without parameters */
	unsigned rows;     /* of the database */
	unsigned pool;     /* worker threads; 0: the server's default */
	unsigned queue;    /* requests that may wait for a permit */
	unsigned wait_ms;  /* the longest wait of a request */
	const char *stats; /* file for a line every 100 ms; NULL: none */
};

/* Exits after an error message if the options are invalid. */
void options_parse(int argc, char **argv, struct options *options);

#endif
