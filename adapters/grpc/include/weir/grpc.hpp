/*
 * weir/grpc.hpp - adaptive limits on gRPC calls, at the client and at the server, in C++17.
 *
 *	creators.push_back(weir::grpc_client_interceptor(limiter));
 *	channel = grpc::experimental::CreateCustomChannelWithInterceptors(..., std::move(creators));
 *
 *	grpc::Status Lookup(grpc::ServerContext *context, const Key *key, Value *value) override
 *	{
 *		return guard_.serve(context, [&] { return lookup(*key, value); });
 *	}
 *
 * At the client an interceptor asks for a permit before a call is begun, in whichever API. A call
 * that has to wait is held, without a thread; one that is refused is not sent, and ends with the
 * status of grpc_config.
 *
 * At the server the handlers ask. An interceptor there is told of a call, and cannot end it: it has
 * no status to give, and the handler runs whatever it does. What is refused would still be done.
 *
 * Streams take a permit to begin, and are detached then (weir_detach()): they are no calls whose
 * latency counts. With grpc_config.count_streams they are calls like others.
 *
 * Waiting. A wait needs a limiter with a queue: without one everybody who would wait is refused.
 * grpc_config::check() tells before that happens.
 *
 * Errors. Nothing here throws. What the program's own functions throw counts as WEIR_FAILED, and
 * goes where gRPC lets it go.
 *
 * Thread safety. All functions may be called by any thread at any time. The limiter outlives
 * channels, servers and their calls. What is set by a grpc_config is copied.
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
 * How a call went, by the status that it ended with:
 *
 *	WEIR_SUCCESS    OK
 *	WEIR_DROPPED    UNAVAILABLE, RESOURCE_EXHAUSTED
 *	WEIR_TIMED_OUT  DEADLINE_EXCEEDED
 *	WEIR_CANCELLED  CANCELLED
 *	WEIR_IGNORE     all others: they say nothing about load, and take a time of their own
 */
weir_outcome grpc_outcome(const ::grpc::Status &status) noexcept;

/* How calls are admitted. */
struct grpc_config {
	/*
	 * So long a call may wait for a permit, and not beyond its own deadline; the limiter needs
	 * a queue. 0: not at all.
	 */
	std::chrono::nanoseconds wait{};
	/*
	 * What who is refused is told. UNAVAILABLE is what clients try again, at another server
	 * first; RESOURCE_EXHAUSTED is about a quota of his, which no other server mends. Who
	 * waited until his own deadline is told DEADLINE_EXCEEDED.
	 */
	::grpc::StatusCode refusal = ::grpc::StatusCode::UNAVAILABLE;
	bool count_streams = false; /* streams are not detached */
	/* In place of grpc_outcome(), which it may call. */
	std::function<weir_outcome(const ::grpc::Status &status)> outcome{};
	/*
	 * What kind of call it is: partition, priority, bypass; by its method, which is
	 * "/package.Service/Method", and the metadata that it is sent with. Clients only: a
	 * handler says so itself.
	 */
	std::function<weir_call(const char *method,
				const std::multimap<std::string, std::string> &metadata)>
		classify{};

	/*
	 * Whether calls can be admitted so by this limiter. -EINVAL: it is empty, or there is a
	 * wait and it has no queue, so that all who would wait are refused; or the refusal is OK.
	 */
	status check(limiter_ref limiter) const noexcept;
};

/* For a channel's list of interceptors: its calls take permits of this limiter. */
std::unique_ptr<::grpc::experimental::ClientInterceptorFactoryInterface> grpc_client_interceptor(
	limiter_ref limiter, grpc_config config = {});

/* The partition that a call's metadata of this name names; 0 if there is none. */
weir_call grpc_call_by_metadata(limiter_ref limiter, const ::grpc::ServerContextBase &context,
				const std::string &name);

class grpc_guard;

/*
 * A wait for a permit that takes no thread, for who does by hand what grpc_guard::serve() does.
 * Copies are of the same wait.
 */
class grpc_wait
{
public:
	/*
	 * Called once: with the permit, or with none and the status to finish the call with. By the
	 * function that begins the wait, if it need not wait, else in a thread of gRPC's.
	 */
	using told = std::function<void(permit got, const ::grpc::Status &refusal)>;

	/* End it now, if it has not ended: there is no permit, and the status is CANCELLED. */
	void cancel() noexcept;

private:
	friend class grpc_guard;

	std::shared_ptr<grpc_detail::waiting> own_{};
};

/*
 * A unary call of the callback API that has its permit. Finish() it, as any reactor, and through
 * this type: so it is known how it went.
 */
class grpc_unary : public ::grpc::ServerUnaryReactor
{
public:
	/* What runs once there is a permit, in a thread of gRPC's. */
	using work = std::function<void(grpc_unary &call)>;

	grpc_unary(const grpc_unary &) = delete;
	grpc_unary &operator=(const grpc_unary &) = delete;

	/* The permit goes back first, then the answer to the client. */
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

/* What a server's handlers ask. */
class grpc_guard
{
public:
	explicit grpc_guard(limiter_ref limiter, grpc_config config = {});

	/*
	 * The synchronous API: acquire, work(), which returns a grpc::Status, release. What the
	 * handler is to return. Waits in the handler's thread.
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
	 * The callback API: the reactor that the handler is to return. Waits without a thread. What
	 * request and response point to lives until work has finished the call.
	 */
	[[nodiscard]] ::grpc::ServerUnaryReactor *serve(::grpc::CallbackServerContext *context,
							grpc_unary::work work,
							const weir_call &call = {}) const;

	/*
	 * By hand: for streams of the callback API, whose reactors keep the permit until OnDone(),
	 * and for completion queues. Admits or refuses at once; a refused call is finished with
	 * refusal().
	 */
	[[nodiscard]] permit admit_stream(const weir_call &call = {}) const noexcept;
	[[nodiscard]] permit admit(const weir_call &call = {}) const noexcept;
	[[nodiscard]] ::grpc::Status refusal() const;

	/*
	 * The same, but who finds no permit waits for one as grpc_config.wait says. Whoever is told
	 * that the client has left cancels it: OnCancel(), or the tag of AsyncNotifyWhenDone().
	 */
	[[nodiscard]] grpc_wait wait_stream(const ::grpc::ServerContextBase &context,
					    grpc_wait::told done, const weir_call &call = {}) const;
	[[nodiscard]] grpc_wait wait(const ::grpc::ServerContextBase &context, grpc_wait::told done,
				     const weir_call &call = {}) const;

	/*
	 * The outcome that such a permit is released with, before the call is finished or after. A
	 * context of a completion queue must have been given AsyncNotifyWhenDone() before the call
	 * was requested: without it gRPC crashes when it is asked if the client has left.
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
