/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.cpp - weir-fleet-serve: the rate limit quota service of Envoy, over the limits of a fleet.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/server_credentials.h>

#include "metrics.hpp"
#include "options.hpp"

namespace
{

using namespace weir::serve;

constexpr int KEEPALIVE = 10000, KEEPALIVE_TIMEOUT = 5000; /* in ms */
constexpr int MESSAGE_MAX = 4 << 20;                       /* a report, in bytes */

const char *or_null(const std::string &text)
{
	return text.empty() ? nullptr : text.c_str();
}

struct closes_fleet {
	void operator()(weir_fleet *fleet) const
	{
		weir_fleet_close(fleet);
	}
};

using fleet_ptr = std::unique_ptr<weir_fleet, closes_fleet>;

fleet_ptr open_fleet(const options &o)
{
	weir_store_config store;
	weir_fleet_config config;
	weir_fleet *fleet;
	char why[512];

	weir_store_config_init(&store);
	store.address = o.address.c_str();
	store.name = or_null(o.store_name);
	store.tls_ca = or_null(o.store_ca);
	store.tls_cert = or_null(o.store_cert);
	store.tls_key = or_null(o.store_key);
	weir_fleet_config_init(&config);
	config.address = o.address.c_str();
	config.store_config = &store;
	config.label = or_null(o.label);
	config.lease = o.lease;
	config.learning = o.learning;
	if (weir_fleet_open(&config, &fleet, why, sizeof(why)) != 0)
		throw std::runtime_error(why);
	return fleet_ptr(fleet);
}

std::string contents(const std::string &file)
{
	std::ifstream in(file);
	std::ostringstream text;

	if (!(in && text << in.rdbuf()))
		throw std::runtime_error(file + ": It cannot be read, or is empty.");
	return text.str();
}

std::shared_ptr<grpc::ServerCredentials> credentials(const options &o)
{
	if (o.cert.empty())
		return grpc::InsecureServerCredentials();

	grpc::SslServerCredentialsOptions tls(
		o.ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
			     : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
	tls.pem_key_cert_pairs.push_back({contents(o.key), contents(o.cert)});
	if (!o.ca.empty())
		tls.pem_root_certs = contents(o.ca);
	return grpc::SslServerCredentials(tls);
}

/* Connections of clients that do not answer are closed. */
std::unique_ptr<grpc::Server> start(const options &o, quota_service &service)
{
	grpc::ServerBuilder builder;
	int port = 0;

	builder.AddListeningPort(o.listen, credentials(o), &port);
	builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE);
	builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT);
	builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
	builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
	builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
	builder.SetMaxReceiveMessageSize(MESSAGE_MAX);
	builder.RegisterService(&service);

	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();

	if (server == nullptr || port == 0)
		throw std::runtime_error("--listen " + o.listen +
					 ": The address cannot be used, or the certificate and the "
					 "key cannot.");
	std::printf("listening on %s:%d\n", o.listen.substr(0, o.listen.rfind(':')).c_str(), port);
	return server;
}

/* After the first signal, another one ends the process at once: its leases end by themselves. */
void wait_for_signal(const sigset_t &signals)
{
	int which;

	sigwait(&signals, &which);
	std::signal(SIGTERM, SIG_DFL);
	std::signal(SIGINT, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

/*
 * Shares are left only when nothing is lent any more, as their units are another's from then on.
 * Metrics are served until then, and end before what they report on.
 */
void run(const options &o, const sigset_t &signals)
{
	const fleet_ptr fleet = open_fleet(o);
	board all(fleet.get(), o.board);
	quota_service service(all, o.how);
	std::unique_ptr<metrics_server> metrics;

	if (!o.metrics.empty()) {
		metrics = std::make_unique<metrics_server>(o.metrics, fleet.get(), all);
		std::printf("metrics on port %u\n", metrics->port());
	}
	const std::unique_ptr<grpc::Server> server = start(o, service);
	std::fflush(stdout);
	wait_for_signal(signals);
	all.drain();
	server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
	all.wait_for_loans();
}

} // namespace

int main(int argc, char **argv)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, nullptr);
	std::signal(SIGPIPE, SIG_IGN);
	try {
		run(options_parse(argc, argv), signals);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "weir-fleet-serve: %s\n", e.what());
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
