/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server side: the guard that handlers use. In the synchronous API it is a blocking call; in
 * the callback API, a reactor that begins its work when there is a permit.
 */

#include "waiting.hpp"

#include <grpcpp/server_context.h>

namespace weir
{

using grpc_detail::waiting;

struct grpc_guard::state {
	limiter_ref limiter;
	grpc_config config;
};

struct grpc_unary::state {
	std::shared_ptr<const grpc_guard::state> common;
	::grpc::CallbackServerContext *context;
	work run;
	permit got{};
	grpc_wait wait{};
};

namespace
{

weir_time until_of(const grpc_config &config, const ::grpc::ServerContextBase &context) noexcept
{
	return config.wait.count() > 0
		       ? grpc_detail::wait_until(context.raw_deadline(), config.wait)
		       : 0;
}

/* If the call has already ended for its client, its status does not matter. */
weir_outcome outcome_of(const grpc_config &config, const ::grpc::ServerContextBase &context,
			const ::grpc::Status &status)
{
	if (context.IsCancelled())
		return grpc_detail::time_of(context.raw_deadline()) <= weir_now() ? WEIR_TIMED_OUT
										  : WEIR_CANCELLED;
	return config.outcome ? config.outcome(status) : grpc_outcome(status);
}

} // namespace

weir_call grpc_call_by_metadata(limiter_ref limiter, const ::grpc::ServerContextBase &context,
				const std::string &name)
{
	const auto found = context.client_metadata().find(
		::grpc::string_ref(name.data(), name.size()));
	weir_call call{};

	if (found != context.client_metadata().end())
		call.partition = limiter.partition_find(
			std::string(found->second.data(), found->second.size()).c_str());
	return call;
}

void grpc_wait::cancel() noexcept
{
	if (own_ != nullptr)
		own_->stop();
}

grpc_unary::grpc_unary(std::unique_ptr<state> own) : own_(std::move(own))
{
}

grpc_unary::~grpc_unary() = default;

void grpc_unary::Finish(::grpc::Status status)
{
	if (own_->got)
		own_->got.release(outcome_of(own_->common->config, *own_->context, status));
	::grpc::ServerUnaryReactor::Finish(std::move(status));
}

void grpc_unary::OnDone()
{
	delete this;
}

/* Runs after the handler has returned, so own_->wait is no longer written. */
void grpc_unary::OnCancel()
{
	own_->wait.cancel();
}

grpc_guard::grpc_guard(limiter_ref limiter, grpc_config config)
	: own_(std::make_shared<const state>(state{limiter, std::move(config)}))
{
}

::grpc::ServerUnaryReactor *grpc_guard::serve(::grpc::CallbackServerContext *context,
					      grpc_unary::work work, const weir_call &call) const
{
	auto own = std::make_unique<grpc_unary::state>(
		grpc_unary::state{own_, context, std::move(work)});
	auto *unary = new grpc_unary(std::move(own));

	unary->own_->wait = wait(
		*context,
		[unary](permit got, const ::grpc::Status &refusal) {
			if (!got) {
				unary->Finish(refusal);
				return;
			}
			unary->own_->got = std::move(got);
			unary->own_->run(*unary);
		},
		call);
	return unary;
}

/* Keeps no reference to the context, which may be freed before a cancelled wait has ended. */
grpc_wait grpc_guard::wait(const ::grpc::ServerContextBase &context, grpc_wait::callback done,
			   const weir_call &call) const
{
	const auto callback = [common = own_, deadline = context.raw_deadline(),
			       done = std::move(done)](int error, permit got) {
		done(std::move(got), error != 0
					     ? grpc_detail::refused(common->config, deadline, error)
					     : ::grpc::Status::OK);
	};
	grpc_wait handle;
	const int error = waiting::begin(own_->limiter, call, until_of(own_->config, context),
					 callback, handle.own_);

	if (error != 0)
		callback(error, permit());
	return handle;
}

grpc_wait grpc_guard::wait_stream(const ::grpc::ServerContextBase &context,
				  grpc_wait::callback done, const weir_call &call) const
{
	return wait(
		context,
		[self = *this, done = std::move(done)](permit got, const ::grpc::Status &refusal) {
			self.begin_stream(got);
			done(std::move(got), refusal);
		},
		call);
}

permit grpc_guard::admit(const weir_call &call) const noexcept
{
	return own_->limiter.try_acquire(call);
}

permit grpc_guard::admit_stream(const weir_call &call) const noexcept
{
	permit got = admit(call);

	begin_stream(got);
	return got;
}

::grpc::Status grpc_guard::refusal() const
{
	return grpc_detail::refused(own_->config, gpr_inf_future(GPR_CLOCK_MONOTONIC), -EAGAIN);
}

weir_outcome grpc_guard::outcome(const ::grpc::ServerContextBase &context,
				 const ::grpc::Status &status) const
{
	return outcome_of(own_->config, context, status);
}

permit grpc_guard::acquire(const ::grpc::ServerContextBase &context,
			   const weir_call &call) const noexcept
{
	const weir_time until = until_of(own_->config, context);

	if (until == 0)
		return admit(call);
	if (until == WEIR_FOREVER)
		return own_->limiter.acquire(std::chrono::steady_clock::time_point::max(), call);
	return own_->limiter.acquire(
		std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until)), call);
}

void grpc_guard::begin_stream(permit &got) const noexcept
{
	if (got && !own_->config.count_streams)
		got.detach();
}

::grpc::Status grpc_guard::refused(const ::grpc::ServerContextBase &context, int error) const
{
	return grpc_detail::refused(own_->config, context.raw_deadline(), error);
}

} // namespace weir
