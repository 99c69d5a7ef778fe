/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All the ways in which a call can begin and end, at client and server, and the release of its
 * permit after each.
 */
#include <weir/grpc.hpp>

#include <atomic>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "lookup.grpc.pb.h"

namespace
{

using namespace std::chrono_literals;
using std::chrono::system_clock;
using weir::example::Answer;
using weir::example::Lookup;
using weir::example::Query;

constexpr unsigned HANG = 1000000000; /* sleep_ms: until released */

weir::limiter make_limiter(unsigned limit, unsigned queue)
{
	weir::config config;

	CHECK(config.set_limit("fixed:limit=" + std::to_string(limit)));
	config.queue = queue;
	return weir::limiter(config);
}

void wait_for(const std::function<bool()> &happened)
{
	while (!happened())
		std::this_thread::sleep_for(1ms);
}

/* All admitted calls have ended and are counted. A permit is released before its end is counted. */
bool is_settled(const weir::limiter &limiter)
{
	const weir_snapshot now = limiter.snapshot();

	return now.inflight == 0 && now.waiting == 0 &&
	       now.admitted == now.succeeded + now.ignored + now.dropped + now.timed_out +
				       now.cancelled + now.failed;
}

void check_idle(const weir::limiter &limiter)
{
	wait_for([&] { return is_settled(limiter); });
	CHECK(limiter.snapshot().double_released == 0);
}

/* The progress of a server's work. */
struct work {
	std::atomic<unsigned> busy{0}, most{0}, begun{0};
	std::atomic<bool> let_go{false};

	void enter()
	{
		const unsigned now = ++busy;
		unsigned seen = most;

		begun++;
		while (seen < now && !most.compare_exchange_weak(seen, now))
			;
	}

	bool is_over(const Query &query, system_clock::time_point since) const
	{
		return query.sleep_ms() == HANG
			       ? let_go.load()
			       : system_clock::now() >=
					 since + std::chrono::milliseconds(query.sleep_ms());
	}
};

grpc::Status status_of(const Query &query)
{
	return grpc::Status(static_cast<grpc::StatusCode>(query.status()), "as asked");
}

class sync_service final : public Lookup::Service
{
public:
	sync_service(weir::grpc_guard server, weir::limiter_ref limiter, work &done)
		: guard_(std::move(server)), limiter_(limiter), done_(done)
	{
	}

	grpc::Status Report(grpc::ServerContext *context, const Query *query, Answer *) override
	{
		const weir_call call = weir::grpc_call_by_metadata(limiter_, *context, "class");

		return guard_.serve(
			context, [&] { return sleep(context, *query); }, call);
	}

	grpc::Status Watch(grpc::ServerContext *context, const Query *query,
			   grpc::ServerWriter<Answer> *writer) override
	{
		return guard_.serve_stream(context, [&] {
			for (unsigned i = 0; i < query->count(); i++)
				writer->Write(Answer());
			return sleep(context, *query);
		});
	}

private:
	grpc::Status sleep(grpc::ServerContext *context, const Query &query)
	{
		const auto since = system_clock::now();

		done_.enter();
		wait_for([&] { return context->IsCancelled() || done_.is_over(query, since); });
		done_.busy--;
		return status_of(query);
	}

	weir::grpc_guard guard_;
	weir::limiter_ref limiter_;
	work &done_;
};

/* A stream that writes nothing, and ends with the requested status once it has its permit. */
class watcher final : public grpc::ServerWriteReactor<Answer>
{
public:
	watcher(const weir::grpc_guard &server, grpc::CallbackServerContext *context,
		const Query &query)
		: guard_(server), context_(context)
	{
		wait_ = guard_.wait_stream(
			*context, [this, &query](weir::permit got, const grpc::Status &refusal) {
				permit_ = std::move(got);
				status_ = permit_ ? status_of(query) : refusal;
				Finish(status_);
			});
	}

	void OnCancel() override
	{
		wait_.cancel();
	}

	void OnDone() override
	{
		permit_.release(guard_.outcome(*context_, status_));
		delete this;
	}

private:
	weir::grpc_guard guard_;
	grpc::CallbackServerContext *context_;
	weir::permit permit_{};
	weir::grpc_wait wait_{};
	grpc::Status status_{};
};

class callback_service final : public Lookup::CallbackService
{
public:
	callback_service(weir::grpc_guard server, weir::limiter_ref limiter, work &done)
		: guard_(std::move(server)), limiter_(limiter), done_(done)
	{
	}

