/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server and a client in one program, each with a limit of its own.
 */
#include <weir/grpc.hpp>

#include <cstdio>

#include "lookup.grpc.pb.h"

using weir::example::Answer;
using weir::example::Lookup;
using weir::example::Query;

/* The synchronous API. */
class lookup final : public Lookup::Service
{
public:
	explicit lookup(weir::limiter_ref limiter) : guard_(limiter)
	{
	}

	grpc::Status Report(grpc::ServerContext *context, const Query *query,
			    Answer *answer) override
	{
		return guard_.serve(context, [&] {
			answer->set_text("shop " + std::to_string(query->shop()));
			return grpc::Status::OK;
		});
	}

private:
	weir::grpc_guard guard_;
};

/* The callback API: the work begins when there is a permit, which takes no thread. */
class callback_lookup final : public Lookup::CallbackService
{
public:
	explicit callback_lookup(weir::limiter_ref limiter) : guard_(limiter)
	{
	}

	grpc::ServerUnaryReactor *Report(grpc::CallbackServerContext *context, const Query *query,
					 Answer *answer) override
	{
		return guard_.serve(context, [query, answer](weir::grpc_unary &call) {
			answer->set_text("shop " + std::to_string(query->shop()));
			call.Finish(grpc::Status::OK);
		});
	}

private:
	weir::grpc_guard guard_;
};

/* A channel whose calls wait for a permit for 100 ms at most. */
static std::shared_ptr<grpc::Channel> connect(const std::string &target, weir::limiter_ref limiter)
{
	std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
		creators;
	weir::grpc_config config;

	config.wait = std::chrono::milliseconds(100);
	creators.push_back(weir::grpc_client_interceptor(limiter, config));
	return grpc::experimental::CreateCustomChannelWithInterceptors(
		target, grpc::InsecureChannelCredentials(), grpc::ChannelArguments(),
		std::move(creators));
}

static void serve_and_ask(grpc::Service *service, weir::limiter_ref at_client)
{
	grpc::ServerBuilder builder;
	grpc::ClientContext context;
	Query query;
	Answer answer;
	int port = 0;

	builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
	builder.RegisterService(service);
	const auto server = builder.BuildAndStart();
	const auto stub = Lookup::NewStub(connect("127.0.0.1:" + std::to_string(port), at_client));

	query.set_shop(3);
	const grpc::Status status = stub->Report(&context, query, &answer);
	std::puts(status.ok() ? answer.text().c_str() : status.error_message().c_str());
	server->Shutdown();
}

int main()
{
	weir::config config;

	config.queue = 100;
	weir::limiter at_server(config), at_client(config);
	lookup service(at_server);
	callback_lookup callback_service(at_server);

	serve_and_ask(&service, at_client);
	serve_and_ask(&callback_service, at_client);
	std::printf("in flight %u and %u\n", at_server.inflight(), at_client.inflight());
}
