/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls a server on a schedule that does not depend on earlier calls, or, to measure its capacity,
 * with a fixed number of calls at once. For the demo.
 *
 *	weir-grpc-caller TARGET PLAN REQUESTS PATIENCE_MS	PLAN: see adapters/common/plan.h
 *	weir-grpc-caller TARGET CALLS SECONDS			print answers per second
 */
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "lookup.grpc.pb.h"
#include "plan.h"

namespace
{

using namespace std::chrono;
using weir::example::Answer;
using weir::example::Lookup;
using weir::example::Query;

/* A call, from its start to its callback, which frees it. */
struct call {
	grpc::ClientContext context{};
	Query query{};
	Answer answer{};
	plan_call planned{};
};

class caller
{
public:
	caller(const char *target, plan *phases, std::FILE *requests, microseconds patience)
		: stub_(Lookup::NewStub(
			  grpc::CreateChannel(target, grpc::InsecureChannelCredentials()))),
		  phases_(phases), requests_(requests), patience_(patience)
	{
	}

	void begin(const plan_call &planned)
	{
		auto *c = new call;

		c->planned = planned;
		c->query.set_shop(next_shop_++ % 5);
		c->context.set_deadline(system_clock::now() + patience_);
		running_++;
		stub_->async()->Report(&c->context, &c->query, &c->answer,
				       [this, c](const grpc::Status &status) { end(c, status); });
	}

	void wait()
	{
		std::unique_lock<std::mutex> lock(mutex_);

		idle_.wait(lock, [this] { return running_ == 0; });
	}

private:
	static unsigned status_of(const grpc::Status &status)
	{
		if (status.ok())
			return PLAN_ANSWERED;
		return status.error_code() == grpc::StatusCode::UNAVAILABLE ? PLAN_REFUSED
									    : PLAN_UNANSWERED;
	}

	void end(call *c, const grpc::Status &status)
	{
		const std::uint64_t patience = static_cast<std::uint64_t>(patience_.count());
		const unsigned how = status_of(status);
		std::uint64_t latency = plan_now() - c->planned.at;

		if (how == PLAN_UNANSWERED && latency < patience)
			latency = patience;
		const std::lock_guard<std::mutex> lock(mutex_);

		plan_report(phases_, &c->planned, how, latency, requests_);
		delete c;
		if (--running_ == 0)
			idle_.notify_all();
	}

	std::unique_ptr<Lookup::Stub> stub_;
	plan *phases_;
	std::FILE *requests_;
	microseconds patience_;
	unsigned next_shop_ = 0;
	std::mutex mutex_{};
	std::condition_variable idle_{};
	std::atomic<unsigned> running_{0};
};

int by_the_clock(const char *target, const char *path, const char *rows, long patience_ms)
{
	plan *phases = plan_read(path);
	std::FILE *requests = std::fopen(rows, "we");
	plan_call next;

	if (phases == nullptr || requests == nullptr)
		return 1;
	caller all(target, phases, requests, milliseconds(patience_ms));
	while (plan_next(phases, &next)) {
		std::this_thread::sleep_until(
			system_clock::time_point(microseconds(static_cast<long>(next.at))));
		all.begin(next);
	}
	all.wait();
	std::fclose(requests);
	plan_free(phases);
	return 0;
}

/* The best two seconds, because disturbances only make a result lower. */
int capacity(const char *target, unsigned calls, unsigned seconds_long)
{
	const auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
	const auto start = steady_clock::now();
	std::vector<std::atomic<unsigned>> answers(seconds_long + 1);
	std::vector<std::thread> threads;
	unsigned best = 0;

	for (unsigned i = 0; i < calls; i++)
		threads.emplace_back([&, i] {
			const auto stub = Lookup::NewStub(channel);
			std::size_t second = 0;

			for (unsigned shop = i; second < seconds_long; shop++) {
				grpc::ClientContext context;
				Query query;
				Answer answer;

				query.set_shop(shop % 5);
				const bool ok = stub->Report(&context, query, &answer).ok();
				second = static_cast<std::size_t>(
					duration_cast<seconds>(steady_clock::now() - start)
						.count());
				if (ok && second < seconds_long)
					answers[second]++;
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	for (unsigned i = 0; i + 1 < seconds_long; i++)
		best = std::max(best, answers[i] + answers[i + 1]);
	std::printf("%.1f\n", best / 2.0);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc == 5)
		return by_the_clock(argv[1], argv[2], argv[3], std::atol(argv[4]));
	if (argc == 4)
		return capacity(argv[1], static_cast<unsigned>(std::atoi(argv[2])),
				static_cast<unsigned>(std::atoi(argv[3])));
	std::fprintf(stderr, "Usage: weir-grpc-caller TARGET PLAN REQUESTS PATIENCE_MS\n"
			     "       weir-grpc-caller TARGET CALLS SECONDS\n");
	return 2;
}
