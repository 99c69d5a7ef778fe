/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weir/grpc.hpp - adaptive concurrency limits for gRPC clients and servers, in C++17.
 *
 *	creators.push_back(weir::grpc_client_interceptor(limiter));
 *	channel = grpc::experimental::CreateCustomChannelWithInterceptors(..., std::move(creators));
 *
 *	grpc::Status Lookup(grpc::ServerContext *context, const Key *key, Value *value) override
 *	{
 *		return guard_.serve(context, [&] { return lookup(*key, value); });
 *	}
 *
 * At the client, an interceptor acquires a permit before a call starts, in any of gRPC's APIs. A
 * call that waits does not block a thread. A refused call is not sent and ends with
 * grpc_config.refusal.
 *
 * At the server, the handlers acquire permits. An interceptor could not refuse a call there: it has
 * no way to end the call, and the handler would run anyway.
 *
 * A stream acquires a permit when it starts, and is detached (weir_detach()), since its duration is
 * not a latency. With grpc_config.count_streams a stream is a call like any other.
 *
 * Waiting. A wait needs a limiter with a queue; without one every call that would wait is refused.
 * grpc_config::check() reports that in advance.
 *
 * Errors. Nothing here throws. An exception of the program's own functions counts as WEIR_FAILED
 * and propagates into gRPC.
 *
 * Thread safety. Any thread may call any function at any time. The limiter must outlive channels,
 * servers and their calls. Configurations are copied.
 */
#ifndef WEIR_GRPC_HPP
#define WEIR_GRPC_HPP

