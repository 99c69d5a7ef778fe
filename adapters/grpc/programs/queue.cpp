/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server on a completion queue whose calls wait for a permit.
 */
#include <weir/grpc.hpp>

#include <cstdio>
#include <functional>
#include <thread>

#include "lookup.grpc.pb.h"

using weir::example::Answer;
using weir::example::Lookup;
using weir::example::Query;

/* A tag of the queue. */
using event = std::function<void(bool ok)>;

/* One call, from its request until both events of its end have arrived. */
class call
{
public:
	call(Lookup::AsyncService &service, grpc::ServerCompletionQueue &queue,
	     const weir::grpc_guard &guard)
		: service_(service), queue_(queue), guard_(guard)
	{
		context_.AsyncNotifyWhenDone(&over_); /* guard_.outcome() needs it */
		service_.RequestReport(&context_, &query_, &writer_, &queue_, &queue_, &arrived_);
	}

private:
	void arrive(bool ok)
	{
		if (!ok) {
			delete this; /* the server is being shut down */
			return;
		}
		new call(service_, queue_, guard_); /* the next one */
		wait_ = guard_.wait(context_,
				    [this](weir::permit got, const grpc::Status &refusal) {
					    permit_ = std::move(got);
					    finish(permit_ ? work() : refusal);
				    });
	}

	grpc::Status work()
	{
		answer_.set_text("shop " + std::to_string(query_.shop()));
		return grpc::Status::OK;
	}

	/* Release the permit first, if there is one. Runs in any thread. */
	void finish(const grpc::Status &status)
	{
		permit_.release(guard_.outcome(context_, status));
		writer_.Finish(answer_, status, &finished_);
	}

	void end()
	{
		if (--ends_ == 0)
			delete this;
	}

	Lookup::AsyncService &service_;
	grpc::ServerCompletionQueue &queue_;
	weir::grpc_guard guard_;
	grpc::ServerContext context_{};
	grpc::ServerAsyncResponseWriter<Answer> writer_{&context_};
	Query query_{};
	Answer answer_{};
	weir::permit permit_{};
	weir::grpc_wait wait_{};
	int ends_ = 2;
	event arrived_ = [this](bool ok) { arrive(ok); };
	event finished_ = [this](bool) { end(); };
	event over_ = [this](bool) {
		if (context_.IsCancelled())
			wait_.cancel(); /* the client has left, or the deadline has passed */
		end();
	};
};

static void run(grpc::ServerCompletionQueue &queue)
{
	void *tag;
	bool ok;

	while (queue.Next(&tag, &ok))
		(*static_cast<event *>(tag))(ok);
}

static void ask(int port)
{
	const auto stub = Lookup::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
							      grpc::InsecureChannelCredentials()));
	grpc::ClientContext context;
	Query query;
	Answer answer;

	query.set_shop(3);
	const grpc::Status status = stub->Report(&context, query, &answer);
	std::puts(status.ok() ? answer.text().c_str() : status.error_message().c_str());
}

int main()
{
	weir::config limits;
	weir::grpc_config admission;
	grpc::ServerBuilder builder;
	Lookup::AsyncService service;
	int port = 0;

	limits.queue = 100;
	weir::limiter limiter(limits);
	admission.wait = std::chrono::milliseconds(50);
	if (const weir::status how = admission.check(limiter); !how) {
		std::fprintf(stderr, "%s\n", how.why);
		return 1;
	}
	builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
	builder.RegisterService(&service);
	const auto queue = builder.AddCompletionQueue();
	const auto server = builder.BuildAndStart();
	new call(service, *queue, weir::grpc_guard(limiter, admission));
	std::thread loop(run, std::ref(*queue));

	ask(port);
	server->Shutdown();
	queue->Shutdown();
	loop.join();
	std::printf("in flight %u\n", limiter.inflight());
}
