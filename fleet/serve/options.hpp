/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.hpp - what the command line says.
 */
#ifndef WEIR_FLEET_SERVE_OPTIONS_HPP
#define WEIR_FLEET_SERVE_OPTIONS_HPP

#include <string>

#include "stream.hpp"

namespace weir::serve
{

struct options {
	/* The store; "": not given. */
	std::string address, store_name, store_ca, store_cert, store_key;

	std::string listen = "127.0.0.1:18081";
	std::string metrics; /* "": none */
	std::string label;
	std::string ca, cert, key; /* of the clients' side */
	weir_dur lease = 15 * WEIR_S, learning = 15 * WEIR_S;
	strategy how = strategy::token_bucket;
	board_config board = {{6, WEIR_S, 300 * WEIR_S}, "name", 1000, 256};
};

/* Exits with a message if the command line is wrong. */
options options_parse(int argc, char **argv);

} // namespace weir::serve

#endif
