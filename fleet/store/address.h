/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of a store: scheme://[user:password@]host[:port][,host[:port]...][/path], or
 * shm:/name.
 */
#ifndef WEIR_FLEET_ADDRESS_H
#define WEIR_FLEET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_HOSTS_MAX 9

struct address_host {
	char name[256];
	uint16_t port; /* 0: the default of the scheme */
};

struct address {
	char scheme[16]; /* "": in memory, private to this process */
	char user[128], password[256];
	struct address_host hosts[ADDRESS_HOSTS_MAX];
	unsigned count;
	char path[256]; /* without its leading /; for shm, the name including it */
};

/* text may be NULL. Returns 0, or -EINVAL and a sentence in why, which holds WHY_SIZE bytes. */
int address_parse(const char *text, struct address *address, char *why);

#endif
