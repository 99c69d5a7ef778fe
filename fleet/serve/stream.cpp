/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.hpp"

#include "ending.hpp"
#include <algorithm>
#include <limits>

namespace weir::serve
{

namespace
{

namespace quota = envoy::service::rate_limit_quota::v3;
using envoy::type::v3::RateLimitStrategy;
using grpc::Status;
using grpc::StatusCode;

constexpr int64_t SECONDS_MAX = 315576000000; /* of a duration, by the definition of its message */
constexpr int32_t NANOS_MAX = 999999999;

/* Returns false if it is no duration, or a negative one. */
bool duration_of(const google::protobuf::Duration &message, weir_dur &duration)
{
	const int64_t most = static_cast<int64_t>(WEIR_FOREVER / WEIR_S / 2);

	if (message.seconds() < 0 || message.seconds() > SECONDS_MAX || message.nanos() < 0 ||
	    message.nanos() > NANOS_MAX)
		return false;
	duration = static_cast<weir_dur>(std::min(message.seconds(), most)) * WEIR_S +
		   static_cast<weir_dur>(message.nanos());
	return true;
}

uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a + b < a ? std::numeric_limits<uint64_t>::max() : a + b;
}

/* Envoy takes a fill interval of whole seconds only, and a bucket of none as one that is full. */
void put_units(uint64_t units, strategy how, RateLimitStrategy &into)
{
	if (units == 0) {
		into.set_blanket_rule(RateLimitStrategy::DENY_ALL);
	} else if (how == strategy::requests_per_time_unit) {
		into.mutable_requests_per_time_unit()->set_requests_per_time_unit(units);
		into.mutable_requests_per_time_unit()->set_time_unit(envoy::type::v3::SECOND);
	} else {
		const auto tokens = static_cast<uint32_t>(
			std::min<uint64_t>(units, std::numeric_limits<uint32_t>::max()));

		into.mutable_token_bucket()->set_max_tokens(tokens);
		into.mutable_token_bucket()->mutable_tokens_per_fill()->set_value(tokens);
		into.mutable_token_bucket()->mutable_fill_interval()->set_seconds(1);
	}
}

void put_action(const action &said, strategy how, quota::RateLimitQuotaResponse::BucketAction &into)
{
	into.mutable_bucket_id()->mutable_bucket()->insert(said.bucket->begin(),
							   said.bucket->end());
	if (said.seconds == 0) {
		into.mutable_abandon_action();
		return;
	}
	into.mutable_quota_assignment_action()->mutable_assignment_time_to_live()->set_seconds(
		said.seconds);
	put_units(said.units, how,
		  *into.mutable_quota_assignment_action()->mutable_rate_limit_strategy());
}

/*
 * A read is always pending, and a write if there is something to say. Whatever ends the stream,
 * Finish() is called once, when no write is pending and it is not being cancelled. Until then gRPC
 * keeps what belongs to the stream. gRPC may call back from inside of its functions, so none is
 * called with a lock held.
 */
class stream final : public grpc::ServerBidiReactor<quota::RateLimitQuotaUsageReports,
						    quota::RateLimitQuotaResponse>,
		     public outlet,
		     public std::enable_shared_from_this<stream>
{
public:
	stream(board &to, strategy how, grpc::CallbackServerContext *context)
		: board_(to), how_(how), context_(context)
	{
	}

	/* gRPC calls nothing here before it has been given the stream. */
	void begin()
	{
		self_ = shared_from_this();
		StartRead(&reports_);
		number_ = board_.enter(self_);
		if (number_ == 0)
			finish(Status(StatusCode::UNAVAILABLE,
				      "There are as many streams as are allowed, or the server is "
				      "ending."));
	}

	void OnReadDone(bool ok) override
	{
		const Status status = ok ? digest() : Status::OK;

		if (ok && status.ok())
			StartRead(&reports_);
		else
			finish(status);
	}

	void OnWriteDone(bool ok) override
	{
		bool finishes;
		{
			const std::lock_guard<std::mutex> held(lock_);

			if (!ok)
				keep(Status(StatusCode::CANCELLED, "It cannot be written to."));
			finishes = ending_.written(ok);
		}
		board_.sent(number_);
		if (finishes)
			Finish(status_);
	}

	void OnCancel() override
	{
		finish(Status(StatusCode::CANCELLED, "It was cancelled."));
	}

	void OnDone() override
	{
		const std::shared_ptr<stream> last = std::move(self_);

		board_.leave(number_);
	}

	void send(const std::vector<action> &actions) override
	{
		{
			const std::lock_guard<std::mutex> held(lock_);

			if (!ending_.write())
				return;
		}
		response_.Clear();
		for (const action &said : actions)
			put_action(said, how_, *response_.add_bucket_action());
		/* It counts as sent when the kernel has it, and not when it is in a buffer here. */
		StartWrite(&response_, grpc::WriteOptions().set_write_through());
	}

	void end(bool stuck) override
	{
		if (stuck)
			cut();
		else
			finish(Status(StatusCode::UNAVAILABLE, "The server is ending."));
	}

private:
	void finish(const Status &status)
	{
		bool finishes;
		{
			const std::lock_guard<std::mutex> held(lock_);

			keep(status);
			finishes = ending_.end();
		}
		if (finishes)
			Finish(status_);
	}

	/* The first status is the one. The lock is held. */
	void keep(const Status &status)
	{
		if (!ending_.is_over())
			status_ = status;
	}

	/* Cancel it, so that a write that does not end does. */
	void cut()
	{
		bool finishes;
		{
			const std::lock_guard<std::mutex> held(lock_);

			if (!ending_.cut())
				return;
		}
		context_->TryCancel();
		{
			const std::lock_guard<std::mutex> held(lock_);

			finishes = ending_.was_cut();
		}
		if (finishes)
			Finish(status_);
	}

	/* A report that no client of this protocol sends ends the stream. */
	Status digest()
	{
		std::vector<usage> usages;

		if (!named_ && reports_.domain().empty())
			return {StatusCode::INVALID_ARGUMENT, "The first report names no domain."};
		named_ = true;
		for (const auto &said : reports_.bucket_quota_usages()) {
			const auto &id = said.bucket_id().bucket();
			usage u{{id.begin(), id.end()},
				sum_of(said.num_requests_allowed(), said.num_requests_denied()),
				0};

			if (id.empty())
				return {StatusCode::INVALID_ARGUMENT, "A bucket has no id."};
			if (!duration_of(said.time_elapsed(), u.elapsed))
				return {StatusCode::INVALID_ARGUMENT,
					"time_elapsed is no duration, or negative."};
			usages.push_back(std::move(u));
		}
		board_.report(number_, usages);
		return Status::OK;
	}

	board &board_;
	const strategy how_;
	grpc::CallbackServerContext *const context_;
	std::shared_ptr<stream> self_{}; /* until gRPC is done with it */
	uint64_t number_ = 0;            /* the board's */
	quota::RateLimitQuotaUsageReports reports_{};
	bool named_ = false; /* the domain */

	quota::RateLimitQuotaResponse response_{}; /* of the write that is pending */

	std::mutex lock_{}; /* of what is below */
	ending ending_{};
	Status status_{};
};

} // namespace

grpc::ServerBidiReactor<quota::RateLimitQuotaUsageReports, quota::RateLimitQuotaResponse>
	*quota_service::StreamRateLimitQuotas(grpc::CallbackServerContext *context)
{
	const auto made = std::make_shared<stream>(board_, how_, context);

	made->begin();
	return made.get();
}

} // namespace weir::serve