	grpc::ServerUnaryReactor *Report(grpc::CallbackServerContext *context, const Query *query,
					 Answer *) override
	{
		const weir_call call = weir::grpc_call_by_metadata(limiter_, *context, "class");

		return guard_.serve(
			context,
			[this, context, query](weir::grpc_unary &unary) {
				done_.enter();
				std::thread([this, context, query, &unary] {
					sleep(context, *query, unary);
				}).detach();
			},
			call);
	}

	grpc::ServerWriteReactor<Answer> *Watch(grpc::CallbackServerContext *context,
						const Query *query) override
	{
		return new watcher(guard_, context, *query);
	}

private:
	void sleep(grpc::CallbackServerContext *context, const Query &query,
		   weir::grpc_unary &unary)
	{
		const auto since = system_clock::now();

		wait_for([&] { return context->IsCancelled() || done_.is_over(query, since); });
		done_.busy--;
		unary.Finish(status_of(query));
	}

	weir::grpc_guard guard_;
	weir::limiter_ref limiter_;
	work &done_;
};

/* The same with completion queues, for unary calls; streams use the callback API. */
class queue_service final
	: public Lookup::WithAsyncMethod_Report<Lookup::WithCallbackMethod_Watch<Lookup::Service>>
{
public:
	queue_service(weir::grpc_guard server, weir::limiter_ref limiter, work &done)
		: guard_(std::move(server)), limiter_(limiter), done_(done)
	{
	}

	void start(std::unique_ptr<grpc::ServerCompletionQueue> queue)
	{
		queue_ = std::move(queue);
		new call(*this);
		loop_ = std::thread([this] {
			void *tag;
			bool ok;

			while (queue_->Next(&tag, &ok))
				(*static_cast<event *>(tag))(ok);
		});
	}

	void stop()
	{
		queue_->Shutdown();
		loop_.join();
	}

	grpc::ServerWriteReactor<Answer> *Watch(grpc::CallbackServerContext *context,
						const Query *query) override
	{
		return new watcher(guard_, context, *query);
	}

private:
	using event = std::function<void(bool ok)>;

	class call
	{
	public:
		explicit call(queue_service &service) : service_(service)
		{
			context_.AsyncNotifyWhenDone(&over_);
			service_.RequestReport(&context_, &query_, &writer_, service_.queue_.get(),
					       service_.queue_.get(), &arrived_);
		}

	private:
		void arrive(bool ok)
		{
			if (!ok) {
				delete this;
				return;
			}
			new call(service_);
			wait_ = service_.guard_.wait(
				context_,
				[this](weir::permit got, const grpc::Status &refusal) {
					permit_ = std::move(got);
					if (permit_)
						work_later();
					else
						finish(refusal);
				},
				weir::grpc_call_by_metadata(service_.limiter_, context_, "class"));
		}

		void work_later()
		{
			service_.done_.enter();
			std::thread([this] {
				const auto since = system_clock::now();

				wait_for([&] {
					return context_.IsCancelled() ||
					       service_.done_.is_over(query_, since);
				});
				service_.done_.busy--;
				finish(status_of(query_));
			}).detach();
		}

		void finish(const grpc::Status &status)
		{
			permit_.release(service_.guard_.outcome(context_, status));
			writer_.Finish(answer_, status, &finished_);
		}

		void end()
		{
			if (--ends_ == 0)
				delete this;
		}

		queue_service &service_;
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
				wait_.cancel();
			end();
		};
	};

	weir::grpc_guard guard_;
	weir::limiter_ref limiter_;
	work &done_;
	std::unique_ptr<grpc::ServerCompletionQueue> queue_{};
	std::thread loop_{};
};

/* The API of gRPC that a server uses. */
enum class api { sync, callback, queue };

/* A server with one of these APIs, and a channel to it. */
struct rig {
	work done{};
	std::unique_ptr<grpc::Service> service{};
	std::unique_ptr<grpc::Server> server{};
	std::shared_ptr<grpc::Channel> channel{};
	std::unique_ptr<Lookup::Stub> stub{};
	std::string target{};

