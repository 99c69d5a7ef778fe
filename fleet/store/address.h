/*
 * Where a store is: scheme://[user:password@]host[:port][,host[:port]...][/path], or shm:/name.
 */
#ifndef WEIR_FLEET_ADDRESS_H
#define WEIR_FLEET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_HOSTS_MAX 9

struct address_host {
	char name[256];
	uint16_t port; /* 0: as usual */
};

struct address {
	char scheme[16]; /* "": in memory, of this process alone */
	char user[128], password[256];
	struct address_host hosts[ADDRESS_HOSTS_MAX];
	unsigned count;
	char path[256]; /* without the / before it; of shm, the name with it */
};

/* text may be NULL. 0, or -EINVAL and a sentence in why, of WHY_SIZE. */
int address_parse(const char *text, struct address *address, char *why);

#endif
