/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of a store: scheme://[user[:password]@]host[:port][,host[:port]...][/path][?source],
 * or shm:/name. A source says where the password is: password-file=PATH or password-env=NAME.
 */
#ifndef WEIR_FLEET_ADDRESS_H
#define WEIR_FLEET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_HOSTS_MAX 9
#define PASSWORD_SIZE     256

struct address_host {
	char name[256];
	uint16_t port; /* 0: the default of the scheme */
};

struct address {
	char scheme[16]; /* "": in memory, private to this process */
	char user[128], password[PASSWORD_SIZE];
	char password_file[256], password_variable[128]; /* where it is instead; one of the two */
	struct address_host hosts[ADDRESS_HOSTS_MAX];
	unsigned count;
	char path[256]; /* without its leading /; for shm, the name including it */
};

/* text may be NULL. Returns 0, or -EINVAL and a sentence in why, which holds WHY_SIZE bytes. */
int address_parse(const char *text, struct address *address, char *why);

/* Whether there is a password, or should be. */
bool address_has_password(const struct address *address);

/*
 * Get the password, reading it anew where it is in a file or in the environment. "" if there is
 * none. The caller erases it. Returns 0, or -EACCES and a sentence without the password in why.
 */
int address_password(const struct address *address, char password[PASSWORD_SIZE], char *why);

#endif