#include <weir/weir.hpp>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace weir
{

namespace grpc_detail
{
class waiting;
}

/*
 * The outcome of a call, by its status:
 *
 *	WEIR_SUCCESS    OK
 *	WEIR_DROPPED    UNAVAILABLE, RESOURCE_EXHAUSTED
 *	WEIR_TIMED_OUT  DEADLINE_EXCEEDED
 *	WEIR_CANCELLED  CANCELLED
 *	WEIR_IGNORE     all others: not evidence of load, and their latency is not that of the work
 */
weir_outcome grpc_outcome(const ::grpc::Status &status) noexcept;

/* How calls are admitted. */
struct grpc_config {
	/*
	 * How long a call may wait for a permit, at most until its own deadline; the limiter needs
	 * a queue. 0: do not wait.
	 */
	std::chrono::nanoseconds wait{};
	/*
	 * The status of refused calls. Clients retry UNAVAILABLE, preferably at another server.
	 * RESOURCE_EXHAUSTED means a quota of the client, which is the same at any server. A call
	 * that waited until its own deadline ends with DEADLINE_EXCEEDED.
	 */
	::grpc::StatusCode refusal = ::grpc::StatusCode::UNAVAILABLE;
	bool count_streams = false; /* true: streams are not detached */
	/* Decides the outcome instead of grpc_outcome(), which it may call. */
	std::function<weir_outcome(const ::grpc::Status &status)> outcome{};
	/*
	 * Classifies a call (partition, priority, bypass) by its method, which is
	 * "/package.Service/Method", and its metadata. Clients only: a handler passes a weir_call.
	 */
	std::function<weir_call(const char *method,
				const std::multimap<std::string, std::string> &metadata)>
		classify{};

	/*
	 * Check the configuration for this limiter. -EINVAL: the limiter is empty; there is a wait
	 * but no queue, so that every call that would wait is refused; or refusal is OK.
	 */
	status check(limiter_ref limiter) const noexcept;
};

/* For a channel's list of interceptors: its calls acquire permits of this limiter. */
std::unique_ptr<::grpc::experimental::ClientInterceptorFactoryInterface> grpc_client_interceptor(
	limiter_ref limiter, grpc_config config = {});

/* A call in the partition that this metadata entry names; partition 0 if there is none. */
weir_call grpc_call_by_metadata(limiter_ref limiter, const ::grpc::ServerContextBase &context,
				const std::string &name);

class grpc_guard;

/*
 * A wait for a permit that blocks no thread, for handlers that do by hand what grpc_guard::serve()
 * does. Copies refer to the same wait.
 */
class grpc_wait
{
public:
	/*
	 * Called once, with the permit, or with an empty one and the status to finish the call
	 * with. If the call need not wait, the function that begins the wait calls it; otherwise a
	 * thread of gRPC does.
	 */
	using callback = std::function<void(permit got, const ::grpc::Status &refusal)>;

	/* End the wait, if it has not ended, without a permit and with the status CANCELLED. */
	void cancel() noexcept;

private:
	friend class grpc_guard;

	std::shared_ptr<grpc_detail::waiting> own_{};
};

/*
 * A unary call of the callback API that has a permit. Call Finish() through this type, so that the
 * outcome is known.
 */
class grpc_unary : public ::grpc::ServerUnaryReactor
{
public:
	/* Runs in a thread of gRPC once the call has a permit. */
	using work = std::function<void(grpc_unary &call)>;

	grpc_unary(const grpc_unary &) = delete;
	grpc_unary &operator=(const grpc_unary &) = delete;

	/* Releases the permit, then sends the answer to the client. */
	void Finish(::grpc::Status status);

private:
	friend class grpc_guard;
	struct state;

	explicit grpc_unary(std::unique_ptr<state> own);
	~grpc_unary() override;
	void OnDone() override;
	void OnCancel() override;

	std::unique_ptr<state> own_;
};

/* Admission of a server's calls, for use in its handlers. */
class grpc_guard
{
public:
	explicit grpc_guard(limiter_ref limiter, grpc_config config = {});

	/*
	 * For the synchronous API: acquire a permit, call work(), which returns a grpc::Status, and
	 * release the permit. Returns the handler's status. Waits in the handler's thread.
	 */
	template <class Work>
	[[nodiscard]] ::grpc::Status serve(::grpc::ServerContext *context, Work &&work,
					   const weir_call &call = {}) const
	{
		return run(acquire(*context, call), context, std::forward<Work>(work));
	}

	/* The same for streams. */
	template <class Work>
	[[nodiscard]] ::grpc::Status serve_stream(::grpc::ServerContext *context, Work &&work,
						  const weir_call &call = {}) const
	{
		permit got = acquire(*context, call);

		begin_stream(got);
		return run(std::move(got), context, std::forward<Work>(work));
	}

	/*
	 * For the callback API: returns the reactor that the handler returns. Waiting blocks no
	 * thread. Request and response must stay valid until work has finished the call.
	 */
	[[nodiscard]] ::grpc::ServerUnaryReactor *serve(::grpc::CallbackServerContext *context,
							grpc_unary::work work,
							const weir_call &call = {}) const;

	/*
	 * By hand: for streams of the callback API, whose reactors keep the permit until OnDone(),
	 * and for completion queues. The call is admitted or refused at once. Finish a refused call
	 * with refusal().
	 */
	[[nodiscard]] permit admit_stream(const weir_call &call = {}) const noexcept;
	[[nodiscard]] permit admit(const weir_call &call = {}) const noexcept;
	[[nodiscard]] ::grpc::Status refusal() const;

	/*
	 * The same, but a call without a permit waits for one, up to grpc_config.wait. Cancel the
	 * wait when the client has left: in OnCancel(), or at the tag of AsyncNotifyWhenDone().
	 */
	[[nodiscard]] grpc_wait wait_stream(const ::grpc::ServerContextBase &context,
					    grpc_wait::callback done,
					    const weir_call &call = {}) const;
	[[nodiscard]] grpc_wait wait(const ::grpc::ServerContextBase &context,
				     grpc_wait::callback done, const weir_call &call = {}) const;

	/*
	 * The outcome to release such a permit with, before or after the call is finished. For a
	 * completion queue, AsyncNotifyWhenDone() must have been called on the context before the
	 * call was requested: without it, gRPC crashes when it is asked whether the client has
	 * left.
	 */
	weir_outcome outcome(const ::grpc::ServerContextBase &context,
			     const ::grpc::Status &status) const;

private:
	friend class grpc_unary;
	struct state;

	template <class Work>
	::grpc::Status run(permit got, const ::grpc::ServerContext *context, Work &&work) const
	{
		if (!got)
			return refused(*context, got.error());
		::grpc::Status status = std::forward<Work>(work)();
		got.release(outcome(*context, status));
		return status;
	}

	permit acquire(const ::grpc::ServerContextBase &context,
		       const weir_call &call) const noexcept;
	void begin_stream(permit &got) const noexcept;
	::grpc::Status refused(const ::grpc::ServerContextBase &context, int error) const;

	std::shared_ptr<const state> own_;
};

} // namespace weir

#endif
