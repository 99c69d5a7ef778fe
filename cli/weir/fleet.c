/*
 * fleet.c - weir fleet: limits that machines share, by the store that they share them through.
 *
 * Options of the store are variables of the environment too; an option sets its variable, so that
 * it counts wherever it stands.
 */
#include "fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "cli/common/commands.h"

static const struct argp_option options[] = {
	{"address", 'a', "ADDRESS", 0,
	 "The store: shm:/NAME, redis://HOST or etcd://HOST,... ($WEIR_FLEET)", 1},
	{"store-name", 'n', "NAME", 0, "Its name there: weir ($WEIR_FLEET_NAME)", 1},
	{"tls-ca", 'A', "FILE", 0, "Whom to believe, with etcds:// ($WEIR_FLEET_CA)", 1},
	{"tls-cert", 'C', "FILE", 0, "A certificate to show there ($WEIR_FLEET_CERT)", 1},
	{"tls-key", 'K', "FILE", 0, "Its key ($WEIR_FLEET_KEY)", 1},
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

static error_t option(int key, char *arg, struct argp_state *state)
{
	const char *variable = variable_of(key);

	(void)state;
	if (variable == NULL)
		return ARGP_ERR_UNKNOWN;
	return setenv(variable, arg, 1) == 0 ? 0 : errno;
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
		name_complain("", "Where is the store? Say it by --address, or in $WEIR_FLEET.");
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
		snprintf(why, size, "A name is of 1 to %d letters, digits and -_.:@.",
			 WEIR_SHARE_NAME_MAX);
		break;
	case -ENOENT:
		snprintf(why, size, "There is nothing of that name.");
		break;
	case -EPROTO:
		snprintf(why, size, "What is written there is of another version, or damaged.");
		break;
	case -EBUSY:
		snprintf(why, size, "It has members: they would make it again.");
		break;
	case -EAGAIN:
		snprintf(why, size, "Others change it all the time: try again.");
		break;
	case -ENOMEM:
		snprintf(why, size, "There is no memory.");
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

const char *fleet_allotment(enum weir_allotment allotment)
{
	static const char *const names[] = {
		[WEIR_ALLOT_FAIR] = "fair",
		[WEIR_ALLOT_PROPORTIONAL] = "proportional",
		[WEIR_ALLOT_STATIC] = "static",
		[WEIR_ALLOT_NONE] = "none",
	};

	return (unsigned)allotment <= WEIR_ALLOT_NONE ? names[allotment] : "";
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

int command_fleet(int argc, char **argv)
{
	static const struct command commands[] = {
		{"list", fleet_list, "print all limits, and their sums"},
		{"show", fleet_show, "print limits with their members, and parts"},
		{"top", fleet_top, "watch them"},
		{"make", fleet_make, "make a limit, before it has members"},
		{"set", fleet_set, "change a limit for all members"},
		{"remove", fleet_remove, "remove a limit that has no members"},
		{"drain", fleet_drain, "let a member give back all it holds, and get nothing"},
		{"undrain", fleet_undrain, "let it have its share again"},
	};
	static const struct argp_child children[] = FLEET_CHILDREN;
	static const struct program program = {
		.name = "weir fleet",
		.about = "Look after limits that processes and machines share through a store.",
		.options = children,
		.commands = commands,
		.count = sizeof(commands) / sizeof(commands[0]),
	};

	program_run(&program, argc, argv);
}