	rig(api kind, weir::limiter_ref limiter, const weir::grpc_config &config = {})
	{
		const weir::grpc_guard guard(limiter, config);
		grpc::ServerBuilder builder;
		int port = 0;

		if (kind == api::queue)
			service = std::make_unique<queue_service>(guard, limiter, done);
		else if (kind == api::callback)
			service = std::make_unique<callback_service>(guard, limiter, done);
		else
			service = std::make_unique<sync_service>(guard, limiter, done);
		builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
		builder.RegisterService(service.get());
		auto queue = kind == api::queue ? builder.AddCompletionQueue() : nullptr;
		server = builder.BuildAndStart();
		CHECK(server != nullptr && port != 0);
		if (queue != nullptr)
			by_queue()->start(std::move(queue));
		target = "127.0.0.1:" + std::to_string(port);
		connect({});
	}

	~rig()
	{
		done.let_go = true;
		server->Shutdown();
		if (by_queue() != nullptr)
			by_queue()->stop();
	}

	rig(const rig &) = delete;
	rig &operator=(const rig &) = delete;

	queue_service *by_queue() const
	{
		return dynamic_cast<queue_service *>(service.get());
	}

	/* Without a limiter, or with one at the client. */
	void connect(std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> limit)
	{
		std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
			all;

		if (limit != nullptr)
			all.push_back(std::move(limit));
		channel = grpc::experimental::CreateCustomChannelWithInterceptors(
			target, grpc::InsecureChannelCredentials(), grpc::ChannelArguments(),
			std::move(all));
		stub = Lookup::NewStub(channel);
	}
};

Query query_of(unsigned sleep_ms, grpc::StatusCode status = grpc::StatusCode::OK)
{
	Query query;

	query.set_sleep_ms(sleep_ms);
	query.set_status(status);
	return query;
}

grpc::StatusCode ask(rig &r, const Query &query,
		     const std::function<void(grpc::ClientContext &)> &prepare = {})
{
	grpc::ClientContext context;
	Answer answer;

	if (prepare)
		prepare(context);
	return r.stub->Report(&context, query, &answer).error_code();
}

grpc::StatusCode watch(rig &r, const Query &query)
{
	grpc::ClientContext context;
	Answer answer;
	const auto reader = r.stub->Watch(&context, query);

	while (reader->Read(&answer))
		;
	return reader->Finish().error_code();
}

/* A call that holds a permit until it is released. */
class hanging
{
public:
	explicit hanging(rig &r) : rig_(r)
	{
		const unsigned begun = rig_.done.begun;

		thread_ = std::thread(
			[this] { CHECK(ask(rig_, query_of(HANG)) == grpc::StatusCode::OK); });
		wait_for([&] { return rig_.done.begun > begun; });
	}

	~hanging()
	{
		rig_.done.let_go = true;
		thread_.join();
		rig_.done.let_go = false;
	}

	hanging(const hanging &) = delete;
	hanging &operator=(const hanging &) = delete;

private:
	rig &rig_;
	std::thread thread_{};
};

/* This many calls at once, each in its own thread; all are answered. */
void many_calls(rig &r, unsigned calls)
{
	std::vector<std::thread> threads;

	for (unsigned i = 0; i < calls; i++)
		threads.emplace_back([&] { CHECK(ask(r, query_of(2)) == grpc::StatusCode::OK); });
	for (std::thread &thread : threads)
		thread.join();
}

weir::grpc_config patient()
{
	weir::grpc_config config;

	config.wait = 300s;
	return config;
}

using grpc::StatusCode;

const std::pair<StatusCode, unsigned> outcomes[] = {
	{StatusCode::OK, 0},
	{StatusCode::UNAVAILABLE, 1},
	{StatusCode::RESOURCE_EXHAUSTED, 1},
	{StatusCode::NOT_FOUND, 2},
	{StatusCode::INTERNAL, 2},
	{StatusCode::INVALID_ARGUMENT, 2},
	{StatusCode::UNKNOWN, 2},
	{StatusCode::DEADLINE_EXCEEDED, 3},
	{StatusCode::CANCELLED, 4},
};

