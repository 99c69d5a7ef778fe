/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gRPC server on SQLite with an adaptive limit.
 *
 *	weir-grpc-serve [LIMIT [QUEUE [WAIT_MS [STATS]]]]
 *
 * LIMIT is a limit as text, or none. QUEUE calls (8) may wait for a permit, each for WAIT_MS (50).
 * The state of the limiter is written to STATS.
 */
#include <weir/grpc.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "lookup.grpc.pb.h"

extern "C" {
#include "stats.h"
#include "store.h"
}

namespace
{

constexpr unsigned ROWS = 400000;

using weir::example::Answer;
using weir::example::Lookup;
using weir::example::Query;

class lookup final : public Lookup::Service
{
public:
	lookup(weir::limiter_ref limiter, weir::grpc_config config, store *reports)
		: guard_(limiter, std::move(config)), reports_(reports)
	{
	}

	grpc::Status Report(grpc::ServerContext *context, const Query *query,
			    Answer *answer) override
	{
		return guard_.serve(context, [&] {
			char text[1024];
			const int length = store_report(reports_, query->shop(), text,
							sizeof(text));

			if (length < 0)
				return grpc::Status(grpc::StatusCode::INTERNAL, "no report");
			answer->set_text(text, static_cast<std::size_t>(length));
			return grpc::Status::OK;
		});
	}

private:
	weir::grpc_guard guard_;
	store *reports_;
};

std::atomic<bool> ended{false};

void end(int)
{
	ended = true;
}

/* Write the limiter's state ten times per second, until the program ends. */
void show(weir::limiter_ref limiter, const char *path)
{
	std::FILE *file = path != nullptr ? std::fopen(path, "we") : nullptr;

	if (file != nullptr)
		stats_header(file);
	while (!ended) {
		if (file != nullptr)
			stats_line(file, limiter.get(), 0);
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
	}
	if (file != nullptr)
		std::fclose(file);
}

} // namespace

int main(int argc, char **argv)
{
	const std::string text = argc > 1 ? argv[1] : "elastic";
	weir::config config;
	weir::status how = config.set_limit(text == "none" ? "fixed:limit=8388607" : text);
	config.queue = argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 8;
	weir::limiter limiter(config, how ? &how : nullptr);
	store *reports = store_create(ROWS);
	grpc::ServerBuilder builder;
	weir::grpc_config admission;
	int port = 0;

	if (!how || !limiter || reports == nullptr) {
		std::fprintf(stderr, "weir-grpc-serve: %s\n", how.why);
		return 1;
	}
	std::signal(SIGTERM, end);
	std::signal(SIGINT, end);
	admission.wait = std::chrono::milliseconds(argc > 3 ? std::atoi(argv[3]) : 50);
	lookup service(limiter, admission, reports);
	builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
	builder.RegisterService(&service);
	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
	std::printf("listening on 127.0.0.1:%d\n", port);
	std::fflush(stdout);
	show(limiter, argc > 4 ? argv[4] : nullptr);
	server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
	std::printf("in flight %u\n", limiter.inflight());
	store_destroy(reports);
}
