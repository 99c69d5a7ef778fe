/* SPDX-License-Identifier: BSD-2-Clause */
#include "envoy.hpp"

#include "../stress/check.h"

namespace
{

constexpr milliseconds INTERVAL{200}; /* between reports */

}

envoy_client::envoy_client(const std::string &address,
			   const std::shared_ptr<grpc::ChannelCredentials> &credentials)
{
	grpc::ChannelArguments arguments;

	/* Connections are not shared between clients. */
	arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
	stub_ = quota::RateLimitQuotaService::NewStub(
		grpc::CreateCustomChannel(address, credentials, arguments));
	context_.set_wait_for_ready(false);
	stream_ = stub_->StreamRateLimitQuotas(&context_);
	reader_ = std::thread(&envoy_client::read, this);
	reporter_ = std::thread(&envoy_client::report, this);
}

envoy_client::~envoy_client()
{
	ends_ = true;
	reporter_.join();
	{
		const std::lock_guard<std::mutex> held(write_lock_);

		stream_->WritesDone();
	}
	reader_.join();
	if (!joined_)
		(void)stream_->Finish();
}

void envoy_client::die()
{
	ends_ = true;
	context_.TryCancel();
}

grpc::Status envoy_client::status()
{
	CHECK(over_);
	joined_ = true;
	return stream_->Finish();
}

/* An assignment counts from when it is read. */
void envoy_client::apply(const quota::RateLimitQuotaResponse::BucketAction &action)
{
	const auto &id = action.bucket_id().bucket();
	const std::lock_guard<std::mutex> held(lock_);
	told &t = told_[bucket(id.begin(), id.end())];

	t.messages++;
	t.abandoned = action.has_abandon_action();
	if (t.abandoned) {
		t.units = 0;
		return;
	}

	const auto &assigned = action.quota_assignment_action();
	const auto &strategy = assigned.rate_limit_strategy();

	CHECK(action.has_quota_assignment_action() && assigned.has_assignment_time_to_live());
	CHECK(assigned.assignment_time_to_live().nanos() == 0);
	CHECK(assigned.assignment_time_to_live().seconds() > 0);
	t.by_bucket = strategy.has_token_bucket();
	if (strategy.has_token_bucket()) {
		const auto &tokens = strategy.token_bucket();

		CHECK(tokens.fill_interval().seconds() == 1 && tokens.fill_interval().nanos() == 0);
		CHECK(tokens.max_tokens() == tokens.tokens_per_fill().value());
		t.units = tokens.max_tokens();
	} else if (strategy.has_requests_per_time_unit()) {
		CHECK(strategy.requests_per_time_unit().time_unit() == envoy::type::v3::SECOND);
		t.units = strategy.requests_per_time_unit().requests_per_time_unit();
	} else {
		CHECK(strategy.blanket_rule() == envoy::type::v3::RateLimitStrategy::DENY_ALL);
		t.units = 0;
	}
	t.until = steady_clock::now() +
		  std::chrono::seconds(assigned.assignment_time_to_live().seconds());
}

void envoy_client::read()
{
	quota::RateLimitQuotaResponse response;

	while (stream_->Read(&response))
		for (const auto &action : response.bucket_action())
			apply(action);
	over_ = true;
}

bool envoy_client::send(const quota::RateLimitQuotaUsageReports &reports)
{
	const std::lock_guard<std::mutex> held(write_lock_);

	return stream_->Write(reports);
}

void envoy_client::report()
{
	steady_clock::time_point last = steady_clock::now();
	double due = 0;

	for (; !ends_; std::this_thread::sleep_for(INTERVAL)) {
		const auto now = steady_clock::now();
		quota::RateLimitQuotaUsageReports reports;
		const double elapsed = std::chrono::duration<double>(now - last).count();

		last = now;
		due = elapsed;
		reports.set_domain("test");
		{
			const std::lock_guard<std::mutex> held(lock_);

			for (const auto &[id, rate] : rates_) {
				auto *usage = reports.add_bucket_quota_usages();
				const auto requests = static_cast<uint64_t>(
					static_cast<double>(rate) * due + 0.5);

				usage->mutable_bucket_id()->mutable_bucket()->insert(id.begin(),
										     id.end());
				usage->set_num_requests_allowed(requests / 2);
				usage->set_num_requests_denied(requests - requests / 2);
				/* As Envoy does it: in whole seconds, rounded down. */
				usage->mutable_time_elapsed()->set_seconds(
					static_cast<int64_t>(elapsed));
			}
		}
		if (reports.bucket_quota_usages_size() > 0 && !send(reports))
			return;
	}
}

void envoy_client::want(const bucket &id, uint64_t rate)
{
	const std::lock_guard<std::mutex> held(lock_);

	rates_[id] = rate;
}

uint64_t envoy_client::units(const std::string &limit) const
{
	const std::lock_guard<std::mutex> held(lock_);
	const auto now = steady_clock::now();
	uint64_t sum = 0;

	for (const auto &[id, t] : told_) {
		const auto name = id.find("name");

		if (name != id.end() && name->second == limit && t.until > now)
			sum += t.units;
	}
	return sum;
}

told envoy_client::about(const bucket &id) const
{
	const std::lock_guard<std::mutex> held(lock_);
	const auto found = told_.find(id);

	return found != told_.end() ? found->second : told{};
}