void check_outcomes(rig &r, const weir::limiter &limiter)
{
	for (const auto &outcome : outcomes)
		CHECK(ask(r, query_of(0, outcome.first)) == outcome.first);
	check_idle(limiter);
	const weir_snapshot now = limiter.snapshot();
	CHECK(now.succeeded == 1);
	CHECK(now.dropped == 2);
	CHECK(now.ignored == 4);
	CHECK(now.timed_out == 1);
	CHECK(now.cancelled == 1);
}

void server_counts_outcomes(api kind)
{
	weir::limiter limiter = make_limiter(10, 0);
	rig r(kind, limiter);

	check_outcomes(r, limiter);
}

/* Its first read passes the interceptor before the call is refused. */
class reader final : public grpc::ClientReadReactor<Answer>
{
public:
	void begin(rig &r)
	{
		r.stub->async()->Watch(&context_, &query_, this);
		StartRead(&answer_);
		StartCall();
	}

	void OnDone(const grpc::Status &status) override
	{
		code_ = status.error_code();
		done_ = true;
	}

	StatusCode wait()
	{
		wait_for([this] { return done_.load(); });
		return code_;
	}

	grpc::ClientContext context_{};

private:
	Query query_{};
	Answer answer_{};
	StatusCode code_ = StatusCode::OK;
	std::atomic<bool> done_{false};
};

void server_refuses(api kind)
{
	weir::limiter limiter = make_limiter(1, 0);
	weir::grpc_config config;

	config.refusal = StatusCode::RESOURCE_EXHAUSTED;
	{
		rig r(kind, limiter);
		hanging h(r);

		CHECK(ask(r, query_of(0)) == StatusCode::UNAVAILABLE);
		CHECK(watch(r, query_of(0)) == StatusCode::UNAVAILABLE);
		CHECK(r.done.begun == 1);
	}
	{
		rig r(kind, limiter, config);
		hanging h(r);

		CHECK(ask(r, query_of(0)) == StatusCode::RESOURCE_EXHAUSTED);
	}
	check_idle(limiter);
}

void server_queues_calls(api kind)
{
	weir::limiter limiter = make_limiter(3, 100);
	rig r(kind, limiter, patient());

	many_calls(r, 40);
	CHECK(r.done.most <= 3);
	check_idle(limiter);
	CHECK(limiter.snapshot().succeeded == 40);
}

void server_queues_streams(api kind)
{
	weir::limiter limiter = make_limiter(1, 100);
	rig r(kind, limiter, patient());
	std::thread waits;
	{
		hanging h(r);

		if (kind != api::sync) {
			reader cancelled;

			cancelled.begin(r);
			wait_for([&] { return limiter.waiting() == 1; });
			cancelled.context_.TryCancel();
			CHECK(cancelled.wait() == StatusCode::CANCELLED);
			wait_for([&] { return limiter.waiting() == 0; });
		}
		waits = std::thread([&] { CHECK(watch(r, query_of(0)) == StatusCode::OK); });
		wait_for([&] { return limiter.waiting() == 1; });
	}
	waits.join();
	check_idle(limiter);
	CHECK(limiter.snapshot().detached == 1);
}

/* By hand, without waiting. */
void server_admits_by_hand()
{
	weir::limiter limiter = make_limiter(1, 0);
	const weir::grpc_guard guard(limiter);
	weir::permit stream = guard.admit_stream();

	CHECK(stream && limiter.snapshot().detached == 1);
	CHECK(!guard.admit() && !guard.admit_stream());
	CHECK(guard.refusal().error_code() == StatusCode::UNAVAILABLE);
	stream.success();
	CHECK(guard.admit());
	check_idle(limiter);
}

/* check() finds each mismatch of a configuration and a limiter before a call is made. */
void configurations_are_checked()
{
	weir::limiter queue = make_limiter(1, 1), none = make_limiter(1, 0);
	weir::grpc_config config = patient();

	CHECK(config.check(queue));
	CHECK(config.check(none).error == -EINVAL);
	CHECK(std::string(config.check(none).why).find("needs a limiter with a queue") !=
	      std::string::npos);
	CHECK(config.check(weir::limiter_ref()).error == -EINVAL);
	config.wait = 0s;
	CHECK(config.check(none));
	config.refusal = StatusCode::OK;
	CHECK(config.check(none).error == -EINVAL);
}

