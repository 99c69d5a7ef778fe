/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.hpp - the daemon's numbers over HTTP, at /metrics: the fleet's own
 * (weir/fleet_metrics.h), and those of streams and buckets.
 */
#ifndef WEIR_FLEET_SERVE_METRICS_HPP
#define WEIR_FLEET_SERVE_METRICS_HPP

#include <weir/fleet_metrics.h>

#include "board.hpp"

struct MHD_Daemon;

namespace weir::serve
{

/* Throws std::runtime_error with a sentence. The fleet and the board must outlive it. */
class metrics_server
{
public:
	/* address: HOST:PORT; port 0 is any that is free. */
	metrics_server(const std::string &address, weir_fleet *fleet, board &of);
	~metrics_server(); /* waits for scrapes under way */
	metrics_server(const metrics_server &) = delete;
	metrics_server &operator=(const metrics_server &) = delete;

	unsigned port() const;

	/* The numbers as text; "" without memory. */
	std::string text(weir_metrics_format format) const;

private:
	weir_fleet *fleet_;
	board &board_;
	MHD_Daemon *daemon_ = nullptr;
};

} // namespace weir::serve

#endif
