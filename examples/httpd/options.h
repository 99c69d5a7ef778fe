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
	unsigned pool;     /* threads that work; 0: as the server has it */
	unsigned queue;    /* requests that may wait for a permit */
	unsigned wait_ms;  /* how long they may */
	const char *stats; /* where a line is written every 100 ms; NULL: nowhere */
};

/* Returns if the program is to go on; else it has said why not, and exits. */
void options_parse(int argc, char **argv, struct options *options);

#endif