void server_ends_waits(api kind)
{
	weir::limiter limiter = make_limiter(1, 100);
	rig r(kind, limiter, patient());
	hanging h(r);

	CHECK(ask(r, query_of(0), [](grpc::ClientContext &context) {
		      context.set_deadline(system_clock::now() + 50ms);
	      }) == StatusCode::DEADLINE_EXCEEDED);
	wait_for([&] { return limiter.waiting() == 0; });

	grpc::ClientContext context;
	Answer answer;
	std::thread cancels([&] {
		wait_for([&] { return limiter.waiting() == 1; });
		context.TryCancel();
	});
	CHECK(r.stub->Report(&context, query_of(0), &answer).error_code() == StatusCode::CANCELLED);
	cancels.join();
	if (kind != api::sync)
		wait_for([&] { return limiter.waiting() == 0; });
	CHECK(r.done.begun == 1);
}

void server_notices_disconnects(api kind)
{
	weir::limiter limiter = make_limiter(2, 0);
	rig r(kind, limiter);
	grpc::ClientContext context;
	Answer answer;
	std::thread cancels([&] {
		wait_for([&] { return r.done.begun == 1; });
		context.TryCancel();
	});

	CHECK(r.stub->Report(&context, query_of(HANG), &answer).error_code() ==
	      StatusCode::CANCELLED);
	cancels.join();
	wait_for([&] { return limiter.snapshot().cancelled == 1; });
	/* Until one call has reached the server. */
	for (auto patience = 50ms; r.done.begun == 1; patience *= 2)
		CHECK(ask(r, query_of(HANG), [&](grpc::ClientContext &late) {
			      late.set_deadline(system_clock::now() + patience);
		      }) == StatusCode::DEADLINE_EXCEEDED);
	wait_for([&] { return limiter.snapshot().timed_out + limiter.snapshot().cancelled >= 2; });
	check_idle(limiter);
}

void server_detaches_streams(api kind)
{
	weir::limiter limiter = make_limiter(2, 0);
	weir::grpc_config counted;

	counted.count_streams = true;
	{
		rig r(kind, limiter);

		CHECK(watch(r, query_of(0)) == StatusCode::OK);
		wait_for([&] { return limiter.snapshot().succeeded == 1; });
		CHECK(limiter.snapshot().detached == 1);
	}
	{
		rig r(kind, limiter, counted);

		CHECK(watch(r, query_of(0)) == StatusCode::OK);
		wait_for([&] { return limiter.snapshot().succeeded == 2; });
		CHECK(limiter.snapshot().detached == 1);
	}
	check_idle(limiter);
}

void server_has_partitions(api kind)
{
	weir::config config;

	CHECK(config.set_limit("fixed:limit=4"));
	config.queue = 10;
	config.set_partitions({{"live", 0.5, 0, 0, {}}, {"batch", 0.25, 0, 0, {}}});
	weir::limiter limiter(config);
	rig r(kind, limiter, patient());

	for (const char *name : {"live", "live", "batch", "nothing"})
		CHECK(ask(r, query_of(0), [&](grpc::ClientContext &context) {
			      context.AddMetadata("class", name);
		      }) == StatusCode::OK);
	check_idle(limiter);
	CHECK(limiter.partition_snapshot(limiter.partition_find("live"))->succeeded == 2);
	CHECK(limiter.partition_snapshot(limiter.partition_find("batch"))->succeeded == 1);
	CHECK(limiter.partition_snapshot(0)->succeeded == 1);

	/* Capacity reserved for others becomes free by time alone, and the waiting call gets it. */
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] { CHECK(ask(r, query_of(HANG)) == StatusCode::OK); });
	wait_for([&] { return r.done.busy == 4; });
	r.done.let_go = true;
	for (std::thread &thread : threads)
		thread.join();
	check_idle(limiter);
}

/* A server without a limit, and a limiter at the client. */
struct client_rig {
	weir::limiter limiter, all = make_limiter(1000, 0);
	rig r;

	client_rig(unsigned limit, unsigned queue, const weir::grpc_config &config = {})
		: limiter(make_limiter(limit, queue)), r(api::callback, all)
	{
		r.connect(weir::grpc_client_interceptor(limiter, config));
	}
};

void client_counts_outcomes()
{
	client_rig c(10, 0);

	check_outcomes(c.r, c.limiter);
}

