/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's interceptor, one object per call. The batches of the call pass through it on their
 * way down, before anything is sent, and on their way up.
 *
 * The first batch is held back until there is a permit. A call without a permit is hijacked:
 * nothing is passed further down, and the interceptor answers in place of the server, with a status
 * and no message.
 */

#include "waiting.hpp"

#include <grpcpp/client_context.h>

#include <atomic>
#include <mutex>

namespace weir
{

namespace
{

using ::grpc::experimental::ClientRpcInfo;
using ::grpc::experimental::InterceptionHookPoints;
using ::grpc::experimental::InterceptorBatchMethods;
using grpc_detail::waiting;

struct client_state {
	limiter_ref limiter;
	grpc_config config;
};

class client_interceptor final : public ::grpc::experimental::Interceptor
{
public:
	client_interceptor(std::shared_ptr<const client_state> common, ClientRpcInfo *info)
		: common_(std::move(common)), info_(info)
	{
	}

	void Intercept(InterceptorBatchMethods *methods) override
	{
		if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_CANCEL))
			stop();
		else if (refused_.load(std::memory_order_acquire))
			answer(methods);
		else if (methods->QueryInterceptionHookPoint(
				 InterceptionHookPoints::PRE_SEND_INITIAL_METADATA))
			begin(methods);
		else
			go_on(methods);
	}

private:
	bool is_stream() const
	{
		return info_->type() != ClientRpcInfo::Type::UNARY;
	}

	weir_call classify(InterceptorBatchMethods *methods) const
	{
		if (!common_->config.classify)
			return {};
		return common_->config.classify(info_->method(),
						*methods->GetSendInitialMetadata());
	}

	void begin(InterceptorBatchMethods *methods)
	{
		const gpr_timespec deadline = info_->client_context()->raw_deadline();
		const weir_time until = common_->config.wait.count() > 0
						? grpc_detail::wait_until(deadline,
									  common_->config.wait)
						: 0;
		std::shared_ptr<waiting> handle;
		const int error = waiting::begin(
			common_->limiter, classify(methods), until,
			[this, methods](int why, permit got) {
				admitted(methods, why, std::move(got));
			},
			handle);

		if (error != 0)
			refuse(methods, error);
		else if (handle != nullptr)
			keep(handle);
	}

	/* Store the wait, and stop it if the call has been cancelled meanwhile. */
	void keep(const std::shared_ptr<waiting> &handle)
	{
		bool stopped;
		{
			const std::lock_guard<std::mutex> lock(mutex_);

			stopped = stopped_;
			waiting_ = handle;
		}
		if (stopped)
			handle->stop();
	}

	void admitted(InterceptorBatchMethods *methods, int error, permit got)
	{
		if (error != 0) {
			refuse(methods, error);
			return;
		}
		permit_ = std::move(got);
		if (is_stream() && !common_->config.count_streams)
			permit_.detach();
		methods->Proceed();
	}

	void refuse(InterceptorBatchMethods *methods, int error)
	{
		status_ = grpc_detail::refused(common_->config,
					       info_->client_context()->raw_deadline(), error);
		refused_.store(true, std::memory_order_release);
		info_->client_context()
			->TryCancel(); /* ends later batches, which have passed down */
		methods->Hijack();
	}

	/* Answer in place of the server. */
	void answer(InterceptorBatchMethods *methods)
	{
		if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE))
			methods->FailHijackedSendMessage();
		if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_RECV_MESSAGE))
			methods->FailHijackedRecvMessage();
		if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_RECV_STATUS) ||
		    methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS))
			*methods->GetRecvStatus() = status_;
		methods->Proceed();
	}

	void go_on(InterceptorBatchMethods *methods)
	{
		if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS)) {
			const ::grpc::Status &status = *methods->GetRecvStatus();

			permit_.release(common_->config.outcome ? common_->config.outcome(status)
								: grpc_outcome(status));
		}
		methods->Proceed();
	}

	void stop()
	{
		std::shared_ptr<waiting> handle;
		{
			const std::lock_guard<std::mutex> lock(mutex_);

			stopped_ = true;
			handle = waiting_;
		}
		if (handle != nullptr)
			handle->stop();
	}

	std::shared_ptr<const client_state> common_;
	ClientRpcInfo *info_;
	permit permit_{};
	std::atomic<bool> refused_{false};
	::grpc::Status status_{}; /* of a refused call */

	std::mutex mutex_{}; /* protects the fields below, since another thread may cancel */
	std::shared_ptr<waiting> waiting_{};
	bool stopped_ = false;
};

class client_factory final : public ::grpc::experimental::ClientInterceptorFactoryInterface
{
public:
	explicit client_factory(std::shared_ptr<const client_state> common)
		: common_(std::move(common))
	{
	}

	::grpc::experimental::Interceptor *CreateClientInterceptor(ClientRpcInfo *info) override
	{
		return new client_interceptor(common_, info);
	}

private:
	std::shared_ptr<const client_state> common_;
};

} // namespace

weir_outcome grpc_outcome(const ::grpc::Status &status) noexcept
{
	switch (status.error_code()) {
	case ::grpc::StatusCode::OK:
		return WEIR_SUCCESS;
	case ::grpc::StatusCode::UNAVAILABLE:
	case ::grpc::StatusCode::RESOURCE_EXHAUSTED:
		return WEIR_DROPPED;
	case ::grpc::StatusCode::DEADLINE_EXCEEDED:
		return WEIR_TIMED_OUT;
	case ::grpc::StatusCode::CANCELLED:
		return WEIR_CANCELLED;
	default:
		return WEIR_IGNORE;
	}
}

std::unique_ptr<::grpc::experimental::ClientInterceptorFactoryInterface> grpc_client_interceptor(
	limiter_ref limiter, grpc_config config)
{
	return std::make_unique<client_factory>(
		std::make_shared<const client_state>(client_state{limiter, std::move(config)}));
}

} // namespace weir
