/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.c - weir fleet: the limits in a store, which processes and machines share.
 *
 * The store's options are environment variables, too. An option sets its variable, so it takes
 * effect wherever it stands on the command line.
 */
#include "fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "cli/common/commands.h"

static const struct argp_option options[] = {
	{"address", 'a', "ADDRESS", 0,
	 "The store: shm:/NAME, redis://HOST, redis-sentinel://HOST,.../SERVICE or "
	 "etcd://HOST,... ($WEIR_FLEET)",
	 1},
	{"store-name", 'n', "NAME", 0, "Its namespace there (weir; $WEIR_FLEET_NAME)", 1},
	{"tls-ca", 'A', "FILE", 0, "Certificate authority, with etcds:// ($WEIR_FLEET_CA)", 1},
	{"tls-cert", 'C', "FILE", 0, "Client certificate ($WEIR_FLEET_CERT)", 1},
	{"tls-key", 'K', "FILE", 0, "Private key of the certificate ($WEIR_FLEET_KEY)", 1},
	{0},
};

static const char *variable_of(int key)
{
	switch (key) {
	case 'a':
		return "WEIR_FLEET";
	case 'n':
		return "WEIR_FLEET_NAME";
	case 'A':
		return "WEIR_FLEET_CA";
	case 'C':
		return "WEIR_FLEET_CERT";
	case 'K':
		return "WEIR_FLEET_KEY";
	default:
		return NULL;
	}
}

/* Blank out the password of an address, so that ps shows it only for a moment. */
static void hide_password(char *address)
{
	char *scheme = strstr(address, "://"), *user = scheme != NULL ? scheme + 3 : NULL;
	char *at = user != NULL ? memchr(user, '@', strcspn(user, "/")) : NULL;
	char *colon = at != NULL ? memchr(user, ':', (size_t)(at - user)) : NULL;

	if (colon != NULL)
		memset(colon + 1, '*', (size_t)(at - colon - 1));
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	const char *variable = variable_of(key);

	(void)state;
	if (variable == NULL)
		return ARGP_ERR_UNKNOWN;
	if (setenv(variable, arg, 1) != 0)
		return errno;
	if (key == 'a')
		hide_password(arg);
	return 0;
}

const struct argp fleet_options = {.options = options, .parser = option};

struct weir_store *fleet_store(void)
{
	struct weir_store_config config;
	struct weir_store *store;
	char why[512];

	weir_store_config_init(&config);
	config.address = getenv("WEIR_FLEET");
	config.name = getenv("WEIR_FLEET_NAME");
	config.tls_ca = getenv("WEIR_FLEET_CA");
	config.tls_cert = getenv("WEIR_FLEET_CERT");
	config.tls_key = getenv("WEIR_FLEET_KEY");
	config.existing = 1;
	if (config.address == NULL || config.address[0] == '\0') {
		name_complain("",
			      "The store's address is missing: give --address, or set WEIR_FLEET.");
		return NULL;
	}
	if (weir_store_open(&config, &store, why, sizeof(why)) == 0)
		return store;
	name_complain("", why);
	return NULL;
}

const char *fleet_why(struct weir_store *store, int error, char *why, size_t size)
{
	switch (error) {
	case -EINVAL:
		snprintf(why, size, "A name has 1 to %d letters, digits and -_.:@.",
			 WEIR_SHARE_NAME_MAX);
		break;
	case -ENOENT:
		snprintf(why, size, "There is no limit of that name.");
		break;
	case -EPROTO:
		snprintf(why, size, "Its record has another format version, or is damaged.");
		break;
	case -EBUSY:
		snprintf(why, size, "It has members, which would create it again.");
		break;
	case -EAGAIN:
		snprintf(why, size, "It was changed at the same time: try again.");
		break;
	case -ENOMEM:
		snprintf(why, size, "Out of memory.");
		break;
	default:
		weir_store_error(store, why, size);
		break;
	}
	return why;
}

int fleet_complain(struct weir_store *store, const char *name, int error)
{
	char why[512];

	name_complain(name, fleet_why(store, error, why, sizeof(why)));
	return EXIT_FAILURE;
}

const char *fleet_label(const char *label, char text[LABEL_WIDTH + 1])
{
	const size_t length = strlen(label), half = LABEL_WIDTH / 2;

	if (length == 0)
		label = "-";
	if (length <= LABEL_WIDTH)
		snprintf(text, LABEL_WIDTH + 1, "%s", label);
	else
		snprintf(text, LABEL_WIDTH + 1, "%.*s~%s", (int)half, label, label + length - half);
	return text;
}

bool fleet_is_label(const char *text)
{
	const size_t length = strlen(text);

	return length > 0 && length <= WEIR_FLEET_LABEL_MAX &&
	       strspn(text,
		      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@") ==
		       length;
}

int command_fleet(int argc, char **argv)
{
	static const struct command commands[] = {
		{"list", fleet_list, "print all limits with their totals"},
		{"show", fleet_show, "print limits with their members, and partitions of work"},
		{"top", fleet_top, "watch limits on a terminal"},
		{"make", fleet_make, "create a limit before it has members"},
		{"set", fleet_set, "change a limit for all members"},
		{"apply", fleet_apply, "make and change limits as a file lists them"},
		{"remove", fleet_remove, "remove a limit that has no members"},
		{"drain", fleet_drain,
		 "take a member out of service: it returns all that it holds"},
		{"undrain", fleet_undrain, "give a drained member its share again"},
		{"resize", fleet_resize, "change a capacity that is divided into partitions"},
		{"template", fleet_template,
		 "list and change what limits are made with, by their names"},
		{"rewind", fleet_rewind, "set checkpoints of partitions of work back"},
		{"serve", fleet_serve, "answer the rate limit quota service of Envoy"},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct program program = {
		.name = "weir fleet",
		.about =
			"Show and change limits that processes and machines share through a store.",
		.options = children,
		.commands = commands,
		.count = sizeof(commands) / sizeof(commands[0]),
	};

	program_run(&program, argc, argv);
}