void client_refuses()
{
	client_rig c(1, 0);
	hanging h(c.r);

	CHECK(ask(c.r, query_of(0)) == StatusCode::UNAVAILABLE);
	CHECK(watch(c.r, query_of(0)) == StatusCode::UNAVAILABLE);
	CHECK(c.r.done.begun == 1);
	CHECK(c.all.snapshot().admitted == 1);
}

void client_queues_calls()
{
	client_rig c(3, 200, patient());
	std::atomic<unsigned> ended{0};
	std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
	const Query query = query_of(2);
	Answer answers[100];

	many_calls(c.r, 40);
	for (Answer &answer : answers) {
		contexts.push_back(std::make_unique<grpc::ClientContext>());
		c.r.stub->async()->Report(contexts.back().get(), &query, &answer,
					  [&](const grpc::Status &status) {
						  CHECK(status.ok());
						  ended++;
					  });
	}
	wait_for([&] { return ended == 100; });
	CHECK(c.r.done.most <= 3);
	check_idle(c.limiter);
	CHECK(c.limiter.snapshot().succeeded == 140);
}

void client_ends_waits()
{
	client_rig c(1, 10, patient());
	hanging h(c.r);
	grpc::ClientContext context;
	Answer answer;

	CHECK(ask(c.r, query_of(0), [](grpc::ClientContext &late) {
		      late.set_deadline(system_clock::now() + 50ms);
	      }) == StatusCode::DEADLINE_EXCEEDED);
	std::thread cancels([&] {
		wait_for([&] { return c.limiter.waiting() == 1; });
		context.TryCancel();
	});
	CHECK(c.r.stub->Report(&context, query_of(0), &answer).error_code() ==
	      StatusCode::CANCELLED);
	cancels.join();
	CHECK(c.limiter.waiting() == 0);
	CHECK(c.r.done.begun == 1);
}

void client_limits_streams()
{
	weir::grpc_config config = patient();

	config.wait = 50ms;
	client_rig c(1, 10, config);
	{
		hanging h(c.r);
		reader late, cancelled;

		late.begin(c.r);
		CHECK(late.wait() == StatusCode::UNAVAILABLE);
		CHECK(watch(c.r, query_of(0)) == StatusCode::UNAVAILABLE);
		cancelled.begin(c.r);
		cancelled.context_.TryCancel();
		CHECK(cancelled.wait() == StatusCode::CANCELLED);
	}
	reader good;
	good.begin(c.r);
	CHECK(good.wait() == StatusCode::OK);
	CHECK(watch(c.r, query_of(0)) == StatusCode::OK);
	CHECK(c.limiter.snapshot().detached == 2);
	check_idle(c.limiter);
}

/* A call with a completion queue. */
class queued_call
{
public:
	explicit queued_call(rig &r)
	{
		reader_ = r.stub->PrepareAsyncReport(&context_, query_of(0), &queue_);
		reader_->StartCall();
		reader_->Finish(&answer_, &status_, this);
	}

	StatusCode wait()
	{
		void *tag;
		bool ok;

		CHECK(queue_.Next(&tag, &ok) && tag == this && ok);
		queue_.Shutdown();
		CHECK(!queue_.Next(&tag, &ok));
		return status_.error_code();
	}

	grpc::ClientContext context_{};

private:
	grpc::CompletionQueue queue_{};
	Answer answer_{};
	grpc::Status status_{};
	std::unique_ptr<grpc::ClientAsyncResponseReader<Answer>> reader_{};
};

void client_limits_queued_calls()
{
	client_rig c(1, 1, patient());
	std::unique_ptr<queued_call> waits;
	{
		hanging h(c.r);
		queued_call cancelled(c.r);

		wait_for([&] { return c.limiter.waiting() == 1; });
		CHECK(queued_call(c.r).wait() == StatusCode::UNAVAILABLE); /* the queue is full */
		cancelled.context_.TryCancel();
		CHECK(cancelled.wait() == StatusCode::CANCELLED);
		waits = std::make_unique<queued_call>(c.r);
		wait_for([&] { return c.limiter.waiting() == 1; });
		CHECK(c.r.done.begun == 1);
	}
	CHECK(waits->wait() == StatusCode::OK);
	check_idle(c.limiter);
	CHECK(c.limiter.snapshot().succeeded == 2);
}

