/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.hpp"

#include <argp.h>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace weir::serve
{

namespace
{

enum key : int {
	BUCKETS = 256,
	CA,
	CERT,
	DELIVERY,
	IDLE,
	KEY,
	LEARNING,
	LEASE,
	STRATEGY,
	STREAMS,
	TTL,
};

const argp_option table[] = {
	{nullptr, 0, nullptr, 0, "The store, as with weir fleet:", 1},
	{"address", 'a', "ADDRESS", 0,
	 "shm:/NAME, redis://HOST, redis-sentinel://HOST,.../SERVICE or etcd://HOST,... "
	 "($WEIR_FLEET)",
	 1},
	{"store-name", 'n', "NAME", 0, "Its namespace there (weir; $WEIR_FLEET_NAME)", 1},
	{"tls-ca", 'A', "FILE", 0, "Certificate authority, with etcds:// ($WEIR_FLEET_CA)", 1},
	{"tls-cert", 'C', "FILE", 0, "Client certificate ($WEIR_FLEET_CERT)", 1},
	{"tls-key", 'K', "FILE", 0, "Private key of the certificate ($WEIR_FLEET_KEY)", 1},
	{"label", 'L', "LABEL", 0, "Label of this process in the store (HOST:PID)", 1},
	{"lease", LEASE, "SECONDS", 0, "Length of its leases (15)", 1},
	{"learning", LEARNING, "SECONDS", 0,
	 "How long old leases may last in a store that has lost data: the same in all processes "
	 "(15)",
	 1},
	{nullptr, 0, nullptr, 0, "Clients:", 2},
	{"listen", 'l', "HOST:PORT", 0, "Where they connect (127.0.0.1:18081)", 2},
	{"cert", CERT, "FILE", 0, "Certificate of this server: TLS is used", 2},
	{"key", KEY, "FILE", 0, "Private key of the certificate", 2},
	{"ca", CA, "FILE", 0, "Authority that signs certificates of clients, which need one then",
	 2},
	{"bucket-limit", 'b', "KEY", 0,
	 "The value of this key in a bucket id is the name of the limit (name)", 2},
	{"streams", STREAMS, "N", 0, "Clients at once (1000)", 2},
	{"buckets", BUCKETS, "N", 0, "Buckets of a client (256)", 2},
	{nullptr, 0, nullptr, 0, "Assignments:", 3},
	{"ttl", TTL, "SECONDS", 0, "How long they last, in whole seconds (6)", 3},
	{"delivery", DELIVERY, "SECONDS", 0, "How long a message to a client may take (1)", 3},
	{"idle", IDLE, "SECONDS", 0, "A bucket without requests for that long is abandoned (300)",
	 3},
	{"strategy", STRATEGY, "HOW", 0,
	 "token_bucket, which Envoy knows, or requests_per_time_unit (token_bucket)", 3},
	{nullptr, 0, nullptr, 0, "Operation:", 4},
	{"metrics", 'm', "HOST:PORT", 0, "Serve metrics there, at /metrics", 4},
	{},
};

/* A number of seconds, or an error. */
weir_dur seconds(const char *text, double least, double most, argp_state *state)
{
	char *end;
	const double number = std::strtod(text, &end);

	if (end == text || *end != '\0' || !(number >= least && number <= most))
		argp_error(state, "%s is not a number of seconds from %g to %g", text, least, most);
	return static_cast<weir_dur>(std::llround(number * static_cast<double>(WEIR_S)));
}

size_t count(const char *text, long most, argp_state *state)
{
	char *end;

	errno = 0;
	const long number = std::strtol(text, &end, 10);

	if (errno != 0 || end == text || *end != '\0' || number < 1 || number > most)
		argp_error(state, "%s is not a number from 1 to %ld", text, most);
	return static_cast<size_t>(number);
}

strategy strategy_of(const char *text, argp_state *state)
{
	if (std::strcmp(text, "requests_per_time_unit") == 0)
		return strategy::requests_per_time_unit;
	if (std::strcmp(text, "token_bucket") != 0)
		argp_error(state, "%s is neither token_bucket nor requests_per_time_unit", text);
	return strategy::token_bucket;
}

/* Blank out the password of an address, so that ps shows it only for a moment. */
void hide_password(char *address)
{
	char *scheme = std::strstr(address, "://"),
	     *user = scheme != nullptr ? scheme + 3 : nullptr;
	char *at = user != nullptr
			   ? static_cast<char *>(std::memchr(user, '@', std::strcspn(user, "/")))
			   : nullptr;
	char *colon = at != nullptr ? static_cast<char *>(std::memchr(
					      user, ':', static_cast<size_t>(at - user)))
				    : nullptr;

	if (colon != nullptr)
		std::memset(colon + 1, '*', static_cast<size_t>(at - colon - 1));
}

std::string *text_of(options &o, int key)
{
	switch (key) {
	case 'a':
		return &o.address;
	case 'n':
		return &o.store_name;
	case 'A':
		return &o.store_ca;
	case 'C':
		return &o.store_cert;
	case 'K':
		return &o.store_key;
	case 'L':
		return &o.label;
	case 'l':
		return &o.listen;
	case 'm':
		return &o.metrics;
	case 'b':
		return &o.board.limit_key;
	case CA:
		return &o.ca;
	case CERT:
		return &o.cert;
	case KEY:
		return &o.key;
	default:
		return nullptr;
	}
}

/*
 * A lease is renewed after 0.43 of it at the latest, and an assignment has to fit into what is left
 * of the one before.
 */
void check(const options &o, argp_state *state)
{
	const clerk_terms &terms = o.board.terms;

	if (o.cert.empty() != o.key.empty())
		argp_error(state, "--cert and --key need each other");
	if (o.cert.empty() && !o.ca.empty())
		argp_error(state, "--ca needs --cert and --key");
	if (terms.ttl * (WEIR_S + WEIR_S / 100) + terms.delivery > o.lease / 2)
		argp_error(state, "--ttl and --delivery together are more than half of --lease");
	if (o.address.empty())
		argp_error(state,
			   "the store's address is missing: give --address, or set WEIR_FLEET");
}

error_t parse(int key, char *arg, argp_state *state)
{
	options &o = *static_cast<options *>(state->input);

	if (std::string *text = text_of(o, key); text != nullptr) {
		*text = arg;
		if (key == 'a')
			hide_password(arg);
		return 0;
	}
	switch (key) {
	case LEASE:
		o.lease = seconds(arg, 2, 3600, state);
		return 0;
	case LEARNING:
		o.learning = seconds(arg, 0.02, 3600, state);
		return 0;
	case DELIVERY:
		o.board.terms.delivery = seconds(arg, 0.1, 600, state);
		return 0;
	case IDLE:
		o.board.terms.idle = seconds(arg, 1, 86400, state);
		return 0;
	case TTL:
		o.board.terms.ttl = static_cast<unsigned>(count(arg, 600, state));
		return 0;
	case STREAMS:
		o.board.streams = count(arg, 100000, state);
		return 0;
	case BUCKETS:
		o.board.buckets = count(arg, 4096, state);
		return 0;
	case STRATEGY:
		o.how = strategy_of(arg, state);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "there is no argument %s", arg);
		return 0;
	case ARGP_KEY_END:
		check(o, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

std::string variable(const char *name)
{
	const char *value = std::getenv(name);

	return value != nullptr ? value : "";
}

} // namespace

options options_parse(int argc, char **argv)
{
	const argp parser = {
		table,   parse,
		nullptr, "Answer Envoy's rate limit quota service from the limits of a fleet.",
		nullptr, nullptr,
		nullptr,
	};
	options o;

	o.address = variable("WEIR_FLEET");
	o.store_name = variable("WEIR_FLEET_NAME");
	o.store_ca = variable("WEIR_FLEET_CA");
	o.store_cert = variable("WEIR_FLEET_CERT");
	o.store_key = variable("WEIR_FLEET_KEY");
	argp_parse(&parser, argc, argv, 0, nullptr, &o);
	return o;
}

} // namespace weir::serve
