/* SPDX-License-Identifier: BSD-2-Clause */
#include "metrics.hpp"

#include <cstring>
#include <stdexcept>

#include <microhttpd.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::serve
{

namespace
{

constexpr unsigned CONNECTIONS = 16;
constexpr unsigned TIMEOUT = 10; /* seconds without a byte */

const weir_metric STREAMS = {WEIR_METRIC_GAUGE, "weir_serve_streams", nullptr,
			     "Streams of clients."};
const weir_metric BUCKETS = {WEIR_METRIC_GAUGE, "weir_serve_buckets", nullptr,
			     "Buckets that clients have subscribed to."};
const weir_metric WANTS = {WEIR_METRIC_GAUGE, "weir_serve_wants", nullptr,
			   "Units that clients want together."};
const weir_metric LENT = {WEIR_METRIC_GAUGE, "weir_serve_lent", nullptr,
			  "Units that clients may be using."};

std::runtime_error error_of(const std::string &address, const char *why)
{
	return std::runtime_error("--metrics " + address + ": " + why + ".");
}

addrinfo *resolve(const std::string &address)
{
	const size_t colon = address.rfind(':');
	addrinfo hints{}, *found;

	if (colon == std::string::npos)
		throw error_of(address, "it is not HOST:PORT");
	std::string host = address.substr(0, colon);
	if (host.size() > 1 && host.front() == '[' && host.back() == ']')
		host = host.substr(1, host.size() - 2);
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_PASSIVE;
	const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
				      address.c_str() + colon + 1, &hints, &found);
	if (error != 0)
		throw error_of(address, gai_strerror(error));
	return found;
}

int listen_at(const std::string &address)
{
	addrinfo *at = resolve(address);
	const int on = 1;
	const int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
	const bool listens = fd >= 0 &&
			     setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
			     bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 16) == 0;
	const int error = errno;

	freeaddrinfo(at);
	if (listens)
		return fd;
	if (fd >= 0)
		close(fd);
	throw error_of(address, std::strerror(error));
}

MHD_Result answer(MHD_Connection *connection, unsigned status, const std::string &text,
		  const char *type)
{
	/* The library does not write to it, and copies it. */
	MHD_Response *response = MHD_create_response_from_buffer(
		text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY);

	if (response == nullptr)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	const MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

MHD_Result serve(void *arg, MHD_Connection *connection, const char *path, const char *method,
		 const char *version, const char *upload, size_t *upload_size, void **begun)
{
	const auto *self = static_cast<const metrics_server *>(arg);
	const char *accepts = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							  MHD_HTTP_HEADER_ACCEPT);
	const weir_metrics_format format =
		accepts != nullptr &&
				std::strstr(accepts, "application/openmetrics-text") != nullptr
			? WEIR_OPENMETRICS
			: WEIR_PROMETHEUS;

	(void)version;
	(void)upload;
	/* The first call is before the body, of which nothing is read. */
	if (*begun == nullptr) {
		*begun = arg;
		return MHD_YES;
	}
	if (*upload_size != 0) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (std::strcmp(method, "GET") != 0)
		return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET.\n", "text/plain");
	if (std::strcmp(path, "/metrics") != 0)
		return answer(connection, MHD_HTTP_NOT_FOUND, "Only /metrics.\n", "text/plain");
	return answer(connection, MHD_HTTP_OK, self->text(format),
		      weir_metrics_content_type(format));
}

int append(void *arg, const char *piece, size_t size)
{
	static_cast<std::string *>(arg)->append(piece, size);
	return 0;
}

} // namespace

metrics_server::metrics_server(const std::string &address, weir_fleet *fleet, board &of)
	: fleet_(fleet), board_(of)
{
	const int fd = listen_at(address);

	daemon_ = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, serve,
				   this, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				   CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT,
				   MHD_OPTION_END);
	if (daemon_ != nullptr)
		return;
	close(fd);
	throw error_of(address, "the HTTP server cannot be started");
}

metrics_server::~metrics_server()
{
	MHD_stop_daemon(daemon_);
}

unsigned metrics_server::port() const
{
	return MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
}

std::string metrics_server::text(weir_metrics_format format) const
{
	weir_metrics *metrics;
	std::string text;

	if (weir_metrics_create(&metrics) != 0)
		return text;
	(void)weir_fleet_metrics_add(metrics, fleet_, nullptr, 0);
	(void)weir_metrics_add_value(metrics, &STREAMS, static_cast<double>(board_.streams()),
				     nullptr, 0);
	for (const limit_numbers &limit : board_.numbers()) {
		const weir_label label = {"limit", limit.name.c_str(), 0};

		(void)weir_metrics_add_value(metrics, &BUCKETS, static_cast<double>(limit.buckets),
					     &label, 1);
		(void)weir_metrics_add_value(metrics, &WANTS, static_cast<double>(limit.wants),
					     &label, 1);
		(void)weir_metrics_add_value(metrics, &LENT, static_cast<double>(limit.lent),
					     &label, 1);
	}
	(void)weir_metrics_write(metrics, format, append, &text);
	weir_metrics_destroy(metrics);
	return text;
}

} // namespace weir::serve