void client_classifies_calls()
{
	weir::grpc_config config;
	std::string seen;

	config.classify = [&](const char *method,
			      const std::multimap<std::string, std::string> &metadata) {
		weir_call call{};

		seen = method;
		if (metadata.count("health") > 0)
			call.flags = WEIR_CALL_BYPASS;
		return call;
	};
	client_rig c(1, 0, config);
	hanging h(c.r);

	CHECK(ask(c.r, query_of(0)) == StatusCode::UNAVAILABLE);
	CHECK(seen == "/weir.example.Lookup/Report");
	CHECK(ask(c.r, query_of(0), [](grpc::ClientContext &context) {
		      context.AddMetadata("health", "yes");
	      }) == StatusCode::OK);
}

/* The server is a separate process, which is killed while calls are in flight and waiting. */
void client_survives_a_killed_server(int from_child, pid_t child)
{
	weir::limiter limiter = make_limiter(4, 100), all = make_limiter(1, 0);
	rig r(api::callback, all);
	std::vector<std::thread> threads;
	std::atomic<unsigned> unavailable{0};
	int port = 0;

	CHECK(read(from_child, &port, sizeof(port)) == sizeof(port));
	r.target = "127.0.0.1:" + std::to_string(port);
	r.connect(weir::grpc_client_interceptor(limiter, patient()));
	CHECK(ask(r, query_of(0)) == StatusCode::OK);
	for (int i = 0; i < 12; i++)
		threads.emplace_back(
			[&] { unavailable += ask(r, query_of(HANG)) == StatusCode::UNAVAILABLE; });
	wait_for([&] { return limiter.inflight() == 4 && limiter.waiting() == 8; });
	std::this_thread::sleep_for(50ms);
	kill(child, SIGKILL);
	waitpid(child, nullptr, 0);
	for (std::thread &thread : threads)
		thread.join();
	CHECK(unavailable == 12);
	check_idle(limiter);
	CHECK(limiter.snapshot().dropped == 12);
}

void serve_until_killed(int to_parent)
{
	weir::limiter limiter = make_limiter(1000, 0);
	rig r(api::callback, limiter);
	const int port = std::stoi(r.target.substr(r.target.find(':') + 1));

	if (write(to_parent, &port, sizeof(port)) == sizeof(port))
		pause();
}

/* Limits at both ends, and calls that end in all ways, in random order. */
void all_at_once(api kind)
{
	weir::limiter at_server = make_limiter(3, 20), at_client = make_limiter(5, 20);
	weir::grpc_config config;

	config.wait = 20ms;
	rig r(kind, at_server, config);
	std::vector<std::thread> threads;
	std::atomic<unsigned> good{0};

	r.connect(weir::grpc_client_interceptor(at_client, config));
	for (unsigned i = 0; i < 16; i++)
		threads.emplace_back([&, i] {
			std::uint64_t chance = i + 1;

			for (int round = 0; round < 60; round++) {
				grpc::ClientContext context;
				Answer answer;
				std::thread canceller;

				if (draw(&chance) % 4 == 0)
					context.set_deadline(
						system_clock::now() +
						std::chrono::microseconds(draw(&chance) % 8000));
				if (draw(&chance) % 8 == 0)
					canceller = std::thread([&] { context.TryCancel(); });
				if (draw(&chance) % 8 == 0)
					watch(r, query_of(0));
				good += r.stub->Report(&context, query_of(2), &answer).ok();
				if (canceller.joinable())
					canceller.join();
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	CHECK(good > 0);
	CHECK(r.done.most <= 3);
	check_idle(at_client);
	check_idle(at_server);
}

} // namespace

int main()
{
	int pipes[2];
	pid_t child;

	CHECK(pipe(pipes) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		serve_until_killed(pipes[1]);
	client_survives_a_killed_server(pipes[0], child);
	for (const api kind : {api::sync, api::callback, api::queue}) {
		server_counts_outcomes(kind);
		server_refuses(kind);
		server_queues_calls(kind);
		server_queues_streams(kind);
		server_ends_waits(kind);
		server_notices_disconnects(kind);
		server_detaches_streams(kind);
		server_has_partitions(kind);
		all_at_once(kind);
	}
	server_admits_by_hand();
	configurations_are_checked();
	client_counts_outcomes();
	client_refuses();
	client_queues_calls();
	client_ends_waits();
	client_limits_streams();
	client_limits_queued_calls();
	client_classifies_calls();
}
